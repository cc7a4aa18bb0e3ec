// The passes of Pearson's correlation over tiles of a template (paper of the sliding window): each pass
// adds up the elements of every tile, for every shift, and a second kernel adds up the tiles.
//
//   averages      sum of the frame in the window                      -> its mean
//   denominators  sum of squares of the frame less that mean          -> 1 / its norm
//   numerators    sum of template x (frame less that mean)            -> score
//   both          sum, and sum of squares, of the frame less a pivot  -> 1 / the norm of the window
//
// A thread has one shift, a block one tile of the template and an area of shifts. All but numerators exist
// once a frame; numerators exist once a pair. Tiles at the right and at the bottom end are narrower and
// shorter.
#pragma once

#include "algorithms/device/template_factors.hpp"

namespace xcorr::template_matching {

enum class Pass { averages, denominators, numerators, both };

// How a template is divided into tiles, and a window into areas of shifts. Made on the host, given to
// the kernels by value.
struct PearsonShape {
  int tile_rows, tile_cols, tiles;
  int down, across;  // of an area of shifts; a thread each
  Divider of_across, of_tiles, of_tiles_across, of_areas_across, of_staged_cols;
  int areas, items;  // areas x tiles
};

struct PearsonArguments {
  TemplateProblem q;
  PearsonShape shape;
  TemplateMemory memory;
  const float *units, *right;
  void* partial;  // [frames or pairs][tiles][shifts]: float, double or RunSums
  float *means,
      *norms;  // [frames][shifts]: of windows, less the frame's mean and scaled; 1 / norms
  float* out;
  bool less_mean;  // numerators are of the frame less the mean of the window
};

// Of a sum over a tile.
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

// The frame less its mean, scaled, as all passes but numerators about a pivot see it.
__device__ __forceinline__ FrameScale scale_of_frame(const TemplateProblem& q,
                                                     const TemplateMemory& memory, int frame) {
  if (!q.is_ratio) return {1.0f, 0.0f};
  const FrameFacts facts = memory.facts[frame];
  return {facts.scale, static_cast<float>(-facts.mean * static_cast<double>(facts.scale))};
}

// Facts of all frames, a warp each.
static __global__ void __launch_bounds__(warp::kSize)
    frame_facts_kernel(TemplateProblem q, TemplateMemory memory) {
  wait_for_previous();
  for (int frame = static_cast<int>(blockIdx.x); frame < q.rights;
       frame += static_cast<int>(gridDim.x)) {
    const FrameFacts facts = facts_of(memory, frame);
    if (warp::lane() == 0) memory.facts[frame] = facts;
  }
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
  auto* const of_block = dynamic_shared<FrameScale>();
  auto* const frame_part = reinterpret_cast<float*>(of_block + 1);
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
    block::barrier();  // what was staged for the item before has been read
    if (thread < warp::kSize) {
      // One pivot for all tiles of a template: only all of them together add up to 0.
      const FrameScale scale =
          kPairs && !a.less_mean
              ? scale_near(q, a.memory, from, frame, q.first_sy + row, q.first_sx + col,
                           q.left_rows + s.down - 1, q.left_cols + s.across - 1)
              : scale_of_frame(q, a.memory, frame);
      if (thread == 0) of_block[0] = scale;
    }
    block::barrier();
    const FrameScale scale = of_block[0];
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

// The sums of all tiles in their order, and what the pass makes of them. A thread a shift of a frame or
// pair.
template <Pass kPass>
__global__ void __launch_bounds__(256) add_tiles_kernel(PearsonArguments a) {
  wait_for_previous();
  const TemplateProblem& q = a.q;
  const Index size = q.out_size(), count = (kPass == Pass::numerators ? q.pairs : q.rights) * size;
  const auto* const partial = static_cast<const typename PartialOf<kPass>::type*>(a.partial);
#pragma unroll 1
  for (Index i = static_cast<Index>(blockIdx.x) * 256 + threadIdx.x; i < count;
       i += static_cast<Index>(gridDim.x) * 256) {
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
      // Both sums are of the frame less its mean, so the mean is the deviation of the window's.
      const double squares = static_cast<double>(sum);
      const bool constant = is_rounding(squares, static_cast<double>(a.means[i]), terms);
      a.norms[i] = !(squares - squares == 0) ? no_factor()
                   : constant                ? 0.0f
                                             : static_cast<float>(inverse_square_root(squares));
    } else if constexpr (kPass == Pass::both) {
      a.norms[i] = factor_of_window(q, sum, terms, 1 / terms, 1.0);
    } else {
      // The element-wise fraction: the template's norm is in its elements.
      const Index frame = q.right_of(static_cast<int>(item));
      a.out[i] = q.is_ratio ? clamped(sum * a.norms[frame * size + shift]) : sum;
    }
  }
}

}  // namespace xcorr::template_matching
