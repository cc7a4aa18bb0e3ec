// The streams of a caller that has streams of its own, as a program of PyTorch or CuPy: what a session
// for arrays of a device (harness/library/device_session.hpp) asks of the device. Nothing here
// waits or allocates, unless it says so.
#pragma once

#include <functional>
#include <memory>

#include "harness/caller/packing.hpp"
#include "harness/variant.hpp"

namespace xcorr {

// What one call of a plan enqueues.
struct Enqueued {
  Support support;  // no: the call cannot be recorded, as one that waits for its own work
  // A kernel whose blocks wait for each other. Plans order such kernels across the streams of the
  // process, by the streams that they have seen (GridLaunches of algorithms/device/launch.hpp).
  bool cooperative = false;
};

// A stream is a cudaStream_t. This base is for devices whose memory the host reads: work is done at
// once, and all streams are one.
class CallerStreams {
 public:
  virtual ~CallerStreams() = default;

  // Makes the device current for the calling thread, and gives the device that was current before.
  virtual int enter() { return 0; }
  virtual void leave(int /*before*/) {}

  // Records one call of `compute(stream)`. Runs it only if it cannot be recorded at first. Allocates
  // and waits.
  virtual Enqueued record(const std::function<void(void*)>& compute);
  // Whether work in the stream is recorded into a graph.
  virtual bool captures(void* /*stream*/) { return false; }
  // A stream that lives as long as this object. Recorded calls have one of their own, since a
  // stream stays in the graph until the caller ends the recording.
  virtual void* own(bool /*captured*/) { return nullptr; }
  // Work that is enqueued in `stream` after this call waits for the work in `before`.
  virtual void follow(void* /*stream*/, void* /*before*/) {}
  virtual void pack(const Packing& packing, const void* from, void* to, void* stream);

  // Waits for the work in the stream, or for all work on the device.
  virtual void wait(void* /*stream*/) {}
  virtual void wait_for_all() {}
};

std::unique_ptr<CallerStreams> make_cuda_caller_streams(int index);  // only in builds with CUDA

}  // namespace xcorr
