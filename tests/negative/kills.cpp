// Ends the process, as an access beyond all memory does. Linked into conformance-broken only.
#include <csignal>

#include "tests/negative/broken.hpp"

namespace xcorr::broken {
namespace {

const bool kAdded =
    add("broken_kills", "Ends the process", [](Sound&, const Call&) { std::raise(SIGSEGV); });

}  // namespace
}  // namespace xcorr::broken
