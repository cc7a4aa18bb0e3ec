// Launches, and queries of the host to a device: a part of the vocabulary that cuda.hpp includes.
// DependentLaunches and GridLaunches below choose the attributes of the launches of a plan. Under
// the emulation the first part of this header is in tests/emulation/vocabulary.hpp.
//
//   launch(kernel, grid, block, shared_bytes, stream, arguments...)
//   launch({.cooperative = true}, kernel, grid, block, shared_bytes, stream, arguments...)
#pragma once

#ifdef XCORR_EMULATE
#include XCORR_EMULATE
#else
#include <cuda_runtime.h>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "harness/variant.hpp"

namespace xcorr {
namespace device {}
using namespace device;  // so that families use its names without a prefix
}  // namespace xcorr

namespace xcorr::device {

// Dynamic shared memory that every kernel may use on every device without a request.
inline constexpr std::size_t kSharedWithoutAsking = 48 * 1024;

// The dynamic shared memory that each kernel has been allowed on each device. The limit belongs to
// the kernel: a smaller plan that set its size would make the launches of a larger plan fail.
class SharedLimits {
 public:
  // Calls set() unless the kernel has already been allowed as much on the device. Only one thread
  // runs at a time. An exception of set() is passed on, and the limit then counts as unchanged.
  template <typename Set>
  void raise(const void* kernel, int device, std::size_t bytes, Set&& set) {
    if (bytes <= kSharedWithoutAsking) return;
    const std::lock_guard lock(mutex_);
    std::size_t& allowed = allowed_[{kernel, device}];
    if (bytes <= allowed) return;
    set();
    allowed = bytes;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<const void*, int>, std::size_t> allowed_;
};

// Attributes of a launch.
struct LaunchAttributes {
  bool cooperative = false;  // all blocks are on the device at once, or CUDA refuses the launch
  bool dependent = false;    // may start while the previous launch drains (DependentLaunches)
  unsigned cluster = 1;      // blocks per cluster, neighbours along x
};

#ifndef XCORR_EMULATE

// Throws std::runtime_error "<what>: <CUDA's words> (<CUDA's name>)".
inline void check_cuda(cudaError_t status, const char* what) {
  if (status != cudaSuccess) {
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status) + " (" +
                             cudaGetErrorName(status) + ")");
  }
}

inline int current_device() {
  int device = 0;
  check_cuda(cudaGetDevice(&device), "device");
  return device;
}

inline int device_attribute(cudaDeviceAttr attribute, const char* what) {
  int value = 0;
  check_cuda(cudaDeviceGetAttribute(&value, attribute, current_device()), what);
  return value;
}

// The major number of the current device: 8 for compute capability 8.0, 8.6 and 8.9, 9 for 9.0.
inline int compute_capability_major() {
  return device_attribute(cudaDevAttrComputeCapabilityMajor, "compute capability");
}

// Max bytes of dynamic shared memory of a block on the current device.
inline std::size_t shared_limit() {
  return static_cast<std::size_t>(
      device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, "shared memory of a block"));
}

// Whether other processes may share the current device at the same time (MPS). True if the toolkit
// or the driver cannot tell.
inline bool shared_with_processes() {
#if CUDART_VERSION >= 12030
  int shared = 0;
  const cudaError_t status =
      cudaDeviceGetAttribute(&shared, cudaDevAttrMpsEnabled, current_device());
  if (status == cudaErrorInvalidValue) {  // a driver older than the attribute
    cudaGetLastError();                   // clears the error for the next launch
    return true;
  }
  check_cuda(status, "MPS");
  return shared != 0;
#else
  return true;
#endif
}

// Whether work in the stream is recorded into a graph and does not run.
inline bool is_captured(void* stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(static_cast<cudaStream_t>(stream), &status), "stream");
  return status != cudaStreamCaptureStatusNone;
}

// Sets `bytes` bytes of device memory to zero, in the order of the stream.
inline void clear(void* memory, std::size_t bytes, void* stream) {
  check_cuda(cudaMemsetAsync(memory, 0, bytes, static_cast<cudaStream_t>(stream)), "clear");
}

// A stream that belongs to the plan and does not wait for the default stream.
class OwnStream {
 public:
  OwnStream() { check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream"); }
  ~OwnStream() {
    if (stream_) cudaStreamDestroy(stream_);
  }
  OwnStream(OwnStream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  void* get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// A position in a stream that other streams can wait for.
class OwnEvent {
 public:
  OwnEvent() { check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "event"); }
  ~OwnEvent() {
    if (event_) cudaEventDestroy(event_);
  }
  OwnEvent(OwnEvent&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}

  void record(void* stream) {
    check_cuda(cudaEventRecord(event_, static_cast<cudaStream_t>(stream)), "event");
  }
  // Work enqueued in `stream` after this call waits for the recorded position.
  void wait_in(void* stream) const {
    check_cuda(cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), event_, 0), "event");
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// Allows the kernel at least `bytes` of dynamic shared memory on the current device. CUDA is called
// only for a size larger than all previous sizes, because the call takes a considerable part of the
// time of a launch.
inline void allow_shared(const void* kernel, std::size_t bytes) {
  static SharedLimits limits;  // per process, as CUDA's limits
  if (bytes <= kSharedWithoutAsking) return;
  limits.raise(kernel, current_device(), bytes, [&] {
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(bytes)),
               "dynamic shared memory");
  });
}

// The number of blocks of the kernel that the current device holds at once, at least one per SM.
inline std::int64_t resident_blocks(const void* kernel, int threads, std::size_t shared_bytes) {
  const int processors = device_attribute(cudaDevAttrMultiProcessorCount, "SMs");
  allow_shared(kernel, shared_bytes);
  int blocks = 0;
  check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared_bytes),
             "occupancy");
  return static_cast<std::int64_t>(processors) * std::max(blocks, 1);
}

// kernel<<<grid, block, shared_bytes, stream>>>(arguments...). Throws if CUDA refuses the launch.
// Dynamic shared memory beyond the default of 48 KiB is requested here.
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
            void* stream, Arguments&&... arguments) {
  const auto* const function = reinterpret_cast<const void*>(kernel);
  allow_shared(function, shared_bytes);
  std::tuple<Parameters...> values(static_cast<Parameters>(std::forward<Arguments>(arguments))...);
  std::apply(
      [&](Parameters&... value) {
        void* pointers[] = {&value..., nullptr};
        cudaLaunchKernel(function, grid, block, pointers, shared_bytes,
                         static_cast<cudaStream_t>(stream));
      },
      values);
  check_cuda(cudaGetLastError(), "kernel launch");
}

// The same with at least one attribute.
template <typename... Parameters, typename... Arguments>
void launch(const LaunchAttributes& attributes, void (*kernel)(Parameters...), dim3 grid,
            dim3 block, std::size_t shared_bytes, void* stream, Arguments&&... arguments) {
  allow_shared(reinterpret_cast<const void*>(kernel), shared_bytes);
  cudaLaunchAttribute set[3] = {};
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = static_cast<cudaStream_t>(stream);
  config.attrs = set;
  const auto next = [&](cudaLaunchAttributeID id) -> cudaLaunchAttributeValue& {
    set[config.numAttrs].id = id;
    return set[config.numAttrs++].val;
  };
  if (attributes.cooperative) next(cudaLaunchAttributeCooperative).cooperative = 1;
  if (attributes.dependent) {
    next(cudaLaunchAttributeProgrammaticStreamSerialization)
        .programmaticStreamSerializationAllowed = 1;
  }
  if (attributes.cluster > 1) {
    auto& size = next(cudaLaunchAttributeClusterDimension).clusterDim;
    size.x = attributes.cluster;
    size.y = size.z = 1;
  }
  check_cuda(cudaLaunchKernelEx(&config, kernel,
                                static_cast<Parameters>(std::forward<Arguments>(arguments))...),
             "kernel launch");
}

// After this call all writes of the previous launch are visible.
__device__ __forceinline__ void wait_for_previous() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}
// When all blocks have called this or have ended, the next launch may start.
__device__ __forceinline__ void let_next_start() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

#endif  // XCORR_EMULATE

// Determines which launches of a plan must be ordinary. The first launch that runs reads data that
// the plan has just stored. The first launch of a graph has no previous launch to overlap with. A
// launch that is only captured has not run.
class LaunchOrder {
 public:
  // Called at the start of every call.
  void begin(bool captured) {
    captured_ = captured;
    ordinary_ = captured || !has_run_;
  }
  bool captured() const { return captured_; }
  bool ordinary() const { return ordinary_; }
  // Called after an ordinary launch.
  void launched() {
    ordinary_ = false;
    has_run_ |= !captured_;
  }

 private:
  bool captured_ = false, ordinary_ = true, has_run_ = false;
};

// The launches of a plan as programmatic dependent launches (compute capability 9.0; otherwise
// ordinary launches), in the order of its calls. A kernel may start while the previous kernel in
// the stream drains, also that of the previous call. In mode stream this hides about 1 us of a
// launch on an H200, and enqueueing takes 0.5 us less. A single call or a replayed graph gains
// nothing.
//
// Every thread of such a kernel calls wait_for_previous() before it reads inputs or writes
// anything. Before that it may read data from the creation of the plan, and data of the launches
// before the previous one if that waits before it lets the next launch start. let_next_start()
// comes after wait_for_previous(), so that at most one launch waits on the device. Two kernels of
// template_fft are exceptions (frame_factors.hpp). A test checks the PTX. A kernel that fills the
// device has no let_next_start(): blocks that start early are placed on the SMs that are free
// first, several on one SM (H200, 32:32 at 32 x 32: 17.8 us with it, 13.9 us without, 15.0 us with
// ordinary launches).
class DependentLaunches {
 public:
  DependentLaunches() : available_(compute_capability_major() >= 9) {}

  // Called at the start of every call. The first launch of the call is ordinary if it is the first
  // of the plan that runs, or the first of a graph. All launches are ordinary while phases are
  // marked.
  void begin(const Call& call) {
    order_.begin(is_captured(call.stream));
    marked_ = call.marks != nullptr;
  }
  bool captured() const { return order_.captured(); }
  bool overlaps() const { return available_ && !marked_ && !order_.ordinary(); }

  template <typename... Parameters, typename... Arguments>
  void run(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
           void* stream, Arguments&&... arguments) {
    if (overlaps()) {
      launch({.dependent = true}, kernel, grid, block, shared_bytes, stream,
             std::forward<Arguments>(arguments)...);
      return;
    }
    launched();
    launch(kernel, grid, block, shared_bytes, stream, std::forward<Arguments>(arguments)...);
  }
  // Called after an ordinary launch.
  void launched() { order_.launched(); }

 private:
  bool available_ = false, marked_ = false;
  LaunchOrder order_;
};

// The launches of a plan whose blocks wait for each other: all blocks must get onto the device. A
// cooperative launch starts all its blocks or none, but only after the previous launch in the
// stream has ended. A dependent launch is 1 us faster, but its blocks start as space becomes free.
// While some of its blocks wait for the others, other work may hold that space and wait in the same
// way (a cooperative kernel, a kernel that spins until a later kernel writes, a collective of a
// communication library). Neither would ever end.
//
// Therefore launches are dependent only for a caller that says that there is no such work
// (Call::exclusive), and those of a process run one after the other: a stream that follows another
// stream waits for it. Launches are cooperative for every other caller, while any plan is captured,
// if other processes share the device, and for the first launch of a plan, so that CUDA reports
// blocks that do not fit. A graph must not start on another stream while calls from before its
// capture are queued.
class GridLaunches {
 public:
  GridLaunches()
      : alone_(!shared_with_processes()), device_(&devices()[current_device() % kMostDevices]) {}
  ~GridLaunches() {
    const std::lock_guard lock(device_->mutex);
    device_->captured -= captured_;
    if (device_->last == this) device_->last = nullptr;  // its launches have ended
  }
  GridLaunches(const GridLaunches&) = delete;
  GridLaunches& operator=(const GridLaunches&) = delete;

  void begin(const Call& call) {
    launches_.begin(call);
    exclusive_ = call.exclusive;
    if (!launches_.captured() || captured_) return;
    const std::lock_guard lock(device_->mutex);
    captured_ = true;
    ++device_->captured;
  }

  template <typename... Parameters, typename... Arguments>
  void run(void (*kernel)(Parameters...), unsigned blocks, unsigned threads,
           std::size_t shared_bytes, void* stream, Arguments&&... arguments) {
    const std::lock_guard lock(device_->mutex);
    if (exclusive_ && alone_ && device_->captured == 0 && launches_.overlaps()) {
      device_->follow(stream);
      launches_.run(kernel, dim3(blocks), dim3(threads), shared_bytes, stream,
                    std::forward<Arguments>(arguments)...);
    } else {
      if (!launches_.captured()) device_->follow(stream);
      launch({.cooperative = true}, kernel, dim3(blocks), dim3(threads), shared_bytes, stream,
             std::forward<Arguments>(arguments)...);
      launches_.launched();
    }
    if (!launches_.captured()) device_->last = this;
  }

 private:
  // The launches of all plans of a process on a device.
  struct Device {
    void follow(void* next) {
      if (last != nullptr && stream != next) {
        // Never destroyed: CUDA may shut down before this static object is destroyed.
        if (event == nullptr) event = new OwnEvent;
        event->record(stream);
        event->wait_in(next);
      }
      stream = next;
    }
    std::mutex mutex;
    const GridLaunches* last = nullptr;
    void* stream = nullptr;
    OwnEvent* event = nullptr;
    int captured = 0;  // number of captured plans
  };
  static constexpr int kMostDevices = 64;
  static Device* devices() {
    static Device all[kMostDevices];
    return all;
  }

  DependentLaunches launches_;
  bool alone_ = true, exclusive_ = false, captured_ = false;
  Device* device_;
};

}  // namespace xcorr::device
