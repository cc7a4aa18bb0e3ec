// A variant of known length: 0.3 ms on the steady clock, then the right answer to a 1 x 1 problem.
#include <chrono>

#include "tests/negative/broken.hpp"

namespace xcorr::broken {
namespace {

const bool kAdded = add("spin_300us", "Takes 0.3 ms", [](Sound& s, const Call& call) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(300);
  s.Sound::compute(call);
  while (std::chrono::steady_clock::now() < end) {
  }
});

}  // namespace
}  // namespace xcorr::broken
