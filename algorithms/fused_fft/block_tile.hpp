// The 2D transform of a real matrix in place in shared memory, a "tile". A warp processes whole
// rows or columns in both passes of a dimension. The caller synchronises the block between rows and
// columns.
//
//   pass        reads                     transforms            writes
//   load        matrix, rows with data    first(x) over s       tile, times twiddles
//   finish      tile                      second(x) over t      tile: Z
//   ---- barrier
//   split       Z[k], Z[-k]               first(y) over s       tile, times twiddles
//   middle      tile                      second(y), product with conj(left), second(y) back
//   join        tile, times twiddles      first(y) back         W[k], W[-k] of row0 + i row1
//   ---- barrier
//   start       tile                      second(x) back        tile
//   store       tile, times twiddles      first(x) back         outputs of the window
//
// Two real rows, second(y) apart, form one complex row, z = row0 + i row1 (README.md). Its
// transform Z overwrites the two real rows: frequencies 0 .. nx / 2 lie in row0, at their columns,
// and the negative ones in row1, at the columns' mirrors.
//
// Shared memory has 16 banks of a complex value, and each half of a warp should access all of them.
// Lanes access a tile in rectangles: 16 consecutive columns; 4 rows by 4 blocks of columns; 8
// columns by two rows, or blocks of rows, that are two apart (or 4 by 4). Hence the pitch modulo
// the banks is 4 or 12, blocks of columns are 1 apart, and blocks of rows are 4 (or 2) apart.
#pragma once

#include "algorithms/blocks/short_transforms.hpp"
#include "algorithms/fused_fft/lengths.hpp"
#include "algorithms/fused_fft/problem.hpp"

namespace xcorr::fused_fft {

// Layout of a tile; both axes have length kN. A warp processes `wide` columns at a time.
template <int kN>
struct BlockTile {
  using L = Length<kN>;
  static constexpr int first = L::first, second = L::second, half = second / 2;
  // Column block s holds frequencies s + first * i. Block 0 is an exception: it holds half of these
  // and half of block first / 2's. Frequency n / 2 lies at the first padding column, `special`.
  static constexpr int block = second + 1, special = second;
  static constexpr int width = block * (first / 2) - 1;
  static constexpr int pitch = width + (width % 8 <= 4 ? 4 - width % 8 : 12 - width % 8);
  static constexpr int wide = kN >= 192 ? 4 : 8, apart = 32 / wide;
  // Distance of two blocks of rows.
  static constexpr int partner = second * pitch + (wide == 4 ? 2 : 4);
  static constexpr int elements = first * partner;
  static constexpr int row_pairs = kN / 2;
  static constexpr int rows_of_unit = kN >= 192 ? 2 : 4;
  // Units of columns; the last one is frequency n / 2 alone. There is one warp per unit.
  static constexpr int units = first / 2 * second / wide + 1, warps = units;
  // Complex values of a spectrum, stored in the order of the lanes that made it.
  static constexpr int rounds = ceil_div(first, apart);
  static constexpr int spectrum = units * rounds * second * 32;
};

// The position of a thread among the warps that share a tile.
struct WarpPlace {
  int warp, warps, lane;
};

// The complex rows of a tile, for the warps that share it.
template <int kN>
class BlockRows {
  using T = BlockTile<kN>;
  static constexpr int kFirst = T::first, kSecond = T::second, kHalf = T::half;

 public:
  // `twiddles` holds w_n^(k1 t) at second * k1 + t, with the sign of the inverse.
  __device__ __forceinline__ BlockRows(Complex* tile, const Complex* twiddles, WarpPlace my)
      : tile_(tile), twiddles_(twiddles), my_(my) {}

 protected:
  // Where value (k1, t) of a complex row lies, for a lane that has value t of each k1.
  struct RowSlots {
    __device__ __forceinline__ RowSlots(Complex* row0, int t)
        : straight_(row0 + t), split_(row0 + t + (t < kHalf ? 0 : T::partner - kHalf)) {}
    template <int k1>
    __device__ __forceinline__ Complex& at() const {
      if constexpr (k1 == 0) return split_[0];
      if constexpr (2 * k1 == kFirst) return split_[kHalf];
      if constexpr (2 * k1 < kFirst) return straight_[T::block * k1];
      return straight_[T::partner + T::block * (kFirst - k1)];
    }

   private:
    Complex *straight_, *split_;
  };
  // Where it lies for a lane that has all t of one k1.
  struct RowBlock {
    __device__ __forceinline__ RowBlock(Complex* row0, int k1) {
      const int block = k1 == 0            ? 0
                        : 2 * k1 == kFirst ? kHalf
                        : 2 * k1 < kFirst  ? T::block * k1
                                           : T::block * (kFirst - k1) + T::partner;
      low_ = row0 + block;
      high_ = low_ + (k1 == 0 || 2 * k1 == kFirst ? T::partner - kHalf : 0);
    }
    __device__ __forceinline__ Complex& operator[](int t) const {
      return t < kHalf ? low_[t] : high_[t];
    }

   private:
    Complex *low_, *high_;
  };

  // The number of complex rows that contain any of the first `rows` real rows. first_row(q) is the
  // first real row of complex row q.
  static __device__ __forceinline__ int row_pairs(int rows) {
    const int rest = rows % (2 * kSecond);
    return rows / (2 * kSecond) * kSecond + (rest < kSecond ? rest : kSecond);
  }
  static __device__ __forceinline__ int first_row(int q) { return 2 * q - q % kSecond; }
  __device__ __forceinline__ Complex* row(int y) const {
    return tile_ + y * T::pitch + y / kSecond * (T::partner - kSecond * T::pitch);
  }

  // Units of rows: four consecutive complex rows, or two rows that are two apart, so that the lanes
  // of a warp access all banks.
  static __device__ __forceinline__ int units_of(int pairs) {
    return ceil_div(pairs, 4) * (4 / T::rows_of_unit);
  }
  static __device__ __forceinline__ int row_of_unit(int unit, int i) {
    return T::rows_of_unit == 4 ? 4 * unit + i : unit / 2 * 4 + unit % 2 + 2 * i;
  }
  // Calls f(number of a complex row, t) for the rows of a unit.
  template <typename F>
  __device__ __forceinline__ void each_row(int unit, F f) const {
    constexpr int kTogether = 32 / kSecond;
    const int part = my_.lane / kSecond;
    const int mine = kTogether == 4 ? part % 2 * 2 + part / 2 : part;
#pragma unroll 1
    for (int i = 0; i < T::rows_of_unit; i += kTogether) {
      f(row_of_unit(unit, i + mine), my_.lane % kSecond);
    }
  }
  // Transforms of length `second` in the rows of a unit for which wanted(number, y of row0): a lane
  // has all t of one k1.
  template <Direction kWay, typename Wanted>
  __device__ __forceinline__ void transform_blocks(int unit, Wanted wanted) const {
#pragma unroll 1
    for (int task = my_.lane; task < T::rows_of_unit * kFirst; task += 32) {
      const int q = row_of_unit(unit, task % T::rows_of_unit);
      int k1 = task / T::rows_of_unit;
      // These two are swapped to avoid bank conflicts.
      if (T::rows_of_unit == 2 && (k1 == 6 || k1 == 8)) k1 = 14 - k1;
      const int y = first_row(q);
      if (!wanted(q, y)) continue;
      Complex* const row0 = row(y);
      const RowBlock slots(row0, k1);
      Complex v[kSecond];
#pragma unroll
      for (int t = 0; t < kSecond; ++t) v[t] = slots[t];
      transform<kSecond, kWay>(v);
#pragma unroll
      for (int t = 0; t < kSecond; ++t) slots[t] = v[t];
      if (kWay == Direction::forward && k1 == 0) {  // 0 and nx / 2 are their own partners
        row0[T::partner + T::special] = v[0];
        row0[T::special] = v[kHalf];
      }
    }
  }

  Complex* tile_;
  const Complex* twiddles_;
  WarpPlace my_;
};

template <int kN>
class BlockTransform : BlockRows<kN> {
  using T = BlockTile<kN>;
  using L = typename T::L;
  using Rows = BlockRows<kN>;
  using Rows::each_row, Rows::first_row, Rows::my_, Rows::row, Rows::tile_, Rows::twiddles_;
  using typename Rows::RowSlots;
  static constexpr int kFirst = T::first, kSecond = T::second, kHalf = T::half;

 public:
  using Rows::Rows;

  // Transforms the rows of a matrix to their spectra Z. Source, or a type like it, is the matrix.
  template <typename Matrix>
  __device__ __forceinline__ void forward_rows(const Matrix& from) const {
    const int pairs = Rows::row_pairs(from.rows);
#pragma unroll 1
    for (int unit = my_.warp; unit < Rows::units_of(pairs); unit += my_.warps) {
      if (Matrix::kMayBeHalf && from.cols <= kN / 2) {
        load<kFirst / 2>(unit, pairs, from);
      } else {
        load<kFirst>(unit, pairs, from);
      }
      warp::barrier();
      Rows::template transform_blocks<Direction::forward>(unit,
                                                          [&](int q, int) { return q < pairs; });
    }
  }

  // For the columns of a matrix of `rows` rows, calls f(values of a second pass, offset in a
  // spectrum, k1, kx). With kForward the values come from the tile; with kInverse they go back into
  // the tile.
  template <bool kForward, bool kInverse, typename F>
  __device__ __forceinline__ void columns(int rows, F f) const {
#pragma unroll 1
    for (int unit = my_.warp; unit < T::units; unit += my_.warps) {
      if constexpr (kForward) {
        if (rows <= kN / 2) {
          split<kFirst / 2>(unit, rows);
        } else {
          split<kFirst>(unit, rows);
        }
        warp::barrier();
      }
      each_of_unit<kFirst, true>(unit, [&](const Column& column, int k1, int round) {
        Complex* const from = tile_ + (k1 % 2 == 0 ? column.even : column.odd) + k1 * T::partner;
        Complex v[kSecond];
        if constexpr (kForward) {
#pragma unroll
          for (int t = 0; t < kSecond; ++t) v[t] = from[t * T::pitch];
          transform<kSecond, Direction::forward>(v);
        }
        f(v, (unit * T::rounds + round) * kSecond * 32 + 2 * my_.lane, k1, column.frequency);
        if constexpr (kInverse) {
#pragma unroll
          for (int t = 0; t < kSecond; ++t) from[t * T::pitch] = v[t];
        }
      });
      if constexpr (kInverse) {
        warp::barrier();
        join(unit);
      }
    }
  }

  // Writes the rows x columns of the circular result to `out`, dense.
  __device__ __forceinline__ void inverse_rows(Range rows, Range cols, float* out) const {
#pragma unroll 1
    for (int unit = my_.warp; unit < Rows::units_of(T::row_pairs); unit += my_.warps) {
      Rows::template transform_blocks<Direction::inverse>(unit, [&](int q, int y) {
        return q < T::row_pairs && (rows.has(y) || rows.has(y + kSecond));
      });
      warp::barrier();
      Complex w[kFirst];
#pragma unroll
      for (int k = 1; k < kFirst; ++k) w[k] = twiddles_[kSecond * k + my_.lane % kSecond];
      each_row(unit, [&](int q, int t) {
        const int y = first_row(q);
        if (!rows.has(y) && !rows.has(y + kSecond)) return;
        const RowSlots slots(row(y), t);
        Complex v[kFirst];
        for_each_constant<kFirst>([&](auto k) {
          constexpr int k1 = decltype(k)::value;
          v[k1] = slots.template at<k1>();
          if constexpr (k1 > 0) v[k1] = v[k1] * w[k1];
        });
        transform<kFirst, Direction::inverse>(v);
        store_row(rows, cols, y, t, v, &Complex::re, out, kSecond);
        store_row(rows, cols, y + kSecond, t, v, &Complex::im, out, kSecond);
      });
    }
  }

 private:
  // Offsets of a column in even blocks of rows, and of its mirror in odd blocks.
  struct Column {
    int even, odd, frequency;
  };

  // Calls f(column, j, round) for j = 0 .. kCount - 1 of each column of a unit.
  template <int kCount, bool kByParity, typename F>
  __device__ __forceinline__ void each_of_unit(int unit, F f) const {
    Column column = {T::special, 0, kN / 2};
    int begin = my_.lane, step = 32;
    if (unit < T::units - 1) {
      constexpr int kUnits = kSecond / T::wide;
      const int s = unit / kUnits, i = unit % kUnits * T::wide + my_.lane % T::wide;
      column.even = T::block * s + i;
      if (s > 0) {
        column.odd = T::block * s + (i ^ (kSecond - 1));
        column.frequency = s + kFirst * i;
      } else if (i < kHalf) {
        column.odd = i == 0 ? T::special : kHalf - i;
        column.frequency = kFirst * i;
      } else {
        column.odd = i ^ (kHalf - 1);
        column.frequency = kFirst / 2 + kFirst * (i - kHalf);
      }
      // One half of a warp has even j and the other one odd j, since their columns are mirrors.
      const int part = my_.lane / T::wide;
      begin = kByParity || T::wide == 8 ? part % (T::apart / 2) * 2 + part / (T::apart / 2) : part;
      step = T::apart;
    }
    int round = 0;
#pragma unroll 1
    for (int j = begin; j < kCount; j += step, ++round) f(column, j, round);
  }

  // Loads rows and transforms over s; inputs from s = kInputs on are zero.
  template <int kInputs, typename Matrix>
  __device__ __forceinline__ void load(int unit, int pairs, const Matrix& from) const {
    each_row(unit, [&](int q, int t) {
      if (q >= pairs) return;
      const int y = first_row(q);
      const bool both = y + kSecond < from.rows;
      const float* data = from.data + from.below(y) + t;
      const float* partner = data + (both ? from.below(kSecond) : 0);
      Complex v[kFirst];
#pragma unroll
      for (int s = 0; s < kInputs; ++s) {
        const bool inside = t + kSecond * s < from.cols;
        v[s].re = inside ? from.value(data[kSecond * s]) : 0.0f;
        v[s].im = inside && both ? from.value(partner[kSecond * s]) : 0.0f;
      }
      transform<kFirst, Direction::forward, kInputs>(v);
      const RowSlots slots(row(y), t);
      for_each_constant<kFirst>([&](auto k) {
        constexpr int k1 = decltype(k)::value;
        slots.template at<k1>() = k1 == 0 ? v[0] : v[k1] * conj(twiddles_[kSecond * k1 + t]);
      });
    });
  }

  template <int kInputs>
  __device__ __forceinline__ void split(int unit, int rows) const {
    each_of_unit<kSecond, false>(unit, [&](const Column& column, int t, int) {
      Complex* const even = tile_ + column.even + t * T::pitch;
      Complex* const odd = tile_ + column.odd + t * T::pitch;
      Complex v[kFirst];
#pragma unroll
      for (int s = 0; s < kInputs; s += 2) {
        Complex a{0.0f, 0.0f}, b = a;
        if (t + kSecond * s < rows) {
          a = even[s * T::partner];
          b = conj(odd[(s + 1) * T::partner]);
        }
        v[s] = a + b;
        v[s + 1] = quarter_turn<Direction::forward>(a - b);
      }
      transform<kFirst, Direction::forward, kInputs>(v);
#pragma unroll
      for (int k = 0; k < kFirst; ++k) {
        (k % 2 == 0 ? even : odd)[k * T::partner] =
            k == 0 ? v[0] : v[k] * conj(twiddles_[kSecond * k + t]);
      }
    });
  }

  __device__ __forceinline__ void join(int unit) const {
    each_of_unit<kSecond, false>(unit, [&](const Column& column, int t, int) {
      Complex* const even = tile_ + column.even + t * T::pitch;
      Complex* const odd = tile_ + column.odd + t * T::pitch;
      Complex v[kFirst];
#pragma unroll
      for (int k = 0; k < kFirst; ++k) {
        v[k] = (k % 2 == 0 ? even : odd)[k * T::partner];
        if (k > 0) v[k] = v[k] * twiddles_[kSecond * k + t];
      }
      transform<kFirst, Direction::inverse>(v);
#pragma unroll
      for (int s = 0; s < kFirst; s += 2) {
        const Complex a = v[s], b = v[s + 1];
        even[s * T::partner] = {a.re - b.im, a.im + b.re};
        odd[(s + 1) * T::partner] = {a.re + b.im, b.re - a.im};
      }
    });
  }
};

}  // namespace xcorr::fused_fft
