// What holds between outputs of one variant, whatever the truth is: it needs no reference.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/conformance/case.hpp"

namespace xcorr::conformance {

// linearity: of the left, c(L1 + 2 L2, R) = c(L1, R) + 2 c(L2, R). shift: a right moved inside its
// matrix moves the output. swap: left and right exchanged mirror the output. window: a window is a
// part of the full output. symmetry: of one array against itself, opposite shifts have equal
// outputs. Inputs are integers: a definition has equal bits, a transform differs by
// no more than the sum of both bounds.
enum class Property { linearity, shift, swap, window, symmetry };
const std::vector<Property>& properties();
std::string_view to_string(Property property);
Property parse_property(const std::string& text);

// Inputs and the parameters of the property are drawn from the seed of the case. Refused where the
// variant does not take the other problem, or sums would not be exact. Never throws.
Outcome run_property(Property property, const Case& c, Device& device);

}  // namespace xcorr::conformance
