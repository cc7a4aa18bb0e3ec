// What tests of variants for templates in frames share.
#pragma once

#include "tests/emulation/conformance.hpp"
#include "tests/emulation/support.hpp"

namespace xcorr::emulation {

// Variants with scores that take valid windows and no others.
inline std::vector<Variant> for_templates() {
  return emulated(
      [](const Variant& v) { return has(v.scores, ScoreKind::zncc) && takes_templates_only(v); });
}

// All points of a variant that take a problem.
inline std::vector<Params> points_that_take(const Variant& v, const Problem& q) {
  if (!has(v.scores, q.fields.score.kind) || !has(v.results, q.fields.result.kind)) return {};
  std::vector<Params> points = emulated_points(v);
  std::erase_if(points, [&](const Params& p) { return !v.supports({q, p}); });
  return points;
}

inline double noise(Index i) { return noise(17, i); }

// Templates and frames of any values, and their scores by the definition.
struct Scene {
  // of_left(element), of_right(row, column, noise of the element).
  template <typename Left, typename Right>
  Scene(const std::string& id, const Left& of_left, const Right& of_right)
      : q(parse_problem(id)), in(q, of_left, [&](Index i) {
          const Index at = i % q.right.size();
          return of_right(at / q.right.cols, at % q.right.cols, noise(7000 + at));
        }) {}
  // zncc of a template of noise in one frame. `shapes`: "6x7/40x41".
  template <typename Right>
  Scene(const std::string& shapes, const Right& of_right)
      : Scene(
            "one-to-one/" + shapes + "/1:1/valid/score=zncc:0.3", [](Index i) { return noise(i); },
            of_right) {}

  // ncc or zncc of an output.
  double score(Index output) const {
    const Pair pair = q.pair(output / q.out_size());
    const Index sy = q.window.sy.first + output % q.out_size() / q.out_cols(),
                sx = q.window.sx.first + output % q.out_cols();
    const float* const left = in.lefts() + pair.left * q.left.size();
    const float* const right = in.rights() + pair.right * q.right.size();
    return normalised_score(
        q.left.size(), q.fields.score.kind == ScoreKind::zncc, [&](const auto& use) {
          each_meeting(q, sy, sx, [&](Index l, Index r) { use(left[l], right[r]); });
        });
  }

  Problem q;
  Operands in;
};

// Each of these tests computes something, or is skipped.
class ForTemplates : public testing::TestWithParam<Variant> {
 protected:
  void TearDown() override {
    if (!IsSkipped()) {
      EXPECT_GT(computations_, 0) << "nothing was computed";
    }
  }
  // Points that take a problem. Of many, which differ in the sizes of tiles alone, some.
  std::vector<Params> points_for(const Problem& q) const {
    const std::vector<Params> points = points_that_take(GetParam(), q);
    constexpr std::size_t kMost = 6;
    if (points.size() <= kMost) return points;
    std::vector<Params> some;
    for (std::size_t i = 0; i < kMost; ++i) some.push_back(points[i * points.size() / kMost]);
    return some;
  }
  // One of all points, in turns over calls.
  std::vector<Params> point_for(const Problem& q) {
    const std::vector<Params> points = points_that_take(GetParam(), q);
    if (points.empty()) return {};
    return {points[turn_++ % points.size()]};
  }
  // Computes twice: the second call finds what the first one has left. Null where a kernel is not in the sample.
  std::unique_ptr<Planned> computed(const Problem& q, const Params& params, const Operands& in) {
    try {
      auto planned = std::make_unique<Planned>(GetParam(), q, params);
      for (int call = 0; call < 2; ++call) planned->compute(in);
      ++computations_;
      return planned;
    } catch (const NotInSample&) {
      return nullptr;
    }
  }
  // Calls use(output, score) for every output of every point, until one call fails.
  template <typename Use>
  void each_score(const Scene& scene, const std::vector<Params>& points, const std::string& what,
                  const Use& use) {
    for (const Params& params : points) {
      const auto got = computed(scene.q, params, scene.in);
      if (!got) continue;
      for (Index i = 0; i < scene.q.out_elements(); ++i) {
        use(i, got->surface()[i]);
        if (!HasFatalFailure()) continue;
        ADD_FAILURE() << scene.q.id() << " " << params.canonical() << " " << what << ", output "
                      << i;
        return;
      }
    }
  }
  // Scores at a point are the same bits for the scenes that scene_of gives for powers of two. The first power is 0.
  template <typename SceneOf>
  void expect_same_bits(const std::vector<int>& powers, const SceneOf& scene_of) {
    for (const Params& params : points_for(scene_of(0).q)) {
      std::vector<float> first;
      for (const int power : powers) {
        const Scene scene = scene_of(power);
        const auto got = computed(scene.q, params, scene.in);
        if (!got) continue;
        const std::vector<float> scores(got->surface(), got->surface() + scene.q.out_elements());
        if (power == 0) first = scores;
        EXPECT_EQ(scores, first) << scene.q.id() << " " << params.canonical() << " 2^" << power;
      }
    }
  }

  int computations_ = 0;

 private:
  std::size_t turn_ = 0;
};

}  // namespace xcorr::emulation
