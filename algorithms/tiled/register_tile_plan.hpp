// How blocks, warps and lanes share the shifts and pairs of a problem when threads own register
// tiles (register_tile.hpp): the plan on the host, and on the device where a thread stands, its
// walk over a panel that is staged, and its outputs. How panels come to shared memory is the
// variant's own.
#pragma once

#include <algorithm>

#include "algorithms/device/divide.hpp"
#include "algorithms/tiled/register_tile.hpp"
#include "harness/variant.hpp"

namespace xcorr::tiled {

inline constexpr int kTileWarpsLog = 3, kTileWarps = 1 << kTileWarpsLog;
inline constexpr int kTileThreads = kTileWarps * warp::kSize;

// How lanes, warps and blocks share a problem. Made on the host, given to the kernel by value.
struct Tiling {
  PairGroups pairs;
  // Lanes of a warp over rights, columns, rows, lefts (the first fastest); warps of a block over
  // columns, rows.
  int col_lanes_log, row_lanes_log, warp_cols_log;
  int sy_base, sx_base;          // shift of the first tile: a multiple of the tile
  int rows_count, cols_count;    // blocks along the shifts
  int rows_centre, cols_centre;  // the ones with most work
  Divider groups, shifts, cols;  // of pairs; blocks of a group of pairs; along the columns
  bool groups_last;              // blocks of the same shifts are neighbours
  int panel_rows, panel_cols;    // of the left matrix
  int left_pitch, left_stride, right_pitch, right_stride, rights_at;  // in shared memory
  bool left_aligned, right_aligned;
};

// The shifts that a block has, with its group of pairs.
struct TileBlock {
  __device__ __forceinline__ TileBlock(const Tiling& t, std::uint32_t block) : group(block) {
    if (t.groups_last) {
      shift = t.groups.split(group);
    } else {
      shift = group;
      group = t.shifts.split(shift);
    }
    row = static_cast<int>(t.cols.split(shift));
  }
  std::uint32_t group, shift;
  int row;
};

// Where a thread, its warp and its block stand.
template <int kRows, int kCols>
struct TilePosition {
  __device__ __forceinline__ TilePosition(const DeviceProblem& q, const Tiling& t,
                                          const LanePairs& pairs, const TileBlock& block,
                                          const float* shared)
      : thread(static_cast<int>(threadIdx.x)) {
    const int warp_log = kTileWarpsLog - t.warp_cols_log;
    // Shifts of the block: [sy, sy + block_rows), of which the first multiple of kRows is a warp's.
    row_lanes = 1 << t.row_lanes_log, col_lanes = 1 << t.col_lanes_log;
    rows_log = warp_log + t.row_lanes_log, cols_log = t.warp_cols_log + t.col_lanes_log;
    block_rows = kRows << rows_log, block_cols = kCols << cols_log;
    block_sy = t.sy_base + block_rows * centre_out(block.row, t.rows_count, t.rows_centre);
    block_sx = t.sx_base +
               block_cols * centre_out(static_cast<int>(block.shift), t.cols_count, t.cols_centre);

    const int warp_number = thread / warp::kSize;
    const int warp_row = warp_number >> t.warp_cols_log;
    const int warp_col = warp_number & ((1 << t.warp_cols_log) - 1);
    low_sy = block_sy + (warp_row << t.row_lanes_log) * kRows;
    low_sx = block_sx + (warp_col << t.col_lanes_log) * kCols;
    high_sy = low_sy + (row_lanes - 1) * kRows, high_sx = low_sx + (col_lanes - 1) * kCols;

    int rest = warp::lane();
    const auto digit = [&](int log) {
      const int value = rest & ((1 << log) - 1);
      rest >>= log;
      return value;
    };
    right_lane = digit(t.pairs.right_lanes_log);
    my_sx = low_sx + digit(t.col_lanes_log) * kCols;
    my_sy = low_sy + digit(t.row_lanes_log) * kRows;
    left_lane = rest;
    my_left = shared + pairs.left_slot(left_lane, right_lane) * t.left_stride;
    my_right = shared + t.rights_at + pairs.right_slot(right_lane) * t.right_stride;

    first_y = larger(0, -(block_sy + block_rows - 1));
    end_y = smaller(q.left_rows, q.right_rows - block_sy);
    first_x = chunk_down(larger(0, -(block_sx + block_cols - 1)));
    end_x = smaller(q.left_cols, q.right_cols - block_sx);
    down = low_sy >= 0;
    works = low_sy < q.first_sy + q.out_rows && high_sy + kRows > q.first_sy &&
            low_sx < q.first_sx + q.out_cols && high_sx + kCols > q.first_sx;
  }

  int thread;
  int row_lanes, col_lanes, rows_log, cols_log, block_rows, block_cols;
  int block_sy, block_sx, low_sy, low_sx, high_sy, high_sx, my_sy, my_sx;
  int right_lane, left_lane;
  const float *my_left, *my_right;  // the lane's matrices
  int first_y, end_y, first_x, end_x;
  bool down, works;
};

// A warp's walk over the left rows [y0, y1) of a panel and the right rows that they meet.
template <int kRows, int kCols>
struct TileRows {
  __device__ __forceinline__ TileRows(const DeviceProblem& q, const Tiling& t,
                                      const TilePosition<kRows, kCols>& at, int y0, int y1) {
    // Right rows that any warp walks.
    const int pad_rows = (at.row_lanes - 1) * kRows;
    right_row = larger(y0 + at.block_sy, -pad_rows);
    right_end = smaller(y1 + at.block_sy + at.block_rows - 1, q.right_rows + pad_rows);
    // The warp's newest left rows: [first, end) downwards, or (end, first] upwards.
    int first;
    if (at.down) {
      first = larger(y0, -at.high_sy);
      steps = smaller(y1 + kRows - 1, q.right_rows - at.low_sy) - first;
    } else {
      first = smaller(y1 - 1, q.right_rows - at.low_sy - kRows);
      steps = first + 1 - larger(y0 - (kRows - 1), -at.high_sy - (kRows - 1));
    }
    preload = first != (at.down ? y0 : y1 - 1);
    left_step = at.down ? t.left_pitch : -t.left_pitch;
    right_step = at.down ? t.right_pitch : -t.right_pitch;
    left = at.my_left + (first - y0 + kRows - 1) * t.left_pitch -
           (preload ? (kRows - 1) * left_step : 0);
    right =
        at.my_right + (first + at.my_sy + (at.down ? 0 : kRows - 1) - right_row) * t.right_pitch;
  }

  // Left columns [x0, x1) of the panel: `left_row` is where column x0 is in the first row,
  // right_at(x) where the lane's right row has the column that x meets.
  template <typename RightAt>
  __device__ __forceinline__ void add(RegisterTile<kRows, kCols>& tile, const DeviceProblem& q,
                                      const TilePosition<kRows, kCols>& at, int x0, int x1,
                                      const float* left_row, const RightAt& right_at) const {
    const int end = smaller(x1, q.right_cols - at.low_sx);
#pragma unroll 1
    for (int x = larger(x0, chunk_down(-(at.high_sx + kCols - 1))); x < end; x += kChunk) {
      const float* const l = left_row + (x - x0);
      const float* const r = right_at(x);
      constexpr int kReach = RegisterTile<kRows, kCols>::kReach;
      const int before = -(x + at.high_sx), after = x + at.low_sx - q.right_cols;
      if (before >= kCols) {
        tile.template add<kCols, kReach>(l, left_step, r, right_step, steps, preload);
      } else if (after >= -kChunk) {
        tile.template add<0, kChunk>(l, left_step, r, right_step, steps, preload);
      } else if (kCols > kChunk && before >= kChunk) {
        tile.template add<kChunk, kReach>(l, left_step, r, right_step, steps, preload);
      } else if (kCols > kChunk && after >= -kCols) {
        tile.template add<0, kCols>(l, left_step, r, right_step, steps, preload);
      } else {
        tile.template add<0, kReach>(l, left_step, r, right_step, steps, preload);
      }
    }
  }

  int right_row, right_end;  // staged right rows
  int steps, left_step, right_step;
  bool preload;
  const float *left, *right;  // the first row of the lane's matrices
};

// Writes the tiles of a block through shared memory, so that a warp writes whole runs of a row.
template <int kRows, int kCols>
__device__ __forceinline__ void write_tiles(const DeviceProblem& q, const Tiling& t,
                                            const LanePairs& pairs,
                                            const TilePosition<kRows, kCols>& at,
                                            const RegisterTile<kRows, kCols>& tile, float* shared,
                                            float* __restrict__ out) {
  const int area_log = at.rows_log + at.cols_log;
  const int area = kRows * kCols << area_log;
  const int pair_lanes_log = t.pairs.right_lanes_log + t.pairs.left_lanes_log;
  block::barrier();
  {
    const int slot = (at.left_lane << t.pairs.right_lanes_log) + at.right_lane;
    float* const mine = shared + slot * (area + 1) + (at.my_sy - at.block_sy) * at.block_cols +
                        (at.my_sx - at.block_sx);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < kCols; ++j) {
        mine[(at.down ? i : kRows - 1 - i) * at.block_cols + j] = tile.sums[i][j];
      }
    }
  }
  block::barrier();
  const int first_row = q.first_sy - at.block_sy, first_col = q.first_sx - at.block_sx;
  const int width_log = smaller(log2(kCols) + at.cols_log, log2(kTileThreads));
#pragma unroll 1
  for (int col = at.thread & ((1 << width_log) - 1); col < at.block_cols; col += 1 << width_log) {
    if (static_cast<unsigned>(col - first_col) >= static_cast<unsigned>(q.out_cols)) continue;
#pragma unroll 4
    for (int r = at.thread >> width_log; r < at.block_rows << pair_lanes_log;
         r += kTileThreads >> width_log) {
      const int row = r & (at.block_rows - 1), slot = r >> (log2(kRows) + at.rows_log);
      const int l = slot >> t.pairs.right_lanes_log;
      const int right_number = slot - (l << t.pairs.right_lanes_log);
      if (static_cast<unsigned>(row - first_row) >= static_cast<unsigned>(q.out_rows) ||
          right_number >= pairs.right_count || l >= pairs.left_lanes) {
        continue;
      }
      const Index pair = pairs.first_pair + static_cast<Index>(l) * q.rights + right_number;
      out[pair * q.out_size + static_cast<Index>(row - first_row) * q.out_cols + col - first_col] =
          shared[slot * (area + 1) + row * at.block_cols + col];
    }
  }
}

// A register tile as the host knows it, and for how many blocks of a multiprocessor its kernel has
// registers.
struct TileShape {
  int rows, cols, resident_blocks;
};

enum class Panels {
  one,      // a panel at a time
  sliding,  // two left panels; of the right columns a ring, of which every panel needs the next
};

// What a point makes of a problem.
struct TilePlan {
  // With panels that fit `shared_limit` bytes a multiprocessor; shared_bytes is 0 if none do.
  TilePlan(const PlanRequest& request, const TileShape& tile_, Panels panels_,
           std::size_t shared_limit)
      : q(request.problem), tile(tile_), panels(panels_) {
    pairs_log = log2_up(request.params.get_int("pairs_per_warp"));
    const int rights_log =
        q.form == Form::n_to_m ? std::min({pairs_log, 3, log2_up(q.rights)}) : pairs_log;
    t.pairs = PairGroups(q, pairs_log - rights_log, rights_log);
    // Eight neighbouring lanes read 128 bytes without a conflict.
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
    // Few blocks: the heaviest first, whichever pairs. Many: pairs stay in the cache.
    t.groups_last = blocks <= kManyBlocks;
    t.left_aligned = q.left.cols % kChunk == 0;
    t.right_aligned = q.right.cols % kChunk == 0;
    constexpr std::size_t kReserved = 1024;  // of each block, by the system
    const auto resident = static_cast<std::size_t>(tile.resident_blocks);
    const std::size_t share = shared_limit / resident - kReserved;
    // One block alone does well where copies run while it computes: rather that than short panels.
    for (const std::size_t most : {share, shared_limit}) {
      if (shared_bytes == 0) choose_panels(most, panels == Panels::one);
    }
    if (shared_bytes == 0) choose_panels(shared_limit, true);
  }

  // Yes, or why a point does not take a problem.
  static Support supports(const PlanRequest& request, const TileShape& tile, Panels panels) {
    const Problem& q = request.problem;
    if (const Support steps = steps_fit(q); !steps) return steps;
    const int pairs = request.params.get_int("pairs_per_warp");
    if (pairs > 1 && q.pairs() <= pairs / 2) {
      return no("pairs_per_warp=" + std::to_string(pairs) + ": the problem has " +
                std::to_string(q.pairs()) + " pairs");
    }
    constexpr std::size_t kEveryDevice = 48 * 1024;
    const TilePlan plan(request, tile, panels, kEveryDevice);
    if (plan.t.pairs.left_lanes_log > log2_up(q.lefts)) {
      return no("pairs_per_warp=" + std::to_string(pairs) + ": too few left and right matrices");
    }
    if (plan.blocks > (Index{1} << 31) - 1) return no("more than 2^31 - 1 blocks");
    if (plan.shared_bytes == 0 &&
        TilePlan(request, tile, panels, shared_limit()).shared_bytes == 0) {
      return no("a step of a block does not fit its shared memory");
    }
    return yes();
  }

  // Lays out panels of rows x cols left elements; the bytes of shared memory that they take.
  std::size_t lay_out(Index rows, Index cols) {
    const bool sliding = panels == Panels::sliding;
    const std::size_t staged_out =
        (kTileThreads * tile.rows * tile.cols + (std::size_t{1} << pairs_log)) * sizeof(float);
    const Index pad_rows = ((Index{1} << t.row_lanes_log) - 1) * tile.rows;
    const Index pad_cols = (Index{1} << t.col_lanes_log) * tile.cols;
    const Index right_rows = std::min(rows + block_rows - 1, q.right.rows + 2 * pad_rows);
    const Index all_cols = chunk_up(static_cast<int>(q.right.cols)) + 2 * pad_cols;
    const Index ring = std::min((sliding ? 2 : 1) * cols + block_cols, all_cols);
    // A ring has its first columns at its end once more, so that a window never leaves it.
    const Index right_pitch = sliding && ring < all_cols ? ring + tile.cols : ring;
    // Of neighbouring matrices eight reads do not meet in a bank.
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
    // The first panel is waited for, so it is a quarter of the matrix at most.
    if (panels == Panels::sliding) {
      width = std::min<Index>(ceil_div<Index>(width, 4 * kChunk) * kChunk, 4 * kChunk);
    }
    // The whole height in panels of few columns costs no product; panels of few rows do.
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
  int ring_cols = 0;  // of right columns that slide
  int pairs_log = 0, block_rows = 0, block_cols = 0;
  Index blocks = 0;
  std::size_t shared_bytes = 0;
};

}  // namespace xcorr::tiled
