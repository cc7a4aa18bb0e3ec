// Direct correlation with register tiles. Derived from multi_matrix_both_grouped_overlap, but
// without shuffles. Beyond the paper. A thread computes a tile of neighbouring shifts and keeps
// their sums in registers. It reads the matrices from shared memory, where zeros surround them. In
// each step it loads 4 columns of one new left row, and the part of one right row that overlaps
// them. It keeps the last left rows in registers, one for each row of the tile, so that one load of
// a right row serves all rows of the tile.
//
// If there are enough pairs, the lanes of a warp have different pairs and thus the same overlap, so
// that no step multiplies by the zeros outside it. Lanes with different shifts walk the rows and
// columns of the widest overlap among them. A block copies the matrices to shared memory in panels:
// a few left columns over the whole height, and the right columns that overlap them. Panels of
// fewer rows are used only if 4 columns over the whole height do not fit, because each further
// panel of rows adds (tile rows - 1) steps.
//
// Parameters:
//   overlap_tile    shifts per thread, sy x sx. 4x4, 4x8 and 8x4 have 21, 32 and 43 FMAs for each
//                   16-byte access to shared memory, and 24, 16 and 16 warps on an SM
//   sums            tile 4x8 only. blocked adds sums of at most 380 products to compensated totals
//                   (blocked_sums.hpp), so that the error does not grow with the number of
//                   products. An infinite sum becomes NaN. A point does not name plain, which takes
//                   at most 2^19 products for an output
//   pairs_per_warp  in n-to-m, 32 are 4 lefts x 8 rights, or more lefts where there are at most 4
//                   rights. Low values make wider panels and more blocks, so that a problem with
//                   few pairs also fills a GPU
//   warps_across    how many of the 8 warps of a block lie side by side along sx. High values write
//                   longer runs of an output row, but from narrower panels
// Limits: an infinity or a NaN may reach outputs whose overlaps do not contain it.
// Measured (H200, 128:128 n-to-m, 64 x 64, tile 4x8): 37 TFLOP/s of useful work. The FMA pipe is
// busy in 57 % of the cycles, and instructions are issued in 68 %. Barriers cause the most stall
// cycles, because a block does not compute while it copies a panel.
#include <array>

#include "algorithms/tiled/blocked_sums.hpp"
#include "algorithms/tiled/panels.hpp"
#include "algorithms/tiled/tile_plan.hpp"
#include "harness/variant.hpp"

namespace xcorr::tiled {
namespace {

template <int kRows, int kCols>
constexpr int kResidentBlocks = kRows * kCols > 16 ? 2 : 3;

template <int kRows, int kCols, template <int, int> typename Tile>
__global__ void __launch_bounds__(kTileThreads, (kResidentBlocks<kRows, kCols>))
    tiled_direct_kernel(DeviceProblem q, Tiling t, const float* __restrict__ left,
                        const float* __restrict__ right, float* __restrict__ out) {
  float* const shared = dynamic_shared<float>();
  const TileBlock block(t, blockIdx.x);
  const LanePairs pairs(q, t.pairs, block.group);
  const TilePosition<kRows, kCols> at(q, t, pairs, block, shared);

  Tile<kRows, kCols> tile;
  add_panels(tile, q, t, pairs, at, left, right, shared);
  tile.finish();
  write_tiles(q, t, pairs, at, tile, shared, out);
}

using Kernel = void (*)(DeviceProblem, Tiling, const float*, const float*, float*);
template <int kRows, int kCols, template <int, int> typename Tile>
TileKernel<Kernel> make_kernel(const char* name) {
  return {
      name, {kRows, kCols, kResidentBlocks<kRows, kCols>}, tiled_direct_kernel<kRows, kCols, Tile>};
}
const std::array<TileKernel<Kernel>, 3> kPlain = {make_kernel<4, 4, RegisterTile>("4x4"),
                                                  make_kernel<4, 8, RegisterTile>("4x8"),
                                                  make_kernel<8, 4, RegisterTile>("8x4")};
const std::array<TileKernel<Kernel>, 1> kBlocked = {make_kernel<4, 8, BlockedTile>("4x8")};

const TileKernel<Kernel>& kernel_for(const PlanRequest& request) {
  return request.params.has("sums") ? kernel_of(kBlocked, request) : kernel_of(kPlain, request);
}

class DirectPlan final : public DevicePlan<float> {
 public:
  explicit DirectPlan(const PlanRequest& request)
      : DevicePlan(request.problem),
        kernel_(kernel_for(request)),
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
             {"sums", {"plain", "blocked"}, true},
             {"pairs_per_warp", {"1", "8", "32"}},
             {"warps_across", {"1", "4", "8"}}},
    .drops = {{"sums", "plain", "sums"},
              {"overlap_tile", "4x4", "sums"},
              {"overlap_tile", "8x4", "sums"}},
    .supports =
        [](const PlanRequest& request) {
          if (!request.params.has("sums")) {
            if (const Support fit = one_sum_fits(request); !fit) return fit;
          }
          return TilePlan::supports(request, kernel_for(request).shape, Panels::one);
        },
    .plan = make_plan<DirectPlan>,
});

}  // namespace
}  // namespace xcorr::tiled
