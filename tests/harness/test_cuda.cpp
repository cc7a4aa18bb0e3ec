// The CUDA device: its clock in every mode and against its own ceilings, its truth against the
// host's, an output beyond 2^32 elements. Skipped, and said so, where there is no CUDA device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/device/device.hpp"
#include "harness/device/device_kernels.hpp"
#include "harness/registry.hpp"
#include "harness/truth/field_truth.hpp"
#include "tests/support/cuda_fixture.hpp"
#include "tests/support/fixture.hpp"

namespace xcorr {
namespace {

// Computes truly until it is emptied, so that its point passes the check and is then timed as rows
// are, with nothing left in it but a launch.
struct Emptied final : Plan {
  explicit Emptied(std::unique_ptr<Plan> plan) : whole(std::move(plan)) {}
  void compute(const Call& call) override {
    if (empty) return launch_empty(static_cast<cudaStream_t>(call.stream));
    whole->compute(call);
  }
  std::unique_ptr<Plan> whole;
  static inline bool empty = false;
};

constexpr int kMostReadings = 500;

class CudaDevice : public OnCuda {
 protected:
  // The least time per call; stops early when it is at most `enough`. A busy host launches late,
  // never early: readings go on until one is undisturbed, and their number ends a clock that is
  // wrong.
  Seconds shortest(const std::function<void()>& work, Index count, Mode mode, Seconds enough) {
    Seconds best = 1e9;
    for (int i = 0; i < kMostReadings && best > enough; ++i) {
      best = std::min(best, device->time(work, count, mode) / static_cast<double>(count));
    }
    return best;
  }
};

TEST_F(CudaDevice, ReadsASpinOfKnownLengthInEveryMode) {
  constexpr long long kNanoseconds = 4'000'000;
  for (const Mode mode : {Mode::stream, Mode::latency, Mode::graph, Mode::cold, Mode::paper}) {
    constexpr Seconds kLength = kNanoseconds * 1e-9;
    const Seconds read =
        shortest([&] { launch_spin(kNanoseconds, stream); }, 5, mode, 1.02 * kLength);
    EXPECT_NEAR(read, kLength, 0.02 * kLength) << to_string(mode);
  }
}

// Floors are ceilings and launches divided; that holds only while rows and ceilings are read from
// one clock in one way. The best of several points, each with a batch of its own, against the best
// that --ceilings found. Both are read again until they agree, since a busy host disturbs either in
// mode graph.
TEST_F(CudaDevice, AnEmptyRowReadsWhatTheCeilingsSayOfAnEmptyLaunch) {
  constexpr std::size_t kCeilingsNeed = std::size_t{13} << 30;
  if (device->available_bytes() < kCeilingsNeed) {
    GTEST_SKIP() << "needs " << bytes_text(kCeilingsNeed) << " on the device";
  }
  // Both are read one after the other, until the host has kept its pace over one such pair.
  constexpr int kMostRounds = 30;
  Variant variant = find_variant("overlap_wise");
  variant.plan = [](const PlanRequest& request) -> std::unique_ptr<Plan> {
    return std::make_unique<Emptied>(find_variant("overlap_wise").plan(request));
  };
  for (const Mode mode : {Mode::stream, Mode::graph}) {
    const std::string name = "empty_launch_" + std::string(to_string(mode)) + "_us";
    double read_us = 0, said_us = 0, least_us = 1e9;
    const auto agree = [&] { return std::abs(read_us - said_us) <= 0.15 * said_us; };
    for (int i = 0; i < kMostRounds && !(i > 0 && agree()); ++i) {
      said_us = device->ceilings().at(name).get<double>();
      Emptied::empty = false;
      Point point(
          {&variant, Params{}, Precision::fp32, parse_problem("one-to-one/1x1/1x1/1:1/full"), mode},
          *device);
      ASSERT_EQ(point.prepare(), Outcome::passed) << point.reason();
      Emptied::empty = true;
      read_us = 1e9;
      for (int batch = 0; batch < 10; ++batch) {
        read_us = std::min(
            read_us, point.time(point.batch()).seconds * 1e6 / static_cast<double>(point.batch()));
      }
      least_us = std::min(least_us, read_us);
      ASSERT_EQ(point.outcome(), Outcome::passed) << point.reason();
    }
    EXPECT_NEAR(read_us, said_us, 0.15 * said_us) << name;
    // A row that reads less than a launch takes would agree with a slowed ceiling once.
    EXPECT_GT(least_us, 0.5 * said_us) << name;
  }
}

TEST_F(CudaDevice, PhasesAreTimedOnTheDevice) {
  Seconds forward = 1e9, inverse = 1e9;
  for (int i = 0; i < kMostReadings && (forward > 320e-6 || inverse > 620e-6); ++i) {
    const auto phases = device->phases([&](PhaseMarks& marks) {
      marks.mark("forward");
      launch_spin(300'000, stream);
      marks.mark("inverse");
      launch_spin(600'000, stream);
    });
    forward = std::min(forward, phases.at("forward"));
    inverse = std::min(inverse, phases.at("inverse"));
  }
  EXPECT_NEAR(forward, 300e-6, 20e-6);
  EXPECT_NEAR(inverse, 600e-6, 20e-6);
}

TEST_F(CudaDevice, ScoresAreThoseOfTheHost) {
  const std::unique_ptr<Device> cpu = open_cpu();
  for (const char* id :
       {"n-to-m/9x12/9x12/2:3/full/boundary=circular", "n-to-mn/9x7/6x11/2:4/full/score=covariance",
        "n-to-m/9x7/6x11/2:2/full/score=zncc:0.3",
        "n-to-m/9x7/6x11/2:2/full/score=ncc:0.5/masks=both",
        "n-to-m/5x6/9x11/2:2/valid/score=zncc:0.3/views=windows",
        "one-to-one/9x12/9x12/1:1/full/boundary=circular/score=phase:0"}) {
    const Problem problem = parse_problem(id);
    // Without a cache the surfaces come from the device as values and bounds.
    const auto values = [&](Device& of, std::size_t cache_bytes) {
      return FieldTruth(problem, Precision::fp32, AlgorithmClass::definition, 5, of, cache_bytes)
          .reference(InputKind::offset, 0, problem.pairs());
    };
    const Reference expected = values(*cpu, std::size_t{1} << 20);
    for (const std::size_t cache_bytes : {std::size_t{0}, std::size_t{1} << 20}) {
      const Reference got = values(*device, cache_bytes);
      ASSERT_EQ(got.value.size(), expected.value.size());
      for (std::size_t i = 0; i < got.value.size(); ++i) {
        EXPECT_NEAR(got.value[i], expected.value[i],
                    1e-9 * expected.bound[i] + 1e-12 + 1e-14 * std::abs(expected.value[i]))
            << id << " " << i;
        EXPECT_NEAR(got.bound[i], expected.bound[i], 1e-9 * expected.bound[i]) << id << " " << i;
      }
    }
  }
}

// Truth of the device, judged by the truth of the host: the device fills inputs, the host computes.
TEST_F(CudaDevice, TruthAgreesWithTheHosts) {
  const Problem problem = make_problem(Form::n_to_m, {9, 7}, {6, 11}, 2, 3, "full");
  for (const InputKind kind : kInputKinds) {
    const auto truth = device->truth(problem, Precision::fp64, AlgorithmClass::definition, 5);
    HostTruth host(problem, Precision::fp64, AlgorithmClass::definition, 5, 1 << 20);
    const auto elements = [](Index n) { return std::vector<double>(n); };
    std::vector<double> left = elements(problem.left_elements()),
                        right = elements(problem.right_elements());
    std::vector<double> out = elements(problem.out_elements());
    const Buffer l = device->allocate(left.size() * 8), r = device->allocate(right.size() * 8),
                 o = device->allocate(out.size() * 8);
    truth->fill(kind, l.get(), r.get());
    device->download(left.data(), l.get(), left.size() * 8);
    device->download(right.data(), r.get(), right.size() * 8);
    EXPECT_EQ(host.changed_inputs(kind, left.data(), right.data()), "");
    correlate_definition(problem, left.data(), right.data(), 0, problem.pairs(), out.data());
    device->upload(o.get(), out.data(), out.size() * 8);
    EXPECT_TRUE(truth->check(kind, o.get()).passed()) << truth->check(kind, o.get()).first_wrong;
    EXPECT_EQ(truth->changed_inputs(kind, l.get(), r.get()), "");

    out[17] = 2 * out[17] + 1e10;
    device->upload(o.get(), out.data(), out.size() * 8);
    const Check wrong = truth->check(kind, o.get());
    EXPECT_EQ(wrong.wrong, 1);
    EXPECT_EQ(wrong.first_wrong, host.check(kind, out.data()).first_wrong);

    device->fill(o.get(), 0xff, out.size() * 8);
    EXPECT_EQ(truth->check(kind, o.get()).wrong, problem.out_elements());  // NaN is never right

    left[3] += 7;
    device->upload(l.get(), left.data(), left.size() * 8);
    EXPECT_EQ(truth->changed_inputs(kind, l.get(), r.get()), "the left matrices were overwritten");
  }
}

// Every output of one pair off by a little: within the bound of each, beyond that of the pair.
TEST_F(CudaDevice, JudgesAPairAsAWholeLikeTheHost) {
  // Small enough for outputs by the definition: an FFT leaves 1e-17 where a flat spectrum gives 0.
  const Problem problem = make_problem(Form::n_to_m, {48, 48}, {48, 48}, 2, 3, "full");
  for (const AlgorithmClass of : {AlgorithmClass::definition, AlgorithmClass::fft}) {
    const auto truth = device->truth(problem, Precision::fp32, of, 5);
    HostTruth host(problem, Precision::fp32, of, 5, std::size_t{1} << 30);
    for (const InputKind kind : {InputKind::zero_mean, InputKind::flat_spectrum}) {
      Sample sample(problem, host, kind);
      const Buffer out = device->allocate(sample.out.size() * 4);
      const auto both = [&](bool right) {
        device->upload(out.get(), sample.out.data(), sample.out.size() * 4);
        const Check here = truth->check(kind, out.get()),
                    there = host.check(kind, sample.out.data());
        EXPECT_EQ(here.passed(), right) << to_string(kind) << " " << here.first_wrong;
        EXPECT_EQ(here.wrong, there.wrong);
        EXPECT_EQ(here.wrong_pairs, there.wrong_pairs);
        EXPECT_EQ(here.first_wrong, there.first_wrong);
        EXPECT_NEAR(here.rel_l2_error, there.rel_l2_error, 1e-9 * there.rel_l2_error);
        EXPECT_NEAR(here.rel_l2_bound, there.rel_l2_bound, 1e-9 * there.rel_l2_bound);
      };
      both(true);
      for (Index e = 4 * problem.out_size(); e < 5 * problem.out_size(); ++e) {
        sample.out[e] *= 1.0001f;
      }
      both(false);
    }
  }
}

// Bounds, norms of windows and errors of time series, in every precision class.
TEST_F(CudaDevice, JudgesTimeSeriesLikeTheHost) {
  for (const char* id : {"n-to-m/2x31/2x9001/3:1/valid", "n-to-m/1x8/1x200/2:2/valid"}) {
    const Problem problem = parse_problem(id);
    for (const Precision precision :
         {Precision::fp32, Precision::three_tf32, Precision::tf32, Precision::fp16}) {
      for (const AlgorithmClass of : {AlgorithmClass::definition, AlgorithmClass::fft}) {
        const auto truth = device->truth(problem, precision, of, 5);
        HostTruth host(problem, precision, of, 5, std::size_t{1} << 30);
        for (const InputKind kind : kInputKinds) {
          const Reference expected = host.reference(kind, 0, problem.pairs()),
                          got = truth->reference(kind, 0, problem.pairs());
          std::vector<float> wrong(expected.value.begin(), expected.value.end());
          for (std::size_t i = 0; i < wrong.size(); ++i) {
            ASSERT_NEAR(got.bound[i], expected.bound[i], 1e-9 * expected.bound[i])
                << id << " " << to_string(precision) << " " << to_string(kind) << " " << i;
          }
          wrong[17] += 0.25f * std::abs(wrong[17]) + 0.01f;
          const Buffer out = device->allocate(wrong.size() * sizeof(float));
          device->upload(out.get(), wrong.data(), wrong.size() * sizeof(float));
          const Check here = truth->check(kind, out.get()), there = host.check(kind, wrong.data());
          EXPECT_EQ(here.passed(), there.passed()) << id << " " << to_string(kind);
          EXPECT_NEAR(here.normalised_error, there.normalised_error,
                      1e-9 * std::abs(there.normalised_error));
        }
      }
    }
  }
}

// 67,126 pairs of 64,009 outputs: the last ones lie beyond 2^32 elements. Filled by a kernel that
// needs no correlation: one-element lefts make the output a copy of the right.
TEST_F(CudaDevice, ChecksOutputsBeyondFourGigaElements) {
  const Problem problem = make_problem(Form::one_to_many, {1, 1}, {253, 253}, 1, 67126, "full");
  ASSERT_GT(problem.out_elements(), Index{1} << 32);
  const auto bytes = static_cast<std::size_t>(problem.out_elements()) * 4;
  if (2 * bytes + device->truth_bytes(problem, Precision::fp32, AlgorithmClass::definition, 1) >
      device->available_bytes()) {
    GTEST_SKIP() << "needs " << bytes_text(2 * bytes) << " on the device";
  }
  const auto truth = device->truth(problem, Precision::fp32, AlgorithmClass::definition, 1);
  const Buffer left = device->allocate(4), right = device->allocate(bytes),
               out = device->allocate(bytes);
  truth->fill(InputKind::integer, left.get(), right.get());
  float scale = 0;
  device->download(&scale, left.get(), 4);
  std::vector<float> host(problem.right.size());
  for (Index p = 0; p < problem.rights; ++p) {
    const std::size_t offset = static_cast<std::size_t>(p) * host.size() * 4;
    device->download(host.data(), static_cast<char*>(right.get()) + offset, host.size() * 4);
    for (float& v : host) v *= scale;
    device->upload(static_cast<char*>(out.get()) + offset, host.data(), host.size() * 4);
  }
  EXPECT_TRUE(truth->check(InputKind::integer, out.get()).passed());
  const std::size_t last = bytes - 4;
  const float wrong = 1e6f;
  device->upload(static_cast<char*>(out.get()) + last, &wrong, 4);
  const Check check = truth->check(InputKind::integer, out.get());
  EXPECT_EQ(check.wrong, 1);
  expect_says(check.first_wrong, "pair 67125");
}

TEST_F(CudaDevice, RefusesAnImpossibleAllocationInOneLine) {
  EXPECT_THROW(device->allocate(std::size_t{1} << 50), OutOfMemory);
}

}  // namespace
}  // namespace xcorr
