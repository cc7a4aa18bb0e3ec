// The reordered C++ program of the ISS paper (section 4.2), before SIMD: derived from
// autocorr_simple. The loops run over Y0, y, X0 and innermost x, so that the two lines that are
// multiplied are contiguous in memory and stay in the L1 cache for all X0. If the window has both
// halves, C2D(X0, Y0) = C2D(-X0, -Y0) leaves half of the Y0 to compute.
//
// Limits: each product waits for the previous addition, since the order of the additions of a line
// is fixed and the compiler may not change it.
#include "algorithms/autocorrelation/line_loops.hpp"

namespace xcorr::autocorrelation {
namespace {

float sum_in_order(const float* a, const float* b, Index count) {
  float sum = 0;
  for (Index x = 0; x < count; ++x) sum += a[x] * b[x];
  return sum;
}

XCORR_VARIANT({
    .summary = "Autocorrelation: adjacent lines innermost, half of the shifts mirrored",
    .parent = "autocorr_simple",
    .source = "ISS paper, section 4.2",
    .forms = {Form::one_to_one, Form::n_to_mn},
    .same_only = true,
    .plan = [](const PlanRequest& request) -> std::unique_ptr<Plan> {
      return std::make_unique<LineLoopsPlan>(request, sum_in_order, 1);
    },
});

}  // namespace
}  // namespace xcorr::autocorrelation
