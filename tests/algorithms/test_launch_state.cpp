// What launches remember: the limit of shared memory of a kernel, and which launches of a plan must be ordinary ones. A fake
// takes the place of CUDA's call and sets the limit as CUDA does, also to less than it was.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "algorithms/device/launch.hpp"

namespace xcorr {
namespace {

constexpr std::size_t kKiB = 1024;

// Limits of kernels as a driver keeps them; a launch of more than its kernel's limit is refused.
class FakeDriver {
 public:
  void allow(const void* kernel, int device, std::size_t bytes) {
    limits_.raise(kernel, device, bytes, [&] {
      ++calls;
      limit_[{kernel, device}] = bytes;
    });
  }
  bool launches(const void* kernel, int device, std::size_t bytes) {
    const auto found = limit_.find({kernel, device});
    return bytes <= (found == limit_.end() ? kSharedWithoutAsking : found->second);
  }
  std::atomic<int> calls = 0;

 private:
  SharedLimits limits_;
  std::map<std::pair<const void*, int>, std::size_t> limit_;
};

const int kernels[2] = {};
const void* const kFirst = &kernels[0];
const void* const kSecond = &kernels[1];

// A plan of 200 KiB, then one of 100 KiB, then the first launches.
TEST(SharedLimits, ASmallerPlanDoesNotTakeFromALargerOne) {
  FakeDriver driver;
  driver.allow(kFirst, 0, 200 * kKiB);
  driver.allow(kFirst, 0, 100 * kKiB);
  driver.allow(kFirst, 0, 0);
  EXPECT_TRUE(driver.launches(kFirst, 0, 200 * kKiB));
  EXPECT_EQ(driver.calls, 1);
  driver.allow(kFirst, 0, 220 * kKiB);
  EXPECT_TRUE(driver.launches(kFirst, 0, 220 * kKiB));
}

TEST(SharedLimits, KernelsAndDevicesAreKeptApart) {
  FakeDriver driver;
  driver.allow(kFirst, 0, 200 * kKiB);
  driver.allow(kFirst, 1, 100 * kKiB);
  driver.allow(kSecond, 0, 100 * kKiB);
  EXPECT_EQ(driver.calls, 3);
  EXPECT_TRUE(driver.launches(kFirst, 1, 100 * kKiB));
  EXPECT_FALSE(driver.launches(kFirst, 1, 200 * kKiB));
  EXPECT_TRUE(driver.launches(kSecond, 0, 100 * kKiB));
}

TEST(SharedLimits, WhatEveryKernelHasIsNotAskedFor) {
  FakeDriver driver;
  driver.allow(kFirst, 0, kSharedWithoutAsking);
  EXPECT_EQ(driver.calls, 0);
}

TEST(SharedLimits, WhatWasRefusedIsAskedForAgain) {
  SharedLimits limits;
  int calls = 0;
  const auto refuse = [&] {
    ++calls;
    throw std::runtime_error("invalid argument");
  };
  EXPECT_THROW(limits.raise(kFirst, 0, 300 * kKiB, refuse), std::runtime_error);
  EXPECT_THROW(limits.raise(kFirst, 0, 300 * kKiB, refuse), std::runtime_error);
  EXPECT_EQ(calls, 2);
}

// Eight threads call does(thread) a thousand times each.
template <typename Does>
void in_eight_threads(const Does& does) {
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < 8; ++i) {
    threads.emplace_back([&does, i] {
      for (int round = 0; round < 1000; ++round) does(i);
    });
  }
}

TEST(SharedLimits, EightThreadsRaiseItOnce) {
  FakeDriver driver;
  in_eight_threads([&](std::size_t) { driver.allow(kFirst, 0, 200 * kKiB); });
  EXPECT_EQ(driver.calls, 1);
  EXPECT_TRUE(driver.launches(kFirst, 0, 200 * kKiB));
}

// Threads with plans of different sizes: each may launch what it asked for, at any moment.
TEST(SharedLimits, EightThreadsWithDifferentSizes) {
  std::atomic<std::size_t> limit = 0;
  std::atomic<int> refused = 0;
  SharedLimits limits;
  in_eight_threads([&](std::size_t thread) {
    const std::size_t bytes = (60 + 20 * thread) * kKiB;
    limits.raise(kFirst, 0, bytes, [&] { limit = bytes; });
    refused += bytes > limit;
  });
  EXPECT_EQ(refused, 0);
}

// Calls of two launches each, which are captured ('c') or run ('r'): whether the first launch of each call is ordinary
// ('o') or not ('-'). The second one never is.
std::string first_launches(const std::string& calls) {
  LaunchOrder order;
  std::string found;
  for (const char call : calls) {
    order.begin(call == 'c');
    found += order.ordinary() ? 'o' : '-';
    if (order.ordinary()) order.launched();
    EXPECT_FALSE(order.ordinary()) << calls;
  }
  return found;
}

TEST(LaunchOrder, OnlyTheFirstOfAPlanIsOrdinary) { EXPECT_EQ(first_launches("rr"), "o-"); }

// As the harness does it: some calls, one captured, calls again.
TEST(LaunchOrder, TheFirstOfAGraphIsOrdinary) { EXPECT_EQ(first_launches("rcrc"), "oo-o"); }

// A graph that nobody has started yet: what the plan stored may not be there when the next call comes, however many were
// captured before.
TEST(LaunchOrder, WhatWasOnlyCapturedHasNotRun) { EXPECT_EQ(first_launches("ccrr"), "ooo-"); }

}  // namespace
}  // namespace xcorr
