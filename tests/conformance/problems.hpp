// The problems at which kernels break, and a problem from its id.
#pragma once

#include <string>
#include <vector>

#include "harness/problem.hpp"
#include "harness/variant.hpp"

namespace xcorr::conformance {

// Odd shapes, counts and windows in every form; on a GPU larger ones too.
std::vector<Problem> fixed_problems(Backend backend);

// "n-to-m/3x4/5x6/2:3/full", the inverse of Problem::id. UserError where it is none.
Problem parse_problem(const std::string& id);

}  // namespace xcorr::conformance
