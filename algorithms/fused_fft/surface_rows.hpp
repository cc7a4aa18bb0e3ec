// The last two passes of a tile (block_tile.hpp) whose outputs stay in the tile. The float32
// outputs of both real rows overwrite a complex row of spectra: an output row has n numbers, and
// the pitch of a tile's row is more than n / 2 complex values.
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
class SurfaceRows : BlockRows<kN> {
  using T = BlockTile<kN>;
  using Rows = BlockRows<kN>;
  using Rows::each_row, Rows::first_row, Rows::my_, Rows::row, Rows::row_of_unit;
  static constexpr int kFirst = T::first, kSecond = T::second;
  static_assert(2 * T::pitch >= kN && T::row_pairs % 4 == 0);

 public:
  using Rows::Rows;

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
      Rows::template transform_blocks<Direction::inverse>(unit, [](int, int) { return true; });
      warp::barrier();
      each_row(unit, [&](int q, int t) {
        const int y = first_row(q);
        const auto got = before(y, t);
        const typename Rows::RowSlots slots(row(y), t);
        const Complex* const twiddles = Rows::twiddles_ + t;
        Complex v[kFirst];
        for_each_constant<kFirst>([&](auto k) {
          constexpr int k1 = decltype(k)::value;
          v[k1] = slots.template at<k1>();
          if constexpr (k1 > 0) v[k1] = v[k1] * twiddles[kSecond * k1];
        });
        transform<kFirst, Direction::inverse>(v);
        take(y, t, v, got);
      });
    }
  }

 private:
  static constexpr int kUnits = T::row_pairs / T::rows_of_unit;

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
};

}  // namespace xcorr::fused_fft
