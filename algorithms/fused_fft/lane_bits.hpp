// Reductions over lanes that have rows: the smallest number, and all of them as bits.
#pragma once

#include "algorithms/device/memory.hpp"

namespace xcorr::fused_fft {

// The smallest number of all lanes.
__device__ __forceinline__ int smallest_of_lanes(int mine) {
#pragma unroll
  for (int by = warp::kSize / 2; by > 0; by /= 2) {
    const int other = warp::shuffle_xor(mine, by);
    mine = other < mine ? other : mine;
  }
  return mine;
}
// The bitwise or of all lanes.
__device__ __forceinline__ std::uint32_t bits_of_lanes(std::uint32_t mine) {
#pragma unroll
  for (int by = warp::kSize / 2; by > 0; by /= 2) mine |= warp::shuffle_xor(mine, by);
  return mine;
}
// Position of the lowest set bit; `bits` is not 0.
__device__ __forceinline__ int lowest_bit(std::uint32_t bits) {
  return static_cast<int>(bits_of(static_cast<float>(bits & (0u - bits))) >> 23) - 127;
}

}  // namespace xcorr::fused_fft
