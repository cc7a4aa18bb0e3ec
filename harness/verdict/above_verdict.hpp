// The verdict on detections, the records of result `above`.
//
// Which outputs are detections follows from the truth alone. So the surfaces are computed once for
// a kind of input, and any number of lists is compared with the candidates that were found in them.
#pragma once

#include <vector>

#include "harness/verdict/pair_truth.hpp"

namespace xcorr {

class AboveTruth {
 public:
  // Computes the references of all pairs. `truth` is that of problem.surface().
  AboveTruth(const Problem& problem, Truth& truth, InputKind kind);

  // `records` are problem.result_bytes() bytes of host memory. `truth` as above: the surface of a
  // pair is computed again where an output is listed that is no candidate. More outputs above the
  // threshold than the capacity are wrong.
  Check check(Truth& truth, const void* records) const;

  // Bytes that the candidates take.
  std::size_t bytes() const;

 private:
  // An output that a list may hold, or must hold.
  struct Candidate {
    Index at;
    double value, bound;  // of the record
    bool certain;
  };
  struct OfPair {
    judged::Interval threshold{};       // holds it: medians have the errors of the outputs
    std::vector<Candidate> candidates;  // by position
  };
  struct Detected {
    Index at;
    float value;
  };

  Tally check_pair(Truth& truth, Index pair, const std::vector<Detected>& found,
                   bool all_listed) const;

  Problem problem_;
  InputKind kind_;
  std::vector<OfPair> pairs_;
  Index certain_ = 0, possible_ = 0;
};

}  // namespace xcorr
