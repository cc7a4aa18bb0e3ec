// The sum over the threads of a block, in float64 and in a fixed order.
#pragma once

#include "algorithms/device/cuda.hpp"

namespace xcorr::device {

// Called by the kThreads threads of a block; all of them get the sum.
template <int kThreads>
__device__ __forceinline__ double sum_over_block(double value) {
  constexpr int kWarps = kThreads / warp::kSize;
  XCORR_SHARED(double, of_warp, kWarps);
  value = warp::reduce_add(value);
  block::barrier();  // others may still read the previous values
  if (warp::lane() == 0) of_warp[threadIdx.x / warp::kSize] = value;
  block::barrier();
  value = of_warp[0];
  for (int i = 1; i < kWarps; ++i) value += of_warp[i];
  return value;
}

}  // namespace xcorr::device
