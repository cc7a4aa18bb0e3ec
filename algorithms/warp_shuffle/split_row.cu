// Split-row (paper section 4.2.1 and thesis 3.4.2, "work distribution"): a step from warp_shuffle,
// for problems with too few overlaps to fill the card. Each overlap is cut into stripes of at most
// rows_per_thread rows, a warp computes one stripe for 32 neighbouring shifts, and the partial sums
// of an overlap are added atomically into the output, which is cleared first. The ratio of FMAs to
// shuffles stays 1 : 3; there are more and more equal warps.
//
// Forms: all. Parameters, run-time: warps_per_block (4, 8); distribution, how stripes are numbered:
// `triangle` has exactly one task for each stripe and finds it by a square root, `rectangle` gives
// every overlap as many tasks as the tallest has, so about half of them end at once, `none` splits
// nothing and so has no rows_per_thread; rows_per_thread (1 to 16): fewer rows, more warps, each
// with its loads, index arithmetic and 32 atomic additions.
//
// An overlap of a single stripe is written, not added; where all are, nothing is cleared.
// Limits: as warp_shuffle; at most 2^30 stripes. Sums of reals depend on the order of
// additions.
//
// Profile (H200, one-to-one): at 256 x 256 and 4 rows the shuffle pipe is busy 98 % of the time,
// the FMA pipe 12 %; at 64 x 64 and 1 row, where half of the instructions are around the
// products, 80 % and 17 %.
#include "algorithms/device/row_distribution.hpp"
#include "algorithms/warp_shuffle/warp_plan.hpp"
#include "algorithms/warp_shuffle/warp_tile.hpp"
#include "harness/variant.hpp"

namespace xcorr::warp_shuffle {
namespace {

__global__ void __launch_bounds__(kMostWarpsPerBlock* warp::kSize, blocks_of_an_sm(1, 1, 1, 1))
    split_row_kernel(DeviceProblem q, WarpTiles tiles, const float* __restrict__ left,
                     const float* __restrict__ right, float* __restrict__ out,
                     RowDistribution rows) {
  const int task = tiles.task();
  if (!tiles.exists(task)) return;
  const Stripe stripe = rows.stripe(task);
  if (stripe.first == stripe.end) return;  // a surplus task
  tiles.for_each<1, 1>(q, left, right,
                       [&](const PairGroup<float>& pair, const WarpColumns& columns) {
                         WarpTile<float, 1, 1, 1, 1> tile;
                         tile.add(pair, columns, q.first_sy + stripe.row, stripe.first, stripe.end);
                         tile.write_stripe(q, pair, columns, stripe, out);
                       });
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
