// The epilogue of a block for its rectangle of each pair, in shared memory. It writes the records
// of the pair if the surface is one rectangle, else the input of combine.hpp.
#pragma once

#include "algorithms/blocks/peaks.hpp"
#include "algorithms/tiled/tile_walk.hpp"
#include "algorithms/tiled/tiled_direct_peak/rectangles.hpp"

namespace xcorr::tiled {

// The outputs of a rectangle inside the window. Outputs in `own` belong to no other rectangle.
// Where `own` ends at an edge of the rectangle, this is an edge of the window.
struct Rectangle {
  const float* data;
  int pitch, rows, cols;
  Part own;
  int first_row, first_col;  // in the surface

  __device__ __forceinline__ const float* row(int y) const { return data + y * pitch; }
  // The index of an output in the surface, from its index in the rectangle.
  __device__ __forceinline__ int place(int at, int out_cols) const {
    return (first_row + at / kPitch) * out_cols + first_col + at % kPitch;
  }
  static constexpr int kPitch = 4096;  // of indices in a rectangle, which has fewer columns
};

// The record of the first largest output or of a local maximum, by one thread, with kOpenDown and
// kOpenAcross where a plateau reaches the end of the rectangle and the window continues.
__device__ __forceinline__ Peak record_of(const Rectangle& s, const ResultRequest& request,
                                          SubPixel sub_pixel, PeakPlace peak, bool finite) {
  const bool exists = peak.at != kNowhere;
  const int y = exists ? peak.at / Rectangle::kPitch : 0;
  const int x = exists ? peak.at % Rectangle::kPitch : 0;
  Peak record = peak_record(s, request, sub_pixel, peak, y, x, no_number(), finite);
  const bool on_plateau = (record.flags & kPeakOnPlateau) != 0;
  const auto ends = [](int place, float sub, int count) {
    return sub > 0 && sub == centre_of_plateau(count - place);
  };
  if (on_plateau && s.own.end_row < s.rows && ends(y, record.sub_sy, s.rows)) {
    record.spare |= kOpenDown;
  }
  if (on_plateau && s.own.end_col < s.cols && ends(x, record.sub_sx, s.cols)) {
    record.spare |= kOpenAcross;
  }
  return record;
}

// Calls use(y, x) for the outputs of `own`, by all threads of a team.
template <typename Team, typename Use>
__device__ __forceinline__ void each_own(const Rectangle& s, const Team& team, const Use& use) {
  const int threads = team.warps * warp::kSize, thread = team.warp * warp::kSize + team.lane;
  // The pitch is a power of two.
  const int width = smaller(s.pitch, threads), down = threads / width;
#pragma unroll 1
  for (int y = s.own.first_row + thread / width; y < s.own.end_row; y += down) {
#pragma unroll 1
    for (int x = s.own.first_col + (thread & (width - 1)); x < s.own.end_col; x += width) use(y, x);
  }
}

// The first local maximum of `own` after `previous`, for all threads.
template <typename Team>
__device__ __forceinline__ PeakPlace next_maximum(const Rectangle& s, const Team& team,
                                                  PeakPlace previous, int turn) {
  PeakPlace best = no_place();
  each_own(s, team, [&](int y, int x) {
    const PeakPlace here = {s.row(y)[x], y * Rectangle::kPitch + x};
    if (!comes_after(here, previous)) return;
    if (best.at != kNowhere && here.value <= best.value) return;
    if (is_local_maximum(s, y, x, here.value)) best = here;
  });
  return team.first_of_all(first_of_lanes(best), turn);
}

// Whether all outputs of `own` are finite, for the lanes of warp 0.
template <typename Team>
__device__ __forceinline__ bool is_all_finite(const Rectangle& s, const Team& team) {
  float zero = 0;  // NaN after an infinity or a NaN
  each_own(s, team, [&](int y, int x) { zero += 0.0f * s.row(y)[x]; });
  return !(team.sum_of_all(warp::any(zero != 0) ? 1.0 : 0.0) > 0);
}

// Writes the record of a surface that is one rectangle (`list` is null), or the list of a
// rectangle.
template <typename Team>
__device__ __forceinline__ void list_peak(const Rectangle& s, const Team& team,
                                          const ResultRequest& request, int out_cols, Peak* record,
                                          RectangleMaxima* list) {
  const bool finite = is_all_finite(s, team), writes = team.warp == 0 && team.lane == 0;
  // Local maxima in `deep` are not within 2 outputs of another rectangle, so that a peak there
  // cannot exclude them.
  const Part deep = {s.own.first_row > 0 ? s.own.first_row + 2 : 0,
                     s.own.end_row < s.rows ? s.own.end_row - 2 : s.rows,
                     s.own.first_col > 0 ? s.own.first_col + 2 : 0,
                     s.own.end_col < s.cols ? s.own.end_col - 2 : s.cols};
  PeakPlace next = next_maximum(s, team, before_all(), 0);
  const int top = next.at, top_y = top / Rectangle::kPitch, top_x = top % Rectangle::kPitch;
  Peak first{};
  if (writes) {
    first = record_of(s, request, request.sub_pixel, next, finite);
    if (list != nullptr) store_record(&list->first, first);
  }
  int rank = 1;
#pragma unroll 1
  while (next.at != kNowhere && rank < kMostListed) {
    next = next_maximum(s, team, next, rank);
    if (list != nullptr && writes) {
      list->more[rank - 1] = {next.value,
                              next.at == kNowhere ? kNowhere : s.place(next.at, out_cols)};
    }
    const int y = next.at / Rectangle::kPitch, x = next.at % Rectangle::kPitch;
    ++rank;
    // This maximum is outside the 5 x 5 outputs around the pair's peak, wherever that is.
    if (next.at != kNowhere && !is_around(y, x, top_y, top_x) && y >= deep.first_row &&
        y < deep.end_row && x >= deep.first_col && x < deep.end_col) {
      first.second = next.value;
      break;
    }
  }
  if (!writes) return;
  if (list == nullptr) {
    store_record(record, first);
  } else if (rank < kMostListed) {
    list->more[rank - 1].at = kNowhere;
  }
}

// Writes the records of the first `count` local maxima of `own`. Missing records are NaN: one after
// the end of the list of a rectangle, or as many as are missing for a whole surface.
template <typename Team>
__device__ __forceinline__ void list_peaks(const Rectangle& s, const Team& team,
                                           const ResultRequest& request, Peak* to, bool is_whole) {
  const bool finite = is_all_finite(s, team);
  PeakPlace next = before_all();
#pragma unroll 1
  for (int rank = 0; rank < request.count; ++rank) {
    next = next_maximum(s, team, next, rank);
    const bool exists = next.at != kNowhere;
    if (team.warp == 0 && team.lane == 0) {
      store_record(to + rank, record_of(s, request, SubPixel::parabola, next, finite));
    }
    if (!exists && !is_whole) break;
  }
}

// Finishes the rectangle of one pair, by a team that has passed a barrier since the rectangle was
// complete. `list` receives the input of combine.hpp; it is null if the surface is one rectangle.
template <typename Team>
__device__ __forceinline__ void finish_rectangle(const Rectangle& s, const Team& team,
                                                 const ResultRequest& request, int out_cols,
                                                 Index pair, void* list) {
  if (request.kind == ResultKind::peak) {
    list_peak(s, team, request, out_cols, request.peaks_of(pair),
              static_cast<RectangleMaxima*>(list));
  } else if (request.kind == ResultKind::peaks) {
    list_peaks(s, team, request, list ? static_cast<Peak*>(list) : request.peaks_of(pair),
               list == nullptr);
  } else if (request.kind == ResultKind::above) {
#pragma unroll 1
    for (int y = s.own.first_row + team.warp; y < s.own.end_row; y += team.warps) {
      list_row(s, y, s.own.first_col, s.own.end_col, team.lane, 1.0f, request, pair);
    }
  } else {
    double sum = 0;
    each_own(s, team, [&](int y, int x) { sum += static_cast<double>(s.row(y)[x]); });
    sum = team.sum_of_all(warp::reduce_add(sum));
    if (team.warp == 0 && team.lane == 0) {
      *(list ? static_cast<double*>(list) : request.sum_of(pair)) = sum;
    }
  }
}

// Stages the tiles of a block in shared memory, as write_tiles() does, and finishes each pair.
template <int kRows, int kCols>
__device__ __forceinline__ void finish_tiles(const DeviceProblem& q, const Tiling& t,
                                             const Rectangles& rectangles, const LanePairs& pairs,
                                             const TilePosition<kRows, kCols>& at, int row, int col,
                                             const RegisterTile<kRows, kCols>& tile, float* shared,
                                             TeamScratch* scratch, ResultRequest request,
                                             char* lists, Index list_bytes) {
  const int pitch = at.block_rows * at.block_cols + 1;
  const int pair_lanes_log = t.pairs.right_lanes_log + t.pairs.left_lanes_log;
  store_tile(t, at, tile, shared, pitch);
  // Rows and columns of the rectangle in the window, then those that belong to no other rectangle.
  const int from_row = larger(q.first_sy - at.block_sy, 0);
  const int from_col = larger(q.first_sx - at.block_sx, 0);
  const int end_row = smaller(q.first_sy + q.out_rows - at.block_sy, at.block_rows);
  const int end_col = smaller(q.first_sx + q.out_cols - at.block_sx, at.block_cols);
  Rectangle s;
  s.pitch = at.block_cols;
  s.rows = end_row - from_row;
  s.cols = end_col - from_col;
  const int half_rows = rectangles.shared_rows / 2, half_cols = rectangles.shared_cols / 2;
  s.own.first_row = row > 0 ? larger(half_rows - from_row, 0) : 0;
  s.own.first_col = col > 0 ? larger(half_cols - from_col, 0) : 0;
  s.own.end_row =
      row + 1 < t.rows_count ? smaller(at.block_rows - half_rows, end_row) - from_row : s.rows;
  s.own.end_col =
      col + 1 < t.cols_count ? smaller(at.block_cols - half_cols, end_col) - from_col : s.cols;
  s.first_row = at.block_sy + from_row - q.first_sy;
  s.first_col = at.block_sx + from_col - q.first_sx;
  request.first_sy = at.block_sy + from_row;
  request.first_sx = at.block_sx + from_col;
  const auto finish = [&](const auto& team, int slot) {
    const int l = slot >> t.pairs.right_lanes_log;
    const int right_number = slot - (l << t.pairs.right_lanes_log);
    if (right_number >= pairs.right_count || l >= pairs.left_lanes) return;
    const Index pair = pairs.first_pair + static_cast<Index>(l) * q.rights_per_left + right_number;
    s.data = shared + slot * pitch + from_row * at.block_cols + from_col;
    char* const list =
        lists ? lists + (pair * rectangles.count + row * t.cols_count + col) * list_bytes : nullptr;
    finish_rectangle(s, team, request, q.out_cols, pair, list);
  };
  const int lane = at.thread % warp::kSize, warp_number = at.thread / warp::kSize;
  if (pair_lanes_log == 0) {
    finish(BlockTeam{lane, warp_number, kTileWarps, scratch}, 0);
  } else {
#pragma unroll 1
    for (int slot = warp_number; slot < 1 << pair_lanes_log; slot += kTileWarps) {
      finish(WarpTeam{lane}, slot);
    }
  }
}

}  // namespace xcorr::tiled
