// The median of the values of the lanes of a warp: unlike a mean, it is not moved by a few
// outliers.
#pragma once

#include "algorithms/device/cuda.hpp"

namespace xcorr::device {

// The median of the lanes' values that are numbers; 0 if there is none.
__device__ __forceinline__ float median_of_numbers(float value) {
  int before = 0, count = 0;  // lanes with smaller values, lanes with numbers
#pragma unroll 4
  for (int other = 0; other < warp::kSize; ++other) {
    const float of_other = warp::shuffle(value, other);
    count += of_other == of_other;
    before += of_other < value || (of_other == value && other < warp::lane());
  }
  return warp::reduce_add(value == value && before == count / 2 ? value : 0.0f);  // one lane has it
}

}  // namespace xcorr::device
