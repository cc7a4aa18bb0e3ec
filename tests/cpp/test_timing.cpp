// The clock of the harness reads a busy loop of known length within 2 %. The least of several
// batches is taken: a machine that does other things makes a batch longer, never shorter.
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/registry.hpp"
#include "tests/cpp/fixture.hpp"

namespace xcorr {
namespace {

constexpr Seconds kLength = 2e-3;

Seconds least_per_call(Point& point, Index count, int batches) {
  Seconds least = 1e9;
  for (int i = 0; i < batches; ++i) {
    least = std::min(least, point.time(count) / static_cast<double>(count));
  }
  return least;
}

class Timing : public testing::TestWithParam<Mode> {};

TEST_P(Timing, ReadsABusyLoopWithinTwoPercent) {
  const std::unique_ptr<Device> device = open_cpu();
  Point point({&find_variant("spin_2ms"), Params{}, Precision::fp32,
               problem_of("one-to-one/1x1/1x1/1:1/full"), GetParam()},
              *device);
  ASSERT_EQ(point.prepare(), Outcome::passed) << point.reason();
  EXPECT_EQ(point.batch(), 1) << "2 ms are long enough alone";
  // A cold batch flushes all caches before each call, which takes far longer than the call.
  const bool cold = GetParam() == Mode::cold;
  for (const Index count : {1, 4}) {
    const Seconds seen = least_per_call(point, count, cold ? 3 : 12);
    EXPECT_GE(seen, kLength) << count << " calls";
    EXPECT_LE(seen, 1.02 * kLength) << count << " calls";
  }
  point.finish({{1, kLength * 1e6}});
  EXPECT_EQ(point.outcome(), Outcome::passed) << point.reason();
}

INSTANTIATE_TEST_SUITE_P(Modes, Timing, testing::Values(Mode::stream, Mode::latency, Mode::cold),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST(Batches, OfAShortCallFillTheShortestTimeThatTheClockMeasures) {
  const std::unique_ptr<Device> device = open_cpu();
  Point point({&find_variant("broken_nothing"), Params{}, Precision::fp32,
               problem_of("one-to-one/1x1/1x1/1:1/full")},
              *device);
  ASSERT_EQ(point.prepare(), Outcome::passed) << point.reason();
  EXPECT_GT(point.batch(), 10);
  EXPECT_LE(point.batch(), 10000);
}

}  // namespace
}  // namespace xcorr
