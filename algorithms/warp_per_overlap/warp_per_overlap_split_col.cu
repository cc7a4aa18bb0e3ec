// Warp-per-overlap with split-col (paper section 3.3): warp_per_overlap_split_row with stripes of
// columns in place of rows. Matrices are stored row by row, so that the lanes of a warp read narrow
// pieces of many rows. The paper says that stripes of rows are better there; this variant measures
// by how much.
//
// Parameters and limits: those of warp_per_overlap_split_row. One column of 32 rows is 32 pieces of
// memory; 16 columns (cols_per_warp) are 2 or 3.
#include "algorithms/blocks/row_distribution.hpp"
#include "algorithms/warp_per_overlap/overlap_tasks.hpp"
#include "harness/variant.hpp"

namespace xcorr::warp_per_overlap {
namespace {

// The problem with rows and columns exchanged. Its distribution of rows distributes the columns of
// `q`.
Problem transposed(Problem q) {
  std::swap(q.left.rows, q.left.cols);
  std::swap(q.right.rows, q.right.cols);
  std::swap(q.window.sy, q.window.sx);
  return q;
}

// The columns of the tasks are output rows.
template <bool kSamePitch>
__global__ void __launch_bounds__(kMostThreads, 1)
    warp_per_overlap_split_col_kernel(DeviceProblem q, const __grid_constant__ OverlapTasks tasks,
                                      const float* __restrict__ left,
                                      const float* __restrict__ right, float* __restrict__ out,
                                      RowDistribution cols) {
  const std::uint32_t task = tasks.mine();
  if (task >= tasks.count) return;
  std::uint32_t row = task;
  const Stripe stripe = cols.stripe(static_cast<int>(tasks.columns.split(row)));
  if (stripe.first == stripe.end) return;  // an unused task
  const int sy = q.first_sy + static_cast<int>(row), sx = q.first_sx + stripe.row;
  const Span y(q.left_rows, q.right_rows, sy);
  Span x(q.left_cols, q.right_cols, sx);
  x.first = stripe.first;
  x.count = stripe.end - stripe.first;
  const PairOverlap<float> first(q, left, right, y.first, y.count, x, sy, sx);
  out += static_cast<Index>(row) * q.out_cols + stripe.row;
  each_pair<kSamePitch>(q, tasks, first, [&](std::uint32_t p, float sum) {
    write_stripe(out + p * q.out_size, sum, stripe.whole);
  });
}

RowDistribution distribution(const PlanRequest& request) {
  return {transposed(request.problem), RowDistribution::parse(request.params.get("distribution")),
          request.params.get_int("cols_per_warp")};
}

Support supports(const PlanRequest& request) {
  const RowDistribution cols = distribution(request);
  const Support stripes = cols.fits();
  return stripes ? tasks_fit(transposed(request.problem), cols.tasks()) : stripes;
}

std::unique_ptr<Plan> plan(const PlanRequest& request) {
  const Problem& q = request.problem;
  const RowDistribution cols = distribution(request);
  return std::make_unique<OverlapPlan<float, RowDistribution>>(
      request,
      q.left.cols == q.right.cols ? warp_per_overlap_split_col_kernel<true>
                                  : warp_per_overlap_split_col_kernel<false>,
      cols.tasks(), q.out_rows(), cols.splits(), cols);
}

XCORR_VARIANT({
    .summary = "Several warps per output element, a stripe of columns each, added atomically",
    .parent = "warp_per_overlap_split_row",
    .source = "section 3.3",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::definition_atomic,
    .axes = {overlaps_per_block_axis(),
             {"distribution", {"rectangle", "triangle"}},
             {"cols_per_warp", {"1", "8", "16"}}},
    .supports = supports,
    .plan = plan,
});

}  // namespace
}  // namespace xcorr::warp_per_overlap
