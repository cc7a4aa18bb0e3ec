// The errors of the harness. A message is one line: the thing, the cause, and a way out.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace xcorr {

// A mistake in a request, which the user can correct.
struct UserError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws UserError: "shape '3y4': write ROWSxCOLS, as 64x48".
[[noreturn]] inline void refuse(std::string_view what, std::string_view text,
                                std::string_view why) {
  throw UserError(std::string(what).append(" '").append(text).append("': ").append(why));
}

// The machine lacks the memory for a point. The outcome of the point is out_of_memory.
struct OutOfMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A fault after which no call to the device succeeds. The process ends. A new process measures the
// points that have no record yet.
struct DeviceLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace xcorr
