// Calls of one plan with two sets of inputs and two outputs in turn, nobody waiting between them:
// a call must not meet the next one in the workspace, nor read or write ahead of its turn, nor
// remember the pointers of another call. On a GPU such calls overlap.
#pragma once

#include <string>

#include "harness/device.hpp"

namespace xcorr {

struct Overlapping {
  std::string wrong;    // the first thing that is wrong
  std::string skipped;  // why nothing was checked
};

// `call` holds the inputs of `kind`; its output is overwritten. A second set of inputs and a second
// output are allocated, where they fit, and released. `calls` is at least 2. Throws what the plan
// throws.
Overlapping check_overlapping(Device& device, Truth& truth, const Problem& problem,
                              Precision precision, Plan& plan, const Call& call, InputKind kind,
                              int calls);

// How many calls are worth their time, when one takes `once`.
int overlapping_calls(Seconds once);

}  // namespace xcorr
