// The problems at which kernels break.
#pragma once

#include <vector>

#include "harness/problem/problem.hpp"
#include "harness/variant.hpp"

namespace xcorr::conformance {

// Odd shapes, counts and windows in every form; on a GPU larger ones too.
std::vector<Problem> fixed_problems(Backend backend);

}  // namespace xcorr::conformance
