// Grouped-overlap with the phases of the paper (section 4.2.2, thesis 3.5.3): a lane computes s
// vertically adjacent outputs. Their overlaps begin and end in different left rows. Therefore the
// first and last left rows of a group belong to some of its overlaps only. A warp takes the left
// rows in three phases:
//
// - initial: the overlaps begin one after the other. Each left row has a loop of its own, compiled
//   for exactly the overlaps that have begun: at most s - 1 rows, one row at a time.
// - main: all s overlaps contain the row. A warp takes l left rows at a time with l + s - 1 right
//   rows, and no load has a condition on rows. Rows that do not fill a group of l follow singly.
// - final: the overlaps end one after the other, as they began: at most s - 1 rows.
//
// Derived from grouped_overlap, which has no phases. It takes l left rows at a time from the first
// row to the last, and rows outside a matrix are zeros that are multiplied like others. Zeros cost
// FMAs and shuffles. The phases compute no products with zero rows, but a single row of n overlaps
// needs n + 2 shuffles for n FMAs. This variant is the paper's kernel, for a comparison of both
// ways. Therefore it also has the paper's steps (rotating_rows.hpp): the buffers rotate, and 32
// columns take 32 steps. In grouped_overlap the buffers stay in place up to l s = 16, and steps end
// after the last column. So a comparison with grouped_overlap shows the phases and the steps
// together; warp_shuffle_rotating shows the steps alone.
//
// The last group of a problem may have fewer than s outputs; it is computed as if it had s. Right
// matrices with fewer than s rows make overlaps end in the initial phase, which loads zeros for the
// missing rows.
//
// overlaps_per_thread is s, left_rows is l. Limits: those of warp_shuffle. fp32 only.
#include "algorithms/blocks/points.hpp"
#include "algorithms/warp_shuffle/rotating_rows.hpp"
#include "algorithms/warp_shuffle/warp_plan.hpp"
#include "algorithms/warp_shuffle/warp_tile.hpp"
#include "harness/variant.hpp"

namespace xcorr::warp_shuffle {
namespace {

using Overlaps = PointAxis<Values<1, 2, 4, 8>, Values<1, 4>>;
using LeftRows = PointAxis<Values<1, 2, 4, 8>, Values<1, 2, 4>>;

// Unrolled steps where a warp takes one row at a time. There are up to 2 s - 1 such loops; with all
// 32 steps unrolled they would be 90 KiB of code for s = 8.
constexpr int kUnrolledSingly = 4;

// The phases of one group of overlaps, one pair and one block of columns.
template <int kOverlaps, int kLeftRows>
class Phases {
 public:
  __device__ __forceinline__ Phases(const DeviceProblem& q, const OverlapGroup& group,
                                    const PairGroup<float>& pair, const WarpColumns& columns)
      : group_(group),
        pair_(pair),
        columns_(columns),
        main_begin_(group.sy < 0 ? -group.sy : 0),
        right_end_(q.right_rows - group.sy) {}

  __device__ __forceinline__ void compute() {
    initial_phase<kOverlaps - 1>();
    main_phase();
    final_phase<kOverlaps - 1>();
  }

  __device__ __forceinline__ void write(const DeviceProblem& q, float* out) const {
    sums_.write(q, pair_, columns_, group_.out, group_.count, out);
  }

 private:
  // The left row in which overlap kFirst begins, for overlaps kFirst .. s - 1; then the next rows.
  template <int kFirst>
  __device__ __forceinline__ void initial_phase() {
    if constexpr (kFirst > 0) {
      const int y = -group_.sy - kFirst;
      if (y >= group_.begin && y < group_.end) {
        sums_.template add<1, kFirst, kOverlaps, kUnrolledSingly, RightRows::some>(pair_, columns_,
                                                                                   y, group_.sy);
      }
      initial_phase<kFirst - 1>();
    }
  }

  // All s overlaps: right row y + sy + s - 1 exists.
  __device__ __forceinline__ void main_phase() {
    const int last = right_end_ - (kOverlaps - 1);
    const int end = last < group_.end ? last : group_.end;
    int y = main_begin_;
#pragma unroll 1
    for (; y + kLeftRows <= end; y += kLeftRows) {
      sums_.template add<kLeftRows, 0, kOverlaps, kUnrolled>(pair_, columns_, y, group_.sy);
    }
    if constexpr (kLeftRows > 1) {
#pragma unroll 1
      for (; y < end; ++y) {
        sums_.template add<1, 0, kOverlaps, kUnrolledSingly>(pair_, columns_, y, group_.sy);
      }
    }
  }

  // The last left row of overlap kLast - 1, for overlaps 0 .. kLast - 1; then the next rows.
  template <int kLast>
  __device__ __forceinline__ void final_phase() {
    if constexpr (kLast > 0) {
      const int y = right_end_ - kLast;
      if (y >= main_begin_ && y < group_.end) {
        sums_.template add<1, 0, kLast, kUnrolledSingly>(pair_, columns_, y, group_.sy);
      }
      final_phase<kLast - 1>();
    }
  }

  // The 32 steps of a large tile do not fit the instruction cache.
  static constexpr int kUnrolled = kOverlaps * kLeftRows <= 16 ? warp::kSize : 4;

  const OverlapGroup& group_;
  const PairGroup<float>& pair_;
  const WarpColumns& columns_;
  int main_begin_;  // first left row of overlap 0: all overlaps have begun
  int right_end_;   // left row after the last one of overlap 0
  RotatingRows<float, kOverlaps> sums_;
};

template <int kOverlaps, int kLeftRows>
__global__ void __launch_bounds__(kMostWarpsPerBlock* warp::kSize,
                                  blocks_of_an_sm(1, 1, kOverlaps, kLeftRows))
    grouped_overlap_phases_kernel(DeviceProblem q, WarpTiles tiles, const float* __restrict__ left,
                                  const float* __restrict__ right, float* __restrict__ out) {
  const int task = tiles.task();
  if (!tiles.exists(task)) return;
  const OverlapGroup group(q, task * kOverlaps, kOverlaps);
  tiles.for_each<1, 1>(q, left, right,
                       [&](const PairGroup<float>& pair, const WarpColumns& columns) {
                         Phases<kOverlaps, kLeftRows> phases(q, group, pair, columns);
                         phases.compute();
                         phases.write(q, out);
                       });
}

const bool kKernels = add_kernels<Overlaps, LeftRows>(XCORR_ID, [](auto overlaps, auto rows) {
  return grouped_overlap_phases_kernel<overlaps, rows>;
});

std::unique_ptr<Plan> plan(const PlanRequest& request) {
  const int overlaps = request.params.get_int("overlaps_per_thread");
  const auto kernel = find_kernel<ShufflePlan<float>::Kernel>(
      XCORR_ID, {overlaps, request.params.get_int("left_rows")});
  return std::make_unique<ShufflePlan<float>>(
      request, kernel, WarpWork{.tasks = ceil_div<Index>(request.problem.out_rows(), overlaps)});
}

XCORR_VARIANT({
    .summary = "Grouped-overlap as in the paper: rows of some overlaps only in separate phases",
    .parent = "grouped_overlap",
    .source = "section 4.2.2",
    .backend = Backend::cuda,
    .axes = {warps_per_block_axis(), Overlaps::axis("overlaps_per_thread"),
             LeftRows::axis("left_rows")},
    .supports = one_sum_fits,
    .plan = plan,
});

}  // namespace
}  // namespace xcorr::warp_shuffle
