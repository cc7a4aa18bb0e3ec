// Multi-matrix-right with split-row (paper section 4.3.3): multi_matrix_right whose overlaps are
// cut into stripes of rows as in split_row, for few matrices that do not fill the GPU. At the end
// of a stripe each lane makes right_mats atomic additions.
//
// Parameters and limits: those of multi_matrix_right and split_row.
// Measured (H200, 1:32, 64 x 64, r = 8, 1 row): the shuffle pipe is busy in 96 % of the cycles, the
// FMA pipe in 20 %.
#include "algorithms/blocks/points.hpp"
#include "algorithms/blocks/row_distribution.hpp"
#include "algorithms/warp_shuffle/warp_plan.hpp"
#include "algorithms/warp_shuffle/warp_tile.hpp"
#include "harness/variant.hpp"

namespace xcorr::warp_shuffle {
namespace {

using RightMats = PointAxis<Values<1, 2, 4, 8>, Values<2, 4, 8>>;

template <int kRightMats>
__global__ void __launch_bounds__(kMostWarpsPerBlock* warp::kSize,
                                  blocks_of_an_sm(1, kRightMats, 1, 1))
    multi_matrix_right_split_row_kernel(DeviceProblem q, WarpTiles tiles,
                                        const float* __restrict__ left,
                                        const float* __restrict__ right, float* __restrict__ out,
                                        RowDistribution rows) {
  WarpTile<float, 1, kRightMats, 1, 1>::compute_stripe(q, tiles, rows, left, right, out);
}

const bool kKernels = add_kernels<RightMats>(
    XCORR_ID, [](auto rights) { return multi_matrix_right_split_row_kernel<rights>; });

std::unique_ptr<Plan> plan(const PlanRequest& request) {
  using Plan = ShufflePlan<float, RowDistribution>;
  const RowDistribution rows = row_distribution(request);
  const int right_mats =
      RightMats::fitting(request.params.get_int("right_mats"), rights_of_a_left(request.problem));
  return std::make_unique<Plan>(request, find_kernel<Plan::Kernel>(XCORR_ID, {right_mats}),
                                WarpWork{.tasks = rows.tasks(),
                                         .right_mats = right_mats,
                                         .equal = rows.splits(),
                                         .accumulates = rows.splits()},
                                rows);
}

XCORR_VARIANT({
    .summary = "Several right matrices at once, overlaps cut into stripes of rows",
    .parent = "multi_matrix_right",
    .source = "section 4.3.3",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::definition_atomic,
    .forms = {Form::one_to_many, Form::n_to_mn, Form::n_to_m},
    .axes = {warps_per_block_axis(),
             RightMats::axis("right_mats"),
             distribution_axis(),
             {"rows_per_thread", {"1", "4", "8", "16"}},
             streams_axis()},
    .drops = {distribution_drop()},
    .supports =
        [](const PlanRequest& request) {
          const Support streams = streams_fit(request);
          return streams ? stripes_fit(request) : streams;
        },
    .plan = plan,
});

}  // namespace
}  // namespace xcorr::warp_shuffle
