// ncc and zncc of one overlap by their definition, in float64, on the host and on the device, for
// variants that sum over the pixels of an overlap themselves (docs/design.md, Fields of a problem).
//
// Pixels outside the overlap change no bit of a score: pivot and scale come from the values of the
// overlap alone. constexpr, so that nvcc compiles it for the device too.
#pragma once

#include <cmath>

#include "harness/variant.hpp"

namespace xcorr::device {

// The result of the first pass over an overlap for one side.
struct SideOfOverlap {
  double first = 0, sum = 0, largest = 0;  // sum of value - first; largest |value|

  constexpr void add(double value, bool is_first) {
    if (is_first) first = value;
    sum += value - first;
    const double size = fabs(value);
    largest = size > largest ? size : largest;
  }
  // A power of two that keeps squares from overflow and underflow.
  constexpr double scale() const {
    if (!(largest > 0 && largest <= 0x1.fffffffffffffp1023)) return 1;
    int exponent = 0;
    frexp(largest, &exponent);
    return ldexp(1.0, exponent < -1000 ? 1000 : 1 - exponent);
  }
};

// Whether `squares` is the sum of squares of `count` values that are constant up to rounding.
constexpr bool is_constant(double squares, double largest, double count) {
  const double rounding = 8 * 0x1p-24 * largest;
  return squares <= rounding * rounding * count;
}

// each(use) calls use(l, r) for every pixel of the overlap that is valid in both matrices, with the
// values as doubles, in the same order each time. The score is 0 without pixels, and if a side is
// constant.
template <typename Each>
constexpr double overlap_score(ScoreKind score, const Each& each) {
  double count = 0;
  SideOfOverlap left, right;
  each([&](double l, double r) {
    left.add(l, count == 0);
    right.add(r, count == 0);
    ++count;
  });
  if (count == 0) return 0;
  const bool centred = score == ScoreKind::zncc;
  const double left_pivot = centred ? left.first : 0, right_pivot = centred ? right.first : 0;
  const double share = 1 / count;
  const double left_mean = centred ? left.sum * share : 0;
  const double right_mean = centred ? right.sum * share : 0;
  const double left_scale = left.scale(), right_scale = right.scale();
  double products = 0, left_squares = 0, right_squares = 0;
  each([&](double l, double r) {
    // Two steps: the difference from a value of the overlap loses no digits to an offset.
    const double x = ((l - left_pivot) - left_mean) * left_scale;
    const double y = ((r - right_pivot) - right_mean) * right_scale;
    products += x * y;
    left_squares += x * x;
    right_squares += y * y;
  });
  if (is_constant(left_squares, left.largest * left_scale, count) ||
      is_constant(right_squares, right.largest * right_scale, count)) {
    return 0;
  }
  // Two roots, because the product of the two sums could overflow.
  const double value = products / (sqrt(left_squares) * sqrt(right_squares));
  return value > 1 ? 1 : value < -1 ? -1 : value;
}

}  // namespace xcorr::device
