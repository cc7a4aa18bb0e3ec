// Multi-matrix-right (paper section 4.3.1, thesis 3.4.4): derived from warp_shuffle, for forms in
// which a left matrix is correlated with several right matrices. A lane computes the same shift for
// r of them. The left row moves once for all r, so that r FMAs need r + 2 shuffles instead of 3 r.
//
// right_mats is r: high values have more reuse and fewer tasks. Where a left matrix has fewer
// rights, the smallest built value that holds them is used. streams is for n-to-mn: one_kernel for
// all left matrices, or one launch for each of them over this many streams (paper section 5.3.4).
// Limits: those of warp_shuffle; an incomplete last group takes as long as a complete group.
// Measured (H200, 1:32, 128 x 128, r = 8): the shuffle pipe is busy in 94 % of the cycles, the FMA
// pipe in 19 %.
#include "algorithms/blocks/points.hpp"
#include "algorithms/warp_shuffle/warp_plan.hpp"
#include "algorithms/warp_shuffle/warp_tile.hpp"
#include "harness/variant.hpp"

namespace xcorr::warp_shuffle {
namespace {

using RightMats = PointAxis<Values<1, 2, 4, 8>>;

template <int kRightMats>
__global__ void __launch_bounds__(kMostWarpsPerBlock* warp::kSize,
                                  blocks_of_an_sm(1, kRightMats, 1, 1))
    multi_matrix_right_kernel(DeviceProblem q, WarpTiles tiles, const float* __restrict__ left,
                              const float* __restrict__ right, float* __restrict__ out) {
  WarpTile<float, 1, kRightMats, 1, 1>::compute(q, tiles, left, right, out);
}

const bool kKernels =
    add_kernels<RightMats>(XCORR_ID, [](auto rights) { return multi_matrix_right_kernel<rights>; });

std::unique_ptr<Plan> plan(const PlanRequest& request) {
  const int right_mats =
      RightMats::fitting(request.params.get_int("right_mats"), rights_of_a_left(request.problem));
  return std::make_unique<ShufflePlan<float>>(
      request, find_kernel<ShufflePlan<float>::Kernel>(XCORR_ID, {right_mats}),
      WarpWork{.tasks = request.problem.out_rows(), .right_mats = right_mats});
}

XCORR_VARIANT({
    .summary = "Warp-shuffle of one left matrix with several right ones at once",
    .parent = "warp_shuffle",
    .source = "section 4.3.1",
    .backend = Backend::cuda,
    .forms = {Form::one_to_many, Form::n_to_mn, Form::n_to_m},
    .axes = {warps_per_block_axis(), RightMats::axis("right_mats"), streams_axis()},
    .supports = streams_and_sums_fit,
    .plan = plan,
});

}  // namespace
}  // namespace xcorr::warp_shuffle
