// Launch shapes, as a policy of CUB. One set of values serves compute capability 8.0 and 9.0.
#pragma once

#include "algorithms/device/cuda.hpp"

namespace xcorr::fused_fft {

struct LanesTuning {
  static constexpr int kThreads = 256;  // of a full block
  // Blocks per SM for a transform with `values` complex values per thread: 24 or 32 warps.
  static constexpr int blocks(int values) { return values > 16 ? 3 : 4; }
};

}  // namespace xcorr::fused_fft
