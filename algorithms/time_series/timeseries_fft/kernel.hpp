// The two kernels of timeseries_fft: template_spectra_kernel and overlap_save_kernel.
#pragma once

#include "algorithms/device/launch.hpp"
#include "algorithms/device/memory.hpp"
#include "algorithms/time_series/timeseries_fft/segment_transform.hpp"
#include "harness/problem/problem.hpp"

namespace xcorr::time_series {

// Arguments of both kernels, passed by value.
struct FftArguments {
  const float* templates;
  const float* signal;  // sample `first` of the first channel
  float* out;
  const Complex* powers;  // w_n^k, k < n
  Complex* spectra;       // [templates][channels][n], in the order of the threads that use them
  Index pitch;            // of the signal
  Index samples;          // of a channel that are used
  Index shifts;
  int template_count, channels, length;
  int valid;    // outputs per segment
  Index pairs;  // pairs of segments
  float scale;  // of a transform and its inverse
};

// Two values of a thread, for accesses of 16 bytes.
struct alignas(16) ValuePair {
  Complex a, b;
};

// Stores a spectrum: the values of a thread, in memory that only this thread reads.
template <typename T>
__device__ __forceinline__ void keep(const Complex (&v)[T::values], Complex* spectrum, int lane) {
  ValuePair* const to = reinterpret_cast<ValuePair*>(spectrum) + lane;
#pragma unroll
  for (int m = 0; m < T::values; m += 2) to[m / 2 * T::lanes] = {v[m], v[m + 1]};
}

// Loads elements lane + lanes * m of `count` samples, padded with zeros.
template <typename T>
__device__ __forceinline__ void load_samples(Complex (&v)[T::values], float Complex::* part,
                                             const float* from, int count, int lane) {
  // All addresses are at constant offsets from this one; without opaque() the compiler computes
  // each separately.
  const float* const own = opaque(from + lane);
#pragma unroll
  for (int m = 0; m < T::values; ++m) {
    v[m].*part = lane + T::lanes * m < count ? load_past_l1(own + T::lanes * m) : 0.0f;
  }
}

template <typename T>
constexpr int kThreads = T::lanes * T::groups;

// Complex elements of shared memory: the table, and per group a buffer and spectra.
template <typename T>
constexpr Index shared_elements(Index spectra) {
  constexpr Index kTable = (T::table + 1) / 2 * 2, kBuffer = (T::buffer + 1) / 2 * 2;
  return kTable + T::groups * (kBuffer + spectra * T::n);
}

// The part of a group in dynamic shared memory. The first barrier of a transform is one of the
// group and does not wait for the table; the barrier of the block here does.
template <typename T>
struct GroupMemory {
  __device__ __forceinline__ GroupMemory(const Complex* powers, int spectra) {
    constexpr int kTable = (T::table + 1) / 2 * 2, kBuffer = (T::buffer + 1) / 2 * 2;
    Complex* const shared = dynamic_shared<Complex>();
    const int thread = static_cast<int>(threadIdx.x);
    T::store_table(shared, powers, thread, kThreads<T>);
    table = shared;
    buffer = shared + kTable + thread / T::lanes * (kBuffer + spectra * T::n);
    spectrum = buffer + kBuffer;
    lane = thread % T::lanes;
    group = static_cast<int>(blockIdx.x) * T::groups + thread / T::lanes;
    block::barrier();
  }
  const Complex* table;
  Complex *buffer, *spectrum;
  int lane, group;
};

// A group transforms one channel of one template and stores the conjugate, times the scale of all
// transforms.
template <int kN>
__global__ void __launch_bounds__(kThreads<SegmentTransform<kN>>)
    template_spectra_kernel(FftArguments a) {
  using T = SegmentTransform<kN>;
  const GroupMemory<T> my(a.powers, 0);
  wait_for_previous();
  let_next_start();
  if (my.group >= a.template_count * a.channels) return;  // all threads of the group
  Complex v[T::values] = {};
  load_samples<T>(v, &Complex::re, a.templates + static_cast<Index>(my.group) * a.length, a.length,
                  my.lane);
  T::template run<Direction::forward>(v, my.buffer, my.table, my.lane);
#pragma unroll
  for (int m = 0; m < T::values; ++m) v[m] = {a.scale * v[m].re, -a.scale * v[m].im};
  keep<T>(v, a.spectra + static_cast<Index>(my.group) * kN, my.lane);
}

// sum (+)= template * segment, bin by bin.
template <typename T>
__device__ __forceinline__ void add_products(Complex (&sum)[T::values], const Complex* of_template,
                                             const Complex* of_segment, bool first, int lane) {
  const ValuePair* const l = reinterpret_cast<const ValuePair*>(of_template) + lane;
  const ValuePair* const r = reinterpret_cast<const ValuePair*>(of_segment) + lane;
#pragma unroll
  for (int m = 0; m < T::values; m += 2) {
    const ValuePair x = l[m / 2 * T::lanes], y = r[m / 2 * T::lanes];
    const Complex before[2] = {sum[m], sum[m + 1]};
    sum[m] = x.a * y.a;
    sum[m + 1] = x.b * y.b;
    if (!first) {
      sum[m] = sum[m] + before[0];
      sum[m + 1] = sum[m + 1] + before[1];
    }
  }
}

// Stores both parts of v to the outputs of two neighbouring segments. `left` is the number of
// outputs from `out` to the end.
template <typename T>
__device__ __forceinline__ void store_outputs(const Complex (&v)[T::values], float* out, int valid,
                                              Index left, int lane) {
  const int first = static_cast<int>(left < valid ? left : valid);
  const int second = static_cast<int>(left - first < valid ? left - first : valid);
  float* const to_first = opaque(out + lane);
  float* const to_second = opaque(out + valid + lane);
#pragma unroll
  for (int m = 0; m < T::values; ++m) {
    const int at = lane + T::lanes * m;
    if (at < first) store_last(to_first + T::lanes * m, v[m].re);
    if (at < second) store_last(to_second + T::lanes * m, v[m].im);
  }
}

// A group processes two neighbouring segments, as the real and the imaginary part of one complex
// segment, with a part of the templates (y of the grid).
template <int kN>
__global__ void __launch_bounds__(kThreads<SegmentTransform<kN>>, SegmentTransform<kN>::P.resident)
    overlap_save_kernel(FftArguments a, int templates_of_a_part) {
  using T = SegmentTransform<kN>;
  const GroupMemory<T> my(a.powers, a.channels);
  wait_for_previous();
  if (my.group >= a.pairs) return;  // all threads of the group
  const Index begin = my.group * static_cast<Index>(2 * a.valid);
  Complex v[T::values];
#pragma unroll 1
  for (int c = 0; c < a.channels; ++c) {
    const float* const from = a.signal + c * a.pitch + begin;
    const int count = static_cast<int>(a.samples - begin < 2 * kN ? a.samples - begin : 2 * kN);
    load_samples<T>(v, &Complex::re, from, count, my.lane);
    load_samples<T>(v, &Complex::im, from + a.valid, count - a.valid, my.lane);
    T::template run<Direction::forward>(v, my.buffer, my.table, my.lane);
    keep<T>(v, my.spectrum + c * kN, my.lane);
  }
  const int first = static_cast<int>(blockIdx.y) * templates_of_a_part;
  const int end = first + templates_of_a_part < a.template_count ? first + templates_of_a_part
                                                                 : a.template_count;
#pragma unroll 1
  for (int i = first; i < end; ++i) {
    const Complex* spectrum = a.spectra + static_cast<Index>(i) * a.channels * kN;
    add_products<T>(v, spectrum, my.spectrum, true, my.lane);
#pragma unroll 1
    for (int c = 1; c < a.channels; ++c) {
      add_products<T>(v, spectrum + c * kN, my.spectrum + c * kN, false, my.lane);
    }
    T::template run<Direction::inverse>(v, my.buffer, my.table, my.lane);
    store_outputs<T>(v, a.out + i * a.shifts + begin, a.valid, a.shifts - begin, my.lane);
  }
}

}  // namespace xcorr::time_series
