#include "harness/truth/phase.hpp"

#include <fftw3.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "harness/truth/reference.hpp"
#include "harness/verdict/score_bounds.hpp"

namespace xcorr {
namespace {

using Complex = std::complex<double>;
using Spectrum = std::vector<Complex>;

// Transforms rows, then columns, each by its sum. `sign` is -1 forward and 1 back.
void transform_by_sums(Shape shape, int sign, Spectrum& data) {
  constexpr double kTurn = 6.283185307179586476925;
  const auto pass = [&](Index length, Index stride, Index lines, Index line_stride) {
    Spectrum roots(length), line(roots.size());
    for (Index k = 0; k < length; ++k) {
      roots[k] =
          std::polar(1.0, sign * kTurn * static_cast<double>(k) / static_cast<double>(length));
    }
    for (Index i = 0; i < lines; ++i) {
      Complex* at = data.data() + i * line_stride;
      for (Index k = 0; k < length; ++k) {
        Complex sum = 0;
        for (Index j = 0; j < length; ++j) {
          sum += at[j * stride] * roots[j * k % length];
        }
        line[k] = sum;
      }
      for (Index k = 0; k < length; ++k) at[k * stride] = line[k];
    }
  };
  pass(shape.cols, 1, shape.rows, shape.cols);
  pass(shape.rows, shape.cols, shape.cols, 1);
}

// Without its mean, which is taken about the first element: equal elements become exactly 0.
Spectrum centred(const double* values, Index size) {
  double sum = 0;
  for (Index i = 0; i < size; ++i) sum += values[i] - values[0];
  const double mean = sum / static_cast<double>(size);
  Spectrum out(size);
  for (Index i = 0; i < size; ++i) {
    out[i] = (values[i] - values[0]) - mean;
  }
  return out;
}

double norm(const Spectrum& values) {
  double sum = 0;
  for (const Complex& value : values) sum += std::norm(value);
  return std::sqrt(sum);
}

}  // namespace

struct PhaseReference::State {
  Problem problem;
  bool definition;
  fftw_plan forward = nullptr, inverse = nullptr;

  void transform(Spectrum& data, int sign) const {
    if (definition) return transform_by_sums(problem.left, sign, data);
    auto* memory = reinterpret_cast<fftw_complex*>(data.data());
    fftw_execute_dft(sign < 0 ? forward : inverse, memory, memory);
  }
};

PhaseReference::PhaseReference(const Problem& problem, bool definition)
    : state_(new State{problem, definition}) {
  if (definition) return;
  const auto rows = static_cast<int>(problem.left.rows), cols = static_cast<int>(problem.left.cols);
  Spectrum memory(problem.left.size());
  auto* data = reinterpret_cast<fftw_complex*>(memory.data());
  const std::lock_guard planning(fftw_planner());
  fftw_init_threads();
  fftw_plan_with_nthreads(1);
  // Memory of later calls may have another alignment.
  constexpr unsigned kFlags = FFTW_ESTIMATE | FFTW_UNALIGNED;
  state_->forward = fftw_plan_dft_2d(rows, cols, data, data, FFTW_FORWARD, kFlags);
  state_->inverse = fftw_plan_dft_2d(rows, cols, data, data, FFTW_BACKWARD, kFlags);
}

PhaseReference::~PhaseReference() {
  if (state_->definition) return;
  const std::lock_guard planning(fftw_planner());
  fftw_destroy_plan(state_->forward);
  fftw_destroy_plan(state_->inverse);
}

double PhaseReference::pair(const double* left, const double* right, double roundoff,
                            double smallest, double* out) const {
  const Problem& q = state_->problem;
  const Index size = q.left.size();
  const double exponent = q.fields.score.exponent;
  Spectrum l = centred(left, size), r = centred(right, size);
  const double left_norm = norm(l), right_norm = norm(r);
  if (left_norm == 0 || right_norm == 0) {
    std::fill(out, out + q.out_size(), 0.0);
    return 0;
  }
  const double floor = phase_floor(static_cast<double>(size)) * left_norm * right_norm;
  state_->transform(l, -1);
  state_->transform(r, -1);
  // One of 64 elements of the left may be lost, each about half of `smallest`.
  const double lost = smallest / 8 * std::sqrt(static_cast<double>(size));
  const double left_error = roundoff * left_norm + lost, right_error = roundoff * right_norm;
  double errors = 0, squares = 0;
  r[0] = 0;
  for (std::size_t i = 1; i < l.size(); ++i) {
    const Complex x = std::conj(l[i]) * r[i];
    const double magnitude = std::max(std::abs(x), floor);
    const double error = phase_bin_error(std::abs(l[i]), std::abs(r[i]), left_error, right_error,
                                         smallest, magnitude, exponent);
    r[i] = x / std::pow(magnitude, 1 - exponent);
    errors += error * error;
    squares += std::norm(r[i]);
  }
  state_->transform(r, 1);
  const auto points = static_cast<double>(size);
  for (Index row = 0; row < q.out_rows(); ++row) {
    const Index y = wrapped(0, q.window.sy.first + row, q.left.rows);
    for (Index col = 0; col < q.out_cols(); ++col) {
      const Index x = wrapped(0, q.window.sx.first + col, q.left.cols);
      *out++ = r[y * q.left.cols + x].real() / points;
    }
  }
  return std::sqrt(errors + roundoff * roundoff * squares) / points;
}

}  // namespace xcorr
