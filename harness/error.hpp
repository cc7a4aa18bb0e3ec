// Errors a user can cause and mend. The message is one line: thing, cause, way out.
#pragma once

#include <stdexcept>

namespace xcorr {

struct UserError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The machine lacks the memory for a point: outcome out_of_memory, not a mistake of the user.
struct OutOfMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A fault after which no call to the device succeeds: the process ends, and what it had not yet
// measured is measured by a new one.
struct DeviceLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace xcorr
