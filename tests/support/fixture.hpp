// Shared by the C++ tests: the message of an error, and a point taken through its whole life.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "harness/measure/measure.hpp"
#include "harness/problem/error.hpp"
#include "harness/reduce/reduce.hpp"
#include "tests/support/planned.hpp"
#include "tests/support/problems.hpp"

namespace xcorr {

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

inline void expect_says(const std::string& said, const std::string& part) {
  EXPECT_NE(said.find(part), std::string::npos) << "said: '" << said << "', expected: " << part;
}

// A circular problem of rows x cols outputs a pair, whose first shift is (-rows / 2, -cols / 2).
inline Problem circular_problem(Index rows, Index cols, const std::string& result,
                                Index pairs = 1) {
  const std::string shape = std::to_string(rows) + "x" + std::to_string(cols);
  return parse_problem("one-to-many/" + shape + "/" + shape + "/1:" + std::to_string(pairs) +
                       "/full/boundary=circular/result=" + result);
}

// The records to which the host reduces a surface.
template <typename T>
std::vector<char> reduced(const Problem& problem, const std::vector<T>& surface) {
  std::vector<char> out(problem.result_bytes(sizeof(T)), '\x7f');
  reduce_on_cpu(problem, sizeof(T) == 8 ? Precision::fp64 : Precision::fp32, surface.data(),
                nullptr, out.data());
  return out;
}

// One CPU for all tests of a program.
inline Device& cpu() {
  static const std::unique_ptr<Device> device = open_cpu();
  return *device;
}

// What the program does with a point: check, time, check again.
inline Outcome live(Point& point, int batches = 30) {
  if (point.prepare() != Outcome::passed) return point.outcome();
  std::vector<Repetition> repetitions;
  for (int i = 0; i < batches && point.outcome() == Outcome::passed; ++i) {
    const Timed timed = point.time(point.batch());
    repetitions.push_back(
        {point.batch(), timed.seconds * 1e6 / static_cast<double>(point.batch()), timed.sm_mhz});
  }
  point.finish(std::move(repetitions));
  return point.outcome();
}

// What a variant makes of inputs of a kind, judged by the truth, in numbers of type T.
template <typename T = float>
class Trial {
 public:
  Trial(const char* id, const Problem& q,
        Precision precision = sizeof(T) == 8 ? Precision::fp64 : Precision::fp32)
      : truth(q, precision, find_variant(id).algorithm_class, 1, std::size_t{1} << 30),
        left_(q.left_elements()),
        right_(q.right_elements()),
        planned_(find_variant(id), q, grid_points(find_variant(id)).front(), precision) {}

  // `spoil` changes the left that the variant gets.
  template <typename F>
  Check check(InputKind kind, F&& spoil) {
    truth.fill(kind, left_.data(), right_.data());
    spoil(left_);
    return truth.check(kind, planned_.compute({left_.data(), right_.data()}));
  }
  Check check(InputKind kind) {
    return check(kind, [](std::vector<T>&) {});
  }

  HostTruth truth;

 private:
  std::vector<T> left_, right_;
  Planned planned_;
};

// Inputs and the true output of one problem, in float.
struct Sample {
  std::vector<float> left, right, out;

  Sample(const Problem& problem, Truth& truth, InputKind kind)
      : left(problem.left_elements()), right(problem.right_elements()) {
    truth.fill(kind, left.data(), right.data());
    const std::vector<double> l(left.begin(), left.end()), r(right.begin(), right.end());
    std::vector<double> exact(problem.out_elements());
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
