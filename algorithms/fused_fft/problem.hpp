// The kernel arguments that all kernels of the family share, passed by value: inputs, outputs, and
// where the window lies in the circular result.
#pragma once

#include "algorithms/blocks/plan.hpp"
#include "algorithms/blocks/short_transforms.hpp"
#include "algorithms/fused_fft/roots.hpp"
#include "harness/problem/problem.hpp"

namespace xcorr::fused_fft {

// Two neighbouring values, in one access of 16 bytes.
struct alignas(16) SpectrumPair {
  Complex a, b;
};

// Consecutive rows or columns of the circular result that belong to the window.
struct Range {
  int first, count;
  __device__ __forceinline__ bool has(int i) const {
    return static_cast<unsigned>(i - first) < static_cast<unsigned>(count);
  }
};

// An input matrix.
struct Source {
  // Whether it may fill at most half of the padded length.
  static constexpr bool kMayBeHalf = true;

  // Offset of `count` rows.
  __device__ __forceinline__ int below(int count) const { return count * cols; }
  __device__ __forceinline__ float value(float stored) const { return stored; }

  const float* data;
  int rows, cols;
};

// Stores one part of v, which is columns t + step * s of row y, to the outputs of the window.
template <int kCount>
__device__ __forceinline__ void store_row(Range rows, Range cols, int y, int t,
                                          const Complex (&v)[kCount], float Complex::* part,
                                          float* out, int step) {
  if (!rows.has(y)) return;
  float* to = out + (y - rows.first) * cols.count + (t - cols.first);
#pragma unroll
  for (int s = 0; s < kCount; ++s) {
    if (cols.has(t + step * s)) to[step * s] = v[s].*part;
  }
}

// By how much to rotate the circular result of length n along one axis, so that shifts first ..
// last do not wrap around. It is n / 2 where that suffices, since then all phases are signs.
inline int rotation(Shifts shifts, int n) {
  if (n / 2 + shifts.first >= 0 && n / 2 + shifts.last < n) return n / 2;
  return static_cast<int>((n - shifts.first) % n);
}

// Base of the kernels' arguments.
struct FusedProblem {
  FusedProblem() = default;
  FusedProblem(const Problem& q, int ny, int nx, const Complex* root_tables)
      : roots(root_tables),
        left_rows(static_cast<int>(q.left.rows)),
        left_cols(static_cast<int>(q.left.cols)),
        right_rows(static_cast<int>(q.right.rows)),
        right_cols(static_cast<int>(q.right.cols)),
        turn_y(rotation(q.window.sy, ny)),
        turn_x(rotation(q.window.sx, nx)),
        rows{static_cast<int>((turn_y + q.window.sy.first) % ny), static_cast<int>(q.out_rows())},
        cols{static_cast<int>((turn_x + q.window.sx.first) % nx), static_cast<int>(q.out_cols())},
        scale(0.25f / static_cast<float>(nx * ny)) {}

  void set(const Arrays<float>& arrays) {
    left = arrays.left;
    right = arrays.right;
    out = arrays.out;
  }

  __device__ __forceinline__ Source left_of(Index i) const {
    return {left + i * left_rows * left_cols, left_rows, left_cols};
  }
  __device__ __forceinline__ Source right_of(Index i) const {
    return {right + i * right_rows * right_cols, right_rows, right_cols};
  }
  __device__ __forceinline__ float* out_of(Index i) const {
    return out + i * rows.count * cols.count;
  }
  // v holds frequencies k1 + Y::first * i of y and frequency kx of x of a left's spectrum. It
  // becomes its conjugate, times the factor that undoes all scales, times the phase that rotates
  // the result.
  template <typename Y>
  __device__ __forceinline__ void as_left(Complex (&v)[Y::second], int k1, int kx, int nx) const {
    const Complex* const powers_x = roots + 2 * kRootTable;
    const Complex* const powers_y = powers_x + kRootTable;
    const Complex of_column = powers_x[kx * turn_x % nx];
#pragma unroll
    for (int i = 0; i < Y::second; ++i) {
      const Complex phase = of_column * powers_y[(k1 + Y::first * i) * turn_y % Y::n];
      v[i] = conj(v[i] * Complex{scale * phase.re, scale * phase.im});
    }
  }

  const float *left = nullptr, *right = nullptr;
  float* out = nullptr;
  const Complex* roots = nullptr;
  int left_rows = 0, left_cols = 0, right_rows = 0, right_cols = 0;
  int turn_y = 0, turn_x = 0;
  Range rows{}, cols{};  // the window in the rotated circular result; it does not wrap
  float scale = 0;       // spectra of both inputs have twice their true value
};

// What a kernel does whose blocks hold whole padded matrices: where it gets spectra from, and where
// its results go.
enum class Work {
  shared_left,  // transforms a left into shared memory, then its rights
  stored_left,  // transforms rights; spectra of the lefts lie in the workspace
  spectra,      // transforms matrices into the workspace
  pairs,        // both spectra lie in the workspace
};

}  // namespace xcorr::fused_fft
