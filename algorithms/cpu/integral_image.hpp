// Sums over any rectangle of a matrix in four reads (Crow 1984), in float64.
#pragma once

#include <algorithm>

#include "algorithms/cpu/dense_copy.hpp"

namespace xcorr::cpu {

// Sums of the values of a matrix and of their squares.
class IntegralImages {
 public:
  static Index doubles(Shape shape) { return 2 * whole_lines((shape.rows + 1) * (shape.cols + 1)); }

  IntegralImages(double* memory, Shape shape)
      : values_(memory), squares_(memory + doubles(shape) / 2), pitch_(shape.cols + 1) {}

  void make(const DenseCopy& copy) {
    const auto [rows, cols] = copy.shape;
    std::fill_n(values_, pitch_, 0.0);
    std::fill_n(squares_, pitch_, 0.0);
    for (Index y = 0; y < rows; ++y) {
      double of_row = 0, squares_of_row = 0;
      values_[(y + 1) * pitch_] = squares_[(y + 1) * pitch_] = 0;
      for (Index x = 0; x < cols; ++x) {
        const double value = copy.values[y * cols + x];
        const Index above = y * pitch_ + x + 1, here = above + pitch_;
        values_[here] = values_[above] + (of_row += value);
        squares_[here] = squares_[above] + (squares_of_row += value * value);
      }
    }
  }

  // The sums over rows y.first .. y.first + y.count - 1 and columns x.first .. x.first + x.count -
  // 1.
  double values(Overlap y, Overlap x) const { return sum(values_, y, x); }
  double squares(Overlap y, Overlap x) const { return sum(squares_, y, x); }

 private:
  double sum(const double* image, Overlap y, Overlap x) const {
    const double* top = image + y.first * pitch_ + x.first;
    const double* bottom = top + y.count * pitch_;
    return (bottom[x.count] - top[x.count]) - (bottom[0] - top[0]);
  }

  double *values_, *squares_;
  Index pitch_;
};

}  // namespace xcorr::cpu
