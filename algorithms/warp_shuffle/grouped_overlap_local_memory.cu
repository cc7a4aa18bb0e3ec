// Grouped-overlap in local memory: the ablation of thesis section 3.5.4. The kernel of
// grouped_overlap, but a run-time index selects the half of the left buffers that a lane passes on.
// Registers cannot be indexed, so that the compiler places the buffers in local memory, and every
// step stores and loads them. The difference to grouped_overlap is the gain from static indexing.
//
// Parameters and limits: those of grouped_overlap.
// Measured (H200, one-to-one, 256 x 256, 4 and 4): four times the time of grouped_overlap.
// Instructions are issued in 18 % of the cycles; otherwise warps wait for local memory.
#include "algorithms/blocks/points.hpp"
#include "algorithms/warp_shuffle/warp_plan.hpp"
#include "algorithms/warp_shuffle/warp_tile.hpp"
#include "harness/variant.hpp"

namespace xcorr::warp_shuffle {
namespace {

using Overlaps = PointAxis<Values<2, 4>, Values<4>>;
using LeftRows = PointAxis<Values<2, 4>>;

template <int kOverlaps, int kLeftRows>
__global__ void __launch_bounds__(kMostWarpsPerBlock* warp::kSize,
                                  blocks_of_an_sm(1, 1, kOverlaps, kLeftRows))
    grouped_overlap_local_memory_kernel(DeviceProblem q, WarpTiles tiles,
                                        const float* __restrict__ left,
                                        const float* __restrict__ right, float* __restrict__ out) {
  WarpTile<float, 1, 1, kOverlaps, kLeftRows, LocalMemoryBuffers>::compute(q, tiles, left, right,
                                                                           out);
}

const bool kKernels = add_kernels<Overlaps, LeftRows>(XCORR_ID, [](auto overlaps, auto rows) {
  return grouped_overlap_local_memory_kernel<overlaps, rows>;
});

std::unique_ptr<Plan> plan(const PlanRequest& request) {
  const int overlaps = request.params.get_int("overlaps_per_thread");
  const auto kernel = find_kernel<ShufflePlan<float>::Kernel>(
      XCORR_ID, {overlaps, request.params.get_int("left_rows")});
  return std::make_unique<ShufflePlan<float>>(
      request, kernel, WarpWork{.tasks = ceil_div<Index>(request.problem.out_rows(), overlaps)});
}

XCORR_VARIANT({
    .summary = "Ablation: grouped-overlap whose left buffers lie in local memory",
    .parent = "grouped_overlap",
    .source = "thesis section 3.5.4",
    .backend = Backend::cuda,
    .forms = {Form::one_to_one},
    .axes = {warps_per_block_axis(), Overlaps::axis("overlaps_per_thread"),
             LeftRows::axis("left_rows")},
    .supports = one_sum_fits,
    .plan = plan,
});

}  // namespace
}  // namespace xcorr::warp_shuffle
