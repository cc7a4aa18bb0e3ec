// The epilogue of a warp. Each lane has a row of the 32 x 32 values of a circular result in
// registers. The warp stores the window's outputs to shared memory, and then writes the record of
// their peak, or the surface.
#pragma once

#include "algorithms/blocks/peaks.hpp"
#include "algorithms/fused_fft/lane_bits.hpp"
#include "algorithms/fused_fft/problem.hpp"
#include "algorithms/fused_fft/row_results.hpp"

namespace xcorr::fused_fft {

// Shared memory of a warp: rows of 32 complex values between passes, later rows of 32 outputs. With
// either pitch lanes that access a row each, or a column each, access all banks.
struct PairTile {
  static constexpr int exchange = 33, outputs = 17;  // in complex values
  static constexpr int elements = 32 * exchange;
};

// Where the window lies in the circular result, which is stored rotated by (turn_y, turn_x).
struct PairWindow {
  int turn_y, turn_x;
  Range rows, cols;       // after the rotation
  std::uint32_t columns;  // bit x: column x before the rotation is in the window
};

// The outputs of the window, not yet scaled.
struct PairSurface {
  const float* data;
  int rows, cols;

  __device__ __forceinline__ const float* row(int y) const {
    return data + y * (2 * PairTile::outputs);
  }
};

// v: row `lane` before the rotation, two columns per complex value.
__device__ __forceinline__ PairSurface store_outputs(const PairWindow& w, int lane,
                                                     const Complex (&v)[16], Complex* tile) {
  Complex* const to = tile + (lane + w.turn_y) % 32 * PairTile::outputs;
  if (w.turn_x == 16) {
#pragma unroll
    for (int m = 0; m < 16; ++m) to[m ^ 8] = v[m];
  } else {
    float* const outputs = &to->re;
#pragma unroll
    for (int m = 0; m < 16; ++m) {
      outputs[(2 * m + w.turn_x) % 32] = v[m].re;
      outputs[(2 * m + 1 + w.turn_x) % 32] = v[m].im;
    }
  }
  const float* const first = &tile->re + w.rows.first * (2 * PairTile::outputs) + w.cols.first;
  return {first, w.rows.count, w.cols.count};
}

// Writes the result of a pair, by its warp. v is as in store_outputs.
__device__ __forceinline__ void write_pair_result(const PairSurface& s, const PairWindow& w,
                                                  const ResultRequest& request, float scale,
                                                  int lane, const Complex (&v)[16], Index pair) {
  // The largest output of the lane's row, and whether all of the row are finite: then the sum of
  // all products with 0 is 0.
  const int y = (lane + w.turn_y) % 32 - w.rows.first;
  const bool has_row = static_cast<unsigned>(y) < static_cast<unsigned>(s.rows);
  float top = no_number(), zero = 0;
  if (w.columns == 0xffffffffu) {
#pragma unroll
    for (int m = 0; m < 16; ++m) {
      top = fmaxf(top, fmaxf(v[m].re, v[m].im));
      zero += 0.0f * v[m].re;
      zero += 0.0f * v[m].im;
    }
  } else {
#pragma unroll
    for (int m = 0; m < 16; ++m) {
      if (w.columns >> (2 * m) & 1) top = fmaxf(top, v[m].re), zero += 0.0f * v[m].re;
      if (w.columns >> (2 * m + 1) & 1) top = fmaxf(top, v[m].im), zero += 0.0f * v[m].im;
    }
  }
  if (!has_row) top = no_number(), zero = 0;
  const bool broken = warp::any(zero != 0);
  if (request.kind != ResultKind::peak) {
    write_result(s, WarpTeam{lane}, has_row ? y : s.rows, top, !broken, scale, request, pair);
    return;
  }

  const float value = largest_of_lanes(top);
  const int first = smallest_of_lanes(top == value ? y : kNowhere);
  const bool exists = first != kNowhere;
  const int peak_y = exists ? first : 0;
  const bool here = exists && lane < s.cols && s.row(peak_y)[lane] == value;
  const int found_x = smallest_of_lanes(here ? lane : kNowhere);
  const int peak_x = exists ? found_x : 0;

  // The second peak. The first candidate comes from the row with the largest output away from the
  // peak's row. Then only rows whose largest output exceeds the candidate are searched.
  const bool is_far = y - peak_y > 2 || peak_y - y > 2;
  const float far = largest_of_lanes(is_far ? top : no_number());
  const int far_y = smallest_of_lanes(is_far && top == far ? y : kNowhere);
  float second = no_number();
  if (far_y != kNowhere) second = second_of_row(s, far_y, lane, peak_y, peak_x, no_number());
  second = largest_of_lanes(second);
  std::uint32_t rows =
      bits_of_lanes(is_number(top) && y != far_y && !(top <= second) ? 1u << y : 0u);
#pragma unroll 1
  while (rows != 0) {  // the same for all lanes
    const int of = lowest_bit(rows);
    rows &= rows - 1;
    second = fmaxf(second, second_of_row(s, of, lane, peak_y, peak_x, second));
  }
  second = largest_of_lanes(second);
  if (lane != 0) return;
  Peak record = peak_record(s, request, request.sub_pixel, {value, exists ? 0 : kNowhere}, peak_y,
                            peak_x, exists ? second : no_number(), !broken);
  record.value *= scale;
  record.second *= scale;
  store_record(request.peaks_of(pair), record);
}

// Writes all outputs, dense.
__device__ __forceinline__ void write_pair_surface(const PairSurface& s, float scale, int lane,
                                                   float* to) {
  if (lane >= s.cols) return;
#pragma unroll 4
  for (int y = 0; y < s.rows; ++y) to[y * s.cols + lane] = scale * s.row(y)[lane];
}

}  // namespace xcorr::fused_fft
