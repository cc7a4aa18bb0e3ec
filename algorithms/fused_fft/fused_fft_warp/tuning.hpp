// Launch shapes, as a policy of CUB. One set of values serves compute capability 8.0 and 9.0.
#pragma once

#include "algorithms/device/cuda.hpp"

namespace xcorr::fused_fft {

struct WarpTuning {
  static constexpr int kBlocks = 2;  // per SM
  // Max warps of a block for transforms of n points.
  static constexpr int most_warps(int n) { return n <= 16 ? 10 : 8; }
};

}  // namespace xcorr::fused_fft
