// Device time of calls between two events of a stream, behind a gate, with the clock of an SM.
#pragma once

#include <algorithm>

#include "harness/device/cuda_owned.hpp"
#include "harness/device/device_kernels.hpp"
#include "harness/device/gated.hpp"

namespace xcorr {

// The clock of an SM over an interval of a stream, from the cycles and the nanoseconds that kernels
// read at both ends.
class SmClock {
 public:
  explicit SmClock(int sms) : sms_(sms), stamps_(2 * Index{sms}) {}

  void begin(cudaStream_t stream) {
    std::fill_n(stamps_.get(), stamps_.count(), ClockStamp{});
    launch_stamps(stamps_.get(), sms_, stream);
  }
  void end(cudaStream_t stream) { launch_stamps(stamps_.get() + sms_, sms_, stream); }

  // In MHz; 0 where no SM ran a block of both kernels. Comes after the work of the stream.
  double mhz() const {
    for (int sm = 0; sm < sms_; ++sm) {
      const ClockStamp& first = stamps_.get()[sm];
      const ClockStamp& last = stamps_.get()[sms_ + sm];
      if (first.nanoseconds == 0 || last.nanoseconds <= first.nanoseconds) continue;
      return 1e3 * static_cast<double>(last.cycles - first.cycles) /
             static_cast<double>(last.nanoseconds - first.nanoseconds);
    }
    return 0;
  }

 private:
  int sms_;
  PinnedArray<ClockStamp> stamps_;
};

class CudaGate final : public Gate {
 public:
  CudaGate(int sms, cudaStream_t stream) : stream_(stream), clock_(sms), flags_(1) {
    *flags_.get() = {};
    // CUDA loads a kernel with its first launch, and may wait for the device: never behind a gate.
    launch_hold(flags_.get(), 0, 0, stream_);
    clock_.begin(stream_);
    require_cuda(cudaStreamSynchronize(stream_), "device");
  }

  void close(Seconds longest) override {
    launch_hold(flags_.get(), ++ticket_, static_cast<long long>(longest * 1e9), stream_);
    clock_.begin(stream_);
    require_cuda(cudaEventRecord(start_.get(), stream_), "event");
  }
  bool let_go() override { return flags_.get()->let_go == ticket_; }
  Timed open() override {
    require_cuda(cudaEventRecord(stop_.get(), stream_), "event");
    clock_.end(stream_);
    flags_.get()->opened = ticket_;
    require_cuda(cudaStreamSynchronize(stream_), "device");
    return {elapsed(start_, stop_), clock_.mhz()};
  }
  SmClock& clock() { return clock_; }

 private:
  cudaStream_t stream_;
  CudaEvent start_ = make_event(), stop_ = make_event();
  SmClock clock_;
  PinnedArray<GateFlags> flags_;
  unsigned ticket_ = 0;
};

}  // namespace xcorr
