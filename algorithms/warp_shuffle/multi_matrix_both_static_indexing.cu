// Multi-matrix-both with static indexing: the faster kernel of the comparison in thesis section
// 3.5.4. Derived from multi_matrix_both. The left buffers are local arrays that rotate by one item
// in every step. One expression chooses whether a lane passes on an item of the bottom or of the
// top. Here that expression selects between two items at constant indices, as the thesis's `if`
// does (section 3.5.1), so that the compiler keeps the arrays in registers.
//
// multi_matrix_both_dynamic_indexing is this file with another expression. The ratio of their times
// is the gain that the thesis reports. multi_matrix_both_local_memory and multi_matrix_both differ
// in more: with up to 16 FMAs a step multi_matrix_both keeps its buffers in place instead of
// rotating them.
// Measured (H200, n-to-m): 4.4 to 5.0 times as fast as dynamic indexing, where the thesis has 2.
//
// Parameters and limits: those of multi_matrix_both.
#include "algorithms/blocks/points.hpp"
#include "algorithms/warp_shuffle/local_array.hpp"
#include "algorithms/warp_shuffle/warp_plan.hpp"
#include "algorithms/warp_shuffle/warp_tile.hpp"
#include "harness/variant.hpp"

namespace xcorr::warp_shuffle {
namespace {

using LeftMats = PointAxis<Values<1, 2, 4>, Values<2, 4>>;
using RightMats = PointAxis<Values<1, 2, 4>, Values<2, 4>>;

struct Passed {
  template <typename T, int kItems>
  __device__ static __forceinline__ T item(const T (&items)[kItems], int first, int i) {
    return select(first != 0, items[kLocalHalf + i], items[i]);
  }
};
template <typename T, int kCount>
using Buffers = LocalArrayBuffers<T, kCount, Passed>;

template <int kLeftMats, int kRightMats>
__global__ void __launch_bounds__(kMostWarpsPerBlock* warp::kSize,
                                  blocks_of_an_sm(kLeftMats, kRightMats, 1, 1))
    multi_matrix_both_static_indexing_kernel(DeviceProblem q, WarpTiles tiles,
                                             const float* __restrict__ left,
                                             const float* __restrict__ right,
                                             float* __restrict__ out) {
  WarpTile<float, kLeftMats, kRightMats, 1, 1, Buffers>::compute(q, tiles, left, right, out);
}

const bool kKernels = add_kernels<LeftMats, RightMats>(XCORR_ID, [](auto lefts, auto rights) {
  return multi_matrix_both_static_indexing_kernel<lefts, rights>;
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
    .summary = "Multi-matrix-both whose rotating left buffers have constant indices",
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
