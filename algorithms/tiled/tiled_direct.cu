// Register-tiled direct correlation, a step from multi_matrix_both_grouped_overlap: no shuffles. A
// thread owns a tile of neighbouring shifts (overlap_tile, sy x sx) and keeps their sums in
// registers. Matrices lie in shared memory, with zeros around them where a step may leave them. A
// step takes 4 left columns of one more left row and the window of the right row that this row
// meets; the left rows of the last steps stay in registers, so a right row, loaded once, serves all
// sy of the tile, and a window of 7 (11) values all its sx: 3 (4) loads of 16 bytes for 128 FMAs.
// Beyond the paper; the order of the loops is that of register-blocked matrix products.
//
// Lanes have different pairs where there are enough (pairs_per_warp), so that all lanes of a warp
// have the same shifts and the same overlap. Nothing is then computed for zeros: walks start at the
// border of the overlap, upwards for negative sy and downwards else, and their first steps leave
// out the rows that do not exist yet; the first and last columns have code of their own that leaves
// out the products beyond the right matrix. For equal shapes that are multiples of 4 columns (8 of
// tile 4x8) the FMAs are exactly the useful ones; otherwise, and where lanes span shifts, those of
// the widest lane.
//
// A block stages panels of a few left columns over the whole height, and of the right columns that
// they meet: panels of columns cost no product, panels of rows (taken only when 4 columns do not
// fit) repeat the first steps. Blocks with the most work are started first. Outputs leave
// through shared memory in runs of a row.
//
// Forms: all; fp32. Parameters; compile-time:
//   overlap_tile    4x4, 4x8, 8x4: registers and reuse (FMAs for an access of 16 bytes: 21, 32, 43)
//                   against threads and code; 24, 16, 16 warps of a multiprocessor.
// run-time:
//   pairs_per_warp  1, 8, 32: of 32, n-to-m takes 4 lefts x 8 rights, the others 32 consecutive
//                   pairs. Fewer leave room for wider panels and fill a card with fewer pairs; the
//                   other lanes span 8 or 2 tiles along sx and 4 or 2 along sy.
//   warps_across    1, 4, 8 of the 8 warps of a block side by side along sx: long runs of output
//   and
//                   all shifts of small matrices in a block against narrow panels and few halos.
// Limits: an infinity or NaN may reach outputs whose overlaps do not hold it.
//
// Predicted (H200): the main loops of 4x4, 4x8, 8x4 are 88, 94 and 94 % FMAs; at 64 x 64 with all
// overheads of a walk 88, 92 and 93 % of the issue slots are useful, the shared-memory pipe
// is busy in 70, 50 and 40 % of the cycles. With stalls at staging and short walks about 40
// TFLOP/s useful at 64 x 64 and 128 x 128 n-to-m, 33 at 16 x 16.
#include <algorithm>
#include <array>

#include "algorithms/device/divide.hpp"
#include "algorithms/device/register_tile.hpp"
#include "harness/variant.hpp"

namespace xcorr {
namespace {

constexpr int kWarpsLog = 3, kWarps = 1 << kWarpsLog, kThreads = kWarps * warp::kSize;

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

template <int kRows, int kCols>
constexpr int kResidentBlocks = kRows* kCols > 16 ? 2 : 3;

template <int kRows, int kCols>
__global__ void __launch_bounds__(kThreads, (kResidentBlocks<kRows, kCols>))
    tiled_direct_kernel(DeviceProblem q, Tiling t, const float* __restrict__ left,
                        const float* __restrict__ right, float* __restrict__ out) {
  float* const shared = dynamic_shared<float>();
  const int thread = static_cast<int>(threadIdx.x);
  const int warp_log = kWarpsLog - t.warp_cols_log;

  std::uint32_t group = blockIdx.x, shift;
  if (t.groups_last) {
    shift = t.groups.split(group);
  } else {
    shift = group;
    group = t.shifts.split(shift);
  }
  const int block_row = static_cast<int>(t.cols.split(shift));
  const LanePairs pairs(q, t.pairs, group);

  // Shifts of the block: [sy, sy + block_rows), of which the first multiple of kRows is a warp's.
  const int row_lanes = 1 << t.row_lanes_log, col_lanes = 1 << t.col_lanes_log;
  const int rows_log = warp_log + t.row_lanes_log, cols_log = t.warp_cols_log + t.col_lanes_log;
  const int block_rows = kRows << rows_log, block_cols = kCols << cols_log;
  const int block_sy = t.sy_base + block_rows * centre_out(block_row, t.rows_count, t.rows_centre);
  const int block_sx =
      t.sx_base + block_cols * centre_out(static_cast<int>(shift), t.cols_count, t.cols_centre);

  const int warp_number = thread / warp::kSize;
  const int warp_row = warp_number >> t.warp_cols_log;
  const int warp_col = warp_number & ((1 << t.warp_cols_log) - 1);
  const int low_sy = block_sy + (warp_row << t.row_lanes_log) * kRows;
  const int low_sx = block_sx + (warp_col << t.col_lanes_log) * kCols;
  const int high_sy = low_sy + (row_lanes - 1) * kRows, high_sx = low_sx + (col_lanes - 1) * kCols;

  int rest = warp::lane();
  const auto digit = [&](int log) {
    const int value = rest & ((1 << log) - 1);
    rest >>= log;
    return value;
  };
  const int right_lane = digit(t.pairs.right_lanes_log);
  const int my_sx = low_sx + digit(t.col_lanes_log) * kCols;
  const int my_sy = low_sy + digit(t.row_lanes_log) * kRows;
  const int left_lane = rest;
  const float* const my_left = shared + pairs.left_slot(left_lane, right_lane) * t.left_stride;
  const float* const my_right =
      shared + t.rights_at + pairs.right_slot(right_lane) * t.right_stride;

  const int first_y = larger(0, -(block_sy + block_rows - 1));
  const int end_y = smaller(q.left_rows, q.right_rows - block_sy);
  const int first_x = chunk_down(larger(0, -(block_sx + block_cols - 1)));
  const int end_x = smaller(q.left_cols, q.right_cols - block_sx);
  const bool down = low_sy >= 0;
  const bool works = low_sy < q.first_sy + q.out_rows && high_sy + kRows > q.first_sy &&
                     low_sx < q.first_sx + q.out_cols && high_sx + kCols > q.first_sx;

  StageSource lefts = {left + pairs.left_first * q.left_size, q.left_size, q.left_cols};
  StageSource rights = {right + pairs.right_first * q.right_size, q.right_size, q.right_cols};
  lefts.aligned = t.left_aligned;
  rights.aligned = t.right_aligned;
  rights.end_row = q.right_rows;
  RegisterTile<kRows, kCols> tile;
#pragma unroll 1
  for (int y0 = first_y; y0 < end_y; y0 += t.panel_rows) {
    const int y1 = smaller(y0 + t.panel_rows, end_y);
    lefts.first_row = y0;
    lefts.end_row = y1;
    // Right rows that any warp walks.
    const int pad_rows = (row_lanes - 1) * kRows, pad_cols = col_lanes * kCols;
    const int right_row = larger(y0 + block_sy, -pad_rows);
    const int right_end = smaller(y1 + block_sy + block_rows - 1, q.right_rows + pad_rows);
    // The warp's newest left rows: [first, end) downwards, or (end, first] upwards.
    int first, steps;
    if (down) {
      first = larger(y0, -high_sy);
      steps = smaller(y1 + kRows - 1, q.right_rows - low_sy) - first;
    } else {
      first = smaller(y1 - 1, q.right_rows - low_sy - kRows);
      steps = first + 1 - larger(y0 - (kRows - 1), -high_sy - (kRows - 1));
    }
    const bool preload = first != (down ? y0 : y1 - 1);
    const int left_step = down ? t.left_pitch : -t.left_pitch;
    const int right_step = down ? t.right_pitch : -t.right_pitch;
    const float* const left_row =
        my_left + (first - y0 + kRows - 1) * t.left_pitch - (preload ? (kRows - 1) * left_step : 0);
    const float* const right_line =
        my_right + (first + my_sy + (down ? 0 : kRows - 1) - right_row) * t.right_pitch;
#pragma unroll 1
    for (int x0 = first_x; x0 < end_x; x0 += t.panel_cols) {
      const int x1 = smaller(x0 + t.panel_cols, end_x);
      const int right_col = larger(x0 + block_sx, -pad_cols);
      const int right_col_end = smaller(x0 + chunk_up(x1 - x0) + block_sx + block_cols,
                                        chunk_up(q.right_cols) + pad_cols);
      block::barrier();
      const int chunks = chunk_up(x1 - x0) / kChunk;
      const int right_chunks = (right_col_end - right_col) / kChunk;
      const auto copy = [&](const StageSource& source, const Stage<4>::Target& target) {
        Stage<4> stage(source, target, thread, kThreads,
                       [&](unsigned n) { return n / static_cast<unsigned>(target.chunks); });
        while (stage.more()) stage.load(), stage.store();
      };
      copy(lefts, {shared, t.left_stride, t.left_pitch, pairs.left_count, y0 - (kRows - 1),
                   y1 - y0 + 2 * (kRows - 1), x0, chunks});
      copy(rights, {shared + t.rights_at, t.right_stride, t.right_pitch, pairs.right_count,
                    right_row, right_end - right_row, right_col, right_chunks});
      block::barrier();
      if (!works || steps <= 0) continue;
      const int end = smaller(x1, q.right_cols - low_sx);
#pragma unroll 1
      for (int x = larger(x0, chunk_down(-(high_sx + kCols - 1))); x < end; x += kChunk) {
        const float* const l = left_row + (x - x0);
        const float* const r = right_line + (x + my_sx - right_col);
        constexpr int kReach = RegisterTile<kRows, kCols>::kReach;
        const int before = -(x + high_sx), after = x + low_sx - q.right_cols;
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
  }

  // Through shared memory, so that a warp writes whole runs of a row.
  const int area_log = rows_log + cols_log;
  const int area = kRows * kCols << area_log;
  const int pair_lanes_log = t.pairs.right_lanes_log + t.pairs.left_lanes_log;
  block::barrier();
  {
    const int slot = (left_lane << t.pairs.right_lanes_log) + right_lane;
    float* const mine =
        shared + slot * (area + 1) + (my_sy - block_sy) * block_cols + (my_sx - block_sx);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < kCols; ++j) {
        mine[(down ? i : kRows - 1 - i) * block_cols + j] = tile.sums[i][j];
      }
    }
  }
  block::barrier();
  const int first_row = q.first_sy - block_sy, first_col = q.first_sx - block_sx;
  const int width_log = smaller(log2(kCols) + cols_log, log2(kThreads));
#pragma unroll 1
  for (int col = thread & ((1 << width_log) - 1); col < block_cols; col += 1 << width_log) {
    if (static_cast<unsigned>(col - first_col) >= static_cast<unsigned>(q.out_cols)) continue;
#pragma unroll 4
    for (int r = thread >> width_log; r < block_rows << pair_lanes_log;
         r += kThreads >> width_log) {
      const int row = r & (block_rows - 1), slot = r >> (log2(kRows) + rows_log);
      const int l = slot >> t.pairs.right_lanes_log;
      const int right_number = slot - (l << t.pairs.right_lanes_log);
      if (static_cast<unsigned>(row - first_row) >= static_cast<unsigned>(q.out_rows) ||
          right_number >= pairs.right_count || l >= pairs.left_lanes) {
        continue;
      }
      const Index pair = pairs.first_pair + static_cast<Index>(l) * q.rights + right_number;
      out[pair * q.out_size + static_cast<Index>(row - first_row) * q.out_cols + col - first_col] =
          shared[slot * (area + 1) + row * block_cols + col];
    }
  }
}

using Kernel = void (*)(DeviceProblem, Tiling, const float*, const float*, float*);
struct Tile {
  const char* name;
  int rows, cols, resident_blocks;
  Kernel kernel;
};
template <int kRows, int kCols>
Tile make_tile(const char* name) {
  return {name, kRows, kCols, kResidentBlocks<kRows, kCols>, tiled_direct_kernel<kRows, kCols>};
}
const std::array<Tile, 3> kTiles = {make_tile<4, 4>("4x4"), make_tile<4, 8>("4x8"),
                                    make_tile<8, 4>("8x4")};

// What a point makes of a problem.
struct Launch {
  // With panels that fit `shared_limit` bytes a multiprocessor; shared_bytes is 0 if none do.
  Launch(const PlanRequest& request, std::size_t shared_limit)
      : q(request.problem), tile(*std::find_if(kTiles.begin(), kTiles.end(), [&](const Tile& t) {
          return t.name == request.params.get("overlap_tile");
        })) {
    pairs_log = log2_up(request.params.get_int("pairs_per_warp"));
    const int rights_log =
        q.form == Form::n_to_m ? std::min({pairs_log, 3, log2_up(q.rights)}) : pairs_log;
    t.pairs = PairGroups(q, pairs_log - rights_log, rights_log);
    // Eight neighbouring lanes read 128 bytes without a conflict.
    t.col_lanes_log = pairs_log == 5 ? 0 : pairs_log >= 2 ? 1 : 3;
    t.row_lanes_log = 5 - pairs_log - t.col_lanes_log;
    t.warp_cols_log = log2_up(request.params.get_int("warps_across"));
    const int block_rows = tile.rows << (t.row_lanes_log + kWarpsLog - t.warp_cols_log);
    const int block_cols = tile.cols << (t.col_lanes_log + t.warp_cols_log);
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
    choose_panels(block_rows, block_cols, shared_limit / resident - kReserved);
    if (shared_bytes == 0) choose_panels(block_rows, block_cols, shared_limit);
  }

  void choose_panels(int block_rows, int block_cols, std::size_t most) {
    const std::size_t staged_out =
        (kThreads * tile.rows * tile.cols + (std::size_t{1} << pairs_log)) * sizeof(float);
    const auto bytes = [&](Index rows, Index cols) {
      const Index pad_rows = ((Index{1} << t.row_lanes_log) - 1) * tile.rows;
      const Index pad_cols = (Index{1} << t.col_lanes_log) * tile.cols;
      const Index right_rows = std::min(rows + block_rows - 1, q.right.rows + 2 * pad_rows);
      const Index right_pitch =
          std::min(cols + block_cols, chunk_up(static_cast<int>(q.right.cols)) + 2 * pad_cols);
      // Of neighbouring matrices eight reads do not meet in a bank.
      const auto stride = [](Index size, int step) {
        return ceil_div<Index>(size, 32) * 32 + step;
      };
      const int step = kChunk << (pairs_log < 3 ? t.col_lanes_log : 0);
      t.panel_rows = static_cast<int>(rows);
      t.panel_cols = static_cast<int>(cols);
      t.left_pitch = static_cast<int>(cols);
      t.right_pitch = static_cast<int>(right_pitch);
      const Index left_stride = stride((rows + 2 * (tile.rows - 1)) * cols, kChunk);
      const Index right_stride = stride(right_rows * right_pitch, step);
      t.left_stride = static_cast<int>(left_stride);
      t.right_stride = static_cast<int>(right_stride);
      const Index rights_at = t.pairs.most_lefts * left_stride;
      t.rights_at = static_cast<int>(rights_at);
      const Index floats = rights_at + (right_stride << t.pairs.right_lanes_log);
      return std::max(static_cast<std::size_t>(floats) * sizeof(float), staged_out);
    };
    constexpr Index kMostRows = 4096, kMostCols = 4096;
    Index rows = std::min(q.left.rows, kMostRows);
    const Index width = std::min<Index>(ceil_div<Index>(q.left.cols, kChunk) * kChunk, kMostCols);
    // The whole height in panels of few columns costs no product; panels of few rows do.
    for (Index cols = width;;) {
      const std::size_t need = bytes(rows, cols);
      if (need <= most) {
        shared_bytes = need;
        return;
      }
      if (cols > kChunk) {
        cols -= kChunk;
      } else if (rows > 1) {
        rows = ceil_div<Index>(rows, 2);
        cols = std::min<Index>(width, 4 * kChunk);
      } else {
        return;
      }
    }
  }

  static constexpr Index kManyBlocks = 8192;
  Problem q;
  Tile tile;
  Tiling t = {};
  int pairs_log = 0;
  Index blocks = 0;
  std::size_t shared_bytes = 0;
};

class TiledPlan final : public Plan {
 public:
  explicit TiledPlan(const PlanRequest& request) : launch_(request, shared_limit()) {}

  void compute(const Call& call) override {
    launch(launch_.tile.kernel, dim3(static_cast<unsigned>(launch_.blocks)), dim3(kThreads),
           launch_.shared_bytes, call.stream, DeviceProblem(launch_.q), launch_.t,
           call.lefts<float>(), call.rights<float>(), call.outs<float>());
  }

 private:
  Launch launch_;
};

Support supports(const PlanRequest& request) {
  const Problem& q = request.problem;
  if (const Support steps = steps_fit(q); !steps) return steps;
  const int pairs = request.params.get_int("pairs_per_warp");
  if (pairs > 1 && q.pairs() <= pairs / 2) {
    return no("pairs_per_warp=" + std::to_string(pairs) + ": the problem has " +
              std::to_string(q.pairs()) + " pairs");
  }
  constexpr std::size_t kEveryDevice = 48 * 1024;
  Launch launch(request, kEveryDevice);
  if (launch.t.pairs.left_lanes_log > log2_up(q.lefts)) {
    return no("pairs_per_warp=" + std::to_string(pairs) + ": too few left and right matrices");
  }
  if (launch.blocks > (Index{1} << 31) - 1) return no("more than 2^31 - 1 blocks");
  if (launch.shared_bytes == 0 && Launch(request, shared_limit()).shared_bytes == 0) {
    return no("a step of a block does not fit its shared memory");
  }
  return yes();
}

XCORR_VARIANT({
    .summary = "Threads own tiles of shifts in registers; matrices are staged in shared memory",
    .parent = "multi_matrix_both_grouped_overlap",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .axes = {{"overlap_tile", {"4x4", "4x8", "8x4"}, true},
             {"pairs_per_warp", {"1", "8", "32"}},
             {"warps_across", {"1", "4", "8"}}},
    .supports = supports,
    .plan = [](const PlanRequest& request) -> std::unique_ptr<Plan> {
      return std::make_unique<TiledPlan>(request);
    },
});

}  // namespace
}  // namespace xcorr
