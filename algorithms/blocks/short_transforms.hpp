// Complex numbers, and Fourier transforms of a few lengths in the registers of one thread.
// Transforms of rows and columns consist of them (lengths.hpp).
//
// Lengths 3, 4, 8, 16 and 32 use decimation in frequency, with constants in the instructions.
// Lengths 6, 12 and 24 use the prime factor algorithm (Good), which has no twiddle factors.
#pragma once

#include <type_traits>
#include <utility>

#include "algorithms/device/cuda.hpp"

namespace xcorr::device {

struct alignas(8) Complex {
  float re, im;
};

__device__ __forceinline__ Complex operator+(Complex a, Complex b) {
  return {a.re + b.re, a.im + b.im};
}
__device__ __forceinline__ Complex operator-(Complex a, Complex b) {
  return {a.re - b.re, a.im - b.im};
}
__device__ __forceinline__ Complex operator*(Complex a, Complex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
__device__ __forceinline__ Complex conj(Complex a) { return {a.re, -a.im}; }

// The sign of the exponent.
enum class Direction { forward = -1, inverse = 1 };

// a times +i (inverse) or -i (forward).
template <Direction kWay>
__device__ __forceinline__ Complex quarter_turn(Complex a) {
  return kWay == Direction::forward ? Complex{a.im, -a.re} : Complex{-a.im, a.re};
}
// a times w (inverse) or its conjugate (forward).
template <Direction kWay>
__device__ __forceinline__ Complex turn(Complex a, float cosine, float sine) {
  return a * Complex{cosine, kWay == Direction::forward ? -sine : sine};
}
// a times the eighth root of one, or its conjugate.
template <Direction kWay>
__device__ __forceinline__ Complex eighth_turn(Complex a) {
  constexpr float kSqrtHalf = 0.70710678118654752440f;
  const Complex b = quarter_turn<kWay>(a);
  return {kSqrtHalf * (a.re + b.re), kSqrtHalf * (a.im + b.im)};
}

// Sum and difference of values that may be known to be zero. The compiler does not remove an
// addition of zero, so that it is removed here.
template <bool kZeroA, bool kZeroB>
__device__ __forceinline__ Complex add(Complex a, Complex b) {
  if constexpr (kZeroB) return a;
  if constexpr (kZeroA) return b;
  return a + b;
}
template <bool kZeroA, bool kZeroB>
__device__ __forceinline__ Complex subtract(Complex a, Complex b) {
  if constexpr (kZeroB) return a;
  if constexpr (kZeroA) return {-b.re, -b.im};
  return a - b;
}

// In place, natural order. Inputs whose bit is set in kZero are treated as zero, whatever their
// values.
template <Direction kWay, unsigned kZero = 0>
__device__ __forceinline__ void transform4(Complex& a, Complex& b, Complex& c, Complex& d) {
  constexpr bool kA = kZero & 1, kB = kZero & 2, kC = kZero & 4, kD = kZero & 8;
  constexpr bool kEven = kA && kC, kOdd = kB && kD;
  const Complex sum = add<kA, kC>(a, c), difference = subtract<kA, kC>(a, c);
  const Complex other = add<kB, kD>(b, d), turned = quarter_turn<kWay>(subtract<kB, kD>(b, d));
  a = add<kEven, kOdd>(sum, other);
  b = add<kEven, kOdd>(difference, turned);
  c = subtract<kEven, kOdd>(sum, other);
  d = subtract<kEven, kOdd>(difference, turned);
}

template <Direction kWay, unsigned kZero = 0>
__device__ __forceinline__ void transform3(Complex& a, Complex& b, Complex& c) {
  constexpr bool kB = kZero & 2, kC = kZero & 4;
  constexpr float kSine = 0.86602540378443864676f;
  if constexpr (kB && kC) {
    b = c = a;
    return;
  }
  const Complex sum = add<kB, kC>(b, c);
  const Complex turned = quarter_turn<kWay>(subtract<kB, kC>(b, c));
  const Complex middle = {a.re - 0.5f * sum.re, a.im - 0.5f * sum.im};
  a = a + sum;
  b = {middle.re + kSine * turned.re, middle.im + kSine * turned.im};
  c = {middle.re - kSine * turned.re, middle.im - kSine * turned.im};
}

// Replaces v by its transform of length kN. The first kInputs values are inputs; the remaining
// inputs are zero.
template <int kN, Direction kWay, int kInputs = kN>
__device__ __forceinline__ void transform(Complex (&v)[kN]) {
  constexpr auto zero = [](int i) { return i >= kInputs; };
  if constexpr (kN == 4) {
    transform4<kWay, 1u * zero(0) + 2u * zero(1) + 4u * zero(2) + 8u * zero(3)>(v[0], v[1], v[2],
                                                                                v[3]);
  } else if constexpr (kN == 6) {
    // n = 3 n1 + 2 n2, k = 3 k1 + 4 k2 modulo 6.
    const Complex sums[3] = {add<false, zero(3)>(v[0], v[3]), add<zero(2), zero(5)>(v[2], v[5]),
                             add<zero(4), zero(1)>(v[4], v[1])};
    const Complex differences[3] = {subtract<false, zero(3)>(v[0], v[3]),
                                    subtract<zero(2), zero(5)>(v[2], v[5]),
                                    subtract<zero(4), zero(1)>(v[4], v[1])};
    v[0] = sums[0], v[4] = sums[1], v[2] = sums[2];
    v[3] = differences[0], v[1] = differences[1], v[5] = differences[2];
    transform3<kWay>(v[0], v[4], v[2]);
    transform3<kWay>(v[3], v[1], v[5]);
  } else if constexpr (kN == 8) {
    Complex odd[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) odd[i] = v[i];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (kInputs > 4) {
        odd[i] = v[i] - v[i + 4];
        v[i] = v[i] + v[i + 4];
      }
    }
    constexpr unsigned kZero = 1u * zero(0) + 2u * zero(1) + 4u * zero(2) + 8u * zero(3);
    odd[1] = eighth_turn<kWay>(odd[1]);
    odd[2] = quarter_turn<kWay>(odd[2]);
    odd[3] = quarter_turn<kWay>(eighth_turn<kWay>(odd[3]));
    transform4<kWay, kZero>(v[0], v[1], v[2], v[3]);
    transform4<kWay, kZero>(odd[0], odd[1], odd[2], odd[3]);
    const Complex even[4] = {v[0], v[1], v[2], v[3]};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      v[2 * i] = even[i];
      v[2 * i + 1] = odd[i];
    }
  } else if constexpr (kN == 12) {
    // n = 4 n1 + 3 n2, k = 4 k1 + 9 k2 modulo 12.
    constexpr auto zeros = [](int n1) {
      unsigned mask = 0;
      for (int n2 = 0; n2 < 4; ++n2) mask |= unsigned{(4 * n1 + 3 * n2) % 12 >= kInputs} << n2;
      return mask;
    };
    transform4<kWay, zeros(0)>(v[0], v[3], v[6], v[9]);
    transform4<kWay, zeros(1)>(v[4], v[7], v[10], v[1]);
    transform4<kWay, zeros(2)>(v[8], v[11], v[2], v[5]);
    Complex result[12];
#pragma unroll
    for (int k2 = 0; k2 < 4; ++k2) {
      Complex& a = v[3 * k2];
      Complex& b = v[(4 + 3 * k2) % 12];
      Complex& c = v[(8 + 3 * k2) % 12];
      transform3<kWay>(a, b, c);
      result[9 * k2 % 12] = a;
      result[(4 + 9 * k2) % 12] = b;
      result[(8 + 9 * k2) % 12] = c;
    }
#pragma unroll
    for (int i = 0; i < 12; ++i) v[i] = result[i];
  } else if constexpr (kN == 24) {
    // n = 8 n1 + 3 n2, k = 16 k1 + 9 k2 modulo 24.
    Complex eighths[3][8];
#pragma unroll
    for (int n1 = 0; n1 < 3; ++n1) {
#pragma unroll
      for (int n2 = 0; n2 < 8; ++n2) {
        const int n = (8 * n1 + 3 * n2) % 24;
        eighths[n1][n2] = n < kInputs ? v[n] : Complex{0.0f, 0.0f};
      }
      transform<8, kWay>(eighths[n1]);
    }
#pragma unroll
    for (int k2 = 0; k2 < 8; ++k2) {
      transform3<kWay>(eighths[0][k2], eighths[1][k2], eighths[2][k2]);
#pragma unroll
      for (int k1 = 0; k1 < 3; ++k1) v[(16 * k1 + 9 * k2) % 24] = eighths[k1][k2];
    }
  } else if constexpr (kN == 32) {
    constexpr float kCosines[] = {1.0f,
                                  0.98078528040323044913f,
                                  0.92387953251128675613f,
                                  0.83146961230254523708f,
                                  0.70710678118654752440f,
                                  0.55557023301960222474f,
                                  0.38268343236508977173f,
                                  0.19509032201612826785f,
                                  0.0f};
    // k = k1 + 4 k2, n = 8 n1 + n2: transforms of 4, twiddle factors, transforms of 8.
    constexpr unsigned kZero = kInputs <= 8 ? 14 : kInputs <= 16 ? 12 : kInputs <= 24 ? 8 : 0;
#pragma unroll
    for (int n2 = 0; n2 < 8; ++n2) {
      transform4<kWay, kZero>(v[n2], v[n2 + 8], v[n2 + 16], v[n2 + 24]);
    }
    Complex result[32];
#pragma unroll
    for (int k1 = 0; k1 < 4; ++k1) {
      Complex eighth[8];
#pragma unroll
      for (int n2 = 0; n2 < 8; ++n2) {
        const int angle = n2 * k1, octant = angle % 8;  // of 32; angle <= 21
        Complex a = v[8 * k1 + n2];
        if (octant == 4) {
          a = eighth_turn<kWay>(a);
        } else if (octant != 0) {
          a = turn<kWay>(a, kCosines[octant], kCosines[8 - octant]);
        }
        if (angle / 8 % 2 == 1) a = quarter_turn<kWay>(a);
        if (angle / 16 % 2 == 1) a = {-a.re, -a.im};
        eighth[n2] = a;
      }
      transform<8, kWay>(eighth);
#pragma unroll
      for (int k2 = 0; k2 < 8; ++k2) result[k1 + 4 * k2] = eighth[k2];
    }
#pragma unroll
    for (int i = 0; i < 32; ++i) v[i] = result[i];
  } else {
    static_assert(kN == 16);
    constexpr float kCosine = 0.92387953251128675613f, kSine = 0.38268343236508977173f;
    constexpr unsigned kZero = kInputs <= 4 ? 14 : kInputs <= 8 ? 12 : kInputs <= 12 ? 8 : 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) transform4<kWay, kZero>(v[i], v[i + 4], v[i + 8], v[i + 12]);
    v[5] = turn<kWay>(v[5], kCosine, kSine);
    v[9] = eighth_turn<kWay>(v[9]);
    v[13] = turn<kWay>(v[13], kSine, kCosine);
    v[6] = eighth_turn<kWay>(v[6]);
    v[10] = quarter_turn<kWay>(v[10]);
    v[14] = quarter_turn<kWay>(eighth_turn<kWay>(v[14]));
    v[7] = turn<kWay>(v[7], kSine, kCosine);
    v[11] = quarter_turn<kWay>(eighth_turn<kWay>(v[11]));
    v[15] = turn<kWay>(v[15], -kCosine, -kSine);
    Complex result[16];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      transform4<kWay>(v[4 * k], v[4 * k + 1], v[4 * k + 2], v[4 * k + 3]);
#pragma unroll
      for (int q = 0; q < 4; ++q) result[k + 4 * q] = v[4 * k + q];
    }
#pragma unroll
    for (int i = 0; i < 16; ++i) v[i] = result[i];
  }
}

// Calls f(k) for k = 0 .. kCount - 1, each a constant.
template <int kCount, typename F>
__device__ __forceinline__ void for_each_constant(F f) {
  [&]<int... k>(std::integer_sequence<int, k...>) {
    (f(std::integral_constant<int, k>{}), ...);
  }(std::make_integer_sequence<int, kCount>{});
}

}  // namespace xcorr::device
