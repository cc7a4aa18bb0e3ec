// Are these records right? Records of results that are no surfaces (harness/problem/results.hpp) are judged
// from the float64 surface and the bound of each output: a record is right where some surface within
// the bounds gives it (docs/design.md, Checks).
#pragma once

#include <memory>

#include "harness/device/device.hpp"
#include "harness/verdict/verdict.hpp"

namespace xcorr {

// `truth` is that of problem.surface(). `records` are problem.result_bytes() bytes in host memory.
// More outputs above a threshold than the capacity count as wrong.
Check check_result(const Problem& problem, Truth& truth, InputKind kind, const void* records);

// The truth of a problem whose result is no surface, from that of its surface.
std::unique_ptr<Truth> make_result_truth(const Problem& problem, std::shared_ptr<Truth> surface,
                                         Device& device);

// Host memory that such a truth takes besides that of the surface.
std::size_t result_truth_bytes(const Problem& problem);

}  // namespace xcorr
