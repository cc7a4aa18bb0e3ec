// Launch shapes, as a policy of CUB. One set of values serves compute capability 8.0 and 9.0.
#pragma once

#include "algorithms/device/cuda.hpp"

namespace xcorr::autocorrelation {

struct AutocorrFftTuning {
  // Kernels of rows; blocks per SM of the forward and of the inverse one.
  static constexpr int kMostRowThreads = 256, kForwardBlocks = 4, kInverseBlocks = 2;
  // With kColumnBound the compiler uses 64 registers, and an SM holds two blocks of 512 threads.
  static constexpr int kMostColumnThreads = 640, kColumnBound = 1024;
};

}  // namespace xcorr::autocorrelation
