// Grouped-overlap (paper section 4.2.2, thesis 3.5.3): a step from warp_shuffle, for problems large
// enough to do with fewer warps. A lane computes `overlaps_per_thread` vertically adjacent outputs
// and takes `left_rows` left rows at a time: with s overlaps and l left rows, l + s - 1 right rows
// serve l s products, so l s FMAs cost 3 l + s - 1 shuffles (16 : 15 for 4 and 4) instead of three
// each. left_rows = 1 is the thesis's multirow-right (3.4.5).
//
// The first and last rows of a group, where its overlaps do not all have products, are not phases
// of their own as in the paper: rows outside a matrix are zeros, at the price of at most s + l - 2
// rows of steps that a larger overlap does not notice.
//
// Forms: all. Parameters: overlaps_per_thread and left_rows (1, 2, 4, 8 each), compile-time: more
// reuse and registers, fewer and longer tasks; warps_per_block (4, 8), run-time.
// Limits: as warp_shuffle.
//
// Profile (H200, one-to-one, 256 x 256, 4 and 4): the shuffle pipe is busy 70 % of the time in
// which any warp runs, the FMA pipe 19 %. 2048 warps are 16 for each SM, and on average 7 of its
// 64 places are taken: it ends with the longest warps.
#include "algorithms/device/points.hpp"
#include "algorithms/warp_shuffle/warp_plan.hpp"
#include "algorithms/warp_shuffle/warp_tile.hpp"
#include "harness/variant.hpp"

namespace xcorr::warp_shuffle {
namespace {

using Overlaps = PointAxis<Values<1, 2, 4, 8>, Values<1, 4>>;
using LeftRows = PointAxis<Values<1, 2, 4, 8>, Values<1, 2, 4>>;

template <int kOverlaps, int kLeftRows>
__global__ void __launch_bounds__(kMostWarpsPerBlock* warp::kSize,
                                  blocks_of_an_sm(1, 1, kOverlaps, kLeftRows))
    grouped_overlap_kernel(DeviceProblem q, WarpTiles tiles, const float* __restrict__ left,
                           const float* __restrict__ right, float* __restrict__ out) {
  const int task = tiles.task();
  if (!tiles.exists(task)) return;
  const OverlapGroup group(q, task * kOverlaps, kOverlaps);
  tiles.for_each<1, 1>(q, left, right,
                       [&](const PairGroup<float>& pair, const WarpColumns& columns) {
                         WarpTile<float, 1, 1, kOverlaps, kLeftRows> tile;
                         tile.add(pair, columns, group.sy, group.begin, group.end);
                         tile.write(q, pair, columns, group.out, group.count, out);
                       });
}

const bool kKernels = add_kernels<Overlaps, LeftRows>(
    XCORR_ID, [](auto overlaps, auto rows) { return grouped_overlap_kernel<overlaps, rows>; });

std::unique_ptr<Plan> plan(const PlanRequest& request) {
  const int overlaps = request.params.get_int("overlaps_per_thread");
  const auto kernel = find_kernel<ShufflePlan<float>::Kernel>(
      XCORR_ID, {overlaps, request.params.get_int("left_rows")});
  return std::make_unique<ShufflePlan<float>>(
      request, kernel, WarpWork{.tasks = ceil_div<Index>(request.problem.out_rows(), overlaps)});
}

XCORR_VARIANT({
    .summary = "Warp-shuffle with several outputs below each other and several left rows a step",
    .parent = "warp_shuffle",
    .source = "section 4.2.2",
    .backend = Backend::cuda,
    .axes = {warps_per_block_axis(), Overlaps::axis("overlaps_per_thread"),
             LeftRows::axis("left_rows")},
    .supports = [](const PlanRequest& request) { return steps_fit(request.problem); },
    .plan = plan,
});

}  // namespace
}  // namespace xcorr::warp_shuffle
