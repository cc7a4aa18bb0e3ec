// All fields of a problem by their definition (docs/design.md, Fields of a problem), for
// cpu_definition. Each output is computed from the pixels alone, one after the other: for ncc and
// zncc from the original matrices (overlap_score.hpp), for other scores from float64 copies of both
// (dense_copy.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <numbers>

#include "algorithms/cpu/dense_copy.hpp"
#include "algorithms/cpu/overlap_score.hpp"
#include "harness/variant.hpp"

namespace xcorr::cpu {

// Discrete Fourier transform by its definition: of each row, then of each column of the result.
// sign is -1 for forward, 1 for inverse, which is not divided by the size.
template <typename Value>
void fourier(const Value* from, std::complex<double>* of_rows, std::complex<double>* to,
             Shape shape, int sign) {
  const auto turn = [sign](Index k, Index i, Index length) {
    const double share = static_cast<double>(k * i % length) / static_cast<double>(length);
    return std::polar(1.0, sign * 2 * std::numbers::pi * share);
  };
  const auto [rows, cols] = shape;
  for (Index y = 0; y < rows; ++y) {
    for (Index kx = 0; kx < cols; ++kx) {
      std::complex<double> sum = 0;
      for (Index x = 0; x < cols; ++x) sum += from[y * cols + x] * turn(kx, x, cols);
      of_rows[y * cols + kx] = sum;
    }
  }
  for (Index ky = 0; ky < rows; ++ky) {
    for (Index kx = 0; kx < cols; ++kx) {
      std::complex<double> sum = 0;
      for (Index y = 0; y < rows; ++y) sum += of_rows[y * cols + kx] * turn(ky, y, rows);
      to[ky * cols + kx] = sum;
    }
  }
}

template <typename T>
class FieldsByDefinition final : public Plan {
 public:
  explicit FieldsByDefinition(const PlanRequest& request)
      : problem_(request.problem),
        left_(copy_in(static_cast<double*>(request.workspace), problem_.left)),
        right_(copy_in(left_.values + copy_doubles(problem_.left), problem_.right)),
        cross_(
            reinterpret_cast<std::complex<double>*>(right_.values + copy_doubles(problem_.right))),
        other_(cross_ + problem_.left.size()),
        of_rows_(other_ + problem_.left.size()) {}

  static std::size_t workspace_bytes(const Problem& q) {
    const Index spectra = q.fields.score.kind == ScoreKind::phase ? 3 * q.left.size() : 0;
    return (copy_doubles(q.left) + copy_doubles(q.right)) * sizeof(double) +
           spectra * sizeof(std::complex<double>);
  }

  void compute(const Call& call) override {
    const Problem& q = problem_;
    const ScoreKind score = q.fields.score.kind;
    const auto lefts = device::left_side<T>(call, q);
    const auto rights = device::right_side<T>(call, q);
    for (Index p = 0; p < q.pairs(); ++p) {
      const auto [l, r] = q.pair(p);
      T* out = call.outs<T>() + p * q.out_size();
      if (is_normalised(score)) {
        normalised(Matrix<T>{&lefts, l}, Matrix<T>{&rights, r}, out);
        continue;
      }
      copy_matrix(lefts, l, score, left_);
      copy_matrix(rights, r, score, right_);
      if (score == ScoreKind::phase) {
        correlate_phases();
        const double scale = phase_scale(q.fields.score, left_, right_);
        each_shift([&](Index sy, Index sx) { *out++ = static_cast<T>(scale * shifted(sy, sx)); });
      } else {
        each_shift([&](Index sy, Index sx) { *out++ = static_cast<T>(product(sy, sx)); });
      }
    }
  }

 private:
  // Calls use(sy, sx) for all shifts of the window, in the order of the outputs.
  template <typename Use>
  void each_shift(const Use& use) const {
    for (Index sy = problem_.window.sy.first; sy <= problem_.window.sy.last; ++sy) {
      for (Index sx = problem_.window.sx.first; sx <= problem_.window.sx.last; ++sx) use(sy, sx);
    }
  }

  void normalised(const Matrix<T>& left, const Matrix<T>& right, T* out) const {
    const Score& score = problem_.fields.score;
    Index most = 0;
    each_shift(
        [&](Index sy, Index sx) { most = std::max(most, count_valid(left, right, sy, sx)); });
    const double least = score.min_overlap * static_cast<double>(most);
    each_shift([&](Index sy, Index sx) {
      const bool enough = static_cast<double>(count_valid(left, right, sy, sx)) >= least;
      *out++ = enough ? static_cast<T>(overlap_score(score.kind, left, right, sy, sx)) : T{0};
    });
  }

  double product(Index sy, Index sx) const {
    const Shape left = left_.shape, right = right_.shape;
    const bool wraps = problem_.fields.boundary == Boundary::circular;
    const auto [first_y, rows] = wraps ? Overlap{0, left.rows} : overlap(left.rows, right.rows, sy);
    const auto [first_x, cols] = wraps ? Overlap{0, left.cols} : overlap(left.cols, right.cols, sx);
    double sum = 0;
    for (Index y = first_y; y < first_y + rows; ++y) {
      const double* row = right_.values + wrapped(y, sy, right.rows) * right.cols;
      for (Index x = first_x; x < first_x + cols; ++x) {
        sum += left_.values[y * left.cols + x] * row[wrapped(x, sx, right.cols)];
      }
    }
    return sum;
  }

  // Computes cross_: the cross spectrum with changed magnitudes, transformed back.
  void correlate_phases() const {
    const Index size = left_.shape.size();
    fourier(left_.values, of_rows_, cross_, left_.shape, -1);
    fourier(right_.values, of_rows_, other_, right_.shape, -1);
    for (Index k = 0; k < size; ++k) other_[k] *= std::conj(cross_[k]);
    const double norms = norm_of(left_.values, size) * norm_of(right_.values, size);
    whiten(other_, size, norms, size, problem_.fields.score.exponent);
    fourier(other_, of_rows_, cross_, left_.shape, 1);
  }
  double shifted(Index sy, Index sx) const {
    const Shape shape = left_.shape;
    const Index at = wrapped(0, sy, shape.rows) * shape.cols + wrapped(0, sx, shape.cols);
    return cross_[at].real() / static_cast<double>(shape.size());
  }

  Problem problem_;
  DenseCopy left_, right_;
  std::complex<double>*cross_, *other_, *of_rows_;
};

}  // namespace xcorr::cpu
