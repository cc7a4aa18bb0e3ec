// A real row of n values in the registers of one lane, as n / 2 complex values whose real parts are
// the even columns and whose imaginary parts are the odd ones. The spectrum of the row follows from
// the transform of these values, frequencies k and n / 2 - k at a time, as twice its value (the
// scale of the product undoes that). Frequencies 0 and n / 2 are real.
#pragma once

#include "algorithms/blocks/short_transforms.hpp"

namespace xcorr::fused_fft {

// cos(2 pi k / n) in float64.
constexpr double cosine_of(int k, int n) {
  k = (k % n + n) % n;
  if (2 * k > n) k = n - k;
  if (4 * k > n) return -cosine_of(n / 2 - k, n);
  const double x = 2 * 3.14159265358979323846 * k / n;
  double sum = 0, term = 1;
  for (int i = 1; i < 24; i += 2) {
    sum += term;
    term *= -x * x / (i * (i + 1));
  }
  return sum;
}
constexpr float root_re(int k, int n) { return static_cast<float>(cosine_of(k, n)); }
constexpr float root_im(int k, int n) { return static_cast<float>(cosine_of(4 * k - n, 4 * n)); }

// v times w_n^k, with the sign of the exponent of kWay.
template <Direction kWay, int k, int kN>
__device__ __forceinline__ Complex turn_by(Complex v) {
  constexpr int kPart = (k % kN + kN) % kN;
  if constexpr (kPart == 0) return v;
  if constexpr (2 * kPart == kN) return {-v.re, -v.im};
  if constexpr (4 * kPart == kN) return quarter_turn<kWay>(v);
  if constexpr (4 * kPart == 3 * kN) {
    const Complex a = quarter_turn<kWay>(v);
    return {-a.re, -a.im};
  }
  constexpr float kCosine = root_re(kPart, kN), kSine = root_im(kPart, kN);
  return turn<kWay>(v, kCosine, kSine);
}

// z is the transform of the n / 2 complex values of a real row. It becomes twice the row's
// spectrum: frequencies 1 .. n / 2 - 1 in place, and 0 and n / 2 as the real and imaginary parts of
// z[0].
template <int kHalf>
__device__ __forceinline__ void untangle(Complex (&z)[kHalf]) {
  z[0] = {2 * (z[0].re + z[0].im), 2 * (z[0].re - z[0].im)};
  z[kHalf / 2] = {2 * z[kHalf / 2].re, -2 * z[kHalf / 2].im};
  for_each_constant<kHalf / 2 - 1>([&](auto index) {
    constexpr int k = decltype(index)::value + 1;
    const Complex a = z[k], b = conj(z[kHalf - k]);
    const Complex sum = a + b;
    const Complex turned = turn_by<Direction::forward, k + kHalf / 2, 2 * kHalf>(a - b);
    z[k] = sum + turned;
    z[kHalf - k] = conj(sum - turned);
  });
}
// The inverse of untangle(); x[0] holds frequencies 0 and n / 2 as real and imaginary parts.
template <int kHalf>
__device__ __forceinline__ void tangle(Complex (&x)[kHalf]) {
  x[0] = {x[0].re + x[0].im, x[0].re - x[0].im};
  x[kHalf / 2] = {2 * x[kHalf / 2].re, -2 * x[kHalf / 2].im};
  for_each_constant<kHalf / 2 - 1>([&](auto index) {
    constexpr int k = decltype(index)::value + 1;
    const Complex a = x[k], b = conj(x[kHalf - k]);
    const Complex sum = a + b;
    const Complex turned = turn_by<Direction::inverse, k + kHalf / 2, 2 * kHalf>(a - b);
    x[k] = sum + turned;
    x[kHalf - k] = conj(sum - turned);
  });
}

}  // namespace xcorr::fused_fft
