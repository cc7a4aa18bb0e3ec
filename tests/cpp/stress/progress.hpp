// Who does what since when: so that a thread that hangs can be named.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <utility>

namespace xcorr::stress {

using Clock = std::chrono::steady_clock;

inline double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// What one thread does, for the one that watches.
class Progress {
 public:
  explicit Progress(std::string who) : who_(std::move(who)) {}
  void begins(std::string what) {
    const std::lock_guard lock(mutex_);
    what_ = std::move(what);
    start_ = Clock::now();
    busy_ = true;
  }
  // Seconds that it took.
  double ended() {
    const std::lock_guard lock(mutex_);
    busy_ = false;
    return since(start_);
  }
  // "" or what has taken longer than `seconds`.
  std::string stalled(double seconds) const {
    const std::lock_guard lock(mutex_);
    if (!busy_ || since(start_) < seconds) return "";
    return who_ + ": no progress for " + std::to_string(static_cast<int>(since(start_))) +
           " s in " + what_;
  }

 private:
  const std::string who_;
  mutable std::mutex mutex_;
  std::string what_;
  Clock::time_point start_;
  bool busy_ = false;
};

}  // namespace xcorr::stress
