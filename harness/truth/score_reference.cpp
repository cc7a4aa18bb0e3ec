#include "harness/truth/score_reference.hpp"

#include <omp.h>

#include <algorithm>
#include <type_traits>
#include <vector>

#include "harness/truth/phase.hpp"
#include "harness/truth/score_transform.hpp"

namespace xcorr {
namespace {

class HostScores : public ScoreReference {
 public:
  explicit HostScores(const ScoreData& data) : ScoreReference(data) {
    if (data.by_transform) transform_ = std::make_unique<ScoreTransform>(data.problem, data.inputs);
  }

  void pairs(Index first, Index count, Expected* out, double* phase) override {
    const Index size = data_.problem.out_size();
    // Kept between calls: one thread would clear new memory.
    elements_.resize(count * size);
    if (transform_) {
      const bool absolute = data_.bounds.sums.definition;
      transform_->elements(first, count, absolute, elements_.data());
    } else {
      score_definition(data_.problem, data_.inputs, first, count, elements_.data());
    }
    expect(data_, first, count, elements_.data(), out, phase);
  }

 private:
  std::vector<ScoreElement> elements_;
  std::unique_ptr<ScoreTransform> transform_;
};

class HostPhase : public ScoreReference {
 public:
  explicit HostPhase(const ScoreData& data)
      : ScoreReference(data),
        reference_(data.problem, !data.by_transform),
        roundoff_(
            phase_roundoff(data.bounds.sums.log2_points, data.bounds.sums.u + kDoubleRoundoff)) {}

  void pairs(Index first, Index count, Expected* out, double* phase) override {
    const Index size = data_.problem.out_size();
    const Bounds& sums = data_.bounds.sums;
    const double smallest = sums.kind == InputKind::subnormal && sums.single ? 0x1p-126 : 0;
#pragma omp parallel for schedule(dynamic)
    for (Index i = 0; i < count; ++i) {
      const ScorePair pair = data_.inputs.pair(data_.problem, first + i);
      std::vector<double> values(size);
      phase[i] = reference_.pair(pair.left, pair.right, roundoff_, smallest, values.data());
      const ScoreBounds::OfPair of_pair = data_.of_pair(first + i, phase[i]);
      for (Index e = 0; e < size; ++e) {
        ScoreElement element;
        element.value = values[e];
        out[i * size + e] = expected(data_.bounds, of_pair, e, element, false);
      }
    }
  }

 private:
  PhaseReference reference_;
  double roundoff_;
};

}  // namespace

ScoreBounds::OfPair ScoreData::of_pair(Index p, double phase) const {
  return bounds.of_pair(left_facts(p), right_facts(p), phase);
}

Index pairs_per_chunk(const Problem& problem) {
  constexpr Index kChunkElements = Index{1} << 22, kMostElements = Index{1} << 26;
  const Index size = problem.out_size();
  const Index one_a_thread = std::min<Index>(omp_get_max_threads(), kMostElements / size);
  const Index pairs = std::max(kChunkElements / size, one_a_thread);
  return std::clamp<Index>(pairs, 1, problem.pairs());
}

void for_records(const Expected* expected, Index count, double* value, double* bound) {
#pragma omp parallel for
  for (Index i = 0; i < count; ++i) {
    value[i] = expected[i].value;
    bound[i] = bound_with_zero(expected[i]);
  }
}

void ScoreReference::surfaces(Index first, Index count, double* value, double* bound) {
  const Index size = data_.problem.out_size();
  const Index chunk = std::min(pairs_per_chunk(data_.problem), count);
  std::vector<Expected> made(chunk * size);
  std::vector<double> phase(chunk);
  for (Index p = 0; p < count; p += chunk) {
    const Index some = std::min(chunk, count - p);
    pairs(first + p, some, made.data(), phase.data());
    for_records(made.data(), some * size, value + p * size, bound + p * size);
  }
}

// The elements of many pairs, or of few large ones, go to all threads.
void expect(const ScoreData& data, Index first, Index count, ScoreElement* elements, Expected* out,
            double* phase) {
  const Problem& q = data.problem;
  const Index size = q.out_size();
  const bool score = is_normalised(q.fields.score.kind);
  std::vector<double> most(count, 0.0);  // terms of an element of a pair
  std::vector<ScoreBounds::OfPair> bounds;
  for (Index i = 0; i < count; ++i) {
    phase[i] = 0;
    bounds.push_back(data.of_pair(first + i));
  }
  const Index parts = count < omp_get_max_threads() ? 64 : 1;  // of a pair
  const auto part = [&](Index j) {
    return std::pair{j % parts * size / parts, (j % parts + 1) * size / parts};
  };
#pragma omp parallel
  {
    if (score) {
#pragma omp for
      for (Index j = 0; j < count * parts; ++j) {
        const auto [begin, end] = part(j);
        const ScoreElement* const own = elements + j / parts * size;
        double largest = 0;
        for (Index e = begin; e < end; ++e) largest = std::max(largest, own[e].terms);
#pragma omp critical
        most[j / parts] = std::max(most[j / parts], largest);
      }
    }
#pragma omp for
    for (Index j = 0; j < count * parts; ++j) {
      const auto [begin, end] = part(j);
      const Index i = j / parts;
      for (Index e = begin; e < end; ++e) {
        ScoreElement& element = elements[i * size + e];
        if (score) apply_least_overlap(element, q.fields.score.min_overlap, most[i]);
        out[i * size + e] = expected(data.bounds, bounds[i], e, element, data.exact);
      }
    }
  }
}

std::unique_ptr<ScoreReference> make_host_score_reference(const ScoreData& data) {
  if (data.problem.fields.score.kind == ScoreKind::phase) return std::make_unique<HostPhase>(data);
  return std::make_unique<HostScores>(data);
}

void score_surfaces(const Problem& problem, const double* left, const double* right,
                    const std::uint8_t* left_mask, const std::uint8_t* right_mask,
                    bool by_transform, double* out) {
  const auto stack = [](const auto* values, Index count) {
    return values ? std::vector(values, values + count)
                  : std::vector<std::remove_cvref_t<decltype(*values)>>();
  };
  ScoreInputs inputs{stack(left, problem.left_elements()),
                     stack(right, problem.right_elements()),
                     stack(left_mask, problem.left_elements()),
                     stack(right_mask, problem.right_elements()),
                     {},
                     {}};
  inputs.find_facts(problem);
  const Index size = problem.out_size();
  if (problem.fields.score.kind == ScoreKind::phase) {
    const PhaseReference reference(problem, !by_transform);
#pragma omp parallel for schedule(dynamic)
    for (Index p = 0; p < problem.pairs(); ++p) {
      const ScorePair pair = inputs.pair(problem, p);
      reference.pair(pair.left, pair.right, 0, 0, out + p * size);
    }
    return;
  }
  std::unique_ptr<ScoreTransform> transform;
  if (by_transform) transform = std::make_unique<ScoreTransform>(problem, inputs);
  const Index chunk = std::max<Index>(1, (Index{1} << 22) / size);
  for (Index first = 0; first < problem.pairs(); first += chunk) {
    const Index count = std::min(chunk, problem.pairs() - first);
    std::vector<ScoreElement> elements(count * size);
    if (transform) {
      transform->elements(first, count, false, elements.data());
    } else {
      score_definition(problem, inputs, first, count, elements.data());
    }
    for (const ScoreElement& e : elements) *out++ = e.value;
  }
}

}  // namespace xcorr
