// @ID@, a step from @PARENT@: say here what changes and what it should gain.
// Source: paper or thesis section. Forms: all four, any shapes, any window.
// Parameters: none yet; say which are compile-time, which run-time, and what each trades.
// Limits: at most 2^31 - 1 rows, columns and pairs. As generated, a thread computes one output
// element and nothing is reused.
#include "algorithms/device/cuda.hpp"
#include "algorithms/device/pairs.hpp"
#include "algorithms/device/plan.hpp"
#include "harness/variant.hpp"

namespace xcorr::@FAMILY@ {
namespace {

constexpr int kBlockCols = 32;  // neighbouring threads take neighbouring sx: consecutive loads
constexpr int kBlockRows = 4;

// Grid: columns, rows (in a stride), pairs (in a stride).
template <typename T>
__global__ void __launch_bounds__(kBlockCols* kBlockRows)
    one_output_a_thread(Problem q, Pairing pairing, const T* __restrict__ lefts,
                        const T* __restrict__ rights, T* __restrict__ out) {
  const Index col = static_cast<Index>(blockIdx.x) * kBlockCols + threadIdx.x;
  if (col >= q.out_cols()) return;  // legal while the block has no barrier and no warp operation
  const Index sx = q.window.sx.first + col;
  const Overlap x = overlap(q.left.cols, q.right.cols, sx);
  for (Index p = blockIdx.z; p < q.pairs(); p += gridDim.z) {
    const Pair pair = pairing.pair(static_cast<std::uint32_t>(p));
    for (Index row = static_cast<Index>(blockIdx.y) * kBlockRows + threadIdx.y; row < q.out_rows();
         row += static_cast<Index>(gridDim.y) * kBlockRows) {
      const Index sy = q.window.sy.first + row;
      const Overlap y = overlap(q.left.rows, q.right.rows, sy);
      const T* left = lefts + pair.left * q.left.size() + y.first * q.left.cols + x.first;
      const T* right =
          rights + pair.right * q.right.size() + (y.first + sy) * q.right.cols + x.first + sx;
      T sum = 0;
      for (Index i = 0; i < y.count; ++i) {
        for (Index j = 0; j < x.count; ++j) {
          sum += left[i * q.left.cols + j] * right[i * q.right.cols + j];
        }
      }
      out[(p * q.out_rows() + row) * q.out_cols() + col] = sum;
    }
  }
}

// What can be kept between calls: here only the launch.
template <typename T>
class KernelPlan final : public DevicePlan<T> {
 public:
  explicit KernelPlan(const PlanRequest& request)
      : DevicePlan<T>(request.problem), pairing_(request.problem) {
    const Problem& q = request.problem;
    grid_ = dim3(static_cast<unsigned>(ceil_div<Index>(q.out_cols(), kBlockCols)),
                 grid_extent(ceil_div<Index>(q.out_rows(), kBlockRows)), grid_extent(q.pairs()));
  }

 private:
  void enqueue(const Call& call, const Arrays<T>& arrays) override {
    launch(one_output_a_thread<T>, grid_, dim3(kBlockCols, kBlockRows), 0, call.stream,
           this->problem_, pairing_, arrays.left, arrays.right, arrays.out);
  }

  Pairing pairing_;
  dim3 grid_;
};

XCORR_VARIANT({
    .summary = "@ID@: one line for the table",
    .parent = "@PARENT@",
    .source = "none",
    .backend = Backend::cuda,
    .precisions = {Precision::fp32, Precision::fp64},
    .supports = [](const PlanRequest& request) { return indices_fit(request.problem); },
    .plan = plan_in_precision<KernelPlan>,
});

}  // namespace
}  // namespace xcorr::@FAMILY@
