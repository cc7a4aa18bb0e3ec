// The results sum, above and peaks of a surface that a team of warps can read, where the largest
// output of each row is known. Each lane has at most one row of the surface and its largest output,
// (y, top). y is beyond the last row if the lane has none, and top is NaN if the row has no number.
//
// peaks:k finds the local maxima in their order. A row's largest output is an upper bound of its
// local maxima. A warp searches its rows from the largest bound on, until no bound exceeds the
// largest local maximum that it has found. The first of all warps is the next peak. After that its
// row may have another local maximum, of at most the same value. sum adds in float64, in an order
// that depends on the shape alone.
#pragma once

#include "algorithms/blocks/peaks.hpp"

namespace xcorr::fused_fft {

// Pitch of the numbers of outputs, y * kPlacePitch + x. Surfaces have fewer columns.
inline constexpr int kPlacePitch = 1024;

// The first local maximum of row y that comes after `previous` in the order of peaks, returned to
// all lanes of a warp.
template <typename Surface>
__device__ __forceinline__ PeakPlace next_of_row(const Surface& s, int y, int lane,
                                                 PeakPlace previous) {
  const float* const row = s.row(y);
  PeakPlace best = no_place();
#pragma unroll 1
  for (int x = lane; x < s.cols; x += warp::kSize) {
    const PeakPlace here = {row[x], y * kPlacePitch + x};
    if (!comes_after(here, previous)) continue;
    if (best.at != kNowhere && here.value <= best.value) continue;
    if (is_local_maximum(s, y, x, here.value)) best = here;
  }
  return first_of_lanes(best);
}

template <typename Surface, typename Team>
__device__ __forceinline__ void write_peaks(const Surface& s, const Team& team, int y, float top,
                                            bool all_finite, float scale,
                                            const ResultRequest& request, Peak* to) {
  // No local maximum of the lane's row after `previous` exceeds `bound`. If `known`, `bound` is
  // such a maximum and lies at `at`.
  float bound = y < s.rows ? top : no_number();
  int at = kNowhere;
  bool known = false;
  PeakPlace previous = before_all();
#pragma unroll 1
  for (int rank = 0; rank < request.count; ++rank) {
    PeakPlace next = no_place();
#pragma unroll 1
    for (;;) {
      next = first_of_lanes(known ? place_of(bound, at) : no_place());
      const bool may_exceed = !known && is_number(bound) && !(bound < next.value);
      if (!warp::any(may_exceed)) break;
      const int row = first_of_lanes(may_exceed ? place_of(bound, y) : no_place()).at;
      const PeakPlace found = next_of_row(s, row, team.lane, previous);
      if (y == row) {
        known = true;
        at = found.at;
        bound = found.at == kNowhere ? no_number() : found.value;
      }
    }
    previous = team.first_of_all(next, rank);
    if (previous.at == at) known = false;
    if (team.warp == 0 && team.lane == 0) {
      Peak record = peak_record(s, request, SubPixel::parabola, previous, previous.at / kPlacePitch,
                                previous.at % kPlacePitch, no_number(), all_finite);
      record.value *= scale;
      store_record(to + rank, record);
    }
  }
}

template <typename Surface, typename Team>
__device__ __forceinline__ void write_sum(const Surface& s, const Team& team, float scale,
                                          double* to) {
  double sum = 0;
#pragma unroll 1
  for (int y = team.warp; y < s.rows; y += team.warps) {
    const float* const row = s.row(y);
#pragma unroll 2
    for (int x = team.lane; x < s.cols; x += warp::kSize) sum += static_cast<double>(row[x]);
  }
  sum = team.sum_of_all(warp::reduce_add(sum));
  if (team.warp == 0 && team.lane == 0) *to = static_cast<double>(scale) * sum;
}

template <typename Surface, typename Team>
__device__ __forceinline__ void list_rows(const Surface& s, const Team& team, int y, float top,
                                          float scale, const ResultRequest& request, Index pair) {
  bool wanted = y < s.rows && scale * top >= request.least;
#pragma unroll 1
  while (warp::any(wanted)) {
    const int row = first_of_lanes(wanted ? PeakPlace{0.0f, y} : no_place()).at;
    list_row(s, row, 0, s.cols, team.lane, scale, request, pair);
    if (y == row) wanted = false;
  }
}

// The result sum, above or peaks of a pair, by all warps of a team. The team has met since the
// surface was complete. When it returns, no warp reads the surface any more. Outputs are `scale`
// times the values of the surface.
template <typename Surface, typename Team>
__device__ __forceinline__ void write_result(const Surface& s, const Team& team, int y, float top,
                                             bool all_finite, float scale,
                                             const ResultRequest& request, Index pair) {
  if (request.kind == ResultKind::sum) {
    write_sum(s, team, scale, request.sum_of(pair));
  } else if (request.kind == ResultKind::above) {
    list_rows(s, team, y, top, scale, request, pair);
  } else {
    write_peaks(s, team, y, top, all_finite, scale, request, request.peaks_of(pair));
  }
  team.meet();
}

}  // namespace xcorr::fused_fft
