// Faults that show only where calls with different memory follow each other: on a GPU they come of
// calls that overlap, here they are simulated. Calls with the same memory are right.
#include <cstring>

#include "tests/negative/broken.hpp"

namespace xcorr::broken {
namespace {

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
    add("broken_late_write", "Written late, from another call's workspace", plan<LateWrite>),
    add("broken_first_inputs", "Remembers where the first inputs were", plan<FirstInputs>),
    add("broken_beside_second", "Writes beside the second output", plan<BesideTheSecond>),
};

}  // namespace
}  // namespace xcorr::broken
