// One problem with one variant, prepared for arrays in the memory of the device: a call enqueues
// its work on a stream of the caller. It copies nothing, allocates nothing and waits for nothing, so
// that it can be recorded into a CUDA graph.
#pragma once

#include <array>

#include "harness/caller/streams.hpp"
#include "harness/library/session.hpp"
#include "harness/problem/error.hpp"

namespace xcorr {

// How the matrices of one side lie in memory. A side that is no dense array of scalars at multiples
// of 16 bytes is made so by a kernel, in memory of the session. With field `views` windows it is
// read in place.
struct SideLayout {
  ElementType type = ElementType::float32;
  std::array<Index, 3> strides = {};  // elements between neighbouring matrices, rows and columns
  bool aligned = true;                // starts at a multiple of 16 bytes, as memory of CUDA does
};

// The dense layout of a side, in the scalar type of the precision.
SideLayout dense_layout(const Problem& problem, Side side, Precision precision);

// The arrays of one call, in memory of the device.
struct DeviceArrays {
  const void* left = nullptr;
  const void* right = nullptr;  // not read with field `same`
  void* out = nullptr;          // as in Arrays, at a multiple of 16 bytes
  // [lefts][rows][cols] and [rights][rows][cols], dense, 0 or 1 a pixel, which nobody checks.
  const std::uint8_t* left_mask = nullptr;
  const std::uint8_t* right_mask = nullptr;
};

// The variant computes no arrays of a device, since its calls cannot be enqueued: a caller may try
// another variant.
struct NotEnqueued : UserError {
  using UserError::UserError;
};

class DeviceSession final : public AnySession {
 public:
  // Plans, and waits for what the plan has stored. UserError as for Session, for layouts that the
  // problem does not have, and NotEnqueued.
  DeviceSession(const Variant& variant, PlanRequest request,
                const std::array<SideLayout, 2>& layouts, std::unique_ptr<Device> device);
  // Waits for all work on the device: a call may still run.
  ~DeviceSession() override;
  // One thread at a time, and one stream at a time: all calls use one workspace. UserError for a
  // missing or misaligned array.
  void enqueue(const DeviceArrays& arrays, void* stream);
  // Waits for the stream. UserError for more detections in `out` than the capacity of result
  // `above`; other results need no `out`.
  void check(const void* out, void* stream);

 private:
  struct Input {
    Packing packing;
    Buffer packed;   // empty where the array is read in place
    Buffer offsets;  // field `views` windows
    View view = {};
  };
  Input make_input(Side side, const SideLayout& layout);
  void record(const Variant& variant);
  const void* read(const Input& input, const void* array, void* stream);
  void compute(Call call, void* stream);

  std::unique_ptr<CallerStreams> streams_;
  Input left_, right_;
  bool cooperative_ = false;
};

}  // namespace xcorr
