// Warp-per-overlap with simple indexing (thesis 3.6.2): derived from warp_per_overlap, whose lanes
// walk the flattened overlap. Here lane t takes columns t, t + 32 and so on of every row. The loads
// of a warp are consecutive, and the next row needs one addition instead of five. If the width of
// an overlap is not a multiple of 32, lanes idle in every row: half of them on average at 32 x 32.
//
// Parameters and limits: those of warp_per_overlap.
// Measured (H200, one-to-one, 64 x 64): 14 instructions of a warp for each FMA, issued in 57 % of
// the cycles.
#include "algorithms/warp_per_overlap/overlap_tasks.hpp"
#include "harness/variant.hpp"

namespace xcorr::warp_per_overlap {
namespace {

// The partial sum of this lane over an overlap.
template <bool kSamePitch>
__device__ __forceinline__ float column_sum(const PairOverlap<float>& whole, int rows_of_a_part) {
  float sums[kFlatStep] = {};
  in_parts(whole, rows_of_a_part, [&](const PairOverlap<float>& o) {
    const auto pitch = static_cast<std::uint32_t>(o.left_pitch);
    const auto right_pitch = static_cast<std::uint32_t>(o.right_pitch);
#pragma unroll 1
    for (int x = warp::lane(); x < o.cols; x += warp::kSize) {
      PairOffset<kSamePitch> at;
      at.add(static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(x));
      const auto add = [&](auto inside) {
        float a[kFlatStep], b[kFlatStep];
#pragma unroll
        for (int i = 0; i < kFlatStep; ++i) {
          a[i] = inside(i) ? o.left[at.left] : 0.0f;
          b[i] = inside(i) ? o.right[at.right()] : 0.0f;
          at.add(pitch, right_pitch);
        }
#pragma unroll
        for (int i = 0; i < kFlatStep; ++i) sums[i] += a[i] * b[i];
      };
      int rest = o.rows;
#pragma unroll 1
      for (; rest >= kFlatStep; rest -= kFlatStep) add([](int) { return true; });
      if (rest > 0) add([&](int i) { return i < rest; });
    }
  });
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

template <bool kSamePitch>
__global__ void __launch_bounds__(kMostThreads)
    simple_indexing_kernel(DeviceProblem q, const __grid_constant__ OverlapTasks tasks,
                           const float* __restrict__ left, const float* __restrict__ right,
                           float* __restrict__ out) {
  const std::uint32_t task = tasks.mine();
  if (task >= tasks.count) return;
  std::uint32_t col = task;
  const int row = static_cast<int>(tasks.columns.split(col));
  const int sy = q.first_sy + row, sx = q.first_sx + static_cast<int>(col);
  const Span y(q.left_rows, q.right_rows, sy), x(q.left_cols, q.right_cols, sx);
  const PairOverlap<float> overlap(q, left, right, y.first, y.count, x, sy, sx);
  const float sum = warp::reduce_add(column_sum<kSamePitch>(overlap, tasks.rows_of_a_part));
  if (warp::lane() == 0) out[task] = sum;
}

std::unique_ptr<Plan> plan(const PlanRequest& request) {
  const Problem& q = request.problem;
  return std::make_unique<OverlapPlan<float>>(
      request,
      q.left.cols == q.right.cols ? simple_indexing_kernel<true> : simple_indexing_kernel<false>,
      q.out_rows(), q.out_cols(), false);
}

XCORR_VARIANT({
    .summary = "Warp-per-overlap whose lanes stride within each row: fewer additions, idle lanes",
    .parent = "warp_per_overlap",
    .source = "thesis 3.6.2",
    .backend = Backend::cuda,
    .forms = {Form::one_to_one},
    .axes = {overlaps_per_block_axis()},
    .supports = outputs_fit,
    .plan = plan,
});

}  // namespace
}  // namespace xcorr::warp_per_overlap
