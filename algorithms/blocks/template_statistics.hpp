// Statistics of templates and frames (template_problem.hpp), computed before any sum of products,
// and the layout of a plan's workspace. statistics_kernel has one block per template: its
// deviations from the mean, divided by their norm, as float32 ("unit template"). Further blocks
// compute the largest and the smallest magnitudes of parts of the frames, and a pivot for each area
// of shifts.
//
// Means and norms are float64. The values of a frame are multiplied by a power of two before
// products, so that products of very large or small numbers stay in the range of float32. There is
// one power per frame, or one per area if one power does not suit all values of the frame.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>

#include "algorithms/blocks/inverse_root.hpp"
#include "algorithms/blocks/lane_median.hpp"
#include "algorithms/blocks/plan.hpp"
#include "algorithms/blocks/template_problem.hpp"
#include "algorithms/blocks/workspace.hpp"
#include "algorithms/device/launch.hpp"
#include "algorithms/device/memory.hpp"

namespace xcorr::device {

inline constexpr int kStatisticsThreads = static_cast<int>(small_if_emulated(512, 64));
// Elements of a frame per block that computes a range, and max blocks per frame.
inline constexpr Index kRangePart = small_if_emulated(8192, 256);
inline constexpr Index kMostRangeParts = small_if_emulated(512, 5);

// The largest and the smallest |value| of a part of a frame, without zeros, infinities and NaNs.
struct alignas(8) PartRange {
  float largest, least;

  static __device__ __forceinline__ PartRange none() { return {0.0f, 0x1.fffffep127f}; }
  __device__ __forceinline__ void see(float value) {
    const float size = fabsf(value);
    const bool counts = value - value == 0 && size > 0;
    largest = fmaxf(largest, counts ? size : 0.0f);
    least = fminf(least, counts ? size : 0x1.fffffep127f);
  }
  __device__ __forceinline__ void see(const PartRange& of) {
    largest = fmaxf(largest, of.largest);
    least = fminf(least, of.least);
  }
};
struct alignas(8) FrameFacts {
  float scale;         // a power of two that scales the largest value to between 1 and 2
  std::uint32_t wide;  // whether float32 then loses digits of the smallest values
};

// The parameters of an area (a block of shifts): a median of values of the frame there, and the
// median of their magnitudes. Outliers do not move these.
struct alignas(8) AreaPivot {
  float pivot, size;
};
// Areas of rows x cols shifts. Set on the host, passed to the kernels by value.
struct Areas {
  Areas() = default;
  Areas(const Problem& q, Index area_rows, Index area_cols)
      : rows(static_cast<int>(area_rows)),
        cols(static_cast<int>(area_cols)),
        across(static_cast<int>(ceil_div<Index>(q.out_cols(), area_cols))),
        count(static_cast<int>(across * ceil_div<Index>(q.out_rows(), area_rows))),
        of_across(across),
        of_count(count),
        of_rows(area_rows),
        of_cols(area_cols) {}

  // The area of an output.
  __device__ __forceinline__ int of(int row, int col) const {
    return static_cast<int>(of_rows.quotient(static_cast<std::uint32_t>(row))) * across +
           static_cast<int>(of_cols.quotient(static_cast<std::uint32_t>(col)));
  }

  int rows = 0, cols = 0, across = 0, count = 0;
  Divider of_across, of_count, of_rows, of_cols;
  AreaPivot* pivots = nullptr;  // [rights][count]
};

// Layout of the workspace.
struct TemplateMemory {
  float* units = nullptr;       // [lefts][left_rows][left_cols]
  float* factors = nullptr;     // [rights][out_rows][out_cols]
  FrameFacts* facts = nullptr;  // [rights]
  PartRange* ranges = nullptr;  // [rights][parts]
  int parts = 0;
  Areas areas;
};

// `parts` is the number of blocks that compute ranges of a frame.
inline TemplateMemory template_memory(const Problem& q, Workspace& workspace, Index parts,
                                      Areas areas = {}) {
  const ScoreKind kind = q.fields.score.kind;
  TemplateMemory memory;
  memory.parts = static_cast<int>(parts);
  if (kind == ScoreKind::product) return memory;
  memory.units = workspace.take<float>(q.left_elements());
  if (areas.count > 0) areas.pivots = workspace.take<AreaPivot>(q.rights * areas.count);
  memory.areas = areas;
  if (!is_normalised(kind)) return memory;
  memory.factors = workspace.take<float>(q.rights * q.out_size());
  memory.facts = workspace.take<FrameFacts>(q.rights);
  memory.ranges = workspace.take<PartRange>(q.rights * memory.parts);
  return memory;
}
inline TemplateMemory template_memory(const Problem& q, Workspace& workspace, const Areas& areas) {
  return template_memory(q, workspace,
                         std::min(ceil_div(q.right.size(), kRangePart), kMostRangeParts), areas);
}

// The sum over the threads of a block of `threads`, for all of them, in a fixed order.
__device__ __forceinline__ double sum_of_threads(double value, int threads) {
  XCORR_SHARED(double, of_warp, 32);
  value = warp::reduce_add(value);
  block::barrier();  // others may still read the previous sums
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

// 1 / sqrt(value), rounded twice.
__device__ __forceinline__ double inverse_square_root(double value) {
  return inverse_root_by(value, [](float small) { return 1.0f / std::sqrt(small); });
}

// The max sum of squares of `terms` elements about their mean that rounding can leave of a
// constant. `largest` is the largest magnitude of these elements (docs/design.md, Fields of a
// problem). Their mean can be used too: where the rule applies, all elements are almost equal.
__device__ __forceinline__ double constant_limit(double largest, double terms) {
  const double step = 8 * 0x1p-24 * largest;
  return step * step * terms;
}

// Stores a unit template: the deviations from the mean (ncc: from 0), divided by their norm
// (covariance: by 1).
__device__ __forceinline__ void make_unit(const TemplateProblem& q, const float* from, float* to) {
  const int size = static_cast<int>(q.left_size()), thread = static_cast<int>(threadIdx.x);
  // Calls use(value, i) for each element of this thread. In an incomplete round it is called with
  // the thread's first element again and i >= `size`. Eight loads come before their uses.
  const auto each = [&](auto use) {
    constexpr int kAtOnce = static_cast<int>(small_if_emulated(8, 2));
#pragma unroll 1
    for (int begin = thread; begin < size; begin += kAtOnce * kStatisticsThreads) {
      float values[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int i = begin + k * kStatisticsThreads;
        values[k] = from[i < size ? i : begin];
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        use(static_cast<double>(values[k]), begin + k * kStatisticsThreads);
      }
    }
  };
  const auto sum = [&](auto of) {
    double own = 0;
    each([&](double value, int i) {
      const double more = of(value);
      own += i < size ? more : 0.0;
    });
    return sum_of_threads(own, kStatisticsThreads);
  };
  double pivot = 0, rest = 0, factor = 1;
  if (q.is_centred) {
    pivot = sum([](double value) { return value; }) / size;
    rest = sum([&](double value) { return value - pivot; }) / size;
  }
  if (q.is_ratio) {
    double largest = 0;
    const double squares = sum([&](double value) {
      const double away = (value - pivot) - rest;
      largest = fmax(largest, fabs(value));
      return away * away;
    });
    largest = largest_of_threads(largest, kStatisticsThreads);
    factor = squares <= constant_limit(largest, size) ? 0.0 : 1 / std::sqrt(squares);
  }
  each([&](double value, int i) {
    const auto unit = static_cast<float>(((value - pivot) - rest) * factor);
    if (i < size) to[i] = unit;
  });
}

// One of 32 evenly spaced elements of the rows x cols elements of a frame from (row, col) on, for
// each lane of a warp.
__device__ __forceinline__ float sample_of(const TemplateProblem& q, const float* frame, int row,
                                           int col, int rows, int cols) {
  const int lane = warp::lane();
  const int end_y = row + rows < q.right_rows ? row + rows : q.right_rows;
  const int end_x = col + cols < q.right_cols ? col + cols : q.right_cols;
  const int y = row + (end_y - row) * (2 * (lane / 4) + 1) / 16;
  const int x = col + (end_x - col) * (2 * (lane % 4) + 1) / 8;
  return frame[static_cast<Index>(y) * q.right_cols + x];
}

// Stores the pivot of an area of a frame, by one warp.
__device__ __forceinline__ void store_pivot(const TemplateProblem& q, const Areas& areas,
                                            const float* frame, int which, int area) {
  auto across = static_cast<std::uint32_t>(area);
  const int row = static_cast<int>(areas.of_across.split(across)) * areas.rows;
  const int col = static_cast<int>(across) * areas.cols;
  const float value = sample_of(q, frame, q.first_sy + row, q.first_sx + col,
                                areas.rows + q.left_rows - 1, areas.cols + q.left_cols - 1);
  const float none = std::bit_cast<float>(0x7fc00000u);
  const float number = value - value == 0 ? value : none;
  const float pivot = q.is_centred ? median_of_numbers(number) : 0.0f;
  const float size = q.is_ratio ? median_of_numbers(value != 0 ? fabsf(number) : none) : 0.0f;
  if (warp::lane() == 0) {
    areas.pivots[static_cast<Index>(which) * areas.count + area] = {pivot, size};
  }
}

// Blocks of statistics_kernel: for templates, for parts of frames, for areas.
inline unsigned statistics_blocks(const TemplateProblem& q, const TemplateMemory& memory) {
  const Index parts = q.is_ratio ? static_cast<Index>(q.rights) * memory.parts : 0;
  const Index areas = ceil_div<Index>(static_cast<Index>(q.rights) * memory.areas.count,
                                      kStatisticsThreads / warp::kSize);
  return static_cast<unsigned>(q.lefts + parts + areas);
}

static __global__ void __launch_bounds__(kStatisticsThreads)
    statistics_kernel(TemplateProblem q, TemplateMemory memory, const float* left,
                      const float* right) {
  wait_for_previous();
  let_next_start();
  const int block = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  if (block < q.lefts) {
    const Index at = block * q.left_size();
    make_unit(q, left + at, memory.units + at);
    return;
  }
  const int item = block - q.lefts, of_frames = q.is_ratio ? q.rights * memory.parts : 0;
  if (item >= of_frames) {
    constexpr int kWarps = kStatisticsThreads / warp::kSize;
    auto area = static_cast<std::uint32_t>((item - of_frames) * kWarps + thread / warp::kSize);
    const int frame = static_cast<int>(memory.areas.of_count.split(area));
    if (frame >= q.rights) return;  // the same for the whole warp
    store_pivot(q, memory.areas, right + frame * q.right_size(), frame, static_cast<int>(area));
    return;
  }
  const int frame = item / memory.parts, part = item % memory.parts;
  const float* const from = right + frame * q.right_size();
  const int size = static_cast<int>(q.right_size());
  PartRange own = PartRange::none();
#pragma unroll 4
  for (int i = part * kStatisticsThreads + thread; i < size;
       i += memory.parts * kStatisticsThreads) {
    own.see(from[i]);
  }
  const auto largest =
      static_cast<float>(largest_of_threads(static_cast<double>(own.largest), kStatisticsThreads));
  const auto least =
      static_cast<float>(-largest_of_threads(-static_cast<double>(own.least), kStatisticsThreads));
  if (thread == 0) memory.ranges[item] = {largest, least};
}

// 2^-exponent of the largest value of a frame. It scales this value to between 1 and 2.
__device__ __forceinline__ float scale_of(float largest) {
  int exponent = static_cast<int>(bits_of(largest) >> 23) - 127;
  exponent = exponent < -120 ? -120 : exponent > 120 ? 120 : exponent;
  return largest > 0 ? std::bit_cast<float>(static_cast<std::uint32_t>(127 - exponent) << 23)
                     : 1.0f;
}

// 1 / a power of two between 2^-126 and 2^126.
__device__ __forceinline__ float inverse_of_power(float power) {
  return std::bit_cast<float>((254u << 23) - bits_of(power));
}

__device__ __forceinline__ FrameFacts facts_from(const PartRange& all) {
  return {scale_of(all.largest), all.largest * 0x1p-60f > all.least ? 1u : 0u};
}

// The facts of a frame, by all lanes of a warp.
__device__ __forceinline__ FrameFacts facts_of(const TemplateMemory& memory, int frame) {
  PartRange all = PartRange::none();
  const PartRange* const parts = memory.ranges + static_cast<Index>(frame) * memory.parts;
  // Eight loads at once, also if a lane has fewer parts: otherwise the remaining loads would be in
  // a loop one by one.
  constexpr int kAtOnce = 8;
#pragma unroll 1
  for (int begin = warp::lane(); begin < memory.parts; begin += kAtOnce * warp::kSize) {
    PartRange of[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int i = begin + k * warp::kSize;
      of[k] = parts[i < memory.parts ? i : begin];
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) all.see(of[k]);
  }
#pragma unroll
  for (int by = warp::kSize / 2; by > 0; by /= 2) {
    all.see({warp::shuffle_xor(all.largest, by), warp::shuffle_xor(all.least, by)});
  }
  return facts_from(all);
}

// Scale and offset of the values in an area, for ncc and zncc.
__device__ __forceinline__ FrameScale scale_of_area(const AreaPivot& area,
                                                    const FrameFacts& facts) {
  const float scale = facts.wide != 0 && area.size > 0 ? scale_of(area.size) : facts.scale;
  return {scale, -area.pivot * scale};
}
// Scaled values beyond this belong to windows whose scores are computed by their definition, and to
// windows with an infinity or a NaN.
inline constexpr float kLargestScaled = 0x1p100f;

}  // namespace xcorr::device
