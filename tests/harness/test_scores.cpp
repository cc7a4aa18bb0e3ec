// Scores in float64: by hand, against a second way, and what must not change them.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "harness/truth/field_truth.hpp"
#include "harness/truth/phase.hpp"
#include "harness/truth/score.hpp"
#include "harness/truth/score_transform.hpp"
#include "tests/support/fixture.hpp"

namespace xcorr {
namespace {

using Values = std::vector<double>;
using Mask = std::vector<std::uint8_t>;

Values scores(const std::string& id, Values left, Values right, Mask left_mask = {},
              Mask right_mask = {}) {
  const Problem problem = parse_problem(id);
  ScoreInputs inputs{
      std::move(left), std::move(right), std::move(left_mask), std::move(right_mask), {}, {}};
  inputs.find_facts(problem);
  std::vector<ScoreElement> elements(problem.out_elements());
  score_definition(problem, inputs, 0, problem.pairs(), elements.data());
  Values values;
  for (const ScoreElement& e : elements) values.push_back(e.value);
  return values;
}

void expect_near(const Values& got, const Values& want, double tolerance = 1e-15) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance) << i;
}

Values random_values(Index count, unsigned seed, double offset = 0) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  Values values(count);
  for (double& v : values) v = offset + normal(generator);
  return values;
}

Mask random_mask(Index count, unsigned seed) {
  std::mt19937 generator(seed);
  Mask mask(count);
  for (std::uint8_t& m : mask) m = generator() % 4 != 0;
  return mask;
}

const std::string kRow3 = "one-to-one/1x3/1x3/1:1/full";

TEST(Scores, Products) {
  expect_near(scores(kRow3, {1, 2, 3}, {4, 5, 6}), {12, 23, 32, 17, 6});
  // R at the shifts -1, 0, 1 modulo 3 is 6 4 5, 4 5 6, 5 6 4.
  expect_near(scores(kRow3 + "/boundary=circular", {1, 2, 3}, {4, 5, 6}), {29, 32, 29});
}

TEST(Scores, CircularWrapsBothAxes) {
  // L = 1 at (0, 0): out is R at the shift, modulo its shape; shifts are -1..0 and -1..1.
  expect_near(scores("one-to-one/2x3/2x3/1:1/full/boundary=circular", {1, 0, 0, 0, 0, 0},
                     {1, 2, 3, 4, 5, 6}),
              {6, 4, 5, 3, 1, 2});
}

TEST(Scores, Covariance) {
  // Means 2 and 5, of the whole matrices at every shift.
  expect_near(scores(kRow3 + "/score=covariance", {1, 2, 3}, {4, 5, 6}), {-1, 0, 2, 0, -1});
  expect_near(scores(kRow3 + "/score=covariance/boundary=circular", {1, 2, 3}, {4, 5, 6}),
              {-1, 2, -1});
}

TEST(Scores, NormalisedSums) {
  const double full = 32 / std::sqrt(14.0 * 77.0);
  const double left = 23 / std::sqrt(13.0 * 41.0), right = 17 / std::sqrt(5.0 * 61.0);
  // One of three elements is more than 0.3 of three.
  expect_near(scores(kRow3 + "/score=ncc", {1, 2, 3}, {4, 5, 6}), {1, left, full, right, 1});
  expect_near(scores(kRow3 + "/score=ncc:0.5", {1, 2, 3}, {4, 5, 6}), {0, left, full, right, 0});
  expect_near(scores(kRow3 + "/score=ncc:1", {1, 2, 3}, {4, 5, 6}), {0, 0, full, 0, 0});
  // Without means -1 0 1 and -1/3 -1/3 2/3. Nothing is left of one element without its mean.
  expect_near(scores(kRow3 + "/score=zncc", {1, 2, 3}, {5, 5, 6}),
              {0, 0, 1 / std::sqrt(2 * 2.0 / 3), 1, 0}, 1e-12);
}

TEST(Scores, LeastOverlapIsAShareOfTheLargestInTheWindow) {
  // The window holds overlaps of 1 and 2 only, so that one element is half of the largest.
  const std::string window = "one-to-one/1x3/1x3/1:1/sy:0..0,sx:1..2/score=ncc:";
  expect_near(scores(window + "0.5", {1, 2, 3}, {4, 5, 6}), {17 / std::sqrt(5.0 * 61.0), 1});
  expect_near(scores(window + "0.6", {1, 2, 3}, {4, 5, 6}), {17 / std::sqrt(5.0 * 61.0), 0});
}

TEST(Scores, MasksSelectElementsOfBothSides) {
  // Valid pairs at shift 0: elements 0 and 2. A value that is not valid may be NaN.
  const Values values = scores("one-to-one/1x4/1x4/1:1/sy:0..0,sx:0..0/score=zncc/masks=both",
                               {1, NAN, 2, 7}, {5, 9, 6, NAN}, {1, 0, 1, 1}, {1, 1, 1, 0});
  expect_near(values, {1});
  expect_near(scores("one-to-one/1x3/1x3/1:1/full/score=ncc:0.1/masks=left", {1, 50, 3}, {4, 5, 6},
                     {1, 0, 1}),
              {1, 1, 22 / std::sqrt(10.0 * 52.0), 1, 1});
  // No valid element at all.
  expect_near(scores(kRow3 + "/score=zncc/masks=left", {1, 2, 3}, {4, 5, 6}, {0, 0, 0}),
              {0, 0, 0, 0, 0});
}

TEST(Scores, ConstantsHaveNoScore) {
  const Values noise = random_values(36, 1), constant(36, 0.1);
  const std::string zncc = "one-to-one/6x6/6x6/1:1/full/score=zncc";
  const std::string ncc = "one-to-one/6x6/6x6/1:1/full/score=ncc";
  for (const Values& none : {scores(zncc, constant, noise), scores(zncc, noise, constant),
                             scores(ncc, Values(36, 0.0), noise)}) {
    for (const double v : none) EXPECT_EQ(v, 0);
  }
  for (const double v : scores(ncc, constant, constant)) {
    EXPECT_NEAR(v, v == 0 ? 0 : 1, 1e-15);
  }
}

TEST(Scores, TheZeroRuleHasABandAroundItsLimit) {
  const double limit = std::pow(8 * 0x1p-24 * 2, 2) * 100;  // largest |value| 2, 100 elements
  EXPECT_EQ(zero_rule(limit / 4.1, 2, 100), ZeroRule::zero);
  EXPECT_EQ(zero_rule(limit / 3.9, 2, 100), ZeroRule::either);
  EXPECT_EQ(zero_rule(limit * 3.9, 2, 100), ZeroRule::either);
  EXPECT_EQ(zero_rule(limit * 4.1, 2, 100), ZeroRule::no);
  EXPECT_EQ(zero_rule(0, 0, 1), ZeroRule::zero);
}

struct Inputs64 {
  Problem problem;
  ScoreInputs inputs;
};

// The elements of all pairs by the definition and by transforms.
struct BothWays {
  std::vector<ScoreElement> definition, transform;

  explicit BothWays(const Inputs64& of)
      : definition(of.problem.out_elements()), transform(definition.size()) {
    const Index pairs = of.problem.pairs();
    score_definition(of.problem, of.inputs, 0, pairs, definition.data());
    ScoreTransform(of.problem, of.inputs).elements(0, pairs, true, transform.data());
  }
};

Inputs64 random_inputs(const Problem& problem, double offset) {
  Inputs64 result{problem, {}};
  result.inputs.left = random_values(problem.left_elements(), 1, offset);
  result.inputs.right = random_values(problem.right_elements(), 2, offset);
  if (masks_left(problem.fields.masks)) {
    result.inputs.left_mask = random_mask(problem.left_elements(), 3);
  }
  if (masks_right(problem.fields.masks)) {
    result.inputs.right_mask = random_mask(problem.right_elements(), 4);
  }
  result.inputs.find_facts(problem);
  return result;
}

const Texts kFields = {"/score=covariance",
                       "/score=ncc:0.3",
                       "/score=zncc:0.3",
                       "/score=zncc:0.05",
                       "/score=zncc:0.3/masks=left",
                       "/score=ncc:0.3/masks=right",
                       "/score=zncc:0.3/masks=both",
                       "/score=ncc:0.05/masks=both",
                       "/score=product/views=windows"};

TEST(Scores, TheSecondWayAgrees) {
  for (const Problem& problem :
       problems_of({"n-to-m/13x17/13x17/2:3/full", "n-to-mn/5x6/20x31/2:4/valid",
                    "one-to-many/9x9/4x5/1:3/full", "one-to-one/1x16/1x200/1:1/valid",
                    "n-to-m/12x10/15x8/2:2/sy:-3..7,sx:-2..1"},
                   kFields)) {
    for (const double offset : {0.0, 1e4}) {
      const auto [definition, transform] = BothWays(random_inputs(problem, offset));
      const bool sums = !is_normalised(problem.fields.score.kind);
      const double unit = problem.fields.score.kind == ScoreKind::product ? offset : 0;
      for (std::size_t i = 0; i < definition.size(); ++i) {
        ASSERT_NEAR(definition[i].value, transform[i].value, 1e-9 * (1 + unit * unit))
            << problem.id() << " " << i;
        ASSERT_EQ(definition[i].zero, transform[i].zero) << problem.id() << " " << i;
        if (sums) {
          ASSERT_NEAR(definition[i].absolute, transform[i].absolute, 1e-9 * (1 + unit * unit));
        } else {
          ASSERT_NEAR(definition[i].scale, transform[i].scale, 1e-9);
          ASSERT_EQ(definition[i].terms, transform[i].terms);
        }
      }
    }
  }
}

TEST(Scores, TheSecondWayOfACircularBoundaryAgrees) {
  for (const Problem& problem :
       problems_of({"n-to-m/12x13/12x13/2:2/full/boundary=circular"}, {"", "/score=covariance"})) {
    const auto [definition, transform] = BothWays(random_inputs(problem, 0));
    for (std::size_t i = 0; i < definition.size(); ++i) {
      ASSERT_NEAR(definition[i].value, transform[i].value, 1e-9);
      ASSERT_NEAR(definition[i].absolute, transform[i].absolute, 1e-9);
    }
  }
}

TEST(Scores, TheSecondWayKnowsConstantParts) {
  // Half of the right matrix is constant: no digits are left there.
  Inputs64 all = random_inputs(parse_problem("one-to-one/4x4/40x40/1:1/valid/score=zncc"), 100);
  std::fill_n(all.inputs.right.begin(), 800, 3.7);
  all.inputs.find_facts(all.problem);
  const auto [definition, transform] = BothWays(all);
  for (std::size_t i = 0; i < definition.size(); ++i) {
    ASSERT_EQ(definition[i].zero, transform[i].zero) << i;
    ASSERT_NEAR(definition[i].value, transform[i].value, 1e-9) << i;
  }
  EXPECT_EQ(definition[0].zero, ZeroRule::zero);
  EXPECT_EQ(definition.back().zero, ZeroRule::no);
}

// The inputs of a report: a template that was cut out of noise, and what is put over the first rows.
Inputs64 noise_beneath(double fill, std::size_t first, std::size_t count,
                       const std::string& score) {
  Inputs64 result{parse_problem("one-to-one/16x16/80x80/1:1/valid/score=" + score), {}};
  ScoreInputs& inputs = result.inputs;
  inputs.right = random_values(80 * 80, 5);
  for (double& v : inputs.right) v = static_cast<float>(v);
  for (std::size_t y = 0; y < 16; ++y) {
    const auto row = inputs.right.begin() + static_cast<std::ptrdiff_t>((40 + y) * 80 + 30);
    inputs.left.insert(inputs.left.end(), row, row + 16);
  }
  for (std::size_t i = first; i < first + count; ++i) inputs.right[i] = fill;
  inputs.find_facts(result.problem);
  return result;
}

// What a nodata value or a fault puts into a frame.
constexpr double kFaults[] = {-0x1.fffffep127, 1e11, 1e20, -2147483648.0, 65535};

TEST(Scores, AWindowIsConstantByItsOwnValuesAlone) {
  for (const std::string score : {"zncc", "ncc"}) {
    const auto [problem, clean] = noise_beneath(0, 0, 0, score);
    std::vector<ScoreElement> expected(problem.out_size());
    score_definition(problem, clean, 0, 1, expected.data());
    for (const double fault : kFaults) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{16 * 80}}) {
        const auto [definition, transform] = BothWays(noise_beneath(fault, 0, count, score));
        for (Index row = 0; row < problem.out_rows(); ++row) {
          for (Index col = 0; col < problem.out_cols(); ++col) {
            const auto e = static_cast<std::size_t>(row * problem.out_cols() + col);
            ASSERT_EQ(definition[e].zero, transform[e].zero) << score << " " << fault << " " << e;
            ASSERT_NEAR(definition[e].value, transform[e].value, 1e-9) << score << " " << fault;
            if (count == 1 ? e == 0 : row < 16) continue;  // faulty
            ASSERT_EQ(definition[e].value, expected[e].value) << score << " " << fault << " " << e;
            ASSERT_EQ(definition[e].zero, ZeroRule::no) << score << " " << fault << " " << e;
          }
        }
        EXPECT_NEAR(definition[40 * 65 + 30].value, 1, 1e-12);
      }
    }
  }
}

TEST(Scores, WindowsInOneModeOfABimodalImageHaveScores) {
  // Columns from 40 on lie at 1e4, the others at 0; noise of 0.05 is ten times the limit there.
  Inputs64 all = noise_beneath(0, 0, 0, "zncc");
  Values& right = all.inputs.right;
  for (std::size_t i = 0; i < right.size(); ++i) {
    right[i] = 0.05 * right[i] + (i % 80 < 40 ? 0 : 1e4);
  }
  all.inputs.find_facts(all.problem);
  const auto [definition, transform] = BothWays(all);
  for (std::size_t e = 0; e < definition.size(); ++e) {
    ASSERT_EQ(definition[e].zero, ZeroRule::no) << e;
    ASSERT_EQ(transform[e].zero, ZeroRule::no) << e;
    ASSERT_NEAR(definition[e].value, transform[e].value, 1e-9) << e;
  }
}

TEST(Scores, TheLargestValueOfAnOverlapDecidesWhetherItIsConstant) {
  // Deviations of 2^-10, at offsets of which they are 2^10 to 2^30 times smaller.
  const Values noise = random_values(64, 1);
  for (int offset = 0; offset <= 20; ++offset) {
    Values left = noise, right = noise;
    for (double& v : right) v = std::ldexp(1.0, offset) + 0x1p-10 * v;
    const double zncc = scores("one-to-one/8x8/8x8/1:1/sy:0..0,sx:0..0/score=zncc", left, right)[0];
    // The limit is at a ratio of 2^21.
    if (offset <= 9) {
      EXPECT_NEAR(zncc, 1, 1e-6) << offset;
    } else if (offset >= 13) {
      EXPECT_EQ(zncc, 0) << offset;
    }
  }
}

TEST(Scores, TheSecondWayKnowsWindowsOfZeros) {
  for (const Problem& problem :
       problems_of({"one-to-many/20x17/15x21/1:3/full"},
                   {"/score=ncc:0.05", "/score=zncc:0.3", "/score=zncc",
                    "/score=zncc:0.3/masks=left", "/score=ncc/masks=both"})) {
    Inputs64 all = random_inputs(problem, 0);
    for (auto* const side : {&all.inputs.left, &all.inputs.right}) {
      for (std::size_t i = 0; i < side->size(); ++i) {
        if (i % 97 != 41) (*side)[i] = 0;
      }
    }
    all.inputs.find_facts(problem);
    const auto [definition, transform] = BothWays(all);
    const std::size_t size = definition.size();
    std::size_t zeros = 0;
    for (std::size_t i = 0; i < size; ++i) {
      ASSERT_EQ(definition[i].zero, transform[i].zero) << problem.id() << " " << i;
      ASSERT_EQ(definition[i].terms, transform[i].terms) << problem.id() << " " << i;
      ASSERT_NEAR(definition[i].value, transform[i].value, 1e-9) << problem.id() << " " << i;
      zeros += definition[i].zero == ZeroRule::zero;
    }
    EXPECT_GT(zeros, size / 8) << problem.id();
    EXPECT_LT(zeros, size) << problem.id();
  }
}

TEST(Scores, PowersOfTwoChangeNoBit) {
  for (const std::string fields : {"/score=ncc", "/score=zncc"}) {
    const std::string id = "one-to-one/7x9/8x6/1:1/full" + fields;
    const Values left = random_values(63, 1, 5), right = random_values(48, 2, 5);
    const Values expected = scores(id, left, right);
    for (const double factor : {0x1p-60, 0x1p-3, 0x1p60}) {
      Values l = left, r = right;
      for (double& v : l) v *= factor;
      for (double& v : r) v *= factor * 4;
      EXPECT_EQ(scores(id, l, r), expected) << fields << " " << factor;
    }
  }
}

TEST(Scores, OffsetsDoNotChangeZncc) {
  const std::string id = "one-to-one/7x9/8x6/1:1/full/score=zncc";
  Values left = random_values(63, 1), right = random_values(48, 2);
  const Values expected = scores(id, left, right);
  for (double& v : left) v += 1e4;
  for (double& v : right) v -= 3e5;
  expect_near(scores(id, left, right), expected, 1e-9);
}

// R moved by (dy, dx) modulo its shape.
Values moved(const Values& matrix, Index rows, Index cols, Index dy, Index dx) {
  Values result(matrix.size());
  for (Index y = 0; y < rows; ++y) {
    for (Index x = 0; x < cols; ++x) {
      result[wrapped(y, dy, rows) * cols + wrapped(x, dx, cols)] = matrix[y * cols + x];
    }
  }
  return result;
}

TEST(Scores, ACircularShiftMovesTheSurface) {
  const Values left = random_values(35, 1), right = random_values(35, 2);
  for (const std::string fields : {"", "/score=covariance"}) {
    const std::string id = "one-to-one/5x7/5x7/1:1/full/boundary=circular" + fields;
    expect_near(scores(id, left, moved(right, 5, 7, 2, 3)),
                moved(scores(id, left, right), 5, 7, 2, 3), 1e-12);
  }
}

Values phase(const std::string& id, bool definition, const Values& left, const Values& right) {
  const Problem problem = parse_problem(id);
  Values out(problem.out_size());
  PhaseReference(problem, definition).pair(left.data(), right.data(), 1e-7, 0, out.data());
  return out;
}

TEST(Scores, PhaseOfAShiftedImageIsOneAtTheShift) {
  const Values left = random_values(48, 1), right = moved(left, 6, 8, 2, -3);
  const std::string id = "one-to-one/6x8/6x8/1:1/full/boundary=circular/score=phase:0";
  // All bins but the one of frequency 0 are 1.
  Values expected(48, -1.0 / 48);
  expected[(2 + 3) * 8 + (-3 + 4)] += 1;  // shifts start at -3 and -4
  for (const bool definition : {true, false}) {
    expect_near(phase(id, definition, left, right), expected, 1e-12);
  }
}

TEST(Scores, BothTransformsOfPhaseAgree) {
  for (const std::string p : {"0", "0.25", "0.9"}) {
    for (const std::string shape : {"6x8", "5x7", "1x9", "13x1", "1x1"}) {
      const std::string id =
          "one-to-one/" + shape + "/" + shape + "/1:1/full/boundary=circular/score=phase:" + p;
      const Problem problem = parse_problem(id);
      const Values left = random_values(problem.left.size(), 1, 1),
                   right = random_values(problem.left.size(), 2, 1);
      expect_near(phase(id, true, left, right), phase(id, false, left, right), 1e-9);
    }
  }
}

TEST(Scores, PhaseKnowsNoBrightness) {
  const Values left = random_values(48, 1), right = random_values(48, 2);
  const std::string id = "one-to-one/6x8/6x8/1:1/full/boundary=circular/score=phase:0.5";
  Values bright = left, dark = right;
  for (double& value : bright) value += 1e6;
  for (double& value : dark) value -= 3;
  expect_near(phase(id, false, bright, dark), phase(id, false, left, right), 1e-7);
}

// Of equal pixels nothing is left, whatever rounding of their mean makes of them.
TEST(Scores, PhaseOfAConstantMatrixIsZero) {
  const Values right = random_values(63, 2), zeros(63, 0.0);
  const std::string id = "one-to-one/7x9/7x9/1:1/full/boundary=circular/score=phase:0";
  for (const double value : {0.0, 0.1, 1e5 / 3, -1e300}) {
    const Values constant(63, value);
    for (const bool definition : {true, false}) {
      EXPECT_EQ(phase(id, definition, constant, right), zeros) << value;
      EXPECT_EQ(phase(id, definition, right, constant), zeros) << value;
    }
  }
}

TEST(Scores, PhaseWithAnExponentNearOneIsTheCovariance) {
  const Values left = random_values(35, 1), right = random_values(35, 2);
  const std::string id = "one-to-one/5x7/5x7/1:1/full/boundary=circular";
  expect_near(phase(id + "/score=phase:0.999999999", true, left, right),
              scores(id + "/score=covariance", left, right), 1e-6);
}

}  // namespace
}  // namespace xcorr
