// Requests of the C API: JSON texts that are read strictly. A key that nothing reads, a value of
// another type, a number with a fraction and a key that is given twice are refused in one line.
#pragma once

#include <memory>
#include <string>

#include "harness/problem/problem.hpp"
#include "harness/registry.hpp"

namespace xcorr {

// The problem, how a variant computes it, and the device where it does.
struct ComputeRequest {
  const Variant* variant = nullptr;
  PlanRequest plan = {};
  std::string device = "cpu";
};

struct ReferenceRequest {
  Problem problem;
  bool by_transform = false;
};

// Each throws UserError, also where `text` is null.
//
// The keys of a problem: form, left and right ([rows, cols] each), lefts, rights; optional are window
// ("full") and the fields (docs/design.md, Fields of a problem).
Problem read_problem(const char* text);
// Besides: variant; optional are params ("", the first point of the variant), precision ("fp32"),
// device ("cpu") and planning ("once"; "kept" where many calls will share the plan; "measured": the same
// without what is kept on disk).
ComputeRequest read_compute(const char* text);
// Besides those of a problem: method, `definition` (default) or `fft`.
ReferenceRequest read_reference(const char* text);

}  // namespace xcorr
