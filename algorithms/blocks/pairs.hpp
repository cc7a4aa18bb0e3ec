// Pairs on the device: Problem::pair without branches and with 32-bit division, which on a GPU
// needs several times fewer instructions than 64-bit division. With small matrices there is a
// division every few hundred products.
#pragma once

#include "algorithms/device/cuda.hpp"
#include "harness/variant.hpp"

namespace xcorr::device {

// The number of right matrices of each left matrix.
inline Index rights_of_a_left(const Problem& problem) { return problem.pairs() / problem.lefts; }

// The right matrix of pair p has index p - left * rights_back. In n-to-m the rights start again for
// each left.
inline Index rights_back(const Problem& problem) {
  return problem.form == Form::n_to_m ? problem.rights : 0;
}

// Set on the host, passed to the kernel by value. pair(p) equals problem.pair(p) for each pair of a
// problem whose indices fit.
struct Pairing {
  explicit Pairing(const Problem& problem)
      : pairs_per_left(static_cast<std::uint32_t>(rights_of_a_left(problem))),
        rights_back(static_cast<std::uint32_t>(device::rights_back(problem))) {}

  __host__ __device__ __forceinline__ Pair pair(std::uint32_t p) const {
    const std::uint32_t left = p / pairs_per_left;
    return {left, p - left * rights_back};
  }

  std::uint32_t pairs_per_left;
  std::uint32_t rights_back;
};

// Shapes and window of a problem, in 32 bits. Set on the host, passed to the kernel by value.
struct Extents {
  Extents() = default;
  explicit Extents(const Problem& q)
      : left_rows(static_cast<int>(q.left.rows)),
        left_cols(static_cast<int>(q.left.cols)),
        right_rows(static_cast<int>(q.right.rows)),
        right_cols(static_cast<int>(q.right.cols)),
        first_sy(static_cast<int>(q.window.sy.first)),
        first_sx(static_cast<int>(q.window.sx.first)),
        out_rows(static_cast<int>(q.out_rows())),
        out_cols(static_cast<int>(q.out_cols())) {}

  int left_rows = 0, left_cols = 0, right_rows = 0, right_cols = 0;
  int first_sy = 0, first_sx = 0;  // shift of the first output
  int out_rows = 0, out_cols = 0;
};

// Kernels index rows, columns and pairs with 32 bits, elements with 64.
inline constexpr Index kIndexLimit = (Index{1} << 31) - 1;
inline Support indices_fit(const Problem& problem) {
  if (problem.pairs() > kIndexLimit) return no("more than 2^31 - 1 pairs");
  for (const Index length : {problem.left.rows, problem.left.cols, problem.right.rows,
                             problem.right.cols, problem.out_rows(), problem.out_cols()}) {
    if (length > kIndexLimit) return no("more than 2^31 - 1 rows or columns");
  }
  return yes();
}

}  // namespace xcorr::device
