// What lanes tell each other of the rows that they have: the first one, and all of them as bits.
#pragma once

#include "algorithms/device/memory.hpp"

namespace xcorr::fused_fft {

// The smallest number over all lanes.
__device__ __forceinline__ int smallest_of_lanes(int mine) {
#pragma unroll
  for (int by = warp::kSize / 2; by > 0; by /= 2) {
    const int other = warp::shuffle_xor(mine, by);
    mine = other < mine ? other : mine;
  }
  return mine;
}
// The bits of all lanes.
__device__ __forceinline__ std::uint32_t bits_of_lanes(std::uint32_t mine) {
#pragma unroll
  for (int by = warp::kSize / 2; by > 0; by /= 2) mine |= warp::shuffle_xor(mine, by);
  return mine;
}
// Place of the lowest bit, of at least one.
__device__ __forceinline__ int lowest_bit(std::uint32_t bits) {
  return static_cast<int>(bits_of(static_cast<float>(bits & (0u - bits))) >> 23) - 127;
}

}  // namespace xcorr::fused_fft
