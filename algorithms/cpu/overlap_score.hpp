// ncc and zncc of one shift from the original matrices (docs/design.md, Fields of a problem; masks:
// Padfield 2012). Pixels outside the overlap are not used.
#pragma once

#include <cmath>

#include "algorithms/blocks/overlap_score.hpp"
#include "algorithms/cpu/dense_copy.hpp"

namespace xcorr::cpu {

// One matrix of a side.
template <typename T>
struct Matrix {
  const device::CallSide<T>* side;
  Index number;
};

// Calls use(l, r) for the values of every pixel of the overlap that is valid in both matrices.
template <typename T, typename Use>
void each_valid(const Matrix<T>& left, const Matrix<T>& right, Index sy, Index sx, const Use& use) {
  const device::CallSide<T>&l = *left.side, &r = *right.side;
  const auto [first_y, rows] = overlap(l.shape.rows, r.shape.rows, sy);
  const auto [first_x, cols] = overlap(l.shape.cols, r.shape.cols, sx);
  for (Index y = first_y; y < first_y + rows; ++y) {
    const T* of_left = l.row(left.number, y);
    const T* of_right = r.row(right.number, y + sy) + sx;
    for (Index x = first_x; x < first_x + cols; ++x) {
      if (l.valid(left.number, y, x) && r.valid(right.number, y + sy, x + sx)) {
        use(of_left[x], of_right[x]);
      }
    }
  }
}

template <typename T>
Index count_valid(const Matrix<T>& left, const Matrix<T>& right, Index sy, Index sx) {
  if (!left.side->mask && !right.side->mask) {
    return overlap(left.side->shape.rows, right.side->shape.rows, sy).count *
           overlap(left.side->shape.cols, right.side->shape.cols, sx).count;
  }
  Index count = 0;
  each_valid(left, right, sy, sx, [&](T, T) { ++count; });
  return count;
}

template <typename T>
double overlap_score(ScoreKind score, const Matrix<T>& left, const Matrix<T>& right, Index sy,
                     Index sx) {
  return device::overlap_score(score, [&](const auto& use) {
    each_valid(left, right, sy, sx,
               [&](T l, T r) { use(static_cast<double>(l), static_cast<double>(r)); });
  });
}

}  // namespace xcorr::cpu
