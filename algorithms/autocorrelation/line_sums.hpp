// Device code of the line kernels (ISS paper, section 4.3). All threads of a line read the same
// pixel at x; the pixels at x + sx of neighbouring threads are neighbours. In the paper a thread
// has one shift. With kShifts neighbouring shifts it keeps the part of the right line that slides
// past its shifts in registers: for kShifts x kShifts products it reads kShifts new pixels.
#pragma once

#include "algorithms/autocorrelation/line_tasks.hpp"
#include "algorithms/device/cuda.hpp"

namespace xcorr::autocorrelation {

struct alignas(16) Four {
  float at[4];
};

template <int kCount>
__device__ __forceinline__ void load_fours(float* values, const float* shared) {
#pragma unroll
  for (int i = 0; i < kCount; i += 4) {
    const Four four = *reinterpret_cast<const Four*>(shared + i);
#pragma unroll
    for (int j = 0; j < 4; ++j) values[i + j] = four.at[j];
  }
}

// sums[i] += l[j] * r[i + j] for i, j < kShifts, where r is `low` followed by `high`.
template <int kShifts>
__device__ __forceinline__ void add_square(float* sums, const float* left, const float* low,
                                           const float* high) {
  float l[kShifts];
  load_fours<kShifts>(l, left);
#pragma unroll
  for (int j = 0; j < kShifts; ++j) {
#pragma unroll
    for (int i = 0; i < kShifts; ++i) {
      sums[i] += l[j] * (i + j < kShifts ? low[i + j] : high[i + j - kShifts]);
    }
  }
}

// sums[i] += sum over x < `columns` of left[x] * right[x + i]. `right` is at column 0 of shift 0 of
// this thread, t its index among the threads of a line. `columns` is a multiple of kStep.
template <int kShifts>
__device__ __forceinline__ void add_panel(float* sums, const float* left, const float* right, int t,
                                          int columns) {
  if constexpr (kShifts == 1) {
    for (int x = 0; x < columns; x += 4) {
      float l[4];
      load_fours<4>(l, left + x);
#pragma unroll
      for (int j = 0; j < 4; ++j) sums[0] += l[j] * right[t + x + j];
    }
  } else {
    const auto load = [&](float* values, int x) {
      load_fours<kShifts>(values, right + place_of<kShifts>(t * kShifts + x));
    };
    float low[kShifts], high[kShifts];
    load(low, 0);
#pragma unroll 1
    for (int x = 0; x < columns; x += 2 * kShifts) {
      load(high, x + kShifts);
      add_square<kShifts>(sums, left + x, low, high);
      load(low, x + 2 * kShifts);
      add_square<kShifts>(sums, left + x + kShifts, high, low);
    }
  }
}

// Whether `value` is a whole number from -255 to 255, as a grey value of 8 bits with a sign.
__device__ __forceinline__ bool is_eight_bit(float value) {
  return value >= -255.0f && value <= 255.0f &&
         value == static_cast<float>(static_cast<int>(value));
}

// The sums of a thread: products of whole lines, in float32 and, with kWhole, exact for panels of
// 8-bit values.
template <int kShifts, bool kWhole>
struct LineTotals {
  float sums[kShifts] = {};
  int whole[kWhole ? kShifts : 1] = {};
  bool has_sums = false;   // for the block: a panel was not of 8-bit values
  bool has_whole = false;  // for the block: a panel was of 8-bit values
};

// Computes the sums of a block: the lines of group `group` of the row of shifts sy, the shifts of
// chunk `chunk`. With kWhole, panels of 8-bit values are added to integers; their partial sums are
// exact in float32 (256 x 255^2 is less than 2^24).
template <int kShifts, bool kWhole>
__device__ __forceinline__ LineTotals<kShifts, kWhole> sum_lines(const LineTasks& q,
                                                                 const float* __restrict__ image,
                                                                 int sy, int group, int chunk,
                                                                 float* shared) {
  XCORR_SHARED(int, odd_ones, 2);  // whether a panel has other values; two slots alternate
  LineTotals<kShifts, kWhole> totals;
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int lane = thread % warp::kSize, team = thread / warp::kSize;
  const int mine = thread / q.across, t = thread - mine * q.across;
  const int sx = q.first_sx + chunk * q.sums_pitch;
  const int last_sx = sx + q.sums_pitch - 1;
  const int first_x = last_sx < 0 ? -last_sx : 0;
  const int end_x = sx > 0 ? q.cols - sx : q.cols;
  const int first_y = sy < 0 ? -sy : 0, overlapping = q.rows - (sy < 0 ? -sy : sy);
  const int begin = group * q.lines;
  const int end = begin + q.lines < overlapping ? begin + q.lines : overlapping;
  float* const rights = shared + q.at_once * kPanel;
  if (kWhole && thread == 0) odd_ones[0] = 0;
  int turn = 0;
#pragma unroll 1
  for (int line = begin; line < end; line += q.at_once) {
#pragma unroll 1
    for (int x0 = first_x; x0 < end_x; x0 += kPanel) {
      const int rest = end_x - x0;
      const int columns = rest < kPanel ? ceil_div(rest, kStep) * kStep : kPanel;
      block::barrier();
      bool other = false;
      for (int i = team; i < q.at_once && line + i < end; i += threads / warp::kSize) {
        const int y = first_y + line + i;
        const float* const left = image + static_cast<Index>(y) * q.cols;
        const float* const right = image + static_cast<Index>(y + sy) * q.cols;
        for (int x = lane; x < columns; x += warp::kSize) {
          const float value = load_or_zero(left, x0 + x, q.cols);
          other |= kWhole && !is_eight_bit(value);
          shared[i * kPanel + x] = value;
        }
        for (int x = lane; x < columns + q.sums_pitch; x += warp::kSize) {
          const float value = load_or_zero(right, x0 + sx + x, q.cols);
          other |= kWhole && !is_eight_bit(value);
          rights[i * q.right_pitch + place_of<kShifts>(x)] = value;
        }
      }
      if (kWhole && other) odd_ones[turn] = 1;
      block::barrier();
      const bool exact = kWhole && odd_ones[turn] == 0;
      turn ^= 1;
      if (kWhole && thread == 0) odd_ones[turn] = 0;
      totals.has_whole |= exact;
      totals.has_sums |= !exact;
      if (mine >= q.at_once || line + mine >= end) continue;
      float sums[kShifts] = {};
      add_panel<kShifts>(sums, shared + mine * kPanel, rights + mine * q.right_pitch, t, columns);
#pragma unroll
      for (int i = 0; i < kShifts; ++i) {
        if (exact) {
          totals.whole[kWhole ? i : 0] += static_cast<int>(sums[i]);
        } else {
          totals.sums[i] += sums[i];
        }
      }
    }
  }
  return totals;
}

// Adds the sums of the threads of a block for the same shifts, and calls give(column, sum) for each
// output column of the block.
template <int kShifts, typename T, typename Give>
__device__ __forceinline__ void give_sums(const LineTasks& q, int chunk, const T* totals, T* shared,
                                          const Give& give) {
  static_assert(sizeof(T) == sizeof(float));
  const int thread = static_cast<int>(threadIdx.x);
  const int mine = thread / q.across, t = thread - mine * q.across;
  block::barrier();
  if (mine < q.at_once) {
#pragma unroll
    for (int i = 0; i < kShifts; ++i) shared[mine * q.sums_pitch + t * kShifts + i] = totals[i];
  }
  block::barrier();
  const int first = chunk * q.sums_pitch;
  const int rest = q.out_cols - first, count = rest < q.sums_pitch ? rest : q.sums_pitch;
  for (int col = thread; col < count; col += static_cast<int>(blockDim.x)) {
    T sum = 0;
    for (int i = 0; i < q.at_once; ++i) sum += shared[i * q.sums_pitch + col];
    give(first + col, sum);
  }
}

// Calls use(task, sy, computed row, group, chunk) for this block's part of tasks first .. end - 1,
// in a stride. All threads of a block make the same calls.
template <typename Use>
__device__ __forceinline__ void for_each_task(const LineTasks& q, Index first, Index end,
                                              const Use& use) {
  const int group = static_cast<int>(blockIdx.x) / q.chunks;
  const int chunk = static_cast<int>(blockIdx.x) - group * q.chunks;
  const int computed = q.window_rows.computed();
  for (Index task = first + blockIdx.y; task < end; task += gridDim.y) {
    const auto i = static_cast<int>(task % computed);
    const Index sy = q.window_rows.sy(i);
    if (group < q.groups_of(sy)) use(task, static_cast<int>(sy), i, group, chunk);
  }
}

}  // namespace xcorr::autocorrelation
