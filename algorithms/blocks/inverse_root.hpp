// 1 / sqrt of a double that may be outside the range of float32, from a float32 root.
#pragma once

#include <bit>
#include <cstdint>

#include "algorithms/device/cuda.hpp"

namespace xcorr::device {

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

}  // namespace xcorr::device
