// One problem with one variant, prepared to be computed many times on the caller's data: the
// device, the memory there and the plan are kept, so that every computation after the first pays
// for itself only.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "harness/device.hpp"
#include "harness/problem.hpp"

namespace xcorr {

// Whether the variant computes this here, asked without planning: the workspace stays empty.
Support asks(const Variant& variant, PlanRequest request, Device& device);

class Session {
 public:
  // Plans once. UserError where the variant does not support the request, OutOfMemory where the
  // device lacks the memory. `request.workspace` and `request.stream` are set here.
  Session(const Variant& variant, PlanRequest request, std::unique_ptr<Device> device);
  ~Session();
  // left [lefts][rows][cols], right [rights][rows][cols], out [pairs][out_rows][out_cols] in the
  // host's memory, scalar type of the precision class. Not for several threads at once.
  void compute(const void* left, const void* right, void* out);

 private:
  std::size_t bytes(Index elements) const;
  std::unique_lock<std::mutex> hold_planner() const;

  std::unique_ptr<Device> device_;  // first: what follows lives on it
  PlanRequest request_;
  Buffer workspace_, left_, right_,
      out_;  // the data only where the host's memory is not the device's
  std::unique_ptr<Plan> plan_;
};

}  // namespace xcorr
