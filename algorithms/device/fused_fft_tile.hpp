// How a real matrix, zero-padded to ny x nx, is transformed as half a complex one, and what the
// fused-FFT variants share of it: where rows and columns lie, and how rows become outputs. The
// passes over a tile in one block's shared memory are in fused_fft_block.hpp, those over images in
// fused_fft_panels.hpp.
//
// Rows. Two real rows are one complex row, z = row0 + i row1, of which only those that hold data
// are transformed. A row of a tile holds frequencies 0 .. nx / 2 and a little more ("columns"), so
// the two rows have room for all nx values Z: those of frequencies 0 .. nx / 2 in row0, at their
// columns, those of the negative frequencies in row1, at the columns' mirrors.
//
// Columns. Row0 and row1 are second(y) apart, so one short transform of a column meets both: it
// gets row0 and row1's spectra from Z[k] and Z[-k] with two additions each (twice their value,
// which the product's scale takes back), for no access of shared memory more than if nothing were
// packed. The inverse packs rows in the same way, so a real matrix costs half a complex one
// everywhere, without any partner matrix.
#pragma once

#include "algorithms/device/block_fft.hpp"
#include "harness/problem.hpp"

namespace xcorr {

// Columns of a tile for transforms X along rows, in blocks of `second`, numbered by frequency
// k1 + first * k2 at second * k1 + k2. Of block 0 the columns 0 .. second / 2, of the last block
// (k1 = first / 2) the first half are representatives of (k, -k); of the blocks between all are.
template <typename X>
struct Columns {
  static constexpr int half = X::second / 2;
  // Columns with data, and complex elements from row to row.
  static constexpr int live = X::n / 2 + 1, pitch = X::n / 2 + half + 1;
  // The column of number i of the live ones, and the one that in odd rows holds its partner.
  static __device__ __forceinline__ int column(int i) { return i <= half ? i : i + half - 1; }
  static __device__ __forceinline__ int mirror(int column) {
    if (column <= half) return half - column;
    return column ^ (column < X::n / 2 ? X::second - 1 : half - 1);
  }
};

// Consecutive rows or columns of the circular result that are wanted.
struct Range {
  int first, count;
  __device__ __forceinline__ bool has(int i) const {
    return static_cast<unsigned>(i - first) < static_cast<unsigned>(count);
  }
};

// A matrix of the inputs, and the threads that share an image: `count` of them, a multiple of 16.
struct Source {
  const float* data;
  int rows, cols;
};
struct Crew {
  int thread, count;
};

// Where the values of one complex row lie, for a thread that has t of each short transform over s
// (load_rows, store_rows): value (k1, t). Blocks of columns begin every kBlock elements.
template <typename X, int kBlock = X::second>
struct RowSlots {
  __device__ __forceinline__ RowSlots(Complex* row0, Complex* row1, int t)
      : first_(row0 + t),
        second_(row1 + t),
        split_(t < X::second / 2 ? first_ : second_ - X::second / 2) {}
  template <int k1>
  __device__ __forceinline__ Complex& at() const {
    if constexpr (k1 == 0 || 2 * k1 == X::first) return split_[kBlock * k1];
    if constexpr (2 * k1 < X::first) return first_[kBlock * k1];
    return second_[kBlock * (X::first - k1)];
  }

 private:
  Complex *first_, *second_, *split_;
};

// The same for a thread that has all t of one k1 (finish_rows, start_rows): low and high half.
template <typename X, int kBlock = X::second>
struct RowBlock {
  __device__ __forceinline__ RowBlock(Complex* row0, Complex* row1, int k1) {
    const bool split = k1 == 0 || 2 * k1 == X::first;
    const int block = kBlock * (2 * k1 > X::first ? X::first - k1 : k1);
    low_ = (2 * k1 > X::first ? row1 : row0) + block;
    high_ = split ? row1 + block - X::second / 2 : low_;
  }
  __device__ __forceinline__ Complex& operator[](int t) const {
    return t < X::second / 2 ? low_[t] : high_[t];
  }

 private:
  Complex *low_, *high_;
};

// Calls f(k) for k = 0 .. kCount - 1, each a constant.
template <int kCount, typename F>
__device__ __forceinline__ void for_each_constant(F f) {
  [&]<int... k>(std::integer_sequence<int, k...>) { (f(std::integral_constant<int, k>{}), ...); }
  (std::make_integer_sequence<int, kCount>{});
}

// One part of v, columns t + step * s of row y, to the outputs of the window.
template <int kCount>
__device__ __forceinline__ void store_row(Range rows, Range cols, int y, int t,
                                          const Complex (&v)[kCount], float Complex::*part,
                                          float* out, int step) {
  if (!rows.has(y)) return;
  float* to = out + (y - rows.first) * cols.count + (t - cols.first);
#pragma unroll
  for (int s = 0; s < kCount; ++s) {
    if (cols.has(t + step * s)) to[step * s] = v[s].*part;
  }
}

}  // namespace xcorr
