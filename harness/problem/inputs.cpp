#include "harness/problem/inputs.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "harness/problem/error.hpp"

namespace xcorr {
namespace {

// In the order of InputKind.
constexpr std::string_view kNames[] = {"uniform",  "zero-mean", "integer", "flat-spectrum",
                                       "sparse",   "offset",    "outlier", "alternating",
                                       "constant", "subnormal", "drift",   "fill",
                                       "bimodal",  "contrast",  "unequal", "blank"};
static_assert(std::size(kNames) == std::size(kInputKinds));

// Positions of the left axis that meet the right axis at some shift of the window.
void hot_range(Index left, Index right, Shifts shifts, Index& first, Index& count) {
  first = std::max<Index>(0, -shifts.last);
  count = std::min(left - 1, right - 1 - shifts.first) - first + 1;
}

}  // namespace

Index integer_amplitude(Index largest_overlap) {
  const double k = static_cast<double>(largest_overlap);
  return std::max<Index>(1, static_cast<Index>(std::floor(std::sqrt(0x1p24 / k))));
}

Index sparse_rounds(const Problem& problem, Index limit) {
  const Index rows = std::min(problem.left.rows, problem.right.rows);
  const Index cols = std::min(problem.left.cols, problem.right.cols);
  const auto most = [&](Index rounds) {  // elements of an overlap that a round uses
    return std::min((rows + rounds - 1) / rounds * cols, rows * ((cols + rounds - 1) / rounds));
  };
  Index rounds = 1;
  // The largest overlap of the window may be smaller than that of the shapes.
  if (problem.max_overlap() <= limit) return rounds;
  while (most(rounds) > limit) ++rounds;
  return rounds;
}

Inputs make_inputs(const Problem& problem, InputKind kind, std::uint64_t seed, Side side,
                   Index amplitude, Index round) {
  // One array takes its values from the side that is not nearly all zeros.
  if (problem.fields.same) {
    const bool of_right = kind == InputKind::flat_spectrum || kind == InputKind::subnormal ||
                          kind == InputKind::fill || kind == InputKind::bimodal;
    side = of_right ? Side::right : Side::left;
  }
  Inputs inputs{kind, seed, side, amplitude};
  inputs.shape = side == Side::left ? problem.left : problem.right;
  inputs.round = round;
  inputs.rounds = sparse_rounds(problem);
  // Scores stay finite with fill values for which sums of products would overflow.
  if (is_normalised(problem.fields.score.kind)) inputs.largest_fill = 0x1.fffffep127;
  hot_range(problem.left.rows, problem.right.rows, problem.window.sy, inputs.hot_row,
            inputs.hot_rows);
  hot_range(problem.left.cols, problem.right.cols, problem.window.sx, inputs.hot_col,
            inputs.hot_cols);
  return inputs;
}

std::string_view to_string(InputKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

InputKind parse_input_kind(std::string_view text) {
  std::string names;
  for (const InputKind kind : kInputKinds) {
    if (to_string(kind) == text) return kind;
    names += (names.empty() ? "" : ", ") + std::string(to_string(kind));
  }
  refuse("input", text, "unknown; use one of " + names);
}

}  // namespace xcorr
