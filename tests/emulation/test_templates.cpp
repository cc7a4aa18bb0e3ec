// Scores and peaks of the emulated variants for templates in frames: by the verdict of the harness, by
// its own reduction of the variant's own surface, and by loops in long double where inputs are ones that
// float32 sums or differences of large sums get wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "harness/device/device.hpp"
#include "harness/problem/inputs.hpp"
#include "harness/problem/results.hpp"
#include "harness/reduce/reduce.hpp"
#include "harness/registry.hpp"
#include "tests/emulation/conformance.hpp"
#include "tests/emulation/emulation.hpp"
#include "tests/emulation/global_memory.hpp"
#include "tests/emulation/sample.hpp"
#include "tests/emulation/templates.hpp"

namespace xcorr::emulation {
namespace {

using Templates = ForTemplates;
// A program for one mutant has the kernels of one variant.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Templates);
INSTANTIATE_TEST_SUITE_P(Variants, Templates, testing::ValuesIn(for_templates()),
                         [](const auto& info) {
                           return info.param.id.substr(info.param.id.find('.') + 1);
                         });

TEST_P(Templates, are_right_by_the_verdict) {
  const std::unique_ptr<Device> device = open_cpu();
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
        const auto truth = device->truth(q, Precision::fp32, GetParam().algorithm_class, 1);
        GlobalMemory left(floats(q.left_elements())), right(floats(q.right_elements()));
        for (const InputKind kind : {InputKind::zero_mean, kKinds[turn / 2 % std::size(kKinds)]}) {
          truth->fill(kind, left.get(), right.get());
          const Computed computed(GetParam(), q, params, left.get(), right.get());
          if (!computed.done) break;
          const Check check = truth->check(kind, computed.out->get());
          EXPECT_TRUE(check.passed())
              << q.id() << " " << params.canonical() << " " << to_string(kind) << ": "
              << check.first_wrong << "; L2 " << check.rel_l2_error << " of " << check.rel_l2_bound;
          EXPECT_EQ(truth->changed_inputs(kind, left.get(), right.get()), "") << q.id();
        }
      }
    }
  }
}

// More templates, frames and pairs than a launch has blocks for: a block takes several, more than two of them.
// The limits of these launches are small under emulation.
TEST_P(Templates, many_templates_and_frames_are_taken_in_turns) {
  const std::unique_ptr<Device> device = open_cpu();
  for (const char* const id : {"n-to-m/3x4/9x11/7:7/valid/score=zncc:0.3/result=peak",
                               "n-to-mn/3x4/9x11/7:7/valid/score=zncc:0.3/result=peak",
                               "n-to-mn/3x4/9x11/7:7/valid/score=zncc:0.3"}) {
    const Problem q = parse_problem(id);
    for (const Params& params : points_for(q)) {
      const auto truth = device->truth(q, Precision::fp32, GetParam().algorithm_class, 1);
      GlobalMemory left(floats(q.left_elements())), right(floats(q.right_elements()));
      truth->fill(InputKind::zero_mean, left.get(), right.get());
      const Computed computed(GetParam(), q, params, left.get(), right.get());
      if (!computed.done) continue;
      const Check check = truth->check(InputKind::zero_mean, computed.out->get());
      EXPECT_TRUE(check.passed()) << id << " " << params.canonical() << ": " << check.first_wrong;
    }
  }
}

// Products that are all alike round in one direction: a long sum in one register would lose too much.
TEST_P(Templates, ncc_of_constants_keeps_its_digits) {
  const Variant& v = GetParam();
  if (!has(v.scores, ScoreKind::ncc)) GTEST_SKIP() << "no ncc";
  const std::unique_ptr<Device> device = open_cpu();
  // So many shifts that a thread has all products of its part.
  for (const char* const shapes : {"8x8/75x72", "16x16/83x80", "24x40/88x104"}) {
    const Problem q =
        parse_problem("one-to-one/" + std::string(shapes) + "/1:1/valid/score=ncc:0.3");
    for (const Params& params : emulated_points(v)) {
      if (!v.supports({q, params})) continue;
      for (const std::uint64_t seed : {1, 2}) {
        const auto truth = device->truth(q, Precision::fp32, v.algorithm_class, seed);
        GlobalMemory left(floats(q.left_elements())), right(floats(q.right_elements()));
        truth->fill(InputKind::constant, left.get(), right.get());
        const Computed computed(v, q, params, left.get(), right.get());
        if (!computed.done) break;
        const Check check = truth->check(InputKind::constant, computed.out->get());
        EXPECT_TRUE(check.passed())
            << q.id() << " " << params.canonical() << " seed " << seed << ": " << check.first_wrong
            << "; L2 " << check.rel_l2_error << " of " << check.rel_l2_bound;
      }
    }
  }
}

// An offset that is ten thousand times the noise costs no more than 1e-4; neither does a ramp.
TEST_P(Templates, offsets_and_ramps_cost_no_digits) {
  for (const int ramp : {0, 1}) {
    for (const std::string shapes : {"12x11/24x31", "17x11/25x31"}) {
      Scene scene(
          "n-to-m/" + shapes + "/2:1/valid/score=zncc:0.3", [](Index i) { return 1e4 + noise(i); },
          [&](Index y, Index x) {
            return 1e4 + static_cast<double>(ramp) * 20 * static_cast<double>(y + x) +
                   noise(7000 + y * 31 + x);
          });
      for (const Params& params : points_for(scene.q)) {
        const Computed got(GetParam(), scene.q, params, scene.left.get(), scene.right.get());
        if (!got.done) continue;
        for (Index i = 0; i < scene.q.out_elements(); ++i) {
          ASSERT_NEAR(got.surface()[i], scene.score(i), 1e-4)
              << scene.q.id() << " " << params.canonical() << " output " << i;
        }
      }
    }
  }
}

// Definitions only: a transform spreads the outlier over its tile.
TEST_P(Templates, an_outlier_costs_digits_only_where_it_is) {
  if (!is_definition(GetParam().algorithm_class)) GTEST_SKIP() << "a transform";
  for (const std::string shapes : {"6x7/40x41", "16x7/40x41"}) {
    Scene scene(
        "one-to-one/" + shapes + "/1:1/valid/score=zncc:0.3", [](Index i) { return noise(i); },
        [&](Index y, Index x) { return y == 21 && x == 23 ? 1e6 : noise(7000 + y * 41 + x); });
    for (const Params& params : points_for(scene.q)) {
      const Computed got(GetParam(), scene.q, params, scene.left.get(), scene.right.get());
      if (!got.done) continue;
      for (Index i = 0; i < scene.q.out_elements(); ++i) {
        ASSERT_NEAR(got.surface()[i], scene.score(i), 3e-5)
            << scene.q.id() << " " << params.canonical() << " output " << i;
      }
    }
  }
}

// An infinity spoils what is near it, and with transforms its tile; what is known of the frame as a whole stays right.
TEST_P(Templates, an_infinity_spoils_nothing_far_away) {
  for (const std::string shapes : {"6x7/12x260", "17x7/20x260"}) {
    Scene scene(
        "one-to-one/" + shapes + "/1:1/valid/score=zncc:0.3", [](Index i) { return noise(i); },
        [&](Index y, Index x) {
          if (y == 0 && x == 0) return std::numeric_limits<double>::infinity();
          return x > 240 ? 100 : 100 + noise(7000 + y * 260 + x);
        });
    for (const Params& params : points_for(scene.q)) {
      const Computed got(GetParam(), scene.q, params, scene.left.get(), scene.right.get());
      if (!got.done) continue;
      const Index of_tile = params.has("tile") ? params.get_int("tile") : 192;
      for (Index i = 0; i < scene.q.out_elements(); ++i) {
        const Index sx = i % scene.q.out_cols();
        if (sx < of_tile) continue;
        const double want = sx > 240 ? 0 : scene.score(i);
        ASSERT_NEAR(got.surface()[i], want, want == 0 ? 0 : 1e-4)
            << scene.q.id() << " " << params.canonical() << " " << i;
      }
    }
  }
}

// Columns of very large values, or of infinities, cost few digits elsewhere, whether a kernel goes by the frame's mean
// or by the median of nine values in three columns.
TEST_P(Templates, columns_of_outliers_spoil_nothing_far_away) {
  struct Case {
    double value;
    Index last;  // of the columns 100, 300, 500
  };
  for (const Case& of : {Case{1e7, 100}, Case{std::numeric_limits<double>::infinity(), 300}}) {
    for (const std::string shapes : {"6x7/12x600", "17x7/19x600"}) {
      Scene scene(
          "one-to-one/" + shapes + "/1:1/valid/score=zncc:0.3", [](Index i) { return noise(i); },
          [&](Index y, Index x) {
            return x % 200 == 100 && x <= of.last ? of.value : 5 + noise(7000 + y * 600 + x);
          });
      for (const Params& params : points_for(scene.q)) {
        const Computed got(GetParam(), scene.q, params, scene.left.get(), scene.right.get());
        if (!got.done) continue;
        for (Index i = 0; i < scene.q.out_elements(); ++i) {
          // A tile that begins before the last of these columns is spoiled; the largest has 192.
          if (i % scene.q.out_cols() < of.last + 192) continue;
          ASSERT_NEAR(got.surface()[i], scene.score(i), 1e-3)
              << scene.q.id() << " " << params.canonical() << " " << i;
        }
      }
    }
  }
}

TEST_P(Templates, a_power_of_two_changes_no_bit) {
  for (const std::string score : {"zncc:0.3", "ncc:0.3"}) {
    for (const std::string shapes : {"9x8/20x27", "18x8/25x27"}) {
      std::vector<float> first;
      const std::string id = "n-to-m/" + shapes + "/2:1/valid/score=" + score;
      const std::vector<Params> points = points_for(parse_problem(id));
      for (const Params& params : points) {
        for (const int power : {0, 60, -60, 100, -90}) {
          Scene scene(
              id, [&](Index i) { return std::ldexp(noise(i) + 2, power); },
              [&](Index y, Index x) {
                return std::ldexp(noise(7000 + y * 27 + x) + 3, -power / 2);
              });
          const Computed got(GetParam(), scene.q, params, scene.left.get(), scene.right.get());
          if (!got.done) continue;
          const std::vector<float> scores(got.surface(), got.surface() + scene.q.out_elements());
          if (power == 0) first = scores;
          EXPECT_EQ(scores, first) << id << " " << params.canonical() << " times 2^" << power;
        }
      }
    }
  }
}

// Constant parts of a frame, and of all of a template, have scores of 0.
TEST_P(Templates, what_is_constant_correlates_with_nothing) {
  // The error of a transform grows with the jump in its tile.
  const double limit = is_definition(GetParam().algorithm_class) ? 1e-4 : 3e-4;
  for (const Index rows : {5, 17}) {
    const Index first = rows + 7, last = first + rows + 3;
    Scene scene(
        "n-to-m/" + std::to_string(rows) + "x6/" + std::to_string(last + 10) +
            "x33/2:1/valid/score=zncc:0.3",
        [=](Index i) { return i < 6 * rows ? noise(i) : 0.1; },  // the second template is constant
        [=](Index y, Index x) {
          return y < first ? 0.1 : y < last ? 1000.1 : 1000 + noise(7000 + y * 33 + x);
        });
    for (const Params& params : points_for(scene.q)) {
      const Computed got(GetParam(), scene.q, params, scene.left.get(), scene.right.get());
      if (!got.done) continue;
      const Index size = scene.q.out_size(), cols = scene.q.out_cols();
      for (Index i = 0; i < 2 * size; ++i) {
        const Index y = i % size / cols;
        const bool constant = i >= size || y + rows <= first || (y >= first && y + rows <= last);
        const double want = constant ? 0 : scene.score(i);
        ASSERT_NEAR(got.surface()[i], want, constant ? 0 : limit)
            << scene.q.id() << " " << params.canonical() << " " << i;
      }
    }
  }
}

// Constant is what differs by no more than rounding, measured by how far it is from the mean of the frame.
TEST_P(Templates, what_differs_by_rounding_is_constant) {
  for (const std::string shapes : {"5x6/30x33", "17x6/30x33"}) {
    Scene scene(
        "one-to-one/" + shapes + "/1:1/valid/score=zncc:0.3", [](Index i) { return noise(i); },
        [](Index y, Index x) { return y < 24 ? 1000 + (y + x) % 2 * 0x1p-14 : noise(y * 33 + x); });
    for (const Params& params : points_for(scene.q)) {
      const Computed got(GetParam(), scene.q, params, scene.left.get(), scene.right.get());
      if (!got.done) continue;
      for (Index i = 0; i < scene.q.out_elements(); ++i) {
        if (i / scene.q.out_cols() + scene.q.left.rows > 24) continue;
        ASSERT_EQ(got.surface()[i], 0.0f) << scene.q.id() << " " << params.canonical() << " " << i;
      }
    }
  }
}

// The same where a window has many elements, whose sum float32 would round in one direction.
TEST_P(Templates, large_constant_windows_are_constant) {
  Scene scene(
      "one-to-one/45x30/50x34/1:1/valid/score=zncc:0.3", [](Index i) { return noise(i); },
      [](Index y, Index x) { return y < 47 ? 1000.1 : noise(7000 + y * 34 + x); });
  for (const Params& params : points_for(scene.q)) {
    const Computed got(GetParam(), scene.q, params, scene.left.get(), scene.right.get());
    if (!got.done) continue;
    for (Index i = 0; i < scene.q.out_elements(); ++i) {
      const double want = i / scene.q.out_cols() + 45 <= 47 ? 0 : scene.score(i);
      ASSERT_NEAR(got.surface()[i], want, want == 0 ? 0 : 1e-4) << params.canonical() << " " << i;
    }
  }
}

bool same(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Records are those that the harness makes of the variant's own surface: with equal outputs, infinities,
// NaN, second peaks near the first one and far away.
TEST_P(Templates, peaks_are_those_of_the_surface) {
  using Value = std::function<double(Index, Index)>;
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  const std::vector<Value> values = {
      [](Index y, Index x) { return noise(7000 + y * 97 + x); },
      [](Index y, Index x) { return static_cast<double>((y * 97 + x) * 40503 % 3); },
      [](Index y, Index x) { return static_cast<double>((y / 3 + x / 3) % 2); },
      [](Index y, Index x) { return -static_cast<double>(y * y + x * x); },
      [](Index, Index) { return 0.0; },
      [=](Index y, Index x) { return y == 7 && x == 8 ? nan : noise(7000 + y * 97 + x); },
      [=](Index y, Index x) { return y == 7 && x == 8 ? infinity : noise(7000 + y * 97 + x); },
  };
  // The third is two tiles of a transform of 64, of which the second has no local maximum where the surface falls.
  for (const std::string shapes :
       {"n-to-m/1x1/14x31/2:2/valid", "n-to-m/3x4/21x80/1:2/valid", "n-to-m/9x3/70x12/2:1/valid",
        "one-to-many/1x1/20x1/1:2/sy:3..12,sx:0..0"}) {
    std::size_t turn = 0;
    for (const Value& value : values) {
      const std::string fit = turn++ % 2 == 0 ? "" : ":gaussian";
      Scene scene(
          shapes + "/result=peak" + fit, [](Index i) { return i % 12 == 0 ? 1.0 : 0.0; }, value);
      for (const Params& params : point_for(scene.q)) {
        const void *const left = scene.left.get(), *const right = scene.right.get();
        const Computed surface(GetParam(), scene.q.surface(), params, left, right),
            got(GetParam(), scene.q, params, left, right, 9);
        if (!surface.done || !got.done) continue;
        std::vector<Peak> want(static_cast<std::size_t>(scene.q.pairs()));
        reduce_on_cpu(scene.q, Precision::fp32, surface.surface(), nullptr, want.data());
        for (std::size_t p = 0; p < want.size(); ++p) {
          const Peak& is = got.peaks()[p];
          const std::string where = scene.q.id() + " " + params.canonical() + " inputs " +
                                    std::to_string(turn) + " pair " + std::to_string(p);
          EXPECT_TRUE(same(is.value, want[p].value))
              << where << ": " << is.value << ", not " << want[p].value;
          EXPECT_EQ(is.sy, want[p].sy) << where;
          EXPECT_EQ(is.sx, want[p].sx) << where;
          EXPECT_NEAR(is.sub_sy, want[p].sub_sy, 1e-6) << where;
          EXPECT_NEAR(is.sub_sx, want[p].sub_sx, 1e-6) << where;
          EXPECT_TRUE(same(is.second, want[p].second))
              << where << ": " << is.second << ", not " << want[p].second;
          EXPECT_EQ(is.flags, want[p].flags) << where;
          EXPECT_EQ(is.spare, 0u) << where;
        }
      }
    }
  }
}

TEST(TemplatesOnly, refuse_other_shifts) {
  for (const Variant& v : for_templates()) {
    for (const char* const id :
         {"one-to-one/8x8/8x8/1:1/full", "one-to-one/5x5/9x4/1:1/full",
          "one-to-one/9x9/5x5/1:1/valid", "one-to-one/3x3/9x9/1:1/sy:-1..3,sx:0..2",
          "one-to-one/3x3/9x9/1:1/sy:0..3,sx:2..7"}) {
      for (const Params& params : emulated_points(v)) {
        EXPECT_NE(v.supports({parse_problem(id), params}).reason, "") << v.id << " " << id;
      }
    }
  }
}

}  // namespace
}  // namespace xcorr::emulation
