// Faults of memory: written where nothing may be written, read where nothing is.
#include "tests/negative/broken.hpp"

namespace xcorr::broken {
namespace {

struct LeftOverwritten : Sound {
  using Sound::Sound;
  void compute(const Call& call) override {
    Sound::compute(call);
    const_cast<float*>(call.lefts<float>())[problem_.left_elements() - 1] += 1.0f;
  }
};

struct RightOverwritten : Sound {
  using Sound::Sound;
  void compute(const Call& call) override {
    Sound::compute(call);
    const_cast<float*>(call.rights<float>())[0] += 1.0f;
  }
};

// The harness's bands lie there, so the memory exists.
struct WritesBehind : Sound {
  using Sound::Sound;
  void compute(const Call& call) override {
    Sound::compute(call);
    call.outs<float>()[problem_.out_elements()] = 0.0f;
  }
};

struct WritesBefore : Sound {
  using Sound::Sound;
  void compute(const Call& call) override {
    Sound::compute(call);
    call.outs<float>()[-1] = 0.0f;
  }
};

struct ReadsBehindLeft : Sound {
  using Sound::Sound;
  void compute(const Call& call) override {
    Sound::compute(call);
    call.outs<float>()[0] += 0.0f * call.lefts<float>()[problem_.left_elements()];
  }
};

struct ReadsBehindRight : Sound {
  using Sound::Sound;
  void compute(const Call& call) override {
    Sound::compute(call);
    call.outs<float>()[0] += 0.0f * call.rights<float>()[problem_.right_elements()];
  }
};

const bool kAdded[] = {
    add("broken_left_overwritten", "Writes its left", plan<LeftOverwritten>),
    add("broken_right_overwritten", "Writes its right", plan<RightOverwritten>),
    add("broken_writes_behind", "Writes behind the output", plan<WritesBehind>),
    add("broken_writes_before", "Writes before the output", plan<WritesBefore>),
    add("broken_reads_left", "Reads behind the left", plan<ReadsBehindLeft>),
    add("broken_reads_right", "Reads behind the right", plan<ReadsBehindRight>),
};

}  // namespace
}  // namespace xcorr::broken
