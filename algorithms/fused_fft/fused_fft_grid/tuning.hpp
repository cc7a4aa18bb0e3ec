// Launch shapes, as a policy of CUB. One set of values serves compute capability 8.0 and 9.0.
#pragma once

#include "algorithms/device/cuda.hpp"

namespace xcorr::fused_fft {

struct GridTuning {
  // With 512 threads a block, one block per SM, a thread has 128 registers.
  static constexpr int kMostThreads = 512, kBlocks = 1;
};

}  // namespace xcorr::fused_fft
