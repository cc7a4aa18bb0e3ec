// Every score but phase (harness/truth/phase.hpp) in float64 from the definition, for host and
// device (docs/design.md, Fields of a problem).
//
// ncc and zncc use the n elements of the overlap that are valid in both masks.
//   ncc   sum l r / sqrt(sum l^2 sum r^2)
//   zncc  the same after the mean of these elements is subtracted from each side
// The score is 0 where n < min_overlap x (the largest n in the window, of this pair), and where a
// side is constant: S <= (8 x 2^-24 x a)^2 x n, where S is the sum of squares of the side, centred
// for zncc, and a its largest |value| among the same elements. For ncc only zeros are constant in
// practice. Nothing outside the overlap counts. A computed S may fall on the other side of the
// limit, so within a factor of 4 of it both 0 and the score are right.
//
// Means are taken about the first element of the overlap: mean = first + mean(value - first). A
// constant is then its own mean to the bit, and S is exactly 0.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/problem/inputs.hpp"
#include "harness/problem/problem.hpp"

namespace xcorr {

// What is right besides the score: nothing, 0 as well, only 0.
enum class ZeroRule : std::int8_t { no, either, zero };

// The largest error of the sum of products of a normalised score from a transform in float64,
// divided by both norms. Sums with larger errors come from the definition.
inline constexpr double kTransformedScoreError = 1e-9;

struct ScoreElement {
  double value = 0;     // 0 where only 0 is right
  double absolute = 0;  // product, covariance: the sum of |products|
  // ncc, zncc: 1 / (norm of L x norm of R), which multiplies errors of the sum of products.
  double scale = 0;
  double left_squares = 0, right_squares = 0;  // ncc, zncc: of both sides in the overlap
  // ncc, zncc: the norm of the products, sqrt(sum of l^2 r^2), times `scale`; 1, its maximum, where
  // it was not computed.
  double spread = 1;
  double terms = 0;  // elements in the sums
  ZeroRule zero = ZeroRule::no;
};

// The matrices of one pair, dense. A mask is null where all elements are valid.
struct ScorePair {
  const double* left;
  const double* right;
  const std::uint8_t* left_mask;
  const std::uint8_t* right_mask;
  double left_mean, right_mean;  // of the whole matrices, of the valid elements
};

// Calls f(l, r) for each product of one output.
template <typename F>
XCORR_HD void each_product(const Problem& q, const ScorePair& m, Index sy, Index sx, F&& f) {
  const bool wraps = q.fields.boundary == Boundary::circular;
  const Overlap ys = wraps ? Overlap{0, q.left.rows} : overlap(q.left.rows, q.right.rows, sy);
  const Overlap xs = wraps ? Overlap{0, q.left.cols} : overlap(q.left.cols, q.right.cols, sx);
  for (Index y = ys.first; y < ys.first + ys.count; ++y) {
    const Index l = y * q.left.cols;
    const Index r = (wraps ? wrapped(y, sy, q.right.rows) : y + sy) * q.right.cols;
    const auto columns = [&](Index first, Index count, Index shift) {
      for (Index x = first; x < first + count; ++x) {
        if (m.left_mask && !m.left_mask[l + x]) continue;
        if (m.right_mask && !m.right_mask[r + x + shift]) continue;
        f(m.left[l + x], m.right[r + x + shift]);
      }
    };
    if (!wraps) {
      columns(xs.first, xs.count, sx);
    } else {  // before and behind the end of a row of R
      const Index start = wrapped(0, sx, q.right.cols), before = q.right.cols - start;
      columns(0, before, start);
      columns(before, start, -before);
    }
  }
}

// The rule for a side with sum of squares `squares` and largest |value| `largest`.
XCORR_HD inline ZeroRule zero_rule(double squares, double largest, double terms) {
  const double step = 8 * 0x1p-24 * largest, limit = step * step * terms;
  if (squares <= limit / 4) return ZeroRule::zero;
  return squares <= 4 * limit ? ZeroRule::either : ZeroRule::no;
}

// The score from its three sums, with both zero rules.
XCORR_HD inline ScoreElement normalised(double products, double left_squares, double right_squares,
                                        double terms, ZeroRule left, ZeroRule right) {
  ScoreElement e;
  e.terms = terms;
  e.zero = left > right ? left : right;
  if (e.zero == ZeroRule::zero) return e;
  e.scale = 1 / (sqrt(left_squares) * sqrt(right_squares));
  e.left_squares = left_squares;
  e.right_squares = right_squares;
  e.value = fmin(1.0, fmax(-1.0, products * e.scale));
  return e;
}

// The output at one shift, without the rule of the least overlap, which needs all shifts.
XCORR_HD inline ScoreElement score_element(const Problem& q, const ScorePair& m, Index sy,
                                           Index sx) {
  const ScoreKind kind = q.fields.score.kind;
  if (!is_normalised(kind)) {
    const bool centred = centring(kind) == Centring::matrix;
    const double left_mean = centred ? m.left_mean : 0, right_mean = centred ? m.right_mean : 0;
    ScoreElement e;
    each_product(q, m, sy, sx, [&](double l, double r) {
      const double product = (l - left_mean) * (r - right_mean);
      e.value += product;
      e.absolute += fabs(product);
      e.terms += 1;
    });
    return e;
  }
  const bool centred = centring(kind) == Centring::overlap;
  double n = 0, left_first = 0, right_first = 0, left_sum = 0, right_sum = 0;
  each_product(q, m, sy, sx, [&](double l, double r) {
    if (n == 0 && centred) left_first = l, right_first = r;
    n += 1;
    left_sum += l - left_first;
    right_sum += r - right_first;
  });
  ScoreElement none;
  none.zero = ZeroRule::zero;
  if (n == 0) return none;
  const double left_mean = centred ? left_sum / n : 0, right_mean = centred ? right_sum / n : 0;
  double products = 0, left_squares = 0, right_squares = 0, left_largest = 0, right_largest = 0;
  double product_squares = 0;
  each_product(q, m, sy, sx, [&](double l, double r) {
    const double a = l - left_first - left_mean, b = r - right_first - right_mean;
    products += a * b;
    product_squares += a * b * (a * b);
    left_squares += a * a;
    right_squares += b * b;
    left_largest = fmax(left_largest, fabs(l));
    right_largest = fmax(right_largest, fabs(r));
  });
  ScoreElement e =
      normalised(products, left_squares, right_squares, n, zero_rule(left_squares, left_largest, n),
                 zero_rule(right_squares, right_largest, n));
  e.spread = fmin(1.0, sqrt(product_squares) * e.scale);
  return e;
}

// The rule of the least overlap; `most` is the largest `terms` of the pair.
XCORR_HD inline void apply_least_overlap(ScoreElement& e, double min_overlap, double most) {
  if (e.terms >= min_overlap * most && e.terms > 0) return;
  const double terms = e.terms;
  e = {};
  e.terms = terms;
  e.zero = ZeroRule::zero;
}

// The same for all elements of a pair. A second application changes nothing.
inline void apply_least_overlap(ScoreElement* elements, Index size, double min_overlap) {
  double most = 0;
  for (Index e = 0; e < size; ++e) most = fmax(most, elements[e].terms);
  for (Index e = 0; e < size; ++e) apply_least_overlap(elements[e], min_overlap, most);
}

// Of the valid elements of one matrix.
struct MatrixFacts {
  double mean = 0, norm = 0, centred_norm = 0;
  double largest = 0;  // |value|
};

// The inputs of a problem in float64: dense stacks, [lefts][rows][cols] and [rights][rows][cols].
// Masks are empty for sides without one.
struct ScoreInputs {
  std::vector<double> left, right;
  std::vector<std::uint8_t> left_mask, right_mask;
  std::vector<MatrixFacts> left_facts, right_facts;  // of each matrix

  // Fills the facts from the stacks.
  void find_facts(const Problem& problem);
  ScorePair pair(const Problem& problem, Index p) const;
};

// The pairs [first, first + count), every score but phase.
void score_definition(const Problem& problem, const ScoreInputs& inputs, Index first, Index count,
                      ScoreElement* out);

// One element; `most` is the largest number of terms of the pair.
ScoreElement score_at(const Problem& problem, const ScoreInputs& inputs, Index pair, Index row,
                      Index col, double most);

}  // namespace xcorr
