// tiled_direct_split without shared memory, for the smallest problems, whose time is the sum of a
// few latencies: one launch, one load, the sums of a tile, one store. A warp has a tile of shifts.
// A lane takes 4 left columns and a part of the overlapping rows, and reads both matrices from
// global memory, 16 bytes at a time, several rows at once. Right rows stay in registers for all
// left rows that need them. Shuffles add the sums of the lanes in a fixed order. Beyond the paper.
//
// Intended for few pairs of at most about 32 x 32. In larger problems several warps of an SM read
// the same rows, and staging them once is faster. At 16 x 16, overlap_tile 2x4, 4x4 and 4x8 make
// 128, 64 and 32 warps: for one pair, several pairs, tens of pairs. warps_per_block: 1 uses more
// SMs; 4 starts fewer blocks.
// Limits: columns are multiples of 4; at most 65535 left matrices, and right matrices per left
// matrix; an infinity or a NaN may reach outputs whose overlaps do not contain it.
// Measured (H200, one pair of 16 x 16): instructions are issued in 15 % of the cycles; the warps
// wait for global memory.
#include <algorithm>
#include <array>

#include "algorithms/blocks/divide.hpp"
#include "algorithms/blocks/overlap_geometry.hpp"
#include "algorithms/blocks/plan.hpp"
#include "algorithms/tiled/chunks.hpp"
#include "harness/variant.hpp"

namespace xcorr::tiled {
namespace {

constexpr int kMostWarps = 4;

// The division of a problem into tiles. Set on the host, passed to the kernel by value.
struct Tiles : Extents {
  using Extents::Extents;
  int sx_base = 0;    // shift of the first column of tiles
  int tile_rows = 0;  // in the window
  Divider tile_cols;
  int rights_back = 0;  // the right of pair p of left l is p - l * rights_back
};

__device__ __forceinline__ Chunk load_or_zero(const float* address, bool exists) {
  Chunk chunk = {};
  if (exists) chunk = load_chunk(address);
  return chunk;
}

// kAhead left rows are loaded at once.
template <int kRows, int kCols, int kAhead>
__global__ void __launch_bounds__(kMostWarps* warp::kSize, 1)
    tiled_direct_unstaged_kernel(Tiles t, const float* __restrict__ left,
                                 const float* __restrict__ right, float* __restrict__ out) {
  constexpr int kSums = kRows * kCols, kParts = kCols / kChunk + 1;
  const int lane = warp::lane(), warp_number = static_cast<int>(threadIdx.x) / warp::kSize;
  // Neighbouring tiles go to different blocks, so that every block has tiles of all sizes.
  std::uint32_t rank = static_cast<std::uint32_t>(warp_number) * gridDim.x + blockIdx.x;
  const int tile_row = static_cast<int>(t.tile_cols.split(rank));
  if (tile_row >= t.tile_rows) return;  // the whole warp returns
  const int sy = t.first_sy + tile_row * kRows, sx = t.sx_base + static_cast<int>(rank) * kCols;

  const int first_row = larger(0, 1 - kRows - sy),
            end_row = smaller(t.left_rows, t.right_rows - sy);
  const int first_col = chunk_down(larger(0, 1 - kCols - sx));
  const int end_col = smaller(t.left_cols, t.right_cols - sx);
  const int chunks = chunk_up(end_col - first_col) / kChunk;
  // 2^cols_log lanes take different columns, the others different rows.
  int cols_log = 0;
#pragma unroll
  for (int n = 1; n < warp::kSize; n *= 2) cols_log += chunks > n;
  const int rows_log = log2(warp::kSize) - cols_log;
  const int steps = (end_row - first_row + (1 << rows_log) - 1) >> rows_log;
  const int begin = first_row + (lane >> cols_log) * steps;
  const int end = smaller(begin + steps, end_row);
  const int my_col = first_col + (lane & ((1 << cols_log) - 1)) * kChunk;

  const std::uint32_t pair = blockIdx.z * gridDim.y + blockIdx.y;
  const auto matrix =
      static_cast<Index>(static_cast<int>(pair) - t.rights_back * static_cast<int>(blockIdx.z));
  left += static_cast<Index>(blockIdx.z) * (t.left_rows * t.left_cols);
  right += matrix * (t.right_rows * t.right_cols);
  float sums[kSums] = {};
  wait_for_previous();
  let_next_start();
#pragma unroll 1
  for (int from = 0; from < chunks; from += 1 << cols_log) {
    const int x = my_col + from * kChunk;
    const bool exists = x < end_col;
    const auto load_right = [&](Chunk(&parts)[kParts], int row, bool wanted) {
      const bool inside =
          wanted && static_cast<unsigned>(row) < static_cast<unsigned>(t.right_rows);
#pragma unroll
      for (int v = 0; v < kParts; ++v) {
        const int col = x + sx + v * kChunk;
        parts[v] = load_or_zero(
            right + row * t.right_cols + col,
            inside && static_cast<unsigned>(col) < static_cast<unsigned>(t.right_cols));
      }
    };
    Chunk window[kRows - 1 + kAhead][kParts];
#pragma unroll
    for (int i = 0; i < kRows - 1; ++i)
      load_right(window[i], begin + sy + i, exists && begin < end);
#pragma unroll 1
    for (int k = 0; k < steps; k += kAhead) {
      Chunk rows[kAhead];
#pragma unroll
      for (int s = 0; s < kAhead; ++s) {
        const int y = begin + k + s;
        const bool wanted = exists && y < end;
        rows[s] = load_or_zero(left + y * t.left_cols + x, wanted);
        load_right(window[kRows - 1 + s], y + sy + kRows - 1, wanted);
      }
#pragma unroll
      for (int s = 0; s < kAhead; ++s) {
        if (s > 0 && k + s >= steps) break;
#pragma unroll
        for (int dx = 0; dx < kChunk; ++dx) {
#pragma unroll
          for (int i = 0; i < kRows; ++i) {
#pragma unroll
            for (int j = 0; j < kCols; ++j) {
              const int c = dx + j;
              sums[i * kCols + j] += rows[s].at[dx] * window[s + i][c / kChunk].at[c % kChunk];
            }
          }
        }
      }
#pragma unroll
      for (int i = 0; i < kRows - 1; ++i) {
#pragma unroll
        for (int v = 0; v < kParts; ++v) window[i][v] = window[kAhead + i][v];
      }
    }
  }

  reduce_halving<kSums, warp::kSize / 2>(sums);
  constexpr int kCopies = warp::kSize / kSums;
  const int element = lane / kCopies;
  const int row = sy + element / kCols - t.first_sy, col = sx + element % kCols - t.first_sx;
  if (lane % kCopies == 0 && row < t.out_rows &&
      static_cast<unsigned>(col) < static_cast<unsigned>(t.out_cols)) {
    out[(static_cast<Index>(pair) * t.out_rows + row) * t.out_cols + col] = sums[0];
  }
}

using Kernel = void (*)(Tiles, const float*, const float*, float*);
const std::array<TileKernel<Kernel>, 3> kKernels = {{
    {"2x4", {2, 4}, tiled_direct_unstaged_kernel<2, 4, 2>},
    {"4x4", {4, 4}, tiled_direct_unstaged_kernel<4, 4, 4>},
    {"4x8", {4, 8}, tiled_direct_unstaged_kernel<4, 8, 2>},
}};

class UnstagedPlan final : public DevicePlan<float> {
 public:
  explicit UnstagedPlan(const PlanRequest& request)
      : DevicePlan(request.problem), t_(request.problem) {
    const Problem& q = request.problem;
    const TileKernel<Kernel>& tile = kernel_of(kKernels, request);
    const int warps = request.params.get_int("warps_per_block");
    // A multiple of a chunk, so that both matrices are read in whole chunks.
    t_.sx_base = chunk_down(t_.first_sx);
    t_.tile_rows = ceil_div(t_.out_rows, tile.shape.rows);
    t_.tile_cols = Divider(ceil_div<Index>(q.window.sx.last + 1 - t_.sx_base, tile.shape.cols));
    const auto rights = static_cast<unsigned>(rights_of_a_left(q));
    t_.rights_back = static_cast<int>(rights_back(q));
    kernel_ = tile.kernel;
    const Index tiles = static_cast<Index>(t_.tile_rows) * t_.tile_cols.by;
    grid_ = dim3(static_cast<unsigned>(ceil_div<Index>(tiles, warps)), rights,
                 static_cast<unsigned>(q.lefts));
    block_ = dim3(static_cast<unsigned>(warps * warp::kSize));
  }

 private:
  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    launches_.begin(call);
    launches_.run(kernel_, grid_, block_, 0, call.stream, t_, arrays.left, arrays.right,
                  arrays.out);
  }

  DependentLaunches launches_;
  Tiles t_;
  Kernel kernel_;
  dim3 grid_, block_;
};

Support supports(const PlanRequest& request) {
  const Problem& q = request.problem;
  if (const Support steps = steps_fit(q); !steps) return steps;
  if (q.left.cols % kChunk != 0 || q.right.cols % kChunk != 0) {
    return no("columns: not a multiple of 4");
  }
  if (std::max({q.left.size(), q.right.size(), q.out_size()}) > kIndexLimit) {
    return no("matrices of more than 2^31 - 1 elements");
  }
  if (q.lefts > kGridLimitYZ || rights_of_a_left(q) > kGridLimitYZ) {
    return no("more than " + std::to_string(kGridLimitYZ) +
              " left matrices, or right matrices of a left one");
  }
  return yes();
}

XCORR_VARIANT({
    .summary = "Smallest problems: a warp's tile of shifts, straight from global memory",
    .parent = "tiled_direct_split",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .axes = {{"overlap_tile", {"2x4", "4x4", "4x8"}, true}, {"warps_per_block", {"1", "4"}}},
    .supports = supports,
    .plan = make_plan<UnstagedPlan>,
});

}  // namespace
}  // namespace xcorr::tiled
