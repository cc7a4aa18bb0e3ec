// Phase correlation in float64 on the host (docs/design.md, Fields of a problem). X = conj(F(L))
// F(R) is the cross spectrum of the matrices without their means, with 0 at frequency 0. The output
// is the inverse transform of X / max(|X|, f)^(1 - p) with f = phase_floor(points) x norm(L) x
// norm(R), and 0 where a norm is 0.
#pragma once

#include <complex>
#include <memory>
#include <vector>

#include "harness/problem/problem.hpp"

namespace xcorr {

class PhaseReference {
 public:
  // `definition`: discrete transforms by their sums, for small matrices; otherwise FFTW.
  PhaseReference(const Problem& problem, bool definition);
  ~PhaseReference();

  // Writes out[out_rows][out_cols] of one pair. Returns the expected error of an output, as a root
  // mean square, where transforms of inputs have relative errors of `roundoff` in each bin
  // (harness/verdict/score_bounds.hpp). `smallest`: a library may take smaller numbers of the left
  // for 0; 0 where the left has none.
  double pair(const double* left, const double* right, double roundoff, double smallest,
              double* out) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace xcorr
