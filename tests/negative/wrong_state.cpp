// Faults of memory: written where nothing may be written, read where nothing is. Faults of state and behaviour: right at
// first, or not an answer at all. Faults that show only where calls with different memory follow each other: on a GPU they
// come of calls that overlap, here they are simulated, and calls with the same memory are right.
#include <algorithm>
#include <cstring>
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

// As if the last output were written late, from a workspace that the next call has overwritten.
struct LateWrite : Sound {
  using Sound::Sound;
  float* previous = nullptr;
  void compute(const Call& call) override {
    Sound::compute(call);
    const Index last = problem_.out_elements() - 1;
    if (previous && previous != call.outs<float>()) {
      std::memcpy(previous + last, call.outs<float>() + last, sizeof(float));
    }
    previous = call.outs<float>();
  }
};

// The inputs are those of the first call, as of a captured graph that is never updated.
struct FirstInputs : Sound {
  using Sound::Sound;
  Call first;
  void compute(const Call& call) override {
    if (!first.left) first = call;
    Call stale = call;
    stale.left = first.left;
    stale.right = first.right;
    Sound::compute(stale);
  }
};

// Writes beside an output that is not the first call's.
struct BesideTheSecond : Sound {
  using Sound::Sound;
  void* first = nullptr;
  void compute(const Call& call) override {
    Sound::compute(call);
    if (!first) first = call.out;
    if (call.out != first) call.outs<float>()[problem_.out_elements()] = 0.0f;
  }
};

const bool kAdded[] = {
    add("broken_left_overwritten", "Writes its left",
        [](Sound& s, const Call& call) {
          s.Sound::compute(call);
          const_cast<float*>(call.lefts<float>())[s.problem_.left_elements() - 1] += 1.0f;
        }),
    add("broken_right_overwritten", "Writes its right",
        [](Sound& s, const Call& call) {
          s.Sound::compute(call);
          const_cast<float*>(call.rights<float>())[0] += 1.0f;
        }),
    // The harness's bands lie beside each buffer, so the memory exists.
    add("broken_writes_behind", "Writes behind the output",
        [](Sound& s, const Call& call) {
          s.Sound::compute(call);
          call.outs<float>()[s.problem_.out_elements()] = 0.0f;
        }),
    add("broken_writes_before", "Writes before the output",
        [](Sound& s, const Call& call) {
          s.Sound::compute(call);
          call.outs<float>()[-1] = 0.0f;
        }),
    add("broken_reads_left", "Reads behind the left",
        [](Sound& s, const Call& call) {
          s.Sound::compute(call);
          call.outs<float>()[0] += 0.0f * call.lefts<float>()[s.problem_.left_elements()];
        }),
    add("broken_reads_right", "Reads behind the right",
        [](Sound& s, const Call& call) {
          s.Sound::compute(call);
          call.outs<float>()[0] += 0.0f * call.rights<float>()[s.problem_.right_elements()];
        }),
    add("broken_no_clear", "Sums not cleared", make_plan<NotCleared>, NotCleared::bytes),
    add("broken_second_call", "Writes nothing again",
        [](Sound& s, const Call& call) {
          if (s.calls_ == 0) s.Sound::compute(call);
        }),
    add("broken_later", "Wrong in the timed loop",
        [](Sound& s, const Call& call) {
          s.Sound::compute(call);
          if (s.calls_ > kLater) call.outs<float>()[0] += 100.0f;
        }),
    add("broken_remembers", "Computes new inputs only", make_plan<Remembers>),
    add("broken_throws", "compute throws",
        [](Sound&, const Call&) { throw std::runtime_error("thrown by compute"); }),
    add("broken_throws_later", "compute throws later",
        [](Sound& s, const Call& call) {
          s.Sound::compute(call);
          if (s.calls_ > kLater) throw std::runtime_error("thrown in the timed loop");
        }),
    add("broken_throws_int", "throws no exception", [](Sound&, const Call&) { throw 1; }),
    add("broken_plan", "plan throws",
        [](const PlanRequest&) -> std::unique_ptr<Plan> {
          throw std::runtime_error("thrown by plan");
        }),
    add("broken_supports", "supports throws", make_plan<Sound>, Variant().workspace_bytes,
        [](const PlanRequest&) -> Support { throw std::runtime_error("thrown by supports"); }),
    add("broken_workspace", "workspace_bytes throws", make_plan<Sound>,
        [](const PlanRequest&) -> std::size_t {
          throw std::runtime_error("thrown by workspace_bytes");
        }),
    add("broken_memory", "plan finds no memory",
        [](const PlanRequest&) -> std::unique_ptr<Plan> { throw std::bad_alloc(); }),
    add("broken_late_write", "Written late, from another call's workspace", make_plan<LateWrite>),
    add("broken_first_inputs", "Remembers where the first inputs were", make_plan<FirstInputs>),
    add("broken_beside_second", "Writes beside the second output", make_plan<BesideTheSecond>),
};

}  // namespace
}  // namespace xcorr::broken
