// Launches of kernels whose blocks wait for each other: all blocks must come to be on the device at
// once, whatever else runs there.
#pragma once

#include <mutex>

#include "algorithms/device/dependent_launch.hpp"

namespace xcorr {

#ifdef XCORR_EMULATE
class GridLaunches : public DependentLaunches {};
#else

// The launches of a plan of such kernels. A cooperative launch has all its blocks or none, even
// beside other such kernels, but starts only when the one before it in the stream has ended. A
// dependent launch is 1 us faster and promises less: other work on the device ends by itself, so
// only two of these kernels with a part of their blocks each could wait for ever. Therefore those
// of a process run one after the other (a stream that follows another waits for it), and launches
// are cooperative while any plan is captured, under MPS, and for the first of a plan, where CUDA
// says so if the blocks do not fit. A graph must not start on another stream while calls from
// before its capture are queued.
class GridLaunches {
 public:
  GridLaunches() {
    int device = 0, shared_with_processes = 0;
    check_cuda(cudaGetDevice(&device), "device");
    check_cuda(cudaDeviceGetAttribute(&shared_with_processes, cudaDevAttrMpsEnabled, device),
               "MPS");
    alone_ = shared_with_processes == 0;
    line_ = &lines()[device % kMostDevices];
  }
  ~GridLaunches() {
    const std::lock_guard lock(line_->mutex);
    line_->captured -= captured_;
    if (line_->last == this) line_->last = nullptr;  // what it launched has ended
  }
  GridLaunches(const GridLaunches&) = delete;
  GridLaunches& operator=(const GridLaunches&) = delete;

  void begin(const Call& call) {
    launches_.begin(call);
    if (!launches_.captured() || captured_) return;
    const std::lock_guard lock(line_->mutex);
    captured_ = true;
    ++line_->captured;
  }

  template <typename... Parameters, typename... Arguments>
  void run(void (*kernel)(Parameters...), unsigned blocks, unsigned threads,
           std::size_t shared_bytes, void* stream, Arguments&&... arguments) {
    const std::lock_guard lock(line_->mutex);
    if (alone_ && line_->captured == 0 && launches_.overlaps()) {
      line_->follow(static_cast<cudaStream_t>(stream));
      launches_.run(kernel, dim3(blocks), dim3(threads), shared_bytes, stream,
                    std::forward<Arguments>(arguments)...);
    } else {
      if (!launches_.captured()) line_->follow(static_cast<cudaStream_t>(stream));
      cudaLaunchAttribute attribute{};
      attribute.id = cudaLaunchAttributeCooperative;
      attribute.val.cooperative = 1;
      launch_with(attribute, kernel, dim3(blocks), dim3(threads), shared_bytes, stream,
                  std::forward<Arguments>(arguments)...);
      launches_.launched();
    }
    if (!launches_.captured()) line_->last = this;
  }

 private:
  // What the plans of a process have launched on a device.
  struct Line {
    void follow(cudaStream_t next) {
      if (last != nullptr && stream != next) {
        if (!event) check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "event");
        check_cuda(cudaEventRecord(event, stream), "event of another stream");
        check_cuda(cudaStreamWaitEvent(next, event), "wait for another stream");
      }
      stream = next;
    }
    std::mutex mutex;
    const GridLaunches* last = nullptr;
    cudaStream_t stream = nullptr;
    cudaEvent_t event = nullptr;
    int captured = 0;  // plans
  };
  static constexpr int kMostDevices = 64;
  static Line* lines() {
    static Line of_device[kMostDevices];
    return of_device;
  }

  DependentLaunches launches_;
  bool alone_ = true, captured_ = false;
  Line* line_;
};
#endif

}  // namespace xcorr
