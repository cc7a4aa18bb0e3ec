#include "harness/verdict/above_verdict.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "harness/problem/results.hpp"
#include "harness/verdict/each_pair.hpp"
#include "harness/verdict/large_median.hpp"

namespace xcorr {
namespace {

using namespace judged;

// The interval that holds the threshold of a pair.
Interval threshold_of(const PairTruth& truth) {
  const Result& result = truth.problem().fields.result;
  if (!result.of_deviations) return {result.threshold, result.threshold};
  double bound = 0;
  for (Index e = 0; e < truth.size(); ++e) bound = std::max(bound, truth.bound(e));
  const double median = large_median(truth.size(), [&](Index e) { return truth.value(e); });
  const double spread = result.threshold * large_median(truth.size(), [&](Index e) {
                          return std::abs(truth.value(e) - median);
                        });
  // An order statistic moves by at most the largest error; deviations have two errors.
  const double error = bound + 2 * result.threshold * bound + 2 * kFloatRoundoff * std::abs(spread);
  return {median + spread - error, median + spread + error};
}

}  // namespace

AboveTruth::AboveTruth(const Problem& problem, Truth& truth, InputKind kind)
    : problem_(problem), kind_(kind), pairs_(problem.pairs()) {
  const Index reach = problem.fields.result.distance - 1;
  each_pair(problem, truth, kind, [&](const PairTruth& of_pair, Tally&) {
    OfPair& own = pairs_[of_pair.pair()];
    own.threshold = threshold_of(of_pair);
    for (Index e = 0; e < of_pair.size(); ++e) {
      if (of_pair.high(e) < own.threshold.low || !of_pair.is_first_within(e, reach, true)) continue;
      const bool certain =
          of_pair.low(e) >= own.threshold.high && of_pair.is_first_within(e, reach, false);
      own.candidates.push_back({e, of_pair.value(e), of_pair.record_bound(e), certain});
    }
  });
  for (const OfPair& own : pairs_) {
    possible_ += static_cast<Index>(own.candidates.size());
    certain_ += std::count_if(own.candidates.begin(), own.candidates.end(),
                              [](const Candidate& one) { return one.certain; });
  }
}

std::size_t AboveTruth::bytes() const {
  return pairs_.size() * sizeof(OfPair) + static_cast<std::size_t>(possible_) * sizeof(Candidate);
}

Tally AboveTruth::check_pair(Truth& truth, Index pair, const std::vector<Detected>& found,
                             bool all_listed) const {
  const auto& [threshold, candidates] = pairs_[pair];
  const auto where = [&](Index at) { return element_text(problem_, pair, at); };
  Tally tally;
  tally.first_wrong_pair = pair;
  std::vector<char> listed(candidates.size());
  std::optional<Reference> surface;
  for (const auto& [at, value] : found) {
    const auto candidate =
        std::lower_bound(candidates.begin(), candidates.end(), at,
                         [](const Candidate& one, Index place) { return one.at < place; });
    std::string wrong;
    if (candidate == candidates.end() || candidate->at != at) {
      if (!surface) surface = truth.reference(kind_, pair, 1);
      const PairTruth of_pair(problem_, pair, surface->value.data(), surface->bound.data());
      wrong = of_pair.high(at) < threshold.low ? "is below the threshold " + number(threshold.low)
                                               : "is too close to a larger output";
    } else if (listed[candidate - candidates.begin()]++) {
      wrong = "is listed twice";
    } else {
      wrong = wrong_value(value, candidate->value, candidate->bound, tally);
    }
    if (!wrong.empty()) tally.wrong(where(at) + ": " + wrong);
  }
  for (std::size_t i = 0; all_listed && i < candidates.size(); ++i) {
    const auto& [at, value, bound, certain] = candidates[i];
    if (!certain || listed[i]) continue;
    tally.wrong(where(at) + ": " + number(value) + " +- " + number(bound) +
                " is missing; the threshold is " + number(threshold.high));
  }
  return tally;
}

Check AboveTruth::check(Truth& truth, const void* records) const {
  const auto* const header = static_cast<const AboveHeader*>(records);
  const auto* const detections = reinterpret_cast<const Detection*>(header + 1);
  const auto capacity = static_cast<std::uint64_t>(problem_.fields.result.capacity);
  const std::string name = "result '" + field_text(problem_.fields, "result") + "': ";
  const Window& window = problem_.window;
  Tally tally;
  std::map<Index, std::vector<Detected>> found;  // by pair
  // The memory of the records holds no more than all outputs.
  const std::uint64_t most =
      std::min(capacity, static_cast<std::uint64_t>(problem_.out_elements()));
  for (std::uint64_t i = 0; i < std::min(header->count, most); ++i) {
    const Detection& d = detections[i];
    if (d.pair < 0 || d.pair >= problem_.pairs() || d.sy < window.sy.first ||
        d.sy > window.sy.last || d.sx < window.sx.first || d.sx > window.sx.last) {
      tally.wrong("detection " + std::to_string(i) + ": pair " + std::to_string(d.pair) +
                  " at sy=" + std::to_string(d.sy) + " sx=" + std::to_string(d.sx) +
                  " is outside the problem");
      continue;
    }
    const Index at = (d.sy - window.sy.first) * problem_.out_cols() + d.sx - window.sx.first;
    found[d.pair].push_back({at, d.value});
  }
  if (!tally.check.passed()) tally.first_wrong_pair = -1;  // before those of all pairs
  const bool all_listed = header->count <= capacity;
  for (Index p = 0; p < problem_.pairs(); ++p) {
    tally.add(check_pair(truth, p, found[p], all_listed));
  }
  const std::string expected = std::to_string(certain_) + " to " + std::to_string(possible_);
  if (header->count < static_cast<std::uint64_t>(certain_) ||
      header->count > static_cast<std::uint64_t>(possible_)) {
    tally.wrong(name + "count is " + std::to_string(header->count) + ", expected " + expected);
  } else if (!all_listed) {
    tally.wrong(name + "capacity exceeded: " + std::to_string(header->count) +
                " outputs are at least the threshold; use a larger capacity or threshold");
  }
  return tally.check;
}

}  // namespace xcorr
