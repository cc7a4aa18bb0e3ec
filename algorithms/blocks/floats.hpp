// Floats as integers of the same order, 1 / sqrt of a double from a float32 root, and the median of
// the values of the lanes of a warp.
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

// 1 / sqrt(value) of a normal number above 0, as exact as root(float) for a number from 1 to 4. A
// factor of a power of 4 changes only the exponent of the result.
template <typename Root>
__device__ __forceinline__ double inverse_root_by(double value, const Root& root) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const int exponent = static_cast<int>(bits >> 52) - 1023;
  const int odd = exponent & 1, half = (exponent - odd) / 2;
  const auto power = [](int of) {
    return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + of) << 52);
  };
  const double small = std::bit_cast<double>((bits & 0xfffffffffffffu) |
                                             static_cast<std::uint64_t>(1023 + odd) << 52);
  return static_cast<double>(root(static_cast<float>(small))) * power(-half);
}

// The median of the lanes' values that are numbers; 0 if there is none. Unlike a mean, it is not
// moved by a few outliers.
__device__ __forceinline__ float median_of_numbers(float value) {
  int before = 0, count = 0;  // lanes with smaller values, lanes with numbers
#pragma unroll 4
  for (int other = 0; other < warp::kSize; ++other) {
    const float of_other = warp::shuffle(value, other);
    count += of_other == of_other;
    before += of_other < value || (of_other == value && other < warp::lane());
  }
  return warp::reduce_add(value == value && before == count / 2 ? value : 0.0f);  // one lane has it
}

}  // namespace xcorr::device
