// The plan of a kernel whose warps take 32 neighbouring shifts each: the grid, the clear, and the
// two ways of n-to-mn.
//
// Grid: x is the tasks of 32 output columns (`warps_per_block` tasks per block), y the groups of
// pairs, z the blocks of columns; y and z are in a stride. The variant defines a task (a row, a
// group of rows, a stripe) and a group (a pair, a group of matrices).
//
// Overlaps in the middle of the output are the largest, and a kernel ends with its last warp.
// Therefore blocks of columns start from the middle outwards. If tasks have unequal size too and
// there are few blocks, the warps of a block take tasks that are spread evenly over all rows, so
// that all blocks have equal work. If there are many blocks, the warps of a block take neighbours,
// which end together, and the tasks in the middle start first.
#pragma once

#include <algorithm>
#include <memory>
#include <tuple>

#include "algorithms/blocks/divide.hpp"
#include "algorithms/blocks/overlap_geometry.hpp"
#include "algorithms/blocks/plan.hpp"
#include "algorithms/blocks/streams.hpp"

namespace xcorr::warp_shuffle {

inline constexpr int kMostWarpsPerBlock = 8;
inline Axis warps_per_block_axis() { return {"warps_per_block", {"4", "8"}}; }

// n-to-mn as in the paper (section 5.3.4): one launch per left matrix, over this number of streams.
// Or one kernel with an additional index, over the pairs of all left matrices.
inline constexpr const char* kOneKernel = "one_kernel";
inline Axis streams_axis() { return {"streams", {kOneKernel, "1", "8", "20"}}; }
inline Support streams_fit(const PlanRequest& request) {
  if (request.problem.form == Form::n_to_mn || request.params.get("streams") == kOneKernel) {
    return yes();
  }
  return no("streams=" + request.params.get("streams") + " is for n-to-mn; else one_kernel");
}

inline Support streams_and_sums_fit(const PlanRequest& request) {
  const Support streams = streams_fit(request);
  return streams ? one_sum_fits(request) : streams;
}

// The work that a warp takes at once.
struct WarpWork {
  Index tasks = 0;  // per block of columns
  int left_mats = 1;
  int right_mats = 1;
  bool equal = false;        // tasks have equal size: neighbours share a block and its loads
  bool accumulates = false;  // outputs are sums over tasks and are cleared first
};

// The tiles of a warp. Set on the host, passed to the kernel by value.
class WarpTiles {
 public:
  WarpTiles(const Problem& q, const WarpWork& work, int warps)
      : tasks_(static_cast<int>(work.tasks)),
        column_blocks_(static_cast<int>(ceil_div<Index>(q.out_cols(), warp::kSize))),
        groups_of_a_left_(ceil_div<Index>(rights_of_a_left(q), work.right_mats)),
        groups_(static_cast<std::uint32_t>(ceil_div<Index>(q.lefts, work.left_mats)) *
                groups_of_a_left_.by) {
    const auto blocks = ceil_div<Index>(work.tasks, warps);
    const bool few = blocks * groups_ * column_blocks_ <= kFewBlocksOfAWarp * warps;
    order_ = work.equal ? Order::neighbours : few ? Order::spread : Order::middle_first;
    grid_ = dim3(static_cast<unsigned>(blocks), grid_extent(groups_), grid_extent(column_blocks_));
  }

  dim3 grid() const { return grid_; }

  // The shuffle from lane 0 tells the compiler that the value is the same in all lanes. Values
  // derived from it need one register per warp, and loops bounded by it need no check for
  // divergence.
  __device__ __forceinline__ int task() const {
    const auto block = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x);
    const auto warp = static_cast<int>(threadIdx.y), warps = static_cast<int>(blockDim.y);
    const int task =
        order_ == Order::spread
            ? warp * blocks + block
            : (order_ == Order::neighbours ? block : from_middle(block, blocks)) * warps + warp;
    return warp::shuffle(task, 0);
  }
  __device__ __forceinline__ bool exists(int task) const { return task < tasks_; }

  // Calls use(pairs, columns) for each group of kLeftMats x kRightMats pairs and block of columns.
  template <int kLeftMats, int kRightMats, typename T, typename Use>
  __device__ __forceinline__ void for_each(const DeviceProblem& q, const T* left, const T* right,
                                           const Use& use) const {
#pragma unroll 1
    for (int rank = static_cast<int>(blockIdx.z); rank < column_blocks_;
         rank += static_cast<int>(gridDim.z)) {
      const WarpColumns columns(q, from_middle(rank, column_blocks_));
#pragma unroll 1
      for (unsigned group = blockIdx.y; group < groups_; group += gridDim.y) {
        std::uint32_t r = group;
        const std::uint32_t l = groups_of_a_left_.split(r);
        use(PairGroup<T>(q, static_cast<int>(l), static_cast<int>(r), kLeftMats, kRightMats, left,
                         right),
            columns);
      }
    }
  }

 private:
  enum class Order { neighbours, middle_first, spread };
  // Up to this number times warps_per_block, blocks are few. Measured on an H200 in all forms:
  // spread is faster by up to a third below it and slower by up to a fifth above, because a block
  // occupies an SM until its longest warp ends.
  static constexpr Index kFewBlocksOfAWarp = small_if_emulated(256, 2);

  // The index with rank `rank` among `count` indices ordered by distance from the middle.
  static __device__ __forceinline__ int from_middle(int rank, int count) {
    const int half = (rank + 1) / 2;
    return count / 2 + (rank % 2 == 0 ? half : -half);
  }

  int tasks_, column_blocks_;
  Order order_;
  Divider groups_of_a_left_;
  std::uint32_t groups_;
  dim3 grid_;
};

template <typename T, typename... Extra>
class ShufflePlan final : public DevicePlan<T> {
 public:
  using Kernel = void (*)(DeviceProblem, WarpTiles, const T*, const T*, T*, Extra...);

  ShufflePlan(const PlanRequest& request, Kernel kernel, const WarpWork& work, Extra... extra)
      : DevicePlan<T>(request.problem, work.accumulates),
        launched_(of_one_launch(request)),
        tiles_(launched_, work, request.params.get_int("warps_per_block")),
        block_(warp::kSize, static_cast<unsigned>(request.params.get_int("warps_per_block"))),
        kernel_(kernel),
        extra_(extra...) {
    if (launched_.lefts == problem_.lefts) return;
    // With a single stream, launches use the caller's stream.
    const Index streams = std::min<Index>(request.params.get_int("streams"), problem_.lefts);
    if (streams > 1) streams_ = std::make_unique<Streams>(static_cast<int>(streams));
  }

 private:
  void enqueue(const Call& call, const Arrays<T>& arrays) override {
    if (streams_) streams_->fork(call.stream);
    for (Index left = 0; left < problem_.lefts; left += launched_.lefts) {
      const T* const lefts = arrays.left + left * problem_.left.size();
      const T* const rights = arrays.right + left * launched_.right_elements();
      T* const outs = arrays.out + left * launched_.out_elements();
      std::apply(
          [&](const Extra&... extra) {
            launch(kernel_, tiles_.grid(), block_, 0, streams_ ? (*streams_)[left] : call.stream,
                   DeviceProblem(launched_), tiles_, lefts, rights, outs, extra...);
          },
          extra_);
    }
    if (streams_) streams_->join(call.stream);
  }

  // The whole problem, or one left matrix with its rights.
  static Problem of_one_launch(const PlanRequest& request) {
    Problem q = request.problem;
    if (!request.params.has("streams") || request.params.get("streams") == kOneKernel) return q;
    q.form = Form::one_to_many;
    q.rights /= q.lefts;
    q.lefts = 1;
    return q;
  }

  using DevicePlan<T>::problem_;
  Problem launched_;  // the problem of one launch
  WarpTiles tiles_;
  dim3 block_;
  Kernel kernel_;
  std::tuple<Extra...> extra_;
  std::unique_ptr<Streams> streams_;
};

}  // namespace xcorr::warp_shuffle
