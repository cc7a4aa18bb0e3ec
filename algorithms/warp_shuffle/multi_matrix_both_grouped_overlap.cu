// Multi-matrix-both with grouped-overlap (paper section 4.3.3 and Fig. 13): the largest tile of the
// family. A lane computes `overlaps_per_thread` vertically adjacent outputs of all pairs of
// `left_mats` lefts and `right_mats` rights, `left_rows` left rows at a time. With a lefts, b
// rights, s overlaps and l left rows, a b s l FMAs cost 2 a l + b (s + l - 1) shuffles: 256 : 60
// with four of each, where the FMA units become the limit.
//
// Forms: n-to-m. Parameters: left_mats, right_mats, overlaps_per_thread, left_rows (1, 2, 4 each),
// compile-time: the sums alone take left_mats x right_mats x overlaps_per_thread registers;
// warps_per_block (4, 8), run-time. Limits: as grouped_overlap and multi_matrix_both.
//
// Profile (H200, 32:32, 128 x 128, 2 x 2 matrices, 4 overlaps, 4 rows): the shuffle pipe is busy
// 80 % of the time, the FMA pipe 42 %. 119 registers leave an SM 16 warps of 64, too few to hide
// every shuffle.
#include "algorithms/device/points.hpp"
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
  const int task = tiles.task();
  if (!tiles.exists(task)) return;
  const OverlapGroup group(q, task * kOverlaps, kOverlaps);
  tiles.for_each<kLeftMats, kRightMats>(
      q, left, right, [&](const PairGroup<float>& pairs, const WarpColumns& columns) {
        WarpTile<float, kLeftMats, kRightMats, kOverlaps, kLeftRows> tile;
        tile.add(pairs, columns, group.sy, group.begin, group.end);
        tile.write(q, pairs, columns, group.out, group.count, out);
      });
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
    .supports = [](const PlanRequest& request) { return steps_fit(request.problem); },
    .plan = plan,
});

}  // namespace
}  // namespace xcorr::warp_shuffle
