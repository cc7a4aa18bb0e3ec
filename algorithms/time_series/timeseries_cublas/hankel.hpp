// The signal's Hankel matrix: one row per shift, with the samples of all channels at this shift.
#pragma once

#include "algorithms/blocks/divide.hpp"
#include "algorithms/device/launch.hpp"
#include "algorithms/time_series/series_shape.hpp"
#include "algorithms/time_series/tuning.hpp"

namespace xcorr::time_series {

// kCount neighbouring elements, written with one access.
template <int kCount>
struct alignas(sizeof(float) * kCount) Elements {
  float of[kCount];
};

// to[s][c * length + t] = signal[c * pitch + s + t] for `elements` elements; `row` divides by the
// elements of a row, `channel` by length. A thread writes kCount elements. kCount divides length.
template <int kCount>
static __global__ void __launch_bounds__(SeriesTuning::kHankelThreads)
    write_hankel(const float* signal, Index pitch, Divider row, Divider channel,
                 std::uint32_t elements, float* to) {
  const std::uint32_t element = (blockIdx.x * SeriesTuning::kHankelThreads + threadIdx.x) * kCount;
  if (element >= elements) return;
  std::uint32_t t = element;
  const std::uint32_t s = row.split(t);
  const std::uint32_t c = channel.split(t);
  const float* const from = signal + (c * pitch + s + t);
  Elements<kCount> out;
#pragma unroll
  for (int i = 0; i < kCount; ++i) out.of[i] = from[i];
  reinterpret_cast<Elements<kCount>*>(to)[element / kCount] = out;
}

// Enqueues building the matrix of `count` shifts. `signal` is at the first of these shifts.
inline void enqueue_hankel(const float* signal, const SeriesShape& s, Index count, float* to,
                           void* stream) {
  const Index row = s.channels * s.length;
  const auto elements = static_cast<std::uint32_t>(count * row);
  const auto enqueue = [&](auto kernel, int of_thread) {
    launch(kernel,
           dim3(ceil_div(elements,
                         static_cast<std::uint32_t>(SeriesTuning::kHankelThreads * of_thread))),
           dim3(SeriesTuning::kHankelThreads), 0, stream, signal, s.pitch, Divider(row),
           Divider(s.length), elements, to);
  };
  if (s.length % 4 == 0) {
    enqueue(write_hankel<4>, 4);
  } else {
    enqueue(write_hankel<1>, 1);
  }
}

}  // namespace xcorr::time_series
