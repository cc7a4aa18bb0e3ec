// What detection in tf32 uses with both engines.
#pragma once

#include "algorithms/time_series/detection/plan.hpp"
#include "algorithms/time_series/tf32.hpp"

namespace xcorr::time_series {

inline constexpr int kTf32Shifts = static_cast<int>(small_if_emulated(96, 16));
// The error of a threshold of 8 deviations is at most 4.5 x 2^-18 (half a bin for the median, half
// a bin for each deviation), which is less than tf32's error of an output.
inline constexpr BracketBins kTf32Bins = {4096,
                                          static_cast<float>(small_if_emulated(1 << 18, 1 << 13))};
using Tf32Products = Tf32<Instruction::mma, true>;

}  // namespace xcorr::time_series
