// Multi-matrix-both with split-row (paper section 4.3.3): multi_matrix_both whose overlaps are cut
// into stripes of rows as in split_row, for few matrices that do not fill the GPU. At the end of a
// stripe each lane makes left_mats x right_mats atomic additions.
//
// Parameters and limits: those of split_row and multi_matrix_both.
// Measured (H200, 32:32, 64 x 64, l = r = 4, 4 rows): the shuffle pipe is busy in 94 % of the
// cycles, the FMA pipe in 32 %.
#include "algorithms/blocks/points.hpp"
#include "algorithms/blocks/row_distribution.hpp"
#include "algorithms/warp_shuffle/warp_plan.hpp"
#include "algorithms/warp_shuffle/warp_tile.hpp"
#include "harness/variant.hpp"

namespace xcorr::warp_shuffle {
namespace {

using LeftMats = PointAxis<Values<1, 2, 4>, Values<2, 4>>;
using RightMats = PointAxis<Values<1, 2, 4>, Values<2, 4>>;

template <int kLeftMats, int kRightMats>
__global__ void __launch_bounds__(kMostWarpsPerBlock* warp::kSize,
                                  blocks_of_an_sm(kLeftMats, kRightMats, 1, 1))
    multi_matrix_both_split_row_kernel(DeviceProblem q, WarpTiles tiles,
                                       const float* __restrict__ left,
                                       const float* __restrict__ right, float* __restrict__ out,
                                       RowDistribution rows) {
  WarpTile<float, kLeftMats, kRightMats, 1, 1>::compute_stripe(q, tiles, rows, left, right, out);
}

const bool kKernels = add_kernels<LeftMats, RightMats>(XCORR_ID, [](auto lefts, auto rights) {
  return multi_matrix_both_split_row_kernel<lefts, rights>;
});

std::unique_ptr<Plan> plan(const PlanRequest& request) {
  using Plan = ShufflePlan<float, RowDistribution>;
  const Problem& q = request.problem;
  const RowDistribution rows = row_distribution(request);
  const int left_mats = LeftMats::fitting(request.params.get_int("left_mats"), q.lefts);
  const int right_mats = RightMats::fitting(request.params.get_int("right_mats"), q.rights);
  return std::make_unique<Plan>(request,
                                find_kernel<Plan::Kernel>(XCORR_ID, {left_mats, right_mats}),
                                WarpWork{.tasks = rows.tasks(),
                                         .left_mats = left_mats,
                                         .right_mats = right_mats,
                                         .equal = rows.splits(),
                                         .accumulates = rows.splits()},
                                rows);
}

XCORR_VARIANT({
    .summary = "Several left and right matrices at once, overlaps cut into stripes of rows",
    .parent = "multi_matrix_both",
    .source = "section 4.3.3",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::definition_atomic,
    .forms = {Form::n_to_m},
    .axes = {warps_per_block_axis(),
             LeftMats::axis("left_mats"),
             RightMats::axis("right_mats"),
             distribution_axis(),
             {"rows_per_thread", {"1", "4", "8", "16"}}},
    .drops = {distribution_drop()},
    .supports = [](const PlanRequest& request) { return stripes_fit(request); },
    .plan = plan,
});

}  // namespace
}  // namespace xcorr::warp_shuffle
