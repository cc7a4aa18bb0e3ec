// Time series by products of small matrices (tensor cores): what the variants share.
//
// 16 templates and N neighbouring shifts are a matrix product. The left matrix is 16 x T, one
// template per row. The right matrix is T x N with element (k, s) = signal[s + k], and it is never
// stored. Its tile of 8 columns at row k0 and column s0 depends only on o = k0 + s0, so that tiles
// on a diagonal are equal: the tile has the samples o to o + 14 of the signal. A warp keeps the N /
// 8 tiles of a step in registers. For the next step it shifts them by one tile and loads one tile,
// 2 words per lane. A warp that loads every tile loads N / 4 words per lane.
//
// The warps of a block have neighbouring shifts. They share the templates and the signal in shared
// memory, where both already have the precision of the products. The words of the templates are
// stored in the order of fragments, so that a lane reads its four words of a step with one load. A
// panel is as many samples of the templates as fit. A block computes several tiles of shifts. It
// keeps the templates if they are one channel and one panel.
//
// A variant is a class Maths, which defines the words of both operands and the product:
//   kStep                 samples per step
//   kTileColumns          shifts of the tile that tile() returns: 8, or 16 for two tiles at once
//   kNew                  new tiles per step: kStep / kTileColumns
//   kExtra                further tiles that a product needs
//   kRegisters            per tile: its sums, its words and the temporaries of its product
//   words(panel, shifts)  of shared memory
//   stage_templates, stage_signal, left, tile, add
#pragma once

#include <algorithm>

#include "algorithms/device/matrix.hpp"
#include "algorithms/device/memory.hpp"
#include "algorithms/time_series/series_shape.hpp"
#include "algorithms/time_series/tuning.hpp"

namespace xcorr::time_series {

inline constexpr int kGroup = 16;   // templates per product
inline constexpr int kColumns = 8;  // shifts per product

// How a launch divides a problem. Set on the host, passed to the kernel by value.
struct Cut {
  int panel;        // samples, a multiple of 16
  int tiles;        // tiles of shifts; a block computes one at a time
  int first_group;  // group of templates of blockIdx.y = 0
};

// The threads of a block, which copy together. Values derived from an opaque number are computed
// where they are used: kept over the products, they would take registers that the sums need.
struct Copier {
  __device__ __forceinline__ Copier()
      : thread(opaque(static_cast<int>(threadIdx.x))),
        threads(static_cast<int>(blockDim.x)),
        warp(thread / warp::kSize),
        warps(threads / warp::kSize) {}
  int thread, threads, warp, warps;
};

// A channel of the signal from the first sample that a block needs, 0 beyond its end.
struct SignalPart {
  const float* channel;
  int first, length;
  __device__ __forceinline__ float operator()(int i) const {
    return load_or_zero(channel, first + i, length);
  }
};

// The first template of the block's group.
__device__ __forceinline__ int first_template(const Cut& cut) {
  return (cut.first_group + static_cast<int>(blockIdx.y)) * kGroup;
}

// A channel of the block's templates from the first sample of a panel on, 0 outside.
struct TemplatePart {
  __device__ __forceinline__ TemplatePart(const Series& q, const Cut& cut, const float* left,
                                          int channel, int begin, int samples_)
      : first(left + (static_cast<Index>(first_template(cut)) * q.channels + channel) * q.length +
              begin),
        pitch(static_cast<Index>(q.channels) * q.length),
        templates(q.templates - first_template(cut)),
        samples(samples_) {}
  const float* first;
  Index pitch;  // samples between templates
  int templates, samples;
  __device__ __forceinline__ float operator()(int row, int i) const {
    return row < templates && i < samples ? first[row * pitch + i] : 0.0f;
  }
};

__device__ __forceinline__ int smaller(int a, int b) { return a < b ? a : b; }

// Four words of a lane, moved by one access.
struct alignas(16) Words {
  std::uint32_t of[4];
};

// Offset of word `word` of template `row` in fragments of 16 x 8 words, in words.
__device__ __forceinline__ int fragment_place(int row, int word) {
  const int lane = row % 8 * 4 + word % 4, part = row / 8 + word % 8 / 4 * 2;
  return (word / 8 * warp::kSize + lane) * 4 + part;
}
// The fragment of step `step`.
__device__ __forceinline__ Words fragment(const std::uint32_t* words, int step) {
  return reinterpret_cast<const Words*>(words)[step * warp::kSize + warp::lane()];
}

// The sums of a warp: tiles of 16 templates x 8 shifts, as fragments.
template <int kTiles>
struct Sums {
  float d[kTiles][4];

  // The row in the group of the template of d[j][2 half] and d[j][2 half + 1].
  __device__ static __forceinline__ int row(int half) {
    return static_cast<int>(warp::lane()) / 4 + half * 8;
  }
  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) d[j][i] = 0.0f;
    }
  }

  // Stores the sums to the outputs [templates][shifts], from template `first` and shift `shift` on.
  __device__ __forceinline__ void store(float* out, const Series& q, int first, int shift) const {
    struct alignas(8) Two {
      float first, second;
    };
    const unsigned lane = static_cast<unsigned>(opaque(warp::lane()));
    const int col = shift + static_cast<int>(lane % 4 * 2), rest = q.shifts - col;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first + static_cast<int>(lane / 4) + half * 8;
      if (row >= q.templates) continue;
      float* const to = out + (static_cast<Index>(row) * q.shifts + col);
      const bool aligned = reinterpret_cast<std::uintptr_t>(to) % sizeof(Two) == 0;
#pragma unroll
      for (int j = 0; j < kTiles; ++j) {
        const Two two = {d[j][2 * half], d[j][2 * half + 1]};
        float* const place = to + j * kColumns;
        if (aligned && j * kColumns + 1 < rest) {
          store_last(reinterpret_cast<Two*>(place), two);
        } else {
          if (j * kColumns < rest) store_last(place, two.first);
          if (j * kColumns + 1 < rest) store_last(place + 1, two.second);
        }
      }
    }
  }
};

// Adds the products of `steps` steps and keeps tiles in registers, as explained at the top. Tile 0
// of the first step begins at sample `from` of the panel.
template <int kTiles, typename Maths>
__device__ __forceinline__ void add_keeping_tiles(const Maths& maths, Sums<kTiles>& sums, int from,
                                                  int steps) {
  // More unrolled steps would need more registers than exist.
  constexpr int kUnrolled = Maths::kRegisters > 10 ? 1 : 8;
  constexpr int kOwn = kTiles * kColumns / Maths::kTileColumns;
  constexpr int kKept = kOwn + Maths::kExtra - Maths::kNew;
  typename Maths::Tile tiles[kKept + kUnrolled * Maths::kNew];
#pragma unroll
  for (int i = 0; i < kKept; ++i) tiles[i] = maths.tile(from + i * Maths::kTileColumns);
  const auto several = [&](int step, auto count) {
    constexpr int kSteps = decltype(count)::value;
#pragma unroll
    for (int u = 0; u < kSteps; ++u) {
#pragma unroll
      for (int i = 0; i < Maths::kNew; ++i) {
        const int place = kKept + u * Maths::kNew + i;
        tiles[place] = maths.tile(from + step * Maths::kStep + place * Maths::kTileColumns);
      }
      maths.add(sums, maths.left(step + u), tiles + u * Maths::kNew);
    }
#pragma unroll
    for (int i = 0; i < kKept; ++i) tiles[i] = tiles[i + kSteps * Maths::kNew];
  };
  int step = 0;
  if constexpr (kUnrolled > 1) {
#pragma unroll 1
    for (; step + kUnrolled <= steps; step += kUnrolled) {
      several(step, std::integral_constant<int, kUnrolled>{});
    }
  }
#pragma unroll 1
  for (; step < steps; ++step) several(step, std::integral_constant<int, 1>{});
}

// The same, but every step loads all its tiles.
template <int kTiles, typename Maths>
__device__ __forceinline__ void add_loading_tiles(const Maths& maths, Sums<kTiles>& sums, int from,
                                                  int steps) {
#pragma unroll 2
  for (int step = 0; step < steps; ++step) {
    typename Maths::Tile tiles[kTiles + Maths::kExtra];
#pragma unroll
    for (int i = 0; i < kTiles + Maths::kExtra; ++i) {
      tiles[i] = maths.tile(from + step * Maths::kStep + i * kColumns);
    }
    maths.add(sums, maths.left(step), tiles);
  }
}

// Blocks of kMostWarps warps for which an SM has registers.
template <typename Maths, int kTiles>
constexpr int kResidentBlocks = std::clamp(256 / (kTiles * Maths::kRegisters + 32), 1, 3);

// Blocks consist of whole warps. The tiles of shifts are along x, the groups of templates along y.
template <typename Maths, int kTiles>
__global__ void __launch_bounds__(SeriesTuning::kMostWarps * 32, (kResidentBlocks<Maths, kTiles>))
    time_series_kernel(Series q, Cut cut, const float* __restrict__ left,
                       const float* __restrict__ right, float* __restrict__ out) {
  constexpr int kShifts = kTiles * kColumns;
  const int block_shifts = static_cast<int>(blockDim.x) / warp::kSize * kShifts;
  const int from = static_cast<int>(threadIdx.x) / warp::kSize * kShifts;  // shift of the warp
  const Maths maths(dynamic_shared<std::uint32_t>(), cut.panel, block_shifts);
  const bool keeps_templates = q.channels == 1 && q.length <= cut.panel;
#pragma unroll 1
  for (int tile = static_cast<int>(blockIdx.x); tile < cut.tiles;
       tile += static_cast<int>(gridDim.x)) {
    const int block_shift = tile * block_shifts;
    Sums<kTiles> sums;
    sums.clear();
#pragma unroll 1
    for (int channel = 0; channel < q.channels; ++channel) {
#pragma unroll 1
      for (int begin = 0; begin < q.length; begin += cut.panel) {
        const int samples = smaller(cut.panel, q.length - begin);
        const int steps = ceil_div(samples, Maths::kStep);
        block::barrier();
        if (!keeps_templates || tile == static_cast<int>(blockIdx.x)) {
          maths.stage_templates(TemplatePart(q, cut, left, channel, begin, samples), steps,
                                Copier());
        }
        maths.stage_signal(
            {right + static_cast<Index>(channel) * q.pitch, q.first + block_shift + begin, q.pitch},
            block_shifts + steps * Maths::kStep, Copier());
        block::barrier();
        if (block_shift + from < q.shifts) maths.correlate(sums, from, steps);
      }
    }
    if (block_shift + from < q.shifts) sums.store(out, q, first_template(cut), block_shift + from);
  }
}

}  // namespace xcorr::time_series
