// The ring of fused_fft_lanes: images of a batch of pairs lie where those of an earlier batch lay, whose
// rows must have been read. One run shows a block that does not wait only where another one is late, so
// there are many batches of few tasks, in many orders.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "harness/registry.hpp"
#include "tests/emulation/conformance.hpp"

namespace xcorr::emulation {
namespace {

TEST(Ring, images_are_overwritten_only_when_their_rows_are_done) {
  const auto& all = variants();
  const auto lanes = std::find_if(
      all.begin(), all.end(), [](const Variant& v) { return v.id == "emulated.fused_fft_lanes"; });
  if (lanes == all.end()) GTEST_SKIP() << "fused_fft_lanes is not in this program";
  const Problem problem = parse_problem("n-to-m/2x2/2x2/16:16/full");
  Params params;
  params.set("ring_mib", "44");
  params.set("spectra", "workspace");
  // An order in six shows it; those of seeds 5, 7 and 9 do. The usual tests, which take half of the problems, have one.
  const std::uint64_t orders = std::getenv("XCORR_HALF_OF_PROBLEMS") == nullptr ? 12 : 1;
  for (std::uint64_t seed = 5; seed < 5 + orders; ++seed) {
    ASSERT_EQ(failure(*lanes, params, Precision::fp32, problem, seed, Effort::brief), "") << seed;
  }
}

}  // namespace
}  // namespace xcorr::emulation
