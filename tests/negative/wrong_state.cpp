// Faults of state and behaviour: right at first, or not an answer at all.
#include <algorithm>
#include <new>
#include <stdexcept>
#include <vector>

#include "tests/negative/broken.hpp"

namespace xcorr::broken {
namespace {

// Sums in a workspace that only the plan clears.
struct NotCleared : Sound {
  explicit NotCleared(const PlanRequest& request) : Sound(request) {
    std::fill_n(sums(), problem_.out_elements(), 0.0f);
  }
  static std::size_t bytes(const PlanRequest& request) {
    return static_cast<std::size_t>(request.problem.out_elements()) * sizeof(float);
  }
  float* sums() const { return static_cast<float*>(request_.workspace); }
  void compute(const Call& call) override {
    Sound::compute(call);
    for (Index i = 0; i < problem_.out_elements(); ++i) {
      call.outs<float>()[i] = sums()[i] += call.outs<float>()[i];
    }
  }
};

struct SilentSecondCall : Sound {
  using Sound::Sound;
  void compute(const Call& call) override {
    if (calls_ == 0) Sound::compute(call);
  }
};

struct WrongLater : Sound {
  using Sound::Sound;
  void compute(const Call& call) override {
    Sound::compute(call);
    if (calls_ > kLater) call.outs<float>()[0] += 100.0f;
  }
};

// Does its work only when the inputs are new: right, and faster than any honest variant.
struct Remembers : Sound {
  using Sound::Sound;
  std::vector<float> seen;
  void compute(const Call& call) override {
    std::vector<float> now(call.lefts<float>(), call.lefts<float>() + problem_.left_elements());
    if (now == seen) return;
    seen = std::move(now);
    Sound::compute(call);
  }
};

struct Throws : Sound {
  using Sound::Sound;
  void compute(const Call&) override { throw std::runtime_error("thrown by compute"); }
};

struct ThrowsLater : Sound {
  using Sound::Sound;
  void compute(const Call& call) override {
    Sound::compute(call);
    if (calls_ > kLater) throw std::runtime_error("thrown in the timed loop");
  }
};

struct ThrowsNoException : Sound {
  using Sound::Sound;
  void compute(const Call&) override { throw 1; }
};

std::unique_ptr<Plan> throw_in_plan(const PlanRequest&) {
  throw std::runtime_error("thrown by plan");
}
Support throw_in_supports(const PlanRequest&) { throw std::runtime_error("thrown by supports"); }
std::size_t throw_in_workspace(const PlanRequest&) {
  throw std::runtime_error("thrown by workspace_bytes");
}
std::unique_ptr<Plan> run_out(const PlanRequest&) { throw std::bad_alloc(); }

const bool kAdded[] = {
    add("broken_no_clear", "Sums not cleared", plan<NotCleared>, NotCleared::bytes),
    add("broken_second_call", "Writes nothing again", plan<SilentSecondCall>),
    add("broken_later", "Wrong in the timed loop", plan<WrongLater>),
    add("broken_remembers", "Computes new inputs only", plan<Remembers>),
    add("broken_throws", "compute throws", plan<Throws>),
    add("broken_throws_later", "compute throws later", plan<ThrowsLater>),
    add("broken_throws_int", "throws no exception", plan<ThrowsNoException>),
    add("broken_plan", "plan throws", throw_in_plan),
    add("broken_supports", "supports throws", plan<Sound>, no_bytes, throw_in_supports),
    add("broken_workspace", "workspace_bytes throws", plan<Sound>, throw_in_workspace),
    add("broken_memory", "plan finds no memory", run_out),
};

}  // namespace
}  // namespace xcorr::broken
