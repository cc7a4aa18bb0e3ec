// What plans of the fused-FFT family have in common: lengths, roots of one, rotation of the result.
#pragma once

#include <algorithm>
#include <cmath>

#include "algorithms/device/fused_fft_tile.hpp"
#include "algorithms/device/padding.hpp"
#include "algorithms/device/pairs.hpp"

namespace xcorr {

// Complex elements from one table of roots to the next.
inline constexpr int kRootTable = 512;

struct RootPiece {
  Complex w[256];
};
static __global__ void store_roots(RootPiece piece, Complex* to) {
  for (int i = static_cast<int>(threadIdx.x); i < 256; i += static_cast<int>(blockDim.x)) {
    to[i] = piece.w[i];
  }
}

// Writes w_n^(k1 t), sign of the inverse, at second * k1 + t, or (`natural`) w_n^k at k: correctly
// rounded from double, so that they cost no accuracy.
template <typename L>
void store_root_table(bool natural, Complex* to, void* stream) {
  for (int first = 0; first < L::n; first += 256) {
    RootPiece piece{};
    for (int i = first; i < std::min(L::n, first + 256); ++i) {
      const int k = natural ? i : (i / L::second) * (i % L::second);
      const double angle = 2 * 3.14159265358979323846 * k / L::n;
      piece.w[i - first] = {static_cast<float>(std::cos(angle)),
                            static_cast<float>(std::sin(angle))};
    }
    launch(store_roots, dim3(1), dim3(128), 0, stream, piece, to + first);
  }
}

// Four tables: passes of x and of y, then powers of x and of y.
inline constexpr Index kRootBytes = 4 * kRootTable * static_cast<Index>(sizeof(Complex));
template <typename Y, typename X>
void store_root_tables(Complex* to, void* stream) {
  store_root_table<X>(false, to, stream);
  store_root_table<Y>(false, to + kRootTable, stream);
  store_root_table<X>(true, to + 2 * kRootTable, stream);
  store_root_table<Y>(true, to + 3 * kRootTable, stream);
}

// Where a kernel of whole tiles gets its spectra from and what it makes of them.
enum class Work {
  shared_left,  // transforms one left into shared memory, then its rights
  stored_left,  // rights; the spectra of the lefts lie in the workspace
  spectra,      // transforms matrices into the workspace
  pairs,        // both spectra lie in the workspace
};

// The lengths of transforms that a variant is compiled for, ascending.
template <int... kN>
struct Lengths {
  // The shortest for an axis, 0 if none.
  static int shortest(Index left, Index right, Shifts shifts) {
    const Index needed = padded_size(left, right, shifts);
    int result = 0;
    ((result = result == 0 && kN >= needed ? kN : result), ...);
    return result;
  }
  static int y(const Problem& q) { return shortest(q.left.rows, q.right.rows, q.window.sy); }
  static int x(const Problem& q) { return shortest(q.left.cols, q.right.cols, q.window.sx); }
  // Of square transforms.
  static int square(const Problem& q) { return y(q) == 0 || x(q) == 0 ? 0 : std::max(y(q), x(q)); }
  static Support supports(const Problem& q) {
    if (const Support fit = indices_fit(q); !fit) return fit;
    if (square(q) > 0) return yes();
    return no("a transform longer than " + std::to_string(std::max({kN...})));
  }
  // f(Length<n>), n being one of them.
  template <typename F>
  static auto with(int n, F f) {
    return with_one<kN...>(n, f);
  }

 private:
  template <int kFirst, int... kRest, typename F>
  static auto with_one(int n, F f) {
    if constexpr (sizeof...(kRest) > 0) {
      if (n != kFirst) return with_one<kRest...>(n, f);
    }
    return f(Length<kFirst>{});
  }
};

// By how much to rotate the circular result of length n along one axis, so that shifts
// first .. last do not wrap around: half of it where that will do, since its phases are signs.
inline int rotation(Shifts shifts, int n) {
  if (n / 2 + shifts.first >= 0 && n / 2 + shifts.last < n) return n / 2;
  return static_cast<int>((n - shifts.first) % n);
}

// What kernels need to know of a problem, by value.
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

  __device__ __forceinline__ Source left_of(Index i) const {
    return {left + i * left_rows * left_cols, left_rows, left_cols};
  }
  __device__ __forceinline__ Source right_of(Index i) const {
    return {right + i * right_rows * right_cols, right_rows, right_cols};
  }
  __device__ __forceinline__ float* out_of(Index i) const {
    return out + i * rows.count * cols.count;
  }
  // v: frequencies k1 + Y::first * i of y, and frequency kx, of a left: its conjugate, times what
  // undoes all scales, and rotated.
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
  Range rows{}, cols{};  // of the circular result, rotated: the window in one piece
  float scale = 0;       // both inputs come at twice their value
};

}  // namespace xcorr
