// tiled_direct for many pairs of small matrices: a block stages whole matrices once, and a warp has
// four tiles of shifts whose work together is the same for every warp.
//
// Equal shares: of h left rows a tile at sy > 0 meets h - sy, the tile at sy - h the other sy. A
// warp takes such a pair along the rows and along the columns, four tiles, one after the other:
// h w products a shift, whichever four. No warp of a block waits for another one, and a block's
// matrices are read once for all shifts. Lanes are pairs, as in tiled_direct with
// pairs_per_warp=32, and so are the walks; no product meets a zero. The sums of a tile change lanes
// in shared memory of the warp and leave in runs of a row. Beyond the paper.
//
// Forms: all; fp32. Parameters; compile-time:
//   overlap_tile     4x4, 4x8, 8x4, as in tiled_direct.
// run-time:
//   warps_per_block  4, 8, 16: what is staged serves more warps, against blocks that stage while
//                    others compute.
//   tiles_per_warp   1, 4: one leaves more parallel work where pairs are few, of unequal shares.
// Limits: 32 pairs and their matrices in shared memory; fewer pairs leave lanes idle. An infinity
// or NaN may reach outputs whose overlaps do not hold it.
#include <algorithm>
#include <array>

#include "algorithms/device/async_copy.hpp"
#include "algorithms/device/divide.hpp"
#include "algorithms/device/register_tile.hpp"
#include "harness/variant.hpp"

namespace xcorr {
namespace {

constexpr int kMostWarps = 16;

// How blocks and warps share a problem. Made on the host, given to the kernel by value.
struct Shares {
  PairGroups pairs;
  int sy_base, sx_base;                // shift of the first tile: a multiple of the tile
  int tile_rows, tile_cols;            // that hold the window
  int unit_rows;                       // tiles of a unit are unit_rows (and unit_cols) apart
  int quarters_log, items;             // shares of a unit; of all units
  Divider parts, unit_cols;            // blocks of a group of pairs
  int left_pitch, left_stride, right_pitch, right_stride, rights_at, buffers_at;  // in shared memory
  bool left_aligned, right_aligned;
};

template <int kRows, int kCols>
__device__ __forceinline__ void walk_tile(RegisterTile<kRows, kCols>& tile, const DeviceProblem& q,
                                          const Shares& s, const float* left, const float* right,
                                          int sy, int sx) {
  const bool down = sy >= 0;
  int first, steps;
  if (down) {
    first = 0;
    steps = smaller(q.left_rows + kRows - 1, q.right_rows - sy);
  } else {
    first = smaller(q.left_rows - 1, q.right_rows - sy - kRows);
    steps = first + kRows + sy;
  }
  const bool preload = first != (down ? 0 : q.left_rows - 1);
  const int left_step = down ? s.left_pitch : -s.left_pitch;
  const int right_step = down ? s.right_pitch : -s.right_pitch;
  left += (first + kRows - 1) * s.left_pitch - (preload ? (kRows - 1) * left_step : 0);
  right += (first + sy + (down ? 0 : kRows - 1)) * s.right_pitch + sx;
  const int end = smaller(q.left_cols, q.right_cols - sx);
#pragma unroll 1
  for (int x = larger(0, chunk_down(-(sx + kCols - 1))); x < end; x += kChunk) {
    const float* const l = left + x;
    const float* const r = right + x;
    constexpr int kReach = RegisterTile<kRows, kCols>::kReach;
    const int before = -(x + sx), after = x + sx - q.right_cols;
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

// Stages `count` matrices, one by a warp, with kHalo rows of zeros above and below. `flat`: rows are
// as far apart as in global memory.
template <int kHalo>
__device__ __forceinline__ void stage(float* shared, int stride, int pitch, const float* matrices,
                                      int count, int rows, int cols, bool flat, int warp_number,
                                      int warps) {
  const int lane = warp::lane(), size = rows * cols, halo = kHalo * pitch;
#pragma unroll 1
  for (int m = warp_number; m < count; m += warps) {
    const float* const matrix = matrices + static_cast<Index>(m) * size;
    float* const place = shared + m * stride;
    if (flat) {
#pragma unroll 2
      for (int n = lane * kChunk; n < size; n += warp::kSize * kChunk) {
        async_copy::copy<kChunk>(place + halo + n, matrix + n, true);
      }
    } else {
#pragma unroll 1
      for (int y = 0; y < rows; ++y) {
#pragma unroll 1
        for (int x = lane; x < pitch; x += warp::kSize) {
          async_copy::copy<1>(place + halo + y * pitch + x, matrix + (x < cols ? y * cols + x : 0),
                              x < cols);
        }
      }
    }
    if constexpr (kHalo > 0) {
#pragma unroll 1
      for (int n = lane; n < halo; n += warp::kSize) {
        place[n] = place[halo + rows * pitch + n] = 0;
      }
    }
  }
}

template <int kRows, int kCols>
__global__ void __launch_bounds__(kMostWarps* warp::kSize, 1)
    tiled_direct_whole_kernel(DeviceProblem q, Shares s, int warps, const float* __restrict__ left,
                              const float* __restrict__ right, float* __restrict__ out) {
  constexpr int kSums = kRows * kCols;
  float* const shared = dynamic_shared<float>();
  const int thread = static_cast<int>(threadIdx.x), lane = warp::lane();
  const int warp_number = thread / warp::kSize;

  std::uint32_t part = blockIdx.x;
  const LanePairs pairs(q, s.pairs, s.parts.split(part));
  constexpr int kHalo = kRows - 1;
  stage<kHalo>(shared, s.left_stride, s.left_pitch, left + pairs.left_first * q.left_size,
               pairs.left_count, q.left_rows, q.left_cols, s.left_aligned, warp_number, warps);
  stage<0>(shared + s.rights_at, s.right_stride, s.right_pitch,
           right + pairs.right_first * q.right_size, pairs.right_count, q.right_rows, q.right_cols,
           s.right_aligned, warp_number, warps);
  async_copy::commit();
  async_copy::wait();
  block::barrier();

  const int right_lane = lane & ((1 << s.pairs.right_lanes_log) - 1);
  const int left_lane = lane >> s.pairs.right_lanes_log;
  const float* const my_left = shared + pairs.left_slot(left_lane, right_lane) * s.left_stride;
  const float* const my_right =
      shared + s.rights_at + pairs.right_slot(right_lane) * s.right_stride;
  float* const buffer = shared + s.buffers_at + warp_number * (warp::kSize * (kSums + 1));

#pragma unroll 1
  for (int item = static_cast<int>(part) * warps + warp_number; item < s.items;
       item += static_cast<int>(s.parts.by) * warps) {
    std::uint32_t unit_col = static_cast<std::uint32_t>(item >> s.quarters_log);
    const int unit_row = static_cast<int>(s.unit_cols.split(unit_col));
    const int first_quarter = item & ((1 << s.quarters_log) - 1);
#pragma unroll 1
    for (int quarter = first_quarter; quarter < 4; quarter += 1 << s.quarters_log) {
      const int row = unit_row + (quarter & 1 ? s.unit_rows : 0);
      const int col = static_cast<int>(unit_col + (quarter & 2 ? s.unit_cols.by : 0));
      if (row >= s.tile_rows || col >= s.tile_cols) continue;
      const int sy = s.sy_base + row * kRows, sx = s.sx_base + col * kCols;
      RegisterTile<kRows, kCols> tile;
      walk_tile(tile, q, s, my_left, my_right, sy, sx);
      // To lanes of neighbouring outputs.
      warp::barrier();
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
#pragma unroll
        for (int j = 0; j < kCols; ++j) {
          buffer[lane * (kSums + 1) + (sy >= 0 ? i : kRows - 1 - i) * kCols + j] = tile.sums[i][j];
        }
      }
      warp::barrier();
      const int element = lane % kSums;
      const int out_row = sy + element / kCols - q.first_sy;
      const int out_col = sx + element % kCols - q.first_sx;
      if (static_cast<unsigned>(out_row) >= static_cast<unsigned>(q.out_rows) ||
          static_cast<unsigned>(out_col) >= static_cast<unsigned>(q.out_cols)) {
        continue;
      }
      float* place = out + pairs.first_pair * q.out_size +
                     static_cast<Index>(out_row) * q.out_cols + out_col;
      constexpr int kAtOnce = warp::kSize / kSums;
      place += lane / kSums * q.out_size;
#pragma unroll 1
      for (int l = 0; l < pairs.left_lanes; ++l) {
        const float* from =
            buffer + ((l << s.pairs.right_lanes_log) + lane / kSums) * (kSums + 1) + element;
        float* to = place;
#pragma unroll 8
        for (int r = lane / kSums; r < pairs.right_count; r += kAtOnce) {
          *to = *from;
          from += kAtOnce * (kSums + 1);
          to += kAtOnce * q.out_size;
        }
        place += q.rights * q.out_size;
      }
    }
  }
}

using Kernel = void (*)(DeviceProblem, Shares, int, const float*, const float*, float*);
struct Tile {
  const char* name;
  int rows, cols;
  Kernel kernel;
};
const std::array<Tile, 3> kTiles = {Tile{"4x4", 4, 4, tiled_direct_whole_kernel<4, 4>},
                                    Tile{"4x8", 4, 8, tiled_direct_whole_kernel<4, 8>},
                                    Tile{"8x4", 8, 4, tiled_direct_whole_kernel<8, 4>}};

// What a point makes of a problem.
struct Launch {
  explicit Launch(const PlanRequest& request)
      : q(request.problem), tile(*std::find_if(kTiles.begin(), kTiles.end(), [&](const Tile& t) {
          return t.name == request.params.get("overlap_tile");
        })), warps(request.params.get_int("warps_per_block")) {
    const int rights_log = q.form == Form::n_to_m ? std::min(3, log2_up(q.rights)) : 5;
    s.pairs = PairGroups(q, 5 - rights_log, rights_log);
    s.sy_base = floor_to(q.window.sy.first, tile.rows);
    s.sx_base = floor_to(q.window.sx.first, tile.cols);
    const Index rows = ceil_div<Index>(q.window.sy.last + 1 - s.sy_base, tile.rows);
    const Index cols = ceil_div<Index>(q.window.sx.last + 1 - s.sx_base, tile.cols);
    s.tile_rows = static_cast<int>(rows);
    s.tile_cols = static_cast<int>(cols);
    s.unit_rows = static_cast<int>(ceil_div<Index>(rows, 2));
    s.unit_cols = Divider(ceil_div<Index>(cols, 2));
    const Index units = s.unit_rows * ceil_div<Index>(cols, 2);
    s.quarters_log = request.params.get_int("tiles_per_warp") == 1 ? 2 : 0;
    s.items = static_cast<int>(std::min<Index>(units << s.quarters_log, 1 << 30));
    const Index parts = ceil_div<Index>(s.items, warps);
    s.parts = Divider(parts);
    blocks = parts * s.pairs.count;
    const auto pitch = [](Index cols) { return ceil_div<Index>(cols, kChunk) * kChunk; };
    // Of neighbouring matrices eight reads do not meet in a bank.
    const auto stride = [](Index size) { return ceil_div<Index>(size, 32) * 32 + kChunk; };
    const Index left_pitch = pitch(q.left.cols);
    const Index right_pitch = std::max<Index>(pitch(q.right.cols), tile.cols);
    s.left_aligned = left_pitch == q.left.cols;
    s.right_aligned = right_pitch == q.right.cols;
    const Index left_stride = stride((q.left.rows + 2 * (tile.rows - 1)) * left_pitch);
    const Index right_stride = stride(q.right.rows * right_pitch);
    const Index rights_at = s.pairs.most_lefts * left_stride;
    const Index buffers_at = rights_at + (right_stride << rights_log);
    const Index floats = buffers_at + warps * warp::kSize * (tile.rows * tile.cols + 1);
    shared_bytes = static_cast<std::size_t>(floats) * sizeof(float);
    if (floats > 1 << 20) return;  // beyond what any device has, and perhaps an int
    s.left_pitch = static_cast<int>(left_pitch);
    s.right_pitch = static_cast<int>(right_pitch);
    s.left_stride = static_cast<int>(left_stride);
    s.right_stride = static_cast<int>(right_stride);
    s.rights_at = static_cast<int>(rights_at);
    s.buffers_at = static_cast<int>(buffers_at);
  }

  Problem q;
  Tile tile;
  int warps;
  Shares s = {};
  Index blocks = 0;
  std::size_t shared_bytes = 0;
};

class WholePlan final : public Plan {
 public:
  explicit WholePlan(const PlanRequest& request) : launch_(request) {}

  void compute(const Call& call) override {
    launch(launch_.tile.kernel, dim3(static_cast<unsigned>(launch_.blocks)),
           dim3(static_cast<unsigned>(launch_.warps * warp::kSize)), launch_.shared_bytes,
           call.stream, DeviceProblem(launch_.q), launch_.s, launch_.warps, call.lefts<float>(),
           call.rights<float>(), call.outs<float>());
  }

 private:
  Launch launch_;
};

Support supports(const PlanRequest& request) {
  const Problem& q = request.problem;
  if (const Support steps = steps_fit(q); !steps) return steps;
  if (q.pairs() <= warp::kSize / 2) {
    return no("lanes are pairs, and the problem has " + std::to_string(q.pairs()));
  }
  const Launch launch(request);
  if (launch.s.pairs.left_lanes_log > log2_up(q.lefts)) return no("too few left matrices");
  if (launch.blocks > (Index{1} << 31) - 1) return no("more than 2^31 - 1 blocks");
  if (launch.shared_bytes > 48 * 1024 && launch.shared_bytes > shared_limit()) {
    return no("the matrices of 32 pairs do not fit shared memory");
  }
  return yes();
}

XCORR_VARIANT({
    .summary = "Whole small matrices in shared memory; a warp's four tiles are an equal share",
    .parent = "tiled_direct",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .axes = {{"overlap_tile", {"4x4", "4x8", "8x4"}, true},
             {"warps_per_block", {"4", "8", "16"}},
             {"tiles_per_warp", {"1", "4"}}},
    .supports = supports,
    .plan = [](const PlanRequest& request) -> std::unique_ptr<Plan> {
      return std::make_unique<WholePlan>(request);
    },
});

}  // namespace
}  // namespace xcorr
