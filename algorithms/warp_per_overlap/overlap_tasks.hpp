// The tasks of a warp or a block that computes one output: the position of the output, and the walk
// of its lanes over the flattened overlap (paper section 4.4, thesis 3.6).
//
// At 16 x 16 an overlap has 64 products on average, two per lane, so that the instructions before a
// lane's first load take longer than the products. README.md says how they are kept few.
#pragma once

#include <algorithm>
#include <tuple>

#include "algorithms/blocks/divide.hpp"
#include "algorithms/blocks/overlap_geometry.hpp"
#include "algorithms/blocks/plan.hpp"

namespace xcorr::warp_per_overlap {

// t / w for 0 <= t <= 32 and every w >= 1. Set on the host, passed to the kernel by value.
struct LaneDivider {
  static constexpr int kMost = 33;  // any larger w gives the same quotients
  LaneDivider() {
    for (int w = 1; w <= kMost; ++w) multiplier[w] = static_cast<std::uint16_t>(32768 / w + 1);
  }
  __host__ __device__ int of(int w) const { return multiplier[w < kMost ? w : kMost]; }
  __host__ __device__ static int quotient(int t, int multiplier_of_w) {
    return t * multiplier_of_w >> 15;
  }
  std::uint16_t multiplier[kMost + 1] = {};
};

// Positions of the left axis that overlap the right one at `shift`: overlap() in 32 bits.
struct Span {
  __device__ __forceinline__ Span(int left, int right, int shift) {
    first = shift < 0 ? -shift : 0;
    const int rest = right - shift;
    count = (rest < left ? rest : left) - first;
  }
  int first, count;
};

// The start of a thread in a flattened overlap, and its step to the next element.
struct FlatWalk {
  int y, x, dy, dx;
};
__device__ __forceinline__ FlatWalk lane_walk(const LaneDivider& divider, int cols) {
  const int lane = warp::lane(), multiplier = divider.of(cols);
  const int y = LaneDivider::quotient(lane, multiplier);
  const int dy = LaneDivider::quotient(warp::kSize, multiplier);
  return {y, lane - y * cols, dy, warp::kSize - dy * cols};
}

// The products of one pair at one shift; pointers to the first elements.
template <typename T>
struct PairOverlap {
  // Left rows [y, y + rows) and the columns of x, at shift (sy, sx) of the first pair.
  __device__ __forceinline__ PairOverlap(const DeviceProblem& q, const T* lefts, const T* rights,
                                         int y, int y_count, const Span& x, int sy, int sx)
      : left(lefts + offset(y, q.left_cols, x.first)),
        right(rights + offset(y + sy, q.right_cols, x.first + sx)),
        rows(y_count),
        cols(x.count),
        left_pitch(q.left_cols),
        right_pitch(q.right_cols) {}
  // No value is negative; unsigned types save instructions.
  static __device__ __forceinline__ std::uint64_t offset(int y, int pitch, int x) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(y)) *
               static_cast<std::uint32_t>(pitch) +
           static_cast<std::uint32_t>(x);
  }
  const T* left;
  const T* right;
  int rows, cols, left_pitch, right_pitch;
};

// An offset into a matrix, or into two of equal pitch. It is unsigned because it may run past the
// end of the data.
template <bool kSamePitch>
struct PairOffset {
  __device__ __forceinline__ void add(std::uint32_t l, std::uint32_t r) {
    left += l;
    if constexpr (!kSamePitch) right_ += r;
  }
  __device__ __forceinline__ std::uint32_t right() const { return kSamePitch ? left : right_; }
  std::uint32_t left = 0, right_ = 0;
};

// Rows whose offsets fit in 32 bits. More rows are processed in parts. The loop over parts runs
// once unless a matrix has billions of elements.
inline int rows_of_a_part(const Problem& q) {
  const Index elements = small_if_emulated(Index{1} << 30, 256);
  return static_cast<int>(std::max<Index>(elements / std::max(q.left.cols, q.right.cols), 1));
}
template <typename T, typename Add>
__device__ __forceinline__ void in_parts(PairOverlap<T> o, int rows_of_a_part, const Add& add) {
#pragma unroll 1
  for (int rest = o.rows;;) {
    o.rows = rest < rows_of_a_part ? rest : rows_of_a_part;
    add(o);
    rest -= o.rows;
    if (rest == 0) return;
    o.left += static_cast<Index>(o.rows) * o.left_pitch;
    o.right += static_cast<Index>(o.rows) * o.right_pitch;
  }
}

// Products in flight per thread, each with a separate sum.
constexpr int kFlatStep = 4;

// The partial sum of this thread over an overlap that `threads` threads walk in turn.
template <bool kSamePitch, typename T>
__device__ __forceinline__ T flat_sum(const PairOverlap<T>& whole, int rows_of_a_part,
                                      const FlatWalk& walk, int thread, int threads) {
  T sums[kFlatStep] = {};
  in_parts(whole, rows_of_a_part, [&](const PairOverlap<T>& o) {
    const auto pitch = static_cast<std::uint32_t>(o.left_pitch);
    const auto right_pitch = static_cast<std::uint32_t>(o.right_pitch);
    const auto cols = static_cast<std::uint32_t>(o.cols);
    const auto y = static_cast<std::uint32_t>(walk.y), x = static_cast<std::uint32_t>(walk.x);
    const auto dy = static_cast<std::uint32_t>(walk.dy), dx = static_cast<std::uint32_t>(walk.dx);
    PairOffset<kSamePitch> at;
    at.add(y * pitch + x, y * right_pitch + x);
    int beyond = walk.x - o.cols;  // >= 0: past the end of the row
    const auto step = [&] {
      beyond += walk.dx;
      at.add(dy * pitch + dx, dy * right_pitch + dx);
      if (beyond >= 0) {
        beyond -= o.cols;
        at.add(pitch - cols, right_pitch - cols);
      }
    };
    const auto add = [&](auto inside) {
      T a[kFlatStep], b[kFlatStep];
#pragma unroll
      for (int i = 0; i < kFlatStep; ++i) {
        a[i] = inside(i) ? o.left[at.left] : T(0);
        b[i] = inside(i) ? o.right[at.right()] : T(0);
        step();
      }
#pragma unroll
      for (int i = 0; i < kFlatStep; ++i) sums[i] += a[i] * b[i];
    };
    std::uint32_t rest = static_cast<std::uint32_t>(o.rows) * cols;
    const auto whole_step = static_cast<std::uint32_t>(kFlatStep * threads);
#pragma unroll 1
    for (; rest >= whole_step; rest -= whole_step) add([](int) { return true; });
    if (rest > 0) {
      add([&](int i) { return static_cast<std::uint32_t>(thread + i * threads) < rest; });
    }
  });
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// The tasks (outputs, or stripes of outputs) of one pair, numbered with the columns fastest, and
// the pairs. A warp takes one task, for every gridDim.z-th pair from blockIdx.z on.
struct OverlapTasks {
  __device__ __forceinline__ std::uint32_t mine() const {
    return blockIdx.x * block_stride + threadIdx.y * warp_stride;
  }
  // Moves pointers from the first matrices to those of pair p. For the first pair, the only one of
  // one-to-one, this costs a branch.
  template <typename T>
  __device__ __forceinline__ void move_to_pair(std::uint32_t p, const DeviceProblem& q,
                                               const T*& left, const T*& right) const {
    if (p == 0) return;
    const std::uint32_t l = rights_per_left.quotient(p);
    left += l * q.left_size;
    right += (p - l * rights_back) * q.right_size;
  }
  std::uint32_t count = 0;
  Divider columns, rights_per_left;
  std::uint32_t block_stride = 0, warp_stride = 0;
  std::uint32_t pairs = 0, rights_back = 0;
  int rows_of_a_part = 0;
  LaneDivider lanes;
};

// Calls use(p, sum) in lane 0 for each pair p of the warp: the sum of the products of its overlap.
// `first` is the overlap of the first pair.
template <bool kSamePitch, typename T, typename Use>
__device__ __forceinline__ void each_pair(const DeviceProblem& q, const OverlapTasks& tasks,
                                          const PairOverlap<T>& first, const Use& use) {
  const FlatWalk walk = lane_walk(tasks.lanes, first.cols);
  for (std::uint32_t p = blockIdx.z; p < tasks.pairs; p += gridDim.z) {
    PairOverlap<T> overlap = first;
    tasks.move_to_pair(p, q, overlap.left, overlap.right);
    const T sum = warp::reduce_add(
        flat_sum<kSamePitch>(overlap, tasks.rows_of_a_part, walk, warp::lane(), warp::kSize));
    if (warp::lane() == 0) use(p, sum);
  }
}

// Writes the sum of a stripe, or adds it if the overlap has several stripes.
__device__ __forceinline__ void write_stripe(float* element, float sum, bool whole) {
  if (whole) {
    *element = sum;
  } else {
    atomic_add(element, sum);
  }
}

// Tasks are numbered in 32 bits.
inline Support tasks_fit(const Problem& q, Index task_rows) {
  const Support steps = steps_fit(q);
  if (!steps) return steps;
  if (task_rows > kIndexLimit / q.out_cols()) {
    return no("more than 2^31 - 1 tasks of a pair");
  }
  return yes();
}

// The .supports of a variant whose tasks are outputs.
inline Support outputs_fit(const PlanRequest& request) {
  return tasks_fit(request.problem, request.problem.out_rows());
}

inline Axis overlaps_per_block_axis() { return {"overlaps_per_block", {"4", "16", "32"}}; }
inline constexpr int kMostThreads = 1024;

// A grid of warps over rows x cols tasks and the pairs; columns are numbered fastest. If matrices fit in the L1 cache,
// the warps of a block take tasks from all parts of the output: neighbours in the middle would have
// several times the average work. Otherwise they take neighbours, which share loads.
template <typename T, typename... Extra>
class OverlapPlan final : public DevicePlan<T> {
 public:
  using Kernel = void (*)(DeviceProblem, OverlapTasks, const T*, const T*, T*, Extra...);

  OverlapPlan(const PlanRequest& request, Kernel kernel, Index rows, Index cols, bool accumulates,
              Extra... extra)
      : DevicePlan<T>(request.problem, accumulates), kernel_(kernel), extra_(extra...) {
    const Problem& q = request.problem;
    const int warps = request.params.get_int("overlaps_per_block");
    constexpr Index kFewElements = small_if_emulated(16384, 300), kManyWarps = Index{1} << 16;
    const Index count = rows * cols, blocks = ceil_div<Index>(count, warps);
    const bool spread = q.left.size() + q.right.size() <= kFewElements;
    tasks_.count = static_cast<std::uint32_t>(count);
    tasks_.columns = Divider(cols);
    tasks_.rights_per_left = Divider(rights_of_a_left(q));
    tasks_.block_stride = static_cast<std::uint32_t>(spread ? 1 : warps);
    tasks_.warp_stride = static_cast<std::uint32_t>(spread ? blocks : 1);
    tasks_.pairs = static_cast<std::uint32_t>(q.pairs());
    tasks_.rights_back = static_cast<std::uint32_t>(rights_back(q));
    tasks_.rows_of_a_part = rows_of_a_part(q);
    // If there are more warps than a GPU holds, each warp takes several pairs at one shift.
    const Index most = std::min<Index>(kGridLimitYZ, ceil_div(kManyWarps, count));
    const Index pairs = ceil_div(q.pairs(), std::min(q.pairs(), most));
    grid_ =
        dim3(static_cast<unsigned>(blocks), 1, static_cast<unsigned>(ceil_div(q.pairs(), pairs)));
    block_ = dim3(warp::kSize, static_cast<unsigned>(warps));
  }

 private:
  void enqueue(const Call& call, const Arrays<T>& arrays) override {
    std::apply(
        [&](const Extra&... extra) {
          launch(kernel_, grid_, block_, 0, call.stream, DeviceProblem(this->problem_), tasks_,
                 arrays.left, arrays.right, arrays.out, extra...);
        },
        extra_);
  }

  Kernel kernel_;
  std::tuple<Extra...> extra_;
  OverlapTasks tasks_;
  dim3 grid_, block_;
};

}  // namespace xcorr::warp_per_overlap
