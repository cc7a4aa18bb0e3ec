// FFTW's planner: its lock, its time limit, and the use of its wisdom.
#pragma once

#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>

#include "algorithms/blocks/fftw_names.hpp"
#include "algorithms/blocks/fftw_wisdom.hpp"
#include "harness/variant.hpp"

namespace xcorr::device {

// The planner is not thread-safe; execution is.
inline std::mutex fftw_planner;

template <typename T>
struct DestroyPlan {
  void operator()(typename Fftw<T>::Handle plan) const {
    const std::lock_guard lock(fftw_planner);
    Fftw<T>::destroy(plan);
  }
};
template <typename T>
using OwnedPlan = std::unique_ptr<std::remove_pointer_t<typename Fftw<T>::Handle>, DestroyPlan<T>>;

// Flags for transforms of rows. With FFTW_MEASURE they give the same speed as no flags (512 to
// 16384 points, 12 lengths of 32 to 512) at a third of the planning time.
inline constexpr unsigned kRowEffort = FFTW_NO_BUFFERING | FFTW_NO_INDIRECT_OP | FFTW_NO_DFT_R2HC |
                                       FFTW_NO_RANK_SPLITS | FFTW_NO_VRANK_SPLITS |
                                       FFTW_NO_VRECURSE;

// Seconds that the planner may time ways to compute one transform. It then uses the best found so
// far.
constexpr double kLongestPlanning = 5;

// Locks the planner while the plans of a variant are created. The wisdom of earlier plans is
// removed, so that a plan does not depend on them. With Planning::kept the wisdom on disk is
// loaded.
template <typename T>
class Planner {
  using Library = Fftw<T>;
  using Complex = typename Library::Complex;
  using Handle = typename Library::Handle;

 public:
  explicit Planner(Planning planning) : lock_(fftw_planner), planning_(planning) {
    Library::forget();
    Library::limit_time(planning == Planning::once ? FFTW_NO_TIMELIMIT : kLongestPlanning);
    if (planning == Planning::kept) Wisdom<T>::usual().recall();
  }
  ~Planner() {
    if (planning_ == Planning::kept) Wisdom<T>::usual().keep();
    Library::forget();  // otherwise plans that are created without a Planner would use it
    Library::limit_time(FFTW_NO_TIMELIMIT);
  }
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;

  // Like FFTW's functions of these names; `flags` does not contain the planning effort.
  Handle r2c(int n, T* in, Complex out, unsigned flags) const {
    return plan({"r2c", {n}}, flags,
                [=](unsigned all) { return Library::plan_r2c(n, in, out, all); });
  }
  Handle c2r(int n, Complex in, T* out, unsigned flags) const {
    return plan({"c2r", {n}}, flags,
                [=](unsigned all) { return Library::plan_c2r(n, in, out, all); });
  }
  // Plans `width` interleaved transforms.
  Handle columns(int n, int width, Complex in, Complex out, int sign) const {
    return plan({"columns", {n, width, sign}}, 0, [=](unsigned all) {
      return Library::plan_many(1, &n, width, in, nullptr, width, 1, out, nullptr, width, 1, sign,
                                all);
    });
  }

 private:
  struct Transform {
    const char* kind;
    std::initializer_list<int> numbers;
  };

  template <typename Make>
  Handle plan(const Transform& transform, unsigned flags, const Make& make) const {
    if (planning_ != Planning::kept) {
      return make(flags | (planning_ == Planning::once ? FFTW_ESTIMATE : FFTW_MEASURE));
    }
    Wisdom<T>& wisdom = Wisdom<T>::usual();
    std::string name = transform.kind;
    for (const int number : transform.numbers) name.append(" ").append(std::to_string(number));
    name.append(" flags ").append(std::to_string(flags));
    if (wisdom.is_late(name)) return make(flags | FFTW_ESTIMATE);
    const unsigned known = flags | FFTW_MEASURE | FFTW_WISDOM_ONLY;
    if (const Handle kept = make(known)) return kept;
    const Handle timed = make(flags | FFTW_MEASURE);
    // A plan that ran out of time leaves no wisdom: every process would time it again.
    if (const Handle learnt = make(known)) {
      Library::destroy(learnt);
    } else {
      wisdom.set_late(name);
    }
    return timed;
  }

  std::lock_guard<std::mutex> lock_;
  const Planning planning_;
};

}  // namespace xcorr::device
