// Multi-matrix-both (paper section 4.3.2, thesis 3.5.2): derived from multi_matrix_right, for
// n-to-m, where several left matrices are correlated with the same right matrices. A lane computes
// the same shift of all pairs of l lefts and r rights. l r FMAs need 2 l + r shuffles: 12 for 16
// FMAs with l = r = 4.
//
// left_mats is l, right_mats is r. High values have more reuse, one register more for each pair,
// and fewer tasks. Where there are fewer matrices, the smallest built value that holds them is
// used.
// Limits: those of warp_shuffle; an incomplete last group takes as long as a complete group.
// Measured (H200, 32:32, 64 x 64, l = r = 4): the shuffle pipe is busy in 93 % of the cycles, the
// FMA pipe in 31 %.
#include "algorithms/blocks/points.hpp"
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
    multi_matrix_both_kernel(DeviceProblem q, WarpTiles tiles, const float* __restrict__ left,
                             const float* __restrict__ right, float* __restrict__ out) {
  WarpTile<float, kLeftMats, kRightMats, 1, 1>::compute(q, tiles, left, right, out);
}

const bool kKernels = add_kernels<LeftMats, RightMats>(
    XCORR_ID, [](auto lefts, auto rights) { return multi_matrix_both_kernel<lefts, rights>; });

std::unique_ptr<Plan> plan(const PlanRequest& request) {
  const Problem& q = request.problem;
  const int left_mats = LeftMats::fitting(request.params.get_int("left_mats"), q.lefts);
  const int right_mats = RightMats::fitting(request.params.get_int("right_mats"), q.rights);
  return std::make_unique<ShufflePlan<float>>(
      request, find_kernel<ShufflePlan<float>::Kernel>(XCORR_ID, {left_mats, right_mats}),
      WarpWork{.tasks = q.out_rows(), .left_mats = left_mats, .right_mats = right_mats});
}

XCORR_VARIANT({
    .summary = "Warp-shuffle of several left matrices with several right ones at once",
    .parent = "multi_matrix_right",
    .source = "section 4.3.2",
    .backend = Backend::cuda,
    .forms = {Form::n_to_m},
    .axes = {warps_per_block_axis(), LeftMats::axis("left_mats"), RightMats::axis("right_mats")},
    .supports = one_sum_fits,
    .plan = plan,
});

}  // namespace
}  // namespace xcorr::warp_shuffle
