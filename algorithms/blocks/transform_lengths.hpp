// Decomposition of transform lengths into short transforms (short_transforms.hpp).
#pragma once

#include <array>
#include <type_traits>
#include <utility>

#include "harness/variant.hpp"

namespace xcorr::device {

// n = first * second, in two passes of short transforms, each within a thread.
template <int kN>
struct Length {
  static constexpr int n = kN, second = kN >= 128 ? 16 : 8, first = kN / second;
  static_assert(kN % second == 0);
};

// The same lengths in shorter passes.
struct TransformLength {
  int n;
  int a, b, c;  // n = a b c: a few values per thread (fused_fft_grid/three_pass.hpp)
  int outer,
      inner;  // n = 8 outer inner: columns through shared memory (cufft_normalised/columns.hpp)
};
inline constexpr std::array<TransformLength, 7> kTransformLengths = {{
    {64, 4, 4, 4, 8, 1},
    {96, 4, 4, 6, 12, 1},
    {128, 8, 4, 4, 4, 4},
    {192, 8, 6, 4, 6, 4},
    {256, 8, 8, 4, 8, 4},
    {384, 8, 8, 6, 6, 8},
    {512, 8, 8, 8, 8, 8},
}};

// The entry of a length of the table.
constexpr TransformLength transform_length(int n) {
  for (const TransformLength& one : kTransformLengths) {
    if (one.n == n) return one;
  }
  return {};
}

// Calls use(std::integral_constant<int, n>()) for a length of the table.
template <typename Use>
void with_transform_length(Index n, const Use& use) {
  [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    ((n == kTransformLengths[kIndex].n
          ? use(std::integral_constant<int, kTransformLengths[kIndex].n>{})
          : void()),
     ...);
  }(std::make_index_sequence<kTransformLengths.size()>{});
}

}  // namespace xcorr::device
