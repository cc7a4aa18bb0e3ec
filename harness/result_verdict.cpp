#include "harness/result_verdict.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "harness/results.hpp"

namespace xcorr {
namespace {

constexpr double kFloatRoundoff = 0x1p-24;
// A fit is stored in float32 and computed in float64.
constexpr double kFitRoundoff = 1e-6;
constexpr double kLargestFloat = std::numeric_limits<float>::max();

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
  // Bound of a value as a record holds it. Outputs that are exact numbers of float32 stay exact.
  double record_bound(Index at) const {
    const double value = value_[at];
    return bound_[at] > 0 ? bound_[at] + kFloatRoundoff * std::abs(value)
                          : std::abs(value - static_cast<double>(static_cast<float>(value)));
  }

  // Whether the output of `a` is, for every surface within the bounds, before that of `b` in the
  // order of peaks; with `maybe`, for some surface.
  bool is_before(Index a, Index b, bool maybe) const {
    const double of_a = maybe ? high(a) : low(a), of_b = maybe ? low(b) : high(b);
    return of_a > of_b || (of_a == of_b && a < b);
  }
  bool is_maximum(Index at, bool maybe) const {
    const Index row = at / cols_, col = at % cols_;
    for (Index y = std::max<Index>(row - 1, 0); y <= std::min(row + 1, rows_ - 1); ++y) {
      for (Index x = std::max<Index>(col - 1, 0); x <= std::min(col + 1, cols_ - 1); ++x) {
        const Index other = y * cols_ + x;
        if (other != at && !is_before(at, other, maybe)) return false;
      }
    }
    return true;
  }

  // "pair 3 (left 0, right 3) at sy=-2 sx=5"
  std::string where(Index at) const {
    return name() + " at sy=" + std::to_string(problem_.window.sy.first + at / cols_) +
           " sx=" + std::to_string(problem_.window.sx.first + at % cols_);
  }
  std::string name() const {
    const Pair of = problem_.pair(pair_);
    return "pair " + std::to_string(pair_) + " (left " + std::to_string(of.left) + ", right " +
           std::to_string(of.right) + ")";
  }
  const Problem& problem() const { return problem_; }

 private:
  const Problem& problem_;
  Index pair_, rows_, cols_;
  const double *value_, *bound_;
};

std::string number(double v) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", v);
  return text;
}

// What was found about the records of some pairs.
class Findings {
 public:
  // Counts a record once, however much of it is wrong.
  void wrong(const std::string& what) {
    if (check_.wrong++ == 0) check_.first_wrong = what;
  }
  // Whether a number of a record is right. Keeps the error that is largest relative to its bound.
  bool compare(double got, double want, double bound) {
    const double error = std::abs(got - want);
    const bool right = error <= bound;  // false for NaN
    double ratio = bound > 0 ? error / bound : 0.0;
    if (!right && !(ratio > 1)) ratio = std::numeric_limits<double>::max();
    if (ratio > worst_) {
      worst_ = ratio;
      check_.error = error;
      check_.bound = bound;
    }
    return right;
  }
  void add(const Findings& other) {
    if (other.worst_ > worst_) {
      worst_ = other.worst_;
      check_.error = other.check_.error;
      check_.bound = other.check_.bound;
    }
    if (check_.wrong == 0) check_.first_wrong = other.check_.first_wrong;
    check_.wrong += other.check_.wrong;
    check_.argmax_agrees &= other.check_.argmax_agrees;
  }
  Check& check() { return check_; }

 private:
  Check check_;
  double worst_ = -1;
};

// Where the fit through (before, middle, after) may lie, each within its interval and the middle
// the largest. The fit grows with `after` and falls with `before`, and a larger middle moves it
// towards 0.
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

Interval fits(Interval before, Interval middle, Interval after, SubPixel sub_pixel) {
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
  }

  // "" or what is wrong with the fit.
  std::string wrong(double sub, bool plateau, SubPixel sub_pixel) const {
    const std::string got = std::string(name) + " is " + number(sub) + ", expected ";
    if (!inside || flat) return sub == 0 ? "" : got + "0: there is no fit";
    if (maybe_flat && plateau && sub == 0) return "";
    const Interval fit = fits(before, middle, after, sub_pixel);
    if (Interval{fit.low - kFitRoundoff, fit.high + kFitRoundoff}.contains(sub)) return "";
    return got + number(fit.low) + " to " + number(fit.high);
  }
};

// The surface around a peak as peak:upsample=u interpolates it: its Fourier series.
class Interpolation {
 public:
  explicit Interpolation(int factor) : factor_(factor), points_((3 * factor + 1) / 2) {}

  // "" or what is wrong with the position between outputs.
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
    const auto sized = [](Index n) { return std::vector<double>(static_cast<std::size_t>(n)); };
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
        const double weight = of_rows[static_cast<std::size_t>(distance * points_ + k)];
        for (Index l = 0; l < points_; ++l) {
          all[static_cast<std::size_t>(k * points_ + l)] +=
              weight * along[static_cast<std::size_t>(y * points_ + l)];
        }
      }
    }
    const double best = *std::max_element(all.begin(), all.end());
    const double here = all[static_cast<std::size_t>(i * points_ + j)];
    // Errors of outputs are of either sign, and the squares of the weights sum to about 1.
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
  // [distance][point]: one output's share, summed over the frequencies one by one.
  const std::vector<double>& weights(Index length) {
    std::vector<double>& table = tables_[length];
    if (!table.empty()) return table;
    constexpr double kTurn = 6.28318530717958648;
    table.resize(static_cast<std::size_t>(length * points_));
    for (Index e = 0; e < length * points_; ++e) {
      const double x = static_cast<double>(e / points_) -
                       static_cast<double>(e % points_ - points_ / 2) / factor_;
      double sum = 1;
      for (Index k = 1; 2 * k < length; ++k) {
        sum += 2 * std::cos(kTurn * static_cast<double>(k) * x / static_cast<double>(length));
      }
      if (length % 2 == 0) sum += std::cos(kTurn / 2 * x);
      table[static_cast<std::size_t>(e)] = sum / static_cast<double>(length);
    }
    return table;
  }

  int factor_;
  Index points_;
  std::map<Index, std::vector<double>> tables_;
};

// Value, flags and fit of a record whose position is `at`. "" or what is wrong.
std::string wrong_peak(const PairTruth& truth, Index at, const Peak& peak, SubPixel sub_pixel,
                       Interpolation* interpolation, Findings& findings) {
  if (!findings.compare(peak.value, truth.value(at), truth.record_bound(at))) {
    return "value is " + number(peak.value) + ", expected " + number(truth.value(at)) + " +- " +
           number(truth.record_bound(at));
  }
  const AxisTruth axes[] = {{truth, at, true}, {truth, at, false}};
  if (((peak.flags & kPeakAtBorder) != 0) == (axes[0].inside && axes[1].inside)) {
    return peak.flags & kPeakAtBorder ? "flag border is set inside the window"
                                      : "flag border is not set at the border";
  }
  if (peak.flags & kPeakNotFinite) {
    bool finite = true;
    for (Index e = 0; e < truth.size(); ++e) {
      finite &= std::abs(truth.value(e)) + truth.bound(e) < kLargestFloat;
    }
    return finite ? "flag not finite is set, and all outputs are finite" : "";
  }
  const bool plateau = peak.flags & kPeakOnPlateau;
  if (!plateau && (axes[0].flat || axes[1].flat)) return "flag plateau is not set on a plateau";
  if (plateau && !axes[0].maybe_flat && !axes[1].maybe_flat) {
    return "flag plateau is set where the neighbours differ";
  }
  if (sub_pixel == SubPixel::upsample) return interpolation->wrong(truth, at, peak);
  const std::string wrong = axes[0].wrong(peak.sub_sy, plateau, sub_pixel);
  return wrong.empty() ? axes[1].wrong(peak.sub_sx, plateau, sub_pixel) : wrong;
}

// "" or what is wrong with `second` of a peak at `at`.
std::string wrong_second(const PairTruth& truth, Index at, float second) {
  double least = -std::numeric_limits<double>::infinity();  // that the second must reach
  bool certain = false, possible = false;
  for (Index e = 0; e < truth.size(); ++e) {
    const Index dy = e / truth.cols() - at / truth.cols(),
                dx = e % truth.cols() - at % truth.cols();
    if (std::abs(dy) <= 2 && std::abs(dx) <= 2) continue;
    const double bound = truth.record_bound(e);
    if (truth.is_maximum(e, false)) {
      certain = true;
      least = std::max(least, truth.value(e) - bound);
    }
    possible |= std::abs(static_cast<double>(second) - truth.value(e)) <= bound &&
                truth.is_maximum(e, true);
  }
  if (std::isnan(second)) {
    return certain ? "second is NaN, expected a local maximum of at least " + number(least) : "";
  }
  if (!possible) return "second is " + number(second) + ", which is no local maximum outside 5 x 5";
  if (second < least) {
    return "second is " + number(second) + ", a larger local maximum is at least " + number(least);
  }
  return "";
}

void check_peak(const PairTruth& truth, const Peak& peak, Interpolation* interpolation,
                Findings& findings) {
  const Index at = truth.at(peak.sy, peak.sx);
  if (at < 0) {
    return findings.wrong(truth.name() + ": the peak at sy=" + std::to_string(peak.sy) +
                          " sx=" + std::to_string(peak.sx) + " is outside the window");
  }
  Index largest = 0, before = -1;
  for (Index e = 0; e < truth.size(); ++e) {
    if (truth.value(e) > truth.value(largest)) largest = e;
    if (e != at && before < 0 && !truth.is_before(at, e, true)) before = e;
  }
  findings.check().argmax_agrees &= truth.value(at) == truth.value(largest);
  std::string wrong;
  if (before >= 0) {
    const Index better = truth.is_before(largest, at, false) ? largest : before;
    wrong = "expected " + number(truth.value(at)) + " +- " + number(truth.bound(at)) +
            ", is no peak: " + number(truth.value(better)) + " +- " + number(truth.bound(better)) +
            " is at sy=" + std::to_string(truth.problem().window.sy.first + better / truth.cols()) +
            " sx=" + std::to_string(truth.problem().window.sx.first + better % truth.cols());
  } else {
    wrong = wrong_peak(truth, at, peak, truth.problem().fields.result.sub_pixel, interpolation,
                       findings);
    if (wrong.empty()) wrong = wrong_second(truth, at, peak.second);
  }
  if (!wrong.empty()) findings.wrong(truth.where(at) + ": " + wrong);
}

void check_peaks(const PairTruth& truth, const Peak* peaks, Findings& findings) {
  const int count = truth.problem().fields.result.count;
  std::set<Index> listed;
  int found = 0;
  for (int k = 0; k < count; ++k) {
    const Peak& peak = peaks[k];
    if (std::isnan(peak.value)) continue;
    const std::string rank = "peak " + std::to_string(k) + ": ";
    const Index at = truth.at(peak.sy, peak.sx);
    std::string wrong;
    if (at < 0) {
      wrong = "sy=" + std::to_string(peak.sy) + " sx=" + std::to_string(peak.sx) +
              " is outside the window";
    } else if (found < k) {
      wrong = "follows a missing one";
    } else if (!listed.insert(at).second) {
      wrong = "is listed twice";
    } else if (!truth.is_maximum(at, true)) {
      wrong = "is no local maximum";
    } else if (k > 0 && peak.value > peaks[k - 1].value) {
      wrong = "is larger than the one before it";
    } else if (k > 0 && truth.is_before(at, truth.at(peaks[k - 1].sy, peaks[k - 1].sx), false)) {
      wrong = "belongs before the one before it";
    } else if (!std::isnan(peak.second)) {
      wrong = "second is " + number(peak.second) + ", expected NaN";
    } else {
      wrong = wrong_peak(truth, at, peak, SubPixel::parabola, nullptr, findings);
    }
    found = k + 1;
    if (!wrong.empty()) return findings.wrong(truth.where(at) + ": " + rank + wrong);
  }
  const Peak& last = peaks[count - 1];
  const Index last_at = found == count ? truth.at(last.sy, last.sx) : -1;
  for (Index e = 0; e < truth.size(); ++e) {
    if (!truth.is_maximum(e, false) || listed.count(e)) continue;
    if (last_at >= 0 && !truth.is_before(e, last_at, false)) continue;
    return findings.wrong(truth.where(e) + ": the local maximum " + number(truth.value(e)) +
                          " +- " + number(truth.bound(e)) + " is missing");
  }
}

// The mean of the two middle numbers.
double median_of(std::vector<double> values) {
  const std::size_t upper = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(upper),
                   values.end());
  if (values.size() % 2) return values[upper];
  const double lower =
      *std::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(upper));
  return lower + (values[upper] - lower) / 2;
}

// Between which numbers the threshold of a pair lies.
Interval threshold_of(const PairTruth& truth) {
  const Result& result = truth.problem().fields.result;
  if (!result.of_deviations) return {result.threshold, result.threshold};
  std::vector<double> values(static_cast<std::size_t>(truth.size()));
  double bound = 0;
  for (Index e = 0; e < truth.size(); ++e) {
    values[static_cast<std::size_t>(e)] = truth.value(e);
    bound = std::max(bound, truth.bound(e));
  }
  const double median = median_of(values);
  for (double& v : values) v = std::abs(v - median);
  const double spread = result.threshold * median_of(values);
  // No order statistic moves by more than the largest error; the deviations have two errors.
  const double error = bound + 2 * result.threshold * bound + 2 * kFloatRoundoff * std::abs(spread);
  return {median + spread - error, median + spread + error};
}

struct Detected {
  Index at;
  float value;
};

void check_detections(const PairTruth& truth, const std::vector<Detected>& found, Index& certain,
                      Index& possible, bool all_listed, Findings& findings) {
  const Interval threshold = threshold_of(truth);
  std::vector<char> listed(static_cast<std::size_t>(truth.size()));
  for (const auto& [at, value] : found) {
    std::string wrong;
    if (listed[static_cast<std::size_t>(at)]++) {
      wrong = "is listed twice";
    } else if (truth.high(at) < threshold.low) {
      wrong = "is below the threshold " + number(threshold.low);
    } else if (!findings.compare(value, truth.value(at), truth.record_bound(at))) {
      wrong = "value is " + number(value) + ", expected " + number(truth.value(at)) + " +- " +
              number(truth.record_bound(at));
    }
    if (!wrong.empty()) findings.wrong(truth.where(at) + ": " + wrong);
  }
  for (Index e = 0; e < truth.size(); ++e) {
    possible += truth.high(e) >= threshold.low;
    if (truth.low(e) < threshold.high) continue;
    ++certain;
    if (!all_listed || listed[static_cast<std::size_t>(e)]) continue;
    findings.wrong(truth.where(e) + ": " + number(truth.value(e)) + " +- " +
                   number(truth.bound(e)) + " is missing; the threshold is " +
                   number(threshold.high));
  }
}

void check_sum(const PairTruth& truth, InputKind kind, double sum, Findings& findings) {
  double want = 0, absolute = 0, bounds = 0, squares = 0;
  for (Index e = 0; e < truth.size(); ++e) {
    want += truth.value(e);
    absolute += std::abs(truth.value(e));
    bounds += truth.bound(e);
    squares += truth.bound(e) * truth.bound(e);
  }
  // Errors of products of either sign add up like independent ones, others may all be alike.
  const bool independent =
      truth.problem().fields.score.kind == ScoreKind::product && !is_same_sign(kind);
  const double order = (std::sqrt(static_cast<double>(truth.size())) + 4) * kDoubleRoundoff;
  const double bound = (independent ? std::sqrt(squares) : bounds) + order * absolute;
  if (findings.compare(sum, want, bound)) return;
  findings.wrong(truth.name() + ": the sum is " + number(sum) + ", expected " + number(want) +
                 " +- " + number(bound));
}

// Calls step(pair truth, findings of the pair) for all pairs, and collects the findings.
template <typename F>
Findings each_pair(const Problem& problem, Truth& truth, InputKind kind, F&& step) {
  constexpr Index kChunkElements = Index{1} << 22;
  const Index size = problem.out_size();
  const Index per_chunk = std::clamp<Index>(kChunkElements / size, 1, problem.pairs());
  Findings all;
  for (Index first = 0; first < problem.pairs(); first += per_chunk) {
    const Index count = std::min(per_chunk, problem.pairs() - first);
    const Reference reference = truth.reference(kind, first, count);
    for (Index i = 0; i < count; ++i) {
      Findings of_pair;
      step(PairTruth(problem, first + i, reference.value.data() + i * size,
                     reference.bound.data() + i * size),
           of_pair);
      all.add(of_pair);
    }
  }
  return all;
}

Check check_above(const Problem& problem, Truth& truth, InputKind kind, const void* records) {
  const auto* const header = static_cast<const AboveHeader*>(records);
  const auto* const detections = reinterpret_cast<const Detection*>(header + 1);
  const auto capacity = static_cast<std::uint64_t>(problem.fields.result.capacity);
  const std::string name = "result '" + field_text(problem.fields, "result") + "': ";
  Findings findings;
  std::map<Index, std::vector<Detected>> found;  // by pair
  for (std::uint64_t i = 0; i < std::min(header->count, capacity); ++i) {
    const Detection& d = detections[i];
    if (d.pair < 0 || d.pair >= problem.pairs() || d.sy < problem.window.sy.first ||
        d.sy > problem.window.sy.last || d.sx < problem.window.sx.first ||
        d.sx > problem.window.sx.last) {
      findings.wrong("detection " + std::to_string(i) + ": pair " + std::to_string(d.pair) +
                     " at sy=" + std::to_string(d.sy) + " sx=" + std::to_string(d.sx) +
                     " is outside the problem");
      continue;
    }
    const Index at =
        (d.sy - problem.window.sy.first) * problem.out_cols() + d.sx - problem.window.sx.first;
    found[d.pair].push_back({at, d.value});
  }
  Index certain = 0, possible = 0;
  const bool all_listed = header->count <= capacity;
  findings.add(each_pair(problem, truth, kind, [&](const PairTruth& of_pair, Findings& into) {
    check_detections(of_pair, found[of_pair.pair()], certain, possible, all_listed, into);
  }));
  const std::string expected = std::to_string(certain) + " to " + std::to_string(possible);
  if (header->count < static_cast<std::uint64_t>(certain) ||
      header->count > static_cast<std::uint64_t>(possible)) {
    findings.wrong(name + "count is " + std::to_string(header->count) + ", expected " + expected);
  } else if (!all_listed) {
    findings.wrong(name + "capacity exceeded: " + std::to_string(header->count) +
                   " outputs are at least the threshold; use a larger capacity or threshold");
  }
  return findings.check();
}

class ResultTruth : public Truth {
 public:
  ResultTruth(const Problem& problem, std::shared_ptr<Truth> surface, Device& device)
      : problem_(problem), surface_(std::move(surface)), device_(device) {}

  void set_round(Index round) override { surface_->set_round(round); }
  void fill(InputKind kind, void* left, void* right) override { surface_->fill(kind, left, right); }
  std::string changed_inputs(InputKind kind, const void* left, const void* right) override {
    return surface_->changed_inputs(kind, left, right);
  }
  Check check(InputKind kind, const void* out) override {
    // No result but a surface depends on the scalar type.
    const auto bytes = static_cast<std::size_t>(problem_.result_bytes(sizeof(float)));
    std::vector<double> records((bytes + sizeof(double) - 1) / sizeof(double));
    device_.download(records.data(), out, bytes);
    return check_result(problem_, *surface_, kind, records.data());
  }
  Reference reference(InputKind kind, Index first, Index count) override {
    return surface_->reference(kind, first, count);
  }

 private:
  Problem problem_;
  std::shared_ptr<Truth> surface_;
  Device& device_;
};

}  // namespace

Check check_result(const Problem& problem, Truth& truth, InputKind kind, const void* records) {
  const Result& result = problem.fields.result;
  const auto* const peaks = static_cast<const Peak*>(records);
  Interpolation interpolation(result.upsample);
  switch (result.kind) {
    case ResultKind::peak:
      return each_pair(problem, truth, kind,
                       [&](const PairTruth& of_pair, Findings& into) {
                         check_peak(of_pair, peaks[of_pair.pair()], &interpolation, into);
                       })
          .check();
    case ResultKind::peaks:
      return each_pair(problem, truth, kind,
                       [&](const PairTruth& of_pair, Findings& into) {
                         check_peaks(of_pair, peaks + of_pair.pair() * result.count, into);
                       })
          .check();
    case ResultKind::above:
      return check_above(problem, truth, kind, records);
    default:
      return each_pair(problem, truth, kind,
                       [&](const PairTruth& of_pair, Findings& into) {
                         check_sum(of_pair, kind,
                                   static_cast<const double*>(records)[of_pair.pair()], into);
                       })
          .check();
  }
}

std::unique_ptr<Truth> make_result_truth(const Problem& problem, std::shared_ptr<Truth> surface,
                                         Device& device) {
  return std::make_unique<ResultTruth>(problem, std::move(surface), device);
}

}  // namespace xcorr
