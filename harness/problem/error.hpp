// The errors of the harness. A message is one line: the thing, the cause, and a way out.
#pragma once

#include <stdexcept>

namespace xcorr {

// A mistake in a request, which the user can correct.
struct UserError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The machine lacks the memory for a point. Its outcome is out_of_memory.
struct OutOfMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A fault after which no call to the device succeeds. The process ends, and a new process measures
// the points that have no record yet.
struct DeviceLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace xcorr
