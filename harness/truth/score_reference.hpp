// Values and bounds of the surfaces of one problem with one kind of input, for the truth
// (harness/truth/field_truth.hpp) of each device.
#pragma once

#include <memory>

#include "harness/truth/score.hpp"
#include "harness/verdict/score_bounds.hpp"

namespace xcorr {

struct ScoreData {
  Problem problem;
  ScoreInputs inputs;
  ScoreBounds bounds;
  bool by_transform;  // the definition would take too long
  bool exact;         // sums of whole numbers: rounding makes them exact

  // Of pair p. `phase` is that of ScoreBounds::OfPair.
  ScoreBounds::OfPair of_pair(Index p, double phase = 0) const;
  const MatrixFacts& left_facts(Index p) const { return inputs.left_facts[problem.pair(p).left]; }
  const MatrixFacts& right_facts(Index p) const {
    return inputs.right_facts[problem.pair(p).right];
  }
};

// What the comparison needs of one output.
struct Expected {
  double value;
  // How far a right output may be from the value. Negative where 0 is right as well.
  double bound;
  double weight;  // ScoreElement::absolute of sums of products, ScoreElement::scale of scores
};

// What is expected of an element of a pair.
XCORR_HD inline Expected expected(const ScoreBounds& bounds, const ScoreBounds::OfPair& pair,
                                  Index element, const ScoreElement& e, bool exact) {
  const bool normal = is_normalised(bounds.sums.problem.fields.score.kind);
  const double bound = bounds.at(pair, element, e);
  return {exact ? rint(e.value) : e.value, e.zero == ZeroRule::either ? -bound : bound,
          normal ? e.scale : e.absolute};
}

// The bound of a number in a record: where 0 is right as well, around the value and wide enough to hold 0.
XCORR_HD inline double bound_with_zero(const Expected& e) {
  return copysign(1.0, e.bound) < 0 ? fmax(-e.bound, fabs(e.value)) : e.bound;
}

// Values and bounds as of bound_with_zero, for records.
void for_records(const Expected* expected, Index count, double* value, double* bound);

class ScoreReference {
 public:
  // `data` must outlive it.
  explicit ScoreReference(const ScoreData& data) : data_(data) {}
  virtual ~ScoreReference() = default;
  ScoreReference(const ScoreReference&) = delete;
  ScoreReference& operator=(const ScoreReference&) = delete;

  // The pairs [first, first + count). `phase` gets what the L2 bound of each pair needs
  // (ScoreBounds::OfPair), 0 for all other scores.
  virtual void pairs(Index first, Index count, Expected* out, double* phase) = 0;
  // The same as of for_records.
  virtual void surfaces(Index first, Index count, double* value, double* bound);

 protected:
  const ScoreData& data_;
};

// Pairs to compute at a time: one large pair a thread, as long as they have at most 2^26 outputs
// together.
Index pairs_per_chunk(const Problem& problem);

// Applies the rule of the least overlap to the pairs [first, first + count), and converts elements
// to what is expected.
void expect(const ScoreData& data, Index first, Index count, ScoreElement* elements, Expected* out,
            double* phase);

// On the host. `data` must outlive it.
std::unique_ptr<ScoreReference> make_host_score_reference(const ScoreData& data);

// The surfaces of all pairs, [pairs][out_rows][out_cols], from dense stacks. A mask is null for a
// side without one.
void score_surfaces(const Problem& problem, const double* left, const double* right,
                    const std::uint8_t* left_mask, const std::uint8_t* right_mask,
                    bool by_transform, double* out);

}  // namespace xcorr
