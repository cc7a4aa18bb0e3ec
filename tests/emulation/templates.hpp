// What tests of variants for templates in frames ask of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/problem/inputs.hpp"
#include "harness/problem/results.hpp"
#include "harness/registry.hpp"
#include "tests/emulation/conformance.hpp"
#include "tests/emulation/emulation.hpp"
#include "tests/emulation/global_memory.hpp"
#include "tests/emulation/sample.hpp"

namespace xcorr::emulation {

template <typename T>
bool has(const std::vector<T>& list, T value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// Variants with scores that take valid windows and no others.
inline std::vector<Variant> for_templates() {
  std::vector<Variant> found;
  for (const Variant& v : variants()) {
    if (v.source_hash != "emulated" || !has(v.scores, ScoreKind::zncc)) continue;
    if (takes_templates_only(v)) found.push_back(v);
  }
  return found;
}

// All points of a variant that take a problem.
inline std::vector<Params> points_that_take(const Variant& v, const Problem& q) {
  if (!has(v.scores, q.fields.score.kind) || !has(v.results, q.fields.result.kind)) return {};
  std::vector<Params> points = emulated_points(v);
  std::erase_if(points, [&](const Params& p) { return !v.supports({q, p}); });
  return points;
}

inline std::size_t floats(Index elements) {
  return static_cast<std::size_t>(elements) * sizeof(float);
}

// What was computed since the process started.
inline std::uint64_t computations = 0;

// Each of these tests computes something, or is skipped.
class ForTemplates : public testing::TestWithParam<Variant> {
 protected:
  void TearDown() override {
    if (!IsSkipped()) {
      EXPECT_GT(computations, before_) << "nothing was computed";
    }
  }
  // Points that take a problem; of many, which differ in the sizes of tiles alone, some.
  std::vector<Params> points_for(const Problem& q) const {
    const std::vector<Params> points = points_that_take(GetParam(), q);
    constexpr std::size_t kMost = 6;
    if (points.size() <= kMost) return points;
    std::vector<Params> some;
    for (std::size_t i = 0; i < kMost; ++i) some.push_back(points[i * points.size() / kMost]);
    return some;
  }
  // Of all points one each time, in turns over calls.
  std::vector<Params> point_for(const Problem& q) {
    const std::vector<Params> points = points_that_take(GetParam(), q);
    if (points.empty()) return {};
    return {points[turn_++ % points.size()]};
  }

 private:
  std::size_t turn_ = 0;
  std::uint64_t before_ = computations;
};
// One computation of a problem; false where its kernel is not in the sample.
struct Computed {
  Computed(const Variant& variant, const Problem& problem, const Params& params, const void* left,
           const void* right, std::uint64_t order = 1) {
    PlanRequest request{problem, params, Precision::fp32};
    workspace = std::make_unique<GlobalMemory>(variant.workspace_bytes(request));
    out = std::make_unique<GlobalMemory>(
        static_cast<std::size_t>(problem.result_bytes(sizeof(float))));
    request.workspace = workspace->get();
    try {
      set_order(order);
      const std::unique_ptr<Plan> plan = variant.plan(request);
      // The second call finds what the first one has left.
      for (const int call : {1, 2}) {
        out->poison();
        set_order(order + static_cast<std::uint64_t>(call));
        plan->compute({left, right, out->get()});
      }
      done = true;
      ++computations;
    } catch (const NotInSample&) {
    }
  }
  const float* surface() const { return out->get<float>(); }
  const Peak* peaks() const { return reinterpret_cast<const Peak*>(out->get<float>()); }
  std::unique_ptr<GlobalMemory> workspace, out;
  bool done = false;
};

inline double noise(Index i) {
  return static_cast<double>(mix(17 ^ static_cast<std::uint64_t>(i)) >> 40) * 0x1p-23 - 1;
}

// Templates and frames of any values, and their scores by the definition.
struct Scene {
  Scene(const std::string& id, const std::function<double(Index)>& of_left,
        const std::function<double(Index, Index)>& of_right)
      : q(parse_problem(id)), left(floats(q.left_elements())), right(floats(q.right_elements())) {
    for (Index i = 0; i < q.left_elements(); ++i) {
      left.get<float>()[i] = static_cast<float>(of_left(i));
    }
    for (Index i = 0; i < q.right_elements(); ++i) {
      const Index at = i % q.right.size();
      right.get<float>()[i] = static_cast<float>(of_right(at / q.right.cols, at % q.right.cols));
    }
  }
  // Calls use(l, r) for the products of an output.
  template <typename Use>
  void each(Index output, const Use& use) const {
    const Pair pair = q.pair(output / q.out_size());
    const Index sy = q.window.sy.first + output % q.out_size() / q.out_cols(),
                sx = q.window.sx.first + output % q.out_cols();
    const float* const l = static_cast<const float*>(left.get()) + pair.left * q.left.size();
    const float* const r = static_cast<const float*>(right.get()) + pair.right * q.right.size();
    for (Index y = 0; y < q.left.rows; ++y) {
      for (Index x = 0; x < q.left.cols; ++x) {
        use(static_cast<long double>(l[y * q.left.cols + x]),
            static_cast<long double>(r[(y + sy) * q.right.cols + x + sx]));
      }
    }
  }
  // ncc or zncc.
  double score(Index output) const {
    const auto n = static_cast<long double>(q.left.size());
    long double l = 0, r = 0, products = 0, ll = 0, rr = 0;
    if (q.fields.score.kind == ScoreKind::zncc) {
      each(output, [&](long double a, long double b) { l += a, r += b; });
    }
    each(output, [&](long double a, long double b) {
      a -= l / n, b -= r / n;
      products += a * b, ll += a * a, rr += b * b;
    });
    return rr == 0 || ll == 0 ? 0 : static_cast<double>(products / std::sqrt(ll * rr));
  }
  Problem q;
  GlobalMemory left, right;
};

}  // namespace xcorr::emulation
