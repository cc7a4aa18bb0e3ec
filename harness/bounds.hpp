// The error bounds of DESIGN section 4, in one place. Calibrated once, frozen: a change here changes
// what "passed" means in every published row.
#pragma once

#include <cmath>

namespace xcorr {

// Sums of products. `overlap` terms, `absolute` = (|L| correlated with |R|) at this shift: the
// statistical growth of rounding errors, sqrt(K) rather than the worst case K, with a margin of 8.
inline double definition_bound(double overlap, double absolute, double unit_roundoff) {
  return (8.0 * std::sqrt(overlap) + 4.0) * unit_roundoff * absolute;
}

// Transforms: every output carries an error of the size of the whole product of norms.
inline double fft_bound(double log2_points, double left_norm, double right_norm,
                        double unit_roundoff) {
  return 4.0 * unit_roundoff * log2_points * left_norm * right_norm;
}

}  // namespace xcorr
