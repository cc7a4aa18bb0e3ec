// The vocabulary's operations over all lanes of a warp in one instruction. Shuffles need one
// instruction for each halving of the warp, and wait for it.
#pragma once

#include <cstdint>

#include "algorithms/device/cuda.hpp"

#ifndef XCORR_EMULATE

namespace xcorr::device {
namespace warp {

// Bit i is the predicate of lane i.
__device__ __forceinline__ std::uint32_t votes(bool predicate) {
  return __ballot_sync(kAll, predicate);
}
// The largest value of all lanes, for all of them.
__device__ __forceinline__ std::uint32_t largest(std::uint32_t value) {
#if __CUDA_ARCH__ >= 800
  return __reduce_max_sync(kAll, value);
#else
  for (int by = kSize / 2; by > 0; by /= 2) {
    const std::uint32_t other = shuffle_xor(value, by);
    value = other > value ? other : value;
  }
  return value;
#endif
}

}  // namespace warp
}  // namespace xcorr::device

#endif  // XCORR_EMULATE
