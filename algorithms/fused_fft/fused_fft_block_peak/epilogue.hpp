// The epilogue of a block: writes the record of the peak of the outputs in its tile, or all outputs
// to global memory. ../row_results.hpp has the other results.
#pragma once

#include "algorithms/fused_fft/fused_fft_block_peak/tuning.hpp"
#include "algorithms/fused_fft/fused_fft_block_peak/upsample.hpp"
#include "algorithms/fused_fft/row_results.hpp"
#include "algorithms/fused_fft/surface_rows.hpp"
#include "algorithms/fused_fft/walk.hpp"

namespace xcorr::fused_fft {

// Shared memory of the epilogue.
template <int kN>
struct PeakScratch {
  static constexpr int kParts = ceil_div(kN, 32);
  static_assert(kParts <= BlockPeakTuning::kWarps<kN> && BlockPeakTuning::kWarps<kN> <= 32);
  float tops[kN];                  // the largest output of each row of the window
  float firsts[ceil_div(kN, 32)];  // largest local maximum of each part of 32 columns of one row
  float seconds[BlockPeakTuning::kWarps<kN>];  // the largest local maximum that each warp has found
  std::uint32_t broken[BlockPeakTuning::kWarps<kN>];
  TeamScratch team;
  std::uint32_t pair;  // the pair that the block processes
};

// Numbered values, of which a lane has every 32nd. A value that does not exist is NaN.
template <int kParts>
struct LaneValues {
  float value[kParts];

  // The largest value of all lanes; NaN if none is a number.
  __device__ __forceinline__ float largest() const {
    float most = value[0];
#pragma unroll
    for (int part = 1; part < kParts; ++part) most = fmaxf(most, value[part]);
    return largest_of_lanes(most);
  }
  // The number of the first value that equals `of`; there is at least one.
  __device__ __forceinline__ int first(float of, int lane) const {
    float place = no_number();
#pragma unroll
    for (int part = kParts - 1; part >= 0; --part) {
      if (value[part] == of) place = static_cast<float>(-(warp::kSize * part + lane));
    }
    return -static_cast<int>(largest_of_lanes(place));
  }
};

// Writes the record of the pair, by all threads of the block, after a barrier that completed the
// tile and `tops`. When it returns, no thread reads the tile any more. The memory behind `scratch`
// is that of interpolation.
//
// Rows are searched for the second peak only if their largest output exceeds the first candidate,
// the largest local maximum of the row with the largest output away from the peak. On a smooth
// surface that row has none. Then all rows are searched: each warp walks down some of them.
template <int kN>
__device__ __forceinline__ void write_peak(const TileSurface<kN>& s, PeakScratch<kN>& scratch,
                                           const ResultRequest& request, const Upsample& upsample,
                                           Peak* to) {
  // Opaque to the compiler, so that it computes nothing before the passes, which need the
  // registers.
  const int thread = opaque(static_cast<int>(threadIdx.x));
  const WarpPlace my{thread / warp::kSize, BlockPeakTuning::kWarps<kN>, thread % warp::kSize};
  // Every warp finds the peak. A lane has one value of each part of 32; the loads of all parts
  // overlap.
  constexpr int kParts = PeakScratch<kN>::kParts;
  const auto values = [&](int count, auto&& at) {
    LaneValues<kParts> of;
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      const int i = warp::kSize * part + my.lane;
      of.value[part] = i < count ? at(i) : no_number();
    }
    return of;
  };
  LaneValues<kParts> tops = values(s.rows, [&](int y) { return scratch.tops[y]; });
  const float largest = tops.largest();
  const bool exists = is_number(largest);
  const int peak_y = exists ? tops.first(largest, my.lane) : 0;
  const auto row = values(s.cols, [&](int x) { return s.row(peak_y)[x]; });
  const int peak_x = exists ? row.first(largest, my.lane) : 0;

  // The row with the largest output outside the rows around the peak.
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
    const int y = warp::kSize * part + my.lane;
    if (y - peak_y <= 2 && peak_y - y <= 2) tops.value[part] = no_number();
  }
  const float far = tops.largest();
  const int far_y = is_number(far) ? tops.first(far, my.lane) : kNowhere;
  if (my.warp < PeakScratch<kN>::kParts) {
    const int x = 32 * my.warp + my.lane;
    float found = no_number();
    if (far_y != kNowhere && x < s.cols) {
      const float value = s.row(far_y)[x];
      if (is_number(value) && is_local_maximum(s, far_y, x, value)) found = value;
    }
    found = largest_of_lanes(found);
    if (my.lane == 0) scratch.firsts[my.warp] = found;
  }
  block::barrier();
  float known = no_number();
#pragma unroll
  for (int part = 0; part < PeakScratch<kN>::kParts; ++part) {
    known = fmaxf(known, scratch.firsts[part]);
  }

  // The rows of a warp, without those before the first and after the last row that may have the
  // second peak.
  const int each = ceil_div(s.rows, my.warps), begin = my.warp * each;
  const int y = begin + my.lane;
  const bool wanted = my.lane < each && y < s.rows && !(scratch.tops[y] <= known);
  const auto number = static_cast<float>(my.lane);
  const float first = -largest_of_lanes(wanted ? -number : no_number());
  const float last = largest_of_lanes(wanted ? number : no_number());
  float second = known;
  if (is_number(last)) {
    second = fmaxf(
        second, second_of_rows(s, begin + static_cast<int>(first),
                               begin + static_cast<int>(last) + 1, my.lane, peak_y, peak_x, known));
  }
  second = largest_of_lanes(second);
  if (my.lane == 0) scratch.seconds[my.warp] = second;
  // The last warp writes the record, since the first warp has one unit of columns more. Two lanes
  // have an axis each. They read the neighbours of the peak before other warps may overwrite the
  // tile.
  const bool writes = my.warp == my.warps - 1;
  bool broken = false, has_before = false, has_after = false;
  float before = 0, after = 0;
  int equal = 2;  // length of a plateau
  if (writes) {
    broken = my.lane < BlockPeakTuning::kWarps<kN> && scratch.broken[my.lane] != 0;
    const bool is_y = my.lane == 0;
    has_before = (is_y ? peak_y : peak_x) > 0;
    has_after = (is_y ? peak_y + 1 < s.rows : peak_x + 1 < s.cols);
    const float* const from = s.row(peak_y) + peak_x;
    if (has_before) before = is_y ? s.row(peak_y - 1)[peak_x] : from[-1];
    if (has_after) after = is_y ? s.row(peak_y + 1)[peak_x] : from[1];
    if (my.lane < 2 && exists && has_after && after == largest) {
      equal = plateau_length(s, peak_y, peak_x, is_y, largest);
    }
    warp::barrier();
  }
  block::barrier();
  if (writes) {
    broken = warp::any(broken);
    const float of_warps = largest_of_lanes(
        my.lane < BlockPeakTuning::kWarps<kN> ? scratch.seconds[my.lane] : no_number());
    AxisFit fit = fit_along(before, largest, after, has_before, has_after, request.sub_pixel);
    if (is_on_plateau(fit, largest, after)) fit.sub = centre_of_plateau(equal);
    const float sub_sx = warp::shuffle(fit.sub, 1);
    const std::uint32_t flags = fit.flags | warp::shuffle(fit.flags, 1);
    if (my.lane == 0) {
      Peak record{largest,
                  request.first_sy,
                  request.first_sx,
                  0.0f,
                  0.0f,
                  no_number(),
                  broken ? std::uint32_t{kPeakNotFinite} : 0u,
                  0};
      if (exists) {
        record.sy += peak_y;
        record.sx += peak_x;
        record.sub_sy = fit.sub;
        record.sub_sx = sub_sx;
        record.second = of_warps;
        record.flags |= flags;
      }
      store_record(to, record);
    }
  }
  if (request.sub_pixel != SubPixel::upsample || !exists) return;
  // All warps take the same branch.
  if (warp::any(my.lane < BlockPeakTuning::kWarps<kN> && scratch.broken[my.lane] != 0)) return;
  interpolate_peak(s, upsample, peak_y, peak_x,
                   BlockTeam{my.lane, my.warp, BlockPeakTuning::kWarps<kN>, &scratch.team},
                   reinterpret_cast<float*>(&scratch + 1), to);
}

// Writes the result sum, above or peaks, between barriers as in write_peak().
template <int kN>
__device__ __forceinline__ void write_rows_result(const TileSurface<kN>& s,
                                                  PeakScratch<kN>& scratch,
                                                  const ResultRequest& request, Index pair) {
  static_assert(kN <= 32 * BlockPeakTuning::kWarps<kN>);
  // Opaque to the compiler, so that it computes nothing before the passes, which need the
  // registers.
  const int thread = opaque(static_cast<int>(threadIdx.x));
  const int lane = thread % warp::kSize, warp = thread / warp::kSize;
  const int y = warp + BlockPeakTuning::kWarps<kN> * lane;
  const bool broken = warp::any(lane < BlockPeakTuning::kWarps<kN> && scratch.broken[lane] != 0);
  write_result(s, BlockTeam{lane, warp, BlockPeakTuning::kWarps<kN>, &scratch.team}, y,
               y < s.rows ? scratch.tops[y] : no_number(), !broken, 1.0f, request, pair);
}

// Writes all outputs, dense, between barriers as in write_peak().
template <int kN>
__device__ __forceinline__ void write_surface(const TileSurface<kN>& s, WarpPlace my, float* to) {
#pragma unroll 1
  for (int y = my.warp; y < s.rows; y += my.warps) {
    const float* const from = s.row(y);
#pragma unroll 1
    for (int x = my.lane; x < s.cols; x += 32) to[y * s.cols + x] = from[x];
  }
  block::barrier();
}

}  // namespace xcorr::fused_fft
