// Transforms held by 16 or 32 lanes of one warp (a "lane group"), with 16 to 24 values per lane. A
// lane group meets no barrier except that of its warp, so one warp can wait for memory while
// another one computes.
//
// An n-point transform is two or three passes of short transforms in registers. Before and after
// it, value m of a lane is element lane + lanes * m: the order is natural on both sides, and the
// lanes of a load or store are neighbours. Between passes values change lanes through a buffer in
// shared memory, whose pitches put the 16 lanes of one access into 16 different banks.
//
// Images are column-major: the partial transform of column k begins at k * ny, so a lane group's
// column is one run of memory.
#pragma once

#include <algorithm>

#include "algorithms/blocks/short_transforms.hpp"
#include "algorithms/device/memory.hpp"
#include "algorithms/fused_fft/fused_fft_lanes/tuning.hpp"
#include "algorithms/fused_fft/problem.hpp"

namespace xcorr::fused_fft {

// Lanes per lane group, and the lengths of the passes; middle = 1: two passes.
template <int kN>
struct LanePasses;
template <>
struct LanePasses<256> {
  static constexpr int lanes = 16, first = 16, middle = 1, last = 16;
};
template <>
struct LanePasses<384> {
  static constexpr int lanes = 16, first = 8, middle = 6, last = 8;
};
template <>
struct LanePasses<512> {
  static constexpr int lanes = 32, first = 8, middle = 8, last = 8;
};

template <int kN>
struct LaneGroup {
  using R = LanePasses<kN>;
  static constexpr int n = kN, lanes = R::lanes, values = kN / lanes;
  static constexpr int of_block = LanesTuning::kThreads / lanes, live = kN / 2 + 1;

  // Exchanges: the first stores value k1 of task j at k1 * kPitch1 + j; the second stores value t
  // of task (k1, k2) at t * kPitch2 + k1 + first * k2.
  static constexpr int kRest = kN / R::first, kBegun = R::first * R::middle;
  static constexpr int kPitch1 = R::middle == 1 ? kRest + 1 : kRest + 8, kPitch2 = kBegun + 2;
  static constexpr int kExchange1 = R::first * kPitch1;
  static constexpr int kExchange2 = R::middle == 1 ? 0 : R::last * kPitch2;
  static constexpr int kNeeded = std::max(kExchange1, kExchange2);
  // Distance of the buffers of two lane groups, in elements; `of_block` buffers start at different
  // banks.
  static constexpr int kSkew = 16 / of_block == 2 ? 2 : 1;
  static constexpr int buffer = (kNeeded + 15 - kSkew) / 16 * 16 + kSkew;
  static_assert(buffer >= kNeeded && buffer > kN && (of_block == 8 || of_block == 16));

  // Table: w_n^(k1 j) at (k1 - 1) * kRest + j, then the twiddles of the second exchange.
  static constexpr int kTwiddles1 = (R::first - 1) * kRest;
  static constexpr int twiddles = kTwiddles1 + (R::middle - 1) * R::last;
  static __device__ __forceinline__ void store_twiddles(Complex* to, const Complex* powers,
                                                        int thread, int threads) {
    for (int i = thread; i < kTwiddles1; i += threads) {
      to[i] = powers[(i / kRest + 1) * (i % kRest)];
    }
    for (int i = thread; i < twiddles - kTwiddles1; i += threads) {
      to[kTwiddles1 + i] = powers[(i / R::last + 1) * (i % R::last) * R::first];
    }
  }

  template <Direction kWay>
  static __device__ __forceinline__ Complex twiddled(Complex a, Complex w) {
    return a * (kWay == Direction::inverse ? w : conj(w));
  }
  // The first pass of one task, elements task + kRest * i; its results go to the buffer of the lane
  // group.
  template <Direction kWay, int kInputs = R::first>
  static __device__ __forceinline__ void begin(Complex (&a)[R::first], int task,
                                               Complex* buffer_of_group, const Complex* table) {
    transform<R::first, kWay, kInputs>(a);
    Complex* const to = buffer_of_group + task;
    const Complex* const w = table + task;
#pragma unroll
    for (int k = 0; k < R::first; ++k) {
      to[k * kPitch1] = k == 0 ? a[0] : twiddled<kWay>(a[k], w[(k - 1) * kRest]);
    }
  }
  // v becomes its transform. kHalf: the second half of the elements is taken as zero, whatever v
  // holds. All lanes of the warp call it; each lane group passes its buffer.
  template <Direction kWay, bool kHalf = false>
  static __device__ __forceinline__ void run(Complex (&v)[values], Complex* buffer_of_group,
                                             const Complex* table, int lane) {
    constexpr int kTasks1 = kRest / lanes;
    warp::barrier();
#pragma unroll
    for (int h = 0; h < kTasks1; ++h) {
      Complex a[R::first];
#pragma unroll
      for (int i = 0; i < R::first; ++i) a[i] = v[h + kTasks1 * i];
      begin<kWay, kHalf ? R::first / 2 : R::first>(a, h * lanes + lane, buffer_of_group, table);
    }
    warp::barrier();
    finish<kWay>(v, buffer_of_group, table, lane);
  }
  // The passes after the first.
  template <Direction kWay>
  static __device__ __forceinline__ void finish(Complex (&v)[values], Complex* buffer_of_group,
                                                const Complex* table, int lane) {
    constexpr int kTasks3 = kBegun / lanes;
    Complex* const own = buffer_of_group + lane;
    if constexpr (R::middle == 1) {
      static_assert(kTasks3 == 1);
      const Complex* const from = buffer_of_group + lane * kPitch1;
#pragma unroll
      for (int i = 0; i < R::last; ++i) v[i] = from[i];
      transform<R::last, kWay>(v);
    } else {
      constexpr int kTasks2 = R::first * R::last / lanes, kStep = lanes / R::last;
      const int t = lane % R::last, k1 = lane / R::last;
      const Complex* const from = buffer_of_group + k1 * kPitch1 + t;
#pragma unroll
      for (int h = 0; h < kTasks2; ++h) {
#pragma unroll
        for (int i = 0; i < R::middle; ++i) {
          v[h * R::middle + i] = from[h * kStep * kPitch1 + i * R::last];
        }
      }
      warp::barrier();
      Complex* const to = buffer_of_group + t * kPitch2 + k1;
#pragma unroll
      for (int h = 0; h < kTasks2; ++h) {
        Complex a[R::middle];
#pragma unroll
        for (int i = 0; i < R::middle; ++i) a[i] = v[h * R::middle + i];
        transform<R::middle, kWay>(a);
#pragma unroll
        for (int i = 0; i < R::middle; ++i) v[h * R::middle + i] = a[i];
      }
#pragma unroll
      for (int k = 0; k < R::middle; ++k) {
        // All transforms of the lane have the same twiddle.
        const Complex w = k == 0 ? Complex{} : table[kTwiddles1 + (k - 1) * R::last + t];
#pragma unroll
        for (int h = 0; h < kTasks2; ++h) {
          const Complex a = v[h * R::middle + k];
          to[h * kStep + k * R::first] = k == 0 ? a : twiddled<kWay>(a, w);
        }
      }
      warp::barrier();
#pragma unroll
      for (int h = 0; h < kTasks3; ++h) {
        Complex a[R::last];
#pragma unroll
        for (int i = 0; i < R::last; ++i) a[i] = own[i * kPitch2 + h * lanes];
        transform<R::last, kWay>(a);
#pragma unroll
        for (int i = 0; i < R::last; ++i) v[h + kTasks3 * i] = a[i];
      }
    }
  }

  // Load and store columns in global memory, of an image or of a spectrum. Spectra store values 2i
  // and 2i + 1 of a lane together.
  static __device__ __forceinline__ void load_column(Complex (&v)[values], const Complex* column,
                                                     int rows, int lane) {
    const Complex* const from = opaque(column + lane);
#pragma unroll
    for (int m = 0; m < values; ++m) {
      v[m] = lane + lanes * m < rows ? load_past_l1(from + lanes * m) : Complex{0.0f, 0.0f};
    }
  }
  static __device__ __forceinline__ void store_column(const Complex (&v)[values], Complex* column,
                                                      int lane) {
    Complex* const to = opaque(column + lane);
#pragma unroll
    for (int m = 0; m < values; ++m) store_past_l1(to + lanes * m, v[m]);
  }
  static __device__ __forceinline__ void store_spectrum(const Complex (&v)[values], Complex* column,
                                                        int lane) {
    SpectrumPair* const to = reinterpret_cast<SpectrumPair*>(column) + lane;
#pragma unroll
    for (int m = 0; m < values; m += 2) to[m / 2 * lanes] = {v[m], v[m + 1]};
  }
  static __device__ __forceinline__ void load_spectrum(Complex (&v)[values], const Complex* column,
                                                       int lane) {
    const SpectrumPair* const from = reinterpret_cast<const SpectrumPair*>(column) + lane;
#pragma unroll
    for (int m = 0; m < values; m += 2) {
      const SpectrumPair w = from[m / 2 * lanes];
      v[m] = w.a;
      v[m + 1] = w.b;
    }
  }
  // Forward transform of a column of which `rows` rows hold data.
  static __device__ __forceinline__ void forward_column(Complex (&v)[values], const Complex* column,
                                                        int rows, Complex* buffer_of_group,
                                                        const Complex* table, int lane) {
    load_column(v, column, rows, lane);
    run<Direction::forward>(v, buffer_of_group, table, lane);
  }
};

// The position of this thread in its block, computed where it is needed, which saves registers.
template <typename T>
struct Place {
  int thread = opaque(static_cast<int>(threadIdx.x)) & (LanesTuning::kThreads - 1);
  int lane_group = thread / T::lanes, lane = thread % T::lanes;
};

}  // namespace xcorr::fused_fft
