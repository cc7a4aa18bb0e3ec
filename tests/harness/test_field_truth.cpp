// The verdict on surfaces of problems with fields: honest float32 passes, a wrong element does not.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "harness/device.hpp"
#include "harness/field_truth.hpp"
#include "tests/harness/fp32.hpp"
#include "tests/support/fixture.hpp"

namespace xcorr {
namespace {

constexpr std::uint64_t kSeed = 7;

std::vector<float> honest(const Problem& problem, AlgorithmClass of, InputKind kind) {
  const Index amplitude = exact_amplitude(problem, Precision::fp32, of);
  return fp32::outputs(problem, score_inputs(problem, kind, kSeed, amplitude, 0),
                       !is_definition(of) || problem.fields.score.kind == ScoreKind::phase);
}

const std::string kProblems[] = {
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
  for (const std::string& id : kProblems) {
    const Problem problem = parse_problem(id);
    for (const AlgorithmClass of : {AlgorithmClass::definition, AlgorithmClass::fft}) {
      const std::unique_ptr<Device> device = open_cpu();
      for (const InputKind kind : kInputKinds) {
        if (kind == InputKind::sparse) continue;
        const std::shared_ptr<Truth> truth = device->truth(problem, Precision::fp32, of, kSeed);
        const std::vector<float> out = honest(problem, of, kind);
        const Check check = truth->check(kind, out.data());
        EXPECT_TRUE(check.passed())
            << id << " " << to_string(kind) << " class " << static_cast<int>(of) << ": "
            << describe_failure(problem, check);
        if (print) {
          std::printf("%-60s %d %-13s %.3f l2 %.3f (bound %.2g)\n", id.c_str(),
                      static_cast<int>(of), std::string(to_string(kind)).c_str(),
                      check.error / check.bound, check.rel_l2_error / check.rel_l2_bound,
                      check.bound);
        }
      }
    }
  }
}

}  // namespace
}  // namespace xcorr
