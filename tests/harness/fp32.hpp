// Outputs of every score as an honest computation in float32 gives them: means and norms in float64,
// products of centred elements summed, or transformed, in float32. A score knows no scale: its sides are
// scaled by powers of two first, of an overlap by its norm, of a transform by the largest value.
#pragma once

#include <fftw3.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <vector>

#include "harness/truth/field_truth.hpp"
#include "harness/truth/reference.hpp"
#include "tests/support/problems.hpp"

namespace xcorr::fp32 {

using Complex = std::complex<float>;

// A transform of rows x cols in float32.
class Transform {
 public:
  Transform(Index rows, Index cols) : data_(rows * cols) {
    auto* data = reinterpret_cast<fftwf_complex*>(data_.data());
    const auto r = static_cast<int>(rows), c = static_cast<int>(cols);
    forward_ = fftwf_plan_dft_2d(r, c, data, data, FFTW_FORWARD, FFTW_ESTIMATE);
    back_ = fftwf_plan_dft_2d(r, c, data, data, FFTW_BACKWARD, FFTW_ESTIMATE);
  }
  ~Transform() {
    fftwf_destroy_plan(forward_);
    fftwf_destroy_plan(back_);
  }
  Transform(const Transform&) = delete;
  Transform& operator=(const Transform&) = delete;

  std::vector<Complex> run(std::vector<Complex> values, bool forward) {
    std::copy(values.begin(), values.end(), data_.begin());
    fftwf_execute(forward ? forward_ : back_);
    return data_;
  }

 private:
  std::vector<Complex> data_;
  fftwf_plan forward_, back_;
};

inline double power_of_two_below(double size) {
  return size > 0 ? std::ldexp(1.0, std::ilogb(size)) : 1.0;
}

// The valid elements of a matrix without its mean where the score is centred, over `scale`; 0 for the
// others.
inline std::vector<float> centred(const Problem& q, const double* values, const std::uint8_t* mask,
                                  double mean, Shape shape, double scale) {
  if (!is_centred(q.fields.score.kind)) mean = 0;
  std::vector<float> result(shape.size());
  for (Index i = 0; i < shape.size(); ++i) {
    if (!mask || mask[i]) result[i] = static_cast<float>((values[i] - mean) / scale);
  }
  return result;
}

inline double norm(const std::vector<float>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

// What the sides of one sum or pair were divided by.
struct Scales {
  double left = 1, right = 1;
};

// One pair by transforms: the whole correlation of the centred matrices.
inline std::vector<float> by_transform(const Problem& q, const ScorePair& m, Scales scales) {
  const bool wraps = q.fields.boundary == Boundary::circular;
  const Index rows = wraps ? q.left.rows : reference_length(q.left.rows + q.right.rows - 1);
  const Index cols = wraps ? q.left.cols : reference_length(q.left.cols + q.right.cols - 1);
  Transform transform(rows, cols);
  const auto spectrum = [&](const std::vector<float>& matrix, Shape shape) {
    std::vector<Complex> padded(rows * cols);
    for (Index y = 0; y < shape.rows; ++y) {
      for (Index x = 0; x < shape.cols; ++x) {
        padded[y * cols + x] = matrix[y * shape.cols + x];
      }
    }
    return transform.run(std::move(padded), true);
  };
  const auto left = centred(q, m.left, m.left_mask, m.left_mean, q.left, scales.left);
  const auto right = centred(q, m.right, m.right_mask, m.right_mean, q.right, scales.right);
  const auto l = spectrum(left, q.left);
  auto x = spectrum(right, q.right);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] *= std::conj(l[i]);
  if (q.fields.score.kind == ScoreKind::phase) {
    const auto p = static_cast<float>(q.fields.score.exponent);
    const auto floor = static_cast<float>(phase_floor(static_cast<double>(rows * cols)) *
                                          norm(left) * norm(right));
    x[0] = 0;
    for (Complex& v : x) v = floor == 0 ? 0 : v / std::pow(std::max(std::abs(v), floor), 1 - p);
  }
  x = transform.run(std::move(x), false);
  std::vector<float> out;
  each_shift(q, [&](Index sy, Index sx) {
    const Complex v = x[wrapped(0, sy, rows) * cols + wrapped(0, sx, cols)];
    out.push_back(v.real() / static_cast<float>(rows * cols));
  });
  return out;
}

// Sums of ncc and zncc are made in parts of so many products, as variants make them.
constexpr int kPart = 256;

// One sum of products in float32, about the means of the overlap for zncc.
inline float by_sums(const Problem& q, const ScorePair& m, Index sy, Index sx, Scales scales) {
  const ScoreKind kind = q.fields.score.kind;
  double n = 0, left_first = 0, right_first = 0, left = 0, right = 0;
  each_product(q, m, sy, sx, [&](double l, double r) {
    if (n == 0) left_first = l, right_first = r;
    n += 1;
    left += l - left_first;
    right += r - right_first;
  });
  double left_mean = 0, right_mean = 0;
  if (kind == ScoreKind::zncc)
    left_mean = left_first + left / n, right_mean = right_first + right / n;
  if (kind == ScoreKind::covariance) left_mean = m.left_mean, right_mean = m.right_mean;
  float sum = 0, part = 0;
  int products = 0;
  each_product(q, m, sy, sx, [&](double l, double r) {
    part += static_cast<float>((l - left_mean) / scales.left) *
            static_cast<float>((r - right_mean) / scales.right);
    if (!is_normalised(kind) || ++products % kPart != 0) return;
    sum += part;
    part = 0;
  });
  return sum + part;
}

// All outputs of a problem.
inline std::vector<float> outputs(const Problem& q, const ScoreInputs& inputs, bool transform) {
  std::vector<float> out;
  for (Index p = 0; p < q.pairs(); ++p) {
    const ScorePair m = inputs.pair(q, p);
    const bool score = is_normalised(q.fields.score.kind);
    const Pair of = q.pair(p);
    Scales scales;
    if (score) {
      scales.left = power_of_two_below(inputs.left_facts[of.left].largest);
      scales.right = power_of_two_below(inputs.right_facts[of.right].largest);
    }
    const std::vector<float> all = transform ? by_transform(q, m, scales) : std::vector<float>{};
    std::vector<ScoreElement> elements(q.out_size());
    if (score) score_definition(q, inputs, p, 1, elements.data());
    for (Index e = 0; e < q.out_size(); ++e) {
      const Index sy = q.window.sy.first + e / q.out_cols(),
                  sx = q.window.sx.first + e % q.out_cols();
      const ScoreElement& element = elements[e];
      double value = 0;
      if (!transform) {
        if (score) {
          scales = {power_of_two_below(std::sqrt(element.left_squares)),
                    power_of_two_below(std::sqrt(element.right_squares))};
        }
        value = element.zero == ZeroRule::zero
                    ? 0
                    : scales.left * scales.right * by_sums(q, m, sy, sx, scales);
      } else {
        value = scales.left * scales.right * all[e];
        if (q.fields.score.kind ==
            ScoreKind::zncc) {  // from the mean of the matrix to the overlap's
          double n = 0, left = 0, right = 0;
          each_product(q, m, sy, sx, [&](double l, double r) {
            n += 1;
            left += l - m.left_mean;
            right += r - m.right_mean;
          });
          if (n > 0) value -= left * right / n;
        }
      }
      if (score) value = std::clamp(value * element.scale, -1.0, 1.0);
      out.push_back(static_cast<float>(value));
    }
  }
  return out;
}

}  // namespace xcorr::fp32
