// Scores of templates in frames that have outliers, fills for missing values, or parts of other brightness: a window is
// judged by its own values alone (docs/design.md, Fields of a problem). By loops in long double.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/emulation/templates.hpp"

namespace xcorr::emulation {
namespace {

using TemplateOutliers = ForTemplates;
// A program for one mutant has the kernels of one variant.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TemplateOutliers);
INSTANTIATE_TEST_SUITE_P(Variants, TemplateOutliers, testing::ValuesIn(for_templates()),
                         [](const auto& info) {
                           return info.param.id.substr(info.param.id.find('.') + 1);
                         });

constexpr double kMost = std::numeric_limits<float>::max();

struct Fill {
  const char* name;
  double value;
  std::function<bool(Index, Index)> is_at;
};
// Of frames of at least 40 x 41.
const std::vector<Fill>& fills() {
  static const std::vector<Fill> all = {
      {"a pixel", 1e11, [](Index y, Index x) { return y == 21 && x == 23; }},
      {"a pixel at the border", 1e38, [](Index y, Index x) { return y == 0 && x == 0; }},
      {"rows", -3.4e38, [](Index y, Index) { return y < 8; }},
      {"rows", 1e20, [](Index y, Index) { return y >= 30; }},
      {"columns", -2147483648.0, [](Index, Index x) { return x < 9; }},
      {"most of the frame", -kMost, [](Index y, Index x) { return y < 22 || x > 32; }},
      {"every second pixel of some rows", kMost, [](Index y, Index x) { return y < 9 && x % 2; }},
  };
  return all;
}

// What lies elsewhere changes no score, and a window that holds extreme values has the score that float64 gives. By
// definition only: a transform spreads its rounding over its tile.
TEST_P(TemplateOutliers, cost_nothing_where_they_are_not) {
  if (!is_definition(GetParam().algorithm_class)) GTEST_SKIP() << "a transform";
  for (const std::string score : {"zncc:0.3", "ncc:0.3"}) {
    if (score[0] == 'n' && !has(GetParam().scores, ScoreKind::ncc)) continue;
    for (const Fill& fill : fills()) {
      for (const std::string shapes : {"6x7/40x41", "17x8/40x50"}) {
        const Index cols = parse_problem("one-to-one/" + shapes + "/1:1/valid").right.cols;
        Scene scene(
            "one-to-one/" + shapes + "/1:1/valid/score=" + score, [](Index i) { return noise(i); },
            [&](Index y, Index x) {
              return fill.is_at(y, x) ? fill.value : 0.25 + noise(7000 + y * cols + x);
            });
        for (const Params& params : points_for(scene.q)) {
          const Computed got(GetParam(), scene.q, params, scene.left.get(), scene.right.get());
          if (!got.done) continue;
          for (Index i = 0; i < scene.q.out_elements(); ++i) {
            ASSERT_NEAR(got.surface()[i], scene.score(i), 1e-5)
                << scene.q.id() << " " << params.canonical() << " " << fill.name << " of "
                << fill.value << ", output " << i;
          }
        }
      }
    }
  }
}

// Of transforms only the tile of an outlier may lose digits.
TEST_P(TemplateOutliers, cost_few_digits_far_away) {
  for (const double value : {1e11, -3.4e38, 1e-38}) {
    for (const std::string shapes : {"6x7/9x400", "17x7/19x400"}) {
      Scene scene(
          "one-to-one/" + shapes + "/1:1/valid/score=zncc:0.3", [](Index i) { return noise(i); },
          [&](Index y, Index x) { return x < 90 ? value : 5 + noise(7000 + y * 400 + x); });
      for (const Params& params : point_for(scene.q)) {
        const Computed got(GetParam(), scene.q, params, scene.left.get(), scene.right.get());
        if (!got.done) continue;
        for (Index i = 0; i < scene.q.out_elements(); ++i) {
          const Index x = i % scene.q.out_cols();
          if (x >= 90 - 7 && x < 90 + 192) continue;
          const double want = x < 90 - 7 ? 0 : scene.score(i);
          ASSERT_NEAR(got.surface()[i], want, want == 0 ? 0 : 2e-5)
              << scene.q.id() << " " << params.canonical() << " fill " << value << ", output " << i;
        }
      }
    }
  }
}

// A transform loses the score of a window that is small beside a fill in its tile, but no score is NaN.
TEST_P(TemplateOutliers, leave_numbers_where_they_are) {
  for (const Fill& fill : fills()) {
    for (const double deviation : {1e-2, 1e-30}) {
      Scene scene(
          "one-to-one/6x7/40x41/1:1/valid/score=zncc:0.3", [](Index i) { return noise(i); },
          [&](Index y, Index x) {
            return fill.is_at(y, x) ? fill.value : deviation * noise(7000 + y * 41 + x);
          });
      for (const Params& params : point_for(scene.q)) {
        const Computed got(GetParam(), scene.q, params, scene.left.get(), scene.right.get());
        if (!got.done) continue;
        for (Index i = 0; i < scene.q.out_elements(); ++i) {
          ASSERT_LE(std::abs(got.surface()[i]), 1)
              << scene.q.id() << " " << params.canonical() << " " << fill.name << " of "
              << fill.value << " beside " << deviation << ", output " << i;
        }
      }
    }
  }
}

// Values of 2^-100 beside values of 2^100: one scale does not serve all tiles of a frame.
TEST_P(TemplateOutliers, parts_of_any_size_have_scores) {
  for (const std::string shapes : {"6x7/9x400", "17x7/19x400"}) {
    for (const int power : {0, -20}) {
      Scene scene(
          "n-to-m/" + shapes + "/2:1/valid/score=zncc:0.3", [](Index i) { return noise(i); },
          [&](Index y, Index x) {
            return std::ldexp(noise(7000 + y * 400 + x), (x < 90 ? 100 : -100) + power);
          });
      for (const Params& params : point_for(scene.q)) {
        const Computed got(GetParam(), scene.q, params, scene.left.get(), scene.right.get());
        if (!got.done) continue;
        const bool definition = is_definition(GetParam().algorithm_class);
        for (Index i = 0; i < scene.q.out_elements(); ++i) {
          const Index x = i % scene.q.out_cols();
          if (!definition && x < 90 + 192) continue;
          ASSERT_NEAR(got.surface()[i], scene.score(i), 1e-5)
              << scene.q.id() << " " << params.canonical() << " 2^" << power << ", output " << i;
        }
      }
    }
  }
}

// Between the limit of constants and ordinary windows a score keeps its digits, in every part of a frame of two
// brightnesses: of definitions 1e-5 whatever the ratio of brightness to noise.
TEST_P(TemplateOutliers, neither_does_a_part_of_another_brightness) {
  if (!is_definition(GetParam().algorithm_class)) GTEST_SKIP() << "a transform";
  for (const double ratio : {1e2, 1e3, 1e4, 1e5, 1e6}) {
    for (const bool bright_first : {true, false}) {
      for (const std::string shapes : {"6x7/40x41", "17x8/40x41"}) {
        Scene scene(
            "one-to-one/" + shapes + "/1:1/valid/score=zncc:0.3", [](Index i) { return noise(i); },
            [&](Index y, Index x) {
              return ((x < 19) == bright_first ? ratio : 0) + 2 * noise(7000 + y * 41 + x);
            });
        for (const Params& params : point_for(scene.q)) {
          const Computed got(GetParam(), scene.q, params, scene.left.get(), scene.right.get());
          if (!got.done) continue;
          for (Index i = 0; i < scene.q.out_elements(); ++i) {
            ASSERT_NEAR(got.surface()[i], scene.score(i), 1e-5)
                << scene.q.id() << " " << params.canonical() << " ratio " << ratio << ", output "
                << i;
          }
        }
      }
    }
  }
}

// Constant windows of any value beside textured ones are 0; windows that vary by a little more than rounding are not.
TEST_P(TemplateOutliers, constant_windows_are_so_by_their_own_values) {
  // 2.4e-7 of the value is half of the limit, 4e-6 eight times.
  struct Part {
    double value, noise;
    bool constant;
  };
  const std::vector<Part> parts = {{0, 0, true},       {255, 0, true},     {0.1, 0, true},
                                   {1e6, 0.125, true}, {1e6, 4, false},    {1e-3, 4e-9, false},
                                   {1, 1e-7, true},    {-1e20, 0, true},   {1e-30, 1e-31, false},
                                   {3e38, 0, true},    {-60000, 1, false}, {0, 1e-20, false}};
  const bool definition = is_definition(GetParam().algorithm_class);
  for (const double offset : {0.0, 100.0, 1e4}) {
    for (const Part& part : parts) {
      for (const std::string shapes : {"5x6/20x300", "17x6/20x300"}) {
        Scene scene(
            "one-to-one/" + shapes + "/1:1/valid/score=zncc:0.3", [](Index i) { return noise(i); },
            [&](Index y, Index x) {
              const double at = noise(7000 + y * 300 + x);
              return x < 30 ? offset + at : part.value + part.noise * at;
            });
        for (const Params& params : point_for(scene.q)) {
          const Computed got(GetParam(), scene.q, params, scene.left.get(), scene.right.get());
          if (!got.done) continue;
          for (Index i = 0; i < scene.q.out_elements(); ++i) {
            const Index x = i % scene.q.out_cols();
            if (x < 30 || (!part.constant && !definition && x < 30 + 192)) continue;
            ASSERT_NEAR(got.surface()[i], part.constant ? 0 : scene.score(i),
                        part.constant ? 0 : 2e-5)
                << scene.q.id() << " " << params.canonical() << " " << part.value << " +- "
                << part.noise << " beside " << offset << ", output " << i;
          }
        }
      }
    }
  }
}

TEST_P(TemplateOutliers, a_power_of_two_changes_no_bit) {
  std::vector<float> first;
  for (const Fill& fill : fills()) {
    if (std::abs(fill.value) > 1e30) continue;
    const std::string id = "one-to-one/6x7/40x41/1:1/valid/score=zncc:0.3";
    for (const Params& params : points_for(parse_problem(id))) {
      for (const int power : {0, 20, -60}) {
        Scene scene(
            id, [&](Index i) { return std::ldexp(noise(i), -power); },
            [&](Index y, Index x) {
              return std::ldexp(fill.is_at(y, x) ? fill.value : noise(7000 + y * 41 + x), power);
            });
        const Computed got(GetParam(), scene.q, params, scene.left.get(), scene.right.get());
        if (!got.done) continue;
        const std::vector<float> scores(got.surface(), got.surface() + scene.q.out_elements());
        if (power == 0) first = scores;
        EXPECT_EQ(scores, first) << id << " " << params.canonical() << " " << fill.value << " 2^"
                                 << power;
      }
    }
  }
}

}  // namespace
}  // namespace xcorr::emulation
