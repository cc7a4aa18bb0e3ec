// A pair of matrices of up to 32 x 32 as the columns of one complex matrix, left + i right, of which a
// lane of a warp has a column in registers: where they lie (dense, or windows of frames), loads, and
// the removal of their means.
#pragma once

#include "algorithms/fused_fft/problem.hpp"
#include "harness/variant.hpp"

namespace xcorr::fused_fft {

// Windows of a frame. Without offsets the matrices are dense, and the pitch is their width.
struct PairView {
  const Index* offsets = nullptr;  // of each matrix
  int pitch = 0;

  __device__ __forceinline__ const float* matrix(const float* dense, const float* frame,
                                                 std::uint32_t i) const {
    return offsets ? frame + offsets[i] : dense;
  }
};

struct PairInputs : FusedProblem {
  PairInputs() = default;
  // `n` x `n`: the largest matrices; `scaled_for` values along each axis of the transform.
  PairInputs(const Problem& q, int n, int scaled_for)
      : FusedProblem(q, scaled_for, scaled_for, nullptr),
        whole(q.left == Shape{n, n} && q.right == q.left),
        wraps(q.fields.boundary == Boundary::circular && q.right == Shape{n / 2, n / 2}),
        over_left(1.0f / static_cast<float>(q.left.size())),
        over_right(1.0f / static_cast<float>(q.right.size())) {}

  void set(const Call& call, const Problem& q, const Arrays<float>& arrays) {
    FusedProblem::set(arrays);
    left_view = view(call.left_view, q.left);
    right_view = view(call.right_view, q.right);
  }

  bool whole = false;  // the largest matrices
  bool wraps = false;  // circular matrices with half as many rows and columns
  PairView left_view, right_view;
  float over_left = 0, over_right = 0;  // 1 / the elements of a matrix

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

// The same of matrices of 32 x 32, by one piece of code for dense ones and for windows.
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

// Circular matrices of 16 x 16: the left one in zeros, the right one four times, so that the outputs
// around shift 0 are those of a transform of 16 x 16. With kCentred both are without nearly their mean,
// that of four rows. The loads are of 16 rows, of the right by each half of the warp.
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

// The sum of all elements, of left + i right.
__device__ __forceinline__ Complex sum_of_lanes(Complex mine) {
  return {warp::reduce_add(mine.re), warp::reduce_add(mine.im)};
}
__device__ __forceinline__ void subtract_from_all(Complex (&v)[32], Complex value) {
#pragma unroll
  for (int y = 0; y < 32; ++y) v[y] = v[y] - value;
}

// Matrices of 32 x 32. Nearly their means, those of four rows: then elements are as small as their
// deviations, so that an offset of the data costs no digits.
__device__ __forceinline__ void remove_pivots(Complex (&v)[32]) {
  const Complex sum = sum_of_lanes((v[0] + v[8]) + (v[16] + v[24]));
  subtract_from_all(v, {sum.re * 0x1p-7f, sum.im * 0x1p-7f});
}
// Then what is left of the means.
__device__ __forceinline__ void remove_rests(Complex (&v)[32]) {
  Complex sums[2] = {v[0], v[1]};
#pragma unroll
  for (int y = 2; y < 32; ++y) sums[y % 2] = sums[y % 2] + v[y];
  const Complex sum = sum_of_lanes(sums[0] + sums[1]);
  subtract_from_all(v, {sum.re * 0x1p-10f, sum.im * 0x1p-10f});
}

// Smaller matrices: one side, the real or the imaginary part. What lies outside of the matrix stays 0.
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
// First the first element, for the same reason as pivots; of equal elements nothing is left then. One
// side after the other, since registers are short.
__device__ __forceinline__ void remove_means(const PairInputs& a, int lane, Complex (&v)[32]) {
  const Complex first = {warp::shuffle(v[0].re, 0), warp::shuffle(v[0].im, 0)};
  subtract_inside<&Complex::re>(a.left_rows, a.left_cols, first.re, lane, v);
  subtract_inside<&Complex::im>(a.right_rows, a.right_cols, first.im, lane, v);
  remove_mean<&Complex::re>(a.left_rows, a.left_cols, a.over_left, lane, v);
  remove_mean<&Complex::im>(a.right_rows, a.right_cols, a.over_right, lane, v);
}

}  // namespace xcorr::fused_fft
