// Launches of kernels whose blocks wait for each other: all blocks must come to be on the device at
// once, whatever else runs there.
#pragma once

#include <mutex>

#include "algorithms/device/dependent_launch.hpp"

namespace xcorr::fused_fft {

#ifdef XCORR_EMULATE
class GridLaunches : public DependentLaunches {};
#else

// The launches of a plan of such kernels. A cooperative launch has all its blocks or none, whatever
// else runs on the device, but starts only when the one before it in the stream has ended. A
// dependent launch is 1 us faster and promises less: its blocks come as there is room. While a part
// of them waits for the rest, other work may hold that room and wait for its own rest: a
// cooperative kernel, a kernel that spins until a later one writes, a collective of a communication
// library. Neither would ever end. Therefore launches are dependent only for a caller that says
// that there is no such work (Call::exclusive); that leaves the kernels of this page, and those of
// a process run one after the other (a stream that follows another waits for it). They are
// cooperative for every other caller, while any plan is captured, where other processes share the
// device, and for the first of a plan, where CUDA says so if the blocks do not fit. A graph must
// not start on another stream while calls from before its capture are queued.
class GridLaunches {
 public:
  GridLaunches() {
    const int device = current_device();
    alone_ = !shared_with_processes(device);
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
    exclusive_ = call.exclusive;
    if (!launches_.captured() || captured_) return;
    const std::lock_guard lock(line_->mutex);
    captured_ = true;
    ++line_->captured;
  }

  template <typename... Parameters, typename... Arguments>
  void run(void (*kernel)(Parameters...), unsigned blocks, unsigned threads,
           std::size_t shared_bytes, void* stream, Arguments&&... arguments) {
    const std::lock_guard lock(line_->mutex);
    if (exclusive_ && alone_ && line_->captured == 0 && launches_.overlaps()) {
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
  bool alone_ = true, exclusive_ = false, captured_ = false;
  Line* line_;
};
#endif

}  // namespace xcorr::fused_fft
