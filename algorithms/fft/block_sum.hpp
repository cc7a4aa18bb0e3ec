// The sum over the threads of a block, in float64 and in a fixed order.
#pragma once

#include "algorithms/device/cuda.hpp"

namespace xcorr::fft {

constexpr int kSumThreads = 256;

// Called by the kThreads threads of a block; all of them get the sum.
template <int kThreads = kSumThreads>
__device__ __forceinline__ double sum_over_block(double value) {
  constexpr int kWarps = kThreads / warp::kSize;
  XCORR_SHARED(double, of_warp, kWarps);
  for (int by = warp::kSize / 2; by > 0; by /= 2) value += warp::shuffle_xor(value, by);
  block::barrier();  // others may still read the previous values
  if (warp::lane() == 0) of_warp[threadIdx.x / warp::kSize] = value;
  block::barrier();
  value = of_warp[0];
  for (int i = 1; i < kWarps; ++i) value += of_warp[i];
  return value;
}

}  // namespace xcorr::fft
