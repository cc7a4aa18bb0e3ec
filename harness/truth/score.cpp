#include "harness/truth/score.hpp"

#include <algorithm>
#include <cmath>

namespace xcorr {
namespace {

MatrixFacts facts_of(const double* values, const std::uint8_t* mask, Index size) {
  double n = 0, first = 0, sum = 0, squares = 0, centred = 0, largest = 0;
  const auto each = [&](auto&& f) {
    for (Index i = 0; i < size; ++i) {
      if (!mask || mask[i]) f(values[i]);
    }
  };
  each([&](double v) {
    if (n == 0) first = v;
    n += 1;
    sum += v - first;
    squares += v * v;
    largest = std::max(largest, std::abs(v));
  });
  const double mean = n > 0 ? sum / n : 0;  // of the deviations from the first
  each([&](double v) { centred += (v - first - mean) * (v - first - mean); });
  return {first + mean, std::sqrt(squares), std::sqrt(centred), largest};
}

std::vector<MatrixFacts> all_facts(const std::vector<double>& stack,
                                   const std::vector<std::uint8_t>& mask, Index size) {
  const Index matrices = static_cast<Index>(stack.size()) / size;
  std::vector<MatrixFacts> facts(matrices);
#pragma omp parallel for schedule(dynamic)
  for (Index i = 0; i < matrices; ++i) {
    facts[i] =
        facts_of(stack.data() + i * size, mask.empty() ? nullptr : mask.data() + i * size, size);
  }
  return facts;
}

}  // namespace

void ScoreInputs::find_facts(const Problem& problem) {
  left_facts = all_facts(left, left_mask, problem.left.size());
  right_facts = all_facts(right, right_mask, problem.right.size());
}

ScorePair ScoreInputs::pair(const Problem& problem, Index p) const {
  const Pair indices = problem.pair(p);
  const Index l = indices.left * problem.left.size(), r = indices.right * problem.right.size();
  return {left.data() + l,
          right.data() + r,
          left_mask.empty() ? nullptr : left_mask.data() + l,
          right_mask.empty() ? nullptr : right_mask.data() + r,
          left_facts[indices.left].mean,
          right_facts[indices.right].mean};
}

void score_definition(const Problem& problem, const ScoreInputs& inputs, Index first, Index count,
                      ScoreElement* out) {
  const Index rows = problem.out_rows(), cols = problem.out_cols(), size = problem.out_size();
#pragma omp parallel for schedule(dynamic)
  for (Index i = 0; i < count * rows; ++i) {
    const ScorePair pair = inputs.pair(problem, first + i / rows);
    for (Index col = 0; col < cols; ++col) {
      out[i * cols + col] = score_element(problem, pair, problem.window.sy.first + i % rows,
                                          problem.window.sx.first + col);
    }
  }
  if (!is_normalised(problem.fields.score.kind)) return;
#pragma omp parallel for
  for (Index i = 0; i < count; ++i) {
    apply_least_overlap(out + i * size, size, problem.fields.score.min_overlap);
  }
}

ScoreElement score_at(const Problem& problem, const ScoreInputs& inputs, Index pair, Index row,
                      Index col, double most) {
  ScoreElement e = score_element(problem, inputs.pair(problem, pair), problem.window.sy.first + row,
                                 problem.window.sx.first + col);
  if (is_normalised(problem.fields.score.kind)) {
    apply_least_overlap(e, problem.fields.score.min_overlap, most);
  }
  return e;
}

}  // namespace xcorr
