// The result `peak` of surfaces for which the first largest output of each tile, the tile's "top",
// is known. The rules are those of peak_search.hpp, which reads all outputs a second time to find
// the second peak. Here few tiles are read again:
//
//   candidates_kernel    a block per surface. A top that is a local maximum, and not around the
//                        peak, is the largest local maximum of its tile. The largest such top is
//                        the first candidate for the second peak. A larger local maximum can lie
//                        only in a tile whose top exceeds it and is no such local maximum
//   tile_seconds_kernel  reads the outputs of those tiles; the blocks of other tiles end at once
//   records_kernel       a warp per surface: the record (peak_search.hpp)
#pragma once

#include <algorithm>

#include "algorithms/blocks/divide.hpp"
#include "algorithms/blocks/peak_search.hpp"

namespace xcorr::fused_fft {

// Target number of blocks that search at once, if there are few surfaces.
inline constexpr Index kSearchBlocks = small_if_emulated(1024, 30);
inline constexpr Index kMostSlices = 8;  // per tile
// Largest number of surfaces that have separate blocks in one launch.
inline constexpr int kMostSurfaces = static_cast<int>(small_if_emulated(4096, 3));

// Whether a tile must be read, and for which local maxima: those above `least`; all if it is NaN.
struct alignas(16) TileScan {
  float least;
  int peak;  // offset of the surface's peak
  std::uint32_t wanted, spare;
};

// Kernel argument, by value. The base has a top for each tile, and a second peak for each slice of
// a tile.
struct TileSearch : PeakSearch {
  TileScan* scans;           // [pairs][tiles]
  int slices;                // slices per tile; a block processes one slice
  int tile_rows, tile_cols;  // outputs per tile; fewer at the ends of a surface
  Divider of_across, of_tile_cols;

  __device__ __forceinline__ StoredSurface surface(int pair) const {
    return {surface_of(pair), rows, cols};
  }
};

// The largest value over a block of kSearchThreads threads, returned to all threads; NaN if no
// value is a number.
__device__ __forceinline__ float largest_of_block(float value) {
  XCORR_SHARED(float, of_warp, 32);
  value = largest_of_lanes(value);
  block::barrier();  // the previous values have been read
  const int thread = static_cast<int>(threadIdx.x);
  if (thread % warp::kSize == 0) of_warp[thread / warp::kSize] = value;
  block::barrier();
  for (int i = 0; i < kSearchThreads / warp::kSize; ++i) value = fmaxf(value, of_warp[i]);
  return value;
}

// grid: pairs (in a stride).
static __global__ void __launch_bounds__(kSearchThreads) candidates_kernel(TileSearch search) {
  wait_for_previous();
  let_next_start();
  XCORR_SHARED(PartTop, of_block, 1);
  const int thread = static_cast<int>(threadIdx.x), tiles = search.top_parts;
#pragma unroll 1
  for (int pair = static_cast<int>(blockIdx.x); pair < search.pairs;
       pair += static_cast<int>(gridDim.x)) {
    const Index first = static_cast<Index>(pair) * tiles;
    PartTop top = no_top();
    for (int i = thread; i < tiles; i += kSearchThreads) top.add(search.tops[first + i]);
    top = top_of_threads(top, kSearchThreads);
    if (thread == 0) of_block[0] = top;
    block::barrier();
    const int peak = of_block[0].at == kNowhere ? 0 : of_block[0].at;
    const StoredSurface s = search.surface(pair);
    const int peak_y = peak / s.cols, peak_x = peak % s.cols;
    float best = no_number();
    for (int i = thread; i < tiles; i += kSearchThreads) {
      const PartTop mine = search.tops[first + i];
      const bool exists = mine.at != kNowhere;
      const int at = exists ? mine.at : 0, y = at / s.cols, x = at - y * s.cols;
      const bool holds =
          exists && !is_around(y, x, peak_y, peak_x) && is_local_maximum(s, y, x, mine.value);
      const float second = holds ? mine.value : no_number();
      // tile_seconds_kernel overwrites these values if the tile is read.
      float* const of_slices = search.seconds + (first + i) * search.slices;
      of_slices[0] = second;
      for (int slice = 1; slice < search.slices; ++slice) of_slices[slice] = no_number();
      best = fmaxf(best, second);
    }
    best = largest_of_block(best);
    for (int i = thread; i < tiles; i += kSearchThreads) {
      const PartTop mine = search.tops[first + i];
      // The top of this tile.
      const bool holds = is_number(search.seconds[(first + i) * search.slices]);
      const bool wanted = mine.at != kNowhere && !holds && !(mine.value <= best);
      search.scans[first + i] = {best, peak, wanted ? 1u : 0u, 0};
    }
  }
}

// grid: slices of tiles, pairs (in a stride).
static __global__ void __launch_bounds__(kSearchThreads, 4) tile_seconds_kernel(TileSearch search) {
  wait_for_previous();
  const auto part = static_cast<int>(blockIdx.x);
  const int tile = part / search.slices, slice = part - tile * search.slices;
#pragma unroll 1
  for (int pair = static_cast<int>(blockIdx.y); pair < search.pairs;
       pair += static_cast<int>(gridDim.y)) {
    const TileScan scan = search.scans[static_cast<Index>(pair) * search.top_parts + tile];
    if (scan.wanted == 0) continue;  // the same for all threads
    const StoredSurface s = search.surface(pair);
    auto across = static_cast<std::uint32_t>(tile);
    const int row = static_cast<int>(search.of_across.split(across)) * search.tile_rows;
    const int col = static_cast<int>(across) * search.tile_cols;
    const int peak_y = scan.peak / s.cols, peak_x = scan.peak % s.cols;
    const int size = search.tile_rows * search.tile_cols;
    const int stride = search.slices * kSearchThreads;
    const int first = slice * kSearchThreads + static_cast<int>(threadIdx.x);
    float best = scan.least;
    bool found = false;
    // All loads come before the branches: a load after a branch would wait for the load that
    // decides the branch.
    constexpr int kAtOnce = static_cast<int>(small_if_emulated(8, 2));
#pragma unroll 1
    for (int i = first; i < size; i += kAtOnce * stride) {
      float values[kAtOnce];
      int places[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        auto x = static_cast<std::uint32_t>(i + k * stride);
        const int y = row + static_cast<int>(search.of_tile_cols.split(x));
        const bool inside =
            i + k * stride < size && y < s.rows && col + static_cast<int>(x) < s.cols;
        places[k] = inside ? y * s.cols + col + static_cast<int>(x) : 0;
        values[k] = inside ? s.data[places[k]] : no_number();
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const float value = values[k];
        if (!is_number(value) || value <= best) continue;
        const int y = places[k] / s.cols, x = places[k] - y * s.cols;
        if (is_around(y, x, peak_y, peak_x) || !is_local_maximum(s, y, x, value)) continue;
        best = value;
        found = true;
      }
    }
    best = largest_of_block(found ? best : no_number());
    if (threadIdx.x == 0) search.seconds[static_cast<Index>(pair) * search.parts + part] = best;
  }
}

// Host side of the search: its memory in the workspace, and its launches.
class TileSearchPlan {
 public:
  TileSearchPlan() = default;
  // Tiles of `rows` x `cols` outputs, `down` x `across` of them.
  TileSearchPlan(const Problem& q, Index rows, Index cols, Index down, Index across,
                 Workspace& workspace) {
    search_.rows = static_cast<int>(q.out_rows());
    search_.cols = static_cast<int>(q.out_cols());
    search_.pairs = static_cast<int>(q.pairs());
    search_.request = ResultRequest(q);
    const Index tiles = down * across;
    search_.slices =
        static_cast<int>(std::clamp<Index>(kSearchBlocks / (q.pairs() * tiles), 1, kMostSlices));
    search_.top_parts = static_cast<int>(tiles);
    search_.parts = search_.top_parts * search_.slices;
    search_.tile_rows = static_cast<int>(rows);
    search_.tile_cols = static_cast<int>(cols);
    search_.of_across = Divider(across);
    search_.of_tile_cols = Divider(cols);
    surfaces_ = workspace.take<float>(q.out_elements());
    search_.surfaces = surfaces_;
    search_.tops = workspace.take<PartTop>(q.pairs() * tiles);
    search_.seconds = workspace.take<float>(q.pairs() * search_.parts);
    search_.scans = workspace.take<TileScan>(q.pairs() * tiles);
  }

  float* surfaces() const { return surfaces_; }
  PartTop* tops() const { return search_.tops; }  // [pairs][tiles], to be written before enqueue()

  template <typename Launches>
  void enqueue(Launches& launches, void* stream, void* records) {
    search_.request.out = records;
    const auto pairs = static_cast<unsigned>(std::min(search_.pairs, kMostSurfaces));
    launches.run(candidates_kernel, dim3(pairs), dim3(kSearchThreads), 0, stream, search_);
    launches.run(tile_seconds_kernel,
                 dim3(static_cast<unsigned>(search_.parts), grid_extent(search_.pairs)),
                 dim3(kSearchThreads), 0, stream, search_);
    launches.run(records_kernel, dim3(pairs), dim3(warp::kSize), 0, stream, search_);
  }

 private:
  TileSearch search_{};
  float* surfaces_ = nullptr;
};

}  // namespace xcorr::fused_fft
