// Division by a number that is known at launch: a multiplication and two shifts, instead of about
// twenty instructions. Useful in kernels that divide once per element or output.
#pragma once

#include <cstdint>

#include "algorithms/device/cuda.hpp"

namespace xcorr::device {

// n / by for all 32-bit n, by >= 1. Set on the host, passed to a kernel by value. The multiplier
// has 33 bits, 2^32 + multiplier, and is rounded up (Granlund and Montgomery, 1994, figure 4.1).
struct Divider {
  Divider() = default;
  explicit Divider(std::int64_t divisor) : by(static_cast<std::uint32_t>(divisor)) {
    int log = 0;
    while ((std::uint64_t{1} << log) < by) ++log;
    const std::uint64_t excess = (std::uint64_t{1} << log) - by;
    multiplier = static_cast<std::uint32_t>((excess << 32) / by + 1);
    first_shift = log > 0 ? 1 : 0;
    second_shift = log > 0 ? static_cast<std::uint32_t>(log - 1) : 0;
  }

  __host__ __device__ __forceinline__ std::uint32_t quotient(std::uint32_t n) const {
    const auto high =
        static_cast<std::uint32_t>((static_cast<std::uint64_t>(multiplier) * n) >> 32);
    return (high + ((n - high) >> first_shift)) >> second_shift;
  }

  // Returns the quotient; n becomes the remainder.
  __host__ __device__ __forceinline__ std::uint32_t split(std::uint32_t& n) const {
    const std::uint32_t q = quotient(n);
    n -= q * by;
    return q;
  }

  std::uint32_t by = 1, multiplier = 1, first_shift = 0, second_shift = 0;
};

}  // namespace xcorr::device
