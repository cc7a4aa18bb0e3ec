// The error bounds of scores (docs/design.md, Checks), for host and device, frozen like those of
// products (bounds.hpp).
#pragma once

#include <algorithm>
#include <cmath>

#include "harness/problem/inputs.hpp"
#include "harness/problem/problem.hpp"
#include "harness/truth/score.hpp"
#include "harness/verdict/bounds.hpp"

namespace xcorr {

// Phase correlation: the error of a bin of the whitened cross spectrum. `left` and `right` are the
// sizes of the bin in both spectra, with errors `left_error` and `right_error`; `smallest` is what
// a product may lose below the smallest normal number. The error of the cross spectrum is divided
// like the bin, by `magnitude`^(1 - p), and is at most twice the largest value of the bin.
inline double phase_bin_error(double left, double right, double left_error, double right_error,
                              double smallest, double magnitude, double exponent) {
  const double error =
      left_error * right + right_error * left + left_error * right_error + smallest;
  return std::min(error / std::pow(magnitude, 1 - exponent),
                  2.0 * std::pow(magnitude + error, exponent));
}
// The error of a bin relative to the norm of the input of a transform. FFTW in float32 with 4 x 4
// to 512 x 512 points stays within 0.7 of the resulting bound of an output and 0.9 of the L2 bound.
inline double phase_roundoff(double log2_points, double unit_roundoff) {
  return 0.6 * log2_points * unit_roundoff + unit_roundoff;
}

// The largest error of any ncc or zncc, which lie between -1 and 1. A slowly drifting mean must not
// cost digits, which a bound on the norm of a whole signal would allow: means are removed before
// anything is rounded. Transforms of whole matrices may lose as much as classes of few digits. The
// rows of views follow each other in one array: its mean drifts within them, but has steps between
// them, which no line near a part of a signal follows.
inline double largest_score_error(const Problem& problem, InputKind kind, Precision precision,
                                  double unit_roundoff, bool definition) {
  if (kind != InputKind::drift || problem.fields.views != Views::dense) return 2.0;
  Problem plain = problem;
  plain.fields = {};
  if (!definition && !plain.is_time_series()) return 3e-4;
  return series_roundoff(precision, unit_roundoff).narrow ? 3e-4 : 1e-5;
}

// The standard deviation of the noise of inputs of kind `drift`, uniform in [-1, 1).
constexpr double kNoiseOfDrift = 0.577350269;

// The bounds of the surfaces of all scores (docs/design.md, Fields of a problem).
struct ScoreBounds {
  // Of the sums of products, with norms of the matrices; for covariance and zncc norms without
  // means, where any data are zero-mean.
  Bounds sums;
  // largest_score_error, which caps all other bounds of a score.
  double largest_error;
  // Inputs have few different values, also without their means: whole numbers, matrices of one
  // value. Elements of equal value are rounded alike.
  bool few_values;

  struct OfPair {
    Bounds::OfPair sums;
    double left_norm, right_norm;  // of `sums`
    // Covariance: what the rounding of the float64 means adds to a sum of products.
    double means;
    double phase;  // root mean square of the error that an output of phase correlation may have
  };

  OfPair of_pair(const MatrixFacts& left, const MatrixFacts& right, double phase) const {
    const bool centred = is_centred();
    const double l = centred ? left.centred_norm : left.norm,
                 r = centred ? right.centred_norm : right.norm;
    OfPair pair{sums.of_pair(l, r), l, r, 0, phase};
    if (centring(sums.problem.fields.score.kind) == Centring::matrix) {
      // A mean of N elements has N roundings, relative to the size of the elements.
      const auto error = [](const MatrixFacts& of, Index size) {
        const auto n = static_cast<double>(size);
        return (0.5 * n + 8.0) * kDoubleRoundoff * of.norm / std::sqrt(n);
      };
      const double left_error = error(left, sums.problem.left.size()),
                   right_error = error(right, sums.problem.right.size());
      const auto terms = static_cast<double>(sums.problem.max_overlap());
      pair.means =
          std::sqrt(terms) * (left_error * r + right_error * l) + terms * left_error * right_error;
    }
    return pair;
  }

  XCORR_HD bool is_centred() const { return xcorr::is_centred(sums.problem.fields.score.kind); }

  XCORR_HD double at(const OfPair& pair, Index element, const ScoreElement& e) const {
    const ScoreKind kind = sums.problem.fields.score.kind;
    if (kind == ScoreKind::phase) return 8.0 * pair.phase + 4.0 * sums.u * fabs(e.value);
    if (!is_normalised(kind)) {
      // Elements are rounded about a number near them, not always the mean of the matrix. All of a
      // few elements may lie nearer to that mean.
      const double terms = sums.terms_of(element);
      const bool centred = centring(kind) == Centring::matrix;
      const double typical = centred && terms <= 16
                                 ? sqrt(terms) *
                                       root_mean_square(pair.left_norm, sums.problem.left) *
                                       root_mean_square(pair.right_norm, sums.problem.right)
                                 : 0.0;
      return sums.at(pair.sums, element, fmax(e.absolute, typical)) + pair.means;
    }
    if (e.zero == ZeroRule::zero) return 0.0;
    const double of_products =
        sums.definition ? (sums.rounds.reduced ? reduced_score(pair, e)
                                               : definition_score(e.terms, steepness(pair, e))) +
                              fmin(pair.sums.reference * e.scale, kTransformedScoreError)
                        : 16.0 * sums.u + pair.sums.transform * e.scale;
    // Errors of few coarse products do not cancel.
    const bool coarse = sums.rounds.narrow || !sums.definition;
    const double few = coarse && e.terms < 64 ? sqrt(64 / e.terms) : 1.0;
    // Two or three elements often deviate far less than the elements of the tile in which a
    // transform rounds.
    const double small = coarse && e.terms < 4 ? 16 / (e.terms * e.terms) : 1.0;
    // A window of few samples may deviate far less than the noise about the drift, and what is
    // rounded is the noise.
    const double quiet =
        coarse ? fmax(1.0, kNoiseOfDrift * sqrt(e.terms * e.left_squares) * e.scale) : 1.0;
    return fmin(largest_error * few * small * quiet,
                of_products + of_squares(pair, e) + sums.tiny(element, pair.right_norm) * e.scale);
  }

  XCORR_HD bool right(double error, double bound) const {
    return is_sum() ? sums.right(error, bound) : error <= bound;
  }
  // Whether a transform may give NaN for a score: where its tile has numbers that leave no digit of
  // the score, whose bound then allows any value.
  XCORR_HD bool may_be_no_number(double bound) const {
    return !is_sum() && !sums.definition && bound >= 2;
  }

  // The bound of ||out - ref|| of a pair. `weight` is the L2 norm over the outputs of
  // ScoreElement::absolute for sums of products, and of ScoreElement::scale for scores. `scores` is
  // the number of outputs that no rule sets to 0.
  double l2(double reference, double weight, double scores, const OfPair& pair,
            const MatrixFacts& left, const MatrixFacts& right) const {
    const ScoreKind kind = sums.problem.fields.score.kind;
    const auto outputs = static_cast<double>(sums.problem.out_size());
    if (reference == 0) return 1e300;
    // The error of few outputs may be far from its average. A score of 0 by a rule has none.
    const double few = 1.0 + 8.0 / std::sqrt(is_normalised(kind) ? std::max(1.0, scores) : outputs);
    if (kind == ScoreKind::phase) {
      return few * 1.5 * pair.phase * std::sqrt(outputs) + 4.0 * sums.u * reference;
    }
    const double l = is_centred() ? left.centred_norm : left.norm,
                 r = is_centred() ? right.centred_norm : right.norm;
    if (!is_normalised(kind)) {
      // Products of few different values are rounded alike: sums of 9,472 whole numbers about their
      // mean reach 4 times the error of random ones, sparse ones in a long sum 8 times.
      const double alike = few_values && sums.definition ? 10.0 : 1.0;
      return alike * sums.l2(reference, weight, l, r) + std::sqrt(outputs) * pair.means;
    }
    // float64: each output has its share of the errors of whole matrices (of_squares).
    if (!sums.single) return 1e300;
    const auto terms = static_cast<double>(sums.problem.max_overlap());
    const double tiny = weight * sums.tiny(sums.problem.out_size() / 2, r);
    if (!sums.definition) {
      const auto [own, added] = sums.transform_spread(weight * weight, l, r);
      // Data of one sign or with a run of one value have most of their energy in few bins, where
      // small overlaps have large weights; the most where half of the data are 1e4 times the
      // others.
      const double weighed = two_modes() ? 6.0 * own : has_few_bins(sums.kind) ? 2.0 * own : own;
      const double of_transform = std::max(reference, weighed + added);
      return few * (fft_l2_bound(sums.log2_points, sums.u + kDoubleRoundoff) * of_transform +
                    8.0 * sums.u * reference) +
             tiny;
    }
    const double of_sums = std::max(reference, std::sqrt(scores / terms));
    const double u = sums.rounds.reduced ? sums.rounds.sum : sums.u;
    const double one_direction = is_rounded_alike() ? sums.rounds.product : 0.0;
    // Samples of a mode are rounded alike.
    const double alike = two_modes() ? 2.0 : is_centred() ? 1.5 : 1.0;
    const double inputs = sums.rounds.reduced ? 2.0 * sums.rounds.input * weight * l *
                                                    root_mean_square(r, sums.problem.right) * alike
                                              : 0.0;
    const double random =
        few *
        ((definition_l2_bound(terms, u + kDoubleRoundoff) + 8.0 * u + one_direction) * of_sums +
         inputs);
    // Equal products are rounded alike in all outputs, so that no average is below the largest.
    // Signs that alternate keep them equal without their means.
    const bool centred = is_centred() && sums.kind != InputKind::alternating;
    const bool equal = is_one_direction() && !centred && !sums.rounds.reduced;
    // Scores far above those of noise are sums of products of one sign.
    const double matched = std::max(0.0, reference - 2.0 * std::sqrt(scores / terms));
    return std::max(random, equal ? definition_score(terms) * of_sums : 0.0) +
           (sums.rounds.reduced ? cut_score(terms, matched) : 0.0) + tiny +
           weight * pair.sums.reference;
  }

 private:
  XCORR_HD bool is_sum() const {
    const ScoreKind kind = sums.problem.fields.score.kind;
    return !is_normalised(kind) && kind != ScoreKind::phase;
  }
  // A float64 variant may take sums of squares from integral images or transforms of whole
  // matrices. Their errors are in proportion to the squares of the whole matrix, which are large
  // beside those of a small or even overlap. Other classes keep such sums in float64, so that these
  // errors are far below their own. A definition must notice a sum that lost its digits: an outlier
  // costs overlaps without it at most 2^-28.
  XCORR_HD double of_squares(const OfPair& pair, const ScoreElement& e) const {
    if (sums.single) return 0.0;
    const double lost = 64.0 * kDoubleRoundoff *
                        (pair.left_norm * pair.left_norm / e.left_squares +
                         pair.right_norm * pair.right_norm / e.right_squares);
    return sums.definition ? fmin(lost, 0x1p-28) : lost;
  }
  // A sum of n products of at most 1 in total, divided by two norms.
  XCORR_HD double definition_score(double n, double steep = 1.0) const {
    return (8.0 * sqrt(n) * steep + 24.0) * (sums.u + kDoubleRoundoff);
  }
  // All of a few elements may lie far from the number about which the elements near them are
  // rounded, and deviate little from each other. At most 4: what is rounded about a number of the
  // whole matrix loses more.
  XCORR_HD double steepness(const OfPair& pair, const ScoreElement& e) const {
    if (!is_centred() || e.terms > 16) return 1.0;
    const double left =
        root_mean_square(pair.left_norm, sums.problem.left) / sqrt(e.left_squares / e.terms);
    const double right =
        root_mean_square(pair.right_norm, sums.problem.right) / sqrt(e.right_squares / e.terms);
    return fmin(4.0, fmax(1.0, fmax(left, right)));
  }
  // The same in a class that rounds factors more than sums, as series_bound; norms and the division
  // have float32's rounding. A side is rounded about one number for many outputs, such as the mean
  // of a part of the signal. So what is rounded may exceed the elements of the overlap (ncc) or
  // their deviations from the mean (zncc) by the spread of the whole matrix.
  XCORR_HD double reduced_score(const OfPair& pair, const ScoreElement& e) const {
    const SeriesRoundoff& rounds = sums.rounds;
    const double sum = rounds.sum + kDoubleRoundoff;
    const double offset =
        sqrt(e.left_squares) * root_mean_square(pair.right_norm, sums.problem.right) * e.scale;
    const double norm = sqrt(e.spread * e.spread + offset * offset);
    return series_bound(e.terms, norm, rounds.input, sum) + 16.0 * sum +
           cut_score(e.terms, fabs(e.value)) +
           (is_same_sign(sums.kind) ? definition_bound(e.terms, 1.0, sum) : 0.0) +
           (is_rounded_alike() ? rounds.product : 0.0);
  }
  // Tensor cores cut their sums instead of rounding them. The products of a score near 1 or -1 have
  // one sign, so that a sum of n of them loses the same way with each of n / 8 instructions, on
  // average half of a last place of half of the sum; the margin is 2.
  XCORR_HD double cut_score(double n, double value) const {
    return 0.25 * n * (sums.rounds.sum + kDoubleRoundoff) * value;
  }
  XCORR_HD bool two_modes() const { return sums.kind == InputKind::bimodal; }
  XCORR_HD bool is_one_direction() const { return is_systematic(sums.kind) || few_values; }
  // Both factors of a product have the same rounding error: so does every element with itself.
  XCORR_HD bool is_rounded_alike() const { return is_one_direction() || sums.problem.fields.same; }
  // Of the elements of a matrix.
  XCORR_HD static double root_mean_square(double norm, const Shape& shape) {
    return norm / sqrt(static_cast<double>(shape.size()));
  }
};

}  // namespace xcorr
