// Requests of the C API: JSON texts, read strictly. UserError of one line for an unknown key, a
// value of another type, a number with a fraction, a repeated key, and a null text.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "harness/library/device_session.hpp"
#include "harness/problem/problem.hpp"
#include "harness/registry.hpp"

namespace xcorr {

// A problem, how a variant computes it, and where.
struct ComputeRequest {
  const Variant* variant = nullptr;
  PlanRequest plan = {};
  std::string device = "cpu";
};

// The same for arrays of a device: how left and right lie there.
struct DeviceRequest {
  ComputeRequest compute;
  std::array<SideLayout, 2> layouts;
};

struct ReferenceRequest {
  Problem problem;
  bool by_transform = false;
};

// Keys of a problem: form, left and right ([rows, cols] each), lefts, rights; optional window
// ("full") and the fields (docs/design.md, Fields of a problem).
Problem read_problem(const char* text);
// Further keys: variant; optional params (the first point of the variant), precision ("fp32"),
// device ("cpu") and planning: "once"; "kept" where many calls share the plan; "measured" without
// what is kept on disk.
ComputeRequest read_compute(const char* text);
// Further keys, all optional: left_type and right_type (`float32`, ...; the scalar type), left_strides
// and right_strides ([matrix, row, column] in elements; dense), left_aligned and right_aligned
// (`yes`, or `no` for arrays that do not start at a multiple of 16 bytes).
DeviceRequest read_device(const char* text);
// Further key: method, `definition` (default) or `fft`.
ReferenceRequest read_reference(const char* text);

}  // namespace xcorr
