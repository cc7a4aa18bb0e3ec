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
#include <array>

#include "algorithms/tiled/staging.hpp"
#include "algorithms/tiled/tile_plan.hpp"
#include "algorithms/tiled/tile_walk.hpp"
#include "harness/variant.hpp"

namespace xcorr::tiled {
namespace {

template <int kRows, int kCols>
constexpr int kResidentBlocks = kRows* kCols > 16 ? 2 : 3;

template <int kRows, int kCols>
__global__ void __launch_bounds__(kTileThreads, (kResidentBlocks<kRows, kCols>))
    tiled_direct_kernel(DeviceProblem q, Tiling t, const float* __restrict__ left,
                        const float* __restrict__ right, float* __restrict__ out) {
  float* const shared = dynamic_shared<float>();
  const TileBlock block(t, blockIdx.x);
  const LanePairs pairs(q, t.pairs, block.group);
  const TilePosition<kRows, kCols> at(q, t, pairs, block, shared);

  StageSource lefts = {left + pairs.left_first * q.left_size, q.left_size, q.left_cols};
  StageSource rights = {right + pairs.right_first * q.right_size, q.right_size, q.right_cols};
  lefts.aligned = t.left_aligned;
  rights.aligned = t.right_aligned;
  rights.end_row = q.right_rows;
  RegisterTile<kRows, kCols> tile;
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
      const auto copy = [&](const StageSource& source, const Stage<4>::Target& target) {
        Stage<4> stage(source, target, at.thread, kTileThreads,
                       [&](unsigned n) { return n / static_cast<unsigned>(target.chunks); });
        while (stage.more()) stage.load(), stage.store();
      };
      copy(lefts, {shared, t.left_stride, t.left_pitch, pairs.left_count, y0 - (kRows - 1),
                   y1 - y0 + 2 * (kRows - 1), x0, chunks});
      copy(rights, {shared + t.rights_at, t.right_stride, t.right_pitch, pairs.right_count,
                    rows.right_row, rows.right_end - rows.right_row, right_col, right_chunks});
      block::barrier();
      if (!at.works || rows.steps <= 0) continue;
      rows.add(tile, q, at, x0, x1, rows.left,
               [&](int x) { return rows.right + (x + at.my_sx - right_col); });
    }
  }
  write_tiles(q, t, pairs, at, tile, shared, out);
}

using Kernel = void (*)(DeviceProblem, Tiling, const float*, const float*, float*);
template <int kRows, int kCols>
TileKernel<Kernel> make_kernel(const char* name) {
  return {
      name, {kRows, kCols, kResidentBlocks<kRows, kCols>}, tiled_direct_kernel<kRows, kCols>};
}
const std::array<TileKernel<Kernel>, 3> kKernels = {
    make_kernel<4, 4>("4x4"), make_kernel<4, 8>("4x8"), make_kernel<8, 4>("8x4")};

class DirectPlan final : public DevicePlan<float> {
 public:
  explicit DirectPlan(const PlanRequest& request)
      : DevicePlan(request.problem),
        kernel_(kernel_of(kKernels, request)),
        tiles_(request, kernel_.shape, Panels::one, shared_limit()) {}

 private:
  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    launch(kernel_.kernel, dim3(static_cast<unsigned>(tiles_.blocks)), dim3(kTileThreads),
           tiles_.shared_bytes, call.stream, DeviceProblem(problem_), tiles_.t, arrays.left,
           arrays.right, arrays.out);
  }

  TileKernel<Kernel> kernel_;
  TilePlan tiles_;
};

XCORR_VARIANT({
    .summary = "Threads own tiles of shifts in registers; matrices are staged in shared memory",
    .parent = "multi_matrix_both_grouped_overlap",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .axes = {{"overlap_tile", {"4x4", "4x8", "8x4"}, true},
             {"pairs_per_warp", {"1", "8", "32"}},
             {"warps_across", {"1", "4", "8"}}},
    .supports =
        [](const PlanRequest& request) {
          return TilePlan::supports(request, kernel_of(kKernels, request).shape, Panels::one);
        },
    .plan = [](const PlanRequest& request) -> std::unique_ptr<Plan> {
      return std::make_unique<DirectPlan>(request);
    },
});

}  // namespace
}  // namespace xcorr::tiled
