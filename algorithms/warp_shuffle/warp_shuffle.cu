// Warp-shuffle (paper section 4.1, thesis 3.4.1): a warp computes 32 neighbouring outputs of one
// row and loads every input value once for all of them. Derived from overlap_wise, where a thread
// loads two values for each product.
//
// Lane t computes the output at shift sx + t, where sx is the shift of lane 0. At right column c
// all lanes need the same right value, R[c]. The lane that loaded it broadcasts it: one shuffle.
// Lane t needs left value L[c - sx - t], which lane t - 1 used at column c - 1. So in every step
// the left values move to the next lane, in a buffer of 64 values (warp_buffer.hpp): two shuffles.
// Every 32 columns the buffer gets 32 new values. The other variants of the family need fewer than
// these three shuffles for each FMA, or use more warps. In fp64 a shuffle is two shuffles.
//
// Limits: at most 2^30 rows or columns of a matrix and 2^31 - 1 pairs. Lanes without an output, or
// without a product in the current column, multiply by zero. Therefore an infinity or a NaN may
// reach outputs whose overlaps do not contain it.
// Measured (H200, 8:8 n-to-m, 128 x 128): the shuffle pipe is busy in 98 % of the cycles, the FMA
// pipe in 12 %. In one cycle an SM does the shuffle of one warp or the FMAs of four warps.
#include "algorithms/warp_shuffle/warp_plan.hpp"
#include "algorithms/warp_shuffle/warp_tile.hpp"
#include "harness/variant.hpp"

namespace xcorr::warp_shuffle {
namespace {

template <typename T>
__global__ void __launch_bounds__(kMostWarpsPerBlock* warp::kSize, blocks_of_an_sm(1, 1, 1, 1))
    warp_shuffle_kernel(DeviceProblem q, WarpTiles tiles, const T* __restrict__ left,
                        const T* __restrict__ right, T* __restrict__ out) {
  WarpTile<T, 1, 1, 1, 1>::compute(q, tiles, left, right, out);
}

template <typename T>
std::unique_ptr<Plan> plan_of(const PlanRequest& request) {
  return std::make_unique<ShufflePlan<T>>(request, warp_shuffle_kernel<T>,
                                          WarpWork{.tasks = request.problem.out_rows()});
}

XCORR_VARIANT({
    .summary = "A warp takes 32 neighbouring shifts; values move between lanes, not from memory",
    .parent = "overlap_wise",
    .source = "section 4.1",
    .backend = Backend::cuda,
    .precisions = {Precision::fp32, Precision::fp64},
    .axes = {warps_per_block_axis()},
    .supports = one_sum_fits,
    .plan =
        [](const PlanRequest& request) {
          return with_scalar(request.precision,
                             [&](auto scalar) { return plan_of<decltype(scalar)>(request); });
        },
});

}  // namespace
}  // namespace xcorr::warp_shuffle
