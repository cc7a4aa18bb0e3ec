#include "harness/verdict/verdict.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "harness/problem/views.hpp"
#include "harness/registry.hpp"
#include "harness/truth/reference.hpp"
#include "harness/verdict/bounds.hpp"

namespace xcorr {

std::string pair_text(const Problem& problem, Index pair) {
  const auto [left, right] = problem.pair(pair);
  return "pair " + std::to_string(pair) + " (left " + std::to_string(left) + ", right " +
         std::to_string(right) + ")";
}

std::string element_text(const Problem& problem, Index pair, Index element) {
  const Index sy = problem.window.sy.first + element / problem.out_cols();
  const Index sx = problem.window.sx.first + element % problem.out_cols();
  return pair_text(problem, pair) + " at sy=" + std::to_string(sy) + " sx=" + std::to_string(sx);
}

std::string describe_element(const Problem& problem, Index pair, Index element, double got,
                             double want, double bound) {
  char text[100];
  std::snprintf(text, sizeof text, " is %.9g, expected %.9g +- %.3g", got, want, bound);
  return element_text(problem, pair, element) + text;
}

std::string describe_failure(const Problem& problem, const Check& check) {
  const std::string wrong = std::to_string(check.wrong);
  if (problem.fields.result.kind != ResultKind::surface) {
    return wrong + " wrong records; " + check.first_wrong;
  }
  const std::string outputs =
      wrong + " of " + std::to_string(problem.out_elements()) + " outputs are wrong; ";
  const std::string pairs = std::to_string(check.wrong_pairs) + " of " +
                            std::to_string(problem.pairs()) +
                            " pairs exceed the bound of the relative L2 error; ";
  return (check.wrong > 0 ? outputs : pairs) + check.first_wrong;
}

std::string input_text(InputKind kind, const std::string& when) {
  return std::string(to_string(kind)) + " input" + when + ": ";
}

CheckedCall checked_call(Truth& truth, const Problem& problem, InputKind kind, const Call& call,
                         const std::string& when) {
  CheckedCall found{truth.check(kind, call.out), ""};
  std::string what = found.check.passed() ? truth.changed_inputs(kind, call.left, call.right)
                                          : describe_failure(problem, found.check);
  if (!what.empty()) found.fault = input_text(kind, when) + what;
  return found;
}

Problem window_sums(const Problem& series) {
  Problem sums = series;
  sums.form = Form::one_to_many;
  sums.lefts = 1;
  return sums;
}

Index exact_amplitude(const Problem& problem, Precision precision, AlgorithmClass algorithm_class) {
  Index amplitude =
      std::min(integer_amplitude(problem.max_overlap()), largest_exact_integer(precision));
  if (is_definition(algorithm_class)) return amplitude;
  const double elements = static_cast<double>(std::max(problem.left.size(), problem.right.size()));
  const auto expected_bound = [&](Index a) {
    const double norm2 = elements * static_cast<double>(a * (a + 1)) / 3.0;
    return fft_bound(log2_transform_points(problem), std::sqrt(norm2), std::sqrt(norm2),
                     unit_roundoff(precision));
  };
  while (amplitude > 1 && expected_bound(amplitude) > 0.4) amplitude = amplitude * 7 / 8;
  return amplitude;
}

namespace {

// Row or column of the i-th sampled element: both ends, the centre, shift zero, random.
Index sampled_position(Index choice, Shifts shifts, std::uint64_t random) {
  const Index count = shifts.count();
  const Index positions[] = {0, count - 1, count / 2,
                             std::clamp<Index>(-shifts.first, 0, count - 1)};
  return choice < std::ssize(positions)
             ? positions[choice]
             : static_cast<Index>(random % static_cast<std::uint64_t>(count));
}

}  // namespace

SeededTruth::SeededTruth(const Problem& problem, Precision precision,
                         AlgorithmClass algorithm_class, std::uint64_t seed)
    : problem_(problem),
      precision_(precision),
      algorithm_class_(algorithm_class),
      seed_(seed),
      amplitude_(exact_amplitude(problem, precision, algorithm_class)) {}

void SeededTruth::set_round(Index round) {
  if (round != round_) forget(InputKind::sparse);
  round_ = round;
}

Inputs SeededTruth::inputs(InputKind kind, Side side) const {
  return make_inputs(problem_, kind, seed_, side, amplitude_, round_);
}

void SeededTruth::fill_side(InputKind kind, Side side, void* scalars) const {
  const Index elements = view_layout(problem_, side, seed_).elements;
  if (scalar_bytes(precision_) == sizeof(double)) {
    fill_inputs(static_cast<double*>(scalars), inputs(kind, side), 0, elements);
  } else {
    fill_inputs(static_cast<float*>(scalars), inputs(kind, side), 0, elements);
  }
}

std::vector<char> SeededTruth::scalars(InputKind kind, Side side) const {
  std::vector<char> bytes(view_layout(problem_, side, seed_).elements * scalar_bytes(precision_));
  fill_side(kind, side, bytes.data());
  return bytes;
}

Weights SeededTruth::weights_of(InputKind kind) const {
  return xcorr::weights_of(problem_, precision_, kind, is_definition(algorithm_class_));
}

Bounds SeededTruth::bounds_of(InputKind kind, bool reference_by_fft,
                              const std::vector<double>& left_norms,
                              const std::vector<double>& right_norms,
                              const std::vector<double>& segment_norms) const {
  return make_bounds(problem_, precision_, kind, algorithm_class_, amplitude_, reference_by_fft,
                     left_norms, right_norms, segment_norms);
}

namespace {

// The one variant that transforms both sides in a batch pads to the sum of their lengths, which may
// not be smooth. Transforms of 2 x 36,335 points (5 x 13^2 x 43) have 1.7 times the errors of smooth
// ones. With a prime factor p above kLargestDirectPrime, cuFFT was measured to lose up to 6.4 u
// sqrt(p) of data with a mean: 1307 u at 100,003 points, a prime.
constexpr double kSmooth = 2.0;
double roughness(const Problem& problem) {
  const Index prime = std::max(largest_prime_factor(problem.left.rows + problem.right.rows),
                               largest_prime_factor(problem.left.cols + problem.right.cols));
  return prime > kLargestDirectPrime ? kSmooth + 0.5 * std::sqrt(static_cast<double>(prime))
                                     : kSmooth;
}

}  // namespace

Bounds make_bounds(const Problem& problem, Precision precision, InputKind kind,
                   AlgorithmClass algorithm_class, Index amplitude, bool reference_by_fft,
                   const std::vector<double>& left_norms, const std::vector<double>& right_norms,
                   const std::vector<double>& segment_norms) {
  const auto largest = [](const std::vector<double>& norms) {
    return *std::max_element(norms.begin(), norms.end());
  };
  const bool of_both = algorithm_class == AlgorithmClass::fft_of_both;
  const double rough = of_both ? roughness(problem) : 0.0;
  // A transform longer than four templates may hold an outlier that the segment of an output does not.
  // Where cuFFT is rough, an output can get the errors of the whole signal.
  const bool whole =
      segment_norms.empty() || rough > kSmooth ||
      (!is_definition(algorithm_class) && (kind == InputKind::fill || kind == InputKind::bimodal));
  return {problem,
          kind,
          is_definition(algorithm_class),
          algorithm_class == AlgorithmClass::definition_atomic,
          reference_by_fft,
          kind == InputKind::sparse || problem.max_overlap() * amplitude * amplitude <= kExactSum,
          scalar_bytes(precision) == sizeof(float),
          unit_roundoff(precision),
          log2_transform_points(problem),
          largest(right_norms),
          of_both ? largest(left_norms) : 0.0,
          rough,
          problem.is_time_series(),
          series_roundoff(precision, unit_roundoff(precision)),
          largest(whole ? right_norms : segment_norms)};
}

Weights weights_of(const Problem& problem, Precision precision, InputKind kind, bool definition) {
  if (!definition || is_exact(kind)) return Weights::values;
  Bounds bounds{};
  bounds.kind = kind;
  bounds.definition = definition;
  bounds.series = problem.is_time_series();
  bounds.rounds = series_roundoff(precision, unit_roundoff(precision));
  if (bounds.uses_squares()) return Weights::squares;
  return is_same_sign(kind) ? Weights::values : Weights::sizes;
}

void check_pair(Check& check, double& worst_ratio, const Bounds& bounds, Index pair,
                const PairSums& sums, double left_norm, double right_norm) {
  const double reference = std::sqrt(sums.reference2);
  check_l2(check, worst_ratio, bounds.problem, pair, std::sqrt(sums.difference2), reference,
           bounds.l2(reference, std::sqrt(sums.absolute2), left_norm, right_norm));
}

void Tally::note(double error, double bound, bool right) {
  double ratio = bound > 0 ? error / bound : 0.0;
  if (!right && !(ratio > 1)) ratio = std::numeric_limits<double>::max();  // NaN, or no tolerance
  if (ratio > worst_ratio) worst_ratio = ratio, check.error = error, check.bound = bound;
}

void count_wrong(Check& check, const Problem& problem, Index pair, Index element, double got,
                 double want, double bound) {
  if (check.wrong++ > 0) return;
  check.first_wrong = describe_element(problem, pair, element, got, want, bound);
}

void Tally::add(const Tally& other) {
  if (other.worst_ratio > worst_ratio) {
    worst_ratio = other.worst_ratio;
    check.error = other.check.error;
    check.bound = other.check.bound;
  }
  // As check_l2() has it.
  if (other.worst_l2_ratio > worst_l2_ratio ||
      (other.worst_l2_ratio == worst_l2_ratio && other.check.rel_l2_bound < check.rel_l2_bound)) {
    worst_l2_ratio = other.worst_l2_ratio;
    check.rel_l2_error = other.check.rel_l2_error;
    check.rel_l2_bound = other.check.rel_l2_bound;
  }
  check.normalised_error = std::max(check.normalised_error, other.check.normalised_error);
  if (!other.check.passed() && other.first_wrong_pair < first_wrong_pair) {
    first_wrong_pair = other.first_wrong_pair;
    check.first_wrong = other.check.first_wrong;
  }
  check.wrong += other.check.wrong;
  check.wrong_pairs += other.check.wrong_pairs;
  check.argmax_agrees &= other.check.argmax_agrees;
}

void check_l2(Check& check, double& worst_ratio, const Problem& problem, Index pair,
              double difference, double reference, double bound) {
  if (bound >= 1e300) return;
  const double error = difference / reference, allowed = bound / reference;
  const bool right = error <= allowed;
  const double ratio = right ? error / allowed : std::max(2.0, error / allowed);  // 2 for NaN
  // Of equal ratios the narrower bound is reported, so that the order of the pairs does not matter.
  if (ratio > worst_ratio || (ratio == worst_ratio && allowed < check.rel_l2_bound)) {
    worst_ratio = ratio;
    check.rel_l2_error = error;
    check.rel_l2_bound = allowed;
  }
  if (right) return;
  if (check.passed()) {
    char text[100];
    std::snprintf(text, sizeof text, " has a relative L2 error of %.3g, its bound is %.3g", error,
                  allowed);
    check.first_wrong = pair_text(problem, pair) + text;
  }
  ++check.wrong_pairs;
}

SampledElement sampled_element(const Problem& problem, std::uint64_t seed, Index i) {
  const std::uint64_t random = mix(seed ^ (static_cast<std::uint64_t>(i) * 0x9e3779b9u));
  return {sampled_position(i % 7, {0, problem.pairs() - 1}, random),
          sampled_position(i % 5, problem.window.sy, random >> 16),
          sampled_position(i / 5 % 5, problem.window.sx, random >> 32)};
}

std::string roofline_guard(const Problem& problem, Precision precision,
                           AlgorithmClass algorithm_class, double seconds, const Peaks& peaks) {
  const double bytes = problem.bytes(scalar_bytes(precision));
  const double bytes_peak =
      bytes <= peaks.cache_bytes ? peaks.cache_bytes_per_s : peaks.bytes_per_s;
  char text[200];
  if (bytes_peak > 0 && bytes / seconds > bytes_peak) {
    std::snprintf(text, sizeof text,
                  "faster than the hardware: %.3g B/s of compulsory traffic, the peak is %.3g B/s",
                  bytes / seconds, bytes_peak);
    return text;
  }
  const double fma_rate = static_cast<double>(problem.fmas()) / seconds;
  if (is_definition(algorithm_class) && peaks.fmas_per_s > 0 && fma_rate > peaks.fmas_per_s) {
    std::snprintf(text, sizeof text,
                  "faster than the hardware: %.3g useful FMA/s, the peak is %.3g FMA/s", fma_rate,
                  peaks.fmas_per_s);
    return text;
  }
  return "";
}

}  // namespace xcorr
