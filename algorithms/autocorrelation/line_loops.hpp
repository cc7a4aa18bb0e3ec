// The reordered loops of the ISS paper (section 4.2) on a CPU: shifts sy, lines y, shifts sx, and
// innermost the columns x of two lines, which are contiguous in memory. Rows of negative sy are
// mirrored if the window has the positive rows too. Threads divide the rows of shifts of all images,
// or the images (section 2.2).
#pragma once

#include <omp.h>

#include "algorithms/autocorrelation/mirrored_rows.hpp"

namespace xcorr::autocorrelation {

// Returns the sum of a[x] * b[x] for x < count.
using SumOfProducts = float (*)(const float* a, const float* b, Index count);

// What the threads of a call divide. images: a thread makes all rows of shifts of an image.
enum class ThreadsOver { rows_of_shifts, images };

class LineLoopsPlan final : public Plan {
 public:
  LineLoopsPlan(const PlanRequest& request, SumOfProducts sum, int threads,
                ThreadsOver over = ThreadsOver::rows_of_shifts)
      : problem_(request.problem), rows_(problem_), sum_(sum), threads_(threads), over_(over) {}

  void compute(const Call& call) override {
    const Index tasks = problem_.pairs() * rows_.computed();
    const int threads = static_cast<int>(std::min<Index>(threads_, tasks));
    if (threads == 1) {
      for (Index task = 0; task < tasks; ++task) row(call, task);
      return;
    }
    if (over_ == ThreadsOver::images) {
      images(call);
      return;
    }
    // Rows of small sy have more lines than rows of large sy.
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (Index task = 0; task < tasks; ++task) row(call, task);
  }

 private:
  // The images of a problem have the same work, so that a static division is even.
  void images(const Call& call) const {
    const Index count = problem_.pairs();
    const int threads = static_cast<int>(std::min<Index>(threads_, count));
#pragma omp parallel for num_threads(threads) schedule(static)
    for (Index image = 0; image < count; ++image) {
      for (Index i = 0; i < rows_.computed(); ++i) row(call, image * rows_.computed() + i);
    }
  }

  void row(const Call& call, Index task) const {
    const Problem& q = problem_;
    const Index p = task / rows_.computed();
    const int i = static_cast<int>(task % rows_.computed());
    const float* const image = call.lefts<float>() + p * q.left.size();
    float* const pair = call.outs<float>() + p * q.out_size();
    float* const out = pair + rows_.row(i) * q.out_cols();
    std::fill_n(out, q.out_cols(), 0.0f);
    const Index sy = rows_.sy(i);
    const auto [first_y, lines] = overlap(q.left.rows, q.left.rows, sy);
    for (Index y = first_y; y < first_y + lines; ++y) {
      const float* const left = image + y * q.left.cols;
      const float* const right = left + sy * q.left.cols;
      for (Index col = 0; col < q.out_cols(); ++col) {
        const Index sx = q.window.sx.first + col;
        const auto [first_x, count] = overlap(q.left.cols, q.left.cols, sx);
        out[col] += sum_(left + first_x, right + first_x + sx, count);
      }
    }
    if (const int mirror = rows_.mirror(i); mirror >= 0) {
      std::reverse_copy(out, out + q.out_cols(), pair + mirror * q.out_cols());
    }
  }

  Problem problem_;
  MirroredRows rows_;
  SumOfProducts sum_;
  int threads_;
  ThreadsOver over_;
};

}  // namespace xcorr::autocorrelation
