// A complex transform by 16 to 64 threads with a few values each, in three passes of short
// transforms with an exchange through shared memory between them. (The two passes of lengths.hpp
// have up to 32 values per thread: fewer accesses, but chains of dependent instructions that are
// four times as long.)
//
// n = a b c. With time index t + m s, m = b c, t = t1 + c s1, and frequency k1 + a (k2 + b k3):
//
//   pass    thread            transforms over   then times         to the exchange
//   first   t < m             s -> k1           w_n^(k1 t)         x[k1][t]
//   second  (k1, t1) < a c    s1 -> k2          w_m^(k2 t1)        y[t1][k1 + a k2]
//   third   (k1, k2) < a b    t1 -> k3                             frequency k1 + a k2 + a b k3
//
// The inverse does the same steps backwards. Each thread then writes where it read before, so it
// needs no barriers beyond those between passes, and it has its twiddles already. k1 runs fastest
// in (k1, t1) and (k1, k2); with the pitches of x and y no pass has bank conflicts.
#pragma once

#include "algorithms/blocks/short_transforms.hpp"
#include "algorithms/blocks/transform_lengths.hpp"

namespace xcorr::fused_fft {

template <int kA, int kB, int kC>
struct ThreeRadices {
  static constexpr int a = kA, b = kB, c = kC, m = b * c, n = a * m;
  static constexpr int ab = a * b, ac = a * c;
  // Threads per transform: enough for one turn of the first two passes; the third pass may take two
  // turns. So a transform of up to 256 stays in one warp, which needs no barrier of the block.
  static constexpr int most = m > ac ? m : ac;
  static constexpr int threads = most <= 16 ? 16 : most <= 32 ? 32 : 64;
  static constexpr int turns = (ab + threads - 1) / threads;
  // Whether the third pass has work for thread u at its turn i.
  __host__ __device__ static constexpr bool has_turn(int u, int i) {
    return (i + 1) * threads <= ab || u + i * threads < ab;
  }
  static_assert(most <= 64 && a % 2 == 0);

  // The smallest number >= `least` that is `rest` modulo 16.
  static constexpr int padded(int least, int rest) {
    return least + ((rest - least) % 16 + 16) % 16;
  }
  static constexpr int pitch_x = padded(m, 16 / a), pitch_y = padded(ab, a);
  static constexpr int x_needed = a * pitch_x, x_elements = x_needed > n ? x_needed : n;
  // Complex elements of shared memory, a multiple of 16. Callers add an offset, so that several
  // transforms use different banks.
  static constexpr int elements = padded(x_elements + c * pitch_y, 0);

  // The tables of twiddles, for the inverse: w_n^(k1 t) at m k1 + t, w_m^(k2 t1) at c k2 + t1.
  struct FirstTable {
    static constexpr int n = ThreeRadices::n, second = ThreeRadices::m;
  };
  struct SecondTable {
    static constexpr int n = ThreeRadices::m, second = ThreeRadices::c;
  };
};

template <int kN>
using RadicesOfLength =
    ThreeRadices<transform_length(kN).a, transform_length(kN).b, transform_length(kN).c>;

// Twiddles of a thread, which has number t in the first pass and u in the second.
template <typename R>
struct Twiddles {
  __device__ __forceinline__ Twiddles(const Complex* first_table, const Complex* second_table,
                                      int t, int u) {
    const Complex* of_t = first_table + (t < R::m ? t : 0);
    const Complex* of_u = second_table + u / R::a % R::c;
#pragma unroll
    for (int k = 1; k < R::a; ++k) first[k] = of_t[R::m * k];
#pragma unroll
    for (int k = 1; k < R::b; ++k) second[k] = of_u[R::c * k];
  }
  Complex first[R::a], second[R::b];
};

// The passes of one transform; its shared memory begins at `x`. Threads beyond the tasks of a pass
// do nothing.
template <typename R>
struct ThreePass {
  __device__ __forceinline__ explicit ThreePass(Complex* shared)
      : x(shared), y(shared + R::x_elements) {}

  // half: the second half of v is zero.
  __device__ __forceinline__ void first_forward(Complex (&v)[R::a], const Twiddles<R>& w, int t,
                                                bool half) const {
    if (half) {
      transform<R::a, Direction::forward, R::a / 2>(v);
    } else {
      transform<R::a, Direction::forward>(v);
    }
#pragma unroll
    for (int k = 0; k < R::a; ++k) x[k * R::pitch_x + t] = k == 0 ? v[0] : v[k] * conj(w.first[k]);
  }
  __device__ __forceinline__ void second_forward(const Twiddles<R>& w, int u) const {
    if (u >= R::ac) return;
    const Complex* const from = x + u % R::a * R::pitch_x + u / R::a;
    Complex* const to = y + u / R::a * R::pitch_y + u % R::a;
    Complex v[R::b];
#pragma unroll
    for (int s = 0; s < R::b; ++s) v[s] = from[R::c * s];
    transform<R::b, Direction::forward>(v);
#pragma unroll
    for (int k = 0; k < R::b; ++k) to[R::a * k] = k == 0 ? v[0] : v[k] * conj(w.second[k]);
  }
  // v[k3] is frequency u + ab * k3.
  __device__ __forceinline__ void third_forward(Complex (&v)[R::c], int u) const {
#pragma unroll
    for (int t = 0; t < R::c; ++t) v[t] = y[t * R::pitch_y + u];
    transform<R::c, Direction::forward>(v);
  }

  __device__ __forceinline__ void third_inverse(Complex (&v)[R::c], int u) const {
    transform<R::c, Direction::inverse>(v);
#pragma unroll
    for (int t = 0; t < R::c; ++t) y[t * R::pitch_y + u] = v[t];
  }
  __device__ __forceinline__ void second_inverse(const Twiddles<R>& w, int u) const {
    if (u >= R::ac) return;
    const Complex* const from = y + u / R::a * R::pitch_y + u % R::a;
    Complex* const to = x + u % R::a * R::pitch_x + u / R::a;
    Complex v[R::b];
#pragma unroll
    for (int k = 0; k < R::b; ++k) {
      v[k] = from[R::a * k];
      if (k > 0) v[k] = v[k] * w.second[k];
    }
    transform<R::b, Direction::inverse>(v);
#pragma unroll
    for (int s = 0; s < R::b; ++s) to[R::c * s] = v[s];
  }
  // v[s] is time t + m * s.
  __device__ __forceinline__ void first_inverse(Complex (&v)[R::a], const Twiddles<R>& w,
                                                int t) const {
#pragma unroll
    for (int k = 0; k < R::a; ++k) {
      v[k] = x[k * R::pitch_x + t];
      if (k > 0) v[k] = v[k] * w.first[k];
    }
    transform<R::a, Direction::inverse>(v);
  }

  Complex *x, *y;
};

}  // namespace xcorr::fused_fft
