// Overlap-wise (paper section 3.2): one thread computes one output, the sum of products over one
// overlap of the two matrices. Derived from cpu_definition: the loops over pairs, sy and sx become
// threads, the loops over the overlap stay.
//
// Unlike in the paper's baseline (overlap_wise_serial_batch), all pairs are parallel, so that this
// is the baseline of the CUDA variants. Neighbouring threads take neighbouring sx: of the two loads
// of a warp, one reads consecutive elements and the other one element. A thread adds eight products
// at a time to eight independent sums, since it would otherwise wait for every load.
//
// A block is 32 columns wide, or less if the window is narrower. It has one warp if the outputs do
// not fill a GPU, else four. Problems with fields (scores, circular boundary, masks, views) use
// other kernels, in float64 and slow (field_kernels.hpp).
// Limits: at most 2^31 - 1 rows, columns and pairs. Each FMA needs two loads, so that the load
// units limit the time. The score phase is not supported.
#include "algorithms/blocks/pairs.hpp"
#include "algorithms/blocks/plan.hpp"
#include "algorithms/overlap_wise/overlap_wise/field_plan.hpp"
#include "algorithms/overlap_wise/overlap_wise/tuning.hpp"
#include "harness/variant.hpp"

namespace xcorr::overlap_wise {
namespace {

// Products of a row in flight per thread, each with a separate sum.
constexpr int kStep = 8;

// sums[i] += l[i] * r[i] for i below both kCount and `cols`.
template <int kCount, bool kWhole, typename T>
__device__ __forceinline__ void add_products(T* sums, const T* __restrict__ l,
                                             const T* __restrict__ r, int cols) {
  T a[kCount], b[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const bool inside = kWhole || i < cols;
    a[i] = inside ? l[i] : T(0);
    b[i] = inside ? r[i] : T(0);
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) sums[i] += a[i] * b[i];
}

// Sum of l[y][x] * r[y][x] over rows x cols, where rows are `left_pitch` and `right_pitch` apart.
template <typename T>
__device__ __forceinline__ T sum_of_products(const T* __restrict__ left,
                                             const T* __restrict__ right, int rows, int cols,
                                             Index left_pitch, Index right_pitch) {
  T sums[kStep] = {};
  for (int y = 0; y < rows; ++y) {
    const T* l = left;
    const T* r = right;
    int rest = cols;
#pragma unroll 1
    for (; rest >= kStep; rest -= kStep, l += kStep, r += kStep) {
      add_products<kStep, true>(sums, l, r, rest);
    }
    // Four predicates at a time: with eight the compiler runs out of predicate registers.
#pragma unroll 1
    for (; rest > 0; rest -= kStep / 2, l += kStep / 2, r += kStep / 2) {
      add_products<kStep / 2, false>(sums, l, r, rest);
    }
    left += left_pitch;
    right += right_pitch;
  }
#pragma unroll
  for (int step = kStep / 2; step > 0; step /= 2) {
#pragma unroll
    for (int i = 0; i < step; ++i) sums[i] += sums[i + step];
  }
  return sums[0];
}

// grid: columns (x), rows in a stride (y), pairs in a stride (z).
template <typename T>
__global__ void __launch_bounds__(OverlapWiseTuning::kWarps* warp::kSize,
                                  OverlapWiseTuning::kBlocks)
    overlap_wise_kernel(Geometry q, Pairing pairing, const T* __restrict__ left,
                        const T* __restrict__ right, T* __restrict__ out) {
  const Index col = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (col >= q.out_cols()) return;
  const Index sx = q.window.sx.first + col;
  const Overlap x = overlap(q.left.cols, q.right.cols, sx);
  for (Index p = blockIdx.z; p < q.pairs(); p += gridDim.z) {
    const Pair lr = pairing.pair(static_cast<std::uint32_t>(p));
    const T* l = left + lr.left * q.left.size() + x.first;
    const T* r = right + lr.right * q.right.size() + x.first + sx;
    for (Index row = static_cast<Index>(blockIdx.y) * blockDim.y + threadIdx.y; row < q.out_rows();
         row += static_cast<Index>(gridDim.y) * blockDim.y) {
      const Index sy = q.window.sy.first + row;
      const Overlap y = overlap(q.left.rows, q.right.rows, sy);
      out[(p * q.out_rows() + row) * q.out_cols() + col] = sum_of_products(
          l + y.first * q.left.cols, r + (y.first + sy) * q.right.cols, static_cast<int>(y.count),
          static_cast<int>(x.count), q.left.cols, q.right.cols);
    }
  }
}

template <typename T>
class OverlapWisePlan final : public DevicePlan<T> {
 public:
  explicit OverlapWisePlan(const PlanRequest& request) : DevicePlan<T>(request.problem) {
    const Problem& problem = request.problem;
    Index width = warp::kSize;
    while (width / 2 >= problem.out_cols()) width /= 2;
    const Index rows_of_warp = warp::kSize / width;
    const Index columns = ceil_div(problem.out_cols(), width);
    const Index warps = columns * ceil_div(problem.out_rows(), rows_of_warp) * problem.pairs();
    const Index height =
        rows_of_warp * (warps < OverlapWiseTuning::kFewWarps ? 1 : OverlapWiseTuning::kWarps);
    const Index rows = ceil_div(problem.out_rows(), height);
    block_ = dim3(static_cast<unsigned>(width), static_cast<unsigned>(height));
    grid_ = dim3(static_cast<unsigned>(columns), grid_extent(rows), grid_extent(problem.pairs()));
  }

 private:
  void enqueue(const Call& call, const Arrays<T>& arrays) override {
    launch(overlap_wise_kernel<T>, grid_, block_, 0, call.stream, Geometry(this->problem_),
           Pairing(this->problem_), arrays.left, arrays.right, arrays.out);
  }

  dim3 grid_, block_;
};

std::size_t workspace_bytes(const PlanRequest& request) {
  if (request.problem.is_plain()) return 0;
  return FieldMemory(request.problem, Workspace(nullptr)).bytes;
}

std::unique_ptr<Plan> plan(const PlanRequest& request) {
  return request.problem.is_plain() ? plan_in_precision<OverlapWisePlan>(request)
                                    : plan_in_precision<FieldPlan>(request);
}

XCORR_VARIANT({
    .summary = "One thread per output element, all pairs at once",
    .parent = "cpu_definition",
    .source = "section 3.2",
    .backend = Backend::cuda,
    .precisions = {Precision::fp32, Precision::fp64},
    .boundaries = {Boundary::zero, Boundary::circular},
    .scores = {ScoreKind::product, ScoreKind::covariance, ScoreKind::ncc, ScoreKind::zncc},
    .masks = true,
    .views = {Views::dense, Views::windows, Views::channels},
    .supports = [](const PlanRequest& request) { return indices_fit(request.problem); },
    .workspace_bytes = workspace_bytes,
    .plan = plan,
});

}  // namespace
}  // namespace xcorr::overlap_wise
