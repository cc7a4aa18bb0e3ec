// The rule by which calls are timed behind a gate, against a queue that counts launches; when
// samples are enough; and what a point makes of a slow clock and of a call that waits for itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "harness/device/gated.hpp"
#include "harness/measure/stopping.hpp"
#include "harness/registry.hpp"
#include "tests/support/fixture.hpp"
#include "tests/support/forwarding_device.hpp"

namespace xcorr {
namespace {

constexpr Index kDepth = 1024;
constexpr Seconds kLaunch = 0x1p-20;

// A queue of kDepth launches behind a gate. A launch into a full queue waits until the gate lets go.
class Queue final : public Gate {
 public:
  void launch(Index launches = 1) {
    queued_ += launches;
    if (queued_ > kDepth) wait();
  }
  void wait() { let_go_ |= closed_; }  // as a call that waits for its work

  void close(Seconds longest_hold) override {
    held.push_back(longest_hold);
    ++closings;
    queued_ = 0;
    closed_ = true;
    let_go_ = false;
  }
  bool let_go() override { return let_go_; }
  Timed open() override {
    if (late-- > 0) wait();
    closed_ = false;
    if (!let_go_) longest = std::max(longest, queued_), parts.push_back(queued_);
    return {kLaunch * static_cast<double>(queued_), 1000};
  }

  int closings = 0;
  int late = 0;  // so many gates let go after the last call, before they are opened
  Index longest = 0;
  std::vector<Index> parts;   // launches behind each gate that held
  std::vector<Seconds> held;  // how long each gate may hold

 private:
  Index queued_ = 0;
  bool closed_ = false, let_go_ = false;
};

TEST(Gate, SplitsABatchIntoPartsOfHalfTheQueueAtMost) {
  for (const Index launches : {1, 3, 100}) {
    for (const Index count : {1, 2, 5, 340, 600, 5000}) {
      Queue queue;
      Pace pace;
      const Timed timed = time_gated(queue, [&] { queue.launch(launches); }, count, pace);
      EXPECT_DOUBLE_EQ(timed.seconds, kLaunch * static_cast<double>(count * launches));
      EXPECT_DOUBLE_EQ(timed.sm_mhz, 1000);
      EXPECT_FALSE(pace.by_host);
      Index rest = count * launches;
      for (auto part = queue.parts.rbegin(); rest > 0; ++part) {
        EXPECT_LE(*part, kDepth / 2) << count << " calls of " << launches << " launches";
        rest -= *part;
      }
      EXPECT_EQ(rest, 0);
    }
  }
}

TEST(Gate, SeeksTheLengthOfAPartOnce) {
  Queue queue;
  Pace pace;
  const auto sample = [&](Index count) {
    const int before = queue.closings;
    time_gated(queue, [&] { queue.launch(); }, count, pace);
    return queue.closings - before;
  };
  EXPECT_EQ(sample(100), 2) << "twice as many first, then the sample";
  EXPECT_EQ(sample(100), 1);
  EXPECT_EQ(sample(5000), kSearches + 10) << "parts of 512";
  EXPECT_EQ(sample(5000), 10);
}

TEST(Gate, NeverWaitsForAQueueWhoseLengthIsKnown) {
  Queue of_device;
  const Index length = search(of_device, [&] { of_device.launch(); }, kMostLaunches);
  EXPECT_EQ(length, kDepth);
  for (const Index count : {300, 600, 5000}) {
    Queue queue;
    Pace pace;
    int waits = 0;
    const auto call = [&] {
      queue.launch();
      waits += queue.let_go();
    };
    const Timed timed = time_gated(queue, call, count, pace, length);
    EXPECT_DOUBLE_EQ(timed.seconds, kLaunch * static_cast<double>(count));
    EXPECT_EQ(waits, 0) << count << " calls";
    EXPECT_EQ(queue.longest, std::min<Index>(2 * count, kDepth - kDepth / 4));
  }
}

TEST(Gate, SeeksNothingWhereTheLaunchesOfACallAreKnown) {
  for (const Index launches : {1, 2, 7, 400, 5000}) {
    Queue queue;
    Pace pace = pace_of({launches, launches}, kDepth);
    const Index count = 600;
    const Timed timed = time_gated(queue, [&] { queue.launch(launches); }, count, pace);
    EXPECT_EQ(pace.by_host, launches > kDepth) << launches;
    if (pace.by_host) continue;
    EXPECT_DOUBLE_EQ(timed.seconds, kLaunch * static_cast<double>(count * launches));
    EXPECT_LE(queue.longest, kDepth / 2) << launches;
    EXPECT_EQ(queue.closings, (count + pace.calls - 1) / pace.calls) << "no part was sought";
  }
  EXPECT_EQ(pace_of({}, kDepth).calls, 0) << "calls that cannot be captured";
}

TEST(Gate, IsNotClosedForACallWhoseChainIsLongerThanTheQueue) {
  Queue queue;
  Pace pace = pace_of({4000, 4000}, kDepth);
  time_gated(queue, [&] { queue.launch(4000); }, 1, pace, kDepth);
  EXPECT_TRUE(pace.by_host);
  EXPECT_EQ(queue.closings, 0);
}

TEST(Gate, HoldsLongFromTheFirstTryForACallWithManyLaunchesInSeveralStreams) {
  Queue queue;
  Pace pace = pace_of({4000, 200}, kDepth);
  EXPECT_FALSE(pace.by_host);
  const Timed timed =
      time_gated(queue, [&] { queue.launch(200); }, 1, pace, kDepth);  // of one of 20 streams
  EXPECT_DOUBLE_EQ(timed.seconds, 200 * kLaunch);
  EXPECT_EQ(queue.held, std::vector<Seconds>{4000 * kLaunchTime});
}

TEST(Launches, AreCountedWithTheLongestChain) {
  const auto counted = [](Index nodes, const std::vector<std::pair<Index, Index>>& edges) {
    const Launches found = count_launches(nodes, edges);
    return std::pair(found.all, found.chain);
  };
  EXPECT_EQ(counted(0, {}), std::pair(Index{0}, Index{0}));
  EXPECT_EQ(counted(1, {}), std::pair(Index{1}, Index{1}));
  EXPECT_EQ(counted(3, {{2, 1}, {1, 0}}), std::pair(Index{3}, Index{3})) << "one stream";
  EXPECT_EQ(counted(7, {{0, 1}, {1, 2}, {0, 3}, {3, 4}, {0, 5}, {2, 6}, {4, 6}, {5, 6}}),
            std::pair(Index{7}, Index{4}))
      << "three streams between a first launch and a last one";
}

TEST(Gate, MeasuresAPartAgainThatItLetGo) {
  Queue queue;
  Pace pace;
  int calls = 0;
  const Timed timed = time_gated(
      queue,
      [&] {
        queue.launch();
        if (++calls == 30) queue.wait();  // the host is held up: after 20 calls of the search
      },
      10, pace);
  EXPECT_DOUBLE_EQ(timed.seconds, 10 * kLaunch);
  EXPECT_FALSE(pace.by_host);
  EXPECT_GT(calls, 30);
}

TEST(Gate, AHostThatIsHeldUpOnceMakesNoShortParts) {
  Queue queue;
  Pace pace;
  int calls = 0;
  const auto call = [&] {
    queue.launch();
    if (++calls == 2) queue.wait();
  };
  time_gated(queue, call, 600, pace);
  EXPECT_EQ(pace.calls, kDepth / 2);
}

TEST(Gate, DiscardsAPartThatItLetGoAfterTheLastCall) {
  for (const Index count : {1, 10}) {
    Queue queue;
    queue.late = 2;
    Pace pace;
    const Timed timed = time_gated(queue, [&] { queue.launch(); }, count, pace);
    EXPECT_DOUBLE_EQ(timed.seconds, kLaunch * static_cast<double>(count));
    Index held = 0;
    for (const Index part : queue.parts) held += part;
    EXPECT_GE(held, count) << "behind gates that held";
    EXPECT_FALSE(pace.by_host);
  }
}

TEST(Gate, KnowsACallThatWaitsForItself) {
  for (const bool waits : {true, false}) {
    Queue queue;
    Pace pace;
    const auto call = [&] {
      queue.launch(waits ? 1 : 5000);
      if (waits) queue.wait();
    };
    time_gated(queue, call, 7, pace);
    EXPECT_TRUE(pace.by_host);
    EXPECT_TRUE(queue.parts.empty());
    const int closings = queue.closings;
    EXPECT_LE(closings, kSearches + kTries);
    time_gated(queue, call, 7, pace);
    EXPECT_EQ(queue.closings, closings) << "known from the first sample";
  }
}

TEST(Gate, ACallOfMoreLaunchesThanTheQueueHoldsIsTriedTwice) {
  for (const Index launches : {5000, 100}) {
    Queue queue;
    Pace pace;
    const auto call = [&] {
      queue.launch(launches);
      queue.wait();
    };
    time_gated(queue, call, 1, pace, kDepth, [&] { return Launches{launches, launches / 20}; });
    EXPECT_TRUE(pace.by_host);
    EXPECT_EQ(queue.closings, launches > kDepth ? kTriesOfMany : kTries);
  }
}

TEST(Stopping, WithoutANoiseGoogleBenchmarkCounts) {
  Stopping stopping(3, 0, 0);
  for (int i = 0; i < 9; ++i) stopping.add(10, 100, 100);
  EXPECT_FALSE(stopping.enough());
  EXPECT_EQ(stopping.reason(), "repetitions");
}

TEST(Stopping, ByNoiseNotBeforeTheLeastNumber) {
  Stopping stopping(3, 0.005, 1e9);
  for (const double us : {100.0, 100.1}) stopping.add(10, us, 1);
  EXPECT_FALSE(stopping.enough());
  stopping.add(10, 104, 1);
  EXPECT_FALSE(stopping.enough()) << "a noise of 2 %";
  for (int i = 0; i < 100 && !stopping.enough(); ++i) stopping.add(10, 100, 1);
  EXPECT_TRUE(stopping.enough());
  EXPECT_EQ(stopping.reason(), "noise");
}

TEST(Stopping, ByTime) {
  Stopping stopping(2, 0.005, 4);
  for (const double us : {100.0, 110.0, 100.0}) {
    EXPECT_FALSE(stopping.enough());
    stopping.add(10, us, 1.5);
  }
  EXPECT_TRUE(stopping.enough());
  EXPECT_EQ(stopping.reason(), "time");
}

TEST(Stopping, TrialsBeforeTheFirstSampleDoNotCount) {
  Stopping stopping(1, 0.005, 4);
  stopping.add(1, 100, 9);
  EXPECT_FALSE(stopping.enough());
  stopping.add(50, 100, 9);
  EXPECT_FALSE(stopping.enough());
  stopping.add(50, 100, 0.5);
  EXPECT_TRUE(stopping.enough());
  EXPECT_EQ(stopping.calls(), 50);
}

// A GPU by name: the CPU computes, and its clock reads what the test says, one reading a sample.
class Clocked final : public ForwardingDevice {
 public:
  explicit Clocked(bool by_host = false) : by_host_(by_host) {}
  Backend backend() const override { return Backend::cuda; }
  double default_clock_mhz() const override { return 2000; }
  Timed sample(const std::function<void()>& compute, Index count, Mode mode, Pace& pace) override {
    pace.by_host = by_host_;
    Timed timed = ForwardingDevice::sample(compute, count, mode, pace);
    timed.sm_mhz = next_ < clocks.size() ? clocks[next_++] : 2000;
    return timed;
  }
  std::optional<Seconds> empty_launch(Mode mode) override {
    return mode == Mode::stream ? 1e-6 : 3e-6;
  }
  void read(std::vector<double> mhz) { clocks = std::move(mhz), next_ = 0; }
  std::size_t readings() const { return next_; }

 private:
  bool by_host_;
  std::vector<double> clocks;
  std::size_t next_ = 0;
};

Variant on_gpu() {
  Variant variant = find_variant("broken_nothing");
  variant.backend = Backend::cuda;
  return variant;
}

struct PointOnGpu {
  explicit PointOnGpu(Mode mode = Mode::stream, bool by_host = false)
      : device(by_host),
        point({&variant, Params{}, Precision::fp32, parse_problem("one-to-one/1x1/1x1/1:1/full"),
               mode},
              device) {
    EXPECT_EQ(point.prepare(), Outcome::passed) << point.reason();
  }
  nlohmann::json record(double sm_mhz = 2000) {
    point.time(1);
    point.finish({{1, 1e6, sm_mhz}}, "noise");
    EXPECT_EQ(point.outcome(), Outcome::passed) << point.reason();
    return point.record();
  }
  Variant variant = on_gpu();
  Clocked device;
  Point point;
};

TEST(SlowClock, IsMeasuredAgainThreeTimesAtMost) {
  PointOnGpu on;
  on.device.read({1499, 1501, 1600});
  EXPECT_EQ(on.point.time(1).sm_mhz, 1501);
  EXPECT_EQ(on.device.readings(), 2u);
  on.device.read({1000, 1100, 1200, 1300, 1400});
  EXPECT_EQ(on.point.time(1).sm_mhz, 1300);
  on.device.read({0, 2000});
  EXPECT_EQ(on.point.time(1).sm_mhz, 0) << "a clock that is not known is not slow";
}

TEST(SlowClock, IsMarkedInItsRepetition) {
  for (const auto& [mhz, mark] : {std::pair{1499.0, "yes"}, {1500.0, "no"}}) {
    const nlohmann::json repetition = PointOnGpu().record(mhz).at("repetitions").at(0);
    EXPECT_EQ(repetition.at("sm_mhz"), mhz);
    EXPECT_EQ(repetition.at("slow_clock"), mark);
  }
  const nlohmann::json unknown = PointOnGpu().record(0).at("repetitions").at(0);
  EXPECT_TRUE(unknown.at("sm_mhz").is_null());
  EXPECT_EQ(unknown.at("slow_clock"), "");
}

TEST(HostPaced, IsSaidInModeStreamWithTheLaunchOfTheSameKind) {
  const auto said = [](Mode mode, bool by_host) {
    const nlohmann::json record = PointOnGpu(mode, by_host).record();
    return std::pair(record.at("host_paced").get<std::string>(),
                     record.at("launch_us").get<double>());
  };
  EXPECT_EQ(said(Mode::stream, false), std::pair(std::string("no"), 1.0));
  EXPECT_EQ(said(Mode::stream, true), std::pair(std::string("yes"), 3.0));
  EXPECT_EQ(said(Mode::paper, false), std::pair(std::string(), 3.0));
}

// A point of one sample, by a device that says that a call takes `call`: its launches.
Index launches_of(bool brief, Seconds call) {
  struct Counting final : ForwardingDevice {
    Timed sample(const std::function<void()>& compute, Index count, Mode mode,
                 Pace& pace) override {
      launches += count;
      ForwardingDevice::sample(compute, count, mode, pace);
      return {once * static_cast<double>(count)};
    }
    Seconds once = 0;
    Index launches = 0;
  } device;
  device.once = call;
  PointRequest request{&find_variant("broken_nothing"), Params{}, Precision::fp32,
                       parse_problem("one-to-one/1x1/1x1/1:1/full")};
  request.brief = brief;
  Point point(request, device);
  EXPECT_EQ(point.prepare(), Outcome::passed) << point.reason();
  EXPECT_EQ(point.batch(), 1);
  EXPECT_EQ(point.time(1).seconds, call);
  point.finish({{1, call * 1e6}});
  EXPECT_EQ(point.outcome(), Outcome::passed) << point.reason();
  return device.launches;
}

TEST(Brief, ALongPointIsLaunchedOnce) {
  const Seconds shortest = cpu().shortest_batch();
  EXPECT_EQ(launches_of(true, shortest), 1);
  EXPECT_EQ(launches_of(true, 0.9 * shortest), 2) << "one tells how many make a batch";
  EXPECT_EQ(launches_of(false, shortest), 2);
}

TEST(Batch, IsAsLongAsASampleAndNoLonger) {
  struct Pipelined final
      : ForwardingDevice {  // a call alone waits three times as long as in a batch
    Timed sample(const std::function<void()>& compute, Index count, Mode mode,
                 Pace& pace) override {
      ForwardingDevice::sample(compute, count, mode, pace);
      return {count == 1 ? 3e-6 : 1e-6 * static_cast<double>(count)};
    }
  } device;
  for (const Seconds sample_time : {0.0, 50e-6, 1.0}) {
    PointRequest request{&find_variant("broken_nothing"), Params{}, Precision::fp32,
                         parse_problem("one-to-one/1x1/1x1/1:1/full")};
    request.sample_time = sample_time;
    Point point(request, device);
    EXPECT_EQ(point.prepare(), Outcome::passed) << point.reason();
    EXPECT_EQ(point.batch(), sample_time == 50e-6 ? 62 : 125) << "microseconds, and a quarter";
  }
}

TEST(Plans, AreSamplesOfTheirOwn) {
  const nlohmann::json record = PointOnGpu().record();
  EXPECT_EQ(record.at("stopped"), "noise");
  EXPECT_GE(record.at("plans"), 3)
      << "ten, unless the machine is so slow that three take half a second";
  EXPECT_LE(record.at("plan_low_us"), record.at("plan_us"));
  EXPECT_LE(record.at("plan_us"), record.at("plan_high_us"));
}

}  // namespace
}  // namespace xcorr
