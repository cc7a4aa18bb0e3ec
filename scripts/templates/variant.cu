// @ID@, derived from @PARENT@: say here what changes and what it should gain.
//
// As generated, a thread computes outputs_per_thread neighbouring outputs by definition. A block
// stages the left rows in shared memory, and the right matrices lie between columns of zeros in the
// workspace, so that the inner loop has no condition.
//
// Forms: all four, any shapes, any window. Source: paper or thesis section.
// Parameters: outputs_per_thread (1, 2, 4), compile-time: more products for each load from shared
// memory, and more registers. tile_cols (64, 256), run-time: shared memory of a block.
// Limits: at most 2^30 rows and columns, 2^31 - 1 pairs. A NaN or infinity meets the zeros, so it
// spreads to outputs that its own overlap does not reach.
#include "algorithms/device/cuda.hpp"
#include "algorithms/blocks/overlap_geometry.hpp"
#include "algorithms/blocks/pairs.hpp"
#include "algorithms/blocks/plan.hpp"
#include "algorithms/blocks/points.hpp"
#include "harness/variant.hpp"

namespace xcorr::@FAMILY@ {
namespace {

// A compile-time axis: the values that --grid paper builds, then those of --grid quick.
using Outputs = PointAxis<Values<1, 2, 4>, Values<1, 4>>;

constexpr int kBlockCols = 32;  // neighbouring lanes take neighbouring sx: consecutive loads
constexpr int kBlockRows = 4;
constexpr int kThreads = kBlockCols * kBlockRows;
constexpr int kBlocksPerSm = 8;  // at least: the compiler then uses 64 registers at most

// A row of a padded right matrix: element i belongs to right column first_sx + i. The last block of
// columns may compute outputs that do not exist; they read zeros here too.
Index pitch_of(const Problem& q) {
  return q.left.cols + (q.out_cols() + kBlockCols * 4 - 1) / (kBlockCols * 4) * (kBlockCols * 4);
}

// Problem has 64-bit numbers and methods that branch, for the host. A kernel takes DeviceProblem:
// the same in 32-bit numbers, by value; offsets of elements stay 64-bit.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    pad_right(DeviceProblem q, Index rows, Index pitch, const T* __restrict__ right,
              T* __restrict__ padded) {
  for (Index row = blockIdx.x; row < rows; row += gridDim.x) {
    for (Index i = threadIdx.x; i < pitch; i += kThreads) {
      const Index x = q.first_sx + i;
      if (x >= 0 && x < q.right_cols) padded[row * pitch + i] = right[row * q.right_cols + x];
    }
  }
}

// Grid: blocks of columns, of rows (in a stride), pairs (in a stride).
template <typename T, int kOutputs>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm)
    correlate(DeviceProblem q, Pairing pairing, Index pairs, int tile_cols, Index pitch,
              const T* __restrict__ lefts, const T* __restrict__ padded, T* __restrict__ outs) {
  T* const tile = dynamic_shared<T>();
  const int thread = static_cast<int>(threadIdx.y * kBlockCols + threadIdx.x);
  const Index first_col = static_cast<Index>(blockIdx.x) * kBlockCols * kOutputs + threadIdx.x;
  for (Index p = blockIdx.z; p < pairs; p += gridDim.z) {
    const Pair pair = pairing.pair(static_cast<std::uint32_t>(p));
    const T* const left = lefts + pair.left * q.left_size;
    const T* const right = padded + pair.right * q.right_rows * pitch;
    for (Index block_row = static_cast<Index>(blockIdx.y) * kBlockRows; block_row < q.out_rows;
         block_row += static_cast<Index>(gridDim.y) * kBlockRows) {
      // The remainder: a thread without an output stays for the barriers, and adds and writes
      // nothing. Left rows that any of the block's outputs needs are visited by all.
      const Index row = block_row + threadIdx.y;
      const int sy = static_cast<int>(q.first_sy + row);
      const Index last_sy = q.first_sy + block_row + kBlockRows - 1;
      const Index begin = last_sy < 0 ? -last_sy : 0;
      const Index height = q.right_rows - (q.first_sy + block_row);
      const Index end = height < q.left_rows ? height : q.left_rows;
      T sum[kOutputs] = {};
      for (Index y = begin; y < end; ++y) {
        const bool mine = row < q.out_rows && y + sy >= 0 && y + sy < q.right_rows;
        for (Index x0 = 0; x0 < q.left_cols; x0 += tile_cols) {
          const int count =
              static_cast<int>(q.left_cols - x0 < tile_cols ? q.left_cols - x0 : tile_cols);
          for (int x = thread; x < count; x += kThreads) tile[x] = left[y * q.left_cols + x0 + x];
          block::barrier();
          if (mine) {
            const T* const right_row = right + (y + sy) * pitch + x0 + first_col;
            for (int x = 0; x < count; ++x) {
#pragma unroll
              for (int i = 0; i < kOutputs; ++i) sum[i] += tile[x] * right_row[x + i * kBlockCols];
            }
          }
          block::barrier();
        }
      }
#pragma unroll
      for (int i = 0; i < kOutputs; ++i) {
        const Index col = first_col + i * kBlockCols;
        if (row < q.out_rows && col < q.out_cols) {
          outs[p * q.out_size + row * q.out_cols + col] = sum[i];
        }
      }
    }
  }
}

template <typename T>
using Kernel = void (*)(DeviceProblem, Pairing, Index, int, Index, const T*, const T*, T*);

const bool kKernels =
    add_kernels<Outputs>(XCORR_ID, [](auto outputs) { return correlate<float, outputs>; }) &&
    add_kernels<Outputs>(XCORR_ID, [](auto outputs) { return correlate<double, outputs>; });

// What is kept between calls: the launches and the workspace.
template <typename T>
class KernelPlan final : public DevicePlan<T> {
 public:
  explicit KernelPlan(const PlanRequest& request)
      : DevicePlan<T>(request.problem),
        device_problem_(request.problem),
        pairing_(request.problem),
        pairs_(request.problem.pairs()),
        right_rows_(request.problem.rights * request.problem.right.rows),
        pitch_(pitch_of(request.problem)),
        tile_cols_(request.params.get_int("tile_cols")),
        padded_(static_cast<T*>(request.workspace)) {
    const int outputs = request.params.get_int("outputs_per_thread");
    kernel_ = find_kernel<Kernel<T>>(XCORR_ID, {outputs});
    const Problem& q = request.problem;
    grid_ = dim3(static_cast<unsigned>(ceil_div<Index>(q.out_cols(), kBlockCols * outputs)),
                 grid_extent(ceil_div<Index>(q.out_rows(), kBlockRows)), grid_extent(pairs_));
    rows_ = grid_extent(right_rows_);
  }

 private:
  // The inputs may differ from call to call, so everything that is made of them is made here.
  void enqueue(const Call& call, const Arrays<T>& arrays) override {
    call.phase("clear");  // the time of a phase has a column of its own in the rows
    clear(padded_, static_cast<std::size_t>(right_rows_ * pitch_) * sizeof(T), call.stream);
    call.phase("rest");
    launch(pad_right<T>, dim3(rows_), dim3(kThreads), 0, call.stream, device_problem_, right_rows_,
           pitch_, arrays.right, padded_);
    launch(kernel_, grid_, dim3(kBlockCols, kBlockRows),
           static_cast<std::size_t>(tile_cols_) * sizeof(T), call.stream, device_problem_, pairing_,
           pairs_, tile_cols_, pitch_, arrays.left, padded_, arrays.out);
  }

  DeviceProblem device_problem_;
  Pairing pairing_;
  Index pairs_, right_rows_, pitch_;
  int tile_cols_;
  T* padded_;
  Kernel<T> kernel_;
  dim3 grid_;
  unsigned rows_;
};

// Memory of the device that the harness allocates, and that is the plan's until it is destroyed.
std::size_t workspace_bytes(const PlanRequest& request) {
  const Problem& q = request.problem;
  const std::size_t scalar = request.precision == Precision::fp64 ? sizeof(double) : sizeof(float);
  return static_cast<std::size_t>(q.rights * q.right.rows * pitch_of(q)) * scalar;
}

XCORR_VARIANT({
    .summary = "@ID@: one line for the table",
    .parent = "@PARENT@",
    .source = "none",
    .backend = Backend::cuda,
    .precisions = {Precision::fp32, Precision::fp64},
    .axes = {Outputs::axis("outputs_per_thread"), {"tile_cols", {"64", "256"}}},
    .supports = [](const PlanRequest& request) { return steps_fit(request.problem); },
    .workspace_bytes = workspace_bytes,
    .plan = plan_in_precision<KernelPlan>,
});

}  // namespace
}  // namespace xcorr::@FAMILY@
