// Launch shapes of the kernels of this folder, as a policy of CUB. One set of values serves compute
// capability 8.0 and 9.0. Names with `Threads` are threads of a block, names with `Blocks` are
// blocks per SM for __launch_bounds__. The emulation has smaller sizes, so that small problems reach
// all code.
#pragma once

#include "algorithms/device/cuda.hpp"

namespace xcorr::time_series {

constexpr int small(int size, int emulated) {
  return static_cast<int>(small_if_emulated(size, emulated));
}

struct SeriesTuning {
  // Products of warps: max warps of a block, max samples of a panel.
  static constexpr int kMostWarps = 8, kMostPanel = small(512, 80);
  // Products of warpgroups: max columns of the left matrix in shared memory.
  static constexpr int kWarpgroupBlocks = 2, kMostColumns = small(576, 96);

  // Detection. A warp of the preparation computes the mean of a chunk of at most kChunk samples; a
  // signal has at least kLeastChunks chunks, unless they would be shorter than a warp.
  static constexpr int kChunk = small(1024, 64), kLeastChunks = 4, kChunksOfBlock = 8;
  static constexpr int kPrepareThreads = kChunksOfBlock * warp::kSize, kPrepareBlocks = 5;
  static constexpr int kFactorThreads = small(128, 32), kFactorBlocks = 5;
  static constexpr int kSurveyThreads = 4 * warp::kSize, kSurveyBlocks = 4;
  static constexpr int kThresholdThreads = small(1024, 64);
  // The survey reads one of kSurveyShare tiles, and at least kLeastSurvey tiles. With fewer than
  // kSurveyedShifts shifts, thresholds are found without it.
  static constexpr int kSurveyShare = small(32, 2), kLeastSurvey = small(64, 2);
  static constexpr Index kSurveyedShifts = small(1 << 16, 400);
  // Templates with moveouts. The kernels that prepare pairs have as many threads as above.
  static constexpr int kMoveoutThreads = 4 * warp::kSize, kMoveoutBlocks = 3;

  // Kernels around the libraries' products and transforms.
  static constexpr int kRowThreads = 256, kHankelThreads = 256;
};

// timeseries_fft: a transform of n points by a group of `lanes` threads. `resident` is the target
// number of blocks per SM. first, middle and last are the lengths of the passes; middle = 1: two
// passes.
struct FftTuning {
  int n, lanes, groups_of_block, resident, first, middle, last;
};
inline constexpr FftTuning kFftTuning[] = {{512, 32, 4, 4, 8, 8, 8},
                                           {1024, 32, 4, 3, 32, 1, 32},
                                           {2048, 128, 1, 4, 16, 8, 16},
                                           {4096, 256, 1, 2, 16, 16, 16},
                                           {8192, 256, 1, 1, 16, 16, 32}};
constexpr FftTuning fft_tuning(int n) {
  FftTuning found = {};
  for (const FftTuning& one : kFftTuning) {
    if (one.n == n) found = one;
  }
  return found;
}

}  // namespace xcorr::time_series
