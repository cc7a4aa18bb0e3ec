// Transforms held by a team of lanes of one warp, 16 to 24 values in each, and what the kernels of
// fused_fft_lanes do with them. A team meets no barrier but its warp's, so warps run apart and one
// waits for memory while another calculates.
//
// An n-point transform is two passes or three over short ones in registers (block_fft.hpp). Before
// it and after it value m of a lane is element lane + lanes * m: natural order on both sides, and
// the lanes of a load or store are neighbours. Between passes values change lanes through a buffer
// of shared memory whose pitches keep the 16 lanes of one access in 16 different banks.
//
// Images are column-major: the partial transform of column k begins at k * ny. So a team's column
// is one run of memory, and the elements of the two real rows that are one complex row (2q and
// 2q + 1) are neighbours in it, read and written as one.
#pragma once

#include "algorithms/device/fused_fft_plan.hpp"

namespace xcorr {

struct alignas(16) ComplexPair {
  Complex a, b;
};

// Past the first-level cache, which does not see what other multiprocessors write.
__device__ __forceinline__ ComplexPair load_shared_by_all(const ComplexPair* from) {
#ifdef XCORR_EMULATE
  return *from;
#else
  const float4 v = __ldcg(reinterpret_cast<const float4*>(from));
  return {{v.x, v.y}, {v.z, v.w}};
#endif
}
__device__ __forceinline__ Complex load_shared_by_all(const Complex* from) {
#ifdef XCORR_EMULATE
  return *from;
#else
  const float2 v = __ldcg(reinterpret_cast<const float2*>(from));
  return {v.x, v.y};
#endif
}
__device__ __forceinline__ void store_for_all(Complex* to, Complex value) {
#ifdef XCORR_EMULATE
  *to = value;
#else
  __stcg(reinterpret_cast<float2*>(to), make_float2(value.re, value.im));
#endif
}
// Not read again: the first to leave the cache.
__device__ __forceinline__ void store_last(float* to, float value) {
#ifdef XCORR_EMULATE
  *to = value;
#else
  __stcs(to, value);
#endif
}

// An address worked out once: else the compiler adds up each of those around it anew.
template <typename T>
__device__ __forceinline__ T* settled(T* address) {
#ifndef XCORR_EMULATE
  asm volatile("" : "+l"(address));
#endif
  return address;
}

// Lanes of a team and the lengths of the passes; kMiddle = 1: two passes.
template <int kN>
struct Radices;
template <>
struct Radices<256> {
  static constexpr int lanes = 16, first = 16, middle = 1, last = 16;
};
template <>
struct Radices<384> {
  static constexpr int lanes = 16, first = 8, middle = 6, last = 8;
};
template <>
struct Radices<512> {
  static constexpr int lanes = 32, first = 8, middle = 8, last = 8;
};

inline constexpr int kTeamThreads = 256;  // of a block that is full

template <int kN>
struct Team {
  using R = Radices<kN>;
  static constexpr int n = kN, lanes = R::lanes, values = kN / lanes;
  static constexpr int of_block = kTeamThreads / lanes, live = kN / 2 + 1;

  // Exchanges: value k1 of task j at k1 * kPitch1 + j, then task (k1, k2) of value t at t * kPitch2
  // + k1 + first * k2.
  static constexpr int kRest = kN / R::first, kBegun = R::first * R::middle;
  static constexpr int kPitch1 = R::middle == 1 ? kRest + 1 : kRest + 8, kPitch2 = kBegun + 2;
  static constexpr int kNeeded =
      R::middle == 1 ? R::first * kPitch1 : std::max(R::first * kPitch1, R::last* kPitch2);
  // Elements from a team's buffer to the next: `of_block` of them meet different banks.
  static constexpr int kSkew = 16 / of_block == 2 ? 2 : 1;
  static constexpr int buffer = (kNeeded + 15 - kSkew) / 16 * 16 + kSkew;
  static_assert(buffer >= kNeeded && buffer > kN && (of_block == 8 || of_block == 16));

  // w_n^(k1 j) at (k1 - 1) * kRest + j, then those of the second exchange.
  static constexpr int kTwiddles1 = (R::first - 1) * kRest;
  static constexpr int twiddles = kTwiddles1 + (R::middle - 1) * R::last;
  static __device__ __forceinline__ void store_twiddles(Complex* to, const Complex* powers,
                                                        Crew crew) {
    for (int i = crew.thread; i < kTwiddles1; i += crew.count) {
      to[i] = powers[(i / kRest + 1) * (i % kRest)];
    }
    for (int i = crew.thread; i < twiddles - kTwiddles1; i += crew.count) {
      to[kTwiddles1 + i] = powers[(i / R::last + 1) * (i % R::last) * R::first];
    }
  }

  // v becomes its transform. kHalf: the second half of the elements is zero, whatever v holds. All
  // lanes of the warp call it; the buffer is the team's own.
  template <Direction kWay, bool kHalf = false>
  static __device__ __forceinline__ void run(Complex (&v)[values], Complex* buffer_of_team,
                                             const Complex* table, int lane) {
    const auto twiddled = [](Complex a, Complex w) {
      return a * (kWay == Direction::inverse ? w : conj(w));
    };
    constexpr int kTasks1 = kRest / lanes, kTasks3 = kBegun / lanes;
    warp::barrier();
    Complex* const own = buffer_of_team + lane;
#pragma unroll
    for (int h = 0; h < kTasks1; ++h) {
      Complex a[R::first];
#pragma unroll
      for (int i = 0; i < R::first; ++i) a[i] = v[h + kTasks1 * i];
      transform<R::first, kWay, kHalf ? R::first / 2 : R::first>(a);
#pragma unroll
      for (int k = 0; k < R::first; ++k) {
        own[k * kPitch1 + h * lanes] =
            k == 0 ? a[0] : twiddled(a[k], table[(k - 1) * kRest + h * lanes + lane]);
      }
    }
    warp::barrier();
    if constexpr (R::middle == 1) {
      static_assert(kTasks3 == 1);
      const Complex* const from = buffer_of_team + lane * kPitch1;
#pragma unroll
      for (int i = 0; i < R::last; ++i) v[i] = from[i];
      transform<R::last, kWay>(v);
    } else {
      constexpr int kTasks2 = R::first * R::last / lanes, kStep = lanes / R::last;
      const int t = lane % R::last, k1 = lane / R::last;
      const Complex* const from = buffer_of_team + k1 * kPitch1 + t;
#pragma unroll
      for (int h = 0; h < kTasks2; ++h) {
#pragma unroll
        for (int i = 0; i < R::middle; ++i) {
          v[h * R::middle + i] = from[h * kStep * kPitch1 + i * R::last];
        }
      }
      warp::barrier();
      Complex* const to = buffer_of_team + t * kPitch2 + k1;
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
        // One twiddle for all transforms of the lane.
        const Complex w = k == 0 ? Complex{} : table[kTwiddles1 + (k - 1) * R::last + t];
#pragma unroll
        for (int h = 0; h < kTasks2; ++h) {
          const Complex a = v[h * R::middle + k];
          to[h * kStep + k * R::first] = k == 0 ? a : twiddled(a, w);
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

  // Columns in global memory: v and its image; spectra keep a lane's values 2i and 2i + 1 together.
  static __device__ __forceinline__ void load_column(Complex (&v)[values], const Complex* column,
                                                     int rows, int lane) {
    const Complex* const from = settled(column + lane);
#pragma unroll
    for (int m = 0; m < values; ++m) {
      v[m] = lane + lanes * m < rows ? load_shared_by_all(from + lanes * m) : Complex{0.0f, 0.0f};
    }
  }
  static __device__ __forceinline__ void store_column(const Complex (&v)[values], Complex* column,
                                                      int lane) {
    Complex* const to = settled(column + lane);
#pragma unroll
    for (int m = 0; m < values; ++m) store_for_all(to + lanes * m, v[m]);
  }
  static __device__ __forceinline__ void store_spectrum(const Complex (&v)[values], Complex* column,
                                                        int lane) {
    ComplexPair* const to = reinterpret_cast<ComplexPair*>(column) + lane;
#pragma unroll
    for (int m = 0; m < values; m += 2) to[m / 2 * lanes] = {v[m], v[m + 1]};
  }
  // Forward transform of a column of which `rows` rows hold data.
  static __device__ __forceinline__ void forward_column(Complex (&v)[values], const Complex* column,
                                                        int rows, Complex* buffer_of_team,
                                                        const Complex* table, int lane) {
    load_column(v, column, rows, lane);
    run<Direction::forward>(v, buffer_of_team, table, lane);
  }
};

// This thread's place in its block: worked out where it is needed, not kept in registers.
template <typename T>
struct Place {
  int thread = opaque(static_cast<int>(threadIdx.x)) & (kTeamThreads - 1);
  int team = thread / T::lanes, lane = thread % T::lanes;
};

// Rows 2q and 2q + 1 of a matrix for the complex rows from q on, one a team, into its image.
template <typename T>
__device__ __forceinline__ void forward_row_pairs(const Source& from, int first, int ny,
                                                  Complex* image, Complex* buffers,
                                                  const Complex* table) {
  const Place<T> at;
  const int pairs = (from.rows + 1) / 2;
  Complex* const own = buffers + at.team * T::buffer;
  {
    const int y = 2 * (first + at.team);
    const bool one = y < from.rows, both = y + 1 < from.rows;
    const float* row = from.data + (one ? y * from.cols : 0) + at.lane;
    const float* next = row + (both ? from.cols : 0);
    Complex v[T::values];
    const auto load = [&](auto inputs) {
#pragma unroll
      for (int m = 0; m < decltype(inputs)::value; ++m) {
        const bool inside = at.lane + T::lanes * m < from.cols;
        v[m].re = inside && one ? row[T::lanes * m] : 0.0f;
        v[m].im = inside && both ? next[T::lanes * m] : 0.0f;
      }
    };
    if (from.cols <= T::n / 2) {
      load(std::integral_constant<int, T::values / 2>{});
      T::template run<Direction::forward, true>(v, own, table, at.lane);
    } else {
      load(std::integral_constant<int, T::values>{});
      T::template run<Direction::forward>(v, own, table, at.lane);
    }
    warp::barrier();
#pragma unroll
    for (int m = 0; m < T::values; ++m) own[at.lane + T::lanes * m] = v[m];
  }
  block::barrier();
  const int q = at.thread % T::of_block, begin = at.thread / T::of_block;
  const Complex* const z = buffers + q * T::buffer;
  auto* const to = reinterpret_cast<ComplexPair*>(image) + first + q;
  if (first + q < pairs) {
    const auto take_apart = [&](int k) {
      const Complex p = z[k], m = z[k == 0 ? 0 : T::n - k];
      to[k * (ny / 2)] = {{p.re + m.re, p.im - m.im}, {p.im + m.im, m.re - p.re}};
    };
#pragma unroll 4
    for (int i = 0; i < T::values / 2; ++i) take_apart(begin + i * T::lanes);
    if (begin == 0) take_apart(T::n / 2);
  }
  block::barrier();
}

// Complex rows from `first` on, one a team, of an image into the outputs of a pair. The caller may
// do something when the block has all of them.
template <typename T, typename Loaded>
__device__ __forceinline__ void inverse_row_pairs(const Complex* image, int first, int ny,
                                                  Range rows, Range cols, float* out,
                                                  Complex* buffers, const Complex* table,
                                                  Loaded loaded) {
  const Place<T> at;
  {
    const int q = at.thread % T::of_block, begin = at.thread / T::of_block;
    Complex* const z = buffers + q * T::buffer;
    const auto* const all = reinterpret_cast<const ComplexPair*>(image) + first + q;
    const auto* const from = settled(all + begin * (ny / 2));
    // z[n] = z[0] from k = 0 is never read.
    const auto put = [&](int k, const ComplexPair& p) {
      z[k] = {p.a.re - p.b.im, p.a.im + p.b.re};
      z[T::n - k] = {p.a.re + p.b.im, p.b.re - p.a.im};
    };
    ComplexPair p[T::values / 2];
#pragma unroll
    for (int i = 0; i < T::values / 2; ++i) {
      p[i] = load_shared_by_all(from + i * (T::lanes * ny / 2));
    }
#pragma unroll
    for (int i = 0; i < T::values / 2; ++i) put(begin + i * T::lanes, p[i]);
    if (begin == 0) put(T::n / 2, load_shared_by_all(all + T::n / 2 * (ny / 2)));
  }
  block::barrier();
  loaded();
  Complex* const own = buffers + at.team * T::buffer;
  Complex v[T::values];
#pragma unroll
  for (int m = 0; m < T::values; ++m) v[m] = own[at.lane + T::lanes * m];
  T::template run<Direction::inverse>(v, own, table, at.lane);
  const int y = 2 * (first + at.team);
  const bool one = rows.has(y), both = rows.has(y + 1);
  float* const to = settled(out + (y - rows.first) * cols.count + (at.lane - cols.first));
  float* const next = settled(to + cols.count);
#pragma unroll
  for (int m = 0; m < T::values; ++m) {
    const bool inside = cols.has(at.lane + T::lanes * m);
    if (inside && one) store_last(to + T::lanes * m, v[m].re);
    if (inside && both) store_last(next + T::lanes * m, v[m].im);
  }
}

}  // namespace xcorr
