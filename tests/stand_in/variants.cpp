// The variants of the build. Those for CUDA have plans that a CPU variant makes; all else of them is their own.
// Env XCORR_STAND_IN_VARIANTS, names with commas, leaves the other CUDA variants out.
#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/device/device.hpp"
#include "harness/reduce/reduce.hpp"
#include "harness/registry.hpp"
#include "tests/stand_in/shrunk.hpp"

namespace xcorr {
namespace {

const std::vector<Variant>& built_variants() {
  using Variants = const std::vector<Variant>& (*)();
  static const auto next = reinterpret_cast<Variants>(dlsym(RTLD_NEXT, "_ZN5xcorr8variantsEv"));
  if (!next) throw std::runtime_error("stand-in: libxcorr.so has no xcorr::variants()");
  return next();
}

// A CPU variant and what is asked of it.
struct Substitute {
  const Variant* variant;
  PlanRequest request;
};

Substitute substitute(const PlanRequest& asked, bool definition) {
  static const std::unique_ptr<Device> cpu = open_cpu();
  PlanRequest request = asked;
  request.problem = stand_in::computed(asked.problem);
  if (scalar_bytes(asked.precision) == sizeof(float)) request.precision = Precision::fp32;
  request.planning = Planning::once;
  // Sums are quicker than transforms for small problems only.
  const bool by_sums = definition && request.problem.fmas() < Index{1} << 28;
  for (const bool of_class : {by_sums, !by_sums}) {
    for (const Variant& variant : built_variants()) {
      if (variant.backend != Backend::cpu || is_definition(variant.algorithm_class) != of_class)
        continue;
      for (const Params& params : grid_points(variant)) {
        request.params = params;
        if (cpu->runs(variant, request)) return {&variant, request};
      }
    }
  }
  throw std::runtime_error("stand-in: no CPU variant computes " + request.problem.id() + " in " +
                           std::string(to_string(request.precision)));
}

bool is_left_out(const Variant& variant) {
  const char* const named = std::getenv("XCORR_STAND_IN_VARIANTS");
  return named && variant.backend == Backend::cuda &&
         ("," + std::string(named) + ",").find("," + variant.id + ",") == std::string::npos;
}

template <bool kDefinition>
void put_plans(Variant& variant) {
  variant.workspace_bytes = [](const PlanRequest& asked) {
    const Substitute by = substitute(asked, kDefinition);
    return plan_workspace_bytes(*by.variant, by.request);
  };
  variant.plan = [](const PlanRequest& asked) {
    const Substitute by = substitute(asked, kDefinition);
    return make_plan(*by.variant, by.request);
  };
}

}  // namespace

const std::vector<Variant>& variants() {
  static const std::vector<Variant> all = [] {
    std::vector<Variant> made = built_variants();
    std::erase_if(made, is_left_out);
    for (Variant& variant : made) {
      if (variant.backend != Backend::cuda) continue;
      is_definition(variant.algorithm_class) ? put_plans<true>(variant) : put_plans<false>(variant);
    }
    return made;
  }();
  return all;
}

}  // namespace xcorr
