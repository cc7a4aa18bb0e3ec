// The signal's Hankel matrix: a row for each shift, the samples of all channels that this shift
// meets.
#pragma once

#include "algorithms/device/divide.hpp"
#include "algorithms/device/plan.hpp"

namespace xcorr::time_series {

constexpr int kHankelThreads = 256;

// to[s][c * length + t] = signal[c * pitch + s + t] for `elements` elements; `row` divides by the
// elements of a row, `channel` by length.
static __global__ void __launch_bounds__(kHankelThreads)
    write_hankel(const float* signal, Index pitch, Divider row, Divider channel,
                 std::uint32_t elements, float* to) {
  const std::uint32_t element = blockIdx.x * kHankelThreads + threadIdx.x;
  if (element >= elements) return;
  std::uint32_t t = element;
  const std::uint32_t s = row.split(t);
  const std::uint32_t c = channel.split(t);
  to[element] = signal[c * pitch + s + t];
}

}  // namespace xcorr::time_series
