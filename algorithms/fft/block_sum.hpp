// The sum, or the max, over the threads of a block, in float64 and in a fixed order.
#pragma once

#include "algorithms/device/cuda.hpp"

namespace xcorr::fft {

constexpr int kSumWarps = 8;
constexpr int kSumThreads = kSumWarps * warp::kSize;

// Called by kSumThreads threads; all of them get the result. join(a, b) is the sum or the larger
// one.
template <typename Join>
__device__ __forceinline__ double over_block(double value, Join join) {
  XCORR_SHARED(double, of_warp, kSumWarps);
  for (int by = warp::kSize / 2; by > 0; by /= 2) {
    value = join(value, warp::shuffle_xor(value, by));
  }
  block::barrier();  // others may still read the previous values
  if (warp::lane() == 0) of_warp[threadIdx.x / warp::kSize] = value;
  block::barrier();
  value = of_warp[0];
  for (int i = 1; i < kSumWarps; ++i) value = join(value, of_warp[i]);
  return value;
}
__device__ __forceinline__ double sum_over_block(double value) {
  return over_block(value, [](double a, double b) { return a + b; });
}

}  // namespace xcorr::fft
