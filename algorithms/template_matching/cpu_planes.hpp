// What the CPU variants of the family compute from one matrix before they correlate it: float64
// planes, in which view, mask, scale and mean are resolved.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "algorithms/blocks/call_side.hpp"
#include "harness/variant.hpp"

namespace xcorr::template_matching {

// A part of a matrix: `rows` x `cols` elements from (y, x) on.
struct Part {
  Index y, x, rows, cols;
};

// Dense planes of a part, row-major. `values` is 0 if a pixel is not valid; `valid` is 1 or 0;
// `squares` has the squares of `values`.
enum Plane { kValues, kValid, kSquares, kPlanes };
struct Planes {
  double* plane[kPlanes];  // null: not needed
};

// Calls use(offset in the planes, whether the pixel is valid).
template <typename T, typename Use>
void each_pixel(const device::CallSide<T>& side, Index i, Part part, const Use& use) {
  for (Index y = 0; y < part.rows; ++y) {
    const std::uint8_t* mask = side.mask_row(i, part.y + y);
    const Index first = y * part.cols;
    if (!mask) {
      for (Index x = 0; x < part.cols; ++x) use(first + x, true);
    } else {
      for (Index x = 0; x < part.cols; ++x) use(first + x, mask[part.x + x] != 0);
    }
  }
}

// How values follow from pixels: value = pixel * 2^-exponent - pivot.
struct Facts {
  int exponent;          // 0 if the score depends on a factor
  double pivot;          // the mean of the valid pixels, or 0
  double count;          // number of valid pixels
  double largest;        // max |value|
  double largest_pixel;  // max |value + pivot|, for the rule of constant sides (docs/design.md)
};

// The sum of term(i), and the largest size(i), over i < n, in lanes that are independent of each
// other.
template <typename Term>
double sum_of(Index n, const Term& term) {
  constexpr Index kLanes = 8;
  double lanes[kLanes] = {};
  Index i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (Index k = 0; k < kLanes; ++k) lanes[k] += term(i + k);
  }
  for (; i < n; ++i) lanes[0] += term(i);
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
         ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}
template <typename Size>
double largest_of(Index n, const Size& size) {
  constexpr Index kLanes = 8;
  double lanes[kLanes] = {};
  Index i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (Index k = 0; k < kLanes; ++k) {
      const double one = size(i + k);
      lanes[k] = one > lanes[k] ? one : lanes[k];
    }
  }
  for (; i < n; ++i) lanes[0] = std::max(lanes[0], size(i));
  return *std::max_element(lanes, lanes + kLanes);
}

// Values are the pixels divided by a power of two, so that products of float32 neither overflow nor
// underflow, and less their mean if `score` is centred. Each part has its pivot, so that neither an
// offset that drifts through the matrix nor an outlier elsewhere in it costs digits.
template <typename T>
Facts copy_part(const device::CallSide<T>& side, Index i, Part part, ScoreKind score,
                const Planes& to) {
  Facts facts{};
  double* values = to.plane[kValues];
  const Index pixels = part.rows * part.cols;
  facts.count = static_cast<double>(pixels);
  for (Index y = 0; y < part.rows; ++y) {
    const T* row = side.row(i, part.y + y) + part.x;
    for (Index x = 0; x < part.cols; ++x) {
      values[y * part.cols + x] = static_cast<double>(row[x]);
    }
  }
  if (to.plane[kValid]) {
    double* valid = to.plane[kValid];
    each_pixel(side, i, part, [&](Index k, bool is) { valid[k] = is ? 1 : 0; });
    // A product would not do: an invalid pixel may be NaN.
    for (Index k = 0; k < pixels; ++k) values[k] = valid[k] != 0 ? values[k] : 0;
    facts.count = sum_of(pixels, [&](Index k) { return valid[k]; });
  }
  const bool normalised = is_normalised(score);
  if (normalised) {
    const double largest = largest_of(pixels, [&](Index k) { return std::abs(values[k]); });
    if (largest > 0 && std::isfinite(largest)) facts.exponent = std::ilogb(largest);
    facts.largest_pixel = std::ldexp(largest, -facts.exponent);
  }
  const double scale = std::ldexp(1.0, -facts.exponent);
  if (is_centred(score) && facts.count > 0) {
    facts.pivot = sum_of(pixels, [&](Index k) { return values[k] * scale; }) / facts.count;
  }
  const auto subtract = [&](double number, double factor) {
    const double* valid = to.plane[kValid];
    if (valid) {
      for (Index k = 0; k < pixels; ++k) {
        values[k] = valid[k] != 0 ? values[k] * factor - number : 0;
      }
    } else {
      for (Index k = 0; k < pixels; ++k) values[k] = values[k] * factor - number;
    }
  };
  subtract(facts.pivot, scale);
  // In float64 the rounding error of the mean matters too. It is the mean of the remaining values.
  if (sizeof(T) == sizeof(double) && facts.pivot != 0) {
    subtract(sum_of(pixels, [&](Index k) { return values[k]; }) / facts.count, 1);
  }
  if (normalised) {
    facts.largest = largest_of(pixels, [&](Index k) { return std::abs(values[k]); });
  }
  if (to.plane[kSquares]) {
    for (Index k = 0; k < pixels; ++k) to.plane[kSquares][k] = values[k] * values[k];
  }
  return facts;
}

}  // namespace xcorr::template_matching
