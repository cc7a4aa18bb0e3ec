// Sizes of zero-padded transforms for correlation, lengths that FFT libraries prefer, and the scale
// of matrices that share a transform.
#pragma once

#include <algorithm>
#include <cmath>
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

// Two matrices that share a complex transform are scaled to the same value of
//
//   sum of squares + share_of_sum(elements) * square of the sum
//
// The rounding errors of the spectrum L are in proportion to R and are multiplied by R, and those of
// R by L. So the errors of the product are alike if both sides have the same sum of |spectrum|^4
// over all bins. Noise is alike in all bins, and its squares tell the sum. A matrix with a mean,
// padded with zeros, has most of its energy in few bins around frequency 0. For ones the root of
// the sum of |spectrum|^4 is 2/3 of the square of their sum along each axis, times the root of the
// padded over the unpadded length.
inline float share_of_sum(Index elements) {
  return 2.0f / (3.0f * std::sqrt(static_cast<float>(elements)));
}

}  // namespace xcorr::device
