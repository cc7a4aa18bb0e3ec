// One problem with one variant, prepared to be computed many times on data of the caller. A session
// holds the device, its memory and the plan, so that compute allocates and plans nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "harness/device/device.hpp"
#include "harness/problem/problem.hpp"

namespace xcorr {

struct DeviceArrays;

// Whether the variant computes the request on the device. Plans and allocates nothing.
Support supported(const Variant& variant, PlanRequest request, Device& device);

// The host arrays of one call, in the scalar type of the precision class.
struct Arrays {
  const void* left = nullptr;   // [lefts][rows][cols], or with field `views` an array of any size
  const void* right = nullptr;  // [rights][rows][cols]; with field `same` it is not read
  void* out = nullptr;  // [pairs][out_rows][out_cols], or records (harness/problem/results.hpp)
  // Field `masks`: [lefts][rows][cols] and [rights][rows][cols], 0 or 1 a pixel.
  const std::uint8_t* left_mask = nullptr;
  const std::uint8_t* right_mask = nullptr;
  // Field `views`: offsets and pitch as in Call, and the number of elements of the array.
  View left_view = {}, right_view = {};
  Index left_elements = 0, right_elements = 0;
};

// A variant that is planned on a device, with its workspace. Session (host arrays) and DeviceSession
// (arrays of the device) compute with it.
class AnySession {
 public:
  virtual ~AnySession();
  AnySession(const AnySession&) = delete;
  AnySession& operator=(const AnySession&) = delete;

 protected:
  // UserError where the variant does not support the request.
  AnySession(const Variant& variant, PlanRequest request, std::unique_ptr<Device> device);
  // Plans, and sets workspace and stream of the request. OutOfMemory where the device lacks memory
  // for that and for `data` further bytes.
  void plan(const Variant& variant, std::size_t data);
  std::size_t bytes(Index elements) const;
  std::size_t result_bytes() const;
  std::unique_lock<std::mutex> hold_planner() const;

  std::unique_ptr<Device> device_;  // first: the other members use it until they are destroyed
  PlanRequest request_;
  Buffer workspace_;
  std::unique_ptr<Plan> plan_;
};

class Session final : public AnySession {
 public:
  Session(const Variant& variant, PlanRequest request, std::unique_ptr<Device> device);
  // Only one thread may call at a time. UserError for missing masks or offsets, a view that leaves
  // its array, windows that span more than 2^31 - 1 elements on a GPU, and more detections of
  // result `above` than its capacity.
  void compute(const Arrays& arrays);

 private:
  // Device memory for a copy of an array of the caller.
  struct Copy {
    Buffer memory;
    std::size_t bytes = 0;
  };
  void allocate(Copy& copy, std::size_t bytes);
  const void* uploaded(Copy& copy, const void* array, std::size_t bytes);
  Call call_of(const Arrays& arrays);

  // Empty where the device reads host memory.
  Copy left_, right_, left_mask_, right_mask_, left_offsets_, right_offsets_;
  Buffer out_;
};

// UserError for more detections than the capacity of result `above`. `out` is host memory, of which
// the header is read.
void check_capacity(const Problem& problem, const void* out);

// The sessions that callers of the C API have open. A handle is a number that is never used again, so
// that a handle of a closed session, or of none, is refused with UserError.
// `uses_cuda`: the session is of no use in a child of this process.
void* keep_session(std::unique_ptr<AnySession> session, bool uses_cuda);
// One thread at a time computes with a session. Other threads wait. UserError for a session of the
// other kind.
void compute_with(void* handle, const Arrays& arrays);
void enqueue_with(void* handle, const DeviceArrays& arrays, void* stream);
void check_with(void* handle, const void* out, void* stream);
void close_session(void* handle);

}  // namespace xcorr
