// The clock of the harness reads a busy loop of known length within 2 %. A machine that does other
// things makes a batch longer, never shorter: batches go on until one is undisturbed. Their number
// ends a clock that is wrong; a loaded machine has an undisturbed millisecond long before.
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/registry.hpp"
#include "tests/support/fixture.hpp"
#include "tests/support/forwarding_device.hpp"

namespace xcorr {
namespace {

constexpr Seconds kLength = 300e-6;
constexpr int kMostBatches = 20000;

// The least time per call; stops early when it is at most `enough`.
Seconds least_per_call(Point& point, Index count, Seconds enough) {
  Seconds least = 1e9;
  for (int i = 0; i < kMostBatches && least > enough; ++i) {
    least = std::min(least, point.time(count).seconds / static_cast<double>(count));
  }
  return least;
}

class Timing : public testing::TestWithParam<Mode> {};

TEST_P(Timing, ReadsABusyLoopWithinTwoPercent) {
  Point point({&find_variant("spin_300us"), Params{}, Precision::fp32,
               parse_problem("one-to-one/1x1/1x1/1:1/full"), GetParam()},
              cpu());
  ASSERT_EQ(point.prepare(), Outcome::passed) << point.reason();
  EXPECT_EQ(point.batch(), 1) << "0.3 ms are long enough alone";
  for (const Index count : {1, 4}) {
    const Seconds seen = least_per_call(point, count, 1.02 * kLength);
    EXPECT_GE(seen, kLength) << count << " calls";
    EXPECT_LE(seen, 1.02 * kLength) << count << " calls";
  }
  point.finish({{1, kLength * 1e6}});
  EXPECT_EQ(point.outcome(), Outcome::passed) << point.reason();
}

INSTANTIATE_TEST_SUITE_P(Modes, Timing,
                         testing::Values(Mode::stream, Mode::latency, Mode::cold, Mode::paper),
                         [](const auto& info) { return std::string(to_string(info.param)); });

// Says that every call takes the same time, however busy the machine is.
class SteadyDevice final : public ForwardingDevice {
 public:
  explicit SteadyDevice(Seconds call) : call_(call) {}
  Timed sample(const std::function<void()>& compute, Index count, Mode mode, Pace& pace) override {
    ForwardingDevice::sample(compute, count, mode, pace);
    return {call_ * static_cast<double>(count)};
  }
  Seconds shortest_batch() const override { return 0x1p-10; }

 private:
  Seconds call_;
};

Index batch_of_calls_of(Seconds call) {
  SteadyDevice device(call);
  Point point({&find_variant("broken_nothing"), Params{}, Precision::fp32,
               parse_problem("one-to-one/1x1/1x1/1:1/full")},
              device);
  EXPECT_EQ(point.prepare(), Outcome::passed) << point.reason();
  return point.batch();
}

TEST(Batches, FillTheShortestTimeThatTheClockMeasures) {
  EXPECT_EQ(batch_of_calls_of(0x1p-16), 80) << "64, and a quarter more";
  EXPECT_EQ(batch_of_calls_of(1), 1) << "one call is long enough";
  EXPECT_EQ(batch_of_calls_of(0), 10000) << "a call of no length ends, too";
}

}  // namespace
}  // namespace xcorr
