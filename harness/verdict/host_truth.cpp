// Truth on the host: references, and the comparison of outputs with them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "harness/registry.hpp"
#include "harness/verdict/bounds.hpp"
#include "harness/verdict/verdict.hpp"

namespace xcorr {
namespace {

// Largest problem, in FMAs, whose reference is the definition.
constexpr Index kSmallFmas = Index{1} << 27;

std::vector<double> norms(const std::vector<double>& matrices, Index size) {
  std::vector<double> result(matrices.size() / size);
  for (std::size_t m = 0; m < result.size(); ++m) {
    const double* const first = matrices.data() + m * size;
    result[m] = std::sqrt(std::inner_product(first, first + size, first, 0.0));
  }
  return result;
}

Index pairs_per_chunk(const Problem& problem) {
  constexpr Index kChunkElements = Index{1} << 23;
  return std::clamp<Index>(kChunkElements / problem.out_size(), 1, problem.pairs());
}

bool fits(const Problem& problem, std::size_t cache_bytes) {
  return static_cast<std::size_t>(problem.out_elements()) * sizeof(double) <= cache_bytes / 4;
}

// Whether a transform is the reference of a problem.
bool by_transform(const Problem& problem) {
  return problem.fmas() > (problem.is_time_series() ? kSeriesFmas : kSmallFmas);
}

}  // namespace

// One kind of input in float64, its norms, and the cached references.
struct HostTruth::KindTruth {
  struct Stack {
    std::vector<double> left, right;
    std::unique_ptr<FftReference> transform;  // null where the definition is the reference
    std::vector<double> out;                  // of all pairs when cached, else of one chunk
    bool complete = false;
  };
  Stack plain;
  Stack weights;  // their sizes or squares, where the bounds need them
  std::vector<double> left_norm, right_norm;
  // Time series: squared norms of what each output reads, [rights][out_size], the root of the
  // largest one, and the norms of segments.
  std::vector<double> window2, largest_window, segment_norm;

  void make_weights(Weights of) {
    if (of == Weights::values || !weights.left.empty()) return;
    weights.left = plain.left;
    weights.right = plain.right;
    for (std::vector<double>* stack : {&weights.left, &weights.right}) {
      for (double& v : *stack) v = of == Weights::squares ? v * v : std::abs(v);
    }
  }
  void make_windows(const Problem& problem) {
    if (!problem.is_time_series()) return;
    const std::vector<double> ones(static_cast<std::size_t>(problem.left.size()), 1.0);
    std::vector<double> squares = plain.right;
    for (double& v : squares) v *= v;
    window2.resize(problem.rights * problem.out_size());
    correlate_definition(window_sums(problem), ones.data(), squares.data(), 0, problem.rights,
                         window2.data());
    for (Index r = 0; r < problem.rights; ++r) {
      const auto first = window2.begin() + r * problem.out_size();
      largest_window.push_back(std::sqrt(*std::max_element(first, first + problem.out_size())));
      segment_norm.push_back(xcorr::segment_norm(largest_window.back(), right_norm[r],
                                                 static_cast<double>(problem.left.size()),
                                                 has_few_outputs(problem)));
    }
  }

  Bounds::OfPair of_pair(const Problem& problem, const Bounds& bounds, Index p) const {
    const Pair pair = problem.pair(p);
    const std::vector<double>& right = segment_norm.empty() ? right_norm : segment_norm;
    return bounds.of_pair(left_norm[pair.left], right[pair.right]);
  }

  // References of the pairs [first, first + count). `rounded`: inputs are integers, and rounding
  // makes the reference exact.
  const double* reference(const Problem& problem, Stack& stack, Index first, Index count,
                          bool cache, bool rounded) {
    if (cache && stack.complete) return stack.out.data();
    stack.out.resize(count * problem.out_size());
    if (!by_transform(problem)) {
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

HostTruth::HostTruth(const Problem& problem, Precision precision, AlgorithmClass algorithm_class,
                     std::uint64_t seed, std::size_t cache_bytes)
    : SeededTruth(problem, precision, algorithm_class, seed), cache_bytes_(cache_bytes) {}

HostTruth::~HostTruth() = default;

void HostTruth::forget(InputKind kind) { cached_.erase(kind); }

void HostTruth::fill(InputKind kind, void* left, void* right) {
  fill_side(kind, Side::left, left);
  fill_side(kind, Side::right, right);
}

std::string HostTruth::changed_inputs(InputKind kind, const void* left, const void* right) {
  const auto changed = [&](Side side, const void* now) {
    const std::vector<char> filled = scalars(kind, side);
    return std::memcmp(filled.data(), now, filled.size()) != 0;
  };
  if (changed(Side::left, left)) return "the left matrices were overwritten";
  if (changed(Side::right, right)) return "the right matrices were overwritten";
  return "";
}

HostTruth::KindTruth& HostTruth::truth_of(InputKind kind) {
  std::unique_ptr<KindTruth>& entry = cached_[kind];
  if (!entry) {
    entry = std::make_unique<KindTruth>();
    auto& [left, right, transform, out, complete] = entry->plain;
    left.resize(problem_.left_elements());
    right.resize(problem_.right_elements());
    fill_inputs(left.data(), inputs(kind, Side::left), 0, problem_.left_elements());
    fill_inputs(right.data(), inputs(kind, Side::right), 0, problem_.right_elements());
    entry->left_norm = norms(left, problem_.left.size());
    entry->right_norm = norms(right, problem_.right.size());
    entry->make_windows(problem_);
  }
  return *entry;
}

Check HostTruth::check(InputKind kind, const void* out) {
  if (scalar_bytes(precision_) == sizeof(double)) {
    return compare(kind, static_cast<const double*>(out));
  }
  return compare(kind, static_cast<const float*>(out));
}

namespace {

struct PairTally : Tally {
  PairSums sums;
};

// Norms of the windows of one pair of a time series; null for other problems.
struct Windows {
  const double* norm2;
  double left_norm, largest;
};

template <typename T>
PairTally compare_pair(const Bounds& bounds, const Bounds::OfPair& of_pair, Index p, const T* out,
                       const double* ref, const double* abs_ref, const Windows& windows) {
  PairTally tally;
  if (windows.norm2) tally.check.normalised_error = 0;
  Index out_max = 0, ref_max = 0;
  for (Index e = 0; e < bounds.problem.out_size(); ++e) {
    const double got = static_cast<double>(out[e]), want = ref[e];
    const double bound = bounds.at(of_pair, e, abs_ref[e]);
    const double error = std::abs(got - want);
    const bool right = bounds.right(error, bound);
    tally.note(error, bound, right);
    if (!right) count_wrong(tally.check, bounds.problem, p, e, got, want, bound);
    tally.sums.difference2 += (got - want) * (got - want);
    tally.sums.reference2 += want * want;
    tally.sums.absolute2 += bounds.squared(abs_ref[e]);
    if (windows.norm2) {
      tally.check.normalised_error =
          std::max(tally.check.normalised_error,
                   normalised_error(error, windows.left_norm, windows.norm2[e], windows.largest));
    }
    if (out[e] > out[out_max]) out_max = e;
    if (want > ref[ref_max]) ref_max = e;
  }
  tally.check.argmax_agrees = ref[out_max] == ref[ref_max];
  return tally;
}

}  // namespace

void HostTruth::surface(InputKind kind, Index first, Index count, Reference& into) {
  KindTruth& k = truth_of(kind);
  const Weights weights = weights_of(kind);
  const bool needs_abs = weights != Weights::values;
  k.make_weights(weights);
  const Bounds bounds =
      bounds_of(kind, by_transform(problem_), k.left_norm, k.right_norm, k.segment_norm);
  const Index size = problem_.out_size();
  const bool cache = fits(problem_, cache_bytes_);
  // A cached reference holds all pairs.
  const Index from = cache ? 0 : first, computed = cache ? problem_.pairs() : count;
  const auto of = [&](KindTruth::Stack& stack, bool rounded) {
    return k.reference(problem_, stack, from, computed, cache, rounded) + (first - from) * size;
  };
  const double* value = of(k.plain, is_exact(kind));
  const double* absolute = needs_abs ? of(k.weights, false) : value;
  into.value.assign(value, value + count * size);
  into.bound.resize(count * size);
  for (Index i = 0; i < count; ++i) {
    const Bounds::OfPair of_pair = k.of_pair(problem_, bounds, first + i);
    for (Index e = 0; e < size; ++e) {
      into.bound[i * size + e] = bounds.at(of_pair, e, absolute[i * size + e]);
    }
  }
}

template <typename T>
Check HostTruth::compare(InputKind kind, const T* out) {
  KindTruth& k = truth_of(kind);
  const Weights weights = weights_of(kind);
  const bool needs_abs = weights != Weights::values;
  k.make_weights(weights);
  const Bounds bounds =
      bounds_of(kind, by_transform(problem_), k.left_norm, k.right_norm, k.segment_norm);
  const auto left_norm = [&](Index p) { return k.left_norm[problem_.pair(p).left]; };
  const auto right_norm = [&](Index p) { return k.right_norm[problem_.pair(p).right]; };
  const auto of_pair = [&](Index p) { return k.of_pair(problem_, bounds, p); };
  const auto windows = [&](Index p) {
    if (k.window2.empty() || is_exact(kind)) return Windows{nullptr, 0, 0};
    const Index right = problem_.pair(p).right;
    return Windows{k.window2.data() + right * problem_.out_size(), left_norm(p),
                   k.largest_window[right]};
  };
  const Index size = problem_.out_size();
  const bool cache = fits(problem_, cache_bytes_);
  const Index per_chunk = cache ? problem_.pairs() : pairs_per_chunk(problem_);
  Tally total;
  for (Index first = 0; first < problem_.pairs(); first += per_chunk) {
    const Index count = std::min(per_chunk, problem_.pairs() - first);
    const double* ref = k.reference(problem_, k.plain, first, count, cache, is_exact(kind));
    const double* abs_ref =
        needs_abs ? k.reference(problem_, k.weights, first, count, cache, false) : ref;
#pragma omp parallel for schedule(static)
    for (Index i = 0; i < count; ++i) {
      const Index p = first + i;
      PairTally tally = compare_pair(bounds, of_pair(p), p, out + p * size, ref + i * size,
                                     abs_ref + i * size, windows(p));
      check_pair(tally.check, tally.worst_l2_ratio, bounds, p, tally.sums, left_norm(p),
                 right_norm(p));
      tally.first_wrong_pair = p;
#pragma omp critical
      total.add(tally);
    }
  }
  Check& check = total.check;

  // A sample of a large problem is compared with the definition too (kSampledElements).
  for (Index i = 0; bounds.reference_by_fft && i < kSampledElements; ++i) {
    const auto [p, row, col] = sampled_element(problem_, seed_, i);
    const double want =
        correlate_element(problem_, k.plain.left.data(), k.plain.right.data(), p, row, col);
    const double absolute = needs_abs ? correlate_element(problem_, k.weights.left.data(),
                                                          k.weights.right.data(), p, row, col)
                                      : want;
    const Index element = row * problem_.out_cols() + col;
    const double got = static_cast<double>(out[p * size + element]);
    const double bound = bounds.at(of_pair(p), element, absolute);
    if (bounds.right(std::abs(got - want), bound)) continue;
    count_wrong(check, problem_, p, element, got, want, bound);
  }
  return check;
}

std::size_t HostTruth::host_bytes(const Problem& problem, std::size_t cache_bytes) {
  constexpr Index kKinds = 4;
  Index elements = 4 * (problem.left_elements() + problem.right_elements());
  if (problem.is_time_series()) elements += kKinds * problem.rights * problem.out_size();
  elements += fits(problem, cache_bytes) ? kKinds * problem.out_elements()
                                         : 2 * pairs_per_chunk(problem) * problem.out_size();
  return elements * sizeof(double);
}

}  // namespace xcorr
