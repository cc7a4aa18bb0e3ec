// Sums over the rectangles of a matrix in four reads (Crow 1984), in float64.
#pragma once

#include <algorithm>

#include "harness/problem/problem.hpp"

namespace xcorr::device {

class IntegralImage {
 public:
  static Index doubles(Index rows, Index cols) { return (rows + 1) * (cols + 1); }

  IntegralImage() = default;
  explicit IntegralImage(double* memory) : sums_(memory) {}

  void make(const double* plane, Index rows, Index cols) {
    sum_up(plane, rows, cols, [](double value) { return value; });
  }
  void make_of_squares(const double* plane, Index rows, Index cols) {
    sum_up(plane, rows, cols, [](double value) { return value * value; });
  }

  // The sum over `rows` x `cols` elements from (y, x) on.
  double sum(Index y, Index x, Index rows, Index cols) const {
    const double* top = sums_ + y * pitch_ + x;
    const double* bottom = top + rows * pitch_;
    return (bottom[cols] - top[cols]) - (bottom[0] - top[0]);
  }

 private:
  template <typename Of>
  void sum_up(const double* plane, Index rows, Index cols, const Of& of) {
    pitch_ = cols + 1;
    std::fill_n(sums_, pitch_, 0.0);
    for (Index y = 0; y < rows; ++y) {
      const double* row = plane + y * cols;
      const double* above = sums_ + y * pitch_ + 1;
      double* here = sums_ + (y + 1) * pitch_ + 1;
      double of_row = 0;
      here[-1] = 0;
      for (Index x = 0; x < cols; ++x) here[x] = above[x] + (of_row += of(row[x]));
    }
  }

  double* sums_ = nullptr;
  Index pitch_ = 0;
};

}  // namespace xcorr::device
