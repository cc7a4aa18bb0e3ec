// A variant of known length: 0.3 ms on the steady clock, then the right answer to a 1 x 1 problem.
#include <chrono>

#include "tests/negative/broken.hpp"

namespace xcorr::broken {
namespace {

struct Spin : Sound {
  using Sound::Sound;
  void compute(const Call& call) override {
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(300);
    Sound::compute(call);
    while (std::chrono::steady_clock::now() < end) {
    }
  }
};

const bool kAdded = add("spin_300us", "Takes 0.3 ms", plan<Spin>);

}  // namespace
}  // namespace xcorr::broken
