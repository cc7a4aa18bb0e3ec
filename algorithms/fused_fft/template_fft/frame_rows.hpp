// The first two passes of a tile (block_tile.hpp) that is a part of a frame. The rows have any
// pitch, and values are scaled and shifted by the pivot as they are loaded.
#pragma once

#include "algorithms/blocks/template_problem.hpp"
#include "algorithms/fused_fft/block_tile.hpp"

namespace xcorr::fused_fft {

// A part of a frame of `rows` x `cols` elements, no larger than the tile.
struct FramePart {
  const float* data;
  int pitch, rows, cols;
  FrameScale scale;
};

template <int kN>
class FrameRows {
  using T = BlockTile<kN>;
  static constexpr int kFirst = T::first, kSecond = T::second, kHalf = T::half;

 public:
  // `twiddles` is the table that BlockTransform takes.
  __device__ __forceinline__ FrameRows(Complex* tile, const Complex* twiddles, WarpPlace my)
      : tile_(tile), twiddles_(twiddles), my_(my) {}

  // Spectra of the rows, laid out as by BlockTransform::forward_rows.
  __device__ __forceinline__ void forward(const FramePart& from) const {
    const int rest = from.rows % (2 * kSecond);
    const int pairs = from.rows / (2 * kSecond) * kSecond + (rest < kSecond ? rest : kSecond);
    const int units = ceil_div(pairs, 4) * (4 / T::rows_of_unit);
#pragma unroll 1
    for (int unit = my_.warp; unit < units; unit += my_.warps) {
      load(unit, pairs, from);
      warp::barrier();
      finish(unit, pairs);
    }
  }

 private:
  // Units of rows, numbered as in BlockTransform.
  static __device__ __forceinline__ int row_of_unit(int unit, int i) {
    return T::rows_of_unit == 4 ? 4 * unit + i : unit / 2 * 4 + unit % 2 + 2 * i;
  }
  static __device__ __forceinline__ int first_row(int q) { return 2 * q - q % kSecond; }
  __device__ __forceinline__ Complex* row(int y) const {
    return tile_ + y * T::pitch + y / kSecond * (T::partner - kSecond * T::pitch);
  }

  __device__ __forceinline__ void load(int unit, int pairs, const FramePart& from) const {
    constexpr int kTogether = 32 / kSecond;
    const int part = my_.lane / kSecond, t = my_.lane % kSecond;
    const int mine = kTogether == 4 ? part % 2 * 2 + part / 2 : part;
#pragma unroll 1
    for (int i = 0; i < T::rows_of_unit; i += kTogether) {
      const int q = row_of_unit(unit, i + mine);
      if (q >= pairs) continue;
      const int y = first_row(q);
      const bool both = y + kSecond < from.rows;
      const float* const data = from.data + static_cast<Index>(y) * from.pitch + t;
      const float* const partner = data + (both ? static_cast<Index>(kSecond) * from.pitch : 0);
      Complex v[kFirst];
#pragma unroll
      for (int s = 0; s < kFirst; ++s) {
        const bool inside = t + kSecond * s < from.cols;
        v[s].re = inside ? from.scale.of(data[kSecond * s]) : 0.0f;
        v[s].im = inside && both ? from.scale.of(partner[kSecond * s]) : 0.0f;
      }
      transform<kFirst, Direction::forward>(v);
      Complex* const straight = row(y) + t;
      Complex* const split = straight + (t < kHalf ? 0 : T::partner - kHalf);
      for_each_constant<kFirst>([&](auto k) {
        constexpr int k1 = decltype(k)::value;
        Complex* const to = k1 == 0            ? split
                            : 2 * k1 == kFirst ? split + kHalf
                            : 2 * k1 < kFirst  ? straight + T::block * k1
                                               : straight + T::partner + T::block * (kFirst - k1);
        *to = k1 == 0 ? v[0] : v[k1] * conj(twiddles_[kSecond * k1 + t]);
      });
    }
  }

  __device__ __forceinline__ void finish(int unit, int pairs) const {
#pragma unroll 1
    for (int task = my_.lane; task < T::rows_of_unit * kFirst; task += 32) {
      const int q = row_of_unit(unit, task % T::rows_of_unit);
      int k1 = task / T::rows_of_unit;
      // These two are swapped to avoid bank conflicts.
      if (T::rows_of_unit == 2 && (k1 == 6 || k1 == 8)) k1 = 14 - k1;
      if (q >= pairs) continue;
      Complex* const row0 = row(first_row(q));
      const int block = k1 == 0            ? 0
                        : 2 * k1 == kFirst ? kHalf
                        : 2 * k1 < kFirst  ? T::block * k1
                                           : T::block * (kFirst - k1) + T::partner;
      Complex* const low = row0 + block;
      Complex* const high = low + (k1 == 0 || 2 * k1 == kFirst ? T::partner - kHalf : 0);
      Complex v[kSecond];
#pragma unroll
      for (int t = 0; t < kSecond; ++t) v[t] = (t < kHalf ? low : high)[t];
      transform<kSecond, Direction::forward>(v);
#pragma unroll
      for (int t = 0; t < kSecond; ++t) (t < kHalf ? low : high)[t] = v[t];
      if (k1 == 0) {  // frequencies 0 and nx / 2 are their own partners
        row0[T::partner + T::special] = v[0];
        row0[T::special] = v[kHalf];
      }
    }
  }

  Complex* tile_;
  const Complex* twiddles_;
  WarpPlace my_;
};

}  // namespace xcorr::fused_fft
