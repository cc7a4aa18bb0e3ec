// Scores of templates in frames that have outliers, fills for missing values, or parts of other brightness: a window is
// judged by its own values alone (docs/design.md, Fields of a problem). Expected scores are loops in long double.
#include <functional>

#include "tests/emulation/templates.hpp"

namespace xcorr::emulation {
namespace {

using TemplateOutliers = ForTemplates;
XCORR_TESTS_OF_VARIANTS(TemplateOutliers, for_templates());

constexpr double kMost = std::numeric_limits<float>::max();
// A transform spreads what it meets over its tile; the largest tile has 192 columns.
constexpr Index kTile = 192;

struct Fill {
  std::string name;
  double value;
  std::function<bool(Index, Index)> is_at;
};
// Fills of frames of at least 40 x 41.
const std::vector<Fill> kFills = {
    {"a pixel", 1e11, [](Index y, Index x) { return y == 21 && x == 23; }},
    {"a pixel at the border", 1e38, [](Index y, Index x) { return y == 0 && x == 0; }},
    {"rows", -3.4e38, [](Index y, Index) { return y < 8; }},
    {"rows", 1e20, [](Index y, Index) { return y >= 30; }},
    {"columns", -2147483648.0, [](Index, Index x) { return x < 9; }},
    {"most of the frame", -kMost, [](Index y, Index x) { return y < 22 || x > 32; }},
    {"every second pixel of some rows", kMost, [](Index y, Index x) { return y < 9 && x % 2; }},
};

// Values outside a window do not change its score, and a window that holds extreme values has the score that float64 gives.
// Definitions only: a transform spreads its rounding over its tile.
TEST_P(TemplateOutliers, cost_nothing_where_they_are_not) {
  if (!is_definition(GetParam().algorithm_class)) GTEST_SKIP() << "a transform";
  for (const std::string score : {"zncc:0.3", "ncc:0.3"}) {
    for (const Fill& fill : kFills) {
      for (const std::string shapes : {"6x7/40x41", "17x8/40x50"}) {
        const Scene scene(
            "one-to-one/" + shapes + "/1:1/valid/score=" + score, [](Index i) { return noise(i); },
            [&](Index y, Index x, double n) { return fill.is_at(y, x) ? fill.value : 0.25 + n; });
        each_score(scene, points_for(scene.q), fill.name + " of " + std::to_string(fill.value),
                   [&](Index i, float got) { ASSERT_NEAR(got, scene.score(i), 1e-5); });
      }
    }
  }
}

// A transform may lose digits only in the tile of an outlier.
TEST_P(TemplateOutliers, cost_few_digits_far_away) {
  for (const double value : {1e11, -3.4e38, 1e-38}) {
    for (const std::string shapes : {"6x7/9x400", "17x7/19x400"}) {
      const Scene scene(shapes, [&](Index, Index x, double n) { return x < 90 ? value : 5 + n; });
      each_score(scene, point_for(scene.q), "fill " + std::to_string(value),
                 [&](Index i, float got) {
                   const Index x = i % scene.q.out_cols();
                   if (x >= 90 - 7 && x < 90 + kTile) return;
                   const double want = x < 90 - 7 ? 0 : scene.score(i);
                   ASSERT_NEAR(got, want, want == 0 ? 0 : 2e-5);
                 });
    }
  }
}

// A transform loses the score of a window that is small beside a fill in its tile, but no score is NaN.
TEST_P(TemplateOutliers, leave_numbers_where_they_are) {
  for (const Fill& fill : kFills) {
    for (const double deviation : {1e-2, 1e-30}) {
      const Scene scene("6x7/40x41", [&](Index y, Index x, double n) {
        return fill.is_at(y, x) ? fill.value : deviation * n;
      });
      each_score(scene, point_for(scene.q),
                 fill.name + " of " + std::to_string(fill.value) + " beside a small deviation",
                 [&](Index, float got) { ASSERT_LE(std::abs(got), 1); });
    }
  }
}

// Values of 2^-100 beside values of 2^100: one scale does not serve all tiles of a frame.
TEST_P(TemplateOutliers, parts_of_any_size_have_scores) {
  const bool definition = is_definition(GetParam().algorithm_class);
  for (const std::string shapes : {"6x7/9x400", "17x7/19x400"}) {
    for (const int power : {0, -20}) {
      const Scene scene(
          "n-to-m/" + shapes + "/2:1/valid/score=zncc:0.3", [](Index i) { return noise(i); },
          [&](Index, Index x, double n) { return std::ldexp(n, (x < 90 ? 100 : -100) + power); });
      each_score(scene, point_for(scene.q), "2^" + std::to_string(power), [&](Index i, float got) {
        if (!definition && i % scene.q.out_cols() < 90 + kTile) return;
        ASSERT_NEAR(got, scene.score(i), 1e-5);
      });
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
        const Scene scene(shapes, [&](Index, Index x, double n) {
          return ((x < 19) == bright_first ? ratio : 0) + 2 * n;
        });
        each_score(scene, point_for(scene.q), "ratio " + std::to_string(ratio),
                   [&](Index i, float got) { ASSERT_NEAR(got, scene.score(i), 1e-5); });
      }
    }
  }
}

// Constant windows of any value beside textured ones are 0. Windows that vary by a little more than rounding are not.
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
        const Scene scene(shapes, [&](Index, Index x, double n) {
          return x < 30 ? offset + n : part.value + part.noise * n;
        });
        const std::string what = std::to_string(part.value) + " +- " + std::to_string(part.noise) +
                                 " beside " + std::to_string(offset);
        each_score(scene, point_for(scene.q), what, [&](Index i, float got) {
          const Index x = i % scene.q.out_cols();
          if (x < 30 || (!part.constant && !definition && x < 30 + kTile)) return;
          ASSERT_NEAR(got, part.constant ? 0 : scene.score(i), part.constant ? 0 : 2e-5);
        });
      }
    }
  }
}

TEST_P(TemplateOutliers, a_power_of_two_changes_no_bit) {
  for (const Fill& fill : kFills) {
    if (std::abs(fill.value) > 1e30) continue;
    SCOPED_TRACE(fill.name + " of " + std::to_string(fill.value));
    expect_same_bits({0, 20, -60}, [&](int power) {
      return Scene(
          "one-to-one/6x7/40x41/1:1/valid/score=zncc:0.3",
          [&](Index i) { return std::ldexp(noise(i), -power); },
          [&](Index y, Index x, double n) {
            return std::ldexp(fill.is_at(y, x) ? fill.value : n, power);
          });
    });
  }
}

}  // namespace
}  // namespace xcorr::emulation
