// Warp-per-overlap (paper section 4.4, thesis 3.6.1): a warp computes one output. Derived from
// overlap_wise, where a thread does. The overlap is flattened, lane t takes products t, t + 32 and
// so on, and shuffles add the sums of the lanes. There are 32 times as many threads, so that a
// problem of few outputs fills the GPU. Nothing is reused, and each product needs two loads.
// Therefore warp_shuffle is faster for large problems.
//
// overlaps_per_block is the number of warps of a block: blocks of few warps spread evenly over the
// SMs, blocks of more warps are fewer.
// Limits: at most 2^30 rows or columns of a matrix, 2^31 - 1 pairs, and 2^31 - 1 outputs of a pair.
// Measured (H200, 8:8 n-to-m, 64 x 64): 14 instructions for each FMA, two of them loads. They are
// issued in 63 % of the cycles; the L1 pipe is busy in 66 %, the FMA pipe in 29 %.
#include "algorithms/warp_per_overlap/overlap_tasks.hpp"
#include "harness/variant.hpp"

namespace xcorr::warp_per_overlap {
namespace {

// Two of the largest blocks would fit with 32 registers per thread, but then loads wait for each
// other.
template <typename T, bool kSamePitch>
__global__ void __launch_bounds__(kMostThreads, 1)
    warp_per_overlap_kernel(DeviceProblem q, const __grid_constant__ OverlapTasks tasks,
                            const T* __restrict__ left, const T* __restrict__ right,
                            T* __restrict__ out) {
  const std::uint32_t task = tasks.mine();
  if (task >= tasks.count) return;
  std::uint32_t col = task;
  const int row = static_cast<int>(tasks.columns.split(col));
  const int sy = q.first_sy + row, sx = q.first_sx + static_cast<int>(col);
  const Span y(q.left_rows, q.right_rows, sy), x(q.left_cols, q.right_cols, sx);
  const PairOverlap<T> first(q, left, right, y.first, y.count, x, sy, sx);
  out += task;
  each_pair<kSamePitch>(q, tasks, first,
                        [&](std::uint32_t p, T sum) { out[p * q.out_size] = sum; });
}

template <typename T>
std::unique_ptr<Plan> plan_of(const PlanRequest& request) {
  const Problem& q = request.problem;
  return std::make_unique<OverlapPlan<T>>(request,
                                          q.left.cols == q.right.cols
                                              ? warp_per_overlap_kernel<T, true>
                                              : warp_per_overlap_kernel<T, false>,
                                          q.out_rows(), q.out_cols(), false);
}

XCORR_VARIANT({
    .summary = "A warp per output element: its lanes walk the flattened overlap",
    .parent = "overlap_wise",
    .source = "section 4.4",
    .backend = Backend::cuda,
    .precisions = {Precision::fp32, Precision::fp64},
    .axes = {overlaps_per_block_axis()},
    .supports = outputs_fit,
    .plan =
        [](const PlanRequest& request) {
          return request.precision == Precision::fp64 ? plan_of<double>(request)
                                                      : plan_of<float>(request);
        },
});

}  // namespace
}  // namespace xcorr::warp_per_overlap
