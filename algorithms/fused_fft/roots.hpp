// Tables of roots of one, which a plan stores in the workspace. They are computed in float64 and
// correctly rounded, so that they cost no accuracy.
#pragma once

#include <algorithm>
#include <cmath>

#include "algorithms/blocks/short_transforms.hpp"
#include "algorithms/device/cuda.hpp"
#include "harness/problem/problem.hpp"

namespace xcorr::fused_fft {

// Complex elements per table of roots.
inline constexpr int kRootTable = 512;

struct RootPiece {
  Complex w[256];
};
static __global__ void store_roots(RootPiece piece, Complex* to) {
  for (int i = static_cast<int>(threadIdx.x); i < 256; i += static_cast<int>(blockDim.x)) {
    to[i] = piece.w[i];
  }
}

// Writes w_n^(k1 t), with the sign of the inverse, at second * k1 + t; or, if `natural`, w_n^k at
// k.
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

// Four tables: twiddles of the passes of x and of y, then powers for x and for y.
inline constexpr Index kRootBytes = 4 * kRootTable * static_cast<Index>(sizeof(Complex));
template <typename Y, typename X>
void store_root_tables(Complex* to, void* stream) {
  store_root_table<X>(false, to, stream);
  store_root_table<Y>(false, to + kRootTable, stream);
  store_root_table<X>(true, to + 2 * kRootTable, stream);
  store_root_table<Y>(true, to + 3 * kRootTable, stream);
}

}  // namespace xcorr::fused_fft
