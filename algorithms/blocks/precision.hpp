// The scalar type of a request: float, or double for fp64; and the threads of a CPU variant.
// Includes no CUDA, so that CPU variants can use it.
#pragma once

#include <omp.h>

#include <memory>

#include "harness/variant.hpp"

namespace xcorr::device {

// Calls use(T{}), where T is the scalar type.
template <typename Use>
auto with_scalar(Precision precision, const Use& use) {
  return precision == Precision::fp64 ? use(double{}) : use(float{});
}

// The value of parameter `threads`.
inline int thread_count(const PlanRequest& request) {
  return request.params.get("threads") == "1" ? 1 : omp_get_max_threads();
}

// The .plan of a variant whose plan is PlanOf<T>.
template <template <typename> class PlanOf>
std::unique_ptr<Plan> plan_in_precision(const PlanRequest& request) {
  return with_scalar(request.precision, [&](auto scalar) -> std::unique_ptr<Plan> {
    return std::make_unique<PlanOf<decltype(scalar)>>(request);
  });
}

}  // namespace xcorr::device
