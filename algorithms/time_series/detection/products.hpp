// The products of warp_products.hpp, with scores in place of sums. Scores are used while they are
// in registers: score_kernel stores them, above_kernel lists those of at least a threshold,
// count.hpp counts them. A score is the sum of the products times the factor of its shift. The
// templates have norm 1.
//
// The rounding error of a sample is in proportion to its size, and the mean of a signal may be 1e4
// times as large as the wanted signal. Therefore a line near the samples of a tile is subtracted
// before they are rounded:
//
//   sum of l r = sum of l (r - line) + sum of l line
//
// The sums start with the last term. For zncc the sum of l is 0, and the line may have a slope: the
// term is the slope times the sum of i l[i], for every shift. For ncc the line is a constant, and
// the term is this constant times the sum of l. One line for a whole signal is not enough, because
// a drifting mean is far from it.
//
// An infinity or a NaN in the signal is multiplied as 0. Only the factors, and thus the scores, of
// the shifts whose windows contain it are NaN. Factors beyond the last shift are NaN too, so that
// code that counts scores needs no test for the end.
#pragma once

#include <algorithm>
#include <cmath>

#include "algorithms/time_series/detection/prepare.hpp"
#include "harness/variant.hpp"

namespace xcorr::time_series {

// A channel of the signal minus a line, 0 beyond its end. `from` is the first sample, counted from
// the start of the line; `first` is the same sample, counted from the start of the channel.
struct LevelledPart {
  const float* channel;
  int first, length, from;
  Line line;
  // The load is separate from the arithmetic, so that several loads can be in flight. There is no
  // branch: a load behind a branch would wait for the load before it.
  __device__ __forceinline__ float load(int i) const {
    const int at = first + i;
    return channel[at < length ? at : length - 1];
  }
  __device__ __forceinline__ float levelled(float value, int i) const {
    return first + i < length && is_finite(value)
               ? line.without(value, static_cast<float>(from + i))
               : 0.0f;
  }
  __device__ __forceinline__ float operator()(int i) const { return levelled(load(i), i); }
};

// Kernel arguments of the products, passed by value.
struct Products {
  Series q;
  Question asked;
  Memory memory;
  const float* right;
};

// The line of the `shifts` shifts from `shift` on. Only for zncc it has a slope: for other scores
// the contribution of a slope differs between shifts.
__device__ __forceinline__ Line line_of_tile(const Series& q, const Question& asked,
                                             const Memory& memory, int shift, int shifts) {
  if (!asked.normalised) return {};
  const int first = q.first + shift, count = shifts + q.length;
  const LineChunks chunks(q, memory, first, count);
  return line_of_chunks(q, memory, chunks, first, asked.centred, [&](int channel, int i) {
    return memory.means[channel * memory.chunks + chunks.before + i];
  });
}

// Initial value of the sums of a template: the sum of its products with the line.
__device__ __forceinline__ float start_of(const Question& asked, const Memory& memory,
                                          const Line& line, int row) {
  if (!asked.normalised) return 0.0f;
  return (asked.centred ? line.slope : line.start) * memory.units[row];
}

// Sets the sums of a tile to their initial values. Returns whether the tile is wide.
template <int kTiles>
__device__ __forceinline__ bool start_sums(const Products& p, const Cut& cut, int shift, int shifts,
                                           Sums<kTiles>& sums) {
  sums.clear();
  if (!p.asked.normalised) return false;
  const Line line = line_of_tile(p.q, p.asked, p.memory, shift, shifts);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = first_template(cut) + Sums<kTiles>::row(half);
    const float start = row < p.q.templates ? start_of(p.asked, p.memory, line, row) : 0.0f;
#pragma unroll
    for (int j = 0; j < kTiles; ++j) sums.d[j][2 * half] = sums.d[j][2 * half + 1] = start;
  }
  return line.is_wide();
}

// Computes the sums of a tile of shifts for the templates of group `cut.first_group` + blockIdx.y.
// All threads of a block call it, also warps whose shifts are beyond the last. Returns whether
// take_back_scale() must follow.
template <int kTiles, typename Maths>
__device__ __forceinline__ bool add_tile(const Maths& maths, const Products& p, const Cut& cut,
                                         int tile, bool stages_templates, Sums<kTiles>& sums) {
  const Series& q = p.q;
  constexpr int kShifts = kTiles * kColumns;
  const int block_shifts = static_cast<int>(blockDim.x) / warp::kSize * kShifts;
  const int from = static_cast<int>(threadIdx.x) / warp::kSize * kShifts;  // shift of the warp
  const int block_shift = tile * block_shifts;
  const bool keeps_templates = q.channels == 1 && q.length <= cut.panel;
  const bool wide = start_sums(p, cut, block_shift, block_shifts, sums);
#pragma unroll 1
  for (int channel = 0; channel < q.channels; ++channel) {
#pragma unroll 1
    for (int begin = 0; begin < q.length; begin += cut.panel) {
      const int samples = smaller(cut.panel, q.length - begin);
      const int steps = ceil_div(samples, Maths::kStep);
      block::barrier();
      if (!keeps_templates || stages_templates) {
        maths.stage_templates(TemplatePart(q, cut, p.memory.templates, channel, begin, samples),
                              steps, Copier());
      }
      // Computed again for each part: kept over the products, it would take a register.
      const int shift = opaque(block_shift);
      maths.stage_signal(
          LevelledPart{p.right + static_cast<Index>(channel) * q.pitch, q.first + shift + begin,
                       q.pitch, begin, line_of_tile(q, p.asked, p.memory, shift, block_shifts)},
          block_shifts + steps * Maths::kStep, Copier());
      block::barrier();
      if (block_shift + from < q.shifts) maths.correlate(sums, from, steps);
    }
  }
  return wide;
}

// Factors of the shifts of a warp, in global memory.
struct GlobalFactors {
  const float* first;
  // The same pointer, hidden from the compiler, so that values derived from it are computed again
  // and not kept in registers.
  __device__ __forceinline__ GlobalFactors again() const { return {opaque(first)}; }
};

// Calls use(shift, sum, factor) for each sum of template sums.row(half). `shift` counts from the
// first shift of the warp. One template after the other takes fewer registers than both at once.
template <int kTiles, typename Use>
__device__ __forceinline__ void each_sum_of(Sums<kTiles>& sums, int half,
                                            const GlobalFactors& factors, const Use& use) {
  struct alignas(8) Two {
    float first, second;
  };
  const int column = opaque(warp::lane()) % 4 * 2;
#pragma unroll
  for (int j = 0; j < kTiles; ++j) {
    const int shift = j * kColumns + column;
    const Two two = *reinterpret_cast<const Two*>(factors.first + shift);
    use(shift, sums.d[j][2 * half], two.first);
    use(shift + 1, sums.d[j][2 * half + 1], two.second);
  }
}

// Calls use(half, shift, sum, factor) for each sum of a warp.
template <typename Sums, typename Factors, typename Use>
__device__ __forceinline__ void each_sum(Sums& sums, const Factors& factors, const Use& use) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    each_sum_of(sums, half, factors,
                [&](int shift, float& sum, float factor) { use(half, shift, sum, factor); });
  }
}

// Scales the sum of a wide tile to fit its factor (prepare.hpp).
__device__ __forceinline__ float without_scale(float sum, float factor) {
  return factor < 0 ? -sum : sum * (1 / kWideScale);
}
template <typename Sums, typename Factors>
__device__ __forceinline__ void take_back_scale(Sums& sums, const Factors& factors) {
  each_sum(sums, factors,
           [](int, int, float& sum, float factor) { sum = without_scale(sum, factor); });
}

__device__ __forceinline__ float score_of(float sum, float factor, float limit) {
  const float score = sum * factor;
  return score > limit ? limit : score < -limit ? -limit : score;
}

// Lists the scores of a warp that are at least least[half]. `Count` is the type of the counter,
// which also counts scores beyond the capacity. There is one atomic addition per warp.
template <typename Sums, typename Factors, typename Count>
__device__ __forceinline__ void list_scores(Sums& sums, const Factors& factors, float limit,
                                            const float (&least)[2], int first_template,
                                            int first_shift, Count* counter, Count capacity,
                                            Detection* list) {
  int mine = 0;
  each_sum(sums, factors, [&](int half, int, float sum, float factor) {
    mine += score_of(sum, factor, limit) >= least[half];
  });
  if (!warp::any(mine > 0)) return;
  const int up_to = warp::scan_add(mine, warp::lane());
  Count slot = 0;
  if (warp::lane() == warp::kSize - 1) slot = atomic_add(counter, static_cast<Count>(up_to));
  slot = warp::shuffle(slot, warp::kSize - 1) + static_cast<Count>(up_to - mine);
  if (mine == 0) return;
  // The scores are computed again, because no registers are left to keep them since the count.
  each_sum(sums, factors.again(), [&](int half, int shift, float sum, float factor) {
    const float score = score_of(sum, factor, limit);
    if (!(score >= least[half])) return;
    if (slot < capacity) {
      list[slot] = {first_template + sums.row(half), 0, first_shift + shift, score};
    }
    ++slot;
  });
}

// Launch parameters of the products of warps besides Products. Set on the host.
struct WarpShape {
  Cut cut;
  int block_threads, tile_shifts;
  int words;  // of dynamic shared memory, a multiple of 4; further data of a kernel follow

  int threads() const { return block_threads; }
  int tiles() const { return cut.tiles; }
  Index shifts() const { return static_cast<Index>(cut.tiles) * tile_shifts; }  // of all tiles
};

template <typename Maths, int kTiles>
WarpShape warp_shape(const Problem& q, int threads) {
  const int tile_shifts = threads / warp::kSize * kTiles * kColumns;
  const auto panel = static_cast<int>(
      std::min<Index>(SeriesTuning::kMostPanel, ceil_div<Index>(q.left.cols, 16) * 16));
  const auto tiles = static_cast<int>(ceil_div<Index>(q.out_cols(), tile_shifts));
  const auto words =
      static_cast<int>(ceil_div<std::size_t>(Maths::words(panel, tile_shifts), 4) * 4);
  return {{panel, tiles, 0}, threads, tile_shifts, words};
}

// Calls use(sums, factors, first template, first shift) with the sums of add_tile() from `shift`
// on, unless these shifts are beyond the last.
template <typename Sums, typename Use>
__device__ __forceinline__ void use_sums(const Products& p, Sums& sums, bool wide,
                                         int first_template, int shift, const Use& use) {
  if (shift < p.q.shifts) {
    const GlobalFactors factors{p.memory.factors + shift};
    if (wide) take_back_scale(sums, factors);
    use(sums, factors, first_template, shift);
  }
}

// Blocks consist of whole warps. The tiles of shifts are along x, the groups of templates along y.
// All lanes of a warp that has shifts call use(sums, factors, first template, first shift). The
// tile with number i of `tiles` is tile_of(i).
template <typename Maths, int kTiles, typename Use, typename TileOf>
__device__ __forceinline__ void each_tile(const Products& p, const Cut& cut, int tiles,
                                          const TileOf& tile_of, const Use& use) {
  constexpr int kShifts = kTiles * kColumns;
  const int block_shifts = static_cast<int>(blockDim.x) / warp::kSize * kShifts;
  const Maths maths(dynamic_shared<std::uint32_t>(), cut.panel, block_shifts);
#pragma unroll 1
  for (int i = static_cast<int>(blockIdx.x); i < tiles; i += static_cast<int>(gridDim.x)) {
    Sums<kTiles> sums;
    const bool wide = add_tile(maths, p, cut, tile_of(i), i == static_cast<int>(blockIdx.x), sums);
    const int shift = tile_of(opaque(i)) * block_shifts +
                      opaque(static_cast<int>(threadIdx.x)) / warp::kSize * kShifts;
    use_sums(p, sums, wide, first_template(cut), shift, use);
  }
}

// The engine of warps. An engine computes the products of all tiles: it declares what its blocks
// need and the sums of a warp, and each() calls use(sums, factors, first template, first shift) for
// each warp that has shifts.
template <typename Maths, int kTiles>
struct WarpEngine {
  static constexpr int kMostThreads = SeriesTuning::kMostWarps * warp::kSize;
  static constexpr int kBlocks = kResidentBlocks<Maths, kTiles>;
  static constexpr int kSumsOfHalf = 2 * kTiles;
  using Shape = WarpShape;
  static Support supports(const Problem&) { return yes(); }
  static Shape shape(const Problem& q, int threads) {
    return warp_shape<Maths, kTiles>(q, threads);
  }

  template <typename Use>
  __device__ static __forceinline__ void each(const Products& p, const Shape& shape,
                                              const Use& use) {
    each_tile<Maths, kTiles>(p, shape.cut, shape.cut.tiles, [](int i) { return i; }, use);
  }
};

template <typename Engine>
__global__ void __launch_bounds__(Engine::kMostThreads, Engine::kBlocks)
    score_kernel(Products p, typename Engine::Shape shape, float* __restrict__ out) {
  wait_for_previous();
  const float limit = p.asked.limit;
  Engine::each(p, shape, [&](auto& sums, const auto& factors, int first, int shift) {
    float largest = 0;
    each_sum(sums, factors, [&](int, int, float& sum, float factor) {
      sum *= factor;
      largest = fmaxf(largest, std::fabs(sum));
    });
    // Only rounding makes a score too large, which is rare.
    if (warp::any(largest > limit)) {
      each_sum(sums, factors,
               [&](int, int, float& sum, float) { sum = score_of(sum, 1.0f, limit); });
    }
    sums.store(out, p.q, first, shift);
  });
}

// Lists the scores of at least `least` for all templates.
template <typename Engine>
__global__ void __launch_bounds__(Engine::kMostThreads, Engine::kBlocks)
    above_kernel(Products p, typename Engine::Shape shape, float least) {
  wait_for_previous();
  Engine::each(p, shape, [&](auto& sums, const auto& factors, int first, int shift) {
    float of_row[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      of_row[half] = first + sums.row(half) < p.q.templates ? least : not_a_number();
    }
    list_scores(sums, factors, p.asked.limit, of_row, first, p.q.first + shift,
                counter_of(p.asked.header), p.asked.capacity, detections_of(p.asked.header));
  });
}

}  // namespace xcorr::time_series
