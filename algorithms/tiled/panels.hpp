// The walk of a block over its panels, which its threads stage before they multiply.
#pragma once

#include "algorithms/tiled/staging.hpp"
#include "algorithms/tiled/tile_walk.hpp"

namespace xcorr::tiled {

// Adds the products of all panels to the tile of a thread, by all threads of a block. `tile` is a
// RegisterTile or a BlockedTile.
template <typename Tile, int kRows, int kCols>
__device__ __forceinline__ void add_panels(Tile& tile, const DeviceProblem& q, const Tiling& t,
                                           const LanePairs& pairs,
                                           const TilePosition<kRows, kCols>& at, const float* left,
                                           const float* right, float* shared) {
  auto [lefts, rights] = panel_sources(q, t, pairs, left, right);
#pragma unroll 1
  for (int y0 = at.first_y; y0 < at.end_y; y0 += t.panel_rows) {
    const int y1 = smaller(y0 + t.panel_rows, at.end_y);
    lefts.first_row = y0;
    lefts.end_row = y1;
    const int pad_cols = at.col_lanes * kCols;
    const TileRows<kRows, kCols> rows(q, t, at, y0, y1);
#pragma unroll 1
    for (int x0 = at.first_x; x0 < at.end_x; x0 += t.panel_cols) {
      const int x1 = smaller(x0 + t.panel_cols, at.end_x);
      const int right_col = larger(x0 + at.block_sx, -pad_cols);
      const int right_col_end = smaller(x0 + chunk_up(x1 - x0) + at.block_sx + at.block_cols,
                                        chunk_up(q.right_cols) + pad_cols);
      block::barrier();
      const int chunks = chunk_up(x1 - x0) / kChunk;
      const int right_chunks = (right_col_end - right_col) / kChunk;
      stage(lefts,
            {shared, t.left_stride, t.left_pitch, pairs.left_count, y0 - (kRows - 1),
             y1 - y0 + 2 * (kRows - 1), x0, chunks},
            at.thread, kTileThreads);
      stage(rights,
            {shared + t.rights_at, t.right_stride, t.right_pitch, pairs.right_count, rows.right_row,
             rows.right_end - rows.right_row, right_col, right_chunks},
            at.thread, kTileThreads);
      block::barrier();
      if (!at.works || rows.steps <= 0) continue;
      rows.add(tile, q, at, x0, x1, rows.left,
               [&](int x) { return rows.right + (x + at.my_sx - right_col); });
    }
  }
}

}  // namespace xcorr::tiled
