// Multi-matrix-both with grouped-overlap (paper section 4.3.3 and Fig. 13): the largest tile of the
// family. A lane computes s vertically adjacent outputs of all pairs of a lefts and b rights and
// takes l left rows at a time. a b s l FMAs need 2 a l + b (s + l - 1) shuffles: 60 for 256 FMAs if
// all four are 4. There the FMA units become the limit.
//
// left_mats is a, right_mats b, overlaps_per_thread s, left_rows l; the sums take a b s registers.
// Limits: those of grouped_overlap and multi_matrix_both.
// Measured (H200, 32:32, 128 x 128, a = b = 2, s = l = 4): the shuffle pipe is busy in 80 % of the
// cycles, the FMA pipe in 42 %. 119 registers leave an SM 16 of its 64 warps, too few to hide the
// latency of every shuffle.
#include "algorithms/blocks/points.hpp"
#include "algorithms/warp_shuffle/warp_plan.hpp"
#include "algorithms/warp_shuffle/warp_tile.hpp"
#include "harness/variant.hpp"

XCORR_COMPILE_IN_PARTS(4);

namespace xcorr::warp_shuffle {
namespace {

using LeftMats = PointAxis<Values<1, 2, 4>, Values<2, 4>>;
using RightMats = PointAxis<Values<1, 2, 4>, Values<2, 4>>;
using Overlaps = PointAxis<Values<1, 2, 4>, Values<4>>;
using LeftRows = PointAxis<Values<1, 2, 4>, Values<1, 4>>;

template <int kLeftMats, int kRightMats, int kOverlaps, int kLeftRows>
__global__ void __launch_bounds__(kMostWarpsPerBlock* warp::kSize,
                                  blocks_of_an_sm(kLeftMats, kRightMats, kOverlaps, kLeftRows))
    multi_matrix_both_grouped_overlap_kernel(DeviceProblem q, WarpTiles tiles,
                                             const float* __restrict__ left,
                                             const float* __restrict__ right,
                                             float* __restrict__ out) {
  WarpTile<float, kLeftMats, kRightMats, kOverlaps, kLeftRows>::compute(q, tiles, left, right, out);
}

const bool kKernels = add_kernels<LeftMats, RightMats, Overlaps, LeftRows>(
    XCORR_ID, [](auto lefts, auto rights, auto overlaps, auto rows) {
      return multi_matrix_both_grouped_overlap_kernel<lefts, rights, overlaps, rows>;
    });

std::unique_ptr<Plan> plan(const PlanRequest& request) {
  const Problem& q = request.problem;
  const Params& params = request.params;
  const int left_mats = LeftMats::fitting(params.get_int("left_mats"), q.lefts);
  const int right_mats = RightMats::fitting(params.get_int("right_mats"), q.rights);
  const int overlaps = params.get_int("overlaps_per_thread");
  const auto kernel = find_kernel<ShufflePlan<float>::Kernel>(
      XCORR_ID, {left_mats, right_mats, overlaps, params.get_int("left_rows")});
  return std::make_unique<ShufflePlan<float>>(
      request, kernel,
      WarpWork{.tasks = ceil_div<Index>(q.out_rows(), overlaps),
               .left_mats = left_mats,
               .right_mats = right_mats});
}

XCORR_VARIANT({
    .summary = "Several left and right matrices and several outputs below each other at once",
    .parent = "multi_matrix_both",
    .source = "section 4.3.3, Fig. 13",
    .backend = Backend::cuda,
    .forms = {Form::n_to_m},
    .axes = {warps_per_block_axis(), LeftMats::axis("left_mats"), RightMats::axis("right_mats"),
             Overlaps::axis("overlaps_per_thread"), LeftRows::axis("left_rows")},
    .supports = one_sum_fits,
    .plan = plan,
});

}  // namespace
}  // namespace xcorr::warp_shuffle
