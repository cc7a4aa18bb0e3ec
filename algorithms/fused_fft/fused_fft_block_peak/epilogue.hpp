// What a block makes of the outputs in its tile: the record of their peak, or all of them in global
// memory. ../row_results.hpp has the other results.
#pragma once

#include "algorithms/fused_fft/fused_fft_block_peak/upsample.hpp"
#include "algorithms/fused_fft/row_results.hpp"
#include "algorithms/fused_fft/surface_rows.hpp"

namespace xcorr::fused_fft {

// Warps of a block: one for each unit of columns, but at 192, where each of the 48 units of rows then
// has as long, and a thread more registers.
template <int kN>
inline constexpr int kPeakWarps = kN == 192 ? 24 : BlockTile<kN>::warps;

// Shared memory of the epilogue.
template <int kN>
struct PeakScratch {
  static constexpr int kParts = ceil_div(kN, 32);
  static_assert(kParts <= kPeakWarps<kN> && kPeakWarps<kN> <= 32);
  float tops[kN];                  // the largest output of each row of the window
  float firsts[ceil_div(kN, 32)];  // local maxima of one row, by parts of 32 columns
  float seconds[kPeakWarps<kN>];   // the largest of those that a warp has found
  float moduli[kPeakWarps<kN>];    // the largest of products, of the score phase
  std::uint32_t broken[kPeakWarps<kN>];
  TeamScratch team;
  std::uint32_t pair;  // that the block has
};

// The record of the pair, by all threads of the block, after a barrier behind which the tile and
// `tops` are complete. Nobody reads the tile any more when it returns. Behind `scratch` lies what
// interpolation needs.
//
// Rows are searched for the second peak only where their largest output is larger than a second
// peak that is known already: that of the row with the largest output away from the peak. Of a smooth
// surface it has none, and then all rows are searched: each warp walks down some rows.
template <int kN>
__device__ __forceinline__ void write_peak(const TileSurface<kN>& s, PeakScratch<kN>& scratch,
                                           const ResultRequest& request, const Upsample& upsample,
                                           WarpPlace my, Peak* to) {
  // Every warp finds the peak.
  PeakPlace top = place_of(no_number(), 0);
#pragma unroll 1
  for (int y = my.lane; y < s.rows; y += 32) top = first_of(top, place_of(scratch.tops[y], y));
  top = first_of_lanes(top);
  const bool exists = top.at != kNowhere;
  const int peak_y = exists ? top.at : 0;
  PeakPlace col = place_of(no_number(), 0);
#pragma unroll 1
  for (int x = my.lane; x < s.cols; x += 32) {
    const float value = s.row(peak_y)[x];
    col = first_of(col, place_of(value, x));
  }
  col = first_of_lanes(col);
  const int peak_x = exists ? col.at : 0;

  // The row with the largest output that is away from the peak's row.
  PeakPlace far = place_of(no_number(), 0);
#pragma unroll 1
  for (int y = my.lane; y < s.rows; y += 32) {
    if (y - peak_y > 2 || peak_y - y > 2) far = first_of(far, place_of(scratch.tops[y], y));
  }
  far = first_of_lanes(far);
  const int far_y = far.at;
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

  // The rows of a warp, less those before the first and behind the last that may have it.
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
  // Read before others may overwrite the tile.
  Peak record{};
  if (my.warp == 0) {
    const bool broken = warp::any(my.lane < kPeakWarps<kN> && scratch.broken[my.lane] != 0);
    if (my.lane == 0) {
      record = peak_record(s, request, request.sub_pixel, {top.value, exists ? 0 : kNowhere},
                           peak_y, peak_x, no_number(), !broken);
    }
  }
  block::barrier();
  if (my.warp == 0) {
    float of_warps = my.lane < kPeakWarps<kN> ? scratch.seconds[my.lane] : no_number();
    of_warps = largest_of_lanes(of_warps);
    if (my.lane == 0) {
      record.second = exists ? of_warps : no_number();
      store_record(to, record);
    }
  }
  if (request.sub_pixel != SubPixel::upsample || !exists) return;
  const int thread = opaque(static_cast<int>(threadIdx.x));
  const int lane = thread % warp::kSize, warp = thread / warp::kSize;
  if (warp::any(lane < kPeakWarps<kN> && scratch.broken[lane] != 0)) return;  // all warps alike
  interpolate_peak(s, upsample, peak_y, peak_x,
                   BlockTeam{lane, warp, kPeakWarps<kN>, &scratch.team},
                   reinterpret_cast<float*>(&scratch + 1), to);
}

// The result sum, above or peaks, between barriers as above.
template <int kN>
__device__ __forceinline__ void write_rows_result(const TileSurface<kN>& s,
                                                  PeakScratch<kN>& scratch,
                                                  const ResultRequest& request, Index pair) {
  static_assert(kN <= 32 * kPeakWarps<kN>);
  // Opaque, so that nothing is made ready before the passes: registers are short.
  const int thread = opaque(static_cast<int>(threadIdx.x));
  const int lane = thread % warp::kSize, warp = thread / warp::kSize;
  const int y = warp + kPeakWarps<kN> * lane;
  const bool broken = warp::any(lane < kPeakWarps<kN> && scratch.broken[lane] != 0);
  write_result(s, BlockTeam{lane, warp, kPeakWarps<kN>, &scratch.team}, y,
               y < s.rows ? scratch.tops[y] : no_number(), !broken, 1.0f, request, pair);
}

// All outputs, dense, between barriers as above.
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
