// Faults of precision classes: products of time series in the arithmetic of each class, and in that
// of a class with fewer digits than the one that is declared.
#include <cmath>
#include <utility>

#include "tests/negative/broken.hpp"

namespace xcorr::broken {
namespace {

// To so many significant bits, to nearest or towards zero.
float rounded(float v, int bits, bool nearest = true) {
  int exponent = 0;
  const float scaled = std::ldexp(std::frexp(v, &exponent), bits);
  return std::ldexp(nearest ? std::nearbyint(scaled) : std::trunc(scaled), exponent - bits);
}

// A number as the sum of one part or two.
struct Parts {
  float first, rest;
};
constexpr auto parts_of = [](float v, Precision precision) -> Parts {
  const auto split = [&](int bits) {
    const float first = rounded(v, bits);
    return Parts{first, rounded(v - first, bits)};
  };
  switch (precision) {
    case Precision::tf32:
    case Precision::fp16:
      return {rounded(v, 11), 0};
    case Precision::three_tf32:
      return split(11);
    case Precision::bf16x3:
      return split(8);
    default:
      return {v, 0};
  }
};

// Every product in the arithmetic that `parts` gives. The last `lost` terms of each row of left 0 are
// left out.
template <typename F>
void series_sums(const Problem& q, const Call& call, Index lost, F&& parts) {
  std::vector<Parts> left, right;
  for (Index i = 0; i < q.left_elements(); ++i) left.push_back(parts(call.lefts<float>()[i]));
  for (Index i = 0; i < q.right_elements(); ++i) right.push_back(parts(call.rights<float>()[i]));
  each_output(q, [&](Index i, Pair pair, Index sy, Index sx) {
    const Index columns = q.left.cols - (pair.left == 0 ? lost : 0);
    float sum = 0;
    each_meeting(q, sy, sx, [&](Index l, Index r) {
      const Parts a = left[pair.left * q.left.size() + l],
                  b = right[pair.right * q.right.size() + r];
      if (l % q.left.cols >= columns) return;
      sum += a.first * b.first + (a.first * b.rest + a.rest * b.first);
    });
    call.outs<float>()[i] = sum;
  });
}

// Each number has the parts F(number, precision of the request).
template <Index kLost = 0, typename F>
bool add_class(const char* id, const char* summary, std::vector<Precision> precisions, F) {
  struct Computes : Sound {
    using Sound::Sound;
    void compute(const Call& call) override {
      series_sums(problem_, call, kLost, [&](float v) { return F{}(v, request_.precision); });
    }
  };
  Variant variant;
  variant.precisions = std::move(precisions);
  variant.supports = [](const PlanRequest& request) {
    return request.problem.is_time_series() ? yes() : no("the problem is no time series");
  };
  return add_variant(id, summary, make_plan<Computes>, std::move(variant));
}

const std::vector<Precision> kAll = {Precision::fp32, Precision::three_tf32, Precision::bf16x3,
                                     Precision::tf32, Precision::fp16};
const std::vector<Precision> kGrade = {Precision::fp32, Precision::three_tf32};
const std::vector<Precision> kNarrow = {Precision::tf32, Precision::fp16};
const bool kAdded[] = {
    add_class("broken_no_class", "the arithmetic that is declared", kAll, parts_of),
    add_class<8>("broken_lost_block", "8 samples of one template are left out", kAll, parts_of),
    add_class("broken_tf32_declared", "tf32 declared as FP32 grade", kGrade,
              [](float v, Precision) { return parts_of(v, Precision::tf32); }),
    add_class("broken_bf16x3_declared", "bf16x3 declared as FP32 grade", kGrade,
              [](float v, Precision) { return parts_of(v, Precision::bf16x3); }),
    add_class("broken_bf16_declared", "bf16 declared as tf32 and fp16", kNarrow,
              [](float v, Precision) { return Parts{rounded(v, 8), 0}; }),
    add_class("broken_truncated", "inputs are rounded towards zero", kNarrow,
              [](float v, Precision) { return Parts{rounded(v, 11, false), 0}; })};

}  // namespace
}  // namespace xcorr::broken
