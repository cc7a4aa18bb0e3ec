// float64 references on the host: by the definition for small problems and samples, by FFTW for
// large problems.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "harness/problem/problem.hpp"

namespace xcorr {

// out[pairs][out_rows][out_cols] of the pairs [first, first + count), by the four loops.
// left and right are the complete stacks.
void correlate_definition(const Problem& problem, const double* left, const double* right,
                          Index first, Index count, double* out);

// One output element by the definition.
double correlate_element(const Problem& problem, const double* left, const double* right,
                         Index pair, Index out_row, Index out_col);

// FFTW has one planner for the process, and only one thread at a time may use it. A reference holds
// this mutex while it makes or destroys its plans, and a Session while a variant does.
std::mutex& fftw_planner();

// The same by a float64 FFT, for either boundary: with zeros around the matrices, or of their own
// size where the boundary is circular. left and right must outlive it.
class FftReference {
 public:
  FftReference(const Problem& problem, const double* left, const double* right);
  ~FftReference();
  void correlate(Index first, Index count, double* out) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Length of the transforms of a reference: the smallest 2^a 3^b 5^c 7^d that is at least n.
Index reference_length(Index n);

// log2 of the number of points of the smallest transform that computes the problem.
double log2_transform_points(const Problem& problem);

}  // namespace xcorr
