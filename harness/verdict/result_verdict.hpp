// The verdict on records, the results that are no surfaces (harness/problem/results.hpp). A record
// is right where some surface within the bounds of the float64 truth gives it (docs/design.md,
// Checks).
#pragma once

#include <memory>

#include "harness/device/device.hpp"
#include "harness/verdict/verdict.hpp"

namespace xcorr {

// `truth` is that of problem.surface(). `records` are problem.result_bytes() bytes of host memory.
// More outputs above a threshold than the capacity are wrong.
Check check_result(const Problem& problem, Truth& truth, InputKind kind, const void* records);

// The truth of a problem whose result is no surface, from the truth of its surface.
std::unique_ptr<Truth> make_result_truth(const Problem& problem, std::shared_ptr<Truth> surface,
                                         Device& device);

// Bytes of host memory that such a truth takes in addition.
std::size_t result_truth_bytes(const Problem& problem);

}  // namespace xcorr
