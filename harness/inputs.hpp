// Seeded inputs: a pure function of (kind, seed, side, index), so that any chunk can be made again
// anywhere, on a device too, without storing it.
#pragma once

#include <cstdint>
#include <string_view>

#include "harness/problem.hpp"
#include "harness/variant.hpp"

namespace xcorr {

// uniform: [0, 1), the paper's; zero_mean: [-1, 1); integer: whole numbers in [-amplitude,
// amplitude].
enum class InputKind { uniform, zero_mean, integer };
enum class Side { left, right };

// Largest amplitude for which every partial sum of K products of integers stays below 2^24 and is
// exact in float32: floor(sqrt(2^24 / K)), at least 1.
Index integer_amplitude(Index largest_overlap);

// SplitMix64 (Steele et al. 2014) of the position: full 64-bit avalanche, no state.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Every value is a multiple of 2^-23 or an integer: the same number in float32 and float64.
constexpr double input_value(InputKind kind, std::uint64_t seed, Side side, std::uint64_t index,
                             Index amplitude) {
  const std::uint64_t bits =
      mix(mix(seed * 6 + static_cast<int>(kind) * 2 + static_cast<int>(side)) ^ index);
  const double unit = static_cast<double>(bits >> 40) * 0x1p-24;
  switch (kind) {
    case InputKind::zero_mean:
      return 2.0 * unit - 1.0;
    case InputKind::integer:
      return static_cast<double>(
          static_cast<Index>(bits % static_cast<std::uint64_t>(2 * amplitude + 1)) - amplitude);
    default:
      return unit;
  }
}

// Fills `count` elements starting at element `first` of one side.
template <typename T>
void fill_inputs(T* data, InputKind kind, std::uint64_t seed, Side side, Index first, Index count,
                 Index amplitude) {
#ifdef _OPENMP
#pragma omp parallel for
#endif
  for (Index i = 0; i < count; ++i) {
    data[i] = static_cast<T>(
        input_value(kind, seed, side, static_cast<std::uint64_t>(first + i), amplitude));
  }
}

std::string_view to_string(InputKind kind);
InputKind parse_input_kind(std::string_view text);

}  // namespace xcorr
