// The survey before the sums of products of templates in frames (template_problem.hpp), and what a plan's
// workspace holds:
//
//   survey_kernel    a block a template: its deviations from the mean, divided by their norm, as
//                    float32 ("unit template"); other blocks: sums of parts of the frames
//
// Means and norms are float64. The values of a frame are multiplied by a power of two before products
// are made of them, so that products of very large or small numbers stay in the range of float32.
// What is made of each window of a frame is in template_factors.hpp.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>

#include "algorithms/device/launch.hpp"
#include "algorithms/device/memory.hpp"
#include "algorithms/device/plan.hpp"
#include "algorithms/device/template_problem.hpp"

namespace xcorr::device {

inline constexpr int kSurveyThreads = static_cast<int>(small_if_emulated(512, 64));
// Elements of a frame that a block adds up, and the most blocks of a frame.
inline constexpr Index kSurveyPart = small_if_emulated(8192, 256);
inline constexpr Index kMostSurveyParts = small_if_emulated(512, 5);

// Of a part of a frame, without infinities and NaN.
struct alignas(16) SurveyPart {
  double sum, count;
  float largest;  // |value|
  float spare[3];
};
struct alignas(16) FrameFacts {
  double mean;
  float scale;  // a power of two
  float spare;
};

// Where things lie in the workspace.
struct TemplateMemory {
  float* units = nullptr;        // [lefts][left_rows][left_cols]
  float* factors = nullptr;      // [rights][out_rows][out_cols]
  FrameFacts* facts = nullptr;   // [rights]
  SurveyPart* survey = nullptr;  // [rights][parts]
  int parts = 0;
};

// Lays out a workspace in pieces of 256 bytes. Without memory it only counts.
class Pieces {
 public:
  explicit Pieces(void* base) : base_(static_cast<char*>(base)) {}
  template <typename T>
  T* take(Index count) {
    T* const here = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + bytes_);
    const auto size = static_cast<std::size_t>(count) * sizeof(T);
    bytes_ += (size + 255) / 256 * 256;
    return here;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  char* base_;
  std::size_t bytes_ = 0;
};

// `parts`: blocks that add up a frame.
inline TemplateMemory template_memory(const Problem& q, Pieces& pieces, Index parts) {
  const ScoreKind kind = q.fields.score.kind;
  TemplateMemory memory;
  memory.parts = static_cast<int>(parts);
  if (kind != ScoreKind::product) memory.units = pieces.take<float>(q.left_elements());
  if (!is_normalised(kind)) return memory;
  memory.factors = pieces.take<float>(q.rights * q.out_size());
  memory.facts = pieces.take<FrameFacts>(q.rights);
  memory.survey = pieces.take<SurveyPart>(q.rights * memory.parts);
  return memory;
}
inline TemplateMemory template_memory(const Problem& q, Pieces& pieces) {
  return template_memory(q, pieces,
                         std::min(ceil_div(q.right.size(), kSurveyPart), kMostSurveyParts));
}

// The sum over the threads of a block of `threads`, for all of them, in a fixed order.
__device__ __forceinline__ double sum_of_threads(double value, int threads) {
  XCORR_SHARED(double, of_warp, 32);
  value = warp::reduce_add(value);
  block::barrier();  // others may still read the sums before
  if (warp::lane() == 0) of_warp[threadIdx.x / warp::kSize] = value;
  block::barrier();
  double sum = 0;
  for (int i = 0; i < threads / warp::kSize; ++i) sum += of_warp[i];
  return sum;
}
__device__ __forceinline__ double largest_of_threads(double value, int threads) {
  XCORR_SHARED(double, of_warp, 32);
#pragma unroll
  for (int by = warp::kSize / 2; by > 0; by /= 2) value = fmax(value, warp::shuffle_xor(value, by));
  block::barrier();
  if (warp::lane() == 0) of_warp[threadIdx.x / warp::kSize] = value;
  block::barrier();
  double largest = of_warp[0];
  for (int i = 1; i < threads / warp::kSize; ++i) largest = fmax(largest, of_warp[i]);
  return largest;
}

// 1 / sqrt(value), rounded twice, of a number that float32 need not hold. A power of 4 times the
// value changes no bit but the exponent's.
__device__ __forceinline__ double inverse_square_root(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const int exponent = static_cast<int>(bits >> 52) - 1023;
  const int odd = exponent & 1, half = (exponent - odd) / 2;
  const auto power = [](int of) {
    return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + of) << 52);
  };
  const double small = std::bit_cast<double>((bits & 0xfffffffffffffu) |
                                             static_cast<std::uint64_t>(1023 + odd) << 52);
  return static_cast<double>(1.0f / std::sqrt(static_cast<float>(small))) * power(-half);
}

// Whether a sum of squares of `terms` elements about their mean is no more than what rounding leaves
// of a constant; `deviation` is the largest distance of an element from the mean of its matrix
// (docs/design.md, Fields of a problem).
__device__ __forceinline__ bool is_rounding(double squares, double deviation, double terms) {
  const double step = 8 * 0x1p-24 * deviation;
  return squares <= step * step * terms;
}

// A template: its deviations from the mean (ncc: from 0), divided by their norm (covariance: by 1).
__device__ __forceinline__ void make_unit(const TemplateProblem& q, const float* from, float* to) {
  const int size = static_cast<int>(q.left_size()), thread = static_cast<int>(threadIdx.x);
  // use(value, i) of each element of the thread, and of its first again where a round is not full: i is then
  // `size` or more. Eight loads come before what waits for them.
  const auto each = [&](auto use) {
    constexpr int kAtOnce = static_cast<int>(small_if_emulated(8, 2));
#pragma unroll 1
    for (int begin = thread; begin < size; begin += kAtOnce * kSurveyThreads) {
      float values[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int i = begin + k * kSurveyThreads;
        values[k] = from[i < size ? i : begin];
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        use(static_cast<double>(values[k]), begin + k * kSurveyThreads);
      }
    }
  };
  const auto sum = [&](auto of) {
    double own = 0;
    each([&](double value, int i) {
      const double more = of(value);
      own += i < size ? more : 0.0;
    });
    return sum_of_threads(own, kSurveyThreads);
  };
  double pivot = 0, rest = 0, factor = 1;
  if (q.is_centred) {
    pivot = sum([](double value) { return value; }) / size;
    rest = sum([&](double value) { return value - pivot; }) / size;
  }
  if (q.is_ratio) {
    double farthest = 0;
    const double squares = sum([&](double value) {
      const double away = (value - pivot) - rest;
      farthest = fmax(farthest, fabs(away));
      return away * away;
    });
    farthest = largest_of_threads(farthest, kSurveyThreads);
    factor = is_rounding(squares, farthest, size) ? 0.0 : 1 / std::sqrt(squares);
  }
  each([&](double value, int i) {
    const auto unit = static_cast<float>(((value - pivot) - rest) * factor);
    if (i < size) to[i] = unit;
  });
}

static __global__ void __launch_bounds__(kSurveyThreads)
    survey_kernel(TemplateProblem q, TemplateMemory memory, const float* left, const float* right) {
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
  const int size = static_cast<int>(q.right_size());
  double sum = 0, count = 0, largest = 0;
#pragma unroll 4
  for (int i = part * kSurveyThreads + thread; i < size; i += memory.parts * kSurveyThreads) {
    const float value = from[i];
    const bool counts = value - value == 0;
    sum += counts ? static_cast<double>(value) : 0.0;
    count += counts ? 1.0 : 0.0;
    largest = fmax(largest, counts ? static_cast<double>(fabsf(value)) : 0.0);
  }
  sum = sum_of_threads(sum, kSurveyThreads);
  count = sum_of_threads(count, kSurveyThreads);
  largest = largest_of_threads(largest, kSurveyThreads);
  if (thread == 0) memory.survey[item] = {sum, count, static_cast<float>(largest), {}};
}

// 2^-exponent of the largest value of a frame, so that it becomes a number from 1 to 2.
__device__ __forceinline__ float scale_of(float largest) {
  int exponent = static_cast<int>(bits_of(largest) >> 23) - 127;
  exponent = exponent < -120 ? -120 : exponent > 120 ? 120 : exponent;
  return largest > 0 ? std::bit_cast<float>(static_cast<std::uint32_t>(127 - exponent) << 23)
                     : 1.0f;
}

// Of a frame, by all lanes of a warp.
__device__ __forceinline__ FrameFacts facts_of(const TemplateMemory& memory, int frame) {
  double sum = 0, count = 0;
  float largest = 0;
  const SurveyPart* const parts = memory.survey + static_cast<Index>(frame) * memory.parts;
  // Eight loads at once, also where a lane has fewer parts: a rest would be a loop of single ones.
  constexpr int kAtOnce = 8;
#pragma unroll 1
  for (int begin = warp::lane(); begin < memory.parts; begin += kAtOnce * warp::kSize) {
    SurveyPart of[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int i = begin + k * warp::kSize;
      of[k] = parts[i < memory.parts ? i : begin];
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      // Without a branch, behind which the compiler would put the load.
      const bool exists = begin + k * warp::kSize < memory.parts;
      sum += exists ? of[k].sum : 0.0;
      count += exists ? of[k].count : 0.0;
      largest = fmaxf(largest, of[k].largest);
    }
  }
  sum = warp::reduce_add(sum);
  count = warp::reduce_add(count);
#pragma unroll
  for (int by = warp::kSize / 2; by > 0; by /= 2) {
    largest = fmaxf(largest, warp::shuffle_xor(largest, by));
  }
  const float scale = scale_of(largest);
  return {count > 0 ? sum / count : 0.0, scale, 0.0f};
}

// The median of 32 values of rows x cols elements of a frame from (row, col) on, times `scale`: an outlier does not
// move it. 0 where none of them is a number. By all lanes of a warp.
__device__ __forceinline__ float median_near(const TemplateProblem& q, const float* frame,
                                             float scale, int row, int col, int rows, int cols) {
  const int lane = warp::lane();
  const int end_y = row + rows < q.right_rows ? row + rows : q.right_rows;
  const int end_x = col + cols < q.right_cols ? col + cols : q.right_cols;
  const int y = row + (end_y - row) * (2 * (lane / 4) + 1) / 16;
  const int x = col + (end_x - col) * (2 * (lane % 4) + 1) / 8;
  const float value = frame[static_cast<Index>(y) * q.right_cols + x] * scale;
  const bool counts = value - value == 0;
  int before = 0, count = 0;  // lanes with smaller values, lanes with numbers
#pragma unroll 4
  for (int other = 0; other < warp::kSize; ++other) {
    const float of_other = warp::shuffle(value, other);
    const bool other_counts = of_other - of_other == 0;
    count += other_counts;
    before += other_counts && (of_other < value || (of_other == value && other < lane));
  }
  // One lane has the median; without numbers none has.
  return warp::reduce_add(counts && before == count / 2 ? value : 0.0f);
}

// What values of a frame become, of a block that reads rows x cols elements from (row, col) on: less the median of
// some of them, where means are removed. By all lanes of a warp.
__device__ __forceinline__ FrameScale scale_near(const TemplateProblem& q,
                                                 const TemplateMemory& memory, const float* frame,
                                                 int number, int row, int col, int rows, int cols) {
  const float scale = q.is_ratio ? memory.facts[number].scale : 1.0f;
  if (!q.is_centred) return {scale, 0.0f};
  return {scale, -median_near(q, frame, scale, row, col, rows, cols)};
}

}  // namespace xcorr::device
