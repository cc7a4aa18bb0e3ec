// Warp-per-overlap as the thesis has it (thesis 3.6.1): derived from warp_per_overlap, which finds the
// next product by additions and keeps four sums. Here each lane divides the number of its product by
// the width of the overlap: the quotient is the row of the product and the remainder its column. A
// lane has one sum, so that each addition waits for the one before.
//
// Its ratio to warp_per_overlap is what the walk without a division brings. The claims of the thesis
// on simple indexing compare with this variant.
//
// Parameters and limits: those of warp_per_overlap.
#include "algorithms/warp_per_overlap/overlap_tasks.hpp"
#include "harness/variant.hpp"

namespace xcorr::warp_per_overlap {
namespace {

// The partial sum of this lane over an overlap.
__device__ __forceinline__ float divided_sum(const PairOverlap<float>& whole, int rows_of_a_part) {
  float sum = 0.0f;
  in_parts(whole, rows_of_a_part, [&](const PairOverlap<float>& o) {
    const auto cols = static_cast<std::uint32_t>(o.cols);
    const auto pitch = static_cast<std::uint32_t>(o.left_pitch);
    const auto right_pitch = static_cast<std::uint32_t>(o.right_pitch);
    const std::uint32_t products = static_cast<std::uint32_t>(o.rows) * cols;
    for (auto i = static_cast<std::uint32_t>(warp::lane()); i < products; i += warp::kSize) {
      const std::uint32_t y = i / cols, x = i % cols;
      sum += o.left[y * pitch + x] * o.right[y * right_pitch + x];
    }
  });
  return sum;
}

__global__ void __launch_bounds__(kMostThreads)
    division_kernel(DeviceProblem q, const __grid_constant__ OverlapTasks tasks,
                    const float* __restrict__ left, const float* __restrict__ right,
                    float* __restrict__ out) {
  const std::uint32_t task = tasks.mine();
  if (task >= tasks.count) return;
  std::uint32_t col = task;
  const int row = static_cast<int>(tasks.columns.split(col));
  const int sy = q.first_sy + row, sx = q.first_sx + static_cast<int>(col);
  const Span y(q.left_rows, q.right_rows, sy), x(q.left_cols, q.right_cols, sx);
  const PairOverlap<float> first(q, left, right, y.first, y.count, x, sy, sx);
  for (std::uint32_t p = blockIdx.z; p < tasks.pairs; p += gridDim.z) {
    PairOverlap<float> overlap = first;
    tasks.move_to_pair(p, q, overlap.left, overlap.right);
    const float sum = warp::reduce_add(divided_sum(overlap, tasks.rows_of_a_part));
    if (warp::lane() == 0) out[task + p * q.out_size] = sum;
  }
}

std::unique_ptr<Plan> plan(const PlanRequest& request) {
  const Problem& q = request.problem;
  return std::make_unique<OverlapPlan<float>>(request, division_kernel, q.out_rows(), q.out_cols(),
                                              false);
}

XCORR_VARIANT({
    .summary = "Warp-per-overlap as the thesis has it: a division for each product, one sum",
    .parent = "warp_per_overlap",
    .source = "thesis 3.6.1",
    .backend = Backend::cuda,
    .axes = {overlaps_per_block_axis()},
    .supports = outputs_fit,
    .plan = plan,
});

}  // namespace
}  // namespace xcorr::warp_per_overlap
