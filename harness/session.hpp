// One problem with one variant, prepared to be computed many times on the data of the caller. A
// session holds the device, its memory and the plan, so that a call of compute allocates and plans
// nothing.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "harness/device.hpp"
#include "harness/problem.hpp"

namespace xcorr {

// Whether the variant computes the request on the device. Plans and allocates nothing.
Support supported(const Variant& variant, PlanRequest request, Device& device);

class Session {
 public:
  // Plans once. Throws UserError where the variant does not support the request, and OutOfMemory
  // where the device lacks the memory. The constructor sets `request.workspace` and
  // `request.stream`.
  Session(const Variant& variant, PlanRequest request, std::unique_ptr<Device> device);
  ~Session();
  // left [lefts][rows][cols], right [rights][rows][cols] and out [pairs][out_rows][out_cols] lie in
  // host memory and have the scalar type of the precision class. Only one thread may call at a
  // time.
  void compute(const void* left, const void* right, void* out);

 private:
  std::size_t bytes(Index elements) const;
  std::unique_lock<std::mutex> hold_planner() const;

  std::unique_ptr<Device> device_;  // first: the other members use it until they are destroyed
  PlanRequest request_;
  Buffer workspace_;
  Buffer left_, right_, out_;  // empty where the device reads host memory
  std::unique_ptr<Plan> plan_;
};

}  // namespace xcorr
