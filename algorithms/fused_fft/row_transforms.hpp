// A real row of n values in the registers of one lane, as n / 2 complex values whose real parts are
// the even columns and whose imaginary parts are the odd ones. The spectrum of the row follows from
// the transform of these values, frequencies k and n / 2 - k at a time, as twice its value (the
// scale of the product undoes that). Frequencies 0 and n / 2 are real.
#pragma once

#include "algorithms/blocks/coprime_transforms.hpp"

namespace xcorr::fused_fft {

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
