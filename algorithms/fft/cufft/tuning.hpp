// Launch shapes, as a policy of CUB. One set of values serves compute capability 8.0 and 9.0.
#pragma once

#include "algorithms/device/cuda.hpp"

namespace xcorr::fft {

struct CufftTuning {
  // Kernels of scores; max blocks along x.
  static constexpr int kScoreThreads = 256, kPhaseBlocks = 4;
  static constexpr Index kMostScoreBlocks = small_if_emulated(Index{1} << 16, 3);
};

}  // namespace xcorr::fft
