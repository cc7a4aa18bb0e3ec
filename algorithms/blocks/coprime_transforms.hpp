// Transforms of 2, 3, 5, 9, 10, 18 and 20 values in the registers of a thread, in addition to those
// of short_transforms.hpp. Those of 10, 18 and 20 use the prime factor algorithm (Good), which has
// no twiddles.
#pragma once

#include "algorithms/blocks/short_transforms.hpp"

namespace xcorr::device {

// Cosine and sine of 2 pi k / n as constants, by their series.
constexpr double root_part(int k, int n, bool sine) {
  k = (k % n + n) % n;
  double angle = 2 * 3.14159265358979323846 * (2 * k > n ? k - n : k) / n;
  double term = sine ? angle : 1, sum = term;
  for (int i = sine ? 3 : 2; i < 60; i += 2) {
    term *= -angle * angle / (i * (i - 1));
    sum += term;
  }
  return sum;
}
constexpr float root_re(int k, int n) { return static_cast<float>(root_part(k, n, false)); }
constexpr float root_im(int k, int n) { return static_cast<float>(root_part(k, n, true)); }
// a times w_n^k, or its conjugate (forward).
template <int kK, int kN, Direction kWay>
__device__ __forceinline__ Complex turned_by_root(Complex a) {
  if constexpr (kK % kN == 0) return a;
  constexpr float kCosine = root_re(kK, kN), kSine = root_im(kK, kN);
  return turn<kWay>(a, kCosine, kSine);
}

template <Direction kWay>
__device__ __forceinline__ void transform5(Complex& a, Complex& b, Complex& c, Complex& d,
                                           Complex& e) {
  constexpr float kCosine1 = root_re(1, 5), kSine1 = root_im(1, 5);
  constexpr float kCosine2 = root_re(2, 5), kSine2 = root_im(2, 5);
  const Complex sum1 = b + e, sum2 = c + d;
  const Complex turned1 = quarter_turn<kWay>(b - e), turned2 = quarter_turn<kWay>(c - d);
  const Complex even1 = {a.re + kCosine1 * sum1.re + kCosine2 * sum2.re,
                         a.im + kCosine1 * sum1.im + kCosine2 * sum2.im};
  const Complex even2 = {a.re + kCosine2 * sum1.re + kCosine1 * sum2.re,
                         a.im + kCosine2 * sum1.im + kCosine1 * sum2.im};
  const Complex odd1 = {kSine1 * turned1.re + kSine2 * turned2.re,
                        kSine1 * turned1.im + kSine2 * turned2.im};
  const Complex odd2 = {kSine2 * turned1.re - kSine1 * turned2.re,
                        kSine2 * turned1.im - kSine1 * turned2.im};
  a = a + sum1 + sum2;
  b = even1 + odd1;
  e = even1 - odd1;
  c = even2 + odd2;
  d = even2 - odd2;
}

template <int kN, Direction kWay>
__device__ __forceinline__ void short_transform(Complex (&v)[kN]);

// kA and kB have no common factor: n = kB a + kA b, and frequency k is frequency k % kA over a and
// k % kB over b.
template <int kA, int kB, Direction kWay>
__device__ __forceinline__ void coprime_transform(Complex (&v)[kA * kB]) {
  constexpr int kN = kA * kB;
  Complex parts[kB][kA];
#pragma unroll
  for (int b = 0; b < kB; ++b) {
#pragma unroll
    for (int a = 0; a < kA; ++a) parts[b][a] = v[(kB * a + kA * b) % kN];
    short_transform<kA, kWay>(parts[b]);
  }
  Complex columns[kA][kB];
#pragma unroll
  for (int a = 0; a < kA; ++a) {
#pragma unroll
    for (int b = 0; b < kB; ++b) columns[a][b] = parts[b][a];
    short_transform<kB, kWay>(columns[a]);
  }
#pragma unroll
  for (int k = 0; k < kN; ++k) v[k] = columns[k % kA][k % kB];
}

// v becomes its transform, in natural order.
template <int kN, Direction kWay>
__device__ __forceinline__ void short_transform(Complex (&v)[kN]) {
  if constexpr (kN == 2) {
    const Complex difference = v[0] - v[1];
    v[0] = v[0] + v[1];
    v[1] = difference;
  } else if constexpr (kN == 3) {
    transform3<kWay>(v[0], v[1], v[2]);
  } else if constexpr (kN == 5) {
    transform5<kWay>(v[0], v[1], v[2], v[3], v[4]);
  } else if constexpr (kN == 9) {
    // n = n1 + 3 n2, k = k1 + 3 k2.
#pragma unroll
    for (int n1 = 0; n1 < 3; ++n1) transform3<kWay>(v[n1], v[n1 + 3], v[n1 + 6]);
    v[4] = turned_by_root<1, 9, kWay>(v[4]);
    v[5] = turned_by_root<2, 9, kWay>(v[5]);
    v[7] = turned_by_root<2, 9, kWay>(v[7]);
    v[8] = turned_by_root<4, 9, kWay>(v[8]);
    Complex result[9];
#pragma unroll
    for (int k1 = 0; k1 < 3; ++k1) {
      transform3<kWay>(v[3 * k1], v[3 * k1 + 1], v[3 * k1 + 2]);
#pragma unroll
      for (int k2 = 0; k2 < 3; ++k2) result[k1 + 3 * k2] = v[3 * k1 + k2];
    }
#pragma unroll
    for (int i = 0; i < 9; ++i) v[i] = result[i];
  } else if constexpr (kN == 10) {
    coprime_transform<2, 5, kWay>(v);
  } else if constexpr (kN == 18) {
    coprime_transform<2, 9, kWay>(v);
  } else if constexpr (kN == 20) {
    coprime_transform<4, 5, kWay>(v);
  } else {
    transform<kN, kWay>(v);
  }
}

}  // namespace xcorr::device
