// The verdict on surfaces of problems with fields: honest float32 passes, a wrong element does not.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "harness/device/device.hpp"
#include "harness/problem/views.hpp"
#include "harness/truth/field_truth.hpp"
#include "tests/harness/fp32.hpp"
#include "tests/support/fixture.hpp"
#include "tests/support/forwarding_device.hpp"

namespace xcorr {
namespace {

constexpr std::uint64_t kSeed = 7;

std::vector<float> honest(const Problem& problem, AlgorithmClass of, InputKind kind,
                          std::uint64_t seed = kSeed) {
  const Index amplitude = exact_amplitude(problem, Precision::fp32, of);
  return fp32::outputs(problem, score_inputs(problem, kind, seed, amplitude, 0),
                       !is_definition(of) || problem.fields.score.kind == ScoreKind::phase);
}

const Texts kProblems = {
    "n-to-m/12x13/12x13/2:3/full/boundary=circular",
    "one-to-many/16x16/16x16/1:2/full/boundary=circular/score=covariance",
    "n-to-mn/9x12/14x10/2:4/full/score=covariance",
    "n-to-m/12x13/12x13/2:2/full/score=ncc:0.3",
    "n-to-m/12x13/12x13/2:2/full/score=zncc:0.3",
    "n-to-mn/5x6/20x31/2:4/valid/score=zncc:0.3",
    "one-to-one/16x16/16x16/1:1/full/score=zncc:0.3/masks=both",
    "one-to-many/8x8/20x20/1:2/valid/score=ncc:0.3/masks=left",
    "n-to-m/6x9/11x12/2:2/full/score=zncc:0.5/views=windows",
    "n-to-mn/4x30/4x50/2:2/valid/views=channels",
    "n-to-m/16x12/16x12/2:2/full/boundary=circular/score=phase:0",
    "one-to-one/64x64/64x64/1:1/sy:-5..5,sx:-5..5/boundary=circular/score=phase:0.5",
    "one-to-one/64x64/64x64/1:1/full/score=zncc:0.3"};

TEST(FieldTruth, HonestFloat32Passes) {
  const bool print = std::getenv("XCORR_PRINT_RATIOS") != nullptr;
  for (const Problem& problem : problems_of(kProblems)) {
    for (const AlgorithmClass of : {AlgorithmClass::definition, AlgorithmClass::fft}) {
      for (const InputKind kind : kInputKinds) {
        if (kind == InputKind::sparse) continue;
        const std::shared_ptr<Truth> truth = cpu().truth(problem, Precision::fp32, of, kSeed);
        const std::vector<float> out = honest(problem, of, kind);
        const Check check = truth->check(kind, out.data());
        EXPECT_TRUE(check.passed())
            << problem.id() << " " << to_string(kind) << " class " << static_cast<int>(of) << ": "
            << describe_failure(problem, check);
        if (print) {
          std::printf("%-60s %d %-13s %.3f l2 %.3f (bound %.2g)\n", problem.id().c_str(),
                      static_cast<int>(of), std::string(to_string(kind)).c_str(),
                      check.error / check.bound, check.rel_l2_error / check.rel_l2_bound,
                      check.bound);
        }
      }
    }
  }
}

// An outlier moves the mean so far that all other elements are nearly equal without it. Their squares,
// added to that of the outlier, are rounded in one direction.
TEST(FieldTruth, SquaresAboutAMeanThatAnOutlierMovedPass) {
  const Problem problem =
      parse_problem("one-to-one/1x255/1x255/1:1/sy:0..0,sx:0..6/score=covariance/same=yes");
  for (const InputKind kind : {InputKind::outlier, InputKind::fill}) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      const std::shared_ptr<Truth> truth =
          cpu().truth(problem, Precision::fp32, AlgorithmClass::definition, seed);
      std::vector<float> out = honest(problem, AlgorithmClass::definition, kind, seed);
      const Check check = truth->check(kind, out.data());
      EXPECT_TRUE(check.passed()) << to_string(kind) << " seed " << seed << ": "
                                  << describe_failure(problem, check);
      out[3] += 0.01f * out[0];
      EXPECT_FALSE(truth->check(kind, out.data()).passed()) << to_string(kind) << " seed " << seed;
    }
  }
}

// What variants for templates may do: the template has norm 1, and the frame is read less a pivot that is up to 64 norms of
// the window away from its mean. A random problem on an H200 met such a window of three elements.
TEST(FieldTruth, FewElementsFarFromAPivotPass) {
  const Problem q = parse_problem("n-to-m/1x3/4x1024/1:1/sy:0..3,sx:0..510/score=zncc:1");
  const auto norm_of = [](const double* values, double mean) {
    return std::hypot(values[0] - mean, values[1] - mean, values[2] - mean);
  };
  const auto mean_of = [](const double* values) { return (values[0] + values[1] + values[2]) / 3; };
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Index amplitude = exact_amplitude(q, Precision::fp32, AlgorithmClass::definition);
    const ScoreInputs in = score_inputs(q, InputKind::integer, seed, amplitude, 0);
    const double mean = mean_of(in.left.data()), norm = norm_of(in.left.data(), mean);
    std::vector<float> out;
    each_shift(q, [&](Index sy, Index sx) {
      const double* const window = in.right.data() + sy * q.right.cols + sx;
      const double here = mean_of(window), deviation = norm_of(window, here);
      const auto far = static_cast<double>(amplitude);
      const double pivot = here - std::min(far, 60 * deviation / std::sqrt(3.0));
      float sum = 0;
      for (int i = 0; i < 3; ++i) {
        sum = std::fma(static_cast<float>((in.left[i] - mean) / norm),
                       static_cast<float>(window[i] - pivot), sum);
      }
      out.push_back(
          deviation == 0 ? 0 : std::clamp(sum * static_cast<float>(1 / deviation), -1.0f, 1.0f));
    });
    const auto truth = cpu().truth(q, Precision::fp32, AlgorithmClass::definition, seed);
    const Check check = truth->check(InputKind::integer, out.data());
    EXPECT_TRUE(check.passed()) << "seed " << seed << ": " << describe_failure(q, check);
    out[17] += out[17] > 0 ? -1e-5f : 1e-5f;
    EXPECT_FALSE(truth->check(InputKind::integer, out.data()).passed()) << "seed " << seed;
  }
}

// Masks and the least overlap leave one or two scores of a window of 36.
TEST(FieldTruth, FewScoresOfAWindowMayLoseMoreThanTheirAverage) {
  const Problem problem =
      parse_problem("one-to-many/32x92/42x92/1:40/sy:-31..-14,sx:-91..-90/score=zncc:1/masks=both");
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const std::shared_ptr<Truth> truth =
        cpu().truth(problem, Precision::fp32, AlgorithmClass::fft, seed);
    std::vector<float> out = honest(problem, AlgorithmClass::fft, InputKind::alternating, seed);
    const Check check = truth->check(InputKind::alternating, out.data());
    EXPECT_TRUE(check.passed()) << "seed " << seed << ": " << describe_failure(problem, check);
    for (float& value : out) value *= 0.999f;
    EXPECT_FALSE(truth->check(InputKind::alternating, out.data()).passed()) << "seed " << seed;
  }
}

// The transforms are its references, of problems of every size.
class ByTransforms : public ForwardingDevice {
 public:
  Index score_definition_fmas() const override { return 0; }
};

TEST(FieldTruth, TransformsGiveTheSameReference) {
  for (const Problem& problem : problems_of(kProblems)) {
    ByTransforms transforms;
    const std::unique_ptr<Device> definition = open_cpu();
    const auto values = [&](Device& device) {
      return device.truth(problem, Precision::fp32, AlgorithmClass::fft, kSeed)
          ->reference(InputKind::zero_mean, 0, problem.pairs());
    };
    const Reference a = values(*definition), b = values(transforms);
    ASSERT_EQ(a.value.size(), b.value.size());
    for (std::size_t i = 0; i < a.value.size(); ++i) {
      ASSERT_NEAR(a.value[i], b.value[i], 1e-9) << problem.id() << " " << i;
      ASSERT_NEAR(a.bound[i], b.bound[i], 1e-6 * a.bound[i]) << problem.id() << " " << i;
    }
    // The comparison with transforms and the sample by the definition both pass.
    const std::vector<float> out = honest(problem, AlgorithmClass::fft, InputKind::zero_mean);
    const auto truth = transforms.truth(problem, Precision::fp32, AlgorithmClass::fft, kSeed);
    const Check check = truth->check(InputKind::zero_mean, out.data());
    EXPECT_TRUE(check.passed()) << problem.id() << ": " << describe_failure(problem, check);
  }
}

TEST(FieldTruth, SurfacesWithoutACacheAreTheSame) {
  const std::unique_ptr<Device> device = open_cpu();
  for (const Problem& problem : problems_of(kProblems)) {
    const auto values = [&](std::size_t cache_bytes) {
      return FieldTruth(problem, Precision::fp32, AlgorithmClass::fft, kSeed, *device, cache_bytes)
          .reference(InputKind::contrast, 0, problem.pairs());
    };
    const Reference kept = values(std::size_t{1} << 24), fresh = values(0);
    EXPECT_EQ(kept.value, fresh.value) << problem.id();
    EXPECT_EQ(kept.bound, fresh.bound) << problem.id();
  }
}

TEST(FieldTruth, OneWrongElementIsFoundAndNamed) {
  for (const Problem& problem : problems_of(kProblems)) {
    const auto truth = cpu().truth(problem, Precision::fp32, AlgorithmClass::definition, kSeed);
    std::vector<float> out = honest(problem, AlgorithmClass::definition, InputKind::zero_mean);
    const Reference reference = truth->reference(InputKind::zero_mean, 0, problem.pairs());
    const std::size_t last = out.size() - 1;
    for (const double by : {4 * reference.bound[last] + 1e-30, static_cast<double>(NAN)}) {
      const float kept = out[last];
      out[last] = static_cast<float>(reference.value[last] + by);
      const Check check = truth->check(InputKind::zero_mean, out.data());
      EXPECT_EQ(check.wrong, 1) << problem.id() << " " << by;
      EXPECT_EQ(check.first_wrong.rfind("pair " + std::to_string(problem.pairs() - 1) + " ", 0), 0u)
          << check.first_wrong;
      out[last] = kept;
    }
  }
}

TEST(FieldTruth, ScoresBeyondOneAreWrong) {
  const Problem problem = parse_problem("one-to-one/4x4/4x4/1:1/full/score=ncc:0.01/same=yes");
  const auto truth = cpu().truth(problem, Precision::fp32, AlgorithmClass::definition, kSeed);
  std::vector<float> out = honest(problem, AlgorithmClass::definition, InputKind::zero_mean);
  const std::size_t centre = out.size() / 2;
  EXPECT_EQ(out[centre], 1.0f);
  EXPECT_TRUE(truth->check(InputKind::zero_mean, out.data()).passed());
  out[centre] = std::nextafter(1.0f, 2.0f);
  EXPECT_EQ(truth->check(InputKind::zero_mean, out.data()).wrong, 1);
}

TEST(FieldTruth, WrittenInputsAreFound) {
  const Problem problem = parse_problem("n-to-m/6x9/11x12/2:2/full/score=zncc:0.5/views=windows");
  const auto truth = cpu().truth(problem, Precision::fp32, AlgorithmClass::definition, kSeed);
  const auto array = [&](Side side) {
    return std::vector<float>(view_layout(problem, side, kSeed).elements);
  };
  std::vector<float> left = array(Side::left), right = array(Side::right);
  truth->fill(InputKind::uniform, left.data(), right.data());
  EXPECT_EQ(truth->changed_inputs(InputKind::uniform, left.data(), right.data()), "");
  right.back() += 1;
  EXPECT_EQ(truth->changed_inputs(InputKind::uniform, left.data(), right.data()),
            "the right matrices were overwritten");
}

}  // namespace
}  // namespace xcorr
