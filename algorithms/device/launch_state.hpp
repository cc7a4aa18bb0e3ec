// What launches have to remember from one to the next. No call of CUDA is in here, so that a test
// holds it on any machine (tests/algorithms/test_launch_state.cpp).
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <utility>

namespace xcorr {

// What every kernel may have of dynamic shared memory without asking.
inline constexpr std::size_t kSharedWithoutAsking = 48 * 1024;

// How much dynamic shared memory each kernel has been allowed on each device. The limit belongs to
// the kernel and not to a plan: plans of several threads use one kernel with different sizes, and a
// smaller one that set its own size would make the launches of a larger one fail.
class SharedLimits {
 public:
  // Calls set() unless the kernel has been allowed as much on the device before. One thread at a
  // time; what set() throws passes on, and the limit then counts as it was.
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

}  // namespace xcorr
