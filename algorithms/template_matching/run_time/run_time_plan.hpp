// What the variants that compile the passes of Pearson's correlation at run time share: the plan,
// and which problems they take.
#pragma once

#include <limits>
#include <string>

#include "algorithms/template_matching/pearson_plan.hpp"
#include "algorithms/template_matching/run_time/run_time_kernels.hpp"
#include "harness/compilation.hpp"

namespace xcorr::template_matching {

#if CUDART_VERSION >= 12080

// `Passes` launches the kernels of a pass, and made() says what was compiled.
template <typename Passes>
class RunTimePlan final : public PearsonPlan<false, Passes>, public CompiledAtRunTime {
 public:
  using PearsonPlan<false, Passes>::PearsonPlan;
  Compilation compilation() const override { return this->passes().made(); }
};

inline Support run_time_supports(const PlanRequest& request) {
  if (const Support is = pearson_supports(request); !is) return is;
  if (request.problem.right.size() > std::numeric_limits<int>::max() / 2) {
    return no("frames beyond 2^30 elements");
  }
  if (const std::string& problem = RunTimeCompiler::instance().problem(); !problem.empty()) {
    return no(problem);
  }
  return yes();
}

#else

inline Support run_time_supports(const PlanRequest& /*request*/) {
  return no("kernels compiled at run time need CUDA 12.8; build with that or a newer one");
}

#endif

}  // namespace xcorr::template_matching
