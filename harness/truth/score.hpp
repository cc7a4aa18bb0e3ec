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

// Calls f(l, r, count) for each run of `count` products of one output: left elements from l on times right ones from r on.
// Masks are for f.
template <typename F>
XCORR_HD void each_run(const Problem& q, Index sy, Index sx, F&& f) {
  const bool wraps = q.fields.boundary == Boundary::circular;
  const Overlap ys = wraps ? Overlap{0, q.left.rows} : overlap(q.left.rows, q.right.rows, sy);
  const Overlap xs = wraps ? Overlap{0, q.left.cols} : overlap(q.left.cols, q.right.cols, sx);
  for (Index y = ys.first; y < ys.first + ys.count; ++y) {
    const Index l = y * q.left.cols;
    const Index r = (wraps ? wrapped(y, sy, q.right.rows) : y + sy) * q.right.cols;
    const auto columns = [&](Index first, Index count, Index shift) {
      f(l + first, r + first + shift, count);
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

// Whether masks let the product of a left and a right element count.
XCORR_HD inline bool counts(const ScorePair& m, Index l, Index r) {
  return (!m.left_mask || m.left_mask[l]) && (!m.right_mask || m.right_mask[r]);
}

// Calls f(l, r, lane) for each product of one output, and returns their number. Sums have a lane for every fourth product,
// since an addition waits for the one before it; where there are masks, and on a GPU, all products are in lane 0.
#ifdef __CUDA_ARCH__
inline constexpr int kLanes = 1;
#else
inline constexpr int kLanes = 4;
#endif
template <typename F>
XCORR_HD double each_product_of_lane(const Problem& q, const ScorePair& m, Index sy, Index sx,
                                     F&& f) {
  double number = 0;
  each_run(q, sy, sx, [&](Index l, Index r, Index count) {
    Index i = 0;
    if (m.left_mask || m.right_mask) {
      for (; i < count; ++i) {
        if (!counts(m, l + i, r + i)) continue;
        f(m.left[l + i], m.right[r + i], 0);
        number += 1;
      }
      return;
    }
    number += static_cast<double>(count);
    for (; i + kLanes <= count; i += kLanes) {
      for (int lane = 0; lane < kLanes; ++lane) {
        f(m.left[l + i + lane], m.right[r + i + lane], lane);
      }
    }
    for (; i < count; ++i) f(m.left[l + i], m.right[r + i], 0);
  });
  return number;
}
// Calls f(l, r) for each product of one output.
template <typename F>
XCORR_HD void each_product(const Problem& q, const ScorePair& m, Index sy, Index sx, F&& f) {
  each_product_of_lane(q, m, sy, sx, [&](double l, double r, int /*lane*/) { f(l, r); });
}

// The factors of the first product of one output, where there is one.
XCORR_HD inline void find_first_product(const Problem& q, const ScorePair& m, Index sy, Index sx,
                                        double& left, double& right) {
  bool found = false;
  each_run(q, sy, sx, [&](Index l, Index r, Index count) {
    for (Index i = 0; !found && i < count; ++i) {
      if (!counts(m, l + i, r + i)) continue;
      left = m.left[l + i];
      right = m.right[r + i];
      found = true;
    }
  });
}

// A sum in lanes.
struct Lanes {
  double of[kLanes] = {};
  XCORR_HD double sum() const {
    double total = 0;
    for (const double one : of) total += one;
    return total;
  }
  XCORR_HD double largest() const {
    double found = 0;
    for (const double one : of) found = one > found ? one : found;
    return found;
  }
};

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
    Lanes value, absolute;
    ScoreElement e;
    e.terms = each_product_of_lane(q, m, sy, sx, [&](double l, double r, int lane) {
      const double product = (l - left_mean) * (r - right_mean);
      value.of[lane] += product;
      absolute.of[lane] += fabs(product);
    });
    e.value = value.sum();
    e.absolute = absolute.sum();
    return e;
  }
  const bool centred = centring(kind) == Centring::overlap;
  double left_first = 0, right_first = 0;
  if (centred) find_first_product(q, m, sy, sx, left_first, right_first);
  Lanes left_sum, right_sum;
  const double n = each_product_of_lane(q, m, sy, sx, [&](double l, double r, int lane) {
    left_sum.of[lane] += l - left_first;
    right_sum.of[lane] += r - right_first;
  });
  ScoreElement none;
  none.zero = ZeroRule::zero;
  if (n == 0) return none;
  const double left_mean = centred ? left_sum.sum() / n : 0,
               right_mean = centred ? right_sum.sum() / n : 0;
  Lanes of_products, of_product_squares, of_left, of_right, left_sizes, right_sizes;
  each_product_of_lane(q, m, sy, sx, [&](double l, double r, int lane) {
    const double a = l - left_first - left_mean, b = r - right_first - right_mean;
    of_products.of[lane] += a * b;
    of_product_squares.of[lane] += a * b * (a * b);
    of_left.of[lane] += a * a;
    of_right.of[lane] += b * b;
    left_sizes.of[lane] = left_sizes.of[lane] > fabs(l) ? left_sizes.of[lane] : fabs(l);
    right_sizes.of[lane] = right_sizes.of[lane] > fabs(r) ? right_sizes.of[lane] : fabs(r);
  });
  const double products = of_products.sum(), product_squares = of_product_squares.sum();
  const double left_squares = of_left.sum(), right_squares = of_right.sum();
  const double left_largest = left_sizes.largest(), right_largest = right_sizes.largest();
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
