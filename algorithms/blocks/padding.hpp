// Sizes of zero-padded transforms that correlate: how long, and which lengths FFT libraries like.
#pragma once

#include <algorithm>

#include "harness/problem/problem.hpp"

namespace xcorr::device {

// Least length n of a circular correlation of one axis that is right at `shifts`: shift s also
// collects s + n and s - n, which must lie outside the full window -(left - 1) .. right - 1, and
// both inputs must fit. The full window needs left + right - 1, a smaller one less.
inline Index padded_size(Index left, Index right, Shifts shifts) {
  return std::max({left, right, right - shifts.first, left + shifts.last});
}

// The smallest 2^a 3^b 5^c 7^d that is at least `n`, a multiple of 4 from 17 on (SIMD, and real
// transforms, want even lengths).
inline Index smooth_size(Index n) {
  for (Index size = n;; ++size) {
    if (n > 16 && size % 4 != 0) continue;
    Index rest = size;
    for (const Index prime : {2, 3, 5, 7}) {
      while (rest % prime == 0) rest /= prime;
    }
    if (rest == 1) return size;
  }
}

}  // namespace xcorr::device
