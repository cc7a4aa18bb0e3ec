// Ends the process, as an access beyond all memory does. Linked into conformance-broken only.
#include <csignal>

#include "tests/negative/broken.hpp"

namespace xcorr::broken {
namespace {

struct Kills : Sound {
  using Sound::Sound;
  void compute(const Call&) override { std::raise(SIGSEGV); }
};

const bool kAdded = add("broken_kills", "Ends the process", plan<Kills>);

}  // namespace
}  // namespace xcorr::broken
