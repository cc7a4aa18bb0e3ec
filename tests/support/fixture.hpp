// Shared by the C++ tests: problems by their id, and a point taken through its whole life.
#pragma once

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "harness/error.hpp"
#include "harness/measure.hpp"

namespace xcorr {

// "n-to-m/3x4/5x6/2:3/full", the inverse of Problem::id.
inline Problem problem_of(std::string_view id) {
  std::vector<std::string> parts(1);
  for (const char c : id) {
    if (c == '/') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  const std::size_t colon = parts.at(3).find(':');
  return make_problem(parse_form(parts[0]), parse_shape(parts[1]), parse_shape(parts[2]),
                      std::stoll(parts[3].substr(0, colon)), std::stoll(parts[3].substr(colon + 1)),
                      parts.at(4));
}

// The message of the UserError that `steps` ends in; "" when there is none.
template <typename F>
std::string user_error(F&& steps) {
  try {
    steps();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

// What the program does with a point: check, time, check again.
inline Outcome live(Point& point, int batches = 30) {
  if (point.prepare() != Outcome::passed) return point.outcome();
  std::vector<Repetition> repetitions;
  for (int i = 0; i < batches && point.outcome() == Outcome::passed; ++i) {
    const Seconds seconds = point.time(point.batch());
    repetitions.push_back({point.batch(), seconds * 1e6 / static_cast<double>(point.batch())});
  }
  point.finish(std::move(repetitions));
  return point.outcome();
}

// Inputs and the true output of one problem, in float.
struct Sample {
  std::vector<float> left, right, out;

  Sample(const Problem& problem, Truth& truth, InputKind kind)
      : left(static_cast<std::size_t>(problem.left_elements())),
        right(static_cast<std::size_t>(problem.right_elements())) {
    truth.fill(kind, left.data(), right.data());
    const std::vector<double> l(left.begin(), left.end()), r(right.begin(), right.end());
    std::vector<double> exact(static_cast<std::size_t>(problem.out_elements()));
    if (problem.fmas() < (Index{1} << 26)) {
      correlate_definition(problem, l.data(), r.data(), 0, problem.pairs(), exact.data());
    } else {
      FftReference(problem, l.data(), r.data()).correlate(0, problem.pairs(), exact.data());
    }
    if (kind == InputKind::integer) {
      for (double& v : exact) v = std::nearbyint(v);
    }
    out.assign(exact.begin(), exact.end());
  }
};

}  // namespace xcorr
