// Launch shapes, as a policy of CUB. One set of values serves compute capability 8.0 and 9.0.
#pragma once

#include "algorithms/device/cuda.hpp"

namespace xcorr::overlap_wise {

struct OverlapWiseTuning {
  // Products: warps of a block; with fewer than kFewWarps warps a block has one, so that blocks
  // spread over all SMs. kBlocks: with fewer registers the compiler would wait for the loads one by
  // one.
  static constexpr int kWarps = 4, kBlocks = 8;
  static constexpr Index kFewWarps = 4096;
  // Scores: rows of outputs per block, one warp each. Without kScoreBlocks the compiler uses fewer
  // registers than are available, and spills.
  static constexpr int kMeanThreads = 256, kScoreRows = 4, kScoreBlocks = 4;
  // Max blocks along x of a kernel that loops in a stride of gridDim.
  static constexpr Index kMostBlocks = small_if_emulated(Index{1} << 16, 3);
  // Max blocks that share the shifts of a pair while they count valid elements.
  static constexpr Index kMostParts = small_if_emulated(1024, 3);
};

}  // namespace xcorr::overlap_wise
