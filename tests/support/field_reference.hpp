// The fields of a problem (docs/design.md, Fields of a problem) by loops over pixels in long double, for tests that hold
// variants to less than conformance does.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <functional>
#include <numbers>
#include <vector>

#include "harness/problem/inputs.hpp"
#include "harness/problem/views.hpp"
#include "harness/variant.hpp"
#include "tests/support/problems.hpp"

namespace xcorr {

constexpr std::uint64_t kFieldSeed = 7;
inline bool three_of_four(Side side, Index index) { return mask_value(kFieldSeed, side, index); }

// One side of a problem as a call gets it: the array behind the view, and the mask, empty where there is none.
struct FieldInput {
  FieldInput(const Problem& q, Side side, const std::function<double(Side, Index)>& fill,
             bool (*mask_of)(Side, Index) = three_of_four)
      : layout(view_layout(q, side, kFieldSeed)), shape(side == Side::left ? q.left : q.right) {
    const bool left = side == Side::left;
    for (Index k = 0; k < layout.elements; ++k) array.push_back(fill(side, k));
    if (!(left ? masks_left(q.fields.masks) : masks_right(q.fields.masks))) return;
    for (Index k = 0; k < (left ? q.left_elements() : q.right_elements()); ++k) {
      mask.push_back(mask_of(side, k));
    }
  }

  // Of element `e` of matrix `i`: its place in the array, its value, and whether the mask has it.
  std::size_t at(Index i, Index e) const {
    return static_cast<std::size_t>(
        layout.offsets.empty() ? i * shape.size() + e
                               : layout.row(i, e / shape.cols, shape.rows) + e % shape.cols);
  }
  long double value(Index i, Index e) const { return array.at(at(i, e)); }
  bool valid(Index i, Index e) const {
    return mask.empty() || mask[static_cast<std::size_t>(i * shape.size() + e)];
  }
  template <typename Use>
  void each(Index i, const Use& use) const {
    for (Index e = 0; e < shape.size(); ++e) use(value(i, e), valid(i, e));
  }
  // Of the valid elements of a matrix.
  long double mean(Index i) const {
    long double sum = 0, count = 0;
    each(i, [&](long double value, bool is_valid) {
      if (is_valid) sum += value, count += 1;
    });
    return count > 0 ? sum / count : 0;
  }
  // Of all elements of a matrix less `pivot`.
  double norm(Index i, long double pivot) const {
    long double sum = 0;
    each(i, [&](long double value, bool) { sum += (value - pivot) * (value - pivot); });
    return static_cast<double>(std::sqrt(sum));
  }
  View view() const {
    return {layout.offsets.empty() ? nullptr : layout.offsets.data(), layout.pitch};
  }
  const std::uint8_t* mask_data() const { return mask.empty() ? nullptr : mask.data(); }

  ViewLayout layout;
  Shape shape;
  std::vector<double> array;
  std::vector<std::uint8_t> mask;
};

// A call on arrays that hold what the inputs hold. The caller sets its output.
inline Call call_of(const FieldInput& left, const void* left_array, const FieldInput& right,
                    const void* right_array) {
  return {.left = left_array,
          .right = right_array,
          .left_mask = left.mask_data(),
          .right_mask = right.mask_data(),
          .left_view = left.view(),
          .right_view = right.view()};
}

// An output, the sum of its absolute products, and the product of the norms of the pair. Both are 1 for ratios and phase.
struct FieldValue {
  double value, scale = 1, norms = 1;
};

// One pair: the pixels that meet at a shift, and their score.
class FieldReference {
 public:
  FieldReference(const Problem& q, const FieldInput& left, const FieldInput& right, Pair pair)
      : q_(q), left_(left), right_(right), pair_(pair) {}

  // All outputs, in the order of a surface.
  std::vector<FieldValue> values() const {
    std::vector<FieldValue> found;
    if (q_.fields.score.kind == ScoreKind::phase) {
      const Waves phases = weighted_phases();
      each_shift(q_, [&](Index sy, Index sx) { found.push_back({phase(phases, sy, sx)}); });
      return found;
    }
    std::vector<Pixels> all;
    std::size_t most = 0;
    each_shift(q_, [&](Index sy, Index sx) {
      all.push_back(meeting(sy, sx));
      most = std::max(most, all.back().left.size());
    });
    for (const Pixels& pixels : all) found.push_back(score(pixels, most));
    return found;
  }

 private:
  using Sums = std::vector<long double>;
  using Waves = std::vector<std::complex<double>>;
  struct Pixels {
    Sums left, right;
  };

  Pixels meeting(Index sy, Index sx) const {
    Pixels pixels;
    each_meeting(q_, sy, sx, [&](Index l, Index r) {
      if (!left_.valid(pair_.left, l) || !right_.valid(pair_.right, r)) return;
      pixels.left.push_back(left_.value(pair_.left, l));
      pixels.right.push_back(right_.value(pair_.right, r));
    });
    return pixels;
  }

  // `most`: pixels of the largest overlap.
  FieldValue score(const Pixels& pixels, std::size_t most) const {
    const Score& score = q_.fields.score;
    const auto& [l, r] = pixels;
    const auto n = static_cast<long double>(l.size());
    const auto sum = [&](long double left_pivot, long double right_pivot) {
      long double value = 0, scale = 0;
      for (std::size_t k = 0; k < l.size(); ++k) {
        value += (l[k] - left_pivot) * (r[k] - right_pivot);
        scale += std::abs((l[k] - left_pivot) * (r[k] - right_pivot));
      }
      return std::pair(value, scale);
    };
    if (!is_normalised(score.kind)) {
      const bool centred = score.kind == ScoreKind::covariance;
      const long double left = centred ? left_.mean(pair_.left) : 0,
                        right = centred ? right_.mean(pair_.right) : 0;
      const auto [value, scale] = sum(left, right);
      return {static_cast<double>(value), static_cast<double>(scale),
              left_.norm(pair_.left, left) * right_.norm(pair_.right, right)};
    }
    if (n == 0 || n < score.min_overlap * static_cast<double>(most)) return {0};
    const bool centred = score.kind == ScoreKind::zncc;
    const auto mean = [&](const Sums& of) {
      long double total = 0;
      for (const long double value : of) total += value;
      return centred ? total / n : 0;
    };
    // The sum of squares about `pivot`, or 0 where the values are constant up to rounding.
    const auto squares = [&](const Sums& of, long double pivot) {
      long double total = 0, largest = 0;
      for (const long double value : of) {
        total += (value - pivot) * (value - pivot);
        largest = std::max(largest, std::abs(value));
      }
      const long double rounding = 8 * 0x1p-24L * largest;
      return total <= rounding * rounding * n ? 0 : total;
    };
    const long double left = mean(l), right = mean(r);
    const long double norms = squares(l, left) * squares(r, right);
    return {norms == 0 ? 0 : static_cast<double>(sum(left, right).first / std::sqrt(norms))};
  }

  // The sum of `values` times waves of (ky, kx).
  std::complex<double> wave_sum(const Waves& values, Index ky, Index kx, double sign) const {
    const Index rows = q_.left.rows, cols = q_.left.cols;
    std::complex<double> sum = 0;
    for (Index i = 0; i < rows * cols; ++i) {
      const double turns = static_cast<double>(ky * (i / cols) % rows) / static_cast<double>(rows) +
                           static_cast<double>(kx * (i % cols) % cols) / static_cast<double>(cols);
      sum += values[static_cast<std::size_t>(i)] *
             std::polar(1.0, sign * 2 * std::numbers::pi * turns);
    }
    return sum;
  }
  Waves spectrum(const FieldInput& input, Index i) const {
    Waves values, result;
    const long double mean = input.mean(i);
    input.each(i, [&](long double value, bool) {
      values.emplace_back(static_cast<double>(value - mean));
    });
    for (Index k = 0; k < q_.left.size(); ++k) {
      result.push_back(wave_sum(values, k / q_.left.cols, k % q_.left.cols, -1));
    }
    return result;
  }
  Waves weighted_phases() const {
    Waves phases = spectrum(right_, pair_.right);
    const Waves of_left = spectrum(left_, pair_.left);
    const double floor = 4 * 0x1p-24 * std::log2(static_cast<double>(q_.left.size())) *
                         left_.norm(pair_.left, left_.mean(pair_.left)) *
                         right_.norm(pair_.right, right_.mean(pair_.right));
    for (std::size_t k = 0; k < phases.size(); ++k) {
      phases[k] *= std::conj(of_left[k]);
      const double by = std::max(std::abs(phases[k]), floor);
      phases[k] *= k == 0 || floor == 0 ? 0 : std::pow(by, q_.fields.score.exponent - 1);
    }
    return phases;
  }
  double phase(const Waves& phases, Index sy, Index sx) const {
    return wave_sum(phases, sy + q_.left.rows, sx + q_.left.cols, 1).real() /
           static_cast<double>(q_.left.size());
  }

  const Problem& q_;
  const FieldInput &left_, &right_;
  Pair pair_;
};

inline std::vector<FieldValue> field_reference(const Problem& q, const FieldInput& left,
                                               const FieldInput& right) {
  std::vector<FieldValue> all;
  for (Index p = 0; p < q.pairs(); ++p) {
    for (const FieldValue& value : FieldReference(q, left, right, q.pair(p)).values()) {
      all.push_back(value);
    }
  }
  return all;
}

}  // namespace xcorr
