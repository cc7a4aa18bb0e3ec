// Templates in frames: the left matrices are templates, the right matrices frames that contain them
// at every shift of the window. Therefore the least overlap of scores has no effect, the mean and
// the norm of a template are the same at all shifts, and the mean of a window cancels: the
// deviations of a template from its mean add up to 0, so that
//
//   sum (l - mean of L) (r - mean of the window) = sum (l - mean of L) (r - pivot)
//
// for any pivot. With the template divided by its norm, a score is this sum times a factor of the
// shift: 1 / the norm of the frame's window about its mean (template_factors.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "algorithms/blocks/divide.hpp"
#include "algorithms/blocks/pairs.hpp"
#include "harness/variant.hpp"

namespace xcorr::device {

// Set on the host, passed to the kernel by value. The first fields are those of Extents: with
// Extents as a base, nvcc 13.0 gave template_direct code that took up to 12 % longer on an H100.
struct TemplateProblem {
  TemplateProblem() = default;
  explicit TemplateProblem(const Problem& q)
      : left_rows(static_cast<int>(q.left.rows)),
        left_cols(static_cast<int>(q.left.cols)),
        right_rows(static_cast<int>(q.right.rows)),
        right_cols(static_cast<int>(q.right.cols)),
        first_sy(static_cast<int>(q.window.sy.first)),
        first_sx(static_cast<int>(q.window.sx.first)),
        out_rows(static_cast<int>(q.out_rows())),
        out_cols(static_cast<int>(q.out_cols())),
        lefts(static_cast<int>(q.lefts)),
        rights(static_cast<int>(q.rights)),
        pairs(static_cast<int>(q.pairs())),
        rights_of_left(xcorr::device::rights_of_a_left(q)),
        rights_back(static_cast<int>(xcorr::device::rights_back(q))),
        is_ratio(is_normalised(q.fields.score.kind)),
        is_centred(xcorr::is_centred(q.fields.score.kind)) {}

  __device__ __forceinline__ int left_of(int pair) const {
    return static_cast<int>(rights_of_left.quotient(static_cast<std::uint32_t>(pair)));
  }
  __device__ __forceinline__ int right_of(int pair) const {
    return pair - left_of(pair) * rights_back;
  }
  __device__ __forceinline__ Index left_size() const {
    return static_cast<Index>(left_rows) * left_cols;
  }
  __device__ __forceinline__ Index right_size() const {
    return static_cast<Index>(right_rows) * right_cols;
  }
  __device__ __forceinline__ Index out_size() const {
    return static_cast<Index>(out_rows) * out_cols;
  }

  int left_rows = 0, left_cols = 0, right_rows = 0, right_cols = 0;
  int first_sy = 0, first_sx = 0;  // shift of the first output: its position in the frame
  int out_rows = 0, out_cols = 0;
  int lefts = 0, rights = 0, pairs = 0;
  Divider rights_of_left;
  int rights_back = 0;
  bool is_ratio = false;    // ncc and zncc: sums are divided by norms
  bool is_centred = false;  // covariance and zncc: means are removed
};

// Yes, or why a problem is not one of templates in frames.
inline Support templates_fit(const Problem& q) {
  if (const Support fit = indices_fit(q); !fit) return fit;
  const bool inside = q.window.sy.first >= 0 && q.window.sx.first >= 0 &&
                      q.window.sy.last + q.left.rows <= q.right.rows &&
                      q.window.sx.last + q.left.cols <= q.right.cols;
  if (!inside) return no("shifts at which the frame (right) does not contain the template (left)");
  if (q.right.size() > kIndexLimit / 2) return no("frames of more than 2^30 elements");
  if (q.lefts + q.rights > kIndexLimit / 512) return no("more than 2^22 matrices");
  return yes();
}

// Limits a score to [-1, 1], which rounding may exceed. A NaN stays a NaN.
__device__ __forceinline__ float clamped(float score) {
  return score > 1.0f ? 1.0f : score < -1.0f ? -1.0f : score;
}

// The change of a right matrix before products: value * scale + offset. It depends on the `facts`
// of the frame (template_statistics.hpp) and on a pivot near the part that is read.
struct FrameScale {
  float scale, offset;
  __device__ __forceinline__ float of(float value) const { return fmaf(value, scale, offset); }
};

}  // namespace xcorr::device
