// Scores of CPU variants beside what users' frames hold: nodata fills, faults, two modes, large
// offsets. A window is constant by its own values alone (docs/design.md, Fields of a problem), and no
// value outside a window changes its score. Conformance asks the same of every variant, with bounds
// that a transform beside an outlier hardly has; these variants are held to less.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "harness/library/session.hpp"
#include "harness/registry.hpp"
#include "harness/truth/score_reference.hpp"

namespace xcorr {
namespace {

using Values = std::vector<double>;

constexpr Index kSide = 80, kTemplate = 16, kAtRow = 40, kAtCol = 30;
// The lowest float32, a detector's fault, a nodata value, the smallest int32, a saturated pixel.
constexpr double kFaults[] = {-0x1.fffffep127, 1e11, 1e20, -2147483648.0, 65535};

struct Scene {
  Problem problem;
  Values left, right;
};

// A template that was cut out of a frame of `pixel`(noise, index), and the frame.
template <typename Pixel>
Scene scene(const std::string& fields, const Pixel& pixel) {
  std::mt19937 generator(5);
  std::normal_distribution<float> noise;
  Scene s{parse_problem("one-to-one/16x16/80x80/1:1/valid/score=" + fields), {}, {}};
  for (Index i = 0; i < kSide * kSide; ++i) {
    s.right.push_back(static_cast<float>(pixel(static_cast<double>(noise(generator)), i)));
  }
  for (Index y = 0; y < kTemplate; ++y) {
    for (Index x = 0; x < kTemplate; ++x) {
      s.left.push_back(s.right[static_cast<std::size_t>((kAtRow + y) * kSide + kAtCol + x)]);
    }
  }
  return s;
}
Scene noise_scene(const std::string& fields) {
  return scene(fields, [](double noise, Index) { return noise; });
}

// Calls use(variant, precision) for all that the problem is computed with on a CPU.
template <typename Use>
void each_variant(const Problem& problem, const Use& use) {
  const auto device = open_device("cpu");
  for (const Variant& variant : variants()) {
    for (const Precision precision : {Precision::fp32, Precision::fp64}) {
      if (variant.backend != Backend::cpu) continue;
      const PlanRequest request{problem, grid_points(variant)[0], precision};
      if (supported(variant, request, *device)) use(variant, precision);
    }
  }
}

template <typename T>
Values run_in(const Variant& variant, const Scene& s, Precision precision) {
  Session session(variant, {s.problem, grid_points(variant)[0], precision}, open_device("cpu"));
  const std::vector<T> left(s.left.begin(), s.left.end()), right(s.right.begin(), s.right.end());
  std::vector<T> out(static_cast<std::size_t>(s.problem.out_elements()));
  // A mask that hides nothing: what lies in a frame must not count for other reasons.
  const std::vector<std::uint8_t> all(std::max(left.size(), right.size()), 1);
  Arrays arrays{left.data(), right.data(), out.data()};
  if (masks_left(s.problem.fields.masks)) arrays.left_mask = all.data();
  if (masks_right(s.problem.fields.masks)) arrays.right_mask = all.data();
  session.compute(arrays);
  return {out.begin(), out.end()};
}
Values run(const Variant& variant, const Scene& s, Precision precision) {
  return precision == Precision::fp32 ? run_in<float>(variant, s, precision)
                                      : run_in<double>(variant, s, precision);
}

Values truth(const Scene& s) {
  Problem plain = s.problem;
  plain.fields.masks = Masks::none;
  Values out(static_cast<std::size_t>(s.problem.out_elements()));
  score_surfaces(plain, s.left.data(), s.right.data(), nullptr, nullptr, false, out.data());
  return out;
}

// bounds.hpp gives 8.6e-6 for 256 products by definition in float32. A transform in float32 is held to 3e-4.
double tolerance(const Variant& variant, Precision precision) {
  if (precision == Precision::fp64) return 1e-8;
  return is_definition(variant.algorithm_class) ? 8.6e-6 : 3e-4;
}

constexpr std::size_t kMatch = kAtRow * (kSide - kTemplate + 1) + kAtCol;

void expect_truth(const Scene& s, const std::string& what) {
  const Values want = truth(s);
  each_variant(s.problem, [&](const Variant& variant, Precision precision) {
    const Values got = run(variant, s, precision);
    double worst = 0;
    std::size_t at = 0;
    for (std::size_t k = 0; k < got.size(); ++k) {
      const double error = std::abs(got[k] - want[k]);
      if (!(error <= worst)) worst = error, at = k;
    }
    EXPECT_LE(worst, tolerance(variant, precision))
        << variant.id << " " << to_string(precision) << " " << s.problem.id() << ", " << what
        << ", output " << at << ": " << got[at] << " instead of " << want[at];
  });
}

const char* const kFields[] = {"zncc:0.3", "ncc:0.3", "zncc:0.3/masks=both"};

TEST(ConstantWindows, AFaultElsewhereChangesNoScore) {
  for (const std::string fields : kFields) {
    for (const double fault : kFaults) {
      // A pixel, a fifth of the frame.
      for (const std::size_t count : {std::size_t{1}, std::size_t{16 * kSide}}) {
        Scene s = noise_scene(fields);
        std::fill_n(s.right.begin(), count, fault);
        ASSERT_NEAR(truth(s)[kMatch], 1, 1e-12);
        expect_truth(s, std::to_string(fault) + " in " + std::to_string(count) + " pixels");
      }
    }
  }
}

TEST(ConstantWindows, FillsOfHalfTheFrameChangeNoScoreEither) {
  for (const Index rows : {39, 40}) {  // 49 and 50 %; the template lies below
    Scene s = noise_scene("zncc:0.3");
    std::fill_n(s.right.begin(), rows * kSide, -0x1.fffffep127);
    expect_truth(s, std::to_string(rows) + " rows of the lowest float");
  }
}

TEST(ConstantWindows, BothModesOfABimodalFrameHaveScores) {
  for (const std::string fields : kFields) {
    for (const double deviation : {1.0, 0.05}) {
      expect_truth(scene(fields,
                         [&](double noise, Index i) {
                           return (i % kSide < kSide / 2 ? 0 : 1e4) + deviation * noise;
                         }),
                   "modes at 0 and 1e4, deviation " + std::to_string(deviation));
    }
  }
}

TEST(ConstantWindows, BetweenTheLimitsScoresHoldTheirBound) {
  // The limit is at a ratio of 2^21; a quarter of the square, which is a half, is left out.
  for (const std::string fields : {"zncc:0.3", "zncc:0.3/masks=both"}) {
    for (const double ratio : {1e2, 1e3, 1e4, 1e5, 1e6 / 1.2}) {
      expect_truth(scene(fields, [&](double noise, Index) { return ratio + noise; }),
                   "ratio " + std::to_string(ratio));
    }
  }
}

// Every score of the definition is that of its window alone.
TEST(ConstantWindows, TheDefinitionGivesTheBitsOfTheCroppedWindow) {
  const Variant& definition = find_variant("cpu_definition");
  for (const std::string fields : kFields) {
    for (const double fault : kFaults) {
      for (const Precision precision : {Precision::fp32, Precision::fp64}) {
        const Scene clean = noise_scene(fields);
        Scene faulty = clean;
        std::fill_n(faulty.right.begin(), 16 * kSide, fault);
        const Values whole = run(definition, clean, precision);
        const Values got = run(definition, faulty, precision);
        const std::size_t below = 16 * (kSide - kTemplate + 1);
        ASSERT_TRUE(std::equal(got.begin() + below, got.end(), whole.begin() + below))
            << fields << " " << fault;
        // Rows of the frame from the match on, and the columns that it needs.
        Scene cropped{parse_problem("one-to-one/16x16/16x16/1:1/valid/score=" + fields), clean.left,
                      clean.left};
        EXPECT_EQ(run(definition, cropped, precision)[0], got[kMatch]) << fields << " " << fault;
      }
    }
  }
}

TEST(ConstantWindows, APowerOfTwoChangesNoBitBesideAnOutlier) {
  for (const std::string fields : kFields) {
    Scene s = noise_scene(fields);
    s.right[0] = 65535;
    each_variant(s.problem, [&](const Variant& variant, Precision precision) {
      const Values want = run(variant, s, precision);
      for (const int exponent : {-90, -30, 30, 90}) {
        Scene scaled = s;
        for (double& v : scaled.left) v = std::ldexp(v, exponent);
        for (double& v : scaled.right) v = std::ldexp(v, exponent / 3);
        EXPECT_EQ(run(variant, scaled, precision), want)
            << variant.id << " " << fields << " 2^" << exponent;
      }
    });
  }
}

}  // namespace
}  // namespace xcorr
