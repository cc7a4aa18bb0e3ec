// The epilogue of the two warps of a pair. The 64 x 64 values of the circular result lie in shared
// memory, rotated by half of each axis. It writes the record of their peak, or the outputs of the
// window.
#pragma once

#include <bit>

#include "algorithms/blocks/float_order.hpp"
#include "algorithms/blocks/peaks.hpp"
#include "algorithms/device/cuda.hpp"
#include "algorithms/fused_fft/lane_bits.hpp"
#include "algorithms/fused_fft/problem.hpp"
#include "algorithms/fused_fft/walk.hpp"

namespace xcorr::fused_fft {

template <int kCount>
__device__ __forceinline__ void load_line(const Complex* from, Complex (&v)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; i += 2) {
    const SpectrumPair pair = *reinterpret_cast<const SpectrumPair*>(from + i);
    v[i] = pair.a;
    v[i + 1] = pair.b;
  }
}
template <int kCount>
__device__ __forceinline__ void store_line(Complex* to, const Complex (&v)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; i += 2) {
    *reinterpret_cast<SpectrumPair*>(to + i) = SpectrumPair{v[i], v[i + 1]};
  }
}

// What a warp passes to the other one: the largest outputs of its half of each row, and the values
// below.
struct alignas(16) WindowNotes {
  float tops[64];
  Complex sums, squares;  // of the warp's half of 64 x 64
  // The same in both warps: factors of the sides of 64 x 64, and the factor of the outputs.
  Complex sides;
  float back;
  int broken;
};

// Shared memory of a pair, in complex values: for each warp a tile of 32 rows or columns (both
// tiles together later hold 64 rows of outputs), half a tile, and notes. A lane that has a row or a
// column in registers accesses it two values at a time: with these pitches 8 lanes access all
// banks.
struct WindowShared {
  static constexpr int pitch = 34, half_pitch = 18;
  static constexpr int tile_size = 32 * pitch, half_size = 32 * half_pitch;
  static constexpr int notes_at = 2 * (tile_size + half_size);
  static constexpr int elements =
      notes_at + 2 * static_cast<int>(sizeof(WindowNotes) / sizeof(Complex));

  __device__ __forceinline__ WindowShared(Complex* shared, int warp)
      : tile(shared + warp * tile_size),
        half(shared + 2 * tile_size + warp * half_size),
        notes(reinterpret_cast<WindowNotes*>(shared + notes_at) + warp) {}

  Complex* tile;
  Complex* half;
  WindowNotes* notes;
};

// Bit i: the i-th of the 32 columns that a warp has in the epilogue lies in the window.
struct WindowColumns {
  WindowColumns() = default;
  explicit WindowColumns(Range cols) {
    const auto has = [&](int i) {  // Range::has is for kernels alone
      return static_cast<unsigned>(i - cols.first) < static_cast<unsigned>(cols.count);
    };
    for (int i = 0; i < 32; ++i) {
      of_warp[0] |= std::uint32_t{has(32 + i)} << i;
      of_warp[1] |= std::uint32_t{has(i)} << i;
    }
  }
  std::uint32_t of_warp[2] = {};
};

// The outputs of the window, not yet scaled.
struct WindowSurface {
  const float* data;
  int rows, cols;

  __device__ __forceinline__ const float* row(int y) const {
    return data + y * (2 * WindowShared::pitch);
  }
};

// Stores, for the columns in the window of a warp's half of rows `lane` and `lane` + 32, the
// largest outputs, and whether an output is not finite: 0 times a finite number is 0. kWhole: all
// columns are in the window, except the first column of warp 1.
template <bool kWhole>
__device__ __forceinline__ void note_tops(const Complex (&row0)[16], const Complex (&row1)[16],
                                          std::uint32_t columns, Range rows, int lane,
                                          WindowNotes& notes) {
  float top0 = no_number(), top1 = no_number(), zero0 = 0, zero1 = 0;
  const auto see = [&](float of_row0, float of_row1) {
    top0 = fmaxf(top0, of_row0);
    top1 = fmaxf(top1, of_row1);
    zero0 += 0.0f * of_row0;
    zero1 += 0.0f * of_row1;
  };
  // All columns, except the one at which full windows do not overlap.
  if (kWhole || (columns | 1) == 0xffffffffu) {
    if (columns & 1) see(row0[0].re, row1[0].re);
    see(row0[0].im, row1[0].im);
#pragma unroll
    for (int m = 1; m < 16; ++m) {
      see(row0[m].re, row1[m].re);
      see(row0[m].im, row1[m].im);
    }
  } else {
#pragma unroll
    for (int m = 0; m < 16; ++m) {
      if (columns >> (2 * m) & 1) see(row0[m].re, row1[m].re);
      if (columns >> (2 * m + 1) & 1) see(row0[m].im, row1[m].im);
    }
  }
  notes.tops[lane] = top0;
  notes.tops[lane + 32] = top1;
  const bool broken =
      warp::any((rows.has(lane) && zero0 != 0) || (rows.has(lane + 32) && zero1 != 0));
  if (lane == 0) notes.broken = broken;
}

// order_of() a value; 0 for a NaN.
__device__ __forceinline__ std::uint32_t rank_of(float value) {
  const std::uint32_t rank = order_of(value);
  return is_number(value) ? rank : 0;
}
__device__ __forceinline__ float value_of_rank(std::uint32_t rank) {
  if (rank == 0) return no_number();
  return value_of_order(rank);
}

// The first row with the largest rank, of 64 rows; a lane has two of them.
struct FirstRow {
  bool exists;
  int row;  // lane or lane + 32; 0 where no row has a number
  float value;

  __device__ __forceinline__ FirstRow(std::uint32_t early, std::uint32_t late) {
    const std::uint32_t rank = warp::largest(early > late ? early : late);
    const std::uint32_t low = warp::votes(early == rank), high = warp::votes(late == rank);
    exists = rank != 0;
    row = !exists ? 0 : low != 0 ? lowest_bit(low) : 32 + lowest_bit(high);
    value = value_of_rank(rank);
  }
};

// The fit of peaks.hpp along one axis. A Gaussian's fit is that of a parabola through logarithms.
// Only the differences of the neighbours' logarithms to the middle's count, which float32 holds to
// full precision.
__device__ __forceinline__ AxisFit fit_of_axis(float before, float middle, float after,
                                               bool has_before, bool has_after,
                                               SubPixel sub_pixel) {
  if (sub_pixel == SubPixel::gaussian && before > 0 && after > 0) {
    const float down = (middle - before) / before, up = (middle - after) / after;
    if (down < 1e30f && up < 1e30f) {
      before = -log1pf(down);
      after = -log1pf(up);
      middle = 0;
      sub_pixel = SubPixel::parabola;
    }
  }
  return fit_along(before, middle, after, has_before, has_after, sub_pixel);
}

// The largest local maximum of row y, columns `lane` and `lane` + 32, that lies outside the 5 x 5
// around the peak and exceeds `least`; NaN if there is none. Both values are loaded at once. Most
// rows need no further loads.
__device__ __forceinline__ float second_of_line(const WindowSurface& s, int y, int lane, int peak_y,
                                                int peak_x, float least) {
  const int late = lane + 32 < s.cols ? lane + 32 : s.cols - 1;
  const float* const row = s.row(y);
  const float values[2] = {row[lane < s.cols ? lane : late], row[late]};
  float best = no_number();
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int x = lane + 32 * i;
    const float value = values[i];
    const bool wanted =
        x < s.cols && is_number(value) && !(value <= least) && !is_around(y, x, peak_y, peak_x);
    if (wanted && is_local_maximum(s, y, x, value)) best = fmaxf(best, value);
  }
  return best;
}

// Writes the record of a pair, by both warps. Each finds the peak. Warp 1, which has more work
// before the epilogue, fits the peak along both axes, and warp 0 searches the second peak. Each
// writes its part.
__device__ __forceinline__ void write_window_peak(const WindowSurface& s, const WindowNotes& mine,
                                                  const WindowNotes& other, Range rows,
                                                  const ResultRequest& request, float scale,
                                                  int warp, int lane, Index pair) {
  // The two rows of the window that the lane has, and their largest outputs.
  const int y0 = lane - rows.first, y1 = y0 + 32;
  const auto top_of = [&](int row) {
    return rows.has(row) ? fmaxf(mine.tops[row], other.tops[row]) : no_number();
  };
  const float top0 = top_of(lane), top1 = top_of(lane + 32);
  const std::uint32_t rank0 = rank_of(top0), rank1 = rank_of(top1);
  const FirstRow top(rank0, rank1);
  const bool exists = top.exists;
  const int peak_y = exists ? top.row - rows.first : 0;
  const auto found = [&](int x) {
    return warp::votes(exists && x < s.cols && s.row(peak_y)[x] == top.value);
  };
  const std::uint32_t early = found(lane), late = found(lane + 32);
  const int peak_x = early != 0 ? lowest_bit(early) : late != 0 ? 32 + lowest_bit(late) : 0;
  Peak* const to = request.peaks_of(pair);

  if (warp == 1) {  // one lane per axis
    const bool is_y = lane == 0;
    const int place = is_y ? peak_y : peak_x;
    const bool has_before = exists && lane < 2 && place > 0;
    const bool has_after = exists && lane < 2 && place + 1 < (is_y ? s.rows : s.cols);
    const int step = is_y ? 2 * WindowShared::pitch : 1;
    const float* const from = s.row(peak_y) + peak_x;
    const float before = has_before ? from[-step] : 0.0f, after = has_after ? from[step] : 0.0f;
    AxisFit fit{};
    if (exists && lane < 2) {
      fit = fit_of_axis(before, top.value, after, has_before, has_after, request.sub_pixel);
      if (is_on_plateau(fit, top.value, after)) {
        fit.sub = centre_of_plateau(plateau_length(s, peak_y, peak_x, is_y, top.value));
      }
    }
    const float sub_sx = warp::shuffle(fit.sub, 1);
    const std::uint32_t of_x = warp::shuffle(fit.flags, 1);
    if (lane != 0) return;
    const bool all_finite = (mine.broken | other.broken) == 0;
    to->value = exists ? scale * top.value : no_number();
    to->sy = request.first_sy + peak_y;
    to->sx = request.first_sx + peak_x;
    to->sub_sy = fit.sub;
    to->sub_sx = sub_sx;
    to->flags = (all_finite ? 0u : std::uint32_t{kPeakNotFinite}) | fit.flags | of_x;
    to->spare = 0;
    return;
  }

  // The second peak. The first candidate comes from the row with the largest output away from the
  // peak's row. Then only rows whose largest output exceeds the candidate are searched. A smooth
  // surface has many such rows; there the lanes walk down columns.
  const auto far_of = [&](int y, std::uint32_t rank) {
    return y - peak_y > 2 || peak_y - y > 2 ? rank : 0;
  };
  const FirstRow far(far_of(y0, rank0), far_of(y1, rank1));
  const int far_y = far.row - rows.first;
  float second = no_number();
  if (far.exists) second = second_of_line(s, far_y, lane, peak_y, peak_x, no_number());
  second = value_of_rank(warp::largest(rank_of(second)));
  constexpr int kFew = 8;
  const auto wanted = [&](int y, float of_row) {
    return warp::votes(is_number(of_row) && !(far.exists && y == far_y) && !(of_row <= second));
  };
  const std::uint32_t low = wanted(y0, top0), high = wanted(y1, top1);
  if (std::popcount(low) + std::popcount(high) > kFew) {
    const int first = low != 0 ? lowest_bit(low) : 32 + lowest_bit(high);
    const int last = high != 0 ? 63 - std::countl_zero(high) : 31 - std::countl_zero(low);
    second = fmaxf(second, second_of_rows(s, first - rows.first, last - rows.first + 1, lane,
                                          peak_y, peak_x, second));
  } else {
#pragma unroll 1
    for (int part = 0; part < 2; ++part) {
      std::uint32_t left = part == 0 ? low : high;
#pragma unroll 1
      while (left != 0) {  // the same for all lanes
        const int of = lowest_bit(left) + 32 * part - rows.first;
        left &= left - 1;
        second = fmaxf(second, second_of_line(s, of, lane, peak_y, peak_x, second));
      }
    }
  }
  second = value_of_rank(warp::largest(rank_of(second)));
  if (lane == 0) to->second = exists ? scale * second : no_number();
}

// Writes all outputs, dense.
__device__ __forceinline__ void write_window_surface(const WindowSurface& s, float scale, int warp,
                                                     int lane, float* to) {
#pragma unroll 4
  for (int y = warp; y < s.rows; y += 2) {
    const float* const row = s.row(y);
    if (lane < s.cols) to[y * s.cols + lane] = scale * row[lane];
    if (lane + 32 < s.cols) to[y * s.cols + lane + 32] = scale * row[lane + 32];
  }
}

}  // namespace xcorr::fused_fft
