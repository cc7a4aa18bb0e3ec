// The products of warp_products.hpp in 3xtf32: two words per sample, and three tensor-core products
// for each product (timeseries_3xtf32.cu says why).
#pragma once

#include <bit>

#include "algorithms/time_series/warp_products.hpp"

namespace xcorr::time_series {

class ThreeTf32 {
 public:
  static constexpr int kStep = 8, kTileColumns = 8, kNew = 1, kExtra = 0, kRegisters = 12;
  struct Tile {
    std::uint32_t big[2], small[2];
  };
  struct Left {
    Words big, small;
  };

  static std::size_t words(int panel, int shifts) {
    return 2 * static_cast<std::size_t>(panel * kGroup + panel + shifts);
  }
  __device__ ThreeTf32(std::uint32_t* shared, int panel, int shifts)
      : templates_(shared),
        small_templates_(templates_ + panel * kGroup),
        signal_(small_templates_ + panel * kGroup),
        small_signal_(signal_ + panel + shifts) {}

  __device__ __forceinline__ void stage_templates(const TemplatePart& part, int steps,
                                                  const Copier& copier) const {
    for (int row = copier.warp; row < kGroup; row += copier.warps) {
#pragma unroll 4
      for (int i = warp::lane(); i < steps * kStep; i += warp::kSize) {
        const int place = fragment_place(row, i);
        split(part(row, i), templates_[place], small_templates_[place]);
      }
    }
  }
  template <typename Part = SignalPart>
  __device__ __forceinline__ void stage_signal(const Part& part, int samples,
                                               const Copier& copier) const {
#pragma unroll 4
    for (int i = copier.thread; i < samples; i += copier.threads) {
      split(part(i), signal_[i], small_signal_[i]);
    }
  }

  template <int kTiles>
  __device__ __forceinline__ void correlate(Sums<kTiles>& sums, int from, int steps) const {
    add_keeping_tiles(*this, sums, from, steps);
  }

  __device__ __forceinline__ Left left(int step) const {
    return {fragment(templates_, step), fragment(small_templates_, step)};
  }
  __device__ __forceinline__ Tile tile(int at) const {
    const auto lane = static_cast<unsigned>(warp::lane());
    const int mine = at + static_cast<int>(lane / 4 + lane % 4);
    return {{signal_[mine], signal_[mine + 4]}, {small_signal_[mine], small_signal_[mine + 4]}};
  }
  template <int kTiles>
  __device__ __forceinline__ void add(Sums<kTiles>& sums, const Left& left,
                                      const Tile* tiles) const {
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
      float c[4] = {};
      matrix::add_product_tf32(c, left.small.of, tiles[j].big[0], tiles[j].big[1]);
      matrix::add_product_tf32(c, left.big.of, tiles[j].small[0], tiles[j].small[1]);
      matrix::add_product_tf32(c, left.big.of, tiles[j].big[0], tiles[j].big[1]);
#pragma unroll
      for (int i = 0; i < 4; ++i) sums.d[j][i] += c[i];
    }
  }

 private:
  __device__ static __forceinline__ void split(float value, std::uint32_t& big,
                                               std::uint32_t& small) {
    big = matrix::to_tf32(value);
    small = matrix::to_tf32(value - std::bit_cast<float>(big));
  }

  std::uint32_t *templates_, *small_templates_;
  std::uint32_t *signal_, *small_signal_;
};

}  // namespace xcorr::time_series
