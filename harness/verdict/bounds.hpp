// The error bounds (docs/design.md, Checks), for host and device. They were calibrated once and are
// frozen: a change here changes what "passed" means in every published row.
//
// u is the unit roundoff of the precision class, K the number of products of one output, N the
// number of points of a transform, |L| the matrix of absolute values of L.
//
// Time series (Problem::is_time_series) have bounds of their own. They tell the precision classes
// apart, which the bounds above would not: the norm of a long signal grows with its length, but the
// error of an output does not. There the error of a sum of products is in proportion to the norm of
// its products, and that of a transform to the norm of a segment of the signal.
#pragma once

#include <algorithm>
#include <cmath>

#include "harness/problem/inputs.hpp"
#include "harness/problem/problem.hpp"
#include "harness/truth/score.hpp"

namespace xcorr {

// A sum of `overlap` products; `absolute` is (|L| correlated with |R|) at this shift. Rounding
// errors of random products grow with sqrt(K), and the margin is 8. The worst case, K u, would be
// no check: at 256 x 256 it lets a lost row pass.
XCORR_HD inline double definition_bound(double overlap, double absolute, double unit_roundoff) {
  return (8.0 * sqrt(overlap) + 4.0) * unit_roundoff * absolute;
}

// The same for products that are all alike. Each addition may round in the same direction, by u
// times a partial sum, which on average is half of the whole sum.
XCORR_HD inline double systematic_bound(double overlap, double absolute, double unit_roundoff) {
  return (0.5 * overlap + 4.0) * unit_roundoff * absolute;
}

// A transform: every output has an error in proportion to the product of both norms.
XCORR_HD inline double fft_bound(double log2_points, double left_norm, double right_norm,
                                 double unit_roundoff) {
  return 4.0 * unit_roundoff * log2_points * left_norm * right_norm;
}

// The same for one output of a time series whose products have random signs. `norm` is that of its
// products, sqrt(sum of l^2 r^2). Both factors of each product are rounded by up to u, with a margin
// of 8. Partial sums, whose size grows with the square root of their terms, are rounded by up to half
// of `sum_roundoff`, with a margin of 12: where a partial sum is by chance large, so are its errors,
// and of 69 million outputs of 256 products 8 exceed a margin of 8.
XCORR_HD inline double series_bound(double overlap, double norm, double unit_roundoff,
                                    double sum_roundoff) {
  return norm *
         sqrt(128.0 * unit_roundoff * unit_roundoff + 36.0 * overlap * sum_roundoff * sum_roundoff);
}

// The norm of a segment that a transform of a time series reads: four times as long as the template, or 256
// samples, at most the whole signal. `window_norm` is the largest norm of a stretch of `terms` samples, as
// many as the template has.
XCORR_HD inline double segment_norm(double window_norm, double whole_norm, double terms) {
  return fmin(fmax(2.0, 16.0 / sqrt(terms)) * window_norm, whole_norm);
}

// The same for products of one sign whose sums are cut, not rounded to nearest, as tensor cores do:
// every product may lose in the same direction. For few products rounding counts more.
XCORR_HD inline double cut_bound(double overlap, double absolute, double unit_roundoff) {
  return fmax(definition_bound(overlap, absolute, unit_roundoff),
              systematic_bound(overlap, absolute, unit_roundoff));
}

// What float sums of K squares may lose beside it, relative to the sum. The squares of uniform numbers
// have many small values among them, and a partial sum with last place h loses 0.06 h^1.5 a term on
// average, with numbers in [-1, 1). With h at most 2u times the partial sum that is 0.04 (uK)^1.5 of
// the whole sum; the margin is 2. A sum in one register of 480 x 640 squares reaches 6.8e-5.
XCORR_HD inline double squares_bound(double overlap, double unit_roundoff) {
  const double lost = overlap * unit_roundoff;
  return 0.08 * lost * sqrt(lost);
}

// Relative L2 error of sums. Random rounding errors of a sum of K terms reach 0.3 to 0.6 u sqrt(K).
inline double definition_l2_bound(double overlap, double unit_roundoff) {
  return (0.8 * std::sqrt(overlap) + 4.0) * unit_roundoff;
}

// Relative L2 error of transforms: every pass adds its rounding errors. Published FP32 rows reach
// 0.6 of this bound. With all bins of equal weight, one bin that is wrong by 1 % exceeds the bound
// up to 1024 x 1024.
inline double fft_l2_bound(double log2_points, double unit_roundoff) {
  return (1.2 * log2_points + 4.0) * unit_roundoff;
}

constexpr double kDoubleRoundoff = 0x1p-53;

// What a precision class rounds in a time series, relative to the size of what is rounded.
struct SeriesRoundoff {
  double input;    // each factor of a product, independent of others
  double sum;      // partial sums
  double product;  // the most that a product loses in all
  bool narrow;     // inputs have fewer digits than sums
  bool reduced;    // computed with parts of inputs that have fewer digits
};
// tf32, fp16 and bf16 inputs are added up in float32. 3xtf32 must be as good as float32.
inline SeriesRoundoff series_roundoff(Precision precision, double unit_roundoff) {
  switch (precision) {
    case Precision::fp64:
    case Precision::fp32:
      return {unit_roundoff, unit_roundoff, 0, false, false};
    case Precision::three_tf32:
      return {0x1p-24, 0x1p-24, 0x1p-21, false, true};
    default:
      return {unit_roundoff, 0x1p-24, (2.0 + unit_roundoff) * unit_roundoff, true, true};
  }
}

// The bounds of one comparison: of every element and of every pair. They depend on the kind of
// input, on the algorithm class of the variant, and on how the reference was computed.
struct Bounds {
  Problem problem;
  InputKind kind;
  bool definition;        // the variant computes sums of products
  bool atomic;            // ... and adds parts of them by atomic additions
  bool reference_by_fft;  // the float64 reference was computed by a transform
  bool sums_exact;        // integer inputs are so small that every float32 sum is exact
  bool single;            // scalars are float32
  double u, log2_points;
  // A library may transform several right matrices at once, as parts of one complex array. Each
  // then has rounding errors in proportion to the largest.
  double largest_right_norm;
  double largest_left_norm;  // where one batch transforms both sides, scaled alike; else 0
  bool series;               // Problem::is_time_series
  SeriesRoundoff rounds;
  double largest_segment;  // the largest norm of a segment; largest_right_norm where not `series`

  // Of a pair: the error of the float64 reference itself, the bound of a transform, the error of a
  // reference on squares, and what numbers below the smallest normal one add.
  struct OfPair {
    double reference, transform, squares, tiny;
  };
  // Of a time series `right_norm` is that of a segment (segment_norm).
  XCORR_HD OfPair of_pair(double left_norm, double right_norm) const {
    const double norms = left_norm * right_norm;
    const double largest = fmax(left_norm, largest_left_norm) * largest_segment;
    const double reference =
        reference_by_fft ? fft_bound(log2_points, left_norm, right_norm, kDoubleRoundoff) : 0.0;
    // Sampled outputs, and all outputs of small problems, have a float64 sum as reference.
    const double of_reference = reference + of_sum(norms);
    return {reference, fft_bound(log2_points, 1.0, largest, u) + of_reference + flushed(right_norm),
            reference_by_fft ? fft_bound(log2_points, norms, norms, kDoubleRoundoff) : 0.0,
            series && rounds.reduced ? flushed(right_norm) : 0.0};
  }

  // Whether `absolute` is (L^2 correlated with R^2) instead, the squared norm of the products of an
  // output. Otherwise all products have one sign, or the problem is no time series.
  XCORR_HD bool uses_squares() const {
    return series && definition && !is_exact(kind) && !is_systematic(kind) &&
           (rounds.narrow || !is_same_sign(kind));
  }
  // What the L2 bound adds up.
  XCORR_HD double squared(double absolute) const {
    return uses_squares() ? fmax(absolute, 0.0) : absolute * absolute;
  }

  // The bound of an element. `absolute` is (|L| correlated with |R|) there. 1e300 means no bound.
  XCORR_HD double at(const OfPair& pair, Index element, double absolute) const {
    if (is_exact(kind) && definition) return sums_exact ? 0.0 : 1e300;
    if (is_exact(kind)) return pair.transform < 0.5 ? 0.5 : pair.transform;
    if (!definition) return pair.transform;
    const auto rows = static_cast<double>(rows_of(element));
    const auto cols = static_cast<double>(cols_of(element));
    const double products = fabs(absolute) + pair.reference;
    const double of_sums =
        (series ? of_series(rows * cols, pair, absolute)
                : growth(rows * cols, u + kDoubleRoundoff, products)) +
        (element == element_of_squares() ? squares_bound(rows * cols, u) * products : 0.0);
    return of_sums + pair.reference + denormal(rows, cols) + pair.tiny;
  }

  // NaN is never right; a transform must round to the integer, so exactly a half is wrong.
  XCORR_HD bool right(double error, double bound) const {
    return is_exact(kind) && !definition ? error < bound : error <= bound;
  }

  // The bound of ||out - ref|| of a pair. `reference` is ||ref|| and `absolute` is || |L|
  // correlated with |R| ||, both over the outputs of the pair. 1e300 means no bound: where all
  // outputs are 0 there is no relative error, and outputs of exact inputs are checked to be exact,
  // or to round to the exact value.
  double l2(double reference, double absolute, double left_norm, double right_norm) const {
    if (reference == 0 || is_exact(kind)) return 1e300;
    const auto terms = static_cast<double>(most_terms());
    const auto outputs = static_cast<double>(problem.out_size());
    const auto [own, added] = transform_spread(outputs, left_norm, right_norm);
    const double of_transform = std::max(reference, own) + added;
    // Partial sums may be larger than the sum where products cancel.
    const double norm = uses_squares() ? absolute : absolute / std::sqrt(terms);
    const double of_sums = definition ? std::max(reference, norm) : of_transform;
    const bool one_direction = is_systematic(kind) || has_squares();
    const bool cut = series && rounds.narrow && is_same_sign(kind);
    const auto sums = [&](double roundoff) {
      const double systematic = systematic_bound(terms, 1.0, roundoff);
      const double random = definition_l2_bound(terms, roundoff);
      return of_sums * (one_direction ? systematic : cut ? std::max(systematic, random) : random);
    };
    // Rounded inputs: errors of random sign reach 0.6 u times the norm of the products.
    const auto series_sums = [&] {
      const double inputs = one_direction   ? rounds.product * of_sums
                            : rounds.narrow ? 2.0 * rounds.input * norm
                                            : 0.0;
      return sums(rounds.sum) + inputs;
    };
    const auto transforms = [&](double roundoff) {
      return of_transform * fft_l2_bound(log2_points, roundoff);
    };
    const double own_error = !definition ? transforms(u) : series ? series_sums() : sums(u);
    const double allowed =
        own_error + (reference_by_fft ? transforms(kDoubleRoundoff) : sums(kDoubleRoundoff));
    const double tiny =
        (definition ? denormal(static_cast<double>(most_rows()), static_cast<double>(most_cols()))
                    : flushed(right_norm)) +
        (definition && series && rounds.reduced ? flushed(right_norm) : 0.0);
    const double squares = definition && element_of_squares() >= 0
                               ? squares_bound(terms, u) * left_norm * right_norm
                               : 0.0;
    // With few outputs the error is not close to its average.
    return (1.0 + 8.0 / std::sqrt(outputs)) * allowed + squares + std::sqrt(outputs) * tiny;
  }

  // The L2 norm, over outputs with weights whose squares add up to `weights`, that the relative
  // error of a transform applies to. All weights are 1 where the outputs are not scaled.
  struct Spread {
    double own;    // of the transforms of this pair
    double added;  // of the largest left, where one batch transforms both sides
  };
  Spread transform_spread(double weights, double left_norm, double right_norm) const {
    const auto terms = static_cast<double>(most_terms());
    const auto outputs = static_cast<double>(problem.out_size());
    const double all_outputs = static_cast<double>(problem.left.rows + problem.right.rows - 1) *
                               static_cast<double>(problem.left.cols + problem.right.cols - 1);
    // A transform spreads its errors over all outputs. The outputs of the window have their share
    // of the errors, even where the window holds little of ||ref||. Inputs of one sign, or of signs
    // that alternate, have all their energy in few bins, and their whole result is larger than the
    // product of norms.
    const double bins = has_few_bins(kind) && outputs < all_outputs ? 1.5 * std::sqrt(terms) : 1.0;
    // A batch of all lefts and rights, with sides scaled alike, adds errors of the largest left to the
    // others. A bin that is large in both sides counts with its square. They grow with the root of the
    // larger size. Its one variant pads to lengths that are not smooth: transforms of 2 x 36,335 points
    // (5 x 13^2 x 43) have 1.7 times the errors of smooth ones.
    const double own = left_norm * fmax(largest_right_norm, right_norm);
    const auto larger = static_cast<double>(std::max(problem.left.size(), problem.right.size()));
    const double rough = largest_left_norm > 0 ? 2.0 * own : 0.0;
    const double added = rough + (largest_product(left_norm) - own) *
                                     (2.0 + (is_same_sign(kind) ? std::sqrt(larger) / 8.0 : 0.0));
    const double share = std::sqrt(weights / all_outputs);
    return {share * bins * own, share * bins * added};
  }

  // What numbers below the smallest normal one add to the error of an output.
  XCORR_HD double tiny(Index element, double right_norm) const {
    return definition ? denormal(static_cast<double>(rows_of(element)),
                                 static_cast<double>(cols_of(element)))
                      : flushed(right_norm);
  }
  // Products of an output.
  XCORR_HD double terms_of(Index element) const {
    return static_cast<double>(rows_of(element)) * static_cast<double>(cols_of(element));
  }

 private:
  XCORR_HD Index rows_of(Index element) const {
    if (problem.fields.boundary == Boundary::circular) return problem.left.rows;
    const Index sy = problem.window.sy.first + element / problem.out_cols();
    return overlap(problem.left.rows, problem.right.rows, sy).count;
  }
  XCORR_HD Index cols_of(Index element) const {
    if (problem.fields.boundary == Boundary::circular) return problem.left.cols;
    const Index sx = problem.window.sx.first + element % problem.out_cols();
    return overlap(problem.left.cols, problem.right.cols, sx).count;
  }
  XCORR_HD Index most_rows() const {
    return problem.left.rows < problem.right.rows ? problem.left.rows : problem.right.rows;
  }
  XCORR_HD Index most_cols() const {
    return problem.left.cols < problem.right.cols ? problem.left.cols : problem.right.cols;
  }
  XCORR_HD Index most_terms() const { return most_rows() * most_cols(); }
  XCORR_HD double largest_product(double left_norm) const {
    return fmax(left_norm, largest_left_norm) * largest_right_norm;
  }
  XCORR_HD double of_series(double terms, const OfPair& pair, double absolute) const {
    const double sum = rounds.sum + kDoubleRoundoff;
    if (uses_squares()) {
      const double norm = sqrt(fmax(absolute, 0.0) + pair.squares);
      if (!is_same_sign(kind)) return series_bound(terms, norm, rounds.input, sum);
      // The sum of absolute values is at most sqrt(K) times the norm.
      return series_bound(terms, norm, rounds.input, 0.0) +
             cut_bound(terms, sqrt(terms) * norm, sum);
    }
    const double products = fabs(absolute) + pair.reference;
    // Equal products lose the same.
    return growth(terms, sum, products) + (is_systematic(kind) ? rounds.product * products : 0.0);
  }
  XCORR_HD double growth(double terms, double roundoff, double absolute) const {
    return is_systematic(kind) || has_squares() ? systematic_bound(terms, absolute, roundoff)
                                                : definition_bound(terms, absolute, roundoff);
  }
  // One array twice in float64: at shift 0 the products are squares. Squares of numbers of 24 bits
  // end in 0 or 1 quarter of the last place of their sum, never in 2 or 3, and are rounded down.
  XCORR_HD bool has_squares() const { return problem.fields.same && !single; }
  // One array twice in float32: the output at shift 0, where the window has it; else -1.
  XCORR_HD Index element_of_squares() const {
    const bool in_window = problem.window.sy.has(0) && problem.window.sx.has(0);
    if (!problem.fields.same || !single || !in_window) return -1;
    return -problem.window.sy.first * problem.out_cols() - problem.window.sx.first;
  }
  // Error of a float64 sum, of at most `absolute`, that is the reference.
  XCORR_HD double of_sum(double absolute) const {
    const auto terms = static_cast<double>(most_terms());
    return is_systematic(kind) || problem.fields.same
               ? systematic_bound(terms, absolute, kDoubleRoundoff)
               : 2.0 * sqrt(terms) * kDoubleRoundoff * absolute;
  }
  // A product below the smallest normal number is rounded by up to half of the smallest number. An
  // atomic addition takes a part of a sum that is below the smallest normal number for 0. A part may be
  // one column of a row.
  XCORR_HD double denormal(double rows, double cols) const {
    if (kind != InputKind::subnormal || !single) return 0.0;
    const double parts = atomic ? rows * cols : 0.0;
    return rows * cols * 0x1p-149 + parts * 0x1p-126;
  }
  // Library transforms may take numbers below the smallest normal one for 0. Of the subnormal
  // inputs that is one of 64 elements on the left.
  XCORR_HD double flushed(double right_norm) const {
    return kind == InputKind::subnormal && single ? 4.0 * 0x1p-126 * (right_norm + 1.0) : 0.0;
  }
};

}  // namespace xcorr
