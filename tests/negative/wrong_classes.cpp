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
Parts parts_of(float v, Precision precision) {
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
}

// Every product in the arithmetic that `parts` gives. The last `lost` terms of each row of left 0 are
// left out.
template <typename F>
void series_sums(const Problem& q, const Call& call, Index lost, F&& parts) {
  std::vector<Parts> left, right;
  for (Index i = 0; i < q.left_elements(); ++i) left.push_back(parts(call.lefts<float>()[i]));
  for (Index i = 0; i < q.right_elements(); ++i) right.push_back(parts(call.rights<float>()[i]));
  each_output(q, call.outs<float>(), [&](float& out, Index p, Index, Index sx) {
    const auto [l, r] = q.pair(p);
    const Index columns = q.left.cols - (l == 0 ? lost : 0);
    float sum = 0;
    for (Index y = 0; y < q.left.rows; ++y) {
      const Parts* a = left.data() + l * q.left.size() + y * q.left.cols;
      const Parts* b = right.data() + r * q.right.size() + y * q.right.cols + sx;
      for (Index x = 0; x < columns; ++x) {
        sum += a[x].first * b[x].first + (a[x].first * b[x].rest + a[x].rest * b[x].first);
      }
    }
    out = sum;
  });
}

struct AsDeclared : Sound {
  using Sound::Sound;
  void compute(const Call& call) override {
    series_sums(problem_, call, 0, [&](float v) { return parts_of(v, request_.precision); });
  }
};

struct LostBlock : Sound {
  using Sound::Sound;
  void compute(const Call& call) override {
    series_sums(problem_, call, 8, [&](float v) { return parts_of(v, request_.precision); });
  }
};

struct Tf32Declared : Sound {
  using Sound::Sound;
  void compute(const Call& call) override {
    series_sums(problem_, call, 0, [](float v) { return parts_of(v, Precision::tf32); });
  }
};

struct Bf16x3Declared : Sound {
  using Sound::Sound;
  void compute(const Call& call) override {
    series_sums(problem_, call, 0, [](float v) { return parts_of(v, Precision::bf16x3); });
  }
};

struct Bf16Declared : Sound {
  using Sound::Sound;
  void compute(const Call& call) override {
    series_sums(problem_, call, 0, [](float v) { return Parts{rounded(v, 8), 0}; });
  }
};

struct Truncated : Sound {
  using Sound::Sound;
  void compute(const Call& call) override {
    series_sums(problem_, call, 0, [](float v) { return Parts{rounded(v, 11, false), 0}; });
  }
};

template <typename Fault>
bool add_class(const char* id, const char* summary, std::vector<Precision> precisions) {
  Variant variant;
  variant.summary = summary;
  variant.precisions = std::move(precisions);
  variant.supports = [](const PlanRequest& request) {
    return request.problem.is_time_series() ? yes() : no("the problem is no time series");
  };
  variant.plan = plan<Fault>;
  return register_variant(std::move(variant), id, "negative", "tests/negative", "0123456789abcdef");
}

const std::vector<Precision> kAll = {Precision::fp32, Precision::three_tf32, Precision::bf16x3,
                                     Precision::tf32, Precision::fp16};
const std::vector<Precision> kGrade = {Precision::fp32, Precision::three_tf32};
const bool kAdded[] = {
    add_class<AsDeclared>("broken_no_class", "the arithmetic that is declared", kAll),
    add_class<LostBlock>("broken_lost_block", "8 samples of one template are left out", kAll),
    add_class<Tf32Declared>("broken_tf32_declared", "tf32 declared as FP32 grade", kGrade),
    add_class<Bf16x3Declared>("broken_bf16x3_declared", "bf16x3 declared as FP32 grade", kGrade),
    add_class<Bf16Declared>("broken_bf16_declared", "bf16 declared as tf32 and fp16",
                            {Precision::tf32, Precision::fp16}),
    add_class<Truncated>("broken_truncated", "inputs are rounded towards zero",
                         {Precision::tf32, Precision::fp16})};

}  // namespace
}  // namespace xcorr::broken
