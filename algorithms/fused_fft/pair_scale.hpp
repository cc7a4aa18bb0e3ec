// A pair of matrices that share a complex transform, left + i right, of which a lane has a column
// in registers. The left is scaled to the norm of the right by a power of two, which changes no
// digit, and the outputs are scaled back.
//
// The rounding errors of such a transform are in proportion to the larger side. If the left is 1e6
// times as large as the right, the computed spectrum of the right is mostly errors of the left's.
// With similar norms the errors of an output are in proportion to the product of both norms, as
// with separate transforms. Norms that differ by less than a factor of two, as those of two images
// of one scene, stay as they are.
//
// With padding the sum of a side counts besides its squares (share_of_sum() in pair_columns.hpp).
#pragma once

#include <bit>

#include "algorithms/device/cuda.hpp"
#include "algorithms/fused_fft/pair_columns.hpp"

namespace xcorr::fused_fft {

// The largest n with 2^n <= value, for a positive normal number.
__device__ __forceinline__ int exponent_of(float value) {
  return static_cast<int>(std::bit_cast<std::uint32_t>(value) >> 23) - 127;
}
// 2^n for n from -126 to 127.
__device__ __forceinline__ float power_of_two(int n) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(n + 127) << 23);
}
// 2^n for any n. For n above 127 it is 2^127; for small n it is subnormal or 0.
__device__ __forceinline__ float any_power_of_two(int n) {
  if (n > 127) n = 127;
  if (n < -252) n = -252;
  return n < -126 ? power_of_two(-126) * power_of_two(n + 126) : power_of_two(n);
}

// Whether the sums of squares of both sides lie within limits. Beyond them a norm may have left the
// range of float32, or have lost digits below it.
__device__ __forceinline__ bool are_usual(Complex squares) {
  const float less = fminf(squares.re, squares.im), more = fmaxf(squares.re, squares.im);
  return less > 0x1p-90f && more < 0x1p100f;
}

// The exponent of the power of two by which a side with this sum of squares must be multiplied to
// bring the sum into, or closer to, the limits of are_usual().
__device__ __forceinline__ int exponent_to_usual(float squares) {
  constexpr int kStep = 60;
  return squares <= 0x1p-90f ? kStep : squares >= 0x1p100f ? -kStep : 0;
}

// The exponent of the power of two by which the left must be multiplied.
__device__ __forceinline__ int left_exponent(Complex squares) {
  const int difference = exponent_of(squares.im) - exponent_of(squares.re);
  return difference < -1 || difference > 1 ? difference / 2 : 0;
}

// The factors of both sides, and the exponent of the factor that undoes them in the outputs.
struct PairScale {
  float left = 1, right = 1;
  int back = 0;
};

// Factors that bring the largest absolute value of each side into [1, 2). If a side is all zeros,
// both factors are 0, and so are all outputs. If a value is infinite or NaN, nothing is scaled.
__device__ __forceinline__ PairScale scale_to_one(Complex most) {
  const float all = most.re + most.im;
  if (!(all - all == 0)) return {};
  if (most.re == 0 || most.im == 0) return {0, 0, 0};
  // At most 2^126, which brings the smallest numbers to 2^-23.
  const auto exponent = [](float value) {
    const int of = exponent_of(value);
    return of < -126 ? -126 : of;
  };
  const int left = exponent(most.re), right = exponent(most.im);
  return {any_power_of_two(-left), any_power_of_two(-right), left + right};
}

// The factors of sides with these sums of squares. If a sum is not usual, they are computed from
// largest(), the largest absolute values, and squares_of(factors), the sums of squares of the
// scaled sides. All threads with the same arguments get the same factors.
template <typename Largest, typename Squares>
__device__ __forceinline__ PairScale pair_scale(Complex squares, const Largest& largest,
                                                const Squares& squares_of) {
  PairScale scale;
  if (!are_usual(squares)) [[unlikely]] {
    scale = scale_to_one(largest());
    squares = squares_of(scale);
    if (!are_usual(squares)) return scale;
  }
  const int by = left_exponent(squares);
  return {scale.left * power_of_two(by), scale.right, scale.back - by};
}

// The sums of squares over all lanes of a warp, of the left and of the right.
__device__ __forceinline__ Complex squares_of_lanes(const Complex (&v)[32]) {
  Complex sum = {0.0f, 0.0f};
#pragma unroll
  for (int y = 0; y < 32; ++y) {
    sum = {fmaf(v[y].re, v[y].re, sum.re), fmaf(v[y].im, v[y].im, sum.im)};
  }
  return sum_of_lanes(sum);
}
__device__ __forceinline__ void multiply_sides(Complex (&v)[32], float left, float right) {
#pragma unroll
  for (int y = 0; y < 32; ++y) v[y] = {left * v[y].re, right * v[y].im};
}

// Scales the sides of a pair, and returns the exponent of the factor of the outputs. It computes
// the same as pair_scale(), in one loop that most pairs leave in the first round: more code would
// need more registers than there are. A side whose squares leave the range of float32 comes into
// range in at most two rounds. With kSumsCount `of_sums` is share_of_sum() of each side, or 0
// without padding.
template <bool kSumsCount>
__device__ __forceinline__ int scale_alike(Complex of_sums, Complex (&v)[32]) {
  int back = 0;
  bool is_last;
  int round = 0;
#pragma unroll 1
  do {
    const Complex squares = squares_of_lanes(v);
    Complex weights = squares;
    if (kSumsCount && of_sums.re != 0) {
      const Complex sum = sum_of_lanes(v);
      weights = {fmaf(of_sums.re, sum.re * sum.re, squares.re),
                 fmaf(of_sums.im, sum.im * sum.im, squares.im)};
    }
    int left = left_exponent(weights), right = 0;
    is_last = are_usual(squares);
    if (!is_last) [[unlikely]] {
      left = exponent_to_usual(squares.re);
      right = exponent_to_usual(squares.im);
    }
    back -= left + right;
    float of_left = power_of_two(left), of_right = power_of_two(right);
    // One side is all zeros or not finite. Both are multiplied by 0: values that are not finite
    // become NaN.
    if (!is_last && ++round == 3) of_left = of_right = 0, is_last = true;
    if (of_left != 1 || of_right != 1) multiply_sides(v, of_left, of_right);
  } while (!is_last);
  return back;
}

}  // namespace xcorr::fused_fft
