// Grouped-overlap with split-row: the combination of which the paper says that it "often turns out
// to be counterproductive" (section 3.3), and which it does not build. Derived from
// grouped_overlap. A lane computes s vertically adjacent outputs for a part of their left rows
// (group_stripes.hpp), and adds its s sums atomically to an output that every call clears first. A
// group of one stripe is written without addition; if all are, nothing is cleared.
//
// Split-row makes more warps of a problem that does not fill the GPU, grouping makes fewer of them
// with more products per shuffle. Here the number of warps is that of split_row with the same rows,
// divided by s.
//
// Parameters: overlaps_per_thread and left_rows are those of grouped_overlap, distribution is that
// of split_row. rows_per_thread is the number of left rows of a stripe, a multiple of s. There are
// few points: 4 warps per block as in the paper's figures, and no distribution none, which is
// grouped_overlap.
// Limits: those of warp_shuffle; at most 2^30 stripes. Sums depend on the order of the additions.
// Measured (H200): 570 us for one pair of 256 x 256, where grouped_overlap takes 887 us and split_row
// 1767 us. With 32 rights of 128 x 128, which fill the GPU, it takes 1.5 times as long as
// grouped_overlap, which has points of 8 outputs per lane.
#include "algorithms/blocks/points.hpp"
#include "algorithms/warp_shuffle/group_stripes.hpp"
#include "algorithms/warp_shuffle/warp_plan.hpp"
#include "algorithms/warp_shuffle/warp_tile.hpp"
#include "harness/variant.hpp"

namespace xcorr::warp_shuffle {
namespace {

using Overlaps = PointAxis<Values<2, 4>>;
using LeftRows = PointAxis<Values<2, 4>>;

template <int kOverlaps, int kLeftRows>
__global__ void __launch_bounds__(kMostWarpsPerBlock* warp::kSize,
                                  blocks_of_an_sm(1, 1, kOverlaps, kLeftRows))
    grouped_overlap_split_row_kernel(DeviceProblem q, WarpTiles tiles,
                                     const float* __restrict__ left,
                                     const float* __restrict__ right, float* __restrict__ out,
                                     GroupStripes stripes) {
  WarpTile<float, 1, 1, kOverlaps, kLeftRows>::compute_group_stripe(q, tiles, stripes, left, right,
                                                                    out);
}

const bool kKernels = add_kernels<Overlaps, LeftRows>(XCORR_ID, [](auto overlaps, auto rows) {
  return grouped_overlap_split_row_kernel<overlaps, rows>;
});

GroupStripes group_stripes(const PlanRequest& request) {
  const Params& params = request.params;
  return {request.problem, params.get_int("overlaps_per_thread"),
          RowDistribution::parse(params.get("distribution")), params.get_int("rows_per_thread")};
}

std::unique_ptr<Plan> plan(const PlanRequest& request) {
  using Plan = ShufflePlan<float, GroupStripes>;
  const auto kernel = find_kernel<Plan::Kernel>(
      XCORR_ID,
      {request.params.get_int("overlaps_per_thread"), request.params.get_int("left_rows")});
  const GroupStripes stripes = group_stripes(request);
  return std::make_unique<Plan>(
      request, kernel,
      WarpWork{
          .tasks = stripes.tasks(), .equal = stripes.splits(), .accumulates = stripes.splits()},
      stripes);
}

XCORR_VARIANT({
    .summary =
        "Several outputs below each other a lane, for a stripe of their rows, added atomically",
    .parent = "grouped_overlap",
    .source = "section 3.3",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::definition_atomic,
    .axes = {{"warps_per_block", {"4"}},
             Overlaps::axis("overlaps_per_thread"),
             LeftRows::axis("left_rows"),
             {"distribution", {"rectangle", "triangle"}},
             {"rows_per_thread", {"4", "8", "16"}}},
    .supports =
        [](const PlanRequest& request) {
          const Support steps = steps_fit(request.problem);
          return steps ? group_stripes(request).fits() : steps;
        },
    .plan = plan,
});

}  // namespace
}  // namespace xcorr::warp_shuffle
