// What a surface within the bounds of the truth may hold, for the verdict on records
// (harness/verdict/result_verdict.hpp): which outputs may be peaks, and where a fit may lie.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "harness/problem/results.hpp"
#include "harness/verdict/verdict.hpp"

namespace xcorr::judged {

inline constexpr double kFloatRoundoff = 0x1p-24;
// Fits are computed in float64 and stored in float32.
inline constexpr double kFitRoundoff = 1e-6;
inline constexpr double kLargestFloat = std::numeric_limits<float>::max();

struct Interval {
  double low, high;
  bool contains(double v) const { return v >= low && v <= high; }
};

// The float64 surface of one pair, and what a surface within the bounds may hold.
class PairTruth {
 public:
  PairTruth(const Problem& problem, Index pair, const double* value, const double* bound)
      : problem_(problem),
        pair_(pair),
        rows_(problem.out_rows()),
        cols_(problem.out_cols()),
        value_(value),
        bound_(bound) {}

  Index pair() const { return pair_; }
  Index rows() const { return rows_; }
  Index cols() const { return cols_; }
  Index size() const { return rows_ * cols_; }
  double value(Index at) const { return value_[at]; }
  double bound(Index at) const { return bound_[at]; }
  double low(Index at) const { return value_[at] - bound_[at]; }
  double high(Index at) const { return value_[at] + bound_[at]; }

  // Index of the output at a shift; -1 outside the window.
  Index at(Index sy, Index sx) const {
    const Index row = sy - problem_.window.sy.first, col = sx - problem_.window.sx.first;
    return row < 0 || row >= rows_ || col < 0 || col >= cols_ ? -1 : row * cols_ + col;
  }
  // The bound of a value in a record. Outputs that are float32 numbers stay exact.
  double record_bound(Index at) const {
    const double value = value_[at];
    // Half of the smallest float: subnormal numbers have fewer digits.
    return bound_[at] > 0 ? bound_[at] + kFloatRoundoff * std::abs(value) + 0x1p-150
                          : std::abs(value - static_cast<double>(static_cast<float>(value)));
  }

  // Whether output `a` comes before `b` in the order of peaks for every surface within the bounds;
  // with `maybe`, for some surface.
  bool is_before(Index a, Index b, bool maybe) const {
    const double of_a = maybe ? high(a) : low(a), of_b = maybe ? low(b) : high(b);
    return of_a > of_b || (of_a == of_b && a < b);
  }
  // Whether no output within `reach` rows and columns comes before this one in that sense.
  bool is_first_within(Index at, Index reach, bool maybe) const {
    const Index row = at / cols_, col = at % cols_;
    const Index last_row = std::min(row + reach, rows_ - 1),
                last_col = std::min(col + reach, cols_ - 1);
    for (Index y = std::max<Index>(row - reach, 0); y <= last_row; ++y) {
      for (Index x = std::max<Index>(col - reach, 0); x <= last_col; ++x) {
        const Index other = y * cols_ + x;
        if (other != at && !is_before(at, other, maybe)) return false;
      }
    }
    return true;
  }
  bool is_maximum(Index at, bool maybe) const { return is_first_within(at, 1, maybe); }

  std::string where(Index at) const { return element_text(problem_, pair_, at); }
  std::string name() const { return pair_text(problem_, pair_); }
  const Problem& problem() const { return problem_; }

 private:
  const Problem& problem_;
  Index pair_, rows_, cols_;
  const double *value_, *bound_;
};

inline std::string number(double v) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", v);
  return text;
}

// Whether a number of a record is within its bound. NaN is not.
inline bool compare(Tally& tally, double got, double want, double bound) {
  const double error = std::abs(got - want);
  tally.note(error, bound, error <= bound);
  return error <= bound;
}

// "", or what is wrong with the value of a record.
inline std::string wrong_value(double got, double want, double bound, Tally& tally) {
  if (compare(tally, got, want, bound)) return "";
  return "value is " + number(got) + ", expected " + number(want) + " +- " + number(bound);
}

// Where the fit through (before, middle, after) may lie, each within its interval and the middle
// the largest. The fit grows with `after` and falls with `before`; a larger middle moves it towards
// 0. The fit may be half a pixel where `after` may equal the middle.
template <typename F>
Interval fits(Interval before, Interval middle, Interval after, F&& transform) {
  const auto fit = [&](double b, double m, double a) {
    const double top = transform(m), p = top - std::min(transform(b), top),
                 q = top - std::min(transform(a), top);
    return p + q > 0 ? 0.5 * (p - q) / (p + q) : std::numeric_limits<double>::quiet_NaN();
  };
  Interval all{0.5, -0.5};
  for (const double m : {middle.low, middle.high}) {
    const double low = fit(before.high, m, after.low), high = fit(before.low, m, after.high);
    // All three may be equal: the fit may be anywhere.
    if (std::isnan(low) || std::isnan(high)) return {-0.5, 0.5};
    all = {std::min(all.low, low), std::max(all.high, high)};
  }
  return all;
}

inline Interval fits(Interval before, Interval middle, Interval after, SubPixel sub_pixel) {
  const Interval parabola = fits(before, middle, after, [](double v) { return v; });
  if (sub_pixel != SubPixel::gaussian || before.high <= 0 || after.high <= 0) return parabola;
  const Interval gaussian =
      fits(before, middle, after, [](double v) { return std::log(std::max(v, 1e-300)); });
  if (before.low > 0 && after.low > 0) return gaussian;
  // A side that may be 0 or less takes the parabola instead.
  return {std::min(parabola.low, gaussian.low), std::max(parabola.high, gaussian.high)};
}

// A peak and its neighbours along one axis.
struct AxisTruth {
  const char* name;                // of the number in the record
  bool inside;                     // both neighbours lie in the window
  bool flat, maybe_flat;           // a neighbour has the same value, or may have it
  Interval before, middle, after;  // neighbours outside the window are not read
  // Consecutive outputs from the peak on, along the axis, that equal it, and that may equal it.
  Index equal = 1, maybe_equal = 1;

  AxisTruth(const PairTruth& truth, Index at, bool rows)
      : name(rows ? "sub_sy" : "sub_sx"), flat(false), maybe_flat(false) {
    const Index step = rows ? truth.cols() : 1;
    const Index position = rows ? at / truth.cols() : at % truth.cols();
    const bool has_before = position > 0,
               has_after = position + 1 < (rows ? truth.rows() : truth.cols());
    inside = has_before && has_after;
    middle = {truth.low(at), truth.high(at)};
    const auto look = [&](bool exists, Index neighbour) {
      if (!exists) return middle;
      flat |= truth.low(neighbour) >= middle.high;
      maybe_flat |= truth.high(neighbour) >= middle.low;
      return Interval{truth.low(neighbour), truth.high(neighbour)};
    };
    before = look(has_before, at - step);
    after = look(has_after, at + step);
    const Index behind = (rows ? truth.rows() : truth.cols()) - position;
    // A larger output ends the plateau. It may follow an output that equals the peak.
    const auto is_equal = [&](Index e) {
      return truth.low(e) >= middle.high && truth.high(e) <= middle.high;
    };
    while (equal < behind && is_equal(at + equal * step)) ++equal;
    const auto may_be_equal = [&](Index e) {
      return truth.high(e) >= middle.low && truth.low(e) <= middle.high;
    };
    while (maybe_equal < behind && may_be_equal(at + maybe_equal * step)) ++maybe_equal;
  }

  // "", or what is wrong with the fit.
  std::string wrong(double sub, bool plateau, SubPixel sub_pixel) const {
    const std::string got = std::string(name) + " is " + number(sub) + ", expected ";
    if (!inside) return sub == 0 ? "" : got + "0: there is no fit";
    // The centre of a plateau of two outputs or more.
    const Interval centre{0.5 * static_cast<double>(std::max<Index>(equal, 2) - 1),
                          0.5 * static_cast<double>(maybe_equal - 1)};
    if (plateau && centre.contains(sub) && 2 * sub == std::nearbyint(2 * sub)) return "";
    if (flat)
      return got + number(centre.low) + " to " + number(centre.high) + ": a plateau's centre";
    const Interval fit = fits(before, middle, after, sub_pixel);
    if (Interval{fit.low - kFitRoundoff, fit.high + kFitRoundoff}.contains(sub)) return "";
    return got + number(fit.low) + " to " + number(fit.high);
  }
};

// The surface around a peak as peak:upsample=u interpolates it, by its Fourier series.
class Interpolation {
 public:
  explicit Interpolation(int factor) : factor_(factor), points_((3 * factor + 1) / 2) {}

  // "", or what is wrong with the position between outputs.
  std::string wrong(const PairTruth& truth, Index at, const Peak& peak) {
    const Index i = point_of(peak.sub_sy), j = point_of(peak.sub_sx);
    const std::string got =
        "sub-pixel position (" + number(peak.sub_sy) + ", " + number(peak.sub_sx) + ") ";
    if (i < 0 || j < 0) return got + "is no multiple of 1/" + std::to_string(factor_) + " nearby";
    if ((truth.rows() == 1 && peak.sub_sy != 0) || (truth.cols() == 1 && peak.sub_sx != 0)) {
      return got + "is not whole along an axis of one output";
    }
    const std::vector<double>& of_rows = weights(truth.rows());
    const std::vector<double>& of_cols = weights(truth.cols());
    const Index row = at / truth.cols(), col = at % truth.cols();
    const auto sized = [](Index n) { return std::vector<double>(n); };
    std::vector<double> along = sized(truth.rows() * points_), all = sized(points_ * points_);
    double bound = 0, largest = 0;
    for (Index y = 0; y < truth.rows(); ++y) {
      for (Index x = 0; x < truth.cols(); ++x) {
        const Index e = y * truth.cols() + x;
        const Index distance = ((x - col) % truth.cols() + truth.cols()) % truth.cols();
        add(of_cols, distance, truth.value(e), along.data() + y * points_);
        bound = std::max(bound, truth.bound(e));
        largest = std::max(largest, std::abs(truth.value(e)));
      }
    }
    for (Index k = 0; k < points_; ++k) {
      for (Index y = 0; y < truth.rows(); ++y) {
        const Index distance = ((y - row) % truth.rows() + truth.rows()) % truth.rows();
        const double weight = of_rows[distance * points_ + k];
        for (Index l = 0; l < points_; ++l) {
          all[k * points_ + l] += weight * along[y * points_ + l];
        }
      }
    }
    const double best = *std::max_element(all.begin(), all.end());
    const double here = all[i * points_ + j];
    // Errors of outputs have either sign, and the squared weights sum to about 1.
    if (here >= best - 4 * bound - 1e-12 * largest) return "";
    return got + "has the interpolated value " + number(here) + ", the largest is " + number(best);
  }

 private:
  Index point_of(double sub) const {
    const double steps = sub * factor_;
    const double whole = std::nearbyint(steps);
    const Index i = static_cast<Index>(whole) + points_ / 2;
    return std::abs(steps - whole) < 1e-3 && i >= 0 && i < points_ ? i : -1;
  }
  void add(const std::vector<double>& table, Index distance, double factor, double* into) const {
    const double* const weights = table.data() + distance * points_;
    for (Index i = 0; i < points_; ++i) into[i] += factor * weights[i];
  }
  // [distance][point]: the share of one output, summed over the frequencies.
  const std::vector<double>& weights(Index length) {
    std::vector<double>& table = tables_[length];
    if (!table.empty()) return table;
    constexpr double kTurn = 6.28318530717958648;
    table.resize(length * points_);
    for (Index e = 0; e < length * points_; ++e) {
      const double x = static_cast<double>(e / points_) -
                       static_cast<double>(e % points_ - points_ / 2) / factor_;
      double sum = 1;
      for (Index k = 1; 2 * k < length; ++k) {
        sum += 2 * std::cos(kTurn * static_cast<double>(k) * x / static_cast<double>(length));
      }
      if (length % 2 == 0) sum += std::cos(kTurn / 2 * x);
      table[e] = sum / static_cast<double>(length);
    }
    return table;
  }

  int factor_;
  Index points_;
  std::map<Index, std::vector<double>> tables_;
};

}  // namespace xcorr::judged
