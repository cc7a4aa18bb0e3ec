// The smallest case near a failing one that still fails.
#pragma once

#include <functional>

#include "tests/conformance/case.hpp"

namespace xcorr::conformance {

// Halves counts, sides and windows and takes simpler inputs for as long as `fails` says so; at most
// `attempts` cases are tried.
Case shrink(Case failing, const std::function<bool(const Case&)>& fails, int attempts = 300);

}  // namespace xcorr::conformance
