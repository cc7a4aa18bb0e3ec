// Every kind of input has a bound that right variants keep and faults do not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/fixture.hpp"

namespace xcorr {
namespace {

const Texts kProblems = {"one-to-one/1x1/1x1/1:1/full",
                         "n-to-m/1x1/1x1/2:9/full",
                         "one-to-one/1x300/1x300/1:1/full",
                         "n-to-m/12x7/1x1/2:7/full",
                         "n-to-m/9x7/5x12/2:3/full",
                         "one-to-many/33x33/33x33/1:7/full",
                         "n-to-mn/17x40/17x40/2:4/sy:-16..-15,sx:36..39",
                         "n-to-m/17x40/17x40/2:3/sy:3..3,sx:-2..-2",
                         "one-to-one/8x9/33x21/1:1/valid",
                         "one-to-one/96x96/96x96/1:1/full",
                         "one-to-one/112x112/112x112/1:1/full",
                         "one-to-one/256x256/256x256/1:1/sy:0..0,sx:-40..40",
                         "one-to-one/1x1/1x37/1:1/sy:0..0,sx:19..19",
                         "one-to-one/1x100000/1x100000/1:1/sy:0..0,sx:-9..9"};

template <typename T>
void right_variants_pass() {
  for (const char* variant : {"cpu_definition", "cpu_fft"}) {
    for (const Problem& problem : problems_of(kProblems)) {
      Trial<T> run(variant, problem);
      for (const InputKind kind : kInputKinds) {
        const Check check = run.check(kind);
        EXPECT_TRUE(check.passed()) << variant << " " << problem.id() << " " << to_string(kind)
                                    << ": " << check.first_wrong;
      }
    }
  }
}

TEST(Kinds, RightVariantsPassInSinglePrecision) { right_variants_pass<float>(); }
TEST(Kinds, RightVariantsPassInDoublePrecision) { right_variants_pass<double>(); }

TEST(Kinds, ALostRowIsFoundWithAll) {
  for (const char* variant : {"cpu_definition", "cpu_fft"}) {
    for (const Problem& problem : problems_of(
             {"one-to-one/33x33/33x33/1:1/full", "n-to-m/17x40/17x40/2:3/sy:-3..3,sx:-2..2"})) {
      Trial run(variant, problem);
      for (const InputKind kind : kInputKinds) {
        if (kind == InputKind::flat_spectrum) continue;  // one element of the left is all there is
        if (kind == InputKind::blank) continue;          // of a left of zeros no row is lost
        // The bound of a transform is that of its largest element, which the row may not meet.
        if (kind == InputKind::fill && variant == std::string("cpu_fft")) continue;
        const Check check = run.check(kind, [&](std::vector<float>& left) {
          const auto row = left.begin() + problem.left.cols * (problem.left.rows / 2);
          std::fill(row, row + problem.left.cols, 0.0f);
        });
        EXPECT_FALSE(check.passed()) << variant << " " << problem.id() << " " << to_string(kind);
      }
    }
  }
}

TEST(Kinds, NumbersFlushedToZeroAreFoundInADefinition) {
  const auto flush = [](std::vector<float>& left) {
    for (float& v : left) v = std::abs(v) < 0x1p-126f ? 0.0f : v;
  };
  const Problem problem = parse_problem("one-to-one/33x33/33x33/1:1/full");
  EXPECT_FALSE(Trial("cpu_definition", problem).check(InputKind::subnormal, flush).passed());
  EXPECT_TRUE(Trial("cpu_fft", problem).check(InputKind::subnormal, flush).passed())
      << "libraries of transforms may";
}

// 40 rows of 128 parts at most: each part below the smallest normal number may be lost, and not more.
TEST(Kinds, AtomicAdditionsMayLosePartsOfASubnormalSum) {
  const Problem problem = parse_problem("one-to-one/40x128/40x128/1:1/sy:0..0,sx:0..0");
  std::vector<float> left(problem.left_elements()), right = left;
  for (const AlgorithmClass of : {AlgorithmClass::definition, AlgorithmClass::definition_atomic}) {
    HostTruth truth(problem, Precision::fp32, of, 1, std::size_t{1} << 20);
    truth.fill(InputKind::subnormal, left.data(), right.data());
    double sum = 0;
    for (std::size_t i = 0; i < left.size(); ++i) sum += double{left[i]} * double{right[i]};
    const auto passes = [&](double lost) {
      const auto out = static_cast<float>(sum - lost * 0x1p-126);
      return truth.check(InputKind::subnormal, &out).passed();
    };
    EXPECT_TRUE(passes(0));
    EXPECT_EQ(passes(40 * 128), of == AlgorithmClass::definition_atomic);
    EXPECT_FALSE(passes(40 * 260));
  }
}

// One float sum for each output, in the order of the rows.
std::vector<float> float_sums(const Problem& q, const std::vector<float>& left,
                              const std::vector<float>& right) {
  std::vector<float> out(q.out_elements());
  each_output(q, [&](Index i, Pair pair, Index sy, Index sx) {
    const float* const l = left.data() + pair.left * q.left.size();
    const float* const r = right.data() + pair.right * q.right.size();
    each_meeting(q, sy, sx, [&](Index a, Index b) { out[i] = std::fma(l[a], r[b], out[i]); });
  });
  return out;
}

// Their rounding errors do not average out: equal products of a fill that meets itself are rounded in one direction (seed
// 34 exceeded the bound of random errors), neighbouring sums of ones and noise share a random walk (seed 6100356 did), and
// a chirp has few different squares.
TEST(Kinds, FloatSumsWhoseErrorsAddUpPass) {
  const auto expect = [](InputKind kind, const char* id, std::uint64_t seed) {
    const Problem q = parse_problem(id);
    std::vector<float> left(q.left_elements()), right(q.right_elements());
    HostTruth truth(q, Precision::fp32, AlgorithmClass::definition, seed, std::size_t{1} << 24);
    truth.fill(kind, left.data(), right.data());
    std::vector<float> out = float_sums(q, left, right);
    const Check check = truth.check(kind, out.data());
    EXPECT_TRUE(check.passed()) << seed << ": " << check.first_wrong;
    out[3] += 0.01f * *std::max_element(out.begin(), out.end());
    EXPECT_FALSE(truth.check(kind, out.data()).passed()) << seed;
  };
  for (std::uint64_t seed = 20; seed < 40; ++seed) {
    expect(InputKind::fill, "n-to-mn/214x20/214x20/2:2/sy:-1..1,sx:0..19/same=yes", seed);
  }
  expect(InputKind::blank, "n-to-m/1x1025/1x1564/17:1/valid", 6100356);
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    expect(InputKind::flat_spectrum, "one-to-one/100x100/100x100/1:1/sy:0..9,sx:0..9/same=yes",
           seed);
  }
}

// What cuFFT's transforms of 2 x n points were measured to lose on an H100, for a left of one element and a right near 1e4.
TEST(Kinds, BoundsOfABatchOfBothSidesKnowLengthsWithLargePrimes) {
  struct Measured {
    Index right;
    double lost;
  };
  for (const Measured& of : {Measured{4096, 4.65e-6},       // 17 x 241
                             Measured{212270, 7.67e-6},     // 3 x 173 x 409
                             Measured{19900, 1.56e-5},      // 7 x 2843
                             Measured{100002, 7.80e-5},     // prime
                             Measured{131071, 3.61e-7}}) {  // 2^17
    const Problem q = parse_problem("one-to-one/1x1/1x" + std::to_string(of.right) + "/1:1/valid");
    const double right = 1e4 * std::sqrt(static_cast<double>(of.right));
    const Bounds bounds = make_bounds(q, Precision::fp32, InputKind::offset,
                                      AlgorithmClass::fft_of_both, 1, false, {1}, {right});
    const double allowed = bounds.l2(right, right, 1, right) / right;
    EXPECT_LT(of.lost, allowed) << of.right;
    EXPECT_LT(allowed, 15 * of.lost) << of.right;
  }
}

// A random problem on an H200: cuFFT at 2 x 2,916,067 points (7 x 11 x 37871) put an error of 8.4e-5 into the output at shift 0,
// which is beyond what the segment of that output allows.
TEST(Kinds, BoundsOfRoughTransformsKnowTheWholeSignal) {
  const auto allowed = [](Index right) {
    const Problem q =
        parse_problem("n-to-m/1x1/1x" + std::to_string(right) + "/1:1/sy:0..0,sx:0..354");
    const double whole = std::sqrt(static_cast<double>(right) / 3), segment = 16;
    const Bounds bounds =
        make_bounds(q, Precision::fp32, InputKind::zero_mean, AlgorithmClass::fft_of_both, 1, false,
                    {0.15}, {whole}, {segment});
    return bounds.at(bounds.of_pair(0.15, segment), 0, 0.34);
  };
  EXPECT_GT(allowed(2916066), 8.4e-5);
  EXPECT_LT(allowed(2097151), 4e-5) << "smooth lengths";
}

// 20 million products of whole numbers are more than float32 counts exactly.
TEST(Kinds, SparseInputsFindALostElementBeyond2To24Products) {
  const Problem problem = parse_problem("one-to-one/1x20000000/1x20000000/1:1/sy:0..0,sx:-1..1");
  ASSERT_EQ(sparse_rounds(problem), 2);
  Trial run("cpu_definition", problem);
  const auto lose = [](std::vector<float>& left) { left[12345678] = 0; };  // of round 0
  for (Index round = 0; round < 2; ++round) {
    run.truth.set_round(round);
    EXPECT_TRUE(run.check(InputKind::sparse).passed()) << round;
    EXPECT_EQ(run.check(InputKind::sparse, lose).wrong, round == 0 ? 3 : 0) << "at every shift";
  }
  EXPECT_TRUE(run.check(InputKind::integer, lose).passed()) << "integers see nothing";
}

}  // namespace
}  // namespace xcorr
