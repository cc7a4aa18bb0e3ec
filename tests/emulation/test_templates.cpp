// Scores and peaks of the emulated variants for templates in frames: by the verdict of the harness, by its reduction of
// the variant's surface, and by loops in long double for inputs that float32 sums or differences of large sums get wrong.
#include <functional>

#include "tests/emulation/templates.hpp"

namespace xcorr::emulation {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// A transform spreads what it meets over its tile; the largest tile has 192 columns.
constexpr Index kTile = 192;

class Templates : public ForTemplates {
 protected:
  // Computes twice for each kind: the second call finds what the first one has left.
  void expect_right(const Problem& q, const Params& params, std::uint64_t seed,
                    const std::vector<InputKind>& kinds) {
    std::vector<InputKind> twice;
    for (const InputKind kind : kinds) twice.insert(twice.end(), 2, kind);
    try {
      expect_verdicts(GetParam(), q, params, twice, seed);
      ++computations_;
    } catch (const NotInSample&) {
    }
  }
};
XCORR_TESTS_OF_VARIANTS(Templates, for_templates());

TEST_P(Templates, are_right_by_the_verdict) {
  constexpr InputKind kKinds[] = {InputKind::integer,  InputKind::offset,  InputKind::outlier,
                                  InputKind::constant, InputKind::uniform, InputKind::alternating,
                                  InputKind::fill,     InputKind::bimodal, InputKind::contrast,
                                  InputKind::unequal,  InputKind::blank};
  std::size_t turn = 0;
  for (const std::string shapes :
       {"n-to-m/1x1/3x4/2:2/valid", "n-to-m/5x7/19x33/3:2/valid", "n-to-mn/4x5/12x40/2:4/valid",
        "one-to-many/18x17/36x56/1:2/valid", "one-to-many/3x20/9x90/1:2/sy:1..5,sx:2..69",
        "n-to-m/9x3/70x12/2:1/valid", "n-to-m/50x9/97x24/2:2/sy:5..44,sx:1..12",
        "n-to-m/5x40/13x75/2:1/valid", "one-to-one/20x35/24x99/1:1/valid"}) {
    for (const std::string fields :
         {"/score=zncc:0.3", "/score=zncc:0.3/result=peak", "/score=ncc:0.3",
          "/score=covariance/result=peak:gaussian", "/score=covariance", "/result=peak",
          "/score=ncc:1/result=peak:gaussian"}) {
      // Half of the scores and results for each shape; all of them for the one shape of n-to-mn.
      if (turn++ % 2 == 1 && shapes.find("n-to-mn") == std::string::npos) continue;
      const Problem q = parse_problem(shapes + fields);
      for (const Params& params : point_for(q)) {
        expect_right(q, params, 1, {InputKind::zero_mean, kKinds[turn / 2 % std::size(kKinds)]});
      }
    }
  }
}

// More templates, frames and pairs than a launch has blocks: a block takes several. The limits of these launches are
// small under emulation.
TEST_P(Templates, many_templates_and_frames_are_taken_in_turns) {
  for (const Problem& q : problems_of({"n-to-m/3x4/9x11/7:7/valid/score=zncc:0.3/result=peak",
                                       "n-to-mn/3x4/9x11/7:7/valid/score=zncc:0.3/result=peak",
                                       "n-to-mn/3x4/9x11/7:7/valid/score=zncc:0.3"})) {
    for (const Params& params : points_for(q)) expect_right(q, params, 1, {InputKind::zero_mean});
  }
}

// Products that are all alike round in one direction: a long sum in one register would lose too much.
TEST_P(Templates, ncc_of_constants_keeps_its_digits) {
  const Variant& v = GetParam();
  if (!has(v.scores, ScoreKind::ncc)) GTEST_SKIP() << "no ncc";
  // So many shifts that a thread has all products of its part.
  for (const Problem& q :
       problems_of({"one-to-one/8x8/75x72", "one-to-one/16x16/83x80", "one-to-one/24x40/88x104"},
                   {"/1:1/valid/score=ncc:0.3"})) {
    for (const Params& params : points_that_take(v, q)) {
      for (const std::uint64_t seed : {1, 2}) expect_right(q, params, seed, {InputKind::constant});
    }
  }
}

// An offset that is ten thousand times the noise costs no more than 1e-4; neither does a ramp.
TEST_P(Templates, offsets_and_ramps_cost_no_digits) {
  for (const double ramp : {0, 20}) {
    for (const std::string shapes : {"12x11/24x31", "17x11/25x31"}) {
      const Scene scene(
          "n-to-m/" + shapes + "/2:1/valid/score=zncc:0.3", [](Index i) { return 1e4 + noise(i); },
          [&](Index y, Index x, double n) { return 1e4 + ramp * static_cast<double>(y + x) + n; });
      each_score(scene, points_for(scene.q), "ramp " + std::to_string(ramp),
                 [&](Index i, float got) { ASSERT_NEAR(got, scene.score(i), 1e-4); });
    }
  }
}

// Definitions only: a transform spreads the outlier over its tile.
TEST_P(Templates, an_outlier_costs_digits_only_where_it_is) {
  if (!is_definition(GetParam().algorithm_class)) GTEST_SKIP() << "a transform";
  for (const std::string shapes : {"6x7/40x41", "16x7/40x41"}) {
    const Scene scene(shapes,
                      [](Index y, Index x, double n) { return y == 21 && x == 23 ? 1e6 : n; });
    each_score(scene, points_for(scene.q), "",
               [&](Index i, float got) { ASSERT_NEAR(got, scene.score(i), 3e-5); });
  }
}

// An infinity spoils what is near it, and with transforms its tile. What is known of the frame as a whole stays right.
TEST_P(Templates, an_infinity_spoils_nothing_far_away) {
  for (const std::string shapes : {"6x7/12x260", "17x7/20x260"}) {
    const Scene scene(shapes, [&](Index y, Index x, double n) {
      return y == 0 && x == 0 ? kInfinity : x > 240 ? 100 : 100 + n;
    });
    for (const Params& params : points_for(scene.q)) {
      const Index of_tile = params.has("tile") ? params.get_int("tile") : kTile;
      each_score(scene, {params}, "", [&](Index i, float got) {
        const Index sx = i % scene.q.out_cols();
        if (sx < of_tile) return;
        const double want = sx > 240 ? 0 : scene.score(i);
        ASSERT_NEAR(got, want, want == 0 ? 0 : 1e-4);
      });
    }
  }
}

// Columns of very large values, or of infinities, cost few digits elsewhere, whether a kernel goes by the frame's mean
// or by the median of nine values in three columns.
TEST_P(Templates, columns_of_outliers_spoil_nothing_far_away) {
  // The value, and the last of the columns 100, 300, 500 that has it.
  for (const auto& [value, last] : {std::pair{1e7, Index{100}}, {kInfinity, 300}}) {
    for (const std::string shapes : {"6x7/12x600", "17x7/19x600"}) {
      const Scene scene(shapes, [&](Index, Index x, double n) {
        return x % 200 == 100 && x <= last ? value : 5 + n;
      });
      each_score(scene, points_for(scene.q), "columns of " + std::to_string(value),
                 [&](Index i, float got) {
                   if (i % scene.q.out_cols() < last + kTile) return;
                   ASSERT_NEAR(got, scene.score(i), 1e-3);
                 });
    }
  }
}

TEST_P(Templates, a_power_of_two_changes_no_bit) {
  for (const std::string score : {"zncc:0.3", "ncc:0.3"}) {
    for (const std::string shapes : {"9x8/20x27", "18x8/25x27"}) {
      expect_same_bits({0, 60, -60, 100, -90}, [&](int power) {
        return Scene(
            "n-to-m/" + shapes + "/2:1/valid/score=" + score,
            [&](Index i) { return std::ldexp(noise(i) + 2, power); },
            [&](Index, Index, double n) { return std::ldexp(n + 3, -power / 2); });
      });
    }
  }
}

// Constant parts of a frame, and of all of a template, have scores of 0.
TEST_P(Templates, what_is_constant_correlates_with_nothing) {
  // The error of a transform grows with the jump in its tile.
  const double limit = is_definition(GetParam().algorithm_class) ? 1e-4 : 3e-4;
  for (const Index rows : {5, 17}) {
    const Index first = rows + 7, last = first + rows + 3;
    const Scene scene(
        "n-to-m/" + std::to_string(rows) + "x6/" + std::to_string(last + 10) +
            "x33/2:1/valid/score=zncc:0.3",
        [=](Index i) { return i < 6 * rows ? noise(i) : 0.1; },  // the second template is constant
        [=](Index y, Index, double n) { return y < first  ? 0.1
                                               : y < last ? 1000.1
                                                          : 1000 + n; });
    each_score(scene, points_for(scene.q), "", [&](Index i, float got) {
      const Index y = i % scene.q.out_size() / scene.q.out_cols();
      const bool constant =
          i >= scene.q.out_size() || y + rows <= first || (y >= first && y + rows <= last);
      ASSERT_NEAR(got, constant ? 0 : scene.score(i), constant ? 0 : limit);
    });
  }
}

// A window is constant where it differs by no more than rounding, relative to its distance from the mean of the frame.
TEST_P(Templates, what_differs_by_rounding_is_constant) {
  for (const std::string shapes : {"5x6/30x33", "17x6/30x33"}) {
    const Scene scene(shapes, [](Index y, Index x, double n) {
      return y < 24 ? 1000 + static_cast<double>((y + x) % 2) * 0x1p-14 : n;
    });
    each_score(scene, points_for(scene.q), "", [&](Index i, float got) {
      if (i / scene.q.out_cols() + scene.q.left.rows > 24) return;
      ASSERT_EQ(got, 0.0f);
    });
  }
}

// The same where a window has many elements, whose sum float32 would round in one direction.
TEST_P(Templates, large_constant_windows_are_constant) {
  const Scene scene("45x30/50x34", [](Index y, Index, double n) { return y < 47 ? 1000.1 : n; });
  each_score(scene, points_for(scene.q), "", [&](Index i, float got) {
    const double want = i / scene.q.out_cols() + 45 <= 47 ? 0 : scene.score(i);
    ASSERT_NEAR(got, want, want == 0 ? 0 : 1e-4);
  });
}

// Records are those that the harness makes of the variant's surface: with equal outputs, infinities, NaN, second peaks
// near the first one and far away.
TEST_P(Templates, peaks_are_those_of_the_surface) {
  using Value = std::function<double(Index, Index, double)>;
  const auto with_one = [](double value) -> Value {
    return [=](Index y, Index x, double n) { return y == 7 && x == 8 ? value : n; };
  };
  const std::vector<Value> values = {
      [](Index, Index, double n) { return n; },
      [](Index y, Index x, double) { return static_cast<double>((y * 97 + x) * 40503 % 3); },
      [](Index y, Index x, double) { return static_cast<double>((y / 3 + x / 3) % 2); },
      [](Index y, Index x, double) { return -static_cast<double>(y * y + x * x); },
      [](Index, Index, double) { return 0.0; },
      with_one(std::nan("")),
      with_one(kInfinity),
  };
  // The third is two tiles of a transform of 64, of which the second has no local maximum where the surface falls.
  for (const std::string shapes :
       {"n-to-m/1x1/14x31/2:2/valid", "n-to-m/3x4/21x80/1:2/valid", "n-to-m/9x3/70x12/2:1/valid",
        "one-to-many/1x1/20x1/1:2/sy:3..12,sx:0..0"}) {
    std::size_t turn = 0;
    for (const Value& value : values) {
      const std::string fit = turn++ % 2 == 0 ? "" : ":gaussian";
      const Scene scene(
          shapes + "/result=peak" + fit, [](Index i) { return i % 12 == 0 ? 1.0 : 0.0; }, value);
      for (const Params& params : point_for(scene.q)) {
        const auto surface = computed(scene.q.surface(), params, scene.in);
        const auto got = computed(scene.q, params, scene.in);
        if (!surface || !got) continue;
        expect_peaks_of(scene.q, surface->surface(), got->peaks(),
                        params.canonical() + " inputs " + std::to_string(turn));
      }
    }
  }
}

TEST(TemplatesOnly, refuse_other_shifts) {
  const std::vector<Problem> others = problems_of(
      {"one-to-one/8x8/8x8/1:1/full", "one-to-one/5x5/9x4/1:1/full", "one-to-one/9x9/5x5/1:1/valid",
       "one-to-one/3x3/9x9/1:1/sy:-1..3,sx:0..2", "one-to-one/3x3/9x9/1:1/sy:0..3,sx:2..7"});
  for (const Variant& v : for_templates()) {
    for (const Params& params : emulated_points(v)) {
      for (const Problem& q : others)
        EXPECT_NE(v.supports({q, params}).reason, "") << v.id << " " << q.id();
    }
  }
}

class TemplateDirect : public OfVariant {
 protected:
  TemplateDirect() : OfVariant("template_direct") {}
  Support asked(const char* shapes, const char* fields, const char* row_parts) const {
    Params params;
    params.set("overlap_tile", "8x4");
    params.set("row_parts", row_parts);
    const std::string id = "one-to-one/" + std::string(shapes) + "/1:1/valid" + fields;
    return variant().supports({parse_problem(id), params});
  }
};

// Asked only: no kernel runs.
TEST_F(TemplateDirect, refuses_sums_of_ncc_that_lose_digits) {
  const char* const ncc = "/score=ncc:0.3";
  const Support refused = asked("64x64/400x400", ncc, "1");
  EXPECT_FALSE(refused);
  EXPECT_EQ(refused.reason.find("row_parts: float32 sums of ncc"), 0u) << refused.reason;
  for (const char* const templates : {"24x32/400x400", "62x66/400x400", "256x200/600x600"}) {
    EXPECT_FALSE(asked(templates, ncc, "1")) << templates;
    // The products of other scores have both signs, or their bound is wider.
    for (const char* const fields : {"", "/score=covariance", "/score=zncc:0.3"}) {
      EXPECT_TRUE(asked(templates, fields, "1")) << templates << fields;
    }
  }
  EXPECT_TRUE(asked("8x8/400x400", ncc, "1"));
  EXPECT_FALSE(asked("16x16/400x400", ncc, "1"));
  EXPECT_TRUE(asked("16x16/400x400", ncc, "4"));
  // Few shifts: threads share the rows of the template.
  EXPECT_TRUE(asked("32x32/35x35", ncc, "1"));
  EXPECT_FALSE(asked("32x32/400x400", ncc, "1"));
}

}  // namespace
}  // namespace xcorr::emulation
