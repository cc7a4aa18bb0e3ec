// Warp-shuffle with the buffers of the paper (section 4.1.1): a warp computes 32 neighbouring
// outputs of one row. The warp keeps 64 items of a left row in a ring buffer of registers, two
// items per lane. In every step all items move to the neighbouring lane: two shuffles. Each lane
// multiplies its item by the right value of the step, which the lane that loaded it broadcasts: one
// shuffle. An item that leaves the lower half has been used by all lanes and is dropped. After 32
// steps the upper half of the buffer has moved into the lower half, and the warp loads 32 new left
// items and 32 new right values.
//
// Derived from warp_shuffle, which has the same loads, products and order of work, but not these
// steps. There the items of a buffer stay in place, and step k fetches each item over k lanes. A
// step does not wait for the shuffles of the step before it, and the steps end after the last
// column that a lane needs. Here every step waits for the previous rotation, and each block of 32
// columns takes 32 steps, also the last one, which may have only one useful column. This variant
// shows what the paper's steps cost; all else, such as the order in which warps take rows
// (warp_plan.hpp), is the project's in both.
//
// The paper's loop of 32 steps is unrolled (section 4.1.2), as it is here. The paper's items move
// to lower lanes. Here they move to higher lanes, because lane t computes shift sx + t of the right
// against the left (warp_buffer.hpp).
// Limits: those of warp_shuffle. fp32 only.
#include "algorithms/warp_shuffle/rotating_rows.hpp"
#include "algorithms/warp_shuffle/warp_plan.hpp"
#include "algorithms/warp_shuffle/warp_tile.hpp"
#include "harness/variant.hpp"

namespace xcorr::warp_shuffle {
namespace {

__global__ void __launch_bounds__(kMostWarpsPerBlock* warp::kSize, blocks_of_an_sm(1, 1, 1, 1))
    warp_shuffle_rotating_kernel(DeviceProblem q, WarpTiles tiles, const float* __restrict__ left,
                                 const float* __restrict__ right, float* __restrict__ out) {
  const int task = tiles.task();
  if (!tiles.exists(task)) return;
  const OverlapGroup overlap(q, task, 1);
  tiles.for_each<1, 1>(q, left, right,
                       [&](const PairGroup<float>& pair, const WarpColumns& columns) {
                         RotatingRows<float, 1> sum;
#pragma unroll 1
                         for (int y = overlap.begin; y < overlap.end; ++y) {
                           sum.add<1, 0, 1, warp::kSize>(pair, columns, y, overlap.sy);
                         }
                         sum.write(q, pair, columns, overlap.out, 1, out);
                       });
}

std::unique_ptr<Plan> plan(const PlanRequest& request) {
  return std::make_unique<ShufflePlan<float>>(request, warp_shuffle_rotating_kernel,
                                              WarpWork{.tasks = request.problem.out_rows()});
}

XCORR_VARIANT({
    .summary = "Warp-shuffle as in the paper: the buffer rotates in each of always 32 steps",
    .parent = "warp_shuffle",
    .source = "section 4.1.1",
    .backend = Backend::cuda,
    .axes = {warps_per_block_axis()},
    .supports = one_sum_fits,
    .plan = plan,
});

}  // namespace
}  // namespace xcorr::warp_shuffle
