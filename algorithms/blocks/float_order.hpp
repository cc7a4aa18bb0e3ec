// Floats as integers of the same order, for atomic operations and reductions of a warp.
#pragma once

#include <bit>
#include <cstdint>

#include "algorithms/device/memory.hpp"

namespace xcorr::device {

// Larger for a larger value, and equal for both zeros.
__device__ __forceinline__ std::uint32_t order_of(float value) {
  const std::uint32_t bits = bits_of(value + 0.0f);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}
__device__ __forceinline__ float value_of_order(std::uint32_t order) {
  return std::bit_cast<float>(order >> 31 != 0 ? order & 0x7fffffffu : ~order);
}

// The bits of |value|. Those of infinities and NaNs are the largest.
__device__ __forceinline__ std::uint32_t size_bits(float value) {
  return std::bit_cast<std::uint32_t>(value) & 0x7fffffffu;
}

}  // namespace xcorr::device
