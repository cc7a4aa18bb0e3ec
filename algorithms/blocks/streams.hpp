// Several streams that start after the work of the caller's stream, which then waits for them. They
// are created with the plan, since creation takes longer than a small kernel. They can be used
// while the caller's stream is captured.
#pragma once

#include <vector>

#include "algorithms/device/launch.hpp"

namespace xcorr::device {

class Streams {
 public:
  explicit Streams(int count)
      : streams_(static_cast<std::size_t>(count)), done_(static_cast<std::size_t>(count)) {}

  // Work launched after this call in any of the streams waits for the work in `from`.
  void fork(void* from) {
    start_.record(from);
    for (const OwnStream& stream : streams_) start_.wait_in(stream.get());
  }
  // Work launched after this call in `to` waits for all streams.
  void join(void* to) {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      done_[i].record(streams_[i].get());
      done_[i].wait_in(to);
    }
  }

  // Stream i modulo the number of streams.
  void* operator[](std::int64_t i) const {
    return streams_[static_cast<std::size_t>(i) % streams_.size()].get();
  }

 private:
  OwnEvent start_;
  std::vector<OwnStream> streams_;
  std::vector<OwnEvent> done_;
};

}  // namespace xcorr::device
