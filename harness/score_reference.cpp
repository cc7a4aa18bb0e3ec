#include "harness/score_reference.hpp"

#include <vector>

#include "harness/phase.hpp"
#include "harness/score_transform.hpp"

namespace xcorr {
namespace {

class HostScores : public ScoreReference {
 public:
  explicit HostScores(const ScoreData& data) : data_(data) {
    if (data.by_transform) transform_ = std::make_unique<ScoreTransform>(data.problem, data.inputs);
  }

  void pairs(Index first, Index count, Expected* out, double* phase) override {
    const Index size = data_.problem.out_size();
    std::vector<ScoreElement> elements(static_cast<std::size_t>(count * size));
    if (transform_) {
      const bool absolute = data_.bounds.sums.definition;
      transform_->elements(first, count, absolute, elements.data());
    } else {
      score_definition(data_.problem, data_.inputs, first, count, elements.data());
    }
#pragma omp parallel for
    for (Index i = 0; i < count; ++i) {
      const ScoreBounds::OfPair of_pair = data_.of_pair(first + i);
      phase[i] = 0;
      for (Index e = 0; e < size; ++e) {
        out[i * size + e] = expected(data_.bounds, of_pair, e,
                                     elements[static_cast<std::size_t>(i * size + e)], data_.exact);
      }
    }
  }

 private:
  const ScoreData& data_;
  std::unique_ptr<ScoreTransform> transform_;
};

class HostPhase : public ScoreReference {
 public:
  explicit HostPhase(const ScoreData& data)
      : data_(data),
        reference_(data.problem, !data.by_transform),
        roundoff_(
            phase_roundoff(data.bounds.sums.log2_points, data.bounds.sums.u + kDoubleRoundoff)) {}

  void pairs(Index first, Index count, Expected* out, double* phase) override {
    const Index size = data_.problem.out_size();
#pragma omp parallel for schedule(dynamic)
    for (Index i = 0; i < count; ++i) {
      const ScorePair pair = data_.inputs.pair(data_.problem, first + i);
      std::vector<double> values(static_cast<std::size_t>(size));
      phase[i] = reference_.pair(pair.left, pair.right, roundoff_, values.data());
      const ScoreBounds::OfPair of_pair = data_.of_pair(first + i, phase[i]);
      for (Index e = 0; e < size; ++e) {
        ScoreElement element;
        element.value = values[static_cast<std::size_t>(e)];
        out[i * size + e] = expected(data_.bounds, of_pair, e, element, false);
      }
    }
  }

 private:
  const ScoreData& data_;
  PhaseReference reference_;
  double roundoff_;
};

}  // namespace

const MatrixFacts& ScoreData::left_facts(Index p) const {
  return inputs.left_facts[static_cast<std::size_t>(problem.pair(p).left)];
}

const MatrixFacts& ScoreData::right_facts(Index p) const {
  return inputs.right_facts[static_cast<std::size_t>(problem.pair(p).right)];
}

ScoreBounds::OfPair ScoreData::of_pair(Index p, double phase) const {
  return bounds.of_pair(left_facts(p), right_facts(p), phase);
}

std::unique_ptr<ScoreReference> make_host_score_reference(const ScoreData& data) {
  if (data.problem.fields.score.kind == ScoreKind::phase) return std::make_unique<HostPhase>(data);
  return std::make_unique<HostScores>(data);
}

}  // namespace xcorr
