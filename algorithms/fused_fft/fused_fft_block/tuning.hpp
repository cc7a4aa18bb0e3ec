// Launch shapes, as a policy of CUB. One set of values serves compute capability 8.0 and 9.0.
#pragma once

#include "algorithms/device/cuda.hpp"

namespace xcorr::fused_fft {

struct BlockTuning {
  // Blocks per SM for transforms of n points. A block has BlockTile<n>::warps warps.
  static constexpr int blocks(int n) { return n <= 64 ? 8 : n <= 96 ? 4 : n <= 128 ? 3 : 1; }
};

}  // namespace xcorr::fused_fft
