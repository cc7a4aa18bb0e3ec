// The simple CUDA program of the ISS paper (section 4.3, before its line kernel): a thread has one
// shift (X0, Y0) and sums over the pixels with two loops. Derived from autocorr_simple: the loops
// over shifts become threads. The paper binds the image to a texture; here the loads use the
// read-only path, which has the same cache. Each line has a separate sum, as each column has in
// autocorr_simple.
//
// A block is 32 shifts sx wide and 4 shifts sy high. No symmetry.
// Limits: at most 2^31 - 1 rows and columns. A product needs two loads from the L1 cache. Half a
// plane up to R = 100 has 20,301 shifts, fewer than the threads that a GPU holds, and each of them
// sums a million products one after the other.
#include "algorithms/blocks/plan.hpp"

namespace xcorr::autocorrelation {
namespace {

constexpr int kWidth = warp::kSize, kHeight = 4;
constexpr int kBlocksResident = 8;  // the compiler then uses 64 registers and spills none

// grid: columns (x), rows in a stride (y), pairs in a stride (z).
__global__ void __launch_bounds__(kWidth* kHeight, kBlocksResident)
    autocorr_cuda_simple_kernel(Geometry q, const float* __restrict__ images,
                                float* __restrict__ out) {
  const Index col = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (col >= q.out_cols()) return;
  const Index sx = q.window.sx.first + col;
  const Overlap x = overlap(q.left.cols, q.left.cols, sx);
  for (Index p = blockIdx.z; p < q.pairs(); p += gridDim.z) {
    for (Index row = static_cast<Index>(blockIdx.y) * blockDim.y + threadIdx.y; row < q.out_rows();
         row += static_cast<Index>(gridDim.y) * blockDim.y) {
      const Index sy = q.window.sy.first + row;
      const Overlap y = overlap(q.left.rows, q.left.rows, sy);
      const float* left = images + p * q.left.size() + y.first * q.left.cols + x.first;
      const float* right = left + sy * q.left.cols + sx;
      float sum = 0;
      for (Index line = 0; line < y.count; ++line) {
        float of_line = 0;
        for (int i = 0; i < static_cast<int>(x.count); ++i) of_line += left[i] * right[i];
        sum += of_line;
        left += q.left.cols;
        right += q.left.cols;
      }
      out[(p * q.out_rows() + row) * q.out_cols() + col] = sum;
    }
  }
}

class SimplePlan final : public DevicePlan<float> {
 public:
  explicit SimplePlan(const PlanRequest& request) : DevicePlan(request.problem) {}

 private:
  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    const dim3 grid(static_cast<unsigned>(ceil_div<Index>(problem_.out_cols(), kWidth)),
                    grid_extent(ceil_div<Index>(problem_.out_rows(), kHeight)),
                    grid_extent(problem_.pairs()));
    launch(autocorr_cuda_simple_kernel, grid, dim3(kWidth, kHeight), 0, call.stream,
           Geometry(problem_), arrays.left, arrays.out);
  }
};

XCORR_VARIANT({
    .summary = "Autocorrelation: one thread per shift, the image through the read-only path",
    .parent = "autocorr_simple",
    .source = "ISS paper, section 4.3",
    .backend = Backend::cuda,
    .forms = {Form::one_to_one, Form::n_to_mn},
    .same_only = true,
    .supports = [](const PlanRequest& request) { return indices_fit(request.problem); },
    .plan = make_plan<SimplePlan>,
});

}  // namespace
}  // namespace xcorr::autocorrelation
