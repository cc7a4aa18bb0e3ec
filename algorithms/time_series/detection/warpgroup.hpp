// The products of detection by warpgroups (warpgroup_products.hpp), with a line for each tile.
#pragma once

#include "algorithms/time_series/detection/products.hpp"
#include "algorithms/time_series/warpgroup_plan.hpp"

namespace xcorr::time_series {

template <typename Maths, int kSpread, typename Use>
__device__ __forceinline__ void each_sum_of(WarpgroupSums<Maths, kSpread>& sums, int half,
                                            const float* factors, const Use& use) {
  const int first = opaque(warp::lane()) % 4 * 2 * kSpread +
                    WarpgroupSums<Maths, kSpread>::product_row(half) % kSpread;
#pragma unroll
  for (int i = 0; i < Maths::kColumns / 4; ++i) {
    const int shift = first + (i / 2 * 8 + i % 2) * kSpread;
    use(shift, sums.d[i / 2 * 4 + 2 * half + i % 2], factors[shift]);
  }
}

// A part of the signal about its line, and what sums begin with.
struct LevelledPartOfBlock {
  const Products& p;
  int shift;
  Line line;
  __device__ __forceinline__ float sample(int channel, int i) const {
    return LevelledPart{p.right + static_cast<Index>(channel) * p.q.pitch, p.q.first + shift,
                        p.q.pitch, 0, line}(i);
  }
  __device__ __forceinline__ float start(int row) const {
    const int of = first_of_block() + row;
    return of < p.q.templates ? start_of(p.asked, p.memory, line, of) : 0.0f;
  }
};

// Smaller tiles: what is far from a line, as the samples around a step are, costs precision in its tile.
template <typename Maths>
struct LevelledTiles : Maths {
  static constexpr int kMostTileShifts = 4096;
};

// As WarpEngine of products.hpp.
template <typename LargeTiles, int kSpread>
struct WarpgroupEngine {
  using Maths = LevelledTiles<LargeTiles>;
  static_assert(kBlockTemplates == kGroup);
  static constexpr int kMostThreads = kWarpgroups * kWarpgroup, kBlocks = 2;
  static constexpr int kTile = kTileShifts<Maths, kSpread>;
  using Shape = WarpgroupLayout;
  static Shape shape(const SeriesShape& q) { return warpgroup_layout<Maths, kSpread>(q); }
  // Yes, or why not. `more` is what a kernel needs beside, in bytes of shared memory.
  static Support supports(const Problem& q, std::size_t more) {
    if (const Support is = supports_warpgroups(q); !is) return is;
    return shared_fits("a tile of the signal, the templates of two products, and counts",
                       shape(SeriesShape(q)).bytes() + more);
  }

  template <typename Use>
  __device__ static __forceinline__ void each(const Products& p, const Shape& shape,
                                              const Use& use) {
    each_task<Maths, kSpread>(
        shape, p.memory.templates,
        [&](int shift) {
          return LevelledPartOfBlock{p, shift, line_of_tile(p.q, p.asked, p.memory, shift, kTile)};
        },
        [&](WarpgroupSums<Maths, kSpread>& sums, int shift) {
          use(sums, p.memory.factors + shift, first_of_block(), shift);
        });
  }
};

}  // namespace xcorr::time_series
