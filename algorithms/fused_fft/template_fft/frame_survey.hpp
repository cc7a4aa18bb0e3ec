// What template_fft makes of templates and frames before it transforms any:
//
//   frame_survey_kernel  a block a template: its unit template (template_survey.hpp); other blocks: strips of frames
//
// A strip is as many rows of a frame as a block of factors has rows of windows. Strips begin where those blocks
// begin, so that all windows of a block contain whole strips: the sums of a column of a strip, its values and their
// squares, serve 16 windows each, and the kernel of factors reads 34 rows for windows of 64 rows where it had to
// read 79. Sums are float64, about a pivot of the frame: the median of a few of its values, which an outlier does not
// move, since the mean is known only after the survey.
#pragma once

#include <algorithm>

#include "algorithms/device/template_factors.hpp"

namespace xcorr::fused_fft {

constexpr int kStripRows = kTallFactors;

// The strips of frames, and where what is known of them lies.
struct FrameStrips {
  FrameStrips() = default;
  explicit FrameStrips(const Problem& q)
      : before((kStripRows - static_cast<int>(q.window.sy.first % kStripRows)) % kStripRows),
        count(static_cast<int>(ceil_div<Index>(q.right.rows + before, kStripRows))),
        terms(static_cast<double>(q.left.size())),
        share(1 / terms) {}

  // Blocks of a frame: a thread has a column of a strip.
  Index parts(const Problem& q) const {
    return std::min(ceil_div<Index>(count * q.right.cols, kSurveyThreads), kMostSurveyParts);
  }
  // The strip that begins at a row, first_sy + a multiple of kStripRows.
  __device__ __forceinline__ int at(int row) const { return (row + before) / kStripRows; }

  int before = 0;           // rows that the first strip lacks
  int count = 0;            // of a frame
  double terms = 1;         // elements of a window
  double share = 1;         // 1 / that
  RunSums* sums = nullptr;  // [rights][count][right_cols]
  float* pivots = nullptr;  // [rights]
};

// Two blocks an SM, or columns wait for others' loads.
static __global__ void __launch_bounds__(kSurveyThreads, 2)
    frame_survey_kernel(TemplateProblem q, TemplateMemory memory, FrameStrips strips,
                        const float* left, const float* right) {
  wait_for_previous();
  let_next_start();
  XCORR_SHARED(float, of_block, 1);
  const int block = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  if (block < q.lefts) {
    const Index at = block * q.left_size();
    make_unit(q, left + at, memory.units + at);
    return;
  }
  const int item = block - q.lefts, frame = item / memory.parts, part = item % memory.parts;
  const float* const from = right + frame * q.right_size();
  RunSums* const to = strips.sums + static_cast<Index>(frame) * strips.count * q.right_cols;
  const int columns = strips.count * q.right_cols;
  constexpr int kAtOnce = 8;
  static_assert(kStripRows % kAtOnce == 0);
  float values[kAtOnce];
  const float* column = from;  // of the thread
  int rows = 0;
  const auto choose = [&](int i) {
    const int strip = i / q.right_cols, col = i - strip * q.right_cols;
    const int begin = strip * kStripRows - strips.before, first = begin > 0 ? begin : 0;
    const int end = begin + kStripRows < q.right_rows ? begin + kStripRows : q.right_rows;
    rows = end - first;
    column = from + static_cast<Index>(first) * q.right_cols + col;
  };
  const auto load = [&](int first) {
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int y = first + k;
      values[k] = column[(y < rows ? y : 0) * q.right_cols];
    }
  };
  int i = part * kSurveyThreads + thread;
  if (i < columns) choose(i), load(0);  // on its way while the pivot is found
  if (thread < warp::kSize) {
    constexpr int kMost = 1 << 26;  // rows or columns: places stay in 32 bits
    const int of_rows = q.right_rows < kMost ? q.right_rows : kMost;
    const int of_cols = q.right_cols < kMost ? q.right_cols : kMost;
    const float found = q.is_centred ? median_near(q, from, 1.0f, 0, 0, of_rows, of_cols) : 0.0f;
    if (thread == 0) {
      of_block[0] = found;
      if (part == 0) strips.pivots[frame] = found;
    }
  }
  block::barrier();
  const float pivot = of_block[0];
  const auto mean = static_cast<double>(pivot);
  double sum = 0, count = 0;
  float largest = 0;
  while (i < columns) {
    RunSums own{};
    float most = 0;
#pragma unroll
    for (int first = 0; first < kStripRows; first += kAtOnce) {
      if (first > 0) load(first);
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const float value = first + k < rows ? values[k] : pivot;  // beyond the strip: adds nothing
        const double away = static_cast<double>(value) - mean;
        own.add({away, away * away});
        most = fmaxf(most, fabsf(value));
      }
    }
    to[i] = own;
    if (own.squares - own.squares == 0) {
      sum += own.values + rows * mean;
      count += rows;
      largest = fmaxf(largest, most);
    } else {  // of the others, without infinities and NaN
#pragma unroll 1
      for (int y = 0; y < rows; ++y) {
        const float value = column[y * q.right_cols];
        if (value - value != 0) continue;
        sum += static_cast<double>(value);
        count += 1;
        largest = fmaxf(largest, fabsf(value));
      }
    }
    i += memory.parts * kSurveyThreads;
    if (i < columns) choose(i), load(0);
  }
  sum = sum_of_threads(sum, kSurveyThreads);
  count = sum_of_threads(count, kSurveyThreads);
  const double most = largest_of_threads(largest, kSurveyThreads);
  if (thread == 0) memory.survey[item] = {sum, count, static_cast<float>(most), {}};
}

// What the survey leaves of a frame, by all threads of a block.
__device__ __forceinline__ void store_facts(const TemplateMemory& memory, int frame, int threads) {
  double sum = 0, count = 0, largest = 0;
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < memory.parts; i += threads) {
    const SurveyPart& part = memory.survey[static_cast<Index>(frame) * memory.parts + i];
    sum += part.sum;
    count += part.count;
    largest = fmax(largest, static_cast<double>(part.largest));
  }
  sum = sum_of_threads(sum, threads);
  count = sum_of_threads(count, threads);
  largest = largest_of_threads(largest, threads);
  if (threadIdx.x == 0) {
    memory.facts[frame] = {count > 0 ? sum / count : 0.0, scale_of(static_cast<float>(largest)),
                           0.0f};
  }
}

}  // namespace xcorr::fused_fft
