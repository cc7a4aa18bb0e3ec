// Every score but phase by transforms in float64: a second way besides the definition
// (harness/truth/score.hpp), and the reference of large problems.
#pragma once

#include <memory>

#include "harness/truth/score.hpp"

namespace xcorr {

// Sums of centred products, and with masks of squares, values and valid elements, are correlations
// by FFT. Without masks the sums of one side are differences of an integral image. Elements whose
// sums lose digits, or whose side may be constant, are computed by the definition: with an outlier
// of 1e38 in a matrix, all windows without it.
class ScoreTransform {
 public:
  // `inputs` must outlive it.
  ScoreTransform(const Problem& problem, const ScoreInputs& inputs);
  ~ScoreTransform();
  // The pairs [first, first + count) like score_definition; with `absolute` also
  // ScoreElement::absolute of product and covariance.
  void elements(Index first, Index count, bool absolute, ScoreElement* out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace xcorr
