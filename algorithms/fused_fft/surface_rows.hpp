// The last two passes of a tile (block_tile.hpp) whose result stays in the tile: the inverse
// transforms of rows. The float32 outputs overwrite the spectra. Both real rows of a complex row
// fit, since an output row has n numbers and the pitch of a tile's row is more than n / 2 complex
// values.
//
//   pass        reads                     transforms            writes
//   start       tile                      second(x) back        tile
//   store       tile, times twiddles      first(x) back         tile: outputs; largest of each row
#pragma once

#include "algorithms/blocks/peaks.hpp"
#include "algorithms/fused_fft/block_tile.hpp"

namespace xcorr::fused_fft {

// The outputs of the window in a tile.
template <int kN>
struct TileSurface {
  using T = BlockTile<kN>;
  const float* tile;
  int first_row, first_col;
  int rows, cols;

  __device__ __forceinline__ const float* row(int y) const {
    const int of_tile = y + first_row;
    return tile + first_col + 2 * (of_tile * T::pitch + of_tile / T::second * kGap);
  }
  // Padding behind a block of rows, in complex values.
  static constexpr int kGap = T::partner - T::second * T::pitch;
};

template <int kN>
class SurfaceRows {
  using T = BlockTile<kN>;
  using L = typename T::L;
  static constexpr int kFirst = T::first, kSecond = T::second, kHalf = T::half;
  static_assert(2 * T::pitch >= kN && T::row_pairs % 4 == 0);

 public:
  // `twiddles` is the table that BlockTransform takes.
  __device__ __forceinline__ SurfaceRows(Complex* tile, const Complex* twiddles, WarpPlace my)
      : tile_(tile), twiddles_(twiddles), my_(my) {}

  // Computes the rows of the window in the tile. tops[y] becomes the largest output of row y of the
  // window, NaN if no output is a number. Returns whether this lane has met an output of the window
  // that is NaN or infinite.
  __device__ __forceinline__ bool inverse(Range rows, Range cols, float* tops) const {
    bool broken = false;
    each(
        rows, [](int, int) { return 0; },
        [&](int y, int t, const Complex(&v)[kFirst], int) {
          warp::barrier();  // the rows are overwritten: all lanes have read them
          broken |= store(rows, cols, y, t, v, row(y), tops);
        });
    return broken;
  }

  // Calls take(y, t, v, before(y, t)) for rows of the window, by all lanes of a warp together. v[s]
  // holds column t + second * s of row y as its real part, and of row y + second as its imaginary
  // part. One of the two rows may lie outside of the window. before(y, t) is called before the last
  // transform, so that its loads overlap with the transform.
  template <typename Before, typename Take>
  __device__ __forceinline__ void each(Range rows, Before before, Take take) const {
#pragma unroll 1
    for (int unit = my_.warp; unit < kUnits; unit += my_.warps) {
      bool wanted = false;
#pragma unroll
      for (int i = 0; i < T::rows_of_unit; ++i) {
        const int y = first_row(row_of_unit(unit, i));
        wanted = wanted || rows.has(y) || rows.has(y + kSecond);
      }
      if (!wanted) continue;
      start(unit);
      warp::barrier();
      constexpr int kTogether = 32 / kSecond;
      const int part = my_.lane / kSecond, t = my_.lane % kSecond;
      const int mine = kTogether == 4 ? part % 2 * 2 + part / 2 : part;
#pragma unroll 1
      for (int i = 0; i < T::rows_of_unit; i += kTogether) {
        const int y = first_row(row_of_unit(unit, i + mine));
        const auto got = before(y, t);
        Complex v[kFirst];
        load(row(y), t, v);
        transform<kFirst, Direction::inverse>(v);
        take(y, t, v, got);
      }
    }
  }

 private:
  // Units of rows, as in BlockTransform: four consecutive complex rows, or two that are two apart,
  // so that the lanes of a warp access all banks.
  static constexpr int kUnits = T::row_pairs / T::rows_of_unit;
  static __device__ __forceinline__ int row_of_unit(int unit, int i) {
    return T::rows_of_unit == 4 ? 4 * unit + i : unit / 2 * 4 + unit % 2 + 2 * i;
  }
  static __device__ __forceinline__ int first_row(int q) { return 2 * q - q % kSecond; }
  __device__ __forceinline__ Complex* row(int y) const {
    return tile_ + y * T::pitch + y / kSecond * TileSurface<kN>::kGap;
  }

  // Transforms of length second: a lane has all t of one k1.
  __device__ __forceinline__ void start(int unit) const {
#pragma unroll 1
    for (int task = my_.lane; task < T::rows_of_unit * kFirst; task += 32) {
      int k1 = task / T::rows_of_unit;
      // These two are swapped to avoid bank conflicts.
      if (T::rows_of_unit == 2 && (k1 == 6 || k1 == 8)) k1 = 14 - k1;
      Complex* const row0 = row(first_row(row_of_unit(unit, task % T::rows_of_unit)));
      const int block = k1 == 0            ? 0
                        : 2 * k1 == kFirst ? kHalf
                        : 2 * k1 < kFirst  ? T::block * k1
                                           : T::block * (kFirst - k1) + T::partner;
      Complex* const low = row0 + block;
      Complex* const high = low + (k1 == 0 || 2 * k1 == kFirst ? T::partner - kHalf : 0);
      Complex v[kSecond];
#pragma unroll
      for (int t = 0; t < kSecond; ++t) v[t] = (t < kHalf ? low : high)[t];
      transform<kSecond, Direction::inverse>(v);
#pragma unroll
      for (int t = 0; t < kSecond; ++t) (t < kHalf ? low : high)[t] = v[t];
    }
  }

  // Loads value t of each k1, times its twiddle.
  __device__ __forceinline__ void load(const Complex* row0, int t, Complex (&v)[kFirst]) const {
    const Complex* const straight = row0 + t;
    const Complex* const split = straight + (t < kHalf ? 0 : T::partner - kHalf);
    for_each_constant<kFirst>([&](auto k) {
      constexpr int k1 = decltype(k)::value;
      if constexpr (k1 == 0) {
        v[k1] = split[0];
      } else {
        const Complex value = 2 * k1 == kFirst  ? split[kHalf]
                              : 2 * k1 < kFirst ? straight[T::block * k1]
                                                : straight[T::partner + T::block * (kFirst - k1)];
        v[k1] = value * twiddles_[kSecond * k1 + t];
      }
    });
  }

  // Stores outputs t + second * s of rows y and y + second, by all lanes of a warp together.
  __device__ __forceinline__ bool store(Range rows, Range cols, int y, int t,
                                        const Complex (&v)[kFirst], Complex* row0,
                                        float* tops) const {
    float* const even = &row0->re + t;
    float* const odd = even + 2 * T::partner;
    float top_even = no_number(), top_odd = top_even;
    float zero_even = 0, zero_odd = 0;  // NaN after an infinity or a NaN
#pragma unroll
    for (int s = 0; s < kFirst; ++s) {
      even[kSecond * s] = v[s].re;
      odd[kSecond * s] = v[s].im;
      if (!cols.has(t + kSecond * s)) continue;
      top_even = fmaxf(top_even, v[s].re);
      top_odd = fmaxf(top_odd, v[s].im);
      zero_even += 0.0f * v[s].re;
      zero_odd += 0.0f * v[s].im;
    }
    top_even = largest_of_lanes<kSecond>(top_even);
    top_odd = largest_of_lanes<kSecond>(top_odd);
    const bool has_even = rows.has(y), has_odd = rows.has(y + kSecond);
    if (t == 0 && has_even) tops[y - rows.first] = top_even;
    if (t == 0 && has_odd) tops[y + kSecond - rows.first] = top_odd;
    return (has_even && zero_even != 0) || (has_odd && zero_odd != 0);
  }

  Complex* tile_;
  const Complex* twiddles_;
  WarpPlace my_;
};

}  // namespace xcorr::fused_fft
