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
#include "algorithms/time_series/tuning.hpp"

namespace xcorr::time_series {

template <int kN>
struct SegmentTransform {
  static constexpr FftTuning P = fft_tuning(kN);
  static constexpr int n = kN, lanes = P.lanes, values = kN / lanes, groups = P.groups_of_block;
  static constexpr int kFirst = P.first, kMiddle = P.middle, kLast = P.last;
  static constexpr int kRest = kN / kFirst, kBegun = kFirst * kMiddle;
  static_assert(kBegun * kLast == kN && (lanes == warp::kSize || groups == 1));

  // First exchange: value k1 of task j is at k1 * kPitch1 + j. Second exchange: value t of task
  // (k1, k2) is at t * kPitch2 + k1 + first * k2.
  static constexpr bool kTwoPasses = kMiddle == 1;
  static constexpr int kPitch1 = kTwoPasses ? kRest + 1 : kLast == 8 ? kRest + 8 : kRest;
  static constexpr int kPitch2 = kLast == 8 ? kBegun + 2 : kBegun + 1;
  static constexpr int buffer = std::max(kFirst * kPitch1, kTwoPasses ? 0 : kLast* kPitch2);

  // The table has w_n^(k1 j) at (k1 - 1) * kRest + j, then w_n^(first k2 t) at (k2 - 1) * last + t.
  // `powers` has w_n^k for k < n, with the sign of the inverse transform.
  static constexpr int kTable1 = (kFirst - 1) * kRest;
  static constexpr int table = kTable1 + (kMiddle - 1) * kLast;
  static __device__ __forceinline__ void store_table(Complex* to, const Complex* powers, int thread,
                                                     int threads) {
    for (int i = thread; i < kTable1; i += threads) to[i] = powers[(i / kRest + 1) * (i % kRest)];
    for (int i = thread; i < table - kTable1; i += threads) {
      to[kTable1 + i] = powers[(i / kLast + 1) * (i % kLast) * kFirst];
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
      static_assert(kFirst == lanes);
      const Complex* const from = own + lane * kPitch1;
#pragma unroll
      for (int i = 0; i < kLast; ++i) v[i] = from[i];
      transform<kLast, kWay>(v);
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
      Complex a[kFirst];
#pragma unroll
      for (int i = 0; i < kFirst; ++i) a[i] = v[h + kTasks * i];
      transform<kFirst, kWay>(a);
      own[j] = a[0];
#pragma unroll
      for (int k = 1; k < kFirst; ++k) {
        own[k * kPitch1 + j] = twiddled<kWay>(a[k], w[(k - 1) * kRest + j]);
      }
    }
  }

  // Task (k1, t), with k1 = h * kStep + lane / last and t = lane % last, has values t + last * i.
  template <Direction kWay>
  static __device__ __forceinline__ void pass_middle(Complex (&v)[values], Complex* own,
                                                     const Complex* w, int lane) {
    constexpr int kTasks = kFirst * kLast / lanes, kStep = lanes / kLast;
    const int t = lane % kLast, k1 = lane / kLast;
    const Complex* const from = own + k1 * kPitch1 + t;
#pragma unroll
    for (int h = 0; h < kTasks; ++h) {
#pragma unroll
      for (int i = 0; i < kMiddle; ++i) {
        v[h * kMiddle + i] = from[h * kStep * kPitch1 + i * kLast];
      }
    }
    barrier();
    Complex* const to = own + t * kPitch2 + k1;
#pragma unroll
    for (int h = 0; h < kTasks; ++h) {
      Complex a[kMiddle];
#pragma unroll
      for (int i = 0; i < kMiddle; ++i) a[i] = v[h * kMiddle + i];
      transform<kMiddle, kWay>(a);
      to[h * kStep] = a[0];
#pragma unroll
      for (int k = 1; k < kMiddle; ++k) {
        to[h * kStep + k * kFirst] = twiddled<kWay>(a[k], w[kTable1 + (k - 1) * kLast + t]);
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
      Complex a[kLast];
#pragma unroll
      for (int i = 0; i < kLast; ++i) a[i] = own[i * kPitch2 + h * lanes + lane];
      transform<kLast, kWay>(a);
#pragma unroll
      for (int i = 0; i < kLast; ++i) v[h + kTasks * i] = a[i];
    }
  }
};

}  // namespace xcorr::time_series
