// Multi-matrix-right with grouped-overlap (paper section 4.3.3, thesis 3.5.5): the tile of
// grouped_overlap for several right matrices at once. With r right matrices, s overlaps and l left
// rows, r l s FMAs need 2 l + r (s + l - 1) shuffles: the left rows move once for all r.
//
// Parameters and limits: those of grouped_overlap and multi_matrix_right.
// Measured (H200, 1:32, 256 x 256, r = s = l = 4): the shuffle pipe is busy in 88 % of the cycles,
// the FMA pipe in 39 %. 128 registers leave an SM 16 of its 64 warps.
#include "algorithms/blocks/points.hpp"
#include "algorithms/warp_shuffle/warp_plan.hpp"
#include "algorithms/warp_shuffle/warp_tile.hpp"
#include "harness/variant.hpp"

XCORR_COMPILE_IN_PARTS(2);

namespace xcorr::warp_shuffle {
namespace {

using RightMats = PointAxis<Values<1, 2, 4>, Values<2, 4>>;
using Overlaps = PointAxis<Values<1, 2, 4>, Values<1, 4>>;
using LeftRows = PointAxis<Values<1, 2, 4>, Values<1, 4>>;

template <int kRightMats, int kOverlaps, int kLeftRows>
__global__ void __launch_bounds__(kMostWarpsPerBlock* warp::kSize,
                                  blocks_of_an_sm(1, kRightMats, kOverlaps, kLeftRows))
    multi_matrix_right_grouped_overlap_kernel(DeviceProblem q, WarpTiles tiles,
                                              const float* __restrict__ left,
                                              const float* __restrict__ right,
                                              float* __restrict__ out) {
  WarpTile<float, 1, kRightMats, kOverlaps, kLeftRows>::compute(q, tiles, left, right, out);
}

const bool kKernels =
    add_kernels<RightMats, Overlaps, LeftRows>(XCORR_ID, [](auto rights, auto overlaps, auto rows) {
      return multi_matrix_right_grouped_overlap_kernel<rights, overlaps, rows>;
    });

std::unique_ptr<Plan> plan(const PlanRequest& request) {
  const Params& params = request.params;
  const int right_mats =
      RightMats::fitting(params.get_int("right_mats"), rights_of_a_left(request.problem));
  const int overlaps = params.get_int("overlaps_per_thread");
  return std::make_unique<ShufflePlan<float>>(
      request,
      find_kernel<ShufflePlan<float>::Kernel>(XCORR_ID,
                                              {right_mats, overlaps, params.get_int("left_rows")}),
      WarpWork{.tasks = ceil_div<Index>(request.problem.out_rows(), overlaps),
               .right_mats = right_mats});
}

XCORR_VARIANT({
    .summary = "Several right matrices and several outputs below each other at once",
    .parent = "multi_matrix_right",
    .source = "section 4.3.3",
    .backend = Backend::cuda,
    .forms = {Form::one_to_many, Form::n_to_mn, Form::n_to_m},
    .axes = {warps_per_block_axis(), RightMats::axis("right_mats"),
             Overlaps::axis("overlaps_per_thread"), LeftRows::axis("left_rows"), streams_axis()},
    .supports = streams_and_sums_fit,
    .plan = plan,
});

}  // namespace
}  // namespace xcorr::warp_shuffle
