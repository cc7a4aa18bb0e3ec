// The verdict: what passes, what does not, and what it says about it.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "harness/registry.hpp"
#include "harness/verdict/bounds.hpp"
#include "harness/verdict/verdict.hpp"
#include "tests/support/fixture.hpp"

namespace xcorr {
namespace {

constexpr std::size_t kKeep = std::size_t{1} << 30;
constexpr InputKind kKinds[] = {InputKind::integer, InputKind::zero_mean, InputKind::uniform};
constexpr AlgorithmClass kClasses[] = {AlgorithmClass::definition, AlgorithmClass::fft};

HostTruth truth_of(const Problem& problem, AlgorithmClass algorithm_class,
                   std::size_t keep = kKeep) {
  return HostTruth(problem, Precision::fp32, algorithm_class, 1, keep);
}

std::string named(const Check& check) { return check.first_wrong; }

// Removes row y of the left from every sum.
void lose_row(const Problem& q, Sample& sample, Index y) {
  each_output(q, [&](Index i, Pair, Index sy, Index sx) {
    double lost = 0;
    each_meeting(q, sy, sx, [&](Index l, Index r) {
      if (l / q.left.cols == y) lost += double{sample.left[l]} * double{sample.right[r]};
    });
    sample.out[i] -= static_cast<float>(lost);
  });
}

// Calls use(truth, kind) with the truth of each class and each kind of input.
template <typename Use>
void each_truth(const Problem& problem, const Use& use) {
  for (const AlgorithmClass of : kClasses) {
    HostTruth truth = truth_of(problem, of);
    for (const InputKind kind : kKinds) use(truth, kind);
  }
}

TEST(Verdict, TheTruthRoundedToFloatPasses) {
  for (const Problem& problem : problems_of(
           {"n-to-m/9x7/5x12/2:3/full", "one-to-one/1x1/1x1/1:1/full",
            "n-to-mn/9x7/9x7/2:4/sy:-8..-7,sx:2..6", "one-to-one/160x160/160x160/1:1/full"})) {
    each_truth(problem, [&](HostTruth& truth, InputKind kind) {
      const Check check = truth.check(kind, Sample(problem, truth, kind).out.data());
      EXPECT_TRUE(check.passed()) << problem.id() << ": " << named(check);
      EXPECT_TRUE(check.argmax_agrees);
      EXPECT_LT(check.rel_l2_error, 1e-6);
      EXPECT_LE(check.error, check.bound);
    });
  }
}

TEST(Verdict, ALostRowAt256IsSeenWhereAWorstCaseBoundSeesNothing) {
  const Problem problem = parse_problem("one-to-one/256x256/256x256/1:1/sy:0..0,sx:-32..32");
  each_truth(problem, [&](HostTruth& truth, InputKind kind) {
    Sample sample(problem, truth, kind);
    const float before = sample.out[32];
    lose_row(problem, sample, 255);
    EXPECT_FALSE(truth.check(kind, sample.out.data()).passed()) << to_string(kind);
    if (kind != InputKind::uniform) return;
    const double worst_case = 256 * 256 * std::ldexp(1.0, -24) * static_cast<double>(before);
    EXPECT_LT(std::abs(sample.out[32] - before), 1.1 * worst_case)
        << "else the bound is not needed";
  });
}

TEST(Verdict, SumsOfSquaresMayLoseWhatTheirSmallTermsAre) {
  const Problem problem =
      parse_problem("one-to-one/1500x750/1500x750/1:1/sy:0..1,sx:-1..1/same=yes");
  HostTruth truth = truth_of(problem, AlgorithmClass::definition);
  for (const InputKind kind : {InputKind::zero_mean, InputKind::uniform}) {
    Sample sample(problem, truth, kind);
    // Each as one register adds it up.
    each_output(problem, [&](Index i, Pair, Index sy, Index sx) {
      sample.out[i] = product_sum<float>(problem, sample.left.data(), sample.right.data(), sy, sx);
    });
    const Check check = truth.check(kind, sample.out.data());
    EXPECT_TRUE(check.passed()) << named(check);
    EXPECT_GT(check.rel_l2_error, 1e-5) << "one register loses more than random errors";
    // Beside shift 0 nothing more is allowed: a row.
    sample.out[2] += sample.out[1] / 1500;
    EXPECT_FALSE(truth.check(kind, sample.out.data()).passed());
  }
}

TEST(Verdict, TheLeastErrorOnIntegersIsSeenInTheDefinition) {
  const Problem problem = parse_problem("n-to-m/9x7/5x12/2:3/full");
  HostTruth truth = truth_of(problem, AlgorithmClass::definition);
  Sample sample(problem, truth, InputKind::integer);
  const auto at = static_cast<std::size_t>(4 * problem.out_size() + 6 * problem.out_cols() + 7);
  const float right = sample.out[at];
  sample.out[at] = std::nextafter(right, std::numeric_limits<float>::infinity());
  const Check check = truth.check(InputKind::integer, sample.out.data());
  EXPECT_EQ(check.wrong, 1);
  EXPECT_EQ(check.bound, 0);
  EXPECT_GT(check.error, 0);
  EXPECT_EQ(named(check).rfind("pair 4 (left 1, right 1) at sy=-2 sx=1 is ", 0), 0u)
      << named(check);
}

TEST(Verdict, ATransformMustRoundToTheInteger) {
  const Problem problem = parse_problem("n-to-m/9x7/5x12/2:3/full");
  HostTruth truth = truth_of(problem, AlgorithmClass::fft);
  Sample sample(problem, truth, InputKind::integer);
  const float right = sample.out[100];
  for (const auto& [error, passes] :
       {std::pair{0.0f, true}, {0.4f, true}, {-0.4f, true}, {0.6f, false}, {-1.0f, false}}) {
    sample.out[100] = right + error;
    EXPECT_EQ(truth.check(InputKind::integer, sample.out.data()).passed(), passes) << error;
  }
  sample.out[100] = right + 0.5f;
  EXPECT_FALSE(truth.check(InputKind::integer, sample.out.data()).passed())
      << "a half rounds to either";
}

TEST(Verdict, NanAndInfinityAreNeverRight) {
  const Problem problem = parse_problem("one-to-many/9x7/9x7/1:3/full");
  each_truth(problem, [&](HostTruth& truth, InputKind kind) {
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      for (const std::size_t at : {std::size_t{0}, std::size_t{100}}) {
        Sample sample(problem, truth, kind);
        sample.out[at] = bad;
        EXPECT_EQ(truth.check(kind, sample.out.data()).wrong, 1) << bad << " at " << at;
      }
    }
  });
}

TEST(Verdict, ARelativeErrorThatIsNoNumberFails) {
  const Problem problem = parse_problem("one-to-many/9x7/9x7/1:3/full");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double sums[][3] = {{nan, 1, 1}, {1, nan, 1}, {0, 1, nan}, {nan, nan, nan}};
  for (const auto& [difference, reference, bound] : sums) {
    Check check;
    double worst_ratio = -1;
    check_l2(check, worst_ratio, problem, 2, difference, reference, bound);
    EXPECT_EQ(check.wrong_pairs, 1);
    EXPECT_FALSE(check.passed());
    EXPECT_EQ(worst_ratio, 2);
    expect_says(named(check), "pair 2 (left 0, right 2) has a relative L2 error of ");
  }
  Check check;
  double worst_ratio = -1;
  check_l2(check, worst_ratio, problem, 2, 0.5, 1, 1);
  EXPECT_TRUE(check.passed()) << named(check);
}

TEST(Verdict, OneWrongElementOfALargeProblemIsSeen) {
  // Beyond the size up to which the definition is the reference.
  const Problem problem = parse_problem("one-to-one/160x160/160x160/1:1/full");
  each_truth(problem, [&](HostTruth& truth, InputKind kind) {
    Sample sample(problem, truth, kind);
    sample.out[77777] += 1.0f;
    EXPECT_EQ(truth.check(kind, sample.out.data()).wrong, 1) << to_string(kind);
  });
}

TEST(Verdict, ByPartsOrKeptIsTheSame) {
  // More than the 2^23 outputs of one part.
  const Problem problem = parse_problem("one-to-many/1x1/1024x1024/1:9/full");
  HostTruth kept = truth_of(problem, AlgorithmClass::definition);
  HostTruth by_parts = truth_of(problem, AlgorithmClass::definition, 0);
  Sample sample(problem, kept, InputKind::zero_mean);
  for (int wrong = 0; wrong < 2; ++wrong) {
    // In the second part; a maximum elsewhere than it was.
    if (wrong) sample.out[sample.out.size() - 5] += 2.0f;
    const Check a = kept.check(InputKind::zero_mean, sample.out.data());
    const Check b = by_parts.check(InputKind::zero_mean, sample.out.data());
    EXPECT_EQ(a.wrong, wrong);
    EXPECT_EQ(b.wrong, wrong);
    EXPECT_EQ(a.first_wrong, b.first_wrong);
    EXPECT_EQ(a.argmax_agrees, b.argmax_agrees);
    EXPECT_EQ(a.argmax_agrees, wrong == 0);
    EXPECT_EQ(a.error, b.error);
    EXPECT_EQ(a.bound, b.bound);
    EXPECT_NEAR(a.rel_l2_error, b.rel_l2_error, 1e-12 * (1 + a.rel_l2_error));
  }
  EXPECT_LT(HostTruth::host_bytes(problem, 0),
            HostTruth::host_bytes(problem, std::size_t{1} << 40));
}

TEST(Verdict, TheArgmaxIsComparedForEveryPair) {
  const Problem problem = parse_problem("one-to-many/4x4/4x4/1:2/full");
  HostTruth truth = truth_of(problem, AlgorithmClass::definition);
  Sample sample(problem, truth, InputKind::uniform);
  EXPECT_TRUE(truth.check(InputKind::uniform, sample.out.data()).argmax_agrees);
  sample.out.back() = 1000;
  EXPECT_FALSE(truth.check(InputKind::uniform, sample.out.data()).argmax_agrees);
}

TEST(Verdict, ChangedInputsAreNamed) {
  const Problem problem = parse_problem("one-to-many/4x4/4x4/1:2/full");
  HostTruth truth = truth_of(problem, AlgorithmClass::definition);
  std::vector<float> left(16), right(32);
  truth.fill(InputKind::uniform, left.data(), right.data());
  EXPECT_EQ(truth.changed_inputs(InputKind::uniform, left.data(), right.data()), "");
  right[31] = -right[31];
  EXPECT_EQ(truth.changed_inputs(InputKind::uniform, left.data(), right.data()),
            "the right matrices were overwritten");
  left[0] += 1;
  EXPECT_EQ(truth.changed_inputs(InputKind::uniform, left.data(), right.data()),
            "the left matrices were overwritten");
}

TEST(Amplitude, KeepsEverySumExactInFloat) {
  EXPECT_EQ(integer_amplitude(1), 4096);
  EXPECT_EQ(integer_amplitude(256 * 256), 16);
  EXPECT_EQ(integer_amplitude(Index{1} << 24), 1);
  EXPECT_EQ(integer_amplitude(Index{1} << 30), 1);
  for (const Index overlap : {2, 3, 5, 1000, 4095, 4096, 4097, 1000003}) {
    const Index a = integer_amplitude(overlap);
    EXPECT_LE(overlap * a * a, 1 << 24);
    EXPECT_GT(overlap * (a + 1) * (a + 1), 1 << 24);
  }
}

TEST(Amplitude, FitsTheSignificandOfANarrowPrecision) {
  const Problem problem = parse_problem("one-to-many/1x1/1x1/1:200/full");
  for (const Precision precision : {Precision::tf32, Precision::fp16}) {
    HostTruth truth(problem, precision, AlgorithmClass::definition, 1, kKeep);
    std::vector<float> left(1), right(200);
    truth.fill(InputKind::integer, left.data(), right.data());
    for (const float v : right) EXPECT_LE(std::abs(v), 2048) << to_string(precision);
  }
}

TEST(Amplitude, IsSmallEnoughForATransformToRound) {
  for (const Problem& problem : problems_of(
           {"one-to-one/16x16/16x16/1:1/full", "one-to-one/96x96/96x96/1:1/full",
            "one-to-one/256x256/256x256/1:1/sy:0..0,sx:0..3", "one-to-one/1x8/1x4000/1:1/full"})) {
    HostTruth truth = truth_of(problem, AlgorithmClass::fft);
    Sample sample(problem, truth, InputKind::integer);
    for (float& v : sample.out) v += 0.49f;
    EXPECT_TRUE(truth.check(InputKind::integer, sample.out.data()).passed()) << problem.id();
    for (float& v : sample.out) v += 0.02f;
    EXPECT_FALSE(truth.check(InputKind::integer, sample.out.data()).passed()) << problem.id();
  }
}

TEST(Bounds, AreThoseOfTheDesign) {
  const double u = unit_roundoff(Precision::fp32);
  EXPECT_DOUBLE_EQ(definition_bound(65536, 16384, u), (8 * 256 + 4) * u * 16384);
  EXPECT_DOUBLE_EQ(fft_bound(18, 3, 5, u), 4 * u * 18 * 15);
}

TEST(Roofline, RejectsWhatNoHardwareCanDo) {
  const Problem problem =
      parse_problem("one-to-one/64x64/64x64/1:1/full");  // 2^24 FMAs, 97284 bytes
  const Peaks peaks{1e12, 1e11};
  const auto guard = [&](double seconds, AlgorithmClass c, Peaks p) {
    return roofline_guard(problem, Precision::fp32, c, seconds, p);
  };
  const auto definition = AlgorithmClass::definition;
  EXPECT_EQ(guard(20e-6, definition, peaks), "");
  expect_says(guard(10e-6, definition, peaks), "FMA/s");
  EXPECT_EQ(guard(10e-6, AlgorithmClass::fft, peaks), "") << "a transform needs fewer FMAs";
  expect_says(guard(0.5e-6, AlgorithmClass::fft, peaks), "compulsory traffic");
  EXPECT_NE(guard(0, definition, peaks), "");
  EXPECT_EQ(guard(1e-12, definition, {0, 0}), "") << "an unknown peak switches the guard off";
  EXPECT_EQ(guard(10e-6, definition, {0, 1e11}), "");
  EXPECT_NE(guard(10e-6, definition, {1e12, 0}), "");
}

TEST(Verdict, TheReferenceIsTheSurfaceOfThePairs) {
  const Problem problem = parse_problem("n-to-m/5x7/6x4/2:3/sy:-3..2,sx:-1..3");
  for (const std::size_t keep : {std::size_t{0}, kKeep}) {
    HostTruth truth = truth_of(problem, AlgorithmClass::definition, keep);
    const Sample sample(problem, truth, InputKind::zero_mean);
    const std::vector<double> left(sample.left.begin(), sample.left.end()),
        right(sample.right.begin(), sample.right.end());
    std::vector<double> expected(2 * problem.out_size());
    correlate_definition(problem, left.data(), right.data(), 3, 2, expected.data());
    const Reference reference = truth.reference(InputKind::zero_mean, 3, 2);
    EXPECT_EQ(reference.value, expected) << keep;
    ASSERT_EQ(reference.bound.size(), expected.size());
    for (const double bound : reference.bound) {
      EXPECT_GT(bound, 0);
      EXPECT_LT(bound, 1e-3);
    }
  }
}

}  // namespace
}  // namespace xcorr
