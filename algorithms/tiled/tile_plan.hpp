// The host side of register tiles: the tiling of a problem for a point, and panels that fit into
// the shared memory of a block.
#pragma once

#include <algorithm>
#include <string>

#include "algorithms/blocks/plan.hpp"
#include "algorithms/tiled/tiling.hpp"

namespace xcorr::tiled {

enum class Panels {
  one,      // one panel at a time
  sliding,  // two left panels; a ring of right columns, most of which the next panel needs too
};

// The tiling of a problem for a point.
struct TilePlan {
  // Chooses panels that fit into `shared_limit` bytes per SM; shared_bytes is 0 if none do.
  TilePlan(const PlanRequest& request, const TileShape& tile_, Panels panels_,
           std::size_t shared_limit)
      : q(request.problem), tile(tile_), panels(panels_) {
    pairs_log = log2_up(request.params.get_int("pairs_per_warp"));
    const int rights_log =
        q.form == Form::n_to_m ? std::min({pairs_log, 3, log2_up(q.rights)}) : pairs_log;
    t.pairs = PairGroups(q, pairs_log - rights_log, rights_log);
    // Eight neighbouring lanes read 128 bytes without a bank conflict.
    t.col_lanes_log = pairs_log == 5 ? 0 : pairs_log >= 2 ? 1 : 3;
    t.row_lanes_log = 5 - pairs_log - t.col_lanes_log;
    t.warp_cols_log = log2_up(request.params.get_int("warps_across"));
    block_rows = tile.rows << (t.row_lanes_log + kTileWarpsLog - t.warp_cols_log);
    block_cols = tile.cols << (t.col_lanes_log + t.warp_cols_log);
    const auto along = [](const Shifts& s, int step, int block, Index left, Index right, int& base,
                          int& count, int& centre) {
      base = floor_to(s.first, step);
      count = static_cast<int>(ceil_div<Index>(s.last + 1 - base, block));
      const Index middle = std::clamp((right - left) / 2, s.first, s.last);
      centre = static_cast<int>((middle - base) / block);
    };
    along(q.window.sy, tile.rows, block_rows, q.left.rows, q.right.rows, t.sy_base, t.rows_count,
          t.rows_centre);
    along(q.window.sx, tile.cols, block_cols, q.left.cols, q.right.cols, t.sx_base, t.cols_count,
          t.cols_centre);
    const Index shifts = static_cast<Index>(t.rows_count) * t.cols_count;
    blocks = t.pairs.count * shifts;
    t.groups = Divider(t.pairs.count);
    t.shifts = Divider(shifts);
    t.cols = Divider(t.cols_count);
    // Few blocks: those with the most work start first, for all pairs. Many blocks: the blocks of a
    // group of pairs are neighbours, so that its matrices stay in the cache.
    t.groups_last = blocks <= kManyBlocks;
    t.left_aligned = q.left.cols % kChunk == 0;
    t.right_aligned = q.right.cols % kChunk == 0;
    constexpr std::size_t kReserved = 1024;  // per block, by the system
    const auto resident = static_cast<std::size_t>(tile.resident_blocks);
    const std::size_t share = shared_limit / resident - kReserved;
    // With copies that overlap computation, one block per SM is faster than short panels.
    for (const std::size_t most : {share, shared_limit}) {
      if (shared_bytes == 0) choose_panels(most, panels == Panels::one);
    }
    if (shared_bytes == 0) choose_panels(shared_limit, true);
  }

  // Yes, or why a point does not support a problem.
  static Support supports(const PlanRequest& request, const TileShape& tile, Panels panels) {
    const Problem& q = request.problem;
    if (const Support steps = steps_fit(q); !steps) return steps;
    const int pairs = request.params.get_int("pairs_per_warp");
    if (pairs > 1 && q.pairs() <= pairs / 2) {
      return no("pairs_per_warp=" + std::to_string(pairs) + ": the problem has " +
                std::to_string(q.pairs()) + " pairs");
    }
    // Uses the shared memory that every device has, so that most calls do not query the device.
    const TilePlan plan(request, tile, panels, kSharedWithoutAsking);
    if (plan.t.pairs.left_lanes_log > log2_up(q.lefts)) {
      return no("pairs_per_warp=" + std::to_string(pairs) + ": too few left and right matrices");
    }
    if (plan.blocks > kIndexLimit) return no("more than 2^31 - 1 blocks");
    if (plan.shared_bytes == 0 &&
        TilePlan(request, tile, panels, shared_limit()).shared_bytes == 0) {
      return no("a step of a block does not fit its shared memory");
    }
    return yes();
  }

  // Lays out panels of rows x cols left elements. Returns their bytes of shared memory.
  std::size_t lay_out(Index rows, Index cols) {
    const bool sliding = panels == Panels::sliding;
    const std::size_t staged_out =
        (kTileThreads * tile.rows * tile.cols + (std::size_t{1} << pairs_log)) * sizeof(float);
    const Index pad_rows = ((Index{1} << t.row_lanes_log) - 1) * tile.rows;
    const Index pad_cols = (Index{1} << t.col_lanes_log) * tile.cols;
    const Index right_rows = std::min(rows + block_rows - 1, q.right.rows + 2 * pad_rows);
    const Index all_cols = chunk_up(static_cast<int>(q.right.cols)) + 2 * pad_cols;
    const Index ring = std::min((sliding ? 2 : 1) * cols + block_cols, all_cols);
    // The first columns of a ring are stored again at its end, so that a window never wraps around.
    const Index right_pitch = sliding && ring < all_cols ? ring + tile.cols : ring;
    // Eight neighbouring lanes read different banks of neighbouring matrices.
    const auto stride = [](Index size, int step) { return ceil_div<Index>(size, 32) * 32 + step; };
    const int step = kChunk << (pairs_log < 3 ? t.col_lanes_log : 0);
    t.panel_rows = static_cast<int>(rows);
    t.panel_cols = static_cast<int>(cols);
    t.left_pitch = static_cast<int>(cols);
    t.right_pitch = static_cast<int>(right_pitch);
    ring_cols = static_cast<int>(ring);
    const Index left_stride = stride((rows + 2 * (tile.rows - 1)) * cols, kChunk);
    const Index right_stride = stride(right_rows * right_pitch, step);
    t.left_stride = static_cast<int>(left_stride);
    t.right_stride = static_cast<int>(right_stride);
    const Index rights_at = (sliding ? 2 : 1) * t.pairs.most_lefts * left_stride;
    t.rights_at = static_cast<int>(rights_at);
    const Index floats = rights_at + (right_stride << t.pairs.right_lanes_log);
    return std::max(static_cast<std::size_t>(floats) * sizeof(float), staged_out);
  }

  void choose_panels(std::size_t most, bool cut_rows) {
    constexpr Index kMostRows = 4096, kMostCols = 4096;
    Index rows = std::min(q.left.rows, kMostRows);
    Index width = std::min<Index>(ceil_div<Index>(q.left.cols, kChunk) * kChunk, kMostCols);
    // Blocks wait for the first panel, so that it is at most a quarter of the matrix.
    if (panels == Panels::sliding) {
      width = std::min<Index>(ceil_div<Index>(width, 4 * kChunk) * kChunk, 4 * kChunk);
    }
    // Panels of few columns over the whole height add no products; panels of few rows do.
    for (Index cols = width;;) {
      const std::size_t need = lay_out(rows, cols);
      if (need <= most) {
        shared_bytes = need;
        return;
      }
      if (cols > kChunk) {
        cols -= kChunk;
      } else if (cut_rows && rows > 1) {
        rows = ceil_div<Index>(rows, 2);
        cols = std::min<Index>(width, 4 * kChunk);
      } else {
        return;
      }
    }
  }

  static constexpr Index kManyBlocks = 8192;
  Problem q;
  TileShape tile;
  Panels panels;
  Tiling t = {};
  int ring_cols = 0;  // of right columns, for Panels::sliding
  int pairs_log = 0, block_rows = 0, block_cols = 0;
  Index blocks = 0;
  std::size_t shared_bytes = 0;
};

}  // namespace xcorr::tiled
