// What holds between outputs of one variant, whatever the truth is: it needs no reference.
#pragma once

#include <array>
#include <string>

#include "tests/conformance/case.hpp"

namespace xcorr::conformance {

// linearity: of the left, c(L1 + 2 L2, R) = c(L1, R) + 2 c(L2, R). shift: a right moved inside its matrix moves the output.
// swap: left and right exchanged mirror the output. window: a window is a part of the full output. symmetry: of one array
// against itself, opposite shifts have equal outputs. Inputs are integers: a definition has equal bits, a transform differs
// by no more than the sum of both bounds.
inline const std::array<std::string, 5> kProperties = {"linearity", "shift", "swap", "window",
                                                       "symmetry"};

// Inputs and the parameters of the property are drawn from the seed of the case. Refused where the variant does not take
// the other problem, or sums would not be exact. UserError where the name is none of kProperties; throws nothing else.
Outcome run_property(const std::string& name, const Case& c, Device& device);

}  // namespace xcorr::conformance
