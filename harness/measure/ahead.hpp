// Kernels that are compiled at run time, compiled ahead by all cores of the host.
//
// A compiler takes most of a second for a kernel, and one core. Where many points of such a variant are measured briefly, the
// plans of the next ones are made side by side and thrown away. The variant keeps the code on disk, and the plan of the point
// finds it there. Nothing is timed meanwhile.
#pragma once

#include <algorithm>
#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "harness/measure/measure.hpp"

namespace xcorr {

class Ahead {
 public:
  // `points`: in the order in which they are prepared. `threads`: of the host.
  Ahead(std::vector<Point*> points, unsigned threads)
      : points_(std::move(points)), threads_(std::max(threads, 1u)) {}

  // Comes before the first call of prepare() of a point.
  void before(const Point& point) {
    if (compiled_.count(point.request().variant->id) && !planned_.count(&point)) plan_from(point);
  }
  // Comes after it. That a variant compiles is known from its first plan.
  void after(const Point& point) {
    if (point.is_compiled_at_run_time()) compiled_.insert(point.request().variant->id);
  }

 private:
  // Few enough at a time that the first of them does not seem to hang.
  static constexpr std::size_t kOfAThread = 4;

  void plan_from(const Point& first) {
    std::vector<Point*> next;
    for (auto at = std::find(points_.begin(), points_.end(), &first);
         at != points_.end() && next.size() < kOfAThread * threads_; ++at) {
      const PointRequest& asked = (*at)->request();
      if (asked.variant == first.request().variant && asked.brief && planned_.insert(*at).second) {
        next.push_back(*at);
      }
    }
    std::atomic<std::size_t> taken = 0;
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < std::min<std::size_t>(threads_, next.size()); ++i) {
      threads.emplace_back([&] {
        for (std::size_t own; (own = taken++) < next.size();) next[own]->plan_ahead();
      });
    }
  }

  std::vector<Point*> points_;
  unsigned threads_;
  std::set<std::string> compiled_;  // ids of variants
  std::set<const Point*> planned_;
};

}  // namespace xcorr
