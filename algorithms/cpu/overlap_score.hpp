// ncc and zncc of one shift, by their definition: sums over the pixels of the overlap that are valid
// in both matrices, all in float64 (docs/design.md, Fields of a problem; masks: Padfield 2012).
#pragma once

#include <algorithm>
#include <cmath>

#include "algorithms/cpu/dense_copy.hpp"

namespace xcorr::cpu {

// use(l, r) for the values of every pixel of the overlap that is valid in both.
template <typename Use>
void each_valid(const DenseCopy& left, const DenseCopy& right, Index sy, Index sx, const Use& use) {
  const auto [first_y, rows] = overlap(left.shape.rows, right.shape.rows, sy);
  const auto [first_x, cols] = overlap(left.shape.cols, right.shape.cols, sx);
  for (Index y = first_y; y < first_y + rows; ++y) {
    for (Index x = first_x; x < first_x + cols; ++x) {
      const Index l = y * left.shape.cols + x, r = (y + sy) * right.shape.cols + x + sx;
      if (left.valid[l] != 0 && right.valid[r] != 0) use(left.values[l], right.values[r]);
    }
  }
}

inline Index count_valid(const DenseCopy& left, const DenseCopy& right, Index sy, Index sx) {
  Index count = 0;
  each_valid(left, right, sy, sx, [&](double, double) { ++count; });
  return count;
}

// Two passes: means, then sums about the means. Where the values of a side are equal but for
// rounding, they correlate with nothing, and the score is 0. The limit for that is 8 roundings of
// float32 of the largest |value| in the overlap, where values are those of copy_matrix. The score
// is 0 too where no pixel is valid.
inline double overlap_score(ScoreKind score, const DenseCopy& left, const DenseCopy& right,
                            Index sy, Index sx) {
  double count = 0, left_sum = 0, right_sum = 0, left_largest = 0, right_largest = 0;
  each_valid(left, right, sy, sx, [&](double l, double r) {
    ++count;
    left_sum += l;
    right_sum += r;
    left_largest = std::max(left_largest, std::abs(l));
    right_largest = std::max(right_largest, std::abs(r));
  });
  const bool centred = score == ScoreKind::zncc;
  const double left_mean = centred ? left_sum / count : 0;
  const double right_mean = centred ? right_sum / count : 0;
  double product = 0, left_squares = 0, right_squares = 0;
  each_valid(left, right, sy, sx, [&](double l, double r) {
    product += (l - left_mean) * (r - right_mean);
    left_squares += (l - left_mean) * (l - left_mean);
    right_squares += (r - right_mean) * (r - right_mean);
  });
  const auto constant = [&](double squares, double largest) {
    const double deviation = 8 * 0x1p-24 * largest;
    return squares <= deviation * deviation * count;
  };
  if (constant(left_squares, left_largest) || constant(right_squares, right_largest)) return 0;
  return std::clamp(product / (std::sqrt(left_squares) * std::sqrt(right_squares)), -1.0, 1.0);
}

}  // namespace xcorr::cpu
