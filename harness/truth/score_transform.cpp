#include "harness/truth/score_transform.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "harness/truth/reference.hpp"
#include "harness/verdict/bounds.hpp"

namespace xcorr {
namespace {

// Which forms of a side the sums need.
struct Forms {
  bool centred, squares, valid;
};

// One side in the forms that the sums need; other forms are empty. Invalid elements are 0 in all of
// them.
struct Stacks {
  std::span<const double> centred;  // the values themselves where nothing is taken away
  std::vector<double> without_means, squares, valid;
  // 1 where a value is not 0, if most values are 0. A window without a 1 is constant and needs no
  // sums.
  std::vector<double> others;
  std::vector<double> squares_norm, valid_norm;  // of each matrix

  Stacks(const std::vector<double>& values, const std::vector<std::uint8_t>& mask,
         const std::vector<MatrixFacts>& facts, Forms forms, Index size)
      : squares(forms.squares ? values.size() : 0), valid(forms.valid ? values.size() : 0) {
    const auto zeros = std::count(values.begin(), values.end(), 0.0);
    if (forms.squares && 2 * static_cast<std::size_t>(zeros) > values.size()) {
      others.resize(values.size());
    }
    squares_norm.resize(facts.size());
    valid_norm.resize(facts.size());
    const bool changes = forms.centred || !mask.empty();
    if (changes) without_means.resize(values.size());
    centred = changes ? without_means : values;
    const auto matrices = static_cast<Index>(facts.size());
#pragma omp parallel for
    for (Index i = 0; i < matrices; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double pivot = forms.centred ? facts[at].mean : 0;
      double fourth = 0, count = 0;
      for (auto j = static_cast<std::size_t>(i * size);
           j < static_cast<std::size_t>((i + 1) * size); ++j) {
        if (!mask.empty() && !mask[j]) continue;
        const double value = values[j] - pivot, square = value * value;
        if (changes) without_means[j] = value;
        if (forms.squares) squares[j] = square;
        if (forms.valid) valid[j] = 1;
        if (!others.empty()) others[j] = values[j] != 0;
        fourth += square * square;
        count += 1;
      }
      squares_norm[at] = std::sqrt(fourth);
      valid_norm[at] = std::sqrt(count);
    }
  }
};

// Sums over rectangles of one matrix.
class Integral {
 public:
  Integral(const double* values, Shape shape)
      : cols_(shape.cols + 1), sums_((shape.rows + 1) * cols_) {
    for (Index y = 0; y < shape.rows; ++y) {
      double row = 0;
      for (Index x = 0; x < shape.cols; ++x) {
        row += values[y * shape.cols + x];
        at(y + 1, x + 1) = at(y, x + 1) + row;
      }
    }
  }
  double sum(Index y, Index rows, Index x, Index cols) const {
    return at(y + rows, x + cols) - at(y, x + cols) - at(y + rows, x) + at(y, x);
  }

 private:
  double& at(Index y, Index x) { return sums_[y * cols_ + x]; }
  double at(Index y, Index x) const { return sums_[y * cols_ + x]; }
  Index cols_;
  std::vector<double> sums_;
};

// The sums of one output besides that of the products.
struct Sums {
  double terms, left, right, left_squares, right_squares;
  double left_others = 1, right_others = 1;  // 0 where a side is constant
};

// A sum of squares that is this small a share of the terms of its difference has lost digits.
constexpr double kFewDigits = 1e-5;

// The largest sum of squares with which a side may be constant, whatever values of its matrix are
// in the overlap.
double largest_constant(const MatrixFacts& facts, double terms) {
  const double step = 8 * 0x1p-24 * facts.largest;
  return 4 * step * step * terms;
}

}  // namespace

struct ScoreTransform::State {
  const Problem problem;
  const ScoreInputs& inputs;
  std::optional<Stacks> left, right;
  std::optional<FftReference> products;
  // With masks: sums of one side where the other is valid.
  std::vector<std::pair<double Sums::*, FftReference>> masked_sums;
  std::vector<double> left_absolute, right_absolute;
  std::optional<FftReference> absolute;

  void plain(Index first, Index count, bool with_absolute, ScoreElement* out);
  void scores(Index first, Index count, ScoreElement* out);
  void unmasked_sums(Index p, Sums* sums) const;
  void finish(Index p, const double* products_of, const Sums* sums, ScoreElement* out) const;
};

ScoreTransform::ScoreTransform(const Problem& problem, const ScoreInputs& inputs)
    : state_(new State{problem, inputs, {}, {}, {}, {}, {}, {}, {}}) {
  State& s = *state_;
  const ScoreKind score = problem.fields.score.kind;
  const bool masked = problem.fields.masks != Masks::none;
  const Forms forms{is_centred(score), is_normalised(score) || masked, masked};
  s.left.emplace(inputs.left, inputs.left_mask, inputs.left_facts, forms, problem.left.size());
  s.right.emplace(inputs.right, inputs.right_mask, inputs.right_facts, forms, problem.right.size());
  const Stacks &l = *s.left, &r = *s.right;
  s.products.emplace(problem, l.centred.data(), r.centred.data());
  if (!masked) return;
  const auto take = [&](double Sums::* sum, std::span<const double> left,
                        std::span<const double> right) {
    if (left.empty() || right.empty()) return;
    s.masked_sums.emplace_back(sum, FftReference(problem, left.data(), right.data()));
  };
  take(&Sums::terms, l.valid, r.valid);
  take(&Sums::left, l.centred, r.valid);
  take(&Sums::right, l.valid, r.centred);
  take(&Sums::left_squares, l.squares, r.valid);
  take(&Sums::right_squares, l.valid, r.squares);
  take(&Sums::left_others, l.others, r.valid);
  take(&Sums::right_others, l.valid, r.others);
}

ScoreTransform::~ScoreTransform() = default;

void ScoreTransform::elements(Index first, Index count, bool absolute, ScoreElement* out) {
  if (is_normalised(state_->problem.fields.score.kind)) {
    state_->scores(first, count, out);
  } else {
    state_->plain(first, count, absolute, out);
  }
}

void ScoreTransform::State::plain(Index first, Index count, bool with_absolute, ScoreElement* out) {
  const Index elements = count * problem.out_size();
  std::vector<double> values(elements);
  products->correlate(first, count, values.data());
#pragma omp parallel for
  for (Index i = 0; i < elements; ++i) {
    out[i] = {};
    out[i].value = values[i];
  }
  if (!with_absolute) return;
  if (!absolute) {
    const auto magnitudes = [](std::span<const double> of) {
      std::vector<double> result(of.begin(), of.end());
      for (double& v : result) v = std::abs(v);
      return result;
    };
    left_absolute = magnitudes(left->centred);
    right_absolute = magnitudes(right->centred);
    absolute.emplace(problem, left_absolute.data(), right_absolute.data());
  }
  absolute->correlate(first, count, values.data());
#pragma omp parallel for
  for (Index i = 0; i < elements; ++i) out[i].absolute = values[i];
}

void ScoreTransform::State::scores(Index first, Index count, ScoreElement* out) {
  const Index size = problem.out_size();
  std::vector<double> of_products(count * size);
  products->correlate(first, count, of_products.data());
  std::vector<Sums> sums(of_products.size());
  if (problem.fields.masks != Masks::none) {
    std::vector<double> values(of_products.size());
    for (const auto& masked : masked_sums) {
      masked.second.correlate(first, count, values.data());
#pragma omp parallel for
      for (Index i = 0; i < count * size; ++i) sums[i].*masked.first = values[i];
    }
#pragma omp parallel for
    for (Index i = 0; i < count * size; ++i) {
      Sums& s = sums[i];
      for (double* const count : {&s.terms, &s.left_others, &s.right_others}) {
        *count = std::nearbyint(*count);
      }
    }
  }
#pragma omp parallel for schedule(dynamic)
  for (Index i = 0; i < count; ++i) {
    if (problem.fields.masks == Masks::none) unmasked_sums(first + i, sums.data() + i * size);
    finish(first + i, of_products.data() + i * size, sums.data() + i * size, out + i * size);
  }
}

void ScoreTransform::State::unmasked_sums(Index p, Sums* sums) const {
  const Pair pair = problem.pair(p);
  const Index l = pair.left * problem.left.size(), r = pair.right * problem.right.size();
  const Integral values_left(left->centred.data() + l, problem.left),
      values_right(right->centred.data() + r, problem.right),
      squares_left(left->squares.data() + l, problem.left),
      squares_right(right->squares.data() + r, problem.right);
  std::optional<Integral> others_left, others_right;
  if (!left->others.empty()) others_left.emplace(left->others.data() + l, problem.left);
  if (!right->others.empty()) others_right.emplace(right->others.data() + r, problem.right);
  for (Index row = 0; row < problem.out_rows(); ++row) {
    const Index sy = problem.window.sy.first + row;
    const Overlap ys = overlap(problem.left.rows, problem.right.rows, sy);
    for (Index col = 0; col < problem.out_cols(); ++col) {
      const Index sx = problem.window.sx.first + col;
      const Overlap xs = overlap(problem.left.cols, problem.right.cols, sx);
      const auto of_left = [&](const Integral& i) {
        return i.sum(ys.first, ys.count, xs.first, xs.count);
      };
      const auto of_right = [&](const Integral& i) {
        return i.sum(ys.first + sy, ys.count, xs.first + sx, xs.count);
      };
      *sums++ = {static_cast<double>(ys.count * xs.count),
                 of_left(values_left),
                 of_right(values_right),
                 of_left(squares_left),
                 of_right(squares_right),
                 others_left ? of_left(*others_left) : 1,
                 others_right ? of_right(*others_right) : 1};
    }
  }
}

void ScoreTransform::State::finish(Index p, const double* of_products, const Sums* sums,
                                   ScoreElement* out) const {
  const Index size = problem.out_size();
  const bool centred = centring(problem.fields.score.kind) == Centring::overlap;
  const Pair pair = problem.pair(p);
  const auto l = static_cast<std::size_t>(pair.left), r = static_cast<std::size_t>(pair.right);
  // A matrix without deviations is constant at every shift.
  const bool constant = left->squares_norm[l] == 0 || right->squares_norm[r] == 0;
  const double left_limit = kFewDigits * left->squares_norm[l] * right->valid_norm[r],
               right_limit = kFewDigits * right->squares_norm[r] * left->valid_norm[l];
  const MatrixFacts &left_facts = inputs.left_facts[l], &right_facts = inputs.right_facts[r];
  const auto norm =
      is_centred(problem.fields.score.kind) ? &MatrixFacts::centred_norm : &MatrixFacts::norm;
  // Of a sum of products of the pair.
  const double error = fft_bound(log2_transform_points(problem), left_facts.*norm,
                                 right_facts.*norm, kDoubleRoundoff);
  double most = 0;
  for (Index e = 0; e < size; ++e) most = std::max(most, sums[e].terms);
  for (Index e = 0; e < size; ++e) {
    const Sums& s = sums[e];
    out[e] = {};
    out[e].terms = s.terms;
    out[e].zero = ZeroRule::zero;
    if (s.terms == 0 || s.terms < problem.fields.score.min_overlap * most || constant) continue;
    if (s.left_others == 0 || s.right_others == 0) {
      out[e].spread = 0;
      continue;
    }
    const double mean_left = centred ? s.left / s.terms : 0;
    const double mean_right = centred ? s.right / s.terms : 0;
    const double left_squares = s.left_squares - mean_left * mean_left * s.terms;
    const double right_squares = s.right_squares - mean_right * mean_right * s.terms;
    const double left_constant = largest_constant(left_facts, s.terms),
                 right_constant = largest_constant(right_facts, s.terms);
    const bool digits = left_squares > std::max(left_limit, left_constant) &&
                        right_squares > std::max(right_limit, right_constant);
    if (digits &&
        error <= kTransformedScoreError * std::sqrt(left_squares) * std::sqrt(right_squares)) {
      out[e] = normalised(of_products[e] - mean_left * mean_right * s.terms, left_squares,
                          right_squares, s.terms, ZeroRule::no, ZeroRule::no);
    } else {
      out[e] = score_at(problem, inputs, p, e / problem.out_cols(), e % problem.out_cols(), most);
    }
  }
}

}  // namespace xcorr
