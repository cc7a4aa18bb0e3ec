// Multi-matrix-both in local memory: the ablation of thesis section 3.5.4. The kernel of
// multi_matrix_both, but a run-time index selects the half of the left buffers that a lane passes
// on, so that the compiler places the buffers in local memory (see grouped_overlap_local_memory).
//
// Parameters and limits: those of multi_matrix_both.
// Measured (H200, 32:32, 64 x 64, 4 and 4): five times the time of multi_matrix_both. Instructions
// are issued in 18 % of the cycles; otherwise warps wait for local memory.
#include "algorithms/blocks/points.hpp"
#include "algorithms/warp_shuffle/warp_plan.hpp"
#include "algorithms/warp_shuffle/warp_tile.hpp"
#include "harness/variant.hpp"

namespace xcorr::warp_shuffle {
namespace {

using LeftMats = PointAxis<Values<2, 4>>;
using RightMats = PointAxis<Values<2, 4>, Values<4>>;

template <int kLeftMats, int kRightMats>
__global__ void __launch_bounds__(kMostWarpsPerBlock* warp::kSize,
                                  blocks_of_an_sm(kLeftMats, kRightMats, 1, 1))
    multi_matrix_both_local_memory_kernel(DeviceProblem q, WarpTiles tiles,
                                          const float* __restrict__ left,
                                          const float* __restrict__ right,
                                          float* __restrict__ out) {
  WarpTile<float, kLeftMats, kRightMats, 1, 1, LocalMemoryBuffers>::compute(q, tiles, left, right,
                                                                            out);
}

const bool kKernels = add_kernels<LeftMats, RightMats>(XCORR_ID, [](auto lefts, auto rights) {
  return multi_matrix_both_local_memory_kernel<lefts, rights>;
});

std::unique_ptr<Plan> plan(const PlanRequest& request) {
  const Problem& q = request.problem;
  const int left_mats = LeftMats::fitting(request.params.get_int("left_mats"), q.lefts);
  const int right_mats = RightMats::fitting(request.params.get_int("right_mats"), q.rights);
  return std::make_unique<ShufflePlan<float>>(
      request, find_kernel<ShufflePlan<float>::Kernel>(XCORR_ID, {left_mats, right_mats}),
      WarpWork{.tasks = q.out_rows(), .left_mats = left_mats, .right_mats = right_mats});
}

XCORR_VARIANT({
    .summary = "Ablation: multi-matrix-both whose left buffers lie in local memory",
    .parent = "multi_matrix_both",
    .source = "thesis section 3.5.4",
    .backend = Backend::cuda,
    .forms = {Form::n_to_m},
    .axes = {warps_per_block_axis(), LeftMats::axis("left_mats"), RightMats::axis("right_mats")},
    .supports = one_sum_fits,
    .plan = plan,
});

}  // namespace
}  // namespace xcorr::warp_shuffle
