// Warp-per-overlap with split-row (thesis 3.6.7, "work distribution"): derived from
// warp_per_overlap, for problems whose outputs are too few to fill the GPU even with one warp each.
// Each overlap is cut into stripes of rows, numbered as in split_row (row_distribution.hpp). A warp
// computes one stripe of one output, and the stripes of an output are added atomically to an output
// that every call clears first. An overlap of one stripe is written without addition; if all are,
// nothing is cleared.
//
// overlaps_per_block is the number of warps, here stripes, of a block. rows_per_warp is the number
// of rows of a stripe: fewer rows make more warps, each with its index arithmetic, reduction and
// atomic addition.
// Limits: those of warp_per_overlap; at most 2^30 stripes. Sums depend on the order of the
// additions.
// Measured (H200, one-to-one, 128 x 128, 16 rows): 17 instructions of a warp for each FMA, issued
// in 67 % of the cycles.
#include "algorithms/blocks/row_distribution.hpp"
#include "algorithms/warp_per_overlap/overlap_tasks.hpp"
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
  if (stripe.first == stripe.end) return;  // an unused task
  const int sy = q.first_sy + stripe.row, sx = q.first_sx + static_cast<int>(col);
  const Span x(q.left_cols, q.right_cols, sx);
  const PairOverlap<float> first(q, left, right, stripe.first, stripe.end - stripe.first, x, sy,
                                 sx);
  out += static_cast<Index>(stripe.row) * q.out_cols + col;
  each_pair<kSamePitch>(q, tasks, first, [&](std::uint32_t p, float sum) {
    write_stripe(out + p * q.out_size, sum, stripe.whole);
  });
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
      request,
      q.left.cols == q.right.cols ? warp_per_overlap_split_row_kernel<true>
                                  : warp_per_overlap_split_row_kernel<false>,
      rows.tasks(), q.out_cols(), rows.splits(), rows);
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
