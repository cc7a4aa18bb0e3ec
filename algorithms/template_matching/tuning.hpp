// Launch shapes of the kernels of this folder, as a policy of CUB. One set of values serves compute
// capability 8.0 and 9.0. The emulation has smaller sizes, so that small problems reach all code.
#pragma once

#include "algorithms/device/cuda.hpp"

namespace xcorr::template_matching {

struct TemplateTuning {
  // Max blocks of a grid; they process further items in a loop.
  static constexpr Index kMostBlocks = small_if_emulated(Index{1} << 20, 5);

  // template_direct: threads of a block, and blocks per SM, for which a block has at most
  // kWantedShared bytes of shared memory; max tiles of a block along x; max rows and columns of the
  // template in shared memory at once.
  static constexpr int kDirectThreads = 256, kDirectBlocks = 2, kMostAcross = 16, kMostPanel = 64;
  static constexpr std::size_t kWantedShared = 96 * 1024;
  // Columns are divided into parts until there are kWantedBlocks blocks. A part has at least
  // kLeastPartCols columns, a part of a window at least kLeastWindowRows rows.
  static constexpr Index kWantedBlocks = small_if_emulated(264, 12);
  static constexpr int kLeastPartCols = static_cast<int>(small_if_emulated(16, 4));
  static constexpr int kLeastWindowRows = static_cast<int>(small_if_emulated(24, 8));

  // Passes over tiles: threads of the kernels that compute scales and that add up tiles; max blocks
  // of both.
  static constexpr int kScaleThreads = 256, kAddThreads = 256;
  static constexpr int kMostScaleBlocks = static_cast<int>(small_if_emulated(64, 2));
  static constexpr Index kMostAddBlocks = small_if_emulated(Index{1} << 16, 3);
};

}  // namespace xcorr::template_matching
