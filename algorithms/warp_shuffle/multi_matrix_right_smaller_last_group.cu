// Multi-matrix-right with a smaller last group (thesis section 3.4.4): derived from
// multi_matrix_right, which takes groups of r right matrices. Where r does not divide the number of
// right matrices of a left one, the last group is incomplete. multi_matrix_right computes it as a
// complete group: missing matrices are zeros, and their products cost time. In the thesis the last
// few matrices "form a smaller matrix group which will choose the implementation based on its
// size". Here the kernel contains the code of each size from 1 to r, and a warp runs the code of
// the size of its group. No load, shuffle or product of a missing matrix is executed.
//
// This variant is the form of the thesis. multi_matrix_right exists beside it because its kernel
// contains the code of one size: where r divides the number of matrices, both do the same work.
// Measured (H200): as fast as multi_matrix_right, within 3 %.
//
// Parameters: those of multi_matrix_right. Limits: those of warp_shuffle.
#include "algorithms/blocks/points.hpp"
#include "algorithms/warp_shuffle/warp_plan.hpp"
#include "algorithms/warp_shuffle/warp_tile.hpp"
#include "harness/variant.hpp"

namespace xcorr::warp_shuffle {
namespace {

using RightMats = PointAxis<Values<1, 2, 4, 8>>;

// The task of a warp for one left matrix and kCount right matrices, all of which exist: WarpTile
// for buffers that stay in place, without the conditions on missing matrices.
template <typename T, int kCount>
class GroupOfSize {
 public:
  __device__ __forceinline__ void add(const PairGroup<T>& pairs, const WarpColumns& at,
                                      const OverlapGroup& group) {
    const int lane = warp::lane();
    for (int y = group.begin; y < group.end; ++y) {
      RegisterBuffers<T, 1> left;
      pairs.lefts.template load<1, 1>(y, at.begin - at.sx - opaque(lane), group.end,
                                      [&](int, int, T value) { left.set_bottom(0, value); });
#pragma unroll 1
      for (int x = at.begin; x < at.end; x += warp::kSize) {
        T right[kCount];
        pairs.rights.template load<kCount, 1>(y + group.sy, x + opaque(lane), pairs.rights.rows,
                                              [&](int j, int, T value) { right[j] = value; });
        pairs.lefts.template load<1, 1>(y, x - at.sx + warp::kSize - opaque(lane), group.end,
                                        [&](int, int, T value) { left.set_top(0, value); });
        const int steps = at.end - x;
        // Steps beyond `steps` multiply by zeros.
#pragma unroll
        for (int first = 0; first < warp::kSize; first += kUnrolled) {
          if (first > 0 && first >= steps) break;
#pragma unroll
          for (int step = first; step < first + kUnrolled; ++step) {
            const T item = step > 0 ? left.item_after(0, step, lane) : left.item(0);
#pragma unroll
            for (int j = 0; j < kCount; ++j) sums_[j] += item * warp::shuffle(right[j], step);
          }
        }
        left.next();
      }
    }
  }

  __device__ __forceinline__ void write(const DeviceProblem& q, const PairGroup<T>& pairs,
                                        const WarpColumns& at, int row, T* out) const {
    const int lane = opaque(warp::lane());
    if (lane >= at.lanes) return;
    out += pairs.first_pair * q.out_size + static_cast<Index>(row) * q.out_cols + at.out + lane;
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      *out = sums_[j];
      out += q.out_size;
    }
  }

 private:
  static constexpr int kUnrolled = 4;  // as in WarpTile
  T sums_[kCount] = {};
};

// Runs the code of the size of the group. The size is the same in all lanes of a warp.
template <int kCount, typename T>
__device__ __forceinline__ void compute_group(const DeviceProblem& q, const PairGroup<T>& pairs,
                                              const WarpColumns& at, const OverlapGroup& group,
                                              T* out) {
  if constexpr (kCount > 1) {
    if (pairs.rights.count < kCount) {
      compute_group<kCount - 1>(q, pairs, at, group, out);
      return;
    }
  }
  GroupOfSize<T, kCount> tile;
  tile.add(pairs, at, group);
  tile.write(q, pairs, at, group.out, out);
}

template <int kRightMats>
__global__ void __launch_bounds__(kMostWarpsPerBlock* warp::kSize,
                                  blocks_of_an_sm(1, kRightMats, 1, 1))
    multi_matrix_right_smaller_last_group_kernel(DeviceProblem q, WarpTiles tiles,
                                                 const float* __restrict__ left,
                                                 const float* __restrict__ right,
                                                 float* __restrict__ out) {
  const int task = tiles.task();
  if (!tiles.exists(task)) return;
  const OverlapGroup group(q, task, 1);
  tiles.for_each<1, kRightMats>(q, left, right,
                                [&](const PairGroup<float>& pairs, const WarpColumns& columns) {
                                  compute_group<kRightMats>(q, pairs, columns, group, out);
                                });
}

const bool kKernels = add_kernels<RightMats>(
    XCORR_ID, [](auto rights) { return multi_matrix_right_smaller_last_group_kernel<rights>; });

std::unique_ptr<Plan> plan(const PlanRequest& request) {
  const int right_mats =
      RightMats::fitting(request.params.get_int("right_mats"), rights_of_a_left(request.problem));
  return std::make_unique<ShufflePlan<float>>(
      request, find_kernel<ShufflePlan<float>::Kernel>(XCORR_ID, {right_mats}),
      WarpWork{.tasks = request.problem.out_rows(), .right_mats = right_mats});
}

XCORR_VARIANT({
    .summary = "Multi-matrix-right whose last group runs the code of its smaller size",
    .parent = "multi_matrix_right",
    .source = "thesis section 3.4.4",
    .backend = Backend::cuda,
    .forms = {Form::one_to_many, Form::n_to_mn, Form::n_to_m},
    .axes = {warps_per_block_axis(), RightMats::axis("right_mats"), streams_axis()},
    .supports = streams_and_sums_fit,
    .plan = plan,
});

}  // namespace
}  // namespace xcorr::warp_shuffle
