// Variants that are right as long as one thread computes, and one that never comes back.
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "tests/negative/broken.hpp"

namespace xcorr::broken {
namespace {

// All plans have one scratch.
struct SharedScratch : Sound {
  using Sound::Sound;
  static inline float scratch[1 << 16];
  void compute(const Call& call) override {
    const Index count = std::min<Index>(problem_.out_elements(), 1 << 16);
    Call aside = call;
    aside.out = scratch;
    Sound::compute(aside);
    std::this_thread::yield();
    std::copy_n(scratch, count, call.outs<float>());
  }
};

// All plans count into one number: every output is right, only the thread sanitizer sees it.
struct SharedCounter : Sound {
  using Sound::Sound;
  static inline int count = 0;
  void compute(const Call& call) override {
    ++count;
    Sound::compute(call);
  }
};

// Never comes back.
struct Hangs : Sound {
  using Sound::Sound;
  void compute(const Call&) override {
    while (true) pause();
  }
};

const bool added[] = {
    add("broken_shared_scratch", "Plans share a scratch", make_plan<SharedScratch>),
    add("broken_shared_counter", "Plans share a number", make_plan<SharedCounter>),
    add("broken_hangs", "Never comes back", make_plan<Hangs>)};

}  // namespace
}  // namespace xcorr::broken
