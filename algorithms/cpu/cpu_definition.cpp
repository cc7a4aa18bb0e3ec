// The definition: the four loops of the paper (section 2) for each pair, one thread, one
// multiply-add after the other. Every other variant is derived from it, directly or through its
// parents. It is the shortest variant: copy it to start another.
//
// Forms: all; fp32, fp64. No parameters. Sums have the scalar type and the order of the definition
// (y, then x), so the compiler may not vectorise them.
// Fields: all. They have a plan of their own, FieldsPlan, which copies both matrices of a pair as
// float64 (dense_copy.hpp) and writes each score as it is defined.
// Limits: one product for each latency of an addition, 3 to 4 cycles; minutes from 512 x 512 on.
// Score `phase` is a discrete Fourier transform without a fast algorithm, up to 64 x 64.
// Measured (AMD EPYC, Zen 3, 128 x 128, fp32): 0.26 s, 1.04 GFMA/s.
#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <string>

#include "algorithms/cpu/dense_copy.hpp"
#include "algorithms/cpu/overlap_score.hpp"
#include "algorithms/device/precision.hpp"
#include "harness/variant.hpp"

namespace xcorr::cpu {
namespace {

template <typename T>
class DefinitionPlan final : public Plan {
 public:
  explicit DefinitionPlan(const PlanRequest& request) : problem_(request.problem) {}

  void compute(const Call& call) override {
    const Problem& q = problem_;
    T* out = call.outs<T>();
    for (Index p = 0; p < q.pairs(); ++p) {
      const T* left = call.lefts<T>() + q.pair(p).left * q.left.size();
      const T* right = call.rights<T>() + q.pair(p).right * q.right.size();
      for (Index sy = q.window.sy.first; sy <= q.window.sy.last; ++sy) {
        for (Index sx = q.window.sx.first; sx <= q.window.sx.last; ++sx) {
          const auto [first_y, rows] = overlap(q.left.rows, q.right.rows, sy);
          const auto [first_x, cols] = overlap(q.left.cols, q.right.cols, sx);
          T sum = 0;
          for (Index y = first_y; y < first_y + rows; ++y) {
            for (Index x = first_x; x < first_x + cols; ++x) {
              sum += left[y * q.left.cols + x] * right[(y + sy) * q.right.cols + x + sx];
            }
          }
          *out++ = sum;
        }
      }
    }
  }

 private:
  Problem problem_;
};

constexpr Index kLargestPhase = 64 * 64;  // pixels; a row of n takes n^2 sines

using Complex = std::complex<double>;

// Discrete Fourier transform as it is defined: of each row, then of each column of these. sign is -1
// forward, 1 inverse, which is not divided by the size.
template <typename Value>
void fourier(const Value* from, Complex* of_rows, Complex* to, Shape shape, int sign) {
  const auto turn = [sign](Index k, Index i, Index length) {
    const double share = static_cast<double>(k * i % length) / static_cast<double>(length);
    return std::polar(1.0, sign * 2 * std::numbers::pi * share);
  };
  const auto [rows, cols] = shape;
  for (Index y = 0; y < rows; ++y) {
    for (Index kx = 0; kx < cols; ++kx) {
      Complex sum = 0;
      for (Index x = 0; x < cols; ++x) sum += from[y * cols + x] * turn(kx, x, cols);
      of_rows[y * cols + kx] = sum;
    }
  }
  for (Index ky = 0; ky < rows; ++ky) {
    for (Index kx = 0; kx < cols; ++kx) {
      Complex sum = 0;
      for (Index y = 0; y < rows; ++y) sum += of_rows[y * cols + kx] * turn(ky, y, rows);
      to[ky * cols + kx] = sum;
    }
  }
}

// Every field, one pair after the other, in float64.
template <typename T>
class FieldsPlan final : public Plan {
 public:
  explicit FieldsPlan(const PlanRequest& request)
      : problem_(request.problem),
        left_(copy_in(static_cast<double*>(request.workspace), problem_.left)),
        right_(copy_in(left_.values + copy_doubles(problem_.left), problem_.right)),
        cross_(reinterpret_cast<Complex*>(right_.values + copy_doubles(problem_.right))),
        other_(cross_ + problem_.left.size()),
        of_rows_(other_ + problem_.left.size()) {}

  static std::size_t workspace_bytes(const Problem& q) {
    const Index spectra = q.fields.score.kind == ScoreKind::phase ? 3 * q.left.size() : 0;
    return (copy_doubles(q.left) + copy_doubles(q.right)) * sizeof(double) +
           spectra * sizeof(Complex);
  }

  void compute(const Call& call) override {
    const Problem& q = problem_;
    const ScoreKind score = q.fields.score.kind;
    const auto lefts = left_side<T>(call, q);
    const auto rights = right_side<T>(call, q);
    for (Index p = 0; p < q.pairs(); ++p) {
      copy_matrix(lefts, q.pair(p).left, score, left_);
      copy_matrix(rights, q.pair(p).right, score, right_);
      T* out = call.outs<T>() + p * q.out_size();
      if (score == ScoreKind::phase) {
        correlate_phases();
        each_shift(out, [&](Index sy, Index sx) { return shifted(sy, sx); });
      } else if (is_normalised(score)) {
        const double least = least_overlap();
        each_shift(out, [&](Index sy, Index sx) {
          const bool enough = static_cast<double>(count_valid(left_, right_, sy, sx)) >= least;
          return enough ? overlap_score(score, left_, right_, sy, sx) : 0;
        });
      } else {
        each_shift(out, [&](Index sy, Index sx) { return product(sy, sx); });
      }
    }
  }

 private:
  // out[sy][sx] = value(sy, sx) for all shifts of the window.
  template <typename Value>
  void each_shift(T* out, const Value& value) const {
    for (Index sy = problem_.window.sy.first; sy <= problem_.window.sy.last; ++sy) {
      for (Index sx = problem_.window.sx.first; sx <= problem_.window.sx.last; ++sx) {
        *out++ = static_cast<T>(value(sy, sx));
      }
    }
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

  // Valid elements below which a score is 0, from those of the shift of the window with most.
  double least_overlap() const {
    Index most = 0;
    for (Index sy = problem_.window.sy.first; sy <= problem_.window.sy.last; ++sy) {
      for (Index sx = problem_.window.sx.first; sx <= problem_.window.sx.last; ++sx) {
        most = std::max(most, count_valid(left_, right_, sy, sx));
      }
    }
    return problem_.fields.score.min_overlap * static_cast<double>(most);
  }

  // Into cross_: the cross spectrum with its magnitudes changed, transformed back.
  void correlate_phases() const {
    const Index size = left_.shape.size();
    fourier(left_.values, of_rows_, cross_, left_.shape, -1);
    fourier(right_.values, of_rows_, other_, right_.shape, -1);
    double largest = 0;
    for (Index k = 0; k < size; ++k) {
      other_[k] *= std::conj(cross_[k]);
      largest = std::max(largest, std::abs(other_[k]));
    }
    for (Index k = 0; k < size && largest > 0; ++k) {
      const double magnitude = std::max(std::abs(other_[k]), 1e-5 * largest);
      other_[k] /= std::pow(magnitude, 1 - problem_.fields.score.exponent);
    }
    fourier(other_, of_rows_, cross_, left_.shape, 1);
  }
  double shifted(Index sy, Index sx) const {
    const Shape shape = left_.shape;
    const Index at = wrapped(0, sy, shape.rows) * shape.cols + wrapped(0, sx, shape.cols);
    return cross_[at].real() / static_cast<double>(shape.size());
  }

  Problem problem_;
  DenseCopy left_, right_;
  Complex *cross_, *other_, *of_rows_;
};

Support supports(const PlanRequest& request) {
  const Problem& q = request.problem;
  if (q.fields.score.kind != ScoreKind::phase || q.left.size() <= kLargestPhase) return yes();
  return no("score phase of more than " + std::to_string(kLargestPhase) +
            " elements a matrix: the transform as it is defined takes too long; use cpu_fft");
}

std::size_t workspace_bytes(const PlanRequest& request) {
  return request.problem.is_plain() ? 0 : FieldsPlan<float>::workspace_bytes(request.problem);
}

std::unique_ptr<Plan> plan(const PlanRequest& request) {
  return request.problem.is_plain() ? device::plan_in_precision<DefinitionPlan>(request)
                                    : device::plan_in_precision<FieldsPlan>(request);
}

XCORR_VARIANT({
    .summary = "The definition: four loops, one thread",
    .parent = "",
    .source = "section 2",
    .precisions = {Precision::fp32, Precision::fp64},
    .boundaries = {Boundary::zero, Boundary::circular},
    .scores = {ScoreKind::product, ScoreKind::covariance, ScoreKind::ncc, ScoreKind::zncc,
               ScoreKind::phase},
    .masks = true,
    .views = {Views::dense, Views::windows, Views::channels},
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .plan = plan,
});

}  // namespace
}  // namespace xcorr::cpu
