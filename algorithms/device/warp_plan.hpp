// The plan of a kernel whose warps each take 32 neighbouring shifts: the grid, the clear, and the
// two ways of n-to-mn.
//
// Grid: x is the block of 32 output columns, y the tasks of such a block (`warps_per_block` of them
// in a block of threads), z the groups of pairs; y and z are walked in a stride. Tasks and groups
// are what the variant makes of them: rows, groups of rows, stripes; pairs, groups of matrices.
#pragma once

#include <memory>
#include <tuple>

#include "algorithms/device/overlap_geometry.hpp"
#include "algorithms/device/streams.hpp"

namespace xcorr {

inline constexpr int kMostWarpsPerBlock = 8;
inline Axis warps_per_block_axis() { return {"warps_per_block", {"4", "8"}}; }

// n-to-mn as the paper launches it (section 5.3.4): one launch for each left matrix, over this
// number of streams; or one kernel with one more index, over the pairs of all left matrices.
inline constexpr const char* kOneKernel = "one_kernel";
inline Axis streams_axis() { return {"streams", {kOneKernel, "1", "8", "20"}}; }
inline Support streams_fit(const PlanRequest& request) {
  if (request.problem.form == Form::n_to_mn || request.params.get("streams") == kOneKernel) {
    return yes();
  }
  return no("streams=" + request.params.get("streams") + " is for n-to-mn; else one_kernel");
}

inline Support streams_and_steps_fit(const PlanRequest& request) {
  const Support streams = streams_fit(request);
  return streams ? steps_fit(request.problem) : streams;
}

// What a warp takes at once.
struct WarpWork {
  Index tasks = 0;  // of a block of columns
  int left_mats = 1;
  int right_mats = 1;
  bool accumulates = false;  // outputs are sums over tasks: they are cleared first
};

// Comes from lane 0, which tells the compiler that it is the same in all lanes: what depends on it
// needs one register for the warp, and loops bounded by it no check that the lanes are together.
__device__ inline int first_task() {
  return warp::shuffle(static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y), 0);
}
__device__ inline int task_stride() { return static_cast<int>(gridDim.y * blockDim.y); }

template <typename T, typename... Extra>
class WarpPlan final : public Plan {
 public:
  using Kernel = void (*)(DeviceProblem, const T*, const T*, T*, Extra...);

  WarpPlan(const PlanRequest& request, Kernel kernel, const WarpWork& work, Extra... extra)
      : problem_(request.problem),
        launched_(request.problem),
        kernel_(kernel),
        work_(work),
        extra_(extra...) {
    if (request.params.has("streams") && request.params.get("streams") != kOneKernel) {
      streams_ = std::make_unique<Streams>(request.params.get_int("streams"));
      // Each launch sees one left matrix with its rights.
      launched_.form = Form::one_to_many;
      launched_.lefts = 1;
      launched_.rights = problem_.rights / problem_.lefts;
    }
    const auto within = [](Index count) {
      return static_cast<unsigned>(count < kGridLimitYZ ? count : kGridLimitYZ);
    };
    const int warps = request.params.get_int("warps_per_block");
    block_ = dim3(warp::kSize, static_cast<unsigned>(warps));
    grid_ = dim3(static_cast<unsigned>(ceil_div<Index>(problem_.out_cols(), warp::kSize)),
                 within(ceil_div<Index>(work.tasks, warps)),
                 within(pair_groups(DeviceProblem(launched_), work.left_mats, work.right_mats)));
  }

  void compute(const Call& call) override {
    if (work_.accumulates) {
      call.phase("clear");
      clear(call.out, static_cast<std::size_t>(problem_.out_elements()) * sizeof(T), call.stream);
      call.phase("rest");
    }
    if (!streams_) {
      launch_from(call.lefts<T>(), call.rights<T>(), call.outs<T>(), call.stream);
      return;
    }
    streams_->fork(call.stream);
    for (Index left = 0; left < problem_.lefts; ++left) {
      launch_from(call.lefts<T>() + left * problem_.left.size(),
                  call.rights<T>() + left * launched_.right_elements(),
                  call.outs<T>() + left * launched_.out_elements(), (*streams_)[left]);
    }
    streams_->join(call.stream);
  }

 private:
  void launch_from(const T* left, const T* right, T* out, void* stream) const {
    std::apply(
        [&](const Extra&... extra) {
          launch(kernel_, grid_, block_, 0, stream, DeviceProblem(launched_), left, right, out,
                 extra...);
        },
        extra_);
  }

  Problem problem_, launched_;
  Kernel kernel_;
  WarpWork work_;
  std::tuple<Extra...> extra_;
  dim3 grid_, block_;
  std::unique_ptr<Streams> streams_;
};

}  // namespace xcorr
