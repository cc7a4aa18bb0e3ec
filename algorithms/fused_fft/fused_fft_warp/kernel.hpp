// The kernel of fused_fft_warp: a warp transforms two padded tiles of 32 x 32, or four of 16 x 16.
// The n / 2 lanes of a tile hold its rows, then its n / 2 columns, so a dimension is one transform
// in registers without twiddle tables, and the only exchange is the one between rows and columns.
//
// Columns 0 and n / 2 are real in the other dimension. They are packed for two tiles of the warp
// ("mates"), which are multiplied by the same left: lane 0 of the even tile has frequency 0 of both
// tiles, as real and imaginary part, and lane 0 of the odd tile has frequency n / 2 of both.
#pragma once

#include "algorithms/device/launch.hpp"
#include "algorithms/fused_fft/fused_fft_warp/tuning.hpp"
#include "algorithms/fused_fft/problem.hpp"
#include "algorithms/fused_fft/row_transforms.hpp"
#include "harness/variant.hpp"

namespace xcorr::fused_fft {

struct alignas(16) Quad {
  float v[4];
};

struct WarpArguments : FusedProblem {
  // Rights per left; blocks per left; max rights per block.
  std::uint32_t rights_of_left, chunks, chunk;
  std::uint32_t rights_back;
  int small;  // whether matrices fill at most half of the padding
  int quads;  // whether rows of the inputs are whole aligned quads
};

// The tiles of a warp; each has n / 2 lanes.
template <int kN>
struct LaneTile {
  static constexpr int half = kN / 2, tiles = 32 / half, pitch = half + 1;
  // The distance of tiles puts them in different banks, for lanes that write rows of the output.
  static constexpr int spectrum = kN * pitch, elements = spectrum + 16 / tiles;
  static_assert(tiles > 1);
};

// Loads row `row` of a real matrix as kCount complex values.
template <int kCount>
__device__ __forceinline__ void load_row(const Source& from, int row, bool quads,
                                         Complex (&z)[kCount]) {
  const float* data = from.data + row * from.cols;
  if (quads) {
#pragma unroll
    for (int s = 0; s < kCount; s += 2) {
      Quad q{};
      if (row < from.rows && 2 * s < from.cols) q = *reinterpret_cast<const Quad*>(data + 2 * s);
      z[s] = {q.v[0], q.v[1]};
      z[s + 1] = {q.v[2], q.v[3]};
    }
  } else {
#pragma unroll
    for (int s = 0; s < kCount; ++s) {
      z[s].re = row < from.rows && 2 * s < from.cols ? data[2 * s] : 0.0f;
      z[s].im = row < from.rows && 2 * s + 1 < from.cols ? data[2 * s + 1] : 0.0f;
    }
  }
}

// Stores the spectrum of a row's values to the tile. Frequency 0 goes to `edge`, and n / 2 to the
// same place of the mate.
template <int kN, int kInputs>
__device__ __forceinline__ void forward_row(const Complex (&values)[kInputs], Complex* to,
                                            float* edge) {
  using T = LaneTile<kN>;
  Complex z[T::half];
#pragma unroll
  for (int s = 0; s < kInputs; ++s) z[s] = values[s];
  transform<T::half, Direction::forward, kInputs>(z);
  untangle(z);
  edge[0] = z[0].re;
  edge[2 * T::elements] = z[0].im;
#pragma unroll
  for (int k = 1; k < T::half; ++k) to[k] = z[k];
}

// Conjugates, scales and rotates column kx of a left's spectrum, by the lane that wrote it.
template <int kN>
__device__ __forceinline__ void prepare_left(const WarpArguments& a, Complex* to, int kx) {
  constexpr int kPitch = LaneTile<kN>::pitch;
  const Complex* const powers_x = a.roots + 2 * kRootTable;
  const Complex* const powers_y = powers_x + kRootTable;
  // Opaque to the compiler, so that it does not compute the addresses of all roots before the loop
  // over the rights.
  const int turn_x = opaque(a.turn_x), turn_y = opaque(a.turn_y);
  const bool signs = 2 * turn_x == kN && 2 * turn_y == kN;
  Complex of_column = {kx % 2 == 0 ? a.scale : -a.scale, 0.0f};
  if (!signs) {
    const Complex power = powers_x[kx * turn_x % kN];
    of_column = {a.scale * power.re, a.scale * power.im};
  }
#pragma unroll 4
  for (int k = 0; k < kN; ++k) {
    const Complex phase = signs ? Complex{k % 2 == 0 ? of_column.re : -of_column.re, 0.0f}
                                : of_column * powers_y[k * turn_y % kN];
    to[k * kPitch] = conj(to[k * kPitch] * phase);
  }
}

template <int kN>
__global__ void __launch_bounds__(32 * WarpTuning::most_warps(kN), WarpTuning::kBlocks)
    warp_kernel(WarpArguments a) {
  using T = LaneTile<kN>;
  constexpr int kHalf = T::half, kPitch = T::pitch;
  Complex* const left_spectrum = dynamic_shared<Complex>();  // frequency kHalf is its last column
  Complex* const tiles = left_spectrum + T::spectrum;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int warps = static_cast<int>(blockDim.x) / 32;
  const int of_warp = lane / kHalf, j = lane % kHalf;
  Complex* const warp_tiles = tiles + warp * T::tiles * T::elements;
  Complex* const tile = warp_tiles + of_warp * T::elements;
  // Edges of mates: part of_warp % 2 of column 0 of the even and of the odd tile.
  float* const edge = &(tile - of_warp % 2 * T::elements)->re + of_warp % 2;
  Complex* const row_j = tile + j * kPitch;

  const std::uint32_t l = blockIdx.x / a.chunks, m = a.rights_of_left;
  const int begin = static_cast<int>((blockIdx.x - l * a.chunks) * a.chunk);
  const int end = static_cast<int>(begin + a.chunk < m ? begin + a.chunk : m);
  const int step = warps * T::tiles;
  // The column that this lane multiplies with; frequency n / 2 for lane 0 of an odd tile.
  const Complex* const mine = left_spectrum + (j == 0 && of_warp % 2 == 1 ? kHalf : j);
  // The first warp transforms the left before its rights, so it gets the last share of them.
  const int share = begin + (warp > 0 ? warp - 1 : warps - 1) * T::tiles + of_warp;
  const auto source = [&](int round) {
    if (round < 0) return of_warp == 0 ? a.left_of(l) : Source{a.left, 0, 0};
    const int r = share + round * step;
    return r < end ? a.right_of(l * (m - a.rights_back) + r) : Source{a.right, 0, 0};
  };
  int round = warp == 0 ? -1 : 0;
  bool has_left = false;
  Source from = source(round);
  wait_for_previous();
  // Rows of matrices that fill at most half of the padding are loaded one round ahead.
  Complex ahead[kHalf / 2];
  if (a.small) load_row(from, j, a.quads, ahead);

#pragma unroll 1
  for (;; ++round) {
    const int first = share - of_warp + round * step, r = first + of_warp;
    Complex v[kN];
    if (a.small) {
      forward_row<kN>(ahead, row_j, edge + 2 * j * kPitch);
      warp::barrier();
#pragma unroll
      for (int y = 0; y < kHalf; ++y) v[y] = tile[y * kPitch + j];
      transform<kN, Direction::forward, kHalf>(v);
    } else {
      // Mates share columns, so all tiles have as many rows as the larger side.
      const int rows = a.left_rows > a.right_rows ? a.left_rows : a.right_rows;
#pragma unroll 1
      for (int row = j; row < rows; row += kHalf) {
        Complex values[kHalf];
        load_row(from, row, a.quads, values);
        forward_row<kN>(values, row_j + (row - j) * kPitch, edge + 2 * row * kPitch);
      }
      warp::barrier();
#pragma unroll
      for (int y = 0; y < kN; ++y) {
        v[y] = y < rows ? tile[y * kPitch + j] : Complex{0.0f, 0.0f};
      }
      transform<kN, Direction::forward>(v);
    }
    if (!has_left) {
      if (round < 0) {
        const bool of_half = j == 0 && of_warp == 1;
        if (of_warp == 0 || of_half) {
          Complex* const to = left_spectrum + (of_half ? kHalf : j);
#pragma unroll
          for (int k = 0; k < kN; ++k) to[k * kPitch] = v[k];
          prepare_left<kN>(a, to, of_half ? kHalf : j);
        }
      }
      has_left = true;
      block::barrier();
      if (round < 0) {
        from = source(0);
        if (a.small) load_row(from, j, a.quads, ahead);
        continue;
      }
    }
    if (first >= end) break;
#pragma unroll
    for (int k = 0; k < kN; ++k) v[k] = v[k] * mine[k * kPitch];
    transform<kN, Direction::inverse>(v);
    warp::barrier();
#pragma unroll
    for (int y = 0; y < kN; ++y) tile[y * kPitch + j] = v[y];
    from = source(round + 1);
    if (a.small) load_row(from, j, a.quads, ahead);
    warp::barrier();

    const Index size = static_cast<Index>(a.rows.count) * a.cols.count;
    const Index p = static_cast<Index>(l) * m + r;
    // The tile is overwritten with the dense output, with the alignment that it has in global
    // memory.
    const int shift =
        static_cast<int>((reinterpret_cast<std::uintptr_t>(a.out) / 4 + p * size) % 4);
    float* const dense = &tile->re + shift;
#pragma unroll 1
    for (int y = j; y < kN; y += kHalf) {
      Complex x[kHalf];
      x[0] = {edge[2 * y * kPitch], edge[2 * y * kPitch + 2 * T::elements]};
#pragma unroll
      for (int k = 1; k < kHalf; ++k) x[k] = tile[y * kPitch + k];
      tangle(x);
      transform<kHalf, Direction::inverse>(x);
      warp::barrier();
      if (a.rows.has(y)) {
        float* const to = dense + (y - a.rows.first) * a.cols.count - a.cols.first;
#pragma unroll
        for (int k = 0; k < kHalf; ++k) {
          if (a.cols.has(2 * k)) to[2 * k] = x[k].re;
          if (a.cols.has(2 * k + 1)) to[2 * k + 1] = x[k].im;
        }
      }
    }
    warp::barrier();
#pragma unroll 1
    for (int t = 0; t < T::tiles; ++t) {
      const int right = first + t;
      if (right >= end) continue;
      float* const out = a.out + (static_cast<Index>(l) * m + right) * size;
      const int begins = static_cast<int>(reinterpret_cast<std::uintptr_t>(out) / 4 % 4);
      const int ends = begins + static_cast<int>(size);
      const float* const from_tile = &(warp_tiles + t * T::elements)->re;
      float* const aligned = out - begins;
      const int first_quad = (begins + 3) / 4, end_quad = ends / 4;
#pragma unroll 8
      for (int q = first_quad + lane; q < end_quad; q += 32) {
        reinterpret_cast<Quad*>(aligned)[q] = reinterpret_cast<const Quad*>(from_tile)[q];
      }
      // The values before the first whole quad and after the last one.
      const int edge_begins =
          lane < 4 ? begins : 4 * (end_quad < first_quad ? first_quad : end_quad);
      const int edge_ends = lane < 4 && 4 * first_quad < ends ? 4 * first_quad : ends;
      const int e = edge_begins + lane % 4;
      if (lane < 8 && e < edge_ends) aligned[e] = from_tile[e];
    }
    warp::barrier();
  }
}

}  // namespace xcorr::fused_fft
