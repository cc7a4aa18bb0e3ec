// The passes of Pearson's correlation over tiles of a template (paper of the sliding window). In
// each pass one kernel sums the elements of every tile, for every shift, and a second kernel adds
// up the tiles.
//
//   averages      sum of the frame in the window                      -> its mean
//   denominators  sum of squares of the frame less that mean          -> 1 / its norm
//   numerators    sum of template x (frame less that mean)            -> score
//   both          sum, and sum of squares, of the frame less a pivot  -> 1 / the norm of the window
//
// The frame is read less a pivot, one per area of shifts. A thread has one shift; a block has one
// tile of the template and an area of shifts. Numerators exist once per pair; everything else once
// per frame. Tiles at the right and at the bottom end are narrower or shorter.
#pragma once

#include "algorithms/blocks/template_factors.hpp"
#include "algorithms/template_matching/tuning.hpp"

namespace xcorr::template_matching {

enum class Pass { averages, denominators, numerators, both };

// How a template is divided into tiles, and a window into areas of shifts. Made on the host and
// passed to the kernels by value.
struct PearsonShape {
  int tile_rows, tile_cols, tiles;
  int down, across;  // size of an area of shifts; one thread per shift
  Divider of_across, of_tiles, of_tiles_across, of_areas_across, of_staged_cols;
  int items;  // areas x tiles
};

struct PearsonArguments {
  TemplateProblem q;
  PearsonShape shape;
  TemplateMemory memory;
  FrameScale* scales;  // [frames][areas]: scales of staged values
  const float *units, *right;
  void* partial;  // [frames or pairs][tiles][shifts]: float, double or RunSums
  float *means,
      *norms;  // [frames][shifts]: means of windows as staged; 1 / norms, or kByDefinition
  float* out;
  bool less_mean;  // numerators subtract the mean of the window
};

// Type of a sum over a tile.
template <Pass kPass>
struct PartialOf {
  using type = float;
};
template <>
struct PartialOf<Pass::averages> {
  using type = double;
};
template <>
struct PartialOf<Pass::both> {
  using type = RunSums;
};

// Computes the scales of all areas of all frames. grid: parts of the areas of a frame, frames (in a
// stride).
static __global__ void __launch_bounds__(TemplateTuning::kScaleThreads)
    area_scales_kernel(TemplateProblem q, TemplateMemory memory, FrameScale* scales) {
  XCORR_SHARED(FrameFacts, of_frame, 1);
  wait_for_previous();
  const int thread = static_cast<int>(threadIdx.x), count = memory.areas.count;
#pragma unroll 1
  for (int frame = static_cast<int>(blockIdx.y); frame < q.rights;
       frame += static_cast<int>(gridDim.y)) {
    block::barrier();
    if (thread < warp::kSize) {
      const FrameFacts facts = facts_of(memory, frame);
      if (thread == 0) of_frame[0] = facts;
    }
    block::barrier();
    const FrameFacts facts = of_frame[0];
    if (blockIdx.x == 0 && thread == 0) memory.facts[frame] = facts;
    const Index first = static_cast<Index>(frame) * count;
#pragma unroll 1
    for (int i = static_cast<int>(blockIdx.x) * TemplateTuning::kScaleThreads + thread; i < count;
         i += static_cast<int>(gridDim.x) * TemplateTuning::kScaleThreads) {
      scales[first + i] = scale_of_area(memory.areas.pivots[first + i], facts);
    }
  }
}

__device__ __forceinline__ bool is_wide(const PearsonArguments& a, Index frame) {
  return a.memory.facts[frame].wide != 0;
}

// Statistics of a window of staged values: squares about its mean, and the mean.
struct StagedWindow {
  double squares, mean;
};
// 1 / the norm of a window of staged values, by the rules of factor_of_window
// (template_factors.hpp).
__device__ __forceinline__ float norm_of_window(const PearsonArguments& a, Index frame, Index shift,
                                                const StagedWindow& window) {
  const TemplateProblem& q = a.q;
  const double squares = window.squares, terms = static_cast<double>(q.left_size());
  if (!(squares - squares == 0) && !is_wide(a, frame)) return no_factor();
  const int row = static_cast<int>(shift / q.out_cols), col = static_cast<int>(shift % q.out_cols);
  const FrameScale scale = a.scales[frame * a.memory.areas.count + a.memory.areas.of(row, col)];
  const double mean = window.mean - static_cast<double>(scale.offset);
  const bool is_far = window.mean * window.mean * terms > kFarSquares * squares;
  const bool fits = !is_wide(a, frame) || (squares > 0x1p-120 && squares < 0x1p160);
  if (is_far || !fits) return kByDefinition;
  if (squares <= constant_limit(q.is_centred ? mean : 0.0, terms) || squares < 0x1p-1000) return 0;
  return static_cast<float>(inverse_square_root(squares));
}

// The score of a pair at a shift: the numerator times 1 / the norm of the window. The elements of the
// template are already divided by its norm.
__device__ __forceinline__ float score_of(const PearsonArguments& a, int pair, Index shift,
                                          float numerator, float norm) {
  const TemplateProblem& q = a.q;
  const Index first = q.right_of(pair) * q.right_size() +
                      (q.first_sy + shift / q.out_cols) * q.right_cols + q.first_sx +
                      shift % q.out_cols;
  if (norm < 0) {
    return score_by_definition(q, a.units + q.left_of(pair) * q.left_size(), a.right + first);
  }
  // The numerator may be infinite if the window is constant.
  return norm == 0 ? 0.0f : clamped(numerator * norm);
}

// grid: tiles of areas, frames or pairs (in a stride).
template <Pass kPass>
__global__ void __launch_bounds__(1024, 1) tile_sums_kernel(PearsonArguments a) {
  constexpr bool kPairs = kPass == Pass::numerators;
  wait_for_previous();
  const TemplateProblem& q = a.q;
  const PearsonShape& s = a.shape;
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  auto at = static_cast<std::uint32_t>(blockIdx.x);
  const auto area = s.of_tiles.split(at);
  const int tile_number = static_cast<int>(at);
  const int tile_y = static_cast<int>(s.of_tiles_across.split(at)) * s.tile_rows;
  const int tile_x = static_cast<int>(at) * s.tile_cols;
  at = area;
  const int row = static_cast<int>(s.of_areas_across.split(at)) * s.down;
  const int col = static_cast<int>(at) * s.across;
  const int rows = q.left_rows - tile_y < s.tile_rows ? q.left_rows - tile_y : s.tile_rows;
  const int cols = q.left_cols - tile_x < s.tile_cols ? q.left_cols - tile_x : s.tile_cols;
  const int pitch = s.tile_cols + s.across - 1, staged_rows = s.tile_rows + s.down - 1;
  auto* const frame_part = dynamic_shared<float>();
  float* const of_template = frame_part + staged_rows * pitch;
  at = static_cast<std::uint32_t>(thread);
  const int my_row = static_cast<int>(s.of_across.split(at)), my_col = static_cast<int>(at);
  const bool works = my_row < s.down && row + my_row < q.out_rows && col + my_col < q.out_cols;
  const Index shift = static_cast<Index>(row + my_row) * q.out_cols + col + my_col;
  const int count = kPairs ? q.pairs : q.rights;
#pragma unroll 1
  for (int item = static_cast<int>(blockIdx.y); item < count; item += static_cast<int>(gridDim.y)) {
    const int frame = kPairs ? q.right_of(item) : item;
    const float* const from = a.right + frame * q.right_size();
    block::barrier();  // staged values of the previous item have been read
    // All tiles of a template use the same pivot, since only the whole template adds up to 0.
    const FrameScale scale =
        a.scales != nullptr
            ? a.scales[static_cast<Index>(frame) * a.memory.areas.count + static_cast<Index>(area)]
            : FrameScale{1.0f, 0.0f};
#pragma unroll 4
    for (int i = thread; i < staged_rows * pitch; i += threads) {
      auto place = static_cast<std::uint32_t>(i);
      const int y = q.first_sy + row + tile_y + static_cast<int>(s.of_staged_cols.split(place));
      const int x = q.first_sx + col + tile_x + static_cast<int>(place);
      const bool exists = y < q.right_rows && x < q.right_cols;
      frame_part[i] = exists ? scale.of(from[static_cast<Index>(y) * q.right_cols + x]) : 0.0f;
    }
    if constexpr (kPairs) {
      const float* const unit = a.units + q.left_of(item) * q.left_size();
      for (int i = thread; i < rows * cols; i += threads) {
        const int y = i / cols;
        of_template[i] = unit[(tile_y + y) * q.left_cols + tile_x + i - y * cols];
      }
    }
    block::barrier();
    if (!works) continue;
    const float mean = kPass == Pass::denominators || (kPairs && a.less_mean)
                           ? a.means[frame * q.out_size() + shift]
                           : 0.0f;
    typename PartialOf<kPass>::type sum = {};
    const float* of_frame = frame_part + my_row * pitch + my_col;
    const float* of_left = of_template;
#pragma unroll 1
    for (int y = 0; y < rows; ++y, of_frame += pitch, of_left += cols) {
#pragma unroll 4
      for (int x = 0; x < cols; ++x) {
        const float value = of_frame[x];
        if constexpr (kPass == Pass::averages) sum += static_cast<double>(value);
        if constexpr (kPass == Pass::denominators) sum += (value - mean) * (value - mean);
        if constexpr (kPass == Pass::numerators) sum += of_left[x] * (value - mean);
        if constexpr (kPass == Pass::both) {
          const auto wide = static_cast<double>(value);
          sum.add({wide, wide * wide});
        }
      }
    }
    auto* const partial = static_cast<typename PartialOf<kPass>::type*>(a.partial);
    partial[(static_cast<Index>(item) * s.tiles + tile_number) * q.out_size() + shift] = sum;
  }
}

// Adds the sums of all tiles in order, and computes the result of the pass. One thread per shift of
// a frame or pair.
template <Pass kPass>
__global__ void __launch_bounds__(TemplateTuning::kAddThreads)
    add_tiles_kernel(PearsonArguments a) {
  wait_for_previous();
  const TemplateProblem& q = a.q;
  const Index size = q.out_size(), count = (kPass == Pass::numerators ? q.pairs : q.rights) * size;
  const auto* const partial = static_cast<const typename PartialOf<kPass>::type*>(a.partial);
#pragma unroll 1
  for (Index i = static_cast<Index>(blockIdx.x) * TemplateTuning::kAddThreads + threadIdx.x;
       i < count; i += static_cast<Index>(gridDim.x) * TemplateTuning::kAddThreads) {
    const Index item = i / size, shift = i - item * size;
    const auto* const of_item = partial + item * a.shape.tiles * size + shift;
    typename PartialOf<kPass>::type sum = {};
#pragma unroll 4
    for (int tile = 0; tile < a.shape.tiles; ++tile) {
      if constexpr (kPass == Pass::both) {
        sum.add(of_item[tile * size]);
      } else {
        sum += of_item[tile * size];
      }
    }
    const auto terms = static_cast<double>(q.left_size());
    if constexpr (kPass == Pass::averages) {
      a.means[i] = static_cast<float>(sum / terms);
    } else if constexpr (kPass == Pass::denominators) {
      a.norms[i] = norm_of_window(a, item, shift,
                                  {static_cast<double>(sum), static_cast<double>(a.means[i])});
    } else if constexpr (kPass == Pass::both) {
      const double mean = q.is_centred ? sum.values / terms : 0.0;
      a.norms[i] = norm_of_window(a, item, shift, {sum.squares - sum.values * mean, mean});
    } else {
      if (!q.is_ratio) {
        a.out[i] = sum;
        continue;
      }
      const int pair = static_cast<int>(item);
      a.out[i] = score_of(a, pair, shift, sum, a.norms[q.right_of(pair) * size + shift]);
    }
  }
}

}  // namespace xcorr::template_matching
