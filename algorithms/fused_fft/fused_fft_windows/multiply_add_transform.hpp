// Transforms of power-of-two lengths in the registers of one thread, at whole or half frequencies,
// made of fused multiply-adds:
//
//   X[k] = sum over n of v[n] w_N^((k + s) n),
//   s = 0, or s = 1/2 for the odd frequencies of 2 N values
//
// Decimation in time (radix 2): with E and O the transforms of the even and the odd inputs, X[k]
// and X[k + N/2] are E[k] +- w_N^(k+s) O[k]. For any factor that is not a quarter turn, the sum
// takes four FMAs and the difference, computed as 2 E - sum, takes two: six instructions in place
// of ten operations. So half frequencies cost hardly more than whole ones: 448 instructions for N =
// 32 against 388. Turning all inputs and calling the transform of short_transforms.hpp takes 540.
#pragma once

#include "algorithms/fused_fft/row_transforms.hpp"

namespace xcorr::fused_fft {

// a and b become a + b w and a - b w, with w = w_kLength^(kNumerator / 2).
template <Direction kWay, int kNumerator, int kLength>
__device__ __forceinline__ void butterfly(Complex& a, Complex& b) {
  constexpr int kRoot = kNumerator % (2 * kLength);  // power of the root w_(2 kLength)
  if constexpr (kRoot == 0) {
    const Complex sum = a + b;
    b = a - b;
    a = sum;
  } else if constexpr (4 * kRoot == 2 * kLength) {
    const Complex turned = quarter_turn<kWay>(b);
    b = a - turned;
    a = a + turned;
  } else {
    constexpr float kCosine = root_re(kRoot, 2 * kLength);
    constexpr float kSine =
        kWay == Direction::forward ? -root_im(kRoot, 2 * kLength) : root_im(kRoot, 2 * kLength);
    const Complex sum = {fmaf(-kSine, b.im, fmaf(kCosine, b.re, a.re)),
                         fmaf(kSine, b.re, fmaf(kCosine, b.im, a.im))};
    b = {fmaf(2.0f, a.re, -sum.re), fmaf(2.0f, a.im, -sum.im)};
    a = sum;
  }
}

constexpr int bits_reversed(int i, int n) {
  int reversed = 0;
  for (int bit = 1; bit < n; bit *= 2) reversed = 2 * reversed + (i & bit ? 1 : 0);
  return reversed;
}

// All stages but the last: v becomes the transform of its even inputs followed by that of its odd
// inputs.
template <Direction kWay, bool kHalf, int kN>
__device__ __forceinline__ void transform_halves(Complex (&v)[kN]) {
  Complex r[kN];
  for_each_constant<kN>([&](auto index) {
    constexpr int i = decltype(index)::value;
    r[i] = v[bits_reversed(i, kN)];
  });
  const auto stage = [&]<int kLength>() {
    for_each_constant<kN / 2>([&](auto index) {
      constexpr int i = decltype(index)::value, j = i % (kLength / 2);
      constexpr int at = i / (kLength / 2) * kLength + j;
      butterfly<kWay, 2 * j + (kHalf ? 1 : 0), kLength>(r[at], r[at + kLength / 2]);
    });
  };
  stage.template operator()<2>();
  stage.template operator()<4>();
  if constexpr (kN >= 16) stage.template operator()<8>();
  if constexpr (kN >= 32) stage.template operator()<16>();
#pragma unroll
  for (int i = 0; i < kN; ++i) v[i] = r[i];
}
// The last stage.
template <Direction kWay, bool kHalf, int kN>
__device__ __forceinline__ void join_halves(Complex (&v)[kN]) {
  for_each_constant<kN / 2>([&](auto index) {
    constexpr int k = decltype(index)::value;
    butterfly<kWay, 2 * k + (kHalf ? 1 : 0), kN>(v[k], v[k + kN / 2]);
  });
}
// The last stage, followed by a product of v[k] with w_2N^k. With A = w_2N^k E[k] the outputs are A
// + w_2N^3k O[k] and, a quarter turn later, A - w_2N^3k O[k]: half of the turns are in the factors
// of the stage.
template <Direction kWay, int kN>
__device__ __forceinline__ void join_halves_and_turn(Complex (&v)[kN]) {
  for_each_constant<kN / 2>([&](auto index) {
    constexpr int k = decltype(index)::value;
    v[k] = turn_by<kWay, k, 2 * kN>(v[k]);
    butterfly<kWay, 3 * k, kN>(v[k], v[k + kN / 2]);
    v[k + kN / 2] = quarter_turn<kWay>(v[k + kN / 2]);
  });
}

// v becomes its transform, in natural order; with kHalf at the frequencies k + 1/2.
template <Direction kWay, bool kHalf, int kN>
__device__ __forceinline__ void multiply_add_transform(Complex (&v)[kN]) {
  transform_halves<kWay, kHalf>(v);
  join_halves<kWay, kHalf>(v);
}

}  // namespace xcorr::fused_fft
