// float64 references on the host: by the definition for small problems and samples, by FFTW for
// large problems. left and right are complete stacks.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "harness/problem/problem.hpp"

namespace xcorr {

// out[pairs][out_rows][out_cols] of the pairs [first, first + count), by the four loops.
void correlate_definition(const Problem& problem, const double* left, const double* right,
                          Index first, Index count, double* out);

// One output element by the definition.
double correlate_element(const Problem& problem, const double* left, const double* right,
                         Index pair, Index out_row, Index out_col);

// The mutex of FFTW's one planner. A reference holds it while it makes or destroys plans, a Session
// while a variant does.
std::mutex& fftw_planner();

// The same by float64 FFTs, zero-padded, or of the size of the matrices for boundary circular. left
// and right must outlive it.
class FftReference {
 public:
  FftReference(const Problem& problem, const double* left, const double* right);
  FftReference(FftReference&&) noexcept;
  ~FftReference();
  void correlate(Index first, Index count, double* out) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The length of transforms of a reference: the smallest 2^a 3^b 5^c 7^d of at least n.
Index reference_length(Index n);

// The largest prime factor of n; 1 for 1.
Index largest_prime_factor(Index n);
// Libraries transform lengths with larger prime factors as convolutions (Bluestein 1970).
inline constexpr Index kLargestDirectPrime = 127;

// log2 of the number of points of the smallest transform of the problem.
double log2_transform_points(const Problem& problem);

}  // namespace xcorr
