// The correlation of one pair with boundary `circular`, score `product` or `phase`, in float64, for
// cpu_fft: a transform of the size of the matrices, of any length, without padding. For phase the
// matrices have no mean (dense_copy.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <mutex>

#include "algorithms/blocks/fftw.hpp"
#include "algorithms/cpu/dense_copy.hpp"
#include "harness/variant.hpp"

namespace xcorr::cpu {

class CircularTransform final : public Plan {
  using Library = device::Fftw<double>;
  using Complex = std::complex<double>;

 public:
  explicit CircularTransform(const PlanRequest& request)
      : problem_(request.problem),
        matrix_(static_cast<double*>(request.workspace)),
        left_(reinterpret_cast<Complex*>(matrix_ + whole_lines(problem_.left.size()))),
        right_(left_ + spectrum(problem_)) {
    const std::lock_guard lock(device::fftw_planner);
    Library::forget();
    const int rows = static_cast<int>(problem_.left.rows);
    const int cols = static_cast<int>(problem_.left.cols);
    forward_.reset(fftw_plan_dft_r2c_2d(rows, cols, matrix_, raw(left_), FFTW_ESTIMATE));
    inverse_.reset(fftw_plan_dft_c2r_2d(rows, cols, raw(right_), matrix_, FFTW_ESTIMATE));
  }

  static std::size_t workspace_bytes(const PlanRequest& request) {
    const Problem& q = request.problem;
    return whole_lines(q.left.size()) * sizeof(double) + 2 * spectrum(q) * sizeof(Complex);
  }

  void compute(const Call& call) override {
    const Problem& q = problem_;
    const double left_norm = forward(call.lefts<double>(), left_);
    const double right_norm = forward(call.rights<double>(), right_);
    for (Index k = 0; k < bins(q); ++k) right_[k] *= std::conj(left_[k]);
    if (q.fields.score.kind == ScoreKind::phase) {
      whiten(right_, bins(q), left_norm * right_norm, q.left.size(), q.fields.score.exponent);
    }
    Library::c2r(inverse_.get(), raw(right_), matrix_);
    const double scale = 1 / static_cast<double>(q.left.size());
    double* out = call.outs<double>();
    for (Index sy = q.window.sy.first; sy <= q.window.sy.last; ++sy) {
      const double* row = matrix_ + wrapped(0, sy, q.left.rows) * q.left.cols;
      for (Index sx = q.window.sx.first; sx <= q.window.sx.last; ++sx) {
        *out++ = scale * row[wrapped(0, sx, q.left.cols)];
      }
    }
  }

 private:
  // Complex elements of a half spectrum, and of its storage.
  static Index bins(const Problem& q) { return q.left.rows * (q.left.cols / 2 + 1); }
  static Index spectrum(const Problem& q) { return whole_lines(2 * bins(q)) / 2; }
  static Library::Complex raw(Complex* p) { return reinterpret_cast<Library::Complex>(p); }

  // Returns the norm of the matrix.
  double forward(const double* from, Complex* to) const {
    const Index size = problem_.left.size();
    std::copy_n(from, size, matrix_);
    Library::r2c(forward_.get(), matrix_, raw(to));
    return norm_of(from, size);
  }

  Problem problem_;
  double* matrix_;
  Complex *left_, *right_;
  device::OwnedPlan<double> forward_, inverse_;
};

}  // namespace xcorr::cpu
