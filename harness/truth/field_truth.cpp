#include "harness/truth/field_truth.hpp"

#include <algorithm>
#include <cmath>

#include "harness/problem/views.hpp"
#include "harness/registry.hpp"

namespace xcorr {
namespace {

// Largest number of terms of all sums with which a transform is computed by its sums.
constexpr double kSmallPhase = 0x1p26;

bool fits(const Problem& problem, std::size_t cache_bytes) {
  return static_cast<std::size_t>(problem.out_elements()) * sizeof(Expected) <= cache_bytes / 4;
}

// Whether transforms are the reference.
bool is_large(const Problem& problem, Index definition_fmas) {
  if (problem.fields.score.kind != ScoreKind::phase) return problem.fmas() > definition_fmas;
  const double sums = static_cast<double>(problem.left.rows + problem.left.cols) *
                      static_cast<double>(problem.left.size());
  return 3 * sums * static_cast<double>(problem.pairs()) > kSmallPhase;
}

// The matrices of one side, without gaps.
std::vector<double> dense_stack(const Problem& problem, const Inputs& inputs, Side side,
                                std::uint64_t seed) {
  const Shape shape = side == Side::left ? problem.left : problem.right;
  const Index matrices = side == Side::left ? problem.lefts : problem.rights;
  std::vector<double> stack(matrices * shape.size());
  if (problem.fields.views == Views::dense) {
    fill_inputs(stack.data(), inputs, 0, matrices * shape.size());
    return stack;
  }
  const ViewLayout layout = view_layout(problem, side, seed);
#pragma omp parallel for
  for (Index row = 0; row < matrices * shape.rows; ++row) {
    double* const to = stack.data() + row * shape.cols;
    const Index from = layout.row(row / shape.rows, row % shape.rows, shape.rows);
    for (Index x = 0; x < shape.cols; ++x) to[x] = inputs.value(from + x);
  }
  return stack;
}

std::vector<std::uint8_t> mask_of(const Problem& problem, Side side, std::uint64_t seed) {
  const bool left = side == Side::left;
  if (!(left ? masks_left(problem.fields.masks) : masks_right(problem.fields.masks))) return {};
  std::vector<std::uint8_t> mask(left ? problem.left_elements() : problem.right_elements());
  const auto elements = static_cast<Index>(mask.size());
#pragma omp parallel for
  for (Index i = 0; i < elements; ++i) {
    mask[i] = mask_value(seed, side, i);
  }
  return mask;
}

// Without their means, data of one sign and whole numbers are like zero-mean data. Those that alternate
// or drift keep what lies in few bins.
InputKind kind_of_sums(const Problem& problem, InputKind kind) {
  const bool keeps = kind == InputKind::alternating || kind == InputKind::drift;
  const bool has_mean = is_exact(kind) || is_same_sign(kind);
  return has_mean && !keeps && is_centred(problem.fields.score.kind) ? InputKind::zero_mean : kind;
}

std::vector<double> norms(const std::vector<MatrixFacts>& facts, double MatrixFacts::* norm) {
  std::vector<double> result;
  for (const MatrixFacts& of : facts) result.push_back(of.*norm);
  return result;
}

}  // namespace

ScoreInputs score_inputs(const Problem& problem, InputKind kind, std::uint64_t seed,
                         Index amplitude, Index round) {
  ScoreInputs inputs;
  const auto of = [&](Side side) {
    return dense_stack(problem, make_inputs(problem, kind, seed, side, amplitude, round), side,
                       seed);
  };
  inputs.left = of(Side::left);
  inputs.right = of(Side::right);
  inputs.left_mask = mask_of(problem, Side::left, seed);
  inputs.right_mask = mask_of(problem, Side::right, seed);
  inputs.find_facts(problem);
  return inputs;
}

// One kind of input and its references; of all pairs when cached.
struct FieldTruth::KindTruth {
  ScoreData data;
  std::unique_ptr<ScoreReference> reference;
  std::vector<Expected> expected;
  std::vector<double> phase;
  bool complete = false;

  // Computes the pairs [first, first + count). Returns the index of `first` in `expected`.
  Index compute(const Problem& problem, Index first, Index count, bool cache) {
    if (cache && complete) return first;
    const Index from = cache ? 0 : first, pairs = cache ? problem.pairs() : count;
    expected.resize(pairs * problem.out_size());
    phase.resize(pairs);
    const Index chunk = pairs_per_chunk(problem);
    for (Index p = 0; p < pairs; p += chunk) {
      reference->pairs(from + p, std::min(chunk, pairs - p),
                       expected.data() + p * problem.out_size(), phase.data() + p);
    }
    complete = true;
    return first - from;
  }
};

FieldTruth::FieldTruth(const Problem& problem, Precision precision, AlgorithmClass algorithm_class,
                       std::uint64_t seed, Device& device, std::size_t cache_bytes)
    : SeededTruth(problem, precision, algorithm_class, seed),
      device_(device),
      cache_bytes_(cache_bytes) {}

FieldTruth::~FieldTruth() = default;

void FieldTruth::forget(InputKind kind) { cached_.erase(kind); }

void FieldTruth::fill(InputKind kind, void* left, void* right) {
  for (const auto& [side, memory] : {std::pair{Side::left, left}, {Side::right, right}}) {
    const std::vector<char> bytes = scalars(kind, side);
    device_.upload(memory, bytes.data(), bytes.size());
  }
}

std::string FieldTruth::changed_inputs(InputKind kind, const void* left, const void* right) {
  for (const auto& [side, memory] : {std::pair{Side::left, left}, {Side::right, right}}) {
    const std::vector<char> bytes = scalars(kind, side);
    std::vector<char> now(bytes.size());
    device_.download(now.data(), memory, now.size());
    if (bytes != now) {
      return side == Side::left ? "the left matrices were overwritten"
                                : "the right matrices were overwritten";
    }
  }
  return "";
}

FieldTruth::KindTruth& FieldTruth::truth_of(InputKind kind) {
  std::unique_ptr<KindTruth>& entry = cached_[kind];
  if (entry) return *entry;
  ScoreInputs inputs = score_inputs(problem_, kind, seed_, amplitude_, round_);
  const ScoreKind score = problem_.fields.score.kind;
  const bool large = is_large(problem_, device_.score_definition_fmas());
  const auto norm = is_centred(score) ? &MatrixFacts::centred_norm : &MatrixFacts::norm;
  const ScoreBounds bounds{
      bounds_of(kind_of_sums(problem_, kind), large, norms(inputs.left_facts, norm),
                norms(inputs.right_facts, norm)),
      largest_score_error(problem_, kind, precision_, unit_roundoff(precision_),
                          is_definition(algorithm_class_)),
      // The least contrast is 16 steps of the last place; in tf32 and fp16 a large mean whose sign
      // alternates is two values.
      is_exact(kind) || kind == InputKind::constant || kind == InputKind::contrast ||
          (kind == InputKind::alternating && unit_roundoff(precision_) > 0x1p-12)};
  const bool exact = score == ScoreKind::product && is_exact(kind);
  entry.reset(new KindTruth{{problem_, std::move(inputs), bounds, large, exact}, nullptr, {}, {}});
  entry->reference = device_.score_reference(entry->data);
  return *entry;
}

std::vector<double> FieldTruth::outputs(const void* out, Index first, Index count) const {
  std::vector<double> values(count);
  if (scalar_bytes(precision_) == sizeof(double)) {
    device_.download(values.data(), static_cast<const double*>(out) + first,
                     values.size() * sizeof(double));
    return values;
  }
  std::vector<float> narrow(count);
  device_.download(narrow.data(), static_cast<const float*>(out) + first,
                   narrow.size() * sizeof(float));
  return {narrow.begin(), narrow.end()};
}

void FieldTruth::compare_pair(const KindTruth& truth, Index p, const Expected* expected,
                              double phase, const double* out, Tally& tally) const {
  Check& check = tally.check;
  tally.first_wrong_pair = p;
  const ScoreBounds& bounds = truth.data.bounds;
  const bool score = is_normalised(problem_.fields.score.kind);
  double difference2 = 0, reference2 = 0, weight2 = 0, scores = 0;
  Index out_max = 0, largest = 0;
  for (Index e = 0; e < problem_.out_size(); ++e) {
    const double got = out[e];
    const bool zero_too = std::signbit(expected[e].bound);
    const double bound = std::abs(expected[e].bound);
    // Where the value and 0 are both right, the computed one counts.
    const double want = zero_too && got == 0 ? 0 : expected[e].value;
    if (std::isnan(got) && bounds.may_be_no_number(bound)) continue;
    const double error = std::abs(got - want);
    const bool right = bounds.right(error, bound) && !(score && std::abs(got) > 1);
    tally.note(error, bound, right);
    if (!right) count_wrong(check, problem_, p, e, got, want, bound);
    difference2 += (got - want) * (got - want);
    reference2 += want * want;
    weight2 += expected[e].weight * expected[e].weight;
    scores += expected[e].weight > 0;
    if (out[e] > out[out_max]) out_max = e;
    if (expected[e].value > expected[largest].value) largest = e;
  }
  check.argmax_agrees &= expected[out_max].value == expected[largest].value;
  const double reference = std::sqrt(reference2);
  const double bound =
      bounds.l2(reference, std::sqrt(weight2), scores, truth.data.of_pair(p, phase),
                truth.data.left_facts(p), truth.data.right_facts(p));
  check_l2(check, tally.worst_l2_ratio, problem_, p, std::sqrt(difference2), reference, bound);
}

void FieldTruth::compare_sample(const KindTruth& truth, const void* out, Check& check) const {
  // With masks the largest overlap of a pair is unknown here, and outputs of 0 are not judged.
  const bool masked = problem_.fields.masks != Masks::none;
  const double most = masked ? 0 : static_cast<double>(problem_.max_overlap());
  for (Index i = 0; i < kSampledElements; ++i) {
    const auto [p, row, col] = sampled_element(problem_, seed_, i);
    const ScoreElement element = score_at(problem_, truth.data.inputs, p, row, col, most);
    const Index e = row * problem_.out_cols() + col;
    const Expected want = expected(truth.data.bounds, truth.data.of_pair(p), e, element, false);
    const double got = outputs(out, p * problem_.out_size() + e, 1).front();
    const double bound = std::abs(want.bound);
    if (truth.data.bounds.right(std::abs(got - want.value), bound)) continue;
    if (std::isnan(got) && truth.data.bounds.may_be_no_number(bound)) continue;
    if (got == 0 && (masked || std::signbit(want.bound))) continue;
    count_wrong(check, problem_, p, e, got, want.value, bound);
  }
}

Check FieldTruth::check(InputKind kind, const void* out) {
  KindTruth& truth = truth_of(kind);
  const bool cache = fits(problem_, cache_bytes_);
  const Index size = problem_.out_size(), chunk = pairs_per_chunk(problem_);
  Tally all;
  for (Index first = 0; first < problem_.pairs(); first += chunk) {
    const Index count = std::min(chunk, problem_.pairs() - first);
    const std::vector<double> values = outputs(out, first * size, count * size);
    const Index at = truth.compute(problem_, first, count, cache);
    std::vector<Tally> of_pairs(count);
#pragma omp parallel for schedule(dynamic)
    for (Index i = 0; i < count; ++i) {
      compare_pair(truth, first + i, truth.expected.data() + (at + i) * size, truth.phase[at + i],
                   values.data() + i * size, of_pairs[i]);
    }
    for (const Tally& of_pair : of_pairs) all.add(of_pair);
  }
  if (truth.data.by_transform && problem_.fields.score.kind != ScoreKind::phase) {
    compare_sample(truth, out, all.check);
  }
  return all.check;
}

void FieldTruth::surface(InputKind kind, Index first, Index count, Reference& into) {
  KindTruth& truth = truth_of(kind);
  const Index elements = count * problem_.out_size();
  into.value.resize(elements);
  into.bound.resize(elements);
  if (!fits(problem_, cache_bytes_)) {
    return truth.reference->surfaces(first, count, into.value.data(), into.bound.data());
  }
  const Index at = truth.compute(problem_, first, count, true);
  for_records(truth.expected.data() + at * problem_.out_size(), elements, into.value.data(),
              into.bound.data());
}

std::size_t FieldTruth::host_bytes(const Problem& problem, std::size_t cache_bytes) {
  // Matrices in float64 and in the scalar type, and at most what transforms make of them.
  const std::size_t inputs =
      (problem.left_elements() + problem.right_elements()) * sizeof(double) * 8;
  const Index chunk = pairs_per_chunk(problem) * problem.out_size();
  const Index kept = fits(problem, cache_bytes) ? 3 * problem.out_elements() : chunk;
  return inputs + kept * sizeof(Expected) + chunk * (sizeof(ScoreElement) + 8 * sizeof(double));
}

}  // namespace xcorr
