// What algorithms/device/launch.hpp asks of the CUDA runtime. A fake runtime (fake_cuda/) notes it on any machine.
#include <gtest/gtest.h>

#include <string>
#include <type_traits>
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

  // The requests of a call of one launch (GridLaunches) or two (DependentLaunches).
  template <typename Of>
  Asked call(Of& launches, bool exclusive = true, std::uintptr_t stream = 1) {
    Call call;
    call.stream = reinterpret_cast<void*>(stream);
    call.exclusive = exclusive;
    cuda.asked.clear();
    launches.begin(call);
    if constexpr (std::is_same_v<Of, GridLaunches>) {
      launches.run(kernel, 132, 256, 0, call.stream, 1);
    } else {
      for (int i = 0; i < 2; ++i) launches.run(kernel, dim3(9), dim3(32), 0, call.stream, 1);
    }
    return cuda.asked;
  }
  FakeCuda& cuda = FakeCuda::state();
};

TEST_F(Launches, OfALibraryAreAlwaysCooperative) {
  GridLaunches launches;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(call(launches, false), Asked{"cooperative"});
}

TEST_F(Launches, OfTheHarnessOverlapFromTheSecondOn) {
  GridLaunches launches;
  EXPECT_EQ(call(launches), Asked{"cooperative"});
  EXPECT_EQ(call(launches), Asked{"dependent"});
  EXPECT_EQ(call(launches, false), Asked{"cooperative"});
  EXPECT_EQ(call(launches), Asked{"dependent"});
}

TEST_F(Launches, OfSeveralStreamsFollowEachOther) {
  GridLaunches one, two;
  call(one, true, 1);
  EXPECT_EQ(call(two, true, 2), (Asked{"wait", "cooperative"}));
  EXPECT_EQ(call(one, true, 1), (Asked{"wait", "dependent"}));
}

TEST_F(Launches, AreCooperativeWhereProcessesShareTheDevice) {
  cuda.mps = 1;
  GridLaunches launches;
  call(launches);
  EXPECT_EQ(call(launches), Asked{"cooperative"});
}

// A driver that is older than the attribute: no failure, now or at the next launch.
TEST_F(Launches, AreCooperativeWhereTheDriverCannotSay) {
  cuda.knows_mps = false;
  GridLaunches launches;
  EXPECT_EQ(cuda.last, cudaSuccess);
  call(launches);
  EXPECT_EQ(call(launches), Asked{"cooperative"});
}

TEST_F(Launches, AreCooperativeWhileAPlanIsCaptured) {
  GridLaunches launches, captured;
  call(launches);
  cuda.capturing = true;
  EXPECT_EQ(call(captured), Asked{"cooperative"});
  cuda.capturing = false;
  EXPECT_EQ(call(launches), Asked{"cooperative"});
}

TEST_F(Launches, OfOtherKernelsOverlapForEveryCaller) {
  for (const bool exclusive : {true, false}) {
    DependentLaunches launches;
    EXPECT_EQ(call(launches, exclusive), (Asked{"ordinary", "dependent"}));
    EXPECT_EQ(call(launches, exclusive), (Asked{"dependent", "dependent"}));
    cuda.capturing = true;
    EXPECT_EQ(call(launches, exclusive), (Asked{"ordinary", "dependent"}));
    cuda.capturing = false;
    EXPECT_EQ(call(launches, exclusive), (Asked{"dependent", "dependent"}));
  }
}

// What was only captured has not run: the plan's tables may not be there yet.
TEST_F(Launches, TheFirstThatRunsIsOrdinary) {
  DependentLaunches launches;
  cuda.capturing = true;
  EXPECT_EQ(call(launches), (Asked{"ordinary", "dependent"}));
  cuda.capturing = false;
  EXPECT_EQ(call(launches), (Asked{"ordinary", "dependent"}));
}

TEST_F(Launches, AreOrdinaryBeforeCapability9) {
  cuda.capability = 8;
  DependentLaunches launches;
  call(launches);
  EXPECT_EQ(call(launches), (Asked{"ordinary", "ordinary"}));
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
