// Launch shapes, as a policy of CUB. One set of values serves compute capability 8.0 and 9.0. They
// are constants and no type, since nearly every line of the kernels has one.
#pragma once

#include "algorithms/device/cuda.hpp"

namespace xcorr::fft {

// Planes of the inputs and their integrals: warps of a block; max blocks that share a matrix.
constexpr int kPlaneWarps = 8, kPlaneThreads = kPlaneWarps * warp::kSize;
constexpr Index kMostMatrixParts = small_if_emulated(64, 3);

// Products and scores: warps of a block; max blocks that share the shifts of a matrix.
constexpr int kScoreWarps = 8, kScoreThreads = kScoreWarps * warp::kSize;
constexpr Index kMostOwnerParts = small_if_emulated(32, 3);

// A thread of the products, and of the scores, processes several pairs if there are more blocks.
constexpr Index kEnoughProductBlocks = small_if_emulated(2048, 2);
constexpr Index kEnoughScoreBlocks = small_if_emulated(1056, 2);

// Max blocks of kernels whose blocks or warps process items in a stride.
constexpr Index kMostBlocks = small_if_emulated(1024, 3);

}  // namespace xcorr::fft
