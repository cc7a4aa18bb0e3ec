// The products of warp_products.hpp in tf32: one word per sample.
#pragma once

#include "algorithms/time_series/warp_products.hpp"

namespace xcorr::time_series {

enum class Instruction { mma, wmma };

template <Instruction kInstruction, bool kKeepTiles>
class Tf32 {
 public:
  static constexpr int kStep = 8, kTileColumns = 8, kNew = 1, kExtra = 0, kRegisters = 6;
  struct Tile {
    std::uint32_t b0, b1;
  };

  static std::size_t words(int panel, int shifts) {
    return static_cast<std::size_t>(panel * kGroup + panel + shifts);
  }
  __device__ Tf32(std::uint32_t* shared, int panel, int /*shifts*/)
      : templates_(shared), signal_(shared + panel * kGroup) {}

  __device__ __forceinline__ void stage_templates(const TemplatePart& part, int steps,
                                                  const Copier& copier) const {
    for (int row = copier.warp; row < kGroup; row += copier.warps) {
#pragma unroll 4
      for (int i = warp::lane(); i < steps * kStep; i += warp::kSize) {
        templates_[fragment_place(row, i)] = matrix::to_tf32(part(row, i));
      }
    }
  }
  template <typename Part = SignalPart>
  __device__ __forceinline__ void stage_signal(const Part& part, int samples,
                                               const Copier& copier) const {
#pragma unroll 4
    for (int i = copier.thread; i < samples; i += copier.threads) {
      signal_[i] = matrix::to_tf32(part(i));
    }
  }

  template <int kTiles>
  __device__ __forceinline__ void correlate(Sums<kTiles>& sums, int from, int steps) const {
    if constexpr (kKeepTiles) {
      add_keeping_tiles(*this, sums, from, steps);
    } else {
      add_loading_tiles(*this, sums, from, steps);
    }
  }

  __device__ __forceinline__ Words left(int step) const { return fragment(templates_, step); }
  // The tile whose first element is sample `at`.
  __device__ __forceinline__ Tile tile(int at) const {
    const auto lane = static_cast<unsigned>(warp::lane());
    const std::uint32_t* const mine = signal_ + at + (lane / 4 + lane % 4);
    return {mine[0], mine[4]};
  }
  template <int kTiles>
  __device__ __forceinline__ void add(Sums<kTiles>& sums, const Words& left,
                                      const Tile* tiles) const {
    if constexpr (kInstruction == Instruction::mma) {
#pragma unroll
      for (int j = 0; j < kTiles; ++j) {
        matrix::add_product_tf32(sums.d[j], left.of, tiles[j].b0, tiles[j].b1);
      }
    } else {
#pragma unroll
      for (int j = 0; j < kTiles; j += 2) {
        const std::uint32_t b[4] = {tiles[j].b0, tiles[j].b1, tiles[j + 1].b0, tiles[j + 1].b1};
        matrix::add_product_16_columns(sums.d[j], sums.d[j + 1], left.of, b);
      }
    }
  }

 private:
  std::uint32_t* templates_;
  std::uint32_t* signal_;
};

}  // namespace xcorr::time_series
