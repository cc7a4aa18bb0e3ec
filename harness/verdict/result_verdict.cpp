#include "harness/verdict/result_verdict.hpp"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "harness/problem/results.hpp"
#include "harness/truth/score_reference.hpp"
#include "harness/verdict/above_verdict.hpp"
#include "harness/verdict/each_pair.hpp"

namespace xcorr {
namespace {

using namespace judged;

// "", or what is wrong with value, flags and fit of a record whose position is `at`.
std::string wrong_peak(const PairTruth& truth, Index at, const Peak& peak, SubPixel sub_pixel,
                       Interpolation* interpolation, Tally& tally) {
  if (const std::string value =
          wrong_value(peak.value, truth.value(at), truth.record_bound(at), tally);
      !value.empty())
    return value;
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

// "", or what is wrong with `second` of a peak at `at`.
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
                Tally& tally) {
  const Index at = truth.at(peak.sy, peak.sx);
  if (at < 0) {
    return tally.wrong(truth.name() + ": the peak at sy=" + std::to_string(peak.sy) +
                       " sx=" + std::to_string(peak.sx) + " is outside the window");
  }
  Index largest = 0, before = -1;
  for (Index e = 0; e < truth.size(); ++e) {
    if (truth.value(e) > truth.value(largest)) largest = e;
    if (e != at && before < 0 && !truth.is_before(at, e, true)) before = e;
  }
  tally.check.argmax_agrees &= truth.value(at) == truth.value(largest);
  std::string wrong;
  if (before >= 0) {
    const Index better = truth.is_before(largest, at, false) ? largest : before;
    wrong = "expected " + number(truth.value(at)) + " +- " + number(truth.bound(at)) +
            ", is no peak: " + number(truth.value(better)) + " +- " + number(truth.bound(better)) +
            " is at sy=" + std::to_string(truth.problem().window.sy.first + better / truth.cols()) +
            " sx=" + std::to_string(truth.problem().window.sx.first + better % truth.cols());
  } else {
    wrong =
        wrong_peak(truth, at, peak, truth.problem().fields.result.sub_pixel, interpolation, tally);
    if (wrong.empty()) wrong = wrong_second(truth, at, peak.second);
  }
  if (!wrong.empty()) tally.wrong(truth.where(at) + ": " + wrong);
}

void check_peaks(const PairTruth& truth, const Peak* peaks, Tally& tally) {
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
      wrong = wrong_peak(truth, at, peak, SubPixel::parabola, nullptr, tally);
    }
    found = k + 1;
    if (!wrong.empty()) return tally.wrong(truth.where(at) + ": " + rank + wrong);
  }
  const Peak& last = peaks[count - 1];
  const Index last_at = found == count ? truth.at(last.sy, last.sx) : -1;
  for (Index e = 0; e < truth.size(); ++e) {
    if (!truth.is_maximum(e, false) || listed.count(e)) continue;
    if (last_at >= 0 && !truth.is_before(e, last_at, false)) continue;
    return tally.wrong(truth.where(e) + ": the local maximum " + number(truth.value(e)) + " +- " +
                       number(truth.bound(e)) + " is missing");
  }
}

void check_sum(const PairTruth& truth, InputKind kind, double sum, Tally& tally) {
  long double exact = 0;  // the roundings of equal numbers would all have one direction
  double absolute = 0, bounds = 0, squares = 0;
  for (Index e = 0; e < truth.size(); ++e) {
    exact += truth.value(e);
    absolute += std::abs(truth.value(e));
    bounds += truth.bound(e);
    squares += truth.bound(e) * truth.bound(e);
  }
  const auto want = static_cast<double>(exact);
  // Errors of products of either sign add up like independent ones. Others may all be alike, and so
  // are those of neighbouring outputs that a run of one value meets.
  const bool independent = truth.problem().fields.score.kind == ScoreKind::product &&
                           !is_same_sign(kind) && kind != InputKind::fill &&
                           kind != InputKind::blank;
  const double order = (std::sqrt(static_cast<double>(truth.size())) + 4) * kDoubleRoundoff;
  const double bound = (independent ? std::sqrt(squares) : bounds) + order * absolute;
  if (compare(tally, sum, want, bound)) return;
  tally.wrong(truth.name() + ": the sum is " + number(sum) + ", expected " + number(want) + " +- " +
              number(bound));
}

class ResultTruth : public Truth {
  static constexpr std::size_t kKeptBytes = std::size_t{1} << 28;  // of the candidates of a kind

 public:
  ResultTruth(const Problem& problem, std::shared_ptr<Truth> surface, Device& device)
      : problem_(problem), surface_(std::move(surface)), device_(device) {}

  void set_round(Index round) override {
    if (round != round_) above_.erase(InputKind::sparse);
    round_ = round;
    surface_->set_round(round);
  }
  void fill(InputKind kind, void* left, void* right) override { surface_->fill(kind, left, right); }
  std::string changed_inputs(InputKind kind, const void* left, const void* right) override {
    return surface_->changed_inputs(kind, left, right);
  }
  Check check(InputKind kind, const void* out) override {
    // No result but a surface depends on the scalar type.
    const auto bytes = static_cast<std::size_t>(problem_.result_bytes(sizeof(float)));
    std::vector<double> records((bytes + sizeof(double) - 1) / sizeof(double));
    device_.download(records.data(), out, bytes);
    if (problem_.fields.result.kind != ResultKind::above) {
      return check_result(problem_, *surface_, kind, records.data());
    }
    auto [known, is_new] = above_.try_emplace(kind);
    if (is_new) known->second = std::make_unique<AboveTruth>(problem_, *surface_, kind);
    const Check check = known->second->check(*surface_, records.data());
    if (known->second->bytes() > kKeptBytes) above_.erase(known);
    return check;
  }
  void surface(InputKind kind, Index first, Index count, Reference& into) override {
    surface_->surface(kind, first, count, into);
  }

 private:
  Problem problem_;
  std::shared_ptr<Truth> surface_;
  Device& device_;
  Index round_ = 0;
  std::map<InputKind, std::unique_ptr<AboveTruth>> above_;
};

}  // namespace

Check check_result(const Problem& problem, Truth& truth, InputKind kind, const void* records) {
  const Result& result = problem.fields.result;
  const auto* const peaks = static_cast<const Peak*>(records);
  const auto* const sums = static_cast<const double*>(records);
  if (result.kind == ResultKind::above) {
    return AboveTruth(problem, truth, kind).check(truth, records);
  }
  // Each thread has tables of its own.
  std::vector<Interpolation> interpolations(omp_get_max_threads(), Interpolation(result.upsample));
  return each_pair(problem, truth, kind,
                   [&](const PairTruth& of_pair, Tally& into) {
                     const Index p = of_pair.pair();
                     if (result.kind == ResultKind::peak) {
                       check_peak(of_pair, peaks[p], &interpolations[omp_get_thread_num()], into);
                     } else if (result.kind == ResultKind::peaks) {
                       check_peaks(of_pair, peaks + p * result.count, into);
                     } else {
                       check_sum(of_pair, kind, sums[p], into);
                     }
                   })
      .check;
}

std::unique_ptr<Truth> make_result_truth(const Problem& problem, std::shared_ptr<Truth> surface,
                                         Device& device) {
  return std::make_unique<ResultTruth>(problem, std::move(surface), device);
}

std::size_t result_truth_bytes(const Problem& problem) {
  if (problem.fields.result.kind == ResultKind::surface) return 0;
  return static_cast<std::size_t>(pairs_of_a_turn(problem) * problem.out_size()) *
         (sizeof(Expected) + 2 * sizeof(double));
}

}  // namespace xcorr
