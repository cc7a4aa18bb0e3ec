// The 2D transform of one real matrix, zero-padded to ny x nx, in place in a tile of shared memory,
// and its inverse: the passes that the fused-FFT variants put together. Barriers between passes are
// the caller's; within a pass each thread works on elements of its own.
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
//
//   pass              reads                     transforms            writes
//   load_rows         matrix, rows with data    first(x) over s       tile, times twiddles
//   finish_rows       tile                      second(x) over t      tile: Z
//   split_columns     Z[k], Z[-k]               first(y) over s       tile, times twiddles
//   middle            tile                      second(y), product with conj(left), second(y) back
//   join_columns      tile, times twiddles      first(y) back         W[k], W[-k] of row0 + i row1
//   start_rows        tile                      second(x) back        tile
//   store_rows        tile, times twiddles      first(x) back         outputs of the window
//
// Shared memory: the pitch is odd in complex elements, so lanes along a row and lanes along a
// column both meet all banks; a tile is crossed 4.5 times by reads and 4.5 times by writes.
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

// A matrix of the inputs, and the threads that share a tile: `count` of them, a multiple of 16.
struct Source {
  const float* data;
  int rows, cols;
};
struct Crew {
  int thread, count;
};

// The two lengths of a tile: compile-time here, so that offsets are constants of the instructions.
template <int kNy, int kNx>
struct TileShape {
  using Y = Length<kNy>;
  using X = Length<kNx>;
  static constexpr int pitch = Columns<X>::pitch, elements = kNy * pitch;
  // Pairs of rows that are one complex row, in groups of Y::second.
  static constexpr int row_pairs = kNy / 2;
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

template <typename Shape>
class FusedTile {
  using X = typename Shape::X;
  using Y = typename Shape::Y;
  static constexpr int kPitch = Shape::pitch, kPartner = Y::second * kPitch;

 public:
  // `twiddles_x` holds w_nx^(k1 t) at second * k1 + t, with the sign of the inverse; likewise y.
  __device__ __forceinline__ FusedTile(Complex* tile, const Complex* twiddles_x,
                                       const Complex* twiddles_y, Crew crew)
      : tile_(tile), twiddles_x_(twiddles_x), twiddles_y_(twiddles_y), crew_(crew) {}

  __device__ __forceinline__ void load_rows(const Source& from) const {
    if (from.cols <= X::n / 2) {
      load_rows_of<X::first / 2>(from);
    } else {
      load_rows_of<X::first>(from);
    }
  }

  __device__ __forceinline__ void finish_rows(int rows) const {
    each_row_block(row_pairs(rows), [&](int y, int k1) {
      Complex* row0 = tile_ + y * kPitch;
      const RowBlock<X> slots(row0, row0 + kPartner, k1);
      Complex v[X::second];
#pragma unroll
      for (int t = 0; t < X::second; ++t) v[t] = slots[t];
      transform<X::second, Direction::forward>(v);
#pragma unroll
      for (int t = 0; t < X::second; ++t) slots[t] = v[t];
      if (k1 == 0) {  // frequencies 0 and nx / 2 are their own partners
        row0[kPartner + X::second / 2] = v[0];
        row0[X::second / 2] = v[X::second / 2];
      }
    });
  }

  __device__ __forceinline__ void split_columns(int rows) const {
    if (rows <= Y::n / 2) {
      split_columns_of<Y::first / 2>(rows);
    } else {
      split_columns_of<Y::first>(rows);
    }
  }

  // f(values of one second-pass transform of a column, offset of the first in a tile, k1, column);
  // those of the tile go in where kLoads, and come back where kStores.
  template <bool kLoads, bool kStores, typename F>
  __device__ __forceinline__ void middle(F f) const {
    each_column(Y::first, [&](Complex* even, Complex* odd, int k1, int column) {
      Complex* from = (k1 % 2 == 0 ? even : odd) + k1 * (Y::second - 1) * kPitch;
      Complex v[Y::second];
      if constexpr (kLoads) {
#pragma unroll
        for (int t = 0; t < Y::second; ++t) v[t] = from[t * kPitch];
        transform<Y::second, Direction::forward>(v);
      }
      f(v, static_cast<int>(from - tile_), k1, column);
      if constexpr (kStores) {
#pragma unroll
        for (int t = 0; t < Y::second; ++t) from[t * kPitch] = v[t];
      }
    });
  }

  __device__ __forceinline__ void join_columns() const {
    each_column(Y::second, [&](Complex* even, Complex* odd, int t, int) {
      Complex v[Y::first];
#pragma unroll
      for (int k = 0; k < Y::first; ++k) {
        v[k] = (k % 2 == 0 ? even : odd)[k * kPartner];
        if (k > 0) v[k] = v[k] * twiddles_y_[Y::second * k + t];
      }
      transform<Y::first, Direction::inverse>(v);
#pragma unroll
      for (int s = 0; s < Y::first; s += 2) {
        const Complex a = v[s], b = v[s + 1];
        even[s * kPartner] = {a.re - b.im, a.im + b.re};
        odd[(s + 1) * kPartner] = {a.re + b.im, b.re - a.im};
      }
    });
  }

  // Rows of which neither is among `rows` are left out.
  __device__ __forceinline__ void start_rows(Range rows) const {
    each_row_block(Shape::row_pairs, [&](int y, int k1) {
      if (!rows.has(y) && !rows.has(y + Y::second)) return;
      Complex* row0 = tile_ + y * kPitch;
      const RowBlock<X> slots(row0, row0 + kPartner, k1);
      Complex v[X::second];
#pragma unroll
      for (int t = 0; t < X::second; ++t) v[t] = slots[t];
      transform<X::second, Direction::inverse>(v);
#pragma unroll
      for (int t = 0; t < X::second; ++t) slots[t] = v[t];
    });
  }

  // Rows x columns of the circular result, dense, into `out`.
  __device__ __forceinline__ void store_rows(Range rows, Range cols, float* out) const {
    const int t = crew_.thread % X::second;
    Complex w[X::first];
#pragma unroll
    for (int k = 1; k < X::first; ++k) w[k] = twiddles_x_[X::second * k + t];
#pragma unroll 1
    for (int q = crew_.thread / X::second; q < Shape::row_pairs; q += crew_.count / X::second) {
      const int y = first_row(q);
      if (!rows.has(y) && !rows.has(y + Y::second)) continue;
      Complex* row0 = tile_ + y * kPitch;
      const RowSlots<X> slots(row0, row0 + kPartner, t);
      Complex v[X::first];
      for_each_constant<X::first>([&](auto k) {
        constexpr int k1 = decltype(k)::value;
        v[k1] = slots.template at<k1>();
        if constexpr (k1 > 0) v[k1] = v[k1] * w[k1];
      });
      transform<X::first, Direction::inverse>(v);
      store_row(rows, cols, y, t, v, &Complex::re, out, X::second);
      store_row(rows, cols, y + Y::second, t, v, &Complex::im, out, X::second);
    }
  }

 private:
  // Inputs from s = kInputs on are zero.
  template <int kInputs>
  __device__ __forceinline__ void load_rows_of(const Source& from) const {
    const int t = crew_.thread % X::second;
    Complex w[X::first];
#pragma unroll
    for (int k = 1; k < X::first; ++k) w[k] = conj(twiddles_x_[X::second * k + t]);
    const int pairs = row_pairs(from.rows);
#pragma unroll 1
    for (int q = crew_.thread / X::second; q < pairs; q += crew_.count / X::second) {
      const int y = first_row(q);
      const bool both = y + Y::second < from.rows;
      const float* row = from.data + y * from.cols + t;
      const float* partner = row + (both ? Y::second * from.cols : 0);
      Complex v[X::first];
#pragma unroll
      for (int s = 0; s < kInputs; ++s) {
        const bool inside = t + X::second * s < from.cols;
        v[s].re = inside ? row[X::second * s] : 0.0f;
        v[s].im = inside && both ? partner[X::second * s] : 0.0f;
      }
      transform<X::first, Direction::forward, kInputs>(v);
      Complex* row0 = tile_ + y * kPitch;
      const RowSlots<X> slots(row0, row0 + kPartner, t);
      for_each_constant<X::first>([&](auto k) {
        constexpr int k1 = decltype(k)::value;
        slots.template at<k1>() = k1 == 0 ? v[0] : v[k1] * w[k1];
      });
    }
  }

  template <int kInputs>
  __device__ __forceinline__ void split_columns_of(int rows) const {
    each_column(Y::second, [&](Complex* even, Complex* odd, int t, int) {
      Complex v[Y::first];
#pragma unroll
      for (int s = 0; s < kInputs; s += 2) {
        Complex a{0.0f, 0.0f}, b = a;
        if (t + Y::second * s < rows) {
          a = even[s * kPartner];
          b = conj(odd[(s + 1) * kPartner]);
        }
        v[s] = a + b;
        v[s + 1] = quarter_turn<Direction::forward>(a - b);
      }
      transform<Y::first, Direction::forward, kInputs>(v);
#pragma unroll
      for (int k = 0; k < Y::first; ++k) {
        (k % 2 == 0 ? even : odd)[k * kPartner] =
            k == 0 ? v[0] : v[k] * conj(twiddles_y_[Y::second * k + t]);
      }
    });
  }

  // Complex rows that hold any of the first `rows` rows, and the first row of number q.
  static __device__ __forceinline__ int row_pairs(int rows) {
    const int rest = rows % (2 * Y::second);
    return rows / (2 * Y::second) * Y::second + (rest < Y::second ? rest : Y::second);
  }
  static __device__ __forceinline__ int first_row(int q) { return 2 * q - q % Y::second; }

  // f(y of row0, k1): lanes walk rows t first, so that an odd pitch spreads them over the banks.
  template <typename F>
  __device__ __forceinline__ void each_row_block(int pairs, F f) const {
    const int tasks = ceil_div(pairs, Y::second) * Y::second * X::first;
#pragma unroll 1
    for (int task = crew_.thread; task < tasks; task += crew_.count) {
      const int t = task % Y::second, group = task / Y::second;
      const int k1 = group % X::first, q = group / X::first * Y::second + t;
      if (q < pairs) f(first_row(q), k1);
    }
  }

  // f(even, odd, j, column) for j = 0 .. count - 1 and every live column: where row j has it, and
  // where rows with odd s (or k1) have it.
  template <typename F>
  __device__ __forceinline__ void each_column(int count, F f) const {
    constexpr int kLive = Columns<X>::live;
#pragma unroll 1
    for (int task = crew_.thread; task < count * kLive; task += crew_.count) {
      const int j = task / kLive;
      const int column = Columns<X>::column(task - j * kLive);
      Complex* row = tile_ + j * kPitch;
      f(row + column, row + Columns<X>::mirror(column), j, column);
    }
  }

  Complex* tile_;
  const Complex *twiddles_x_, *twiddles_y_;
  Crew crew_;
};

}  // namespace xcorr
