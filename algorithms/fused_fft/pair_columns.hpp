// A pair of matrices of up to 32 x 32 as one complex matrix, left + i right; a lane of a warp has
// one column in registers. This file has the location of the matrices (dense, or windows of
// frames), the loads, and the removal of means.
#pragma once

#include <cmath>

#include "algorithms/blocks/divide.hpp"
#include "algorithms/blocks/pairs.hpp"
#include "algorithms/blocks/peaks.hpp"
#include "algorithms/fused_fft/problem.hpp"
#include "harness/variant.hpp"

namespace xcorr::fused_fft {

// Where the matrices of one side lie. With offsets they are windows of a frame; without, they are
// dense and the pitch is their width.
struct PairView {
  const Index* offsets = nullptr;  // one per matrix
  int pitch = 0;

  __device__ __forceinline__ const float* matrix(const float* dense, const float* frame,
                                                 std::uint32_t i) const {
    return offsets ? frame + offsets[i] : dense;
  }
};

// Both sides of a pair are scaled to the same value of
//
//   sum of squares + share_of_sum(elements) * square of the sum
//
// The rounding errors of the spectrum L are in proportion to R and are multiplied by R, and those of
// R by L. So the errors of the product are alike if both sides have the same sum of |spectrum|^4
// over all bins. Noise is alike in all bins, and its squares tell the sum. A matrix with a mean,
// padded with zeros, has most of its energy in few bins around frequency 0. For ones the root of
// the sum of |spectrum|^4 is 2/3 of the square of their sum along each axis, times the root of the
// padded over the unpadded length.
inline float share_of_sum(Index elements) {
  return 2.0f / (3.0f * std::sqrt(static_cast<float>(elements)));
}

struct PairInputs : FusedProblem {
  PairInputs() = default;
  // `n` x `n` is the largest shape; `scaled_for` is the length of the transform along each axis.
  PairInputs(const Problem& q, int n, int scaled_for)
      : FusedProblem(q, scaled_for, scaled_for, nullptr),
        whole(q.left == Shape{n, n} && q.right == q.left),
        wraps(q.fields.boundary == Boundary::circular && q.right == Shape{n / 2, n / 2}),
        of_sums(q.fields.boundary == Boundary::zero
                    ? Complex{share_of_sum(q.left.size()), share_of_sum(q.right.size())}
                    : Complex{}),
        over_left(1.0f / static_cast<float>(q.left.size())),
        over_right(1.0f / static_cast<float>(q.right.size())),
        pairs(static_cast<std::uint32_t>(q.pairs())),
        rights_of_left(rights_of_a_left(q)),
        rights_back(static_cast<std::uint32_t>(device::rights_back(q))),
        request(q) {}

  void set(const Call& call, const Problem& q, const Arrays<float>& arrays) {
    FusedProblem::set(arrays);
    left_view = view(call.left_view, q.left);
    right_view = view(call.right_view, q.right);
    request.out = call.out;
  }

  bool whole = false;  // both matrices are n x n
  bool wraps = false;  // circular matrices of n / 2 x n / 2
  PairView left_view, right_view;
  Complex of_sums{};                    // share_of_sum() of both sides; 0 without padding
  float over_left = 0, over_right = 0;  // 1 / number of elements
  std::uint32_t pairs = 0;
  Divider rights_of_left;
  std::uint32_t rights_back = 0;  // the right of pair p of left l is p - l * rights_back
  ResultRequest request;

 private:
  static PairView view(const View& of, const Shape& shape) {
    return {of.offsets, static_cast<int>(of.offsets ? of.pitch : shape.cols)};
  }
};

// Column `lane` of the left and of the right matrix as one complex column.
__device__ __forceinline__ void load_columns(const PairInputs& a, std::uint32_t left_number,
                                             std::uint32_t right_number, int lane,
                                             Complex (&v)[32]) {
  const Source left = a.left_of(left_number), right = a.right_of(right_number);
  const float* l = a.left_view.matrix(left.data, a.left, left_number) + lane;
  const float* r = a.right_view.matrix(right.data, a.right, right_number) + lane;
  if (a.whole && !a.left_view.offsets) {
#pragma unroll
    for (int y = 0; y < 32; ++y) v[y] = {l[32 * y], r[32 * y]};
  } else if (a.whole) {
    const int left_pitch = a.left_view.pitch, right_pitch = a.right_view.pitch;
#pragma unroll
    for (int y = 0; y < 32; ++y) v[y] = {l[y * left_pitch], r[y * right_pitch]};
  } else {
    const bool in_left = lane < left.cols, in_right = lane < right.cols;
#pragma unroll
    for (int y = 0; y < 32; ++y) {
      v[y].re = in_left && y < left.rows ? *l : 0.0f;
      v[y].im = in_right && y < right.rows ? *r : 0.0f;
      l += a.left_view.pitch;
      r += a.right_view.pitch;
    }
  }
}

// load_columns() for matrices of 32 x 32, with one code for dense matrices and windows.
__device__ __forceinline__ void load_whole_columns(const PairInputs& a, std::uint32_t left_number,
                                                   std::uint32_t right_number, int lane,
                                                   Complex (&v)[32]) {
  const float* const l =
      a.left_view.matrix(a.left_of(left_number).data, a.left, left_number) + lane;
  const float* const r =
      a.right_view.matrix(a.right_of(right_number).data, a.right, right_number) + lane;
#pragma unroll
  for (int y = 0; y < 32; ++y) v[y] = {l[y * a.left_view.pitch], r[y * a.right_view.pitch]};
}

// Circular matrices of 16 x 16 in a transform of 32 x 32: the left one is padded with zeros, and
// the right one is repeated four times. So the outputs around shift 0 are those of a transform of
// 16 x 16. With kCentred a pivot is subtracted from each, the mean of four rows. 16 rows are
// loaded; both halves of the warp load the same columns.
template <bool kCentred>
__device__ __forceinline__ void load_wrapped(const PairInputs& a, std::uint32_t left_number,
                                             std::uint32_t right_number, int lane,
                                             Complex (&v)[32]) {
  const float* const l =
      a.left_view.matrix(a.left_of(left_number).data, a.left, left_number) + lane % 16;
  const float* const r =
      a.right_view.matrix(a.right_of(right_number).data, a.right, right_number) + lane % 16;
#pragma unroll
  for (int y = 0; y < 16; ++y) v[y] = {l[y * a.left_view.pitch], r[y * a.right_view.pitch]};
  Complex pivot{0.0f, 0.0f};
  if constexpr (kCentred) {
    const Complex few = (v[0] + v[4]) + (v[8] + v[12]);
    pivot = {warp::reduce_add(few.re) * 0x1p-7f, warp::reduce_add(few.im) * 0x1p-7f};
  }
#pragma unroll
  for (int y = 0; y < 16; ++y) {
    const float right = v[y].im - pivot.im;
    v[y] = {lane < 16 ? v[y].re - pivot.re : 0.0f, right};
    v[y + 16] = {0.0f, right};
  }
}

// The sum over all lanes, of left + i right.
__device__ __forceinline__ Complex sum_of_lanes(Complex mine) {
  return {warp::reduce_add(mine.re), warp::reduce_add(mine.im)};
}
// The sum of all elements, of left + i right.
__device__ __forceinline__ Complex sum_of_lanes(const Complex (&v)[32]) {
  Complex sum = v[0];
#pragma unroll
  for (int y = 1; y < 32; ++y) sum = sum + v[y];
  return sum_of_lanes(sum);
}
__device__ __forceinline__ void subtract_from_all(Complex (&v)[32], Complex value) {
#pragma unroll
  for (int y = 0; y < 32; ++y) v[y] = v[y] - value;
}

// For matrices of 32 x 32: subtracts a pivot, the mean of four rows. Then elements are about as
// small as their deviations from the mean, and an offset of the data costs no digits.
__device__ __forceinline__ void remove_pivots(Complex (&v)[32]) {
  const Complex sum = sum_of_lanes((v[0] + v[8]) + (v[16] + v[24]));
  subtract_from_all(v, {sum.re * 0x1p-7f, sum.im * 0x1p-7f});
}
// For matrices of 32 x 32 after remove_pivots(): subtracts the remaining means.
__device__ __forceinline__ void remove_rests(Complex (&v)[32]) {
  Complex sums[2] = {v[0], v[1]};
#pragma unroll
  for (int y = 2; y < 32; ++y) sums[y % 2] = sums[y % 2] + v[y];
  const Complex sum = sum_of_lanes(sums[0] + sums[1]);
  subtract_from_all(v, {sum.re * 0x1p-10f, sum.im * 0x1p-10f});
}

// For smaller matrices, one side (the real or the imaginary part): subtracts a value inside the
// matrix. Values outside stay 0.
template <float Complex::* kPart>
__device__ __forceinline__ void subtract_inside(int rows, int cols, float value, int lane,
                                                Complex (&v)[32]) {
  const int inside = opaque(lane) < cols ? rows : 0;
#pragma unroll
  for (int y = 0; y < 32; ++y) v[y].*kPart -= y < inside ? value : 0.0f;
}
template <float Complex::* kPart>
__device__ __forceinline__ void remove_mean(int rows, int cols, float over, int lane,
                                            Complex (&v)[32]) {
  float sum = v[0].*kPart;
#pragma unroll
  for (int y = 1; y < 32; ++y) sum += v[y].*kPart;
  subtract_inside<kPart>(rows, cols, warp::reduce_add(sum) * over, lane, v);
}
// Subtracts the first element first, as a pivot; if all elements are equal, nothing remains. Then
// it subtracts the mean. One side after the other, to save registers.
__device__ __forceinline__ void remove_means(const PairInputs& a, int lane, Complex (&v)[32]) {
  const Complex first = {warp::shuffle(v[0].re, 0), warp::shuffle(v[0].im, 0)};
  subtract_inside<&Complex::re>(a.left_rows, a.left_cols, first.re, lane, v);
  subtract_inside<&Complex::im>(a.right_rows, a.right_cols, first.im, lane, v);
  remove_mean<&Complex::re>(a.left_rows, a.left_cols, a.over_left, lane, v);
  remove_mean<&Complex::im>(a.right_rows, a.right_cols, a.over_right, lane, v);
}

}  // namespace xcorr::fused_fft
