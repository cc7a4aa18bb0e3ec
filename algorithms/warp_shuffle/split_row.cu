// Split-row (paper section 4.2.1, thesis 3.4.2, "work distribution"): derived from warp_shuffle,
// for problems with too few overlaps to fill the GPU. Each overlap is cut into stripes of rows. A
// warp computes one stripe for 32 neighbouring shifts, and the stripes of an overlap are added
// atomically to an output that every call clears first. An overlap of one stripe is written without
// addition; if all are, nothing is cleared.
//
// distribution is how stripes are numbered (row_distribution.hpp); none splits nothing and has no
// rows_per_thread. rows_per_thread is the number of rows of a stripe: fewer rows make more warps,
// each with its loads, index arithmetic and 32 atomic additions.
// Limits: those of warp_shuffle; at most 2^30 stripes. Sums depend on the order of the additions.
// Measured (H200, one-to-one), shuffle pipe and FMA pipe: busy in 98 % and 12 % of the cycles at
// 256 x 256 with 4 rows; in 80 % and 17 % at 64 x 64 with 1 row, where half of the instructions are
// not for products.
#include "algorithms/blocks/row_distribution.hpp"
#include "algorithms/warp_shuffle/warp_plan.hpp"
#include "algorithms/warp_shuffle/warp_tile.hpp"
#include "harness/variant.hpp"

namespace xcorr::warp_shuffle {
namespace {

__global__ void __launch_bounds__(kMostWarpsPerBlock* warp::kSize, blocks_of_an_sm(1, 1, 1, 1))
    split_row_kernel(DeviceProblem q, WarpTiles tiles, const float* __restrict__ left,
                     const float* __restrict__ right, float* __restrict__ out,
                     RowDistribution rows) {
  WarpTile<float, 1, 1, 1, 1>::compute_stripe(q, tiles, rows, left, right, out);
}

std::unique_ptr<Plan> plan(const PlanRequest& request) {
  const RowDistribution rows = row_distribution(request);
  return std::make_unique<ShufflePlan<float, RowDistribution>>(
      request, split_row_kernel,
      WarpWork{.tasks = rows.tasks(), .equal = rows.splits(), .accumulates = rows.splits()}, rows);
}

XCORR_VARIANT({
    .summary = "Warp-shuffle whose overlaps are cut into stripes of rows, added atomically",
    .parent = "warp_shuffle",
    .source = "section 4.2.1",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::definition_atomic,
    .axes = {warps_per_block_axis(),
             distribution_axis(),
             {"rows_per_thread", {"1", "2", "4", "8", "16"}}},
    .drops = {distribution_drop()},
    .supports = [](const PlanRequest& request) { return stripes_fit(request); },
    .plan = plan,
});

}  // namespace
}  // namespace xcorr::warp_shuffle
