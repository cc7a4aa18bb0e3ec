// Launches, and what the host asks of a device: a part of the vocabulary that cuda.hpp includes.
//
//   launch(kernel, grid, block, shared_bytes, stream, arguments...)
//   launch({.cooperative = true}, kernel, grid, block, shared_bytes, stream, arguments...)
//
// DependentLaunches and GridLaunches below decide which attributes the launches of a plan get.
// Under the emulation the first part comes from tests/emulation/vocabulary.hpp.
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
using namespace device;  // so that families use its names as they are
}  // namespace xcorr

namespace xcorr::device {

// Dynamic shared memory that every kernel may have on every device without asking.
inline constexpr std::size_t kSharedWithoutAsking = 48 * 1024;

// How much dynamic shared memory each kernel has been allowed on each device. The limit belongs to
// the kernel and not to a plan: plans of several threads use one kernel with different sizes, and a
// smaller one that set its own size would make the launches of a larger one fail.
class SharedLimits {
 public:
  // Calls set() unless the kernel has been allowed as much on the device before. One thread at a
  // time. An exception of set() passes on, and the limit then counts as unchanged.
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

// How a launch differs from an ordinary one.
struct LaunchAttributes {
  bool cooperative = false;  // all blocks are on the device at once, or CUDA refuses the launch
  bool dependent = false;    // may start while the launch before it drains (DependentLaunches)
  unsigned cluster = 1;      // blocks of a cluster, neighbours along x
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

// Of the current device: 8 for compute capability 8.0, 8.6 and 8.9, 9 for 9.0.
inline int compute_capability_major() {
  return device_attribute(cudaDevAttrComputeCapabilityMajor, "compute capability");
}

// Bytes of dynamic shared memory that the current device has for one block.
inline std::size_t shared_limit() {
  return static_cast<std::size_t>(
      device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, "shared memory of a block"));
}

// Whether other processes may share the current device at the same time (MPS). Where the toolkit or
// the driver cannot say, they may.
inline bool shared_with_processes() {
#if CUDART_VERSION >= 12030
  int shared = 0;
  const cudaError_t status =
      cudaDeviceGetAttribute(&shared, cudaDevAttrMpsEnabled, current_device());
  if (status == cudaErrorInvalidValue) {  // a driver that is older than the attribute
    cudaGetLastError();                   // or the next launch would be blamed for it
    return true;
  }
  check_cuda(status, "MPS");
  return shared != 0;
#else
  return true;
#endif
}

// Whether what is enqueued in the stream is recorded into a graph and does not run.
inline bool is_captured(void* stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(static_cast<cudaStream_t>(stream), &status), "stream");
  return status != cudaStreamCaptureStatusNone;
}

// Sets `bytes` bytes of device memory to zero, in the order of the stream.
inline void clear(void* memory, std::size_t bytes, void* stream) {
  check_cuda(cudaMemsetAsync(memory, 0, bytes, static_cast<cudaStream_t>(stream)), "clear");
}

// A stream of the plan's own, which does not wait for the default stream.
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
  // What is enqueued in `stream` from here on waits for what was recorded.
  void wait_in(void* stream) const {
    check_cuda(cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), event_, 0), "event");
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// Allows the kernel at least `bytes` of dynamic shared memory on the current device; never takes
// away what it was allowed before. CUDA is asked only for a size that is larger than all before,
// since the question costs a good part of the time of a launch.
inline void allow_shared(const void* kernel, std::size_t bytes) {
  static SharedLimits limits;  // of the process, as CUDA's own
  if (bytes <= kSharedWithoutAsking) return;
  limits.raise(kernel, current_device(), bytes, [&] {
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(bytes)),
               "dynamic shared memory");
  });
}

// Blocks of the kernel that the current device holds at once, at least one on each SM.
inline std::int64_t resident_blocks(const void* kernel, int threads, std::size_t shared_bytes) {
  const int processors = device_attribute(cudaDevAttrMultiProcessorCount, "SMs");
  allow_shared(kernel, shared_bytes);
  int blocks = 0;
  check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared_bytes),
             "occupancy");
  return static_cast<std::int64_t>(processors) * std::max(blocks, 1);
}

// kernel<<<grid, block, shared_bytes, stream>>>(arguments...). A launch that CUDA refuses throws.
// Dynamic shared memory beyond the default of 48 KiB is asked for here.
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

// The same with attributes, at least one.
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

// From here on everything that the launch before wrote is there.
__device__ __forceinline__ void wait_for_previous() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}
// Once all blocks have come here, or have ended, the next launch may start.
__device__ __forceinline__ void let_next_start() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

#endif  // XCORR_EMULATE

// Which launches of a plan must be ordinary ones. The first that runs reads what the plan has just
// stored. The first of a graph has nothing before it that it could overlap, and a launch that is
// only captured has not run.
class LaunchOrder {
 public:
  // At the start of every call.
  void begin(bool captured) {
    captured_ = captured;
    ordinary_ = captured || !has_run_;
  }
  bool captured() const { return captured_; }
  bool ordinary() const { return ordinary_; }
  // An ordinary launch has been made.
  void launched() {
    ordinary_ = false;
    has_run_ |= !captured_;
  }

 private:
  bool captured_ = false, ordinary_ = true, has_run_ = false;
};

// The launches of a plan as programmatic dependent launches (compute capability 9.0; elsewhere
// ordinary ones), in the order of its calls: a kernel may start while the one before it in the
// stream drains, that of the call before included, and waits where it first needs what that one
// wrote. In mode stream this hides about 1 us of a launch on an H200, and enqueueing takes 0.5 us
// less. A single call gains nothing, nor does a replayed graph.
//
// Every thread of such a kernel calls wait_for_previous() before it reads inputs or writes anything; before that it may
// read what was there when the plan was made, or, behind a launch that waits before it lets the next one start, what the
// launches before that one have stored. let_next_start() comes after it, so that no more than one launch waits on the
// device. Two kernels of template_fft let the next start first; what comes behind looks at counters, and one block waits
// (frame_factors.hpp). A test checks the PTX. A kernel that fills the device has no let_next_start(): blocks of the next
// that come earlier are placed on the SMs that are free first, several on one SM (measured on an H200, 32:32 at 32 x 32:
// 17.8 us with it, 13.9 us without, 15.0 us with ordinary launches).
class DependentLaunches {
 public:
  DependentLaunches() : available_(compute_capability_major() >= 9) {}

  // At the start of every call. Its first launch is an ordinary one if it is the plan's first that
  // runs, or begins a graph; all are while phases are marked.
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
  // An ordinary launch has been made.
  void launched() { order_.launched(); }

 private:
  bool available_ = false, marked_ = false;
  LaunchOrder order_;
};

// The launches of a plan whose kernels have blocks that wait for each other: all blocks must come
// to be on the device at once. A cooperative launch has all its blocks or none, whatever else runs
// on the device, but starts only when the one before it in the stream has ended. A dependent launch
// is 1 us faster and promises less: its blocks come as there is space. While a part of them waits
// for the rest, other work may hold that space and wait for its own rest: a cooperative kernel, a
// kernel that spins until a later one writes, a collective of a communication library. Neither
// would ever end.
//
// Therefore launches are dependent only for a caller that says that there is no such work
// (Call::exclusive). That leaves the kernels of this class: two of them resident at once, each with
// a part of its blocks, would deadlock, so those of a process run one after the other (a stream
// that follows another waits for it). Launches are cooperative for every other caller, while any
// plan is captured, where other processes share the device, and for the first of a plan, where CUDA
// says so if the blocks do not fit. A graph must not start on another stream while calls from
// before its capture are queued.
class GridLaunches {
 public:
  GridLaunches()
      : alone_(!shared_with_processes()), device_(&devices()[current_device() % kMostDevices]) {}
  ~GridLaunches() {
    const std::lock_guard lock(device_->mutex);
    device_->captured -= captured_;
    if (device_->last == this) device_->last = nullptr;  // what it launched has ended
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
  // What the plans of a process have launched on a device.
  struct Device {
    void follow(void* next) {
      if (last != nullptr && stream != next) {
        // Never destroyed: CUDA may have ended before this static object does.
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
    int captured = 0;  // plans
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
