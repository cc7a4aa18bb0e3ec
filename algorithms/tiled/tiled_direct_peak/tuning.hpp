// Launch shapes, as a policy of CUB. One set of values serves compute capability 8.0 and 9.0.
#pragma once

#include "algorithms/device/cuda.hpp"

namespace xcorr::tiled {

struct PeakTuning {
  static constexpr int kBlocks = 2;  // per SM, of the kernel of products
  // Warps of a block: the kernel that subtracts means; the kernel that joins the peaks of parts.
  static constexpr int kCentreWarps = 8, kCombineWarps = 8;
};

}  // namespace xcorr::tiled
