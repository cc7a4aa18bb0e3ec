// What template_fft computes from templates and frames before the transforms:
//
//   frame_statistics_kernel  one block per template: its unit template (template_statistics.hpp);
//                            the other blocks: strips of frames
//
// A strip is kStripRows rows of a frame. Strips begin where the blocks of factors begin, so that
// all windows of a block contain whole strips. The sums of a column of a strip, of its values and
// their squares, serve 16 windows each: for windows of 64 rows the kernel of factors reads 40 rows
// and the sums of three strips, in place of 79 rows. Sums are float64, about a pivot of the frame:
// a value near which most others are, or 0 (template_factors.hpp, window_pivot).
#pragma once

#include <algorithm>

#include "algorithms/fused_fft/template_fft/window_sums.hpp"

namespace xcorr::fused_fft {

// The strips of frames, and the memory of their sums and pivots.
struct FrameStrips {
  FrameStrips() = default;
  explicit FrameStrips(const Problem& q)
      : before((kStripRows - static_cast<int>(q.window.sy.first % kStripRows)) % kStripRows),
        count(static_cast<int>(ceil_div<Index>(q.right.rows + before, kStripRows))),
        windows(q) {}

  // Blocks per frame: a thread processes a column of a strip.
  Index parts(const Problem& q) const {
    return std::min(ceil_div<Index>(count * q.right.cols, kStatisticsThreads), kMostRangeParts);
  }
  // The strip that begins at a row, first_sy + a multiple of kStripRows.
  __device__ __forceinline__ int at(int row) const { return (row + before) / kStripRows; }

  __device__ __forceinline__ RunSums* of_frame(int frame, int right_cols) const {
    return sums + static_cast<Index>(frame) * (count * right_cols);
  }

  // One thread waits for its block, which then meets at a barrier: until all sums of a frame are
  // stored, or its facts too.
  __device__ __forceinline__ void wait_for_sums(int frame, int parts) const {
    while (more_than(frame, parts) > 1) back_off<20>();
  }
  __device__ __forceinline__ void wait_for_facts(int frame, int parts) const {
    while (more_than(frame, parts) != 1) back_off<20>();
  }
  __device__ __forceinline__ std::uint32_t more_than(int frame, int parts) const {
    return load_acquire(ready + frame) - static_cast<std::uint32_t>(parts);
  }

  int before = 0;  // rows that the first strip is short of kStripRows
  int count = 0;   // strips per frame
  WindowTerms windows;
  RunSums* sums = nullptr;  // [rights][count][right_cols]
  float* pivots = nullptr;  // [rights]
  // [rights]: the number of blocks of the frame that have stored their sums, plus 1 when its facts
  // are stored; 0 between calls.
  std::uint32_t* ready = nullptr;
};

__device__ __forceinline__ float median_of(float a, float b, float c) {
  return fmaxf(fminf(a, b), fminf(fmaxf(a, b), c));
}

// The median of nine values of a frame if most of the nine are close to it; else 0. Every thread
// computes it. Computing it in one thread while the others wait took longer.
__device__ __forceinline__ float pivot_of(const float* frame, int rows, int cols) {
  const int at_y[] = {rows / 6, rows / 2, rows - 1 - rows / 6};
  const int at_x[] = {cols / 6, cols / 2, cols - 1 - cols / 6};
  float low = 0, middle[3], high = 0;
#pragma unroll
  for (int y = 0; y < 3; ++y) {
    float of[3];
#pragma unroll
    for (int x = 0; x < 3; ++x) of[x] = frame[at_y[y] * cols + at_x[x]];
    const float least = fminf(fminf(of[0], of[1]), of[2]);
    const float most = fmaxf(fmaxf(of[0], of[1]), of[2]);
    low = y == 0 ? least : fmaxf(low, least);
    middle[y] = median_of(of[0], of[1], of[2]);
    high = y == 0 ? most : fminf(high, most);
  }
  const float median = median_of(low, median_of(middle[0], middle[1], middle[2]), high);
  // At least one value of each row is <= `low`, and at least one is >= `high`.
  const float near = 0x1p-6f * fabsf(median);
  return fabsf(low - median) <= near && fabsf(high - median) <= near ? median : 0.0f;
}

// The range over all threads of a block, reduced in a fixed order and returned to thread 0.
__device__ __forceinline__ PartRange range_of_threads(PartRange own, int threads) {
  XCORR_SHARED(PartRange, of_warp, warp::kSize);
  const auto of_lanes = [&](int lanes) {
#pragma unroll
    for (int by = lanes / 2; by > 0; by /= 2) {
      own.see({warp::shuffle_xor(own.largest, by), warp::shuffle_xor(own.least, by)});
    }
  };
  const int warps = threads / warp::kSize, thread = static_cast<int>(threadIdx.x);
  of_lanes(warp::kSize);
  block::barrier();  // the previous ranges may still be read
  if (warp::lane() == 0) of_warp[thread / warp::kSize] = own;
  block::barrier();
  if (thread < warp::kSize) {
    own = thread < warps ? of_warp[thread] : PartRange::none();
    of_lanes(warp::kSize);
  }
  return own;
}

// Two blocks per SM: with one, columns would wait for the loads of other columns.
static __global__ void __launch_bounds__(kStatisticsThreads, 2)
    frame_statistics_kernel(TemplateProblem q, TemplateMemory memory, FrameStrips strips,
                            const float* left, const float* right) {
  wait_for_previous();
  let_next_start();
  const int block = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  if (block < q.lefts) {
    const Index at = block * q.left_size();
    make_unit(q, left + at, memory.units + at);
    return;
  }
  const int item = block - q.lefts, frame = item / memory.parts, part = item % memory.parts;
  const float* const from = right + frame * q.right_size();
  RunSums* const sums = strips.of_frame(frame, q.right_cols);
  const int columns = strips.count * q.right_cols;
  float values[kStripRows];
  const float* column = from;  // the thread's column
  RunSums* to = sums;
  int rows = 0;
  const auto choose = [&](int i) {
    const int strip = i / q.right_cols, col = i - strip * q.right_cols;
    const int begin = strip * kStripRows - strips.before, first = begin > 0 ? begin : 0;
    const int end = begin + kStripRows < q.right_rows ? begin + kStripRows : q.right_rows;
    rows = end - first;
    to = sums + i;
    column = from + (first * q.right_cols + col);
    if (rows == kStripRows) {
#pragma unroll
      for (int y = 0; y < kStripRows; ++y) values[y] = column[y * q.right_cols];
    } else {
#pragma unroll
      for (int y = 0; y < kStripRows; ++y) values[y] = column[(y < rows ? y : 0) * q.right_cols];
    }
  };
  int i = part * kStatisticsThreads + thread;
  if (i < columns) choose(i);  // its loads overlap with those of the pivot
  const float pivot = q.is_centred ? pivot_of(from, q.right_rows, q.right_cols) : 0.0f;
  if (part == 0 && thread == 0) strips.pivots[frame] = pivot;
  const auto about = static_cast<double>(pivot);
  PartRange seen = PartRange::none();
  while (i < columns) {
    RunSums own{};
    const auto see = [&](float value) {
      const double away = static_cast<double>(value) - about;
      own.add({away, away * away});
      seen.see(value);
    };
    if (rows == kStripRows) {
#pragma unroll
      for (const float value : values) see(value);
    } else {
#pragma unroll
      // The pivot adds 0 to the sums.
      for (int y = 0; y < kStripRows; ++y) see(y < rows ? values[y] : pivot);
    }
    *to = own;
    i += memory.parts * kStatisticsThreads;
    if (i < columns) choose(i);
  }
  block::barrier();
  if (thread == 0) add_release(strips.ready + frame, 1);
  const PartRange all = range_of_threads(seen, kStatisticsThreads);
  if (thread == 0) memory.ranges[item] = all;
}

// The facts of a frame from the ranges of its parts, by all threads of a block.
__device__ __forceinline__ void store_facts(const TemplateMemory& memory, std::uint32_t* ready,
                                            int frame, int threads) {
  PartRange own = PartRange::none();
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < memory.parts; i += threads) {
    own.see(memory.ranges[static_cast<Index>(frame) * memory.parts + i]);
  }
  const PartRange all = range_of_threads(own, threads);
  if (threadIdx.x == 0) {
    memory.facts[frame] = facts_from(all);
    add_release(ready + frame, 1);
  }
}

}  // namespace xcorr::fused_fft
