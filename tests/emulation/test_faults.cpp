// Planted faults: a right kernel passes, each wrong one is caught, and by what should catch it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/emulation/conformance.hpp"
#include "tests/emulation/emulation.hpp"
#include "tests/emulation/faults/block_per_overlap.hpp"

namespace xcorr::emulation {
namespace {

using faults::block_per_overlap;
using Planted = faults::Fault;
using testing::HasSubstr;

// Overlaps from 1 to 99 terms: fewer than a warp, between warp and block, and more than the block.
const Problem& problem() {
  static const Problem made =
      make_problem(Form::n_to_m, {3, 33}, {3, 33}, 1, 2, "sy:-1..1,sx:-32..4");
  return made;
}

template <Planted fault>
std::string found(std::uint64_t seed = 1) {
  return failure(block_per_overlap<fault>(), {}, Precision::fp32, problem(), seed);
}

TEST(Faults, the_right_kernel_passes) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) EXPECT_EQ(found<Planted::none>(seed), "");
}

TEST(FaultsDeathTest, out_of_bounds_read) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(found<Planted::out_of_bounds>(), "heap-buffer-overflow");
}

TEST(Faults, missing_barrier) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    EXPECT_THAT(found<Planted::missing_barrier>(seed), HasSubstr("expected"));
    EXPECT_THAT(found<Planted::missing_second_barrier>(seed), HasSubstr("expected"));
  }
}

TEST(Faults, wrong_remainder) {
  EXPECT_THAT(found<Planted::wrong_remainder>(), HasSubstr("expected"));
}

TEST(Faults, bad_shuffle) { EXPECT_THAT(found<Planted::bad_shuffle>(), HasSubstr("expected")); }

TEST(Faults, lane_missing_from_a_shuffle) {
  EXPECT_THAT(found<Planted::lost_lane>(), HasSubstr("waits at the warp operation"));
  EXPECT_THAT(found<Planted::lost_lane>(), HasSubstr("has ended"));
}

TEST(Faults, divergence_at_a_barrier) {
  EXPECT_THAT(found<Planted::diverged_barrier>(), HasSubstr("divergence in block"));
  EXPECT_THAT(found<Planted::two_barriers>(), HasSubstr("divergence in block"));
}

}  // namespace
}  // namespace xcorr::emulation
