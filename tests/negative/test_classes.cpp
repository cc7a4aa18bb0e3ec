// The bounds of time series tell the precision classes apart, and find a lost block in each
// (harness/verdict/bounds.hpp).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "harness/registry.hpp"
#include "tests/support/fixture.hpp"

namespace xcorr {
namespace {

const Texts kSeries = {"n-to-m/1x256/1x5000/3:1/valid", "n-to-m/1x31/1x900/5:1/valid",
                       "n-to-m/3x64/3x700/4:1/valid", "one-to-one/1x8/1x2000/1:1/valid",
                       "n-to-m/1x1024/1x6000/2:1/valid"};
constexpr InputKind kJudged[] = {InputKind::integer, InputKind::zero_mean, InputKind::uniform};
// What a variant computes on one kind of input, judged as the class `precision`.
Check judged(const char* id, const Problem& problem, Precision precision, InputKind kind) {
  return Trial(id, problem, precision).check(kind);
}

std::string name(const Problem& problem, Precision precision, InputKind kind, const Check& check) {
  return problem.id() + " " + std::string(to_string(precision)) + " " +
         std::string(to_string(kind)) + ": " + check.first_wrong;
}

TEST(Classes, TheDeclaredArithmeticPassesWithEveryInput) {
  Texts ids = kSeries;
  ids.insert(ids.end(), {"n-to-m/1x1/1x3000/2:1/valid", "n-to-m/1x2/1x2/2:1/valid"});
  for (const Problem& problem : problems_of(ids)) {
    for (const Precision precision : find_variant("broken_no_class").precisions) {
      for (const InputKind kind : kInputKinds) {
        if (!holds(precision, kind)) continue;
        const Check check = judged("broken_no_class", problem, precision, kind);
        EXPECT_TRUE(check.passed()) << name(problem, precision, kind, check);
      }
    }
  }
}

TEST(Classes, ALostBlockOfOneTemplateIsFoundByEachInput) {
  for (const Problem& problem : problems_of(kSeries)) {
    for (const Precision precision : find_variant("broken_lost_block").precisions) {
      for (const InputKind kind : kJudged) {
        const Check check = judged("broken_lost_block", problem, precision, kind);
        EXPECT_FALSE(check.passed()) << name(problem, precision, kind, check);
      }
    }
  }
}

// By at least one of the inputs that each point is checked with.
TEST(Classes, FewerDigitsThanDeclaredAreFound) {
  for (const char* variant : {"broken_tf32_declared", "broken_bf16x3_declared",
                              "broken_bf16_declared", "broken_truncated"}) {
    for (const Problem& problem : problems_of(kSeries)) {
      for (const Precision precision : find_variant(variant).precisions) {
        const bool passed = std::ranges::all_of(kJudged, [&](InputKind kind) {
          return judged(variant, problem, precision, kind).passed();
        });
        EXPECT_FALSE(passed) << variant << " " << problem.id() << " " << to_string(precision);
      }
    }
  }
}

// A bound on the norm of the whole signal would grow with it.
TEST(Classes, Tf32DeclaredAsATransformOfALongSignalIsFound) {
  const Problem problem = parse_problem("one-to-one/1x64/1x300000/1:1/valid");
  HostTruth truth(problem, Precision::fp32, AlgorithmClass::fft, 1, std::size_t{1} << 30);
  std::vector<float> left(64), right(300000);
  for (const InputKind kind : {InputKind::zero_mean, InputKind::uniform}) {
    truth.fill(kind, left.data(), right.data());
    const auto compute = [&](Precision precision) {
      Planned planned(find_variant("broken_no_class"), problem, {}, precision);
      return truth.check(kind, planned.compute({left.data(), right.data()}));
    };
    EXPECT_TRUE(compute(Precision::fp32).passed()) << to_string(kind);
    EXPECT_GT(compute(Precision::tf32).wrong, 0) << to_string(kind) << ": by single outputs";
  }
}

TEST(Classes, WholeNumbersAreExactInEach) {
  for (const auto& [precision, most] : {std::pair{Precision::tf32, Index{2048}},
                                        {Precision::fp16, 2048},
                                        {Precision::three_tf32, 2048},
                                        {Precision::bf16x3, 256}}) {
    for (const Index terms : {1, 2, 3, 7, 255, 256, 257, 4096}) {
      const Problem problem =
          make_problem(Form::n_to_m, {1, terms}, {1, terms + 40}, 3, 1, "valid");
      const Index amplitude = exact_amplitude(problem, precision, AlgorithmClass::definition);
      EXPECT_LE(amplitude, most);
      EXPECT_LE(amplitude * amplitude * terms, kExactSum);
      if (terms <= 256) {
        EXPECT_GE(amplitude, 256);
      }
      EXPECT_EQ(judged("broken_no_class", problem, precision, InputKind::integer).wrong, 0)
          << to_string(precision) << " " << terms;
    }
  }
}

TEST(Classes, TheNormalisedErrorIsThatOfTheWorstOutput) {
  const Problem problem = parse_problem("n-to-m/2x3/2x8/2:1/valid");
  HostTruth truth(problem, Precision::tf32, AlgorithmClass::definition, 1, std::size_t{1} << 20);
  Sample sample(problem, truth, InputKind::zero_mean);
  const float before = sample.out[8];  // of template 1 at shift 2
  sample.out[8] += 0.25f;
  double left2 = 0, window2 = 0;
  each_meeting(problem, 0, 2, [&](Index l, Index r) {
    left2 += std::pow(sample.left[static_cast<std::size_t>(6 + l)], 2.0);
    window2 += std::pow(sample.right[static_cast<std::size_t>(r)], 2.0);
  });
  const double error = static_cast<double>(sample.out[8]) - static_cast<double>(before);
  EXPECT_NEAR(truth.check(InputKind::zero_mean, sample.out.data()).normalised_error,
              error / std::sqrt(left2 * window2), 1e-6);
  EXPECT_LT(truth.check(InputKind::integer, sample.out.data()).normalised_error, 0);
  const Problem plane = parse_problem("one-to-one/4x4/4x4/1:1/full");
  HostTruth other(plane, Precision::fp32, AlgorithmClass::definition, 1, std::size_t{1} << 20);
  EXPECT_LT(other.check(InputKind::uniform, Sample(plane, other, InputKind::uniform).out.data())
                .normalised_error,
            0);
}

TEST(Classes, ErrorsOfTf32AreThoseOfThePaper) {
  const Problem problem = parse_problem("n-to-m/1x256/1x20000/16:1/valid");
  for (const InputKind kind : {InputKind::zero_mean, InputKind::uniform}) {
    const double error = judged("broken_no_class", problem, Precision::tf32, kind).normalised_error;
    EXPECT_GT(error, 4e-5);
    EXPECT_LT(error, 1.3e-4);
  }
}

// To the 11 significant bits of tf32.
double of_tf32(double v) {
  int exponent = 0;
  const double scaled = std::ldexp(std::frexp(v, &exponent), 11);
  return std::ldexp(std::nearbyint(scaled), exponent - 11);
}

// zncc of samples that are rounded to tf32 after `pivot` is removed; all else in float64. A pivot of
// NaN stands for the mean of each stretch.
std::vector<float> rounded_zncc(const Problem& q, const std::vector<float>& left,
                                const std::vector<float>& right, double pivot) {
  const auto terms = static_cast<double>(q.left.cols);
  const auto mean = [&](const float* from) {
    return std::accumulate(from, from + q.left.cols, 0.0) / terms;
  };
  std::vector<float> out;
  std::vector<double> l, r;
  for (Index p = 0; p < q.lefts; ++p) {
    for (Index s = 0; s < q.out_size(); ++s) {
      const auto deviations = [&](const float* from, std::vector<double>& to) {
        const double about = std::isnan(pivot) ? mean(from) : pivot;
        to.clear();
        for (Index x = 0; x < q.left.cols; ++x) {
          to.push_back(of_tf32(static_cast<double>(from[x]) - about));
        }
        const double rest = std::accumulate(to.begin(), to.end(), 0.0) / terms;
        for (double& v : to) v -= rest;
      };
      if (s == 0 || std::isnan(pivot)) deviations(left.data() + p * q.left.cols, l);
      deviations(right.data() + s, r);
      const auto dot = [](const auto& a, const auto& b) {
        return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
      };
      out.push_back(static_cast<float>(dot(l, r) / std::sqrt(dot(l, l) * dot(r, r))));
    }
  }
  return out;
}

// A bound of the class alone would allow it: zncc of zero-mean data may err by far more.
TEST(Classes, AMeanThatIsRoundedWithTheSamplesIsFound) {
  const Problem problem = parse_problem("n-to-m/1x64/1x100063/1:1/valid/score=zncc:0.3");
  const auto truth = cpu().truth(problem, Precision::tf32, AlgorithmClass::definition, /*seed=*/1);
  std::vector<float> left(64), right(100063);
  truth->fill(InputKind::drift, left.data(), right.data());
  const auto check = [&](double pivot) {
    const std::vector<float> out = rounded_zncc(problem, left, right, pivot);
    return truth->check(InputKind::drift, out.data());
  };
  EXPECT_TRUE(check(std::nan("")).passed()) << check(std::nan("")).first_wrong;
  const double whole = std::accumulate(right.begin(), right.end(), 0.0) / 100063;
  EXPECT_FALSE(check(whole).passed()) << "the mean of the whole signal";
  EXPECT_FALSE(check(0).passed()) << "no mean";
}

// Scores have the bound of their class: a lost block of 8 of 256 samples is found in tf32, and tf32 in
// place of float32 grade.
TEST(Classes, ALostBlockOfAScoreIsFound) {
  const Problem problem = parse_problem("n-to-m/1x256/1x1255/2:1/valid/score=zncc:0.3");
  std::vector<float> left(512), right(1255);
  for (const InputKind kind : {InputKind::zero_mean, InputKind::uniform, InputKind::offset}) {
    const auto check = [&](Precision precision, const std::vector<float>& templates) {
      const std::vector<float> out = rounded_zncc(problem, templates, right, std::nan(""));
      const auto truth = cpu().truth(problem, precision, AlgorithmClass::definition, /*seed=*/1);
      return truth->check(kind, out.data());
    };
    cpu()
        .truth(problem, Precision::tf32, AlgorithmClass::definition, /*seed=*/1)
        ->fill(kind, left.data(), right.data());
    EXPECT_TRUE(check(Precision::tf32, left).passed()) << to_string(kind);
    EXPECT_FALSE(check(Precision::three_tf32, left).passed()) << to_string(kind);
    std::vector<float> lost = left;
    const auto mean = std::accumulate(left.begin() + 256, left.end(), 0.0) / 256;
    std::fill(lost.end() - 8, lost.end(), static_cast<float>(mean));
    EXPECT_GT(check(Precision::tf32, lost).wrong, 0) << to_string(kind);
  }
}

// The points of the program: outcome and reason.
TEST(Classes, FaultsAreFoundInPoints) {
  const Problem problem = parse_problem("n-to-m/1x64/1x500/3:1/valid");
  for (const auto& [id, precision, passes] :
       {std::tuple{"broken_no_class", Precision::tf32, true},
        {"broken_lost_block", Precision::tf32, false},
        {"broken_tf32_declared", Precision::three_tf32, false},
        {"broken_bf16x3_declared", Precision::fp32, false}}) {
    Point point({&find_variant(id), Params{}, precision, problem}, cpu());
    EXPECT_EQ(live(point, 1), passes ? Outcome::passed : Outcome::incorrect)
        << id << ": " << point.reason();
    if (!passes) continue;
    const auto error = point.record()["normalised_error"].get<double>();
    EXPECT_GT(error, 1e-6);
    EXPECT_LT(error, 1e-3);
  }
}

}  // namespace
}  // namespace xcorr
