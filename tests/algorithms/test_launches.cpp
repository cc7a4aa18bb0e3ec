// What the launching page of algorithms/device/ asks of the CUDA runtime, on any machine: a fake
// runtime (fake_cuda/) notes it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "algorithms/device/launch.hpp"

namespace xcorr {
namespace {

using Asked = std::vector<std::string>;

void kernel(int) {}
void other_kernel(int) {}

class Launches : public testing::Test {
 protected:
  Launches() { cuda = FakeCuda(); }

  static Call call_of(bool exclusive, std::uintptr_t stream = 1) {
    Call call;
    call.stream = reinterpret_cast<void*>(stream);
    call.exclusive = exclusive;
    return call;
  }
  // What a call of one launch asks for.
  Asked call(GridLaunches& launches, const Call& call) {
    cuda.asked.clear();
    launches.begin(call);
    launches.run(kernel, 132, 256, 0, call.stream, 1);
    return cuda.asked;
  }
  // A call of two launches.
  Asked call(DependentLaunches& launches, const Call& call) {
    cuda.asked.clear();
    launches.begin(call);
    for (int i = 0; i < 2; ++i) launches.run(kernel, dim3(9), dim3(32), 0, call.stream, 1);
    return cuda.asked;
  }
  FakeCuda& cuda = FakeCuda::state();
};

TEST_F(Launches, OfALibraryAreAlwaysCooperative) {
  GridLaunches launches;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(call(launches, call_of(false)), Asked{"cooperative"});
}

TEST_F(Launches, OfTheHarnessOverlapFromTheSecondOn) {
  GridLaunches launches;
  EXPECT_EQ(call(launches, call_of(true)), Asked{"cooperative"});
  EXPECT_EQ(call(launches, call_of(true)), Asked{"dependent"});
  EXPECT_EQ(call(launches, call_of(false)), Asked{"cooperative"});
  EXPECT_EQ(call(launches, call_of(true)), Asked{"dependent"});
}

TEST_F(Launches, OfSeveralStreamsFollowEachOther) {
  GridLaunches one, two;
  call(one, call_of(true, 1));
  EXPECT_EQ(call(two, call_of(true, 2)), (Asked{"wait", "cooperative"}));
  EXPECT_EQ(call(one, call_of(true, 1)), (Asked{"wait", "dependent"}));
}

TEST_F(Launches, AreCooperativeWhereProcessesShareTheDevice) {
  cuda.mps = 1;
  GridLaunches launches;
  call(launches, call_of(true));
  EXPECT_EQ(call(launches, call_of(true)), Asked{"cooperative"});
}

// A driver that is older than the attribute: no failure, now or at the next launch.
TEST_F(Launches, AreCooperativeWhereTheDriverCannotSay) {
  cuda.knows_mps = false;
  GridLaunches launches;
  EXPECT_EQ(cuda.last, cudaSuccess);
  call(launches, call_of(true));
  EXPECT_EQ(call(launches, call_of(true)), Asked{"cooperative"});
}

TEST_F(Launches, AreCooperativeWhileAPlanIsCaptured) {
  GridLaunches launches, captured;
  call(launches, call_of(true));
  cuda.capturing = true;
  EXPECT_EQ(call(captured, call_of(true)), Asked{"cooperative"});
  cuda.capturing = false;
  EXPECT_EQ(call(launches, call_of(true)), Asked{"cooperative"});
}

TEST_F(Launches, OfOtherKernelsOverlapForEveryCaller) {
  for (const bool exclusive : {true, false}) {
    DependentLaunches launches;
    EXPECT_EQ(call(launches, call_of(exclusive)), (Asked{"ordinary", "dependent"}));
    EXPECT_EQ(call(launches, call_of(exclusive)), (Asked{"dependent", "dependent"}));
    cuda.capturing = true;
    EXPECT_EQ(call(launches, call_of(exclusive)), (Asked{"ordinary", "dependent"}));
    cuda.capturing = false;
    EXPECT_EQ(call(launches, call_of(exclusive)), (Asked{"dependent", "dependent"}));
  }
}

// What was only captured has not run: the plan's tables may not be there yet.
TEST_F(Launches, TheFirstThatRunsIsOrdinary) {
  DependentLaunches launches;
  cuda.capturing = true;
  EXPECT_EQ(call(launches, call_of(true)), (Asked{"ordinary", "dependent"}));
  cuda.capturing = false;
  EXPECT_EQ(call(launches, call_of(true)), (Asked{"ordinary", "dependent"}));
}

TEST_F(Launches, AreOrdinaryBeforeCapability9) {
  cuda.capability = 8;
  DependentLaunches launches;
  call(launches, call_of(true));
  EXPECT_EQ(call(launches, call_of(true)), (Asked{"ordinary", "ordinary"}));
}

// Two plans of one kernel, the smaller one made after the larger: the larger still launches.
TEST_F(Launches, OfASmallerPlanDoNotLowerTheLimit) {
  constexpr std::size_t kLarge = 200 << 10, kSmall = 100 << 10;
  launch(other_kernel, dim3(1), dim3(32), kLarge, nullptr, 1);
  launch(other_kernel, dim3(1), dim3(32), kSmall, nullptr, 1);
  allow_shared(reinterpret_cast<const void*>(other_kernel), 0);
  launch(other_kernel, dim3(1), dim3(32), kLarge, nullptr, 1);
  EXPECT_EQ(cuda.asked, (Asked{"limit 204800", "ordinary", "ordinary", "ordinary"}));
  cuda.device = 1;
  launch(other_kernel, dim3(1), dim3(32), kSmall, nullptr, 1);
  EXPECT_EQ(cuda.asked.at(4), "limit 102400");
}

TEST_F(Launches, CarryTheAttributesThatAreAskedFor) {
  launch({.cluster = 8}, kernel, dim3(16), dim3(32), 0, nullptr, 1);
  launch({.cooperative = true, .dependent = true}, kernel, dim3(1), dim3(32), 0, nullptr, 1);
  EXPECT_EQ(cuda.asked, (Asked{"cluster 8", "cooperative dependent"}));
}

}  // namespace
}  // namespace xcorr
