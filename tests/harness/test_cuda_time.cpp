// Mode stream on a GPU: kernels of known length, launched in the ways of variants by a host that is
// slower than they are. Skipped, and said so, where there is no CUDA device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/device/cuda_timer.hpp"
#include "harness/device/device.hpp"
#include "harness/device/device_kernels.hpp"
#include "tests/harness/timed_kernels.hpp"
#include "tests/support/cuda_fixture.hpp"

namespace xcorr {
namespace {

constexpr long long kNanoseconds = 1'000'000;
constexpr Seconds kLength = kNanoseconds * 1e-9;
// A disturbed reading is longer than the truth, never shorter. Their number ends a clock that is
// wrong.
constexpr int kMostReadings = 50;

class CudaTime : public OnCuda {
 protected:
  // The shortest reading for a call; stops early when it is at most `enough`.
  Seconds shortest(const std::function<void()>& call, Index count, Seconds enough, Pace& pace) {
    Seconds least = 1e9;
    for (int i = 0; i < kMostReadings && least > enough; ++i) {
      least = std::min(least, device->sample(call, count, Mode::stream, pace).seconds /
                                  static_cast<double>(count));
    }
    return least;
  }

  void expect_read(const std::function<void()>& call, Index count, Seconds length) {
    Pace pace;
    EXPECT_NEAR(shortest(call, count, 1.02 * length, pace), length, 0.02 * length);
    EXPECT_FALSE(pace.by_host);
  }
};

// A chain of square roots takes at least 15 cycles each: 1.8 ms on a core with 5 GHz.
void work_on_the_host() {
  double chain = 2;
  for (int step = 0; step < 600'000; ++step) chain = std::sqrt(chain + 1);
  volatile const double kept = chain;
  static_cast<void>(kept);
}

TEST_F(CudaTime, ASlowHostIsNotInTheTime) {
  const auto call = [&] {
    launch_spin(kNanoseconds, stream);
    work_on_the_host();
  };
  expect_read(call, 8, kLength);
  EXPECT_GT(device->time(call, 8, Mode::paper), 1.5 * 8 * kLength) << "in mode paper it is";
}

TEST_F(CudaTime, TwoStreamsRunBesideEachOther) {
  cudaStream_t made{};
  require_cuda(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "stream");
  const CudaStream other(made);
  const CudaEvent forked = make_event(), joined = make_event();
  const auto call = [&] {
    cudaEventRecord(forked.get(), stream);
    cudaStreamWaitEvent(other.get(), forked.get(), 0);
    launch_spin(kNanoseconds, stream);
    work_on_the_host();
    launch_spin(kNanoseconds, other.get());
    cudaEventRecord(joined.get(), other.get());
    cudaStreamWaitEvent(stream, joined.get(), 0);
  };
  expect_read(call, 8, kLength);
}

TEST_F(CudaTime, DependentLaunches) {
  const auto call = [&] {
    launch_dependent_spin(kNanoseconds, stream);
    work_on_the_host();
  };
  expect_read(call, 8, kLength);
}

// All SMs are needed at once, also the one on which the gate ran.
TEST_F(CudaTime, CooperativeLaunches) {
  const auto call = [&] {
    launch_cooperative_spin(kNanoseconds, stream);
    work_on_the_host();
  };
  expect_read(call, 8, kLength);
}

TEST_F(CudaTime, FiveThousandLaunchesAreMeasuredInParts) {
  constexpr long long kShort = 200'000;
  Pace pace;
  const Seconds read =
      shortest([&] { launch_spin(kShort, stream); }, 5000, 1.02 * kShort * 1e-9, pace);
  EXPECT_NEAR(read, kShort * 1e-9, 0.02 * kShort * 1e-9);
  EXPECT_FALSE(pace.by_host);
  EXPECT_TRUE(pace.limited) << "a queue of more than 10,000 launches";
  EXPECT_LE(pace.calls, 2500);
}

TEST_F(CudaTime, ACallOfFiveThousandLaunchesEnds) {
  constexpr long long kShort = 50'000;
  Pace pace;
  const auto call = [&] {
    for (int i = 0; i < 5000; ++i) launch_spin(kShort, stream);
  };
  EXPECT_NEAR(shortest(call, 1, 1.1 * 5000 * kShort * 1e-9, pace), 5000 * kShort * 1e-9,
              0.1 * 5000 * kShort * 1e-9);
  EXPECT_TRUE(pace.by_host);
}

TEST_F(CudaTime, ACallThatSynchronisesIsHostPacedAndEnds) {
  Pace pace;
  const auto call = [&] {
    launch_spin(kNanoseconds, stream);
    require_cuda(cudaStreamSynchronize(stream), "stream");
  };
  const Seconds read = shortest(call, 8, 1.1 * kLength, pace);
  EXPECT_TRUE(pace.by_host);
  EXPECT_NEAR(read, kLength, 0.1 * kLength);
}

TEST_F(CudaTime, CyclesAreTimeTimesClock) {
  constexpr long long kCycles = 2'000'000;
  for (const Mode mode : {Mode::stream, Mode::paper}) {
    Pace pace;
    double cycles = 1e18;
    for (int i = 0; i < kMostReadings && cycles > 1.02 * kCycles; ++i) {
      const Timed timed = device->sample([&] { launch_cycles(kCycles, stream); }, 20, mode, pace);
      cycles = std::min(cycles, timed.seconds * timed.sm_mhz * 1e6 / 20);
      EXPECT_LE(timed.sm_mhz, 1.05 * device->default_clock_mhz());
    }
    EXPECT_NEAR(cycles, kCycles, 0.02 * kCycles) << to_string(mode);
  }
}

TEST_F(CudaTime, AGateThatNobodyOpensLetsGoAndSaysSo) {
  CudaGate gate(device->facts().at("multiprocessors").get<int>(), stream);
  gate.close(1e-3);
  require_cuda(cudaStreamSynchronize(stream), "stream");
  EXPECT_TRUE(gate.let_go());
  gate.open();
  EXPECT_TRUE(gate.let_go()) << "known after the sample";
  gate.close(60);
  EXPECT_FALSE(gate.let_go());
  gate.open();
  EXPECT_FALSE(gate.let_go());
}

}  // namespace
}  // namespace xcorr
