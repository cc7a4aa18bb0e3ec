// Launch shapes, as a policy of CUB. One set of values serves compute capability 8.0 and 9.0.
#pragma once

#include "algorithms/device/cuda.hpp"
#include "algorithms/fused_fft/block_tile.hpp"

namespace xcorr::fused_fft {

struct BlockPeakTuning {
  // Warps of a block for transforms of n points: one per unit of columns. At 192 there are 24: each
  // warp then has two of the 48 units of rows, and a thread gets more registers.
  template <int kN>
  static constexpr int kWarps = kN == 192 ? 24 : BlockTile<kN>::warps;
  // Blocks per SM.
  static constexpr int blocks(int n, bool phase) {
    return n <= 48 ? 8 : n <= 64 ? 7 - phase : n <= 96 ? 4 : n <= 128 ? 2 : 1;
  }
  static constexpr int kGatherMostThreads = static_cast<int>(small_if_emulated(1024, 64));
};

}  // namespace xcorr::fused_fft
