// Warp-per-overlap with split-row (thesis 3.6.7, "work distribution"): a step from
// warp_per_overlap, for problems so small that not even a warp for each output fills the card. Each
// overlap is cut into stripes of at most rows_per_warp rows, numbered as in split_row; a warp
// computes one stripe of one output, and the partial sums are added atomically into the output,
// which is cleared first, inside compute.
//
// Forms: all. Parameters, run-time: overlaps_per_block (4, 16, 32), here stripes: the warps of a
// block; distribution: `triangle` has exactly one warp for each stripe and finds it by a square
// root, `rectangle` gives every overlap as many warps as the tallest has stripes, so about half of
// them end at once; rows_per_warp (1, 8, 16): fewer rows, more warps, each with its index
// arithmetic, its reduction and one atomic addition.
//
// An overlap of a single stripe is written, not added; where all are, nothing is cleared.
// Limits: as warp_per_overlap; at most 2^30 stripes, and as many times columns. Sums of reals
// depend on the order of additions.
//
// Profile (H200, one-to-one, 128 x 128, 16 rows): 17 instructions for each FMA of a warp, issued
// in 67 % of the cycles.
#include "algorithms/warp_per_overlap/overlap_tasks.hpp"
#include "algorithms/device/row_distribution.hpp"
#include "harness/variant.hpp"

namespace xcorr::warp_per_overlap {
namespace {

template <bool kSamePitch>
__global__ void __launch_bounds__(kMostThreads, 1)
    warp_per_overlap_split_row_kernel(DeviceProblem q, const __grid_constant__ OverlapTasks tasks,
                                      const float* __restrict__ left,
                                      const float* __restrict__ right, float* __restrict__ out,
                                      RowDistribution rows) {
  const std::uint32_t task = tasks.mine();
  if (task >= tasks.count) return;
  std::uint32_t col = task;
  const Stripe stripe = rows.stripe(static_cast<int>(tasks.columns.split(col)));
  if (stripe.first == stripe.end) return;  // a surplus task
  const int sy = q.first_sy + stripe.row, sx = q.first_sx + static_cast<int>(col);
  const Span x(q.left_cols, q.right_cols, sx);
  const FlatWalk walk = lane_walk(tasks.lanes, x.count);
  const PairOverlap<float> first(q, left, right, stripe.first, stripe.end - stripe.first, x, sy,
                                 sx);
  out += static_cast<Index>(stripe.row) * q.out_cols + col;
  for (std::uint32_t p = blockIdx.z; p < tasks.pairs; p += gridDim.z) {
    PairOverlap<float> overlap = first;
    tasks.move_to_pair(p, q, overlap.left, overlap.right);
    const float sum = warp::reduce_add(
        flat_sum<kSamePitch>(overlap, tasks.rows_of_a_part, walk, warp::lane(), warp::kSize));
    if (warp::lane() != 0) continue;
    float* const element = out + p * q.out_size;
    if (stripe.whole) {
      *element = sum;
    } else {
      atomic_add(element, sum);
    }
  }
}

RowDistribution distribution(const PlanRequest& request) {
  return {request.problem, RowDistribution::parse(request.params.get("distribution")),
          request.params.get_int("rows_per_warp")};
}

Support supports(const PlanRequest& request) {
  const RowDistribution rows = distribution(request);
  const Support stripes = rows.fits();
  return stripes ? tasks_fit(request.problem, rows.tasks()) : stripes;
}

std::unique_ptr<Plan> plan(const PlanRequest& request) {
  const Problem& q = request.problem;
  const RowDistribution rows = distribution(request);
  return std::make_unique<OverlapPlan<float, RowDistribution>>(
      q, request.params.get_int("overlaps_per_block"),
      q.left.cols == q.right.cols ? warp_per_overlap_split_row_kernel<true>
                                  : warp_per_overlap_split_row_kernel<false>,
      rows.tasks(), rows.splits(), rows);
}

XCORR_VARIANT({
    .summary = "Several warps per output element, a stripe of rows each, added atomically",
    .parent = "warp_per_overlap",
    .source = "thesis 3.6.7",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::definition_atomic,
    .axes = {overlaps_per_block_axis(),
             {"distribution", {"rectangle", "triangle"}},
             {"rows_per_warp", {"1", "8", "16"}}},
    .supports = supports,
    .plan = plan,
});

}  // namespace
}  // namespace xcorr::warp_per_overlap
