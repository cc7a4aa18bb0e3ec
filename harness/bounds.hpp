// The error bounds of DESIGN section 4, in one place, for host and device. Calibrated once, frozen:
// a change here changes what "passed" means in every published row.
#pragma once

#include <cmath>

#include "harness/inputs.hpp"
#include "harness/problem.hpp"

namespace xcorr {

// Sums of products. `overlap` terms, `absolute` = (|L| correlated with |R|) at this shift: the
// statistical growth of rounding errors, sqrt(K) rather than the worst case K, with a margin of 8.
XCORR_HD inline double definition_bound(double overlap, double absolute, double unit_roundoff) {
  return (8.0 * sqrt(overlap) + 4.0) * unit_roundoff * absolute;
}

// Transforms: every output carries an error of the size of the whole product of norms.
XCORR_HD inline double fft_bound(double log2_points, double left_norm, double right_norm,
                                 double unit_roundoff) {
  return 4.0 * unit_roundoff * log2_points * left_norm * right_norm;
}

constexpr double kDoubleRoundoff = 0x1p-53;

// The bound of every element of one comparison: of integer inputs or others (`exact`), a
// definition-based variant or a transform, against a reference by definition or by transform.
struct Bounds {
  Problem problem;
  bool exact, definition, reference_by_fft;
  bool sums_exact;  // integers are small enough for every float32 sum of theirs to be exact
  double u, log2_points;

  // Error of the float64 reference itself, and the bound of a transform, for a pair.
  struct OfPair {
    double reference, transform;
  };
  XCORR_HD OfPair of_pair(double left_norm, double right_norm) const {
    const double reference =
        reference_by_fft ? fft_bound(log2_points, left_norm, right_norm, kDoubleRoundoff) : 0.0;
    return {reference, fft_bound(log2_points, left_norm, right_norm, u) + reference};
  }

  // `absolute`: (|L| correlated with |R|) at the element; a huge number means no bound.
  XCORR_HD double at(const OfPair& pair, Index element, double absolute) const {
    if (exact && definition) return sums_exact ? 0.0 : 1e300;
    if (exact) return pair.transform < 0.5 ? 0.5 : pair.transform;
    if (!definition) return pair.transform;
    const Index sy = problem.window.sy.first + element / problem.out_cols();
    const Index sx = problem.window.sx.first + element % problem.out_cols();
    const Index terms = overlap(problem.left.rows, problem.right.rows, sy).count *
                        overlap(problem.left.cols, problem.right.cols, sx).count;
    return definition_bound(static_cast<double>(terms), fabs(absolute) + pair.reference,
                            u + kDoubleRoundoff) +
           pair.reference;
  }

  // NaN is never right; a transform must round to the integer, so exactly a half is wrong.
  XCORR_HD bool right(double error, double bound) const {
    return exact && !definition ? error < bound : error <= bound;
  }
};

}  // namespace xcorr
