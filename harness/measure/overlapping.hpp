// Calls of one plan that alternate between two sets of inputs and outputs without a wait, so that
// they may overlap on a GPU. The check finds calls that overwrite each other's workspace, read or
// write before the previous call has ended, or use pointers of another call.
#pragma once

#include <string>

#include "harness/device/device.hpp"

namespace xcorr {

struct Overlapping {
  std::string wrong;    // the first fault, "" where there is none
  std::string skipped;  // why nothing was checked, "" where it was
};

// `call` holds inputs of `kind`; its output is overwritten. Allocates a second set of inputs and
// outputs where it fits, with masks and views of the same `seed`, and releases it. `calls` is at
// least 2. Exceptions of the plan pass through.
Overlapping check_overlapping(Device& device, Truth& truth, const Problem& problem,
                              Precision precision, std::uint64_t seed, Plan& plan, const Call& call,
                              InputKind kind, int calls);

// How many calls to make; one takes `once`.
int overlapping_calls(Seconds once);

}  // namespace xcorr
