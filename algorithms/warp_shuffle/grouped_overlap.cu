// Grouped-overlap (paper section 4.2.2, thesis 3.5.3): derived from warp_shuffle, for problems that
// are large enough to need fewer warps. A lane computes s vertically adjacent outputs and takes l
// left rows at a time, which are multiplied with l + s - 1 right rows. A step to the next column
// moves each left row (two shuffles) and broadcasts a value of each right row (one shuffle): 3 l +
// s - 1 shuffles for l s FMAs, 15 for 16 with s = l = 4. l = 1 is the thesis's multirow-right
// (3.4.5).
//
// The paper computes the first and last left rows of a group, which belong to some of its overlaps,
// in separate phases. Here they are computed as all others, and rows outside a matrix are zeros: at
// most s + l - 2 more left rows.
//
// overlaps_per_thread is s, left_rows is l. High values use a loaded value more often but take more
// registers. A large s also makes fewer, longer tasks. Limits: those of warp_shuffle.
// Measured (H200, one-to-one, 256 x 256, s = l = 4): the shuffle pipe is busy in 70 % of the
// cycles, the FMA pipe in 19 %. An SM has 7 warps on average, because near the end only the warps
// with the largest overlaps still run.
#include "algorithms/blocks/points.hpp"
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
  WarpTile<float, 1, 1, kOverlaps, kLeftRows>::compute(q, tiles, left, right, out);
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
    .supports = one_sum_fits,
    .plan = plan,
});

}  // namespace
}  // namespace xcorr::warp_shuffle
