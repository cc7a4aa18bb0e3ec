// The 2D transform of a real matrix of which only half fits the shared memory of a block. The
// frequencies 2k + c of x, c = 0 or 1, are a transform of half the length m = nx / 2:
//
//   Z[2k + c] = sum over x < m of w_m^(-k x) ( w_nx^(-c x) (z[x] + (-1)^c z[x + m]) ),
//
// so a block reads its matrix twice, once for each c (a "half"), and the inverse adds the results
// of both halves. Two real rows, `second` apart, form one complex row z = row0 + i row1
// (README.md). Frequency -(2k + c) belongs to the same half as 2k + c, so a half does not need the
// other one.
//
//   pass       reads                          transforms               writes
//   load       matrix, rows with data         across, over s           tile, times twiddles
//   finish     tile                           16, over t               tile: Z
//   split      Z[k], Z[-k]                    16, over s               tile, times twiddles
//   middle     tile                           second, product, second  tile
//   join       tile, times twiddles           16 back                  W[k], W[-k] of row0 + i row1
//   start      tile                           16 back                  tile
//   store      tile, times twiddles           across back              a half of the outputs
//
// A barrier of the block follows each pass. The tile has rows x m complex values. Column k1 +
// across * k2 of a half is at position 16 k1 + k2, so that 16 lanes at neighbouring positions
// access 16 banks; for lanes in neighbouring rows the odd pitch ensures that. Columns 0 and nx / 2
// are their own mirrors. Their second positions are m and m + 1.
#pragma once

#include "algorithms/blocks/coprime_transforms.hpp"
#include "algorithms/blocks/divide.hpp"
#include "algorithms/fused_fft/problem.hpp"

namespace xcorr::fused_fft {

// Launch shape of a length.
template <int kN>
struct HalvesTuning {
  // Threads per block: chosen so that rounds over the tasks of most passes are full and registers
  // suffice.
  static constexpr int threads(Work work) {
    return kN <= 64 ? 96 : kN == 256 ? 544 : kN == 320 ? 512 : work == Work::pairs ? 640 : 704;
  }
  // Number of values, of each 16 of a column, that a small window needs; two of them form a complex
  // row.
  static constexpr int kept = kN == 256 ? 6 : 4;
};

// Layout of a tile; both axes have length kN.
template <int kN>
struct HalvesTile {
  static constexpr int first = 16, second = kN / 16;     // passes of a column
  static constexpr int half = kN / 2, across = kN / 32;  // passes of a row: across, 16
  static constexpr int row_pairs = kN / 2, pitch = half + 3;
  static constexpr int elements = row_pairs * pitch;
  static constexpr int odd_columns = half / 2, even_columns = odd_columns + 1;
  // Number of columns of the even half that come before those of positions 0 .. 8.
  static constexpr int straight = odd_columns - 8;
  // Complex values of a spectrum: pairs in the order of the tasks of `middle`, the even half first.
  static constexpr int spectrum = kN * (even_columns + odd_columns);
  static constexpr int kept = HalvesTuning<kN>::kept;
  static constexpr int kept_rows = kept * second;
  static_assert(kN % 32 == 0 && pitch % 2 == 1 && half % 2 == 0);

  // The number of complex rows that contain any of the first `rows` real rows.
  __host__ __device__ static constexpr int pairs_of(int rows) {
    const int rest = rows % (2 * second);
    return rows / (2 * second) * second + (rest < second ? rest : second);
  }
  // The first real row of complex row r; the other one is `second` rows further.
  __device__ __forceinline__ static int row_of(int r) { return r + r / second * second; }
};

// A half of a transform, by all threads of a block, which call every function together. The caller
// puts barriers between the functions; there are none in them.
template <int kN>
class HalfTransform {
  using T = HalvesTile<kN>;
  static constexpr int kAcross = T::across, kSecond = T::second, kPitch = T::pitch;

 public:
  // tables: w_nx^(t (2 k1 + c)) at c m + 16 k1 + t, then w_ny^(k t) at second k + t, with the sign
  // of the inverse. powers: w_n^k.
  static constexpr int table_elements = 2 * kN;
  static __device__ __forceinline__ void store_tables(Complex* to, const Complex* powers_x,
                                                      const Complex* powers_y) {
    for (int i = static_cast<int>(threadIdx.x); i < kN; i += static_cast<int>(blockDim.x)) {
      const int c = i / T::half, k1 = i % T::half / 16, t = i % 16;
      to[i] = powers_x[t * (2 * k1 + c) % kN];
      to[kN + i] = powers_y[i / kSecond * (i % kSecond)];
    }
  }

  __device__ __forceinline__ HalfTransform(Complex* tile, const Complex* tables, int odd)
      : tile_(tile), of_rows_(tables + odd * T::half), of_columns_(tables + kN), odd_(odd) {}

  // Loads the rows of a matrix; the passes over s.
  __device__ __forceinline__ void load(const Source& from, int pairs) const {
    const float sign = odd_ ? -1.0f : 1.0f;
#pragma unroll 1
    for (int task = thread(); task < pairs * 16; task += threads()) {
      const int t = task % 16, r = task / 16, y = T::row_of(r);
      const bool both = y + kSecond < from.rows;
      const float* const row = from.data + y * from.cols + t;
      const float* const other = row + (both ? kSecond * from.cols : 0);
      Complex v[kAcross];
#pragma unroll
      for (int s = 0; s < kAcross; ++s) {
        const bool inside = t + 16 * s < from.cols;
        v[s] = {inside ? row[16 * s] : 0.0f, inside && both ? other[16 * s] : 0.0f};
      }
#pragma unroll
      for (int s = 0; s < kAcross; ++s) {
        const bool inside = t + 16 * s + T::half < from.cols;
        v[s].re += sign * (inside ? row[16 * s + T::half] : 0.0f);
        v[s].im += sign * (inside && both ? other[16 * s + T::half] : 0.0f);
      }
      twist<Direction::forward>(v);
      short_transform<kAcross, Direction::forward>(v);
      Complex* const to = tile_ + r * kPitch + t;
#pragma unroll
      for (int k = 0; k < kAcross; ++k) to[16 * k] = v[k] * conj(of_rows_[16 * k + t]);
    }
  }

  // The passes over t. They give the spectra Z of rows, in natural order in blocks of 16.
  __device__ __forceinline__ void finish(const Divider& pairs) const {
    each_block(pairs, [&](Complex* row, int k1) {
      Complex v[16];
      read(v, row + 16 * k1);
      transform<16, Direction::forward>(v);
      write(v, row + 16 * k1);
      if (k1 == 0) {  // the second positions of columns 0 and nx / 2, which the even half has
        row[T::half] = v[0];
        row[T::half + 1] = v[8];
      }
    });
  }

  // The passes over s along columns of the spectra of a matrix of `rows` rows.
  __device__ __forceinline__ void split(int rows) const {
    each_column(kSecond, [&](int t, int column, int) {
      const Slots at(*this, column, t);
      Complex v[16];
#pragma unroll
      for (int s = 0; s < 16; s += 2) {
        Complex a{0.0f, 0.0f}, b = a;
        if (t + kSecond * s < rows) {
          a = at.even[s / 2 * kSecond * kPitch];
          b = conj(at.odd[s / 2 * kSecond * kPitch]);
        }
        v[s] = a + b;
        v[s + 1] = quarter_turn<Direction::forward>(a - b);
      }
      transform<16, Direction::forward>(v);
#pragma unroll
      for (int k = 0; k < 16; ++k) {
        *at.of(k) = k == 0 ? v[0] : v[k] * conj(of_columns_[kSecond * k + t]);
      }
    });
  }

  // Calls f(values of a second pass, task, tasks, k1, kx). With kForward the values come from the
  // tile and are transformed; with kInverse they are transformed back into the tile.
  template <bool kForward, bool kInverse, typename F>
  __device__ __forceinline__ void middle(F f) const {
    each_column(16, [&](int k1, int column, int task) {
      const Slots at(*this, column, 0);
      Complex* const from = at.of(k1);
      Complex v[kSecond];
      if constexpr (kForward) {
#pragma unroll
        for (int t = 0; t < kSecond; ++t) v[t] = from[t * kPitch];
        short_transform<kSecond, Direction::forward>(v);
      }
      f(v, task, 16 * columns(), k1, at.frequency);
      if constexpr (kInverse) {
        short_transform<kSecond, Direction::inverse>(v);
#pragma unroll
        for (int t = 0; t < kSecond; ++t) from[t * kPitch] = v[t];
      }
    });
  }

  // The inverse passes over s along columns; only the first kKept * second rows are computed.
  template <int kKept>
  __device__ __forceinline__ void join() const {
    each_column(kSecond, [&](int t, int column, int) {
      const Slots at(*this, column, t);
      Complex v[16];
#pragma unroll
      for (int k = 0; k < 16; ++k) {
        v[k] = *at.of(k);
        if (k > 0) v[k] = v[k] * of_columns_[kSecond * k + t];
      }
      transform<16, Direction::inverse>(v);
#pragma unroll
      for (int s = 0; s < kKept; s += 2) {
        const Complex a = v[s], b = v[s + 1];
        at.even[s / 2 * kSecond * kPitch] = {a.re - b.im, a.im + b.re};
        at.odd[s / 2 * kSecond * kPitch] = {a.re + b.im, b.re - a.im};
      }
    });
  }

  // The inverse passes over k2 along rows.
  __device__ __forceinline__ void start(const Divider& pairs) const {
    each_block(pairs, [&](Complex* row, int k1) {
      Complex v[16];
      read(v, row + 16 * k1);
      transform<16, Direction::inverse>(v);
      write(v, row + 16 * k1);
    });
  }

  // The last passes along rows: calls f(r, t, values, live), where value s belongs to column t + 16
  // s of this half. All lanes of a warp call f together; `live` says whether a lane has a row.
  template <typename F>
  __device__ __forceinline__ void store(int pairs, F f) const {
    const int lane = thread() % warp::kSize;
#pragma unroll 1
    for (int begin = thread() - lane; begin < pairs * 16; begin += threads()) {
      const bool live = begin + lane < pairs * 16;
      const int task = live ? begin + lane : 0, t = task % 16, r = task / 16;
      const Complex* const from = tile_ + r * kPitch + t;
      Complex v[kAcross];
#pragma unroll
      for (int k = 0; k < kAcross; ++k) v[k] = from[16 * k] * of_rows_[16 * k + t];
      short_transform<kAcross, Direction::inverse>(v);
      twist<Direction::inverse>(v);
      f(r, t, v, live);
    }
  }

 private:
  static __device__ __forceinline__ int thread() { return static_cast<int>(threadIdx.x); }
  static __device__ __forceinline__ int threads() { return static_cast<int>(blockDim.x); }
  __device__ __forceinline__ int columns() const { return T::even_columns - odd_; }

  // Where the values of a column lie, for one t: value k is in the row of even k or of odd k.
  struct Slots {
    __device__ __forceinline__ Slots(const HalfTransform& of, int column, int t) {
      int position = column, mirror = T::half - 1 - column;
      if (of.odd_ == 0) {
        const bool is_straight = column < T::straight;
        position = is_straight ? 16 + column : column - T::straight;
        mirror = is_straight ? T::half - 1 - column : 16 - position;
        if (position == 0) mirror = T::half;
        if (position == 8) mirror = T::half + 1;
      }
      even = of.tile_ + t * kPitch + position;
      odd = of.tile_ + t * kPitch + mirror;
      frequency = 2 * (position / 16 + kAcross * (position % 16)) + of.odd_;
    }
    __device__ __forceinline__ Complex* of(int k) const {
      Complex* const of_parity = k % 2 == 0 ? even : odd;
      return of_parity + k / 2 * (kSecond * kPitch);
    }
    Complex *even, *odd;
    int frequency;
  };

  static __device__ __forceinline__ void read(Complex (&v)[16], const Complex* from) {
#pragma unroll
    for (int i = 0; i < 16; ++i) v[i] = from[i];
  }
  static __device__ __forceinline__ void write(const Complex (&v)[16], Complex* to) {
#pragma unroll
    for (int i = 0; i < 16; ++i) to[i] = v[i];
  }

  // Multiplies v[s] by w_nx^(16 s) in the odd half.
  template <Direction kWay>
  __device__ __forceinline__ void twist(Complex (&v)[kAcross]) const {
    if (odd_ == 0) return;
    for_each_constant<kAcross>([&](auto s) {
      constexpr int kS = decltype(s)::value;
      v[kS] = turned_by_root<kS, 2 * kAcross, kWay>(v[kS]);
    });
  }

  // Calls f(row, k1) for each complex row; neighbouring lanes have neighbouring rows.
  template <typename F>
  __device__ __forceinline__ void each_block(const Divider& pairs, F f) const {
    const int tasks = static_cast<int>(pairs.by) * kAcross;
#pragma unroll 1
    for (int task = thread(); task < tasks; task += threads()) {
      std::uint32_t r = static_cast<std::uint32_t>(task);
      const int k1 = static_cast<int>(pairs.split(r));
      f(tile_ + static_cast<int>(r) * kPitch, k1);
    }
  }
  // Calls f(i, column, task) for i < count of each column; neighbouring lanes have neighbouring
  // columns.
  template <typename F>
  __device__ __forceinline__ void each_column(int count, F f) const {
#pragma unroll 1
    for (int task = thread(); task < count * columns(); task += threads()) {
      const int i = odd_ ? task / T::odd_columns : task / T::even_columns;
      f(i, task - i * columns(), task);
    }
  }

  Complex* tile_;
  const Complex *of_rows_, *of_columns_;
  int odd_;
};

}  // namespace xcorr::fused_fft
