// Phase correlation in float64 on the host (docs/design.md, Fields of a problem): with the cross
// spectrum X = conj(F(L)) F(R) of the matrices without their means, whose bin of frequency 0 is set to
// 0, the output is the inverse transform of X / max(|X|, f)^(1 - p), with f = phase_floor(points) x
// norm(L) x norm(R). It is 0 where either norm is 0.
#pragma once

#include <complex>
#include <memory>
#include <vector>

#include "harness/problem/problem.hpp"

namespace xcorr {

// Computes pairs of matrices of one shape.
class PhaseReference {
 public:
  // `definition`: a discrete transform by its sum, for small matrices; else FFTW.
  PhaseReference(const Problem& problem, bool definition);
  ~PhaseReference();

  // Writes out[out_rows][out_cols] of one pair. Returns the error that an output is expected to
  // have, as a root mean square, where the transforms of the inputs have relative errors of
  // `roundoff` in each bin (harness/verdict/score_bounds.hpp). `smallest` is the number below which a library may
  // take numbers for 0, where the left has such numbers; else 0.
  double pair(const double* left, const double* right, double roundoff, double smallest,
              double* out) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace xcorr
