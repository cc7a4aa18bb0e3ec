#include "harness/verdict.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "harness/bounds.hpp"
#include "harness/registry.hpp"

namespace xcorr {
namespace {

constexpr double kDouble = 0x1p-53;
// Up to this much work the definition itself is the reference for every element.
constexpr Index kSmallFmas = Index{1} << 27;
constexpr Index kSampledElements = 96;

std::vector<double> norms(const std::vector<double>& matrices, Index size) {
  std::vector<double> result(matrices.size() / static_cast<std::size_t>(size));
  for (std::size_t m = 0; m < result.size(); ++m) {
    double sum = 0;
    for (Index i = 0; i < size; ++i) {
      const double v = matrices[m * static_cast<std::size_t>(size) + static_cast<std::size_t>(i)];
      sum += v * v;
    }
    result[m] = std::sqrt(sum);
  }
  return result;
}

Index pairs_per_chunk(const Problem& problem) {
  constexpr Index kChunkElements = Index{1} << 23;
  return std::clamp<Index>(kChunkElements / problem.out_size(), 1, problem.pairs());
}

bool fits(const Problem& problem, std::size_t keep_bytes) {
  return static_cast<std::size_t>(problem.out_elements()) * sizeof(double) <= keep_bytes / 4;
}

std::string describe(const Problem& problem, Index pair, Index element, double got, double want,
                     double bound) {
  const Pair lr = problem.pair(pair);
  char text[256];
  std::snprintf(text, sizeof text,
                "pair %lld (left %lld, right %lld) at sy=%lld sx=%lld is %.9g, expected %.9g +- %.3g",
                static_cast<long long>(pair), static_cast<long long>(lr.left),
                static_cast<long long>(lr.right),
                static_cast<long long>(problem.window.sy.first + element / problem.out_cols()),
                static_cast<long long>(problem.window.sx.first + element % problem.out_cols()), got,
                want, bound);
  return text;
}

}  // namespace

// One kind of input in float64, its norms, and whatever of the truth is kept.
struct Truth::Kept {
  struct Stack {
    std::vector<double> left, right;
    std::unique_ptr<FftReference> transform;  // null where the definition is the reference
    std::vector<double> out;                  // of all pairs when kept, else of one chunk
    bool complete = false;
  };
  Stack plain;
  Stack absolute;  // |L| and |R|, zero-mean only
  std::vector<double> left_norm, right_norm;

  void make_absolute() {
    if (!absolute.left.empty()) return;
    absolute.left = plain.left;
    absolute.right = plain.right;
    for (double& v : absolute.left) v = std::abs(v);
    for (double& v : absolute.right) v = std::abs(v);
  }

  // References of the pairs [first, first + count); `rounded` for integers, which are known exactly.
  const double* reference(const Problem& problem, Stack& stack, Index first, Index count, bool keep,
                          bool rounded) {
    if (keep && stack.complete) return stack.out.data();
    stack.out.resize(static_cast<std::size_t>(count * problem.out_size()));
    if (problem.fmas() <= kSmallFmas) {
      correlate_definition(problem, stack.left.data(), stack.right.data(), first, count,
                           stack.out.data());
    } else {
      if (!stack.transform) {
        stack.transform =
            std::make_unique<FftReference>(problem, stack.left.data(), stack.right.data());
      }
      stack.transform->correlate(first, count, stack.out.data());
    }
    if (rounded) {
      for (double& v : stack.out) v = std::nearbyint(v);
    }
    stack.complete = true;
    return stack.out.data();
  }
};

Truth::Truth(const Problem& problem, Precision precision, AlgorithmClass algorithm_class,
             std::uint64_t seed, std::size_t keep_bytes)
    : problem_(problem),
      precision_(precision),
      definition_(algorithm_class == AlgorithmClass::definition),
      seed_(seed),
      keep_bytes_(keep_bytes),
      amplitude_(integer_amplitude(problem.max_overlap())) {
  if (definition_) return;
  // Smaller integers for a transform, where that brings its bound below the half it must round at.
  const double elements = static_cast<double>(std::max(problem.left.size(), problem.right.size()));
  const auto expected_bound = [&](Index a) {
    const double norm2 = elements * static_cast<double>(a * (a + 1)) / 3.0;
    return fft_bound(log2_transform_points(problem), std::sqrt(norm2), std::sqrt(norm2),
                     unit_roundoff(precision));
  };
  while (amplitude_ > 1 && expected_bound(amplitude_) > 0.4) amplitude_ = amplitude_ * 7 / 8;
}

Truth::~Truth() = default;

void Truth::fill(InputKind kind, void* left, void* right) const {
  const auto fill_both = [&](auto* l, auto* r) {
    fill_inputs(l, kind, seed_, Side::left, 0, problem_.left_elements(), amplitude_);
    fill_inputs(r, kind, seed_, Side::right, 0, problem_.right_elements(), amplitude_);
  };
  if (scalar_bytes(precision_) == sizeof(double)) {
    fill_both(static_cast<double*>(left), static_cast<double*>(right));
  } else {
    fill_both(static_cast<float*>(left), static_cast<float*>(right));
  }
}

std::string Truth::changed_inputs(InputKind kind, const void* left, const void* right) const {
  const std::size_t size = scalar_bytes(precision_);
  std::vector<char> l(static_cast<std::size_t>(problem_.left_elements()) * size);
  std::vector<char> r(static_cast<std::size_t>(problem_.right_elements()) * size);
  fill(kind, l.data(), r.data());
  if (std::memcmp(l.data(), left, l.size()) != 0) return "the left matrices were overwritten";
  if (std::memcmp(r.data(), right, r.size()) != 0) return "the right matrices were overwritten";
  return "";
}

Truth::Kept& Truth::kept(InputKind kind) {
  std::unique_ptr<Kept>& entry = kept_[kind];
  if (!entry) {
    entry = std::make_unique<Kept>();
    auto& [left, right, transform, out, complete] = entry->plain;
    left.resize(static_cast<std::size_t>(problem_.left_elements()));
    right.resize(static_cast<std::size_t>(problem_.right_elements()));
    fill_inputs(left.data(), kind, seed_, Side::left, 0, problem_.left_elements(), amplitude_);
    fill_inputs(right.data(), kind, seed_, Side::right, 0, problem_.right_elements(), amplitude_);
    entry->left_norm = norms(left, problem_.left.size());
    entry->right_norm = norms(right, problem_.right.size());
  }
  return *entry;
}

Check Truth::check(InputKind kind, const void* out) {
  if (scalar_bytes(precision_) == sizeof(double)) {
    return compare(kind, static_cast<const double*>(out));
  }
  return compare(kind, static_cast<const float*>(out));
}

// What one comparison knows of its inputs and variant; gives the bound of every element.
struct Truth::Rule {
  const Problem& problem;
  const Kept& kept;
  bool exact, definition, by_fft, sums_exact;
  double u, log2_points;

  // Error of the float64 reference itself, and the bound of a transform, for a pair.
  struct PairBounds {
    double reference, transform;
  };
  PairBounds pair(Index p) const {
    const Pair lr = problem.pair(p);
    const double ln = kept.left_norm[static_cast<std::size_t>(lr.left)];
    const double rn = kept.right_norm[static_cast<std::size_t>(lr.right)];
    const double reference = by_fft ? fft_bound(log2_points, ln, rn, kDouble) : 0.0;
    return {reference, fft_bound(log2_points, ln, rn, u) + reference};
  }

  // `absolute`: (|L| correlated with |R|) at the element.
  double bound(const PairBounds& pair, Index element, double absolute) const {
    if (exact && definition) return sums_exact ? 0.0 : std::numeric_limits<double>::infinity();
    if (exact) return pair.transform < 0.5 ? 0.5 : pair.transform;
    if (!definition) return pair.transform;
    const Index sy = problem.window.sy.first + element / problem.out_cols();
    const Index sx = problem.window.sx.first + element % problem.out_cols();
    const Index terms = overlap(problem.left.rows, problem.right.rows, sy).count *
                        overlap(problem.left.cols, problem.right.cols, sx).count;
    return definition_bound(static_cast<double>(terms), std::abs(absolute) + pair.reference,
                            u + kDouble) +
           pair.reference;
  }

  // NaN is never right; a transform must round to the integer, so exactly a half is wrong.
  bool right(double error, double bound) const {
    return exact && !definition ? error < bound : error <= bound;
  }
};

namespace {

// Sums over the elements of one or more pairs.
struct Tally {
  Check check;
  double worst_ratio = -1, difference2 = 0, reference2 = 0;
  Index first_wrong_pair = std::numeric_limits<Index>::max();

  void add(const Tally& other) {
    if (other.worst_ratio > worst_ratio) {
      worst_ratio = other.worst_ratio;
      check.error = other.check.error;
      check.bound = other.check.bound;
    }
    if (other.check.wrong && other.first_wrong_pair < first_wrong_pair) {
      first_wrong_pair = other.first_wrong_pair;
      check.first_wrong = other.check.first_wrong;
    }
    check.wrong += other.check.wrong;
    check.argmax_agrees &= other.check.argmax_agrees;
    difference2 += other.difference2;
    reference2 += other.reference2;
  }
};

template <typename T, typename Rule>
Tally compare_pair(const Rule& rule, Index p, const T* out, const double* ref, const double* abs_ref) {
  const auto bounds = rule.pair(p);
  Tally tally;
  Index out_max = 0, ref_max = 0;
  for (Index e = 0; e < rule.problem.out_size(); ++e) {
    const double got = static_cast<double>(out[e]), want = ref[e];
    const double bound = rule.bound(bounds, e, abs_ref[e]);
    const double error = std::abs(got - want);
    const bool right = rule.right(error, bound);
    double ratio = bound > 0 ? error / bound : 0.0;
    if (!right && !(ratio > 1)) ratio = std::numeric_limits<double>::max();  // NaN, or no tolerance
    if (ratio > tally.worst_ratio) {
      tally.worst_ratio = ratio;
      tally.check.error = error;
      tally.check.bound = bound;
    }
    if (!right && tally.check.wrong++ == 0) {
      tally.first_wrong_pair = p;
      tally.check.first_wrong = describe(rule.problem, p, e, got, want, bound);
    }
    tally.difference2 += (got - want) * (got - want);
    tally.reference2 += want * want;
    if (out[e] > out[out_max]) out_max = e;
    if (want > ref[ref_max]) ref_max = e;
  }
  tally.check.argmax_agrees = ref[out_max] == ref[ref_max];
  return tally;
}

// Row or column of the i-th sampled element: both ends, the centre, shift zero, random.
Index sampled_position(Index choice, Shifts shifts, std::uint64_t random) {
  const Index count = shifts.count();
  switch (choice) {
    case 0:
      return 0;
    case 1:
      return count - 1;
    case 2:
      return count / 2;
    case 3:
      return std::clamp<Index>(-shifts.first, 0, count - 1);
    default:
      return static_cast<Index>(random % static_cast<std::uint64_t>(count));
  }
}

}  // namespace

template <typename T>
Check Truth::compare(InputKind kind, const T* out) {
  Kept& k = kept(kind);
  const bool exact = kind == InputKind::integer;
  // Uniform inputs are their own absolute values, integers need no bound.
  const bool needs_abs = definition_ && kind == InputKind::zero_mean;
  if (needs_abs) k.make_absolute();
  const Rule rule{problem_,
                  k,
                  exact,
                  definition_,
                  problem_.fmas() > kSmallFmas,
                  problem_.max_overlap() * amplitude_ * amplitude_ <= (Index{1} << 24),
                  unit_roundoff(precision_),
                  log2_transform_points(problem_)};
  const Index size = problem_.out_size();
  const bool keep = fits(problem_, keep_bytes_);
  const Index per_chunk = keep ? problem_.pairs() : pairs_per_chunk(problem_);
  Tally total;
  for (Index first = 0; first < problem_.pairs(); first += per_chunk) {
    const Index count = std::min(per_chunk, problem_.pairs() - first);
    const double* ref = k.reference(problem_, k.plain, first, count, keep, exact);
    const double* abs_ref = needs_abs ? k.reference(problem_, k.absolute, first, count, keep, false) : ref;
#pragma omp parallel for schedule(static)
    for (Index i = 0; i < count; ++i) {
      const Tally tally = compare_pair(rule, first + i, out + (first + i) * size, ref + i * size,
                                       abs_ref + i * size);
#pragma omp critical
      total.add(tally);
    }
  }
  Check& check = total.check;
  check.rel_l2_error = total.reference2 > 0 ? std::sqrt(total.difference2 / total.reference2)
                                            : std::sqrt(total.difference2);

  // Large problems: a sample by the definition as well, so that a transform is never the only
  // witness for a transform.
  for (Index i = 0; rule.by_fft && i < kSampledElements; ++i) {
    const std::uint64_t random = mix(seed_ ^ (static_cast<std::uint64_t>(i) * 0x9e3779b9u));
    const Index row = sampled_position(i % 5, problem_.window.sy, random >> 16);
    const Index col = sampled_position(i / 5 % 5, problem_.window.sx, random >> 32);
    const Index p = sampled_position(i % 7, {0, problem_.pairs() - 1}, random);
    const double want = correlate_element(problem_, k.plain.left.data(), k.plain.right.data(), p, row, col);
    const double absolute =
        needs_abs ? correlate_element(problem_, k.absolute.left.data(), k.absolute.right.data(), p, row, col)
                  : want;
    const double got = static_cast<double>(out[p * size + row * problem_.out_cols() + col]);
    const Index element = row * problem_.out_cols() + col;
    const double bound = rule.bound(rule.pair(p), element, absolute);
    if (!rule.right(std::abs(got - want), bound) && check.wrong++ == 0) {
      check.first_wrong = describe(problem_, p, element, got, want, bound);
    }
  }
  return check;
}

std::size_t Truth::host_bytes(const Problem& problem, std::size_t keep_bytes) {
  const std::size_t inputs =
      static_cast<std::size_t>(problem.left_elements() + problem.right_elements()) * sizeof(double) * 4;
  const std::size_t element = sizeof(double);
  if (fits(problem, keep_bytes)) {
    return inputs + 4 * element * static_cast<std::size_t>(problem.out_elements());
  }
  return inputs +
         2 * element * static_cast<std::size_t>(pairs_per_chunk(problem) * problem.out_size());
}

std::string roofline_guard(const Problem& problem, Precision precision, AlgorithmClass algorithm_class,
                           double seconds, const Peaks& peaks) {
  char text[200];
  const double bytes_rate = static_cast<double>(problem.bytes(scalar_bytes(precision))) / seconds;
  if (peaks.bytes_per_s > 0 && bytes_rate > peaks.bytes_per_s) {
    std::snprintf(text, sizeof text, "faster than the hardware: %.3g B/s of compulsory traffic, peak %.3g",
                  bytes_rate, peaks.bytes_per_s);
    return text;
  }
  const double fma_rate = static_cast<double>(problem.fmas()) / seconds;
  if (algorithm_class == AlgorithmClass::definition && peaks.fmas_per_s > 0 &&
      fma_rate > peaks.fmas_per_s) {
    std::snprintf(text, sizeof text, "faster than the hardware: %.3g useful FMA/s, peak %.3g", fma_rate,
                  peaks.fmas_per_s);
    return text;
  }
  return "";
}

}  // namespace xcorr
