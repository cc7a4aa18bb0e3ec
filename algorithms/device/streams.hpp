// Several streams that start where the caller's stream is and that it waits for afterwards. Created
// with the plan, since creating streams and events costs more than a small kernel; usable inside a
// stream capture.
#pragma once

#include <vector>

#include "algorithms/device/cuda.hpp"

namespace xcorr {

class Streams {
 public:
#ifdef XCORR_EMULATE
  explicit Streams(int count) : streams_(static_cast<std::size_t>(count)) {}
  void fork(void*) {}
  void join(void*) {}
#else
  explicit Streams(int count) {
    check_cuda(cudaEventCreateWithFlags(&start_, cudaEventDisableTiming), "event");
    for (int i = 0; i < count; ++i) {
      cudaStream_t stream;
      check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
      streams_.push_back(stream);
      done_.emplace_back();
      check_cuda(cudaEventCreateWithFlags(&done_.back(), cudaEventDisableTiming), "event");
    }
  }
  ~Streams() {
    for (cudaEvent_t event : done_) cudaEventDestroy(event);
    for (void* stream : streams_) cudaStreamDestroy(static_cast<cudaStream_t>(stream));
    cudaEventDestroy(start_);
  }
  // What is launched from here on in any of the streams waits for what is in `from`.
  void fork(void* from) {
    check_cuda(cudaEventRecord(start_, static_cast<cudaStream_t>(from)), "fork");
    for (void* stream : streams_) {
      check_cuda(cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), start_, 0), "fork");
    }
  }
  // What is launched in `to` from here on waits for all streams.
  void join(void* to) {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      check_cuda(cudaEventRecord(done_[i], static_cast<cudaStream_t>(streams_[i])), "join");
      check_cuda(cudaStreamWaitEvent(static_cast<cudaStream_t>(to), done_[i], 0), "join");
    }
  }
#endif
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  // Streams in turn: i modulo their number.
  void* operator[](std::int64_t i) const {
    return streams_[static_cast<std::size_t>(i) % streams_.size()];
  }

 private:
  std::vector<void*> streams_;
#ifndef XCORR_EMULATE
  cudaEvent_t start_ = nullptr;
  std::vector<cudaEvent_t> done_;
#endif
};

}  // namespace xcorr
