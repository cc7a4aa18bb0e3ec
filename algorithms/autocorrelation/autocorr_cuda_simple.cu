// The simple CUDA program of the ISS paper (section 4.3, before its line kernel) without its
// texture: a thread has one shift (X0, Y0) and sums over the pixels with two loops. Derived from
// autocorr_simple: the loops over shifts become threads. The paper loads the image into a texture,
// as autocorr_cuda_simple_texture does. Here the loads use the read-only path, which has the same
// cache and needs neither a copy of the image nor coordinates.
//
// A block is 32 shifts sx wide and 4 shifts sy high. No symmetry.
// Limits: at most 2^31 - 1 rows and columns. A product needs two loads from the L1 cache. Half a
// plane up to R = 100 has 20,301 shifts, fewer than the threads that a GPU holds, and each of them
// sums a million products one after the other.
#include "algorithms/autocorrelation/simple_sums.hpp"

namespace xcorr::autocorrelation {
namespace {

struct ArrayLine {
  __device__ __forceinline__ float operator[](int i) const { return pixels[i]; }
  __device__ __forceinline__ void next() { pixels += cols; }

  const float* pixels;
  Index cols;
};

__global__ void __launch_bounds__(kSimpleThreads, kSimpleBlocksResident)
    autocorr_cuda_simple_kernel(Geometry q, const float* __restrict__ images,
                                float* __restrict__ out) {
  sum_shifts(q, out, [&](Index image, Index y, Index x) {
    return ArrayLine{images + image * q.left.size() + y * q.left.cols + x, q.left.cols};
  });
}

class SimplePlan final : public DevicePlan<float> {
 public:
  explicit SimplePlan(const PlanRequest& request) : DevicePlan(request.problem) {}

 private:
  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    launch(autocorr_cuda_simple_kernel, simple_grid(problem_), simple_block(), 0, call.stream,
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
