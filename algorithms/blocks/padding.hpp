// Sizes of zero-padded transforms for correlation, and lengths that FFT libraries prefer.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "harness/problem/problem.hpp"

namespace xcorr::device {

// The min length n of a circular correlation along one axis that is right at `shifts`. Shift s also
// collects s + n and s - n, which must be outside the full window -(left - 1) .. right - 1, and
// both inputs must fit. The full window needs left + right - 1, a smaller window less.
inline Index padded_size(Index left, Index right, Shifts shifts) {
  return std::max({left, right, right - shifts.first, left + shifts.last});
}

// Whether `n` has no other prime factors.
inline bool is_smooth(Index n, std::initializer_list<Index> primes = {2, 3, 5, 7}) {
  for (const Index prime : primes) {
    while (n % prime == 0) n /= prime;
  }
  return n == 1;
}

// The smallest 2^a 3^b 5^c 7^d that is at least `n`; a multiple of 4 above 16, because SIMD and
// real transforms need even lengths.
inline Index smooth_size(Index n) {
  for (Index size = n;; ++size) {
    if ((n <= 16 || size % 4 == 0) && is_smooth(size)) return size;
  }
}

}  // namespace xcorr::device
