// Launch shapes, as a policy of CUB. One set of values serves compute capability 8.0 and 9.0.
#pragma once

#include "algorithms/device/cuda.hpp"

namespace xcorr::fused_fft {

struct PairTuning {
  // Warps of a block, a pair each, and blocks per SM.
  static constexpr int kWarps = 4, kBlocks = 5;
};

}  // namespace xcorr::fused_fft
