// Calls of one plan that alternate between two sets of inputs and outputs, without a wait between
// them. On a GPU such calls may overlap. The check finds calls that overwrite each other's
// workspace, that read or write before the previous call has ended, or that use the pointers of
// another call.
#pragma once

#include <string>

#include "harness/device/device.hpp"

namespace xcorr {

struct Overlapping {
  std::string wrong;    // the first fault, "" where there is none
  std::string skipped;  // why nothing was checked, "" where it was
};

// `call` holds the inputs of `kind`. Its output is overwritten. The function allocates a second set
// of inputs and outputs, where it fits, with the masks and views of the same `seed`, and releases
// it. `calls` is at least 2. Exceptions of the plan pass through.
Overlapping check_overlapping(Device& device, Truth& truth, const Problem& problem,
                              Precision precision, std::uint64_t seed, Plan& plan, const Call& call,
                              InputKind kind, int calls);

// How many calls to make when one takes `once`.
int overlapping_calls(Seconds once);

}  // namespace xcorr
