// The device side of register tiles: the positions of a thread, its warp and its block, the walk of
// a warp over a staged panel, and the outputs of a block. The variants stage panels in different
// ways.
#pragma once

#include "algorithms/tiled/register_tile.hpp"
#include "algorithms/tiled/tiling.hpp"

namespace xcorr::tiled {

// Maps ranks 0 .. count - 1 to positions from `centre` outwards, so that blocks with the most work
// start first.
__device__ __forceinline__ int centre_out(int rank, int count, int centre) {
  const int above = count - 1 - centre, shorter = centre < above ? centre : above;
  if (rank > 2 * shorter) return centre < above ? rank : count - 1 - rank;
  return rank & 1 ? centre + (rank + 1) / 2 : centre - rank / 2;
}

// The shifts of a block, and its group of pairs.
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

// The positions of a thread, its warp and its block.
template <int kRows, int kCols>
struct TilePosition {
  __device__ __forceinline__ TilePosition(const DeviceProblem& q, const Tiling& t,
                                          const LanePairs& pairs, const TileBlock& block,
                                          const float* shared)
      : thread(static_cast<int>(threadIdx.x)) {
    const int warp_log = kTileWarpsLog - t.warp_cols_log;
    // The shifts of the block are [sy, sy + block_rows); a warp starts at a multiple of kRows in
    // it.
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
  const float *my_left, *my_right;  // matrices of this lane
  int first_y, end_y, first_x, end_x;
  bool down, works;
};

// The walk of a warp over the left rows [y0, y1) of a panel and the right rows that overlap them.
template <int kRows, int kCols>
struct TileRows {
  __device__ __forceinline__ TileRows(const DeviceProblem& q, const Tiling& t,
                                      const TilePosition<kRows, kCols>& at, int y0, int y1) {
    // Staged right rows: the union over all warps.
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

  // Adds the products of the left columns [x0, x1) of the panel. `left_row` is the address of
  // column x0 in the first row. right_at(x) is the address in the lane's right row of the column
  // for left column x. `tile` is a RegisterTile, or a BlockedTile, whose walks are cut into pieces.
  template <typename Tile, typename RightAt>
  __device__ __forceinline__ void add(Tile& tile, const DeviceProblem& q,
                                      const TilePosition<kRows, kCols>& at, int x0, int x1,
                                      const float* left_row, const RightAt& right_at) const {
    const int end = smaller(x1, q.right_cols - at.low_sx);
#pragma unroll 1
    for (int x = larger(x0, chunk_down(-(at.high_sx + kCols - 1))); x < end; x += kChunk) {
      const float* l = left_row + (x - x0);
      const float* r = right_at(x);
      if constexpr (requires { Tile::kBlockRows; }) {
        int rest = steps;
        bool loaded = preload;
#pragma unroll 1
        for (;;) {
          const int piece = smaller(rest, Tile::kBlockRows);
          add_chunk(tile, q, at, x, l, r, piece, loaded);
          tile.walked(piece);
          rest -= piece;
          if (rest == 0) break;
          l += (piece - (loaded ? 0 : kRows - 1)) * left_step;
          r += piece * right_step;
          loaded = true;
        }
      } else {
        add_chunk(tile, q, at, x, l, r, steps, preload);
      }
    }
  }

  // Adds `count` right rows of the chunk of left columns at x.
  template <typename Tile>
  __device__ __forceinline__ void add_chunk(Tile& tile, const DeviceProblem& q,
                                            const TilePosition<kRows, kCols>& at, int x,
                                            const float* l, const float* r, int count,
                                            bool loaded) const {
    constexpr int kReach = Tile::kReach;
    const int before = -(x + at.high_sx), after = x + at.low_sx - q.right_cols;
    if (before >= kCols) {
      tile.template add<kCols, kReach>(l, left_step, r, right_step, count, loaded);
    } else if (after >= -kChunk) {
      tile.template add<0, kChunk>(l, left_step, r, right_step, count, loaded);
    } else if (kCols > kChunk && before >= kChunk) {
      tile.template add<kChunk, kReach>(l, left_step, r, right_step, count, loaded);
    } else if (kCols > kChunk && after >= -kCols) {
      tile.template add<0, kCols>(l, left_step, r, right_step, count, loaded);
    } else {
      tile.template add<0, kReach>(l, left_step, r, right_step, count, loaded);
    }
  }

  int right_row, right_end;  // staged right rows
  int steps, left_step, right_step;
  bool preload;
  const float *left, *right;  // first row in the matrices of this lane
};

// Stores the tile of a thread in the rectangle of its pair in shared memory. Rectangles are `pitch`
// floats apart.
template <int kRows, int kCols>
__device__ __forceinline__ void store_tile(const Tiling& t, const TilePosition<kRows, kCols>& at,
                                           const RegisterTile<kRows, kCols>& tile, float* shared,
                                           int pitch) {
  block::barrier();
  const int slot = (at.left_lane << t.pairs.right_lanes_log) + at.right_lane;
  float* const mine =
      shared + slot * pitch + (at.my_sy - at.block_sy) * at.block_cols + (at.my_sx - at.block_sx);
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kCols; ++j) {
      mine[(at.down ? i : kRows - 1 - i) * at.block_cols + j] = tile.sums[i][j];
    }
  }
  block::barrier();
}

// Writes the tiles of a block through shared memory, so that a warp writes contiguous runs of a
// row.
template <int kRows, int kCols>
__device__ __forceinline__ void write_tiles(const DeviceProblem& q, const Tiling& t,
                                            const LanePairs& pairs,
                                            const TilePosition<kRows, kCols>& at,
                                            const RegisterTile<kRows, kCols>& tile, float* shared,
                                            float* __restrict__ out) {
  const int area_log = at.rows_log + at.cols_log;
  const int area = kRows * kCols << area_log;
  const int pair_lanes_log = t.pairs.right_lanes_log + t.pairs.left_lanes_log;
  store_tile(t, at, tile, shared, area + 1);
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
      const Index pair =
          pairs.first_pair + static_cast<Index>(l) * q.rights_per_left + right_number;
      out[pair * q.out_size + static_cast<Index>(row - first_row) * q.out_cols + col - first_col] =
          shared[slot * (area + 1) + row * at.block_cols + col];
    }
  }
}

}  // namespace xcorr::tiled
