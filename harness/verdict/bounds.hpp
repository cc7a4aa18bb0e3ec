// The error bounds (docs/design.md, Checks), for host and device. They were calibrated once and are
// frozen: a change here changes what "passed" means in every published row.
//
// u (unit_roundoff) is that of the precision class, K (overlap, terms) the number of products of one
// output, N (log2_points) the number of points of a transform, |L| the matrix of absolute values of
// L, and `absolute` an output of |L| correlated with |R|.
//
// Time series (Problem::is_time_series) have bounds of their own, which tell the precision classes
// apart: the norm of a long signal grows with its length, the error of an output does not. For
// variants by sums their bound is in proportion to the norm of the products of an output, for
// variants by transforms to the norm of the segment that a transform reads.
#pragma once

#include <algorithm>
#include <cmath>

#include "harness/problem/inputs.hpp"
#include "harness/problem/problem.hpp"
#include "harness/truth/score.hpp"

namespace xcorr {

// A sum of `overlap` products; `absolute` is (|L| correlated with |R|) at this shift. Rounding
// errors of random products grow with sqrt(K); the margin is 8. The worst case, K u, would let a
// lost row pass at 256 x 256.
XCORR_HD inline double definition_bound(double overlap, double absolute, double unit_roundoff) {
  return (8.0 * sqrt(overlap) + 4.0) * unit_roundoff * absolute;
}

// The same for nearly equal products. Each addition may round in the same direction, by u times a
// partial sum, which is on average half of the sum.
XCORR_HD inline double systematic_bound(double overlap, double absolute, double unit_roundoff) {
  return (0.5 * overlap + 4.0) * unit_roundoff * absolute;
}

// A transform: the error of an output is in proportion to the product of both norms.
XCORR_HD inline double fft_bound(double log2_points, double left_norm, double right_norm,
                                 double unit_roundoff) {
  return 4.0 * unit_roundoff * log2_points * left_norm * right_norm;
}

// A sum of a time series whose products have random signs. `norm` is that of the products, sqrt(sum
// of l^2 r^2). Factors are rounded by up to u, with a margin of 8. Partial sums, which grow with
// the square root of their terms, are rounded by up to half of `sum_roundoff`, with a margin of 12:
// of 69 million outputs of 256 products 8 exceed a margin of 8, those whose partial sums are large
// by chance.
XCORR_HD inline double series_bound(double overlap, double norm, double unit_roundoff,
                                    double sum_roundoff) {
  return norm *
         sqrt(128.0 * unit_roundoff * unit_roundoff + 36.0 * overlap * sum_roundoff * sum_roundoff);
}

// The norm of a segment that a transform of a time series reads: of four times the length of the
// template, or 256 samples, at most the whole signal. `window_norm` is the largest norm of `terms`
// consecutive samples, as many as the template has.
// With `few_outputs`, all outputs read less than a segment, whose norm may exceed that of every
// window. The norm of the whole signal then counts.
XCORR_HD inline double segment_norm(double window_norm, double whole_norm, double terms,
                                    bool few_outputs) {
  if (few_outputs) return whole_norm;
  return fmin(fmax(2.0, 16.0 / sqrt(terms)) * window_norm, whole_norm);
}

// Whether all outputs of a time series together read less than a segment.
inline bool has_few_outputs(const Problem& series) {
  return series.out_cols() + series.left.cols - 1 < std::max<Index>(4 * series.left.cols, 256);
}

// Products of one sign whose sums are cut instead of rounded to nearest, as tensor cores do: every
// product may lose in the same direction. For few products rounding counts more.
XCORR_HD inline double cut_bound(double overlap, double absolute, double unit_roundoff) {
  return fmax(definition_bound(overlap, absolute, unit_roundoff),
              systematic_bound(overlap, absolute, unit_roundoff));
}

// What float sums of K squares may lose in addition, relative to the sum. Squares of uniform
// numbers have many small values among them: a partial sum whose last place is worth h loses 0.06
// h^1.5 a term on average, for numbers in [-1, 1). With h at most 2u times the partial sum that is
// 0.04 (uK)^1.5 of the sum; the margin is 2. One register reaches 6.8e-5 for 480 x 640 squares.
XCORR_HD inline double squares_bound(double overlap, double unit_roundoff) {
  const double lost = overlap * unit_roundoff;
  return 0.08 * lost * sqrt(lost);
}

// Relative L2 error of sums. Random errors of K terms reach 0.3 to 0.6 u sqrt(K).
inline double definition_l2_bound(double overlap, double unit_roundoff) {
  return (0.8 * std::sqrt(overlap) + 4.0) * unit_roundoff;
}

// Relative L2 error of transforms: every pass adds rounding errors. Published FP32 rows reach 0.6
// of this bound. With bins of equal weight, one bin with an error of 1 % exceeds the bound up to
// 1024 x 1024.
inline double fft_l2_bound(double log2_points, double unit_roundoff) {
  return (1.2 * log2_points + 4.0) * unit_roundoff;
}

constexpr double kDoubleRoundoff = 0x1p-53;

// What a precision class rounds in a time series, relative to the rounded number.
struct SeriesRoundoff {
  double input;    // each factor of a product, independently
  double sum;      // partial sums
  double product;  // largest loss of a product
  bool narrow;     // inputs have fewer digits than sums
  bool reduced;    // products use parts of inputs with fewer digits
};
// Products of tf32, fp16 and bf16 are summed in float32. 3xtf32 must be as good as float32.
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

// The bounds of one comparison, for elements and pairs.
struct Bounds {
  Problem problem;
  InputKind kind;
  bool definition;        // the variant computes sums of products
  bool atomic;            // ... and adds parts of them by atomic additions
  bool reference_by_fft;  // the float64 reference was computed by a transform
  bool sums_exact;        // integer inputs are so small that every float32 sum is exact
  bool single;            // scalars are float32
  double u, log2_points;
  // A library may transform several right matrices as parts of one complex array. Each then has
  // rounding errors in proportion to the largest.
  double largest_right_norm;
  double largest_left_norm;  // where one batch transforms both sides, scaled alike; else 0
  double roughness;          // errors of that batch at lengths that are not smooth; else 0
  bool series;               // Problem::is_time_series
  SeriesRoundoff rounds;
  double largest_segment;  // the largest norm of a segment; largest_right_norm where not `series`

  // Of a pair: the error of the float64 reference, the bound of a transform, the error of a
  // reference of squares, and what subnormal numbers add.
  struct OfPair {
    double reference, transform, squares, tiny;
  };
  // For a time series `right_norm` is that of a segment (segment_norm).
  XCORR_HD OfPair of_pair(double left_norm, double right_norm) const {
    const double norms = left_norm * right_norm;
    const double largest = fmax(left_norm, largest_left_norm) * largest_segment;
    const double reference =
        reference_by_fft ? fft_bound(log2_points, left_norm, right_norm, kDoubleRoundoff) : 0.0;
    // Sampled outputs and all outputs of small problems have a float64 sum as reference.
    const double of_reference = reference + of_sum(norms);
    return {reference, fft_bound(log2_points, 1.0, largest, u) + of_reference + flushed(right_norm),
            reference_by_fft ? fft_bound(log2_points, norms, norms, kDoubleRoundoff) : 0.0,
            series && rounds.reduced ? flushed(right_norm) : 0.0};
  }

  // Whether `absolute` is (L^2 correlated with R^2), the squared norm of the products of an output.
  XCORR_HD bool uses_squares() const {
    return series && definition && !is_exact(kind) && !is_systematic(kind) &&
           (rounds.narrow || !is_same_sign(kind));
  }
  // The summand of the L2 bound.
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

  // NaN is never right. An exact output of a transform must round to the integer: an error of 0.5
  // is wrong.
  XCORR_HD bool right(double error, double bound) const {
    return is_exact(kind) && !definition ? error < bound : error <= bound;
  }

  // The bound of ||out - ref|| of a pair. `reference` is ||ref|| and `absolute` is || |L|
  // correlated with |R| || over the outputs of the pair. 1e300 means no bound: outputs that are all
  // 0 have no relative error, and outputs of exact inputs are checked one by one.
  double l2(double reference, double absolute, double left_norm, double right_norm) const {
    if (reference == 0 || is_exact(kind)) return 1e300;
    const auto terms = static_cast<double>(most_terms());
    const auto outputs = static_cast<double>(problem.out_size());
    const auto [own, added] = transform_spread(outputs, left_norm, right_norm);
    const double of_transform = std::max(reference, own) + added;
    // Partial sums exceed the sum where products cancel.
    const double norm = uses_squares() ? absolute : absolute / std::sqrt(terms);
    // Neighbouring outputs of ones share most of a random walk, which may go far and come back.
    const double walk = kind == InputKind::blank ? 2.0 * norm : norm;
    const double of_sums = definition ? std::max(reference, walk) : of_transform;
    const bool one_direction = is_systematic(kind) || has_squares();
    const bool cut = series && rounds.narrow && is_same_sign(kind);
    const auto sums = [&](double roundoff) {
      const double systematic = systematic_bound(terms, 1.0, roundoff);
      const double random = std::max(definition_l2_bound(terms, roundoff),
                                     systematic_bound(equal_products(terms), 1.0, roundoff));
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
    // With few outputs the error may be far from its average.
    return (1.0 + 8.0 / std::sqrt(outputs)) * allowed + squares + std::sqrt(outputs) * tiny;
  }

  // The L2 norm that the relative error of a transform applies to, over outputs whose squared
  // weights sum to `weights`. Weights are 1 where outputs are not scaled.
  struct Spread {
    double own;    // of the transforms of this pair
    double added;  // of the largest left, where one batch transforms both sides
  };
  Spread transform_spread(double weights, double left_norm, double right_norm) const {
    const auto terms = static_cast<double>(most_terms());
    const auto outputs = static_cast<double>(problem.out_size());
    const double all_outputs = static_cast<double>(problem.left.rows + problem.right.rows - 1) *
                               static_cast<double>(problem.left.cols + problem.right.cols - 1);
    // A transform spreads its errors over all outputs; the window gets its share, even where it
    // holds little of ||ref||. Inputs of one sign or of alternating signs have all their energy in
    // few bins, and their whole result exceeds the product of norms.
    const bool few_bins = has_few_bins(kind) || (kind == InputKind::blank && problem.fields.same);
    const double bins = few_bins && outputs < all_outputs ? 1.5 * std::sqrt(terms) : 1.0;
    // A batch of lefts and rights that are scaled alike adds errors of the largest left to all. A
    // bin that is large on both sides counts squared, and these errors grow with the root of the
    // larger size.
    const double own = left_norm * fmax(largest_right_norm, right_norm);
    const auto larger = static_cast<double>(std::max(problem.left.size(), problem.right.size()));
    const double rough = roughness * own;
    const double added = rough + (largest_product(left_norm) - own) *
                                     (2.0 + (is_same_sign(kind) ? std::sqrt(larger) / 8.0 : 0.0));
    const double share = std::sqrt(weights / all_outputs);
    return {share * bins * own, share * bins * added};
  }

  // What subnormal numbers add to the error of an output.
  XCORR_HD double tiny(Index element, double right_norm) const {
    return definition ? denormal(static_cast<double>(rows_of(element)),
                                 static_cast<double>(cols_of(element)))
                      : flushed(right_norm);
  }
  // The number of products of an output.
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
    if (is_systematic(kind) || has_squares()) return systematic_bound(terms, absolute, roundoff);
    return fmax(definition_bound(terms, absolute, roundoff),
                systematic_bound(equal_products(terms), absolute, roundoff));
  }
  // How many equal products lose as much as `terms` products of this kind, where their rounding
  // errors do not average out.
  XCORR_HD double equal_products(double terms) const {
    const bool same = problem.fields.same;
    const bool about_means = centring(problem.fields.score.kind) == Centring::matrix;
    switch (kind) {
      case InputKind::fill:
        // A fifth of the elements have one value and lie on themselves at shift 0. Without a mean
        // that they moved, all others are alike too.
        if (!same) return 0.0;
        if (about_means) return terms;
        return fmin(terms, static_cast<double>(problem.right.size() / 5 + 1));
      case InputKind::outlier:
        return same && about_means ? terms : 0.0;
      case InputKind::flat_spectrum:
        // A chirp times itself or times a mean has few different products: sums of 100 x 100 lose
        // up to 2.1 u sqrt(K).
        return same || about_means ? 6.0 * sqrt(terms) : 0.0;
      default:
        return 0.0;
    }
  }
  // One array twice in float64: the products at shift 0 are squares. Squares of numbers of 24 bits
  // end in 0 or 1 quarter of the last place of their sum, never in 2 or 3, and are rounded down.
  XCORR_HD bool has_squares() const { return problem.fields.same && !single; }
  // The output at shift 0 where left and right are one float32 array; -1 where there is none.
  XCORR_HD Index element_of_squares() const {
    const bool in_window = problem.window.sy.has(0) && problem.window.sx.has(0);
    if (!problem.fields.same || !single || !in_window) return -1;
    return -problem.window.sy.first * problem.out_cols() - problem.window.sx.first;
  }
  // The error of a float64 sum of at most `absolute`, which is the reference.
  XCORR_HD double of_sum(double absolute) const {
    const auto terms = static_cast<double>(most_terms());
    return is_systematic(kind) || problem.fields.same
               ? systematic_bound(terms, absolute, kDoubleRoundoff)
               : 2.0 * sqrt(terms) * kDoubleRoundoff * absolute;
  }
  // A subnormal product is rounded by up to half of the smallest number. An atomic addition takes a
  // subnormal part of a sum, which may be one column of a row, for 0.
  XCORR_HD double denormal(double rows, double cols) const {
    if (kind != InputKind::subnormal || !single) return 0.0;
    const double parts = atomic ? rows * cols : 0.0;
    return rows * cols * 0x1p-149 + parts * 0x1p-126;
  }
  // Transforms of libraries may take subnormal numbers for 0: one of 64 elements on the left.
  XCORR_HD double flushed(double right_norm) const {
    return kind == InputKind::subnormal && single ? 4.0 * 0x1p-126 * (right_norm + 1.0) : 0.0;
  }
};

}  // namespace xcorr
