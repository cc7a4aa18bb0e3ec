// Transforms of kN complex values by a group of `lanes` threads: a warp, or a block. A thread holds
// `values` values; value m is element lane + lanes * m, in natural order before and after.
//
// A transform is two passes (first, last) or three (first, middle, last) of short transforms in
// registers. Between passes, values move to other threads through a buffer in shared memory and are
// multiplied by roots of one from a table that the groups of a block share. Half a warp (16 complex
// values) accesses shared memory at a time, and the pitches keep these values in 16 different
// banks.
#pragma once

#include <algorithm>

#include "algorithms/blocks/short_transforms.hpp"
#include "algorithms/device/cuda.hpp"

namespace xcorr::time_series {

// Threads per group, groups per block, target number of blocks per SM, and the lengths of the
// passes; middle = 1: two passes.
template <int kN>
struct Passes;
template <>
struct Passes<512> {
  static constexpr int lanes = 32, groups = 4, resident = 4, first = 8, middle = 8, last = 8;
};
template <>
struct Passes<1024> {
  static constexpr int lanes = 32, groups = 4, resident = 3, first = 32, middle = 1, last = 32;
};
template <>
struct Passes<2048> {
  static constexpr int lanes = 128, groups = 1, resident = 4, first = 16, middle = 8, last = 16;
};
template <>
struct Passes<4096> {
  static constexpr int lanes = 256, groups = 1, resident = 2, first = 16, middle = 16, last = 16;
};
template <>
struct Passes<8192> {
  static constexpr int lanes = 256, groups = 1, resident = 1, first = 16, middle = 16, last = 32;
};

template <int kN>
struct SegmentTransform {
  using P = Passes<kN>;
  static constexpr int n = kN, lanes = P::lanes, values = kN / lanes;
  static constexpr int kRest = kN / P::first, kBegun = P::first * P::middle;
  static_assert(kBegun * P::last == kN && (lanes == warp::kSize || P::groups == 1));

  // First exchange: value k1 of task j is at k1 * kPitch1 + j. Second exchange: value t of task
  // (k1, k2) is at t * kPitch2 + k1 + first * k2.
  static constexpr bool kTwoPasses = P::middle == 1;
  static constexpr int kPitch1 = kTwoPasses ? kRest + 1 : P::last == 8 ? kRest + 8 : kRest;
  static constexpr int kPitch2 = P::last == 8 ? kBegun + 2 : kBegun + 1;
  static constexpr int buffer = std::max(P::first * kPitch1, kTwoPasses ? 0 : P::last* kPitch2);

  // The table has w_n^(k1 j) at (k1 - 1) * kRest + j, then w_n^(first k2 t) at (k2 - 1) * last + t.
  // `powers` has w_n^k for k < n, with the sign of the inverse transform.
  static constexpr int kTable1 = (P::first - 1) * kRest;
  static constexpr int table = kTable1 + (P::middle - 1) * P::last;
  static __device__ __forceinline__ void store_table(Complex* to, const Complex* powers, int thread,
                                                     int threads) {
    for (int i = thread; i < kTable1; i += threads) to[i] = powers[(i / kRest + 1) * (i % kRest)];
    for (int i = thread; i < table - kTable1; i += threads) {
      to[kTable1 + i] = powers[(i / P::last + 1) * (i % P::last) * P::first];
    }
  }

  // Replaces v by its transform, not scaled. All threads of the group's warps call it; `own` is the
  // group's buffer.
  template <Direction kWay>
  static __device__ __forceinline__ void run(Complex (&v)[values], Complex* own, const Complex* w,
                                             int lane) {
    barrier();  // what was read of the buffer before has been read
    pass_first<kWay>(v, own, w, lane);
    barrier();
    if constexpr (kTwoPasses) {
      static_assert(P::first == lanes);
      const Complex* const from = own + lane * kPitch1;
#pragma unroll
      for (int i = 0; i < P::last; ++i) v[i] = from[i];
      transform<P::last, kWay>(v);
    } else {
      pass_middle<kWay>(v, own, w, lane);
      barrier();
      pass_last<kWay>(v, own, lane);
    }
  }

 private:
  static __device__ __forceinline__ void barrier() {
    if constexpr (lanes == warp::kSize) {
      warp::barrier();
    } else {
      block::barrier();
    }
  }

  template <Direction kWay>
  static __device__ __forceinline__ Complex twiddled(Complex a, Complex w) {
    return a * (kWay == Direction::inverse ? w : conj(w));
  }

  // Task j = h * lanes + lane has elements j + kRest * i.
  template <Direction kWay>
  static __device__ __forceinline__ void pass_first(const Complex (&v)[values], Complex* own,
                                                    const Complex* w, int lane) {
    constexpr int kTasks = kRest / lanes;
#pragma unroll
    for (int h = 0; h < kTasks; ++h) {
      const int j = h * lanes + lane;
      Complex a[P::first];
#pragma unroll
      for (int i = 0; i < P::first; ++i) a[i] = v[h + kTasks * i];
      transform<P::first, kWay>(a);
      own[j] = a[0];
#pragma unroll
      for (int k = 1; k < P::first; ++k) {
        own[k * kPitch1 + j] = twiddled<kWay>(a[k], w[(k - 1) * kRest + j]);
      }
    }
  }

  // Task (k1, t), with k1 = h * kStep + lane / last and t = lane % last, has values t + last * i.
  template <Direction kWay>
  static __device__ __forceinline__ void pass_middle(Complex (&v)[values], Complex* own,
                                                     const Complex* w, int lane) {
    constexpr int kTasks = P::first * P::last / lanes, kStep = lanes / P::last;
    const int t = lane % P::last, k1 = lane / P::last;
    const Complex* const from = own + k1 * kPitch1 + t;
#pragma unroll
    for (int h = 0; h < kTasks; ++h) {
#pragma unroll
      for (int i = 0; i < P::middle; ++i) {
        v[h * P::middle + i] = from[h * kStep * kPitch1 + i * P::last];
      }
    }
    barrier();
    Complex* const to = own + t * kPitch2 + k1;
#pragma unroll
    for (int h = 0; h < kTasks; ++h) {
      Complex a[P::middle];
#pragma unroll
      for (int i = 0; i < P::middle; ++i) a[i] = v[h * P::middle + i];
      transform<P::middle, kWay>(a);
      to[h * kStep] = a[0];
#pragma unroll
      for (int k = 1; k < P::middle; ++k) {
        to[h * kStep + k * P::first] = twiddled<kWay>(a[k], w[kTable1 + (k - 1) * P::last + t]);
      }
    }
  }

  // Task j = k1 + first * k2 = h * lanes + lane.
  template <Direction kWay>
  static __device__ __forceinline__ void pass_last(Complex (&v)[values], const Complex* own,
                                                   int lane) {
    constexpr int kTasks = kBegun / lanes;
#pragma unroll
    for (int h = 0; h < kTasks; ++h) {
      Complex a[P::last];
#pragma unroll
      for (int i = 0; i < P::last; ++i) a[i] = own[i * kPitch2 + h * lanes + lane];
      transform<P::last, kWay>(a);
#pragma unroll
      for (int i = 0; i < P::last; ++i) v[h + kTasks * i] = a[i];
    }
  }
};

}  // namespace xcorr::time_series
