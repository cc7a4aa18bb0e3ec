// Combines the records of rectangles into the records of pairs, where the surface of a pair spans
// several rectangles. One warp per pair. Where a plateau continues beyond its rectangle, it is
// followed by computing single outputs.
#pragma once

#include "algorithms/blocks/overlap_geometry.hpp"
#include "algorithms/blocks/peaks.hpp"
#include "algorithms/tiled/tiled_direct_peak/rectangles.hpp"
#include "algorithms/tiled/tiled_direct_peak/tuning.hpp"

namespace xcorr::tiled {

struct CombineArguments {
  ResultRequest request;
  Rectangles rectangles;
  Index pairs;
  int out_cols;
  const char* lists;
  Index list_bytes;
  DeviceProblem problem;
  const float *left, *right;  // for covariance, without their means
};

// The first record of a rectangle. Its value is NaN if the rectangle has no local maximum.
__device__ __forceinline__ const Peak* records_of(const CombineArguments& a, Index pair,
                                                  int rectangle) {
  const Index at = (pair * a.rectangles.count + rectangle) * a.list_bytes;
  return reinterpret_cast<const Peak*>(a.lists + at);
}
__device__ __forceinline__ PeakPlace place_in_surface(const CombineArguments& a,
                                                      const Peak& record) {
  const int y = record.sy - a.request.first_sy, x = record.sx - a.request.first_sx;
  return place_of(record.value, y * a.out_cols + x);
}

// The record for a missing local maximum.
__device__ __forceinline__ Peak missing_record(const CombineArguments& a, std::uint32_t flags) {
  return {no_number(), a.request.first_sy, a.request.first_sx, 0, 0, no_number(), flags, 0};
}

// Computes the output at (sy, sx), for all lanes.
__device__ __forceinline__ float output_at(const CombineArguments& a, Index pair, int sy, int sx,
                                           int lane) {
  const DeviceProblem& q = a.problem;
  const Index left = pair / q.rights_per_left,
              right = q.rights_shared ? pair % q.rights_per_left : pair;
  const float* const of_left = a.left + left * q.left_size;
  const float* const of_right = a.right + right * q.right_size;
  const int end_y = smaller(q.left_rows, q.right_rows - sy);
  const int first_x = larger(0, -sx), end_x = smaller(q.left_cols, q.right_cols - sx);
  float sum = 0;
#pragma unroll 1
  for (int y = larger(0, -sy); y < end_y; ++y) {
    const float* const l = of_left + static_cast<Index>(y) * q.left_cols;
    const float* const r = of_right + static_cast<Index>(y + sy) * q.right_cols + sx;
#pragma unroll 1
    for (int x = first_x + lane; x < end_x; x += warp::kSize) sum += l[x] * r[x];
  }
  warp::barrier();
  return warp::reduce_add(sum);
}

// Follows a plateau along an axis from the outputs of its rectangle to its end. All lanes get the
// same result: the distance from the shift to the centre of the plateau.
__device__ __forceinline__ float follow_plateau(const CombineArguments& a, Index pair, float value,
                                                int sy, int sx, bool is_down, float sub, int lane) {
  const DeviceProblem& q = a.problem;
  const int end = is_down ? q.first_sy + q.out_rows - sy : q.first_sx + q.out_cols - sx;
  int equal = static_cast<int>(2 * sub) + 1;
#pragma unroll 1
  while (equal < end) {
    const float next =
        output_at(a, pair, is_down ? sy + equal : sy, is_down ? sx : sx + equal, lane);
    if (!(next == value)) break;
    ++equal;
  }
  return centre_of_plateau(equal);
}

// Completes the record of lane `of`. All lanes follow its plateaus.
__device__ __forceinline__ void close_plateaus(const CombineArguments& a, Index pair, int lane,
                                               int of, Peak& record) {
  const std::uint32_t open = warp::shuffle(record.spare, of);
  if (open == 0) return;
  const float value = warp::shuffle(record.value, of);
  const int sy = warp::shuffle(record.sy, of), sx = warp::shuffle(record.sx, of);
  const float sub_sy = warp::shuffle(record.sub_sy, of), sub_sx = warp::shuffle(record.sub_sx, of);
  if (open & kOpenDown) {
    record.sub_sy = follow_plateau(a, pair, value, sy, sx, true, sub_sy, lane);
  }
  if (open & kOpenAcross) {
    record.sub_sx = follow_plateau(a, pair, value, sy, sx, false, sub_sx, lane);
  }
  record.spare = 0;
}

// Writes the record of a pair: its peak is the first among the peaks of the rectangles.
__device__ __forceinline__ void combine_peak(const CombineArguments& a, Index pair, int lane,
                                             std::uint32_t flags) {
  PeakPlace mine = no_place();
  int from = 0;
#pragma unroll 1
  for (int r = lane; r < a.rectangles.count; r += warp::kSize) {
    const PeakPlace here = place_in_surface(a, load_record(records_of(a, pair, r)));
    if (first_of(mine, here).at == mine.at) continue;
    mine = here;
    from = r;
  }
  const PeakPlace top = first_of_lanes(mine);
  const int top_y = top.at / a.out_cols, top_x = top.at % a.out_cols;
  float second = no_number();
#pragma unroll 1
  for (int r = lane; r < a.rectangles.count; r += warp::kSize) {
    const auto* const list = reinterpret_cast<const RectangleMaxima*>(records_of(a, pair, r));
    PeakPlace next = place_in_surface(a, load_record(&list->first));
#pragma unroll 1
    for (int rank = 0; next.at != kNowhere; ++rank) {
      if (!is_around(next.at / a.out_cols, next.at % a.out_cols, top_y, top_x)) {
        second = fmaxf(second, next.value);
        break;
      }
      if (rank == kMostListed - 1) break;
      next = list->more[rank];
    }
  }
  second = largest_of_lanes(second);
  const bool exists = top.at != kNowhere, writes = exists ? mine.at == top.at : lane == 0;
  Peak record = missing_record(a, 0);
  if (exists && writes) record = load_record(records_of(a, pair, from));
  const int of = first_of_lanes(writes ? PeakPlace{0.0f, lane} : no_place()).at;
  close_plateaus(a, pair, lane, of, record);
  if (!writes) return;
  record.second = second;
  record.flags |= flags;
  store_record(a.request.peaks_of(pair), record);
}

// Merges the sorted records of all rectangles: in each round, the first record after the previous
// one.
__device__ __forceinline__ void combine_peaks(const CombineArguments& a, Index pair, int lane,
                                              std::uint32_t flags) {
  Peak* const to = a.request.peaks_of(pair);
  PeakPlace previous = before_all();
#pragma unroll 1
  for (int rank = 0; rank < a.request.count; ++rank) {
    PeakPlace mine = no_place();
    Peak record = missing_record(a, 0);
#pragma unroll 1
    for (int r = lane; r < a.rectangles.count; r += warp::kSize) {
      const Peak* const list = records_of(a, pair, r);
#pragma unroll 1
      for (int i = 0; i < a.rectangles.listed; ++i) {
        const Peak candidate = load_record(list + i);
        const PeakPlace here = place_in_surface(a, candidate);
        if (here.at == kNowhere) break;
        if (!comes_after(here, previous)) continue;
        if (first_of(mine, here).at != mine.at) mine = here, record = candidate;
        break;
      }
    }
    previous = first_of_lanes(mine);
    const bool writes = previous.at == kNowhere ? lane == 0 : mine.at == previous.at;
    const int of = first_of_lanes(writes ? PeakPlace{0.0f, lane} : no_place()).at;
    close_plateaus(a, pair, lane, of, record);
    if (writes) {
      record.flags |= flags;
      store_record(to + rank, record);
    }
  }
}

static __global__ void __launch_bounds__(PeakTuning::kCombineWarps* warp::kSize, 4)
    combine_kernel(CombineArguments a) {
  const int lane = static_cast<int>(threadIdx.x) % warp::kSize;
  const Index pair = static_cast<Index>(blockIdx.x) * PeakTuning::kCombineWarps +
                     static_cast<int>(threadIdx.x) / warp::kSize;
  if (pair >= a.pairs) return;  // the whole warp returns
  if (a.request.kind == ResultKind::sum) {
    const auto* const sums = reinterpret_cast<const double*>(a.lists) + pair * a.rectangles.count;
    double sum = 0;
#pragma unroll 1
    for (int r = lane; r < a.rectangles.count; r += warp::kSize) sum += sums[r];
    sum = warp::reduce_add(sum);
    if (lane == 0) *a.request.sum_of(pair) = sum;
    return;
  }
  bool finite = true;
#pragma unroll 1
  for (int r = lane; r < a.rectangles.count; r += warp::kSize) {
    finite &= (records_of(a, pair, r)->flags & kPeakNotFinite) == 0;
  }
  const std::uint32_t flags = warp::any(!finite) ? std::uint32_t{kPeakNotFinite} : 0u;
  if (a.request.kind == ResultKind::peak) {
    combine_peak(a, pair, lane, flags);
  } else {
    combine_peaks(a, pair, lane, flags);
  }
}

}  // namespace xcorr::tiled
