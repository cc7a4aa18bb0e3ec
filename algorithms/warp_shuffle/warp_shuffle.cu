// Warp-shuffle (paper section 4.1, thesis 3.4.1): a warp computes 32 neighbouring output elements
// of a row and loads every input value once for all of them. A step from overlap_wise, where each
// thread loads its own two values for each product.
//
// Lane t computes shift sx + t. At right column c all lanes need the same right value, R[c], which
// is broadcast from the lane that loaded it, and lane t needs left value L[c - sx - t], which its
// neighbour t - 1 has used one column earlier; so left values move from lane to lane in a 64-wide
// buffer that is refilled every 32 columns. Three shuffles for each FMA: the shuffle unit, which
// retires one warp a cycle where the FMA units retire four, is the limit. Everything after this
// variant improves that ratio, or the number of warps.
//
// Forms: all; fp32 and fp64 (each shuffle of a double is two). Parameters, run-time:
// warps_per_block (4, 8), the warps of a block, each with a row of its own.
// Limits: at most 2^30 rows or columns of a matrix, 2^31 - 1 pairs; lanes beyond the last output
// column idle, as do all lanes at columns that only others need.
//
// Profile (H200, n-to-m 8:8, 128 x 128): the shuffle pipe is busy 98 % of the time, the FMA pipe
// 12 %.
#include "algorithms/warp_shuffle/warp_plan.hpp"
#include "algorithms/warp_shuffle/warp_tile.hpp"
#include "harness/variant.hpp"

namespace xcorr::warp_shuffle {
namespace {

template <typename T>
__global__ void __launch_bounds__(kMostWarpsPerBlock* warp::kSize, blocks_of_an_sm(1, 1, 1, 1))
    warp_shuffle_kernel(DeviceProblem q, WarpTiles tiles, const T* __restrict__ left,
                        const T* __restrict__ right, T* __restrict__ out) {
  const int task = tiles.task();
  if (!tiles.exists(task)) return;
  const OverlapGroup overlap(q, task, 1);
  tiles.for_each<1, 1>(q, left, right, [&](const PairGroup<T>& pair, const WarpColumns& columns) {
    WarpTile<T, 1, 1, 1, 1> tile;
    tile.add(pair, columns, overlap.sy, overlap.begin, overlap.end);
    tile.write(q, pair, columns, overlap.out, overlap.count, out);
  });
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
    .supports = [](const PlanRequest& request) { return steps_fit(request.problem); },
    .plan =
        [](const PlanRequest& request) {
          return with_scalar(request.precision, [&](auto scalar) {
            return plan_of<decltype(scalar)>(request);
          });
        },
});

}  // namespace
}  // namespace xcorr::warp_shuffle
