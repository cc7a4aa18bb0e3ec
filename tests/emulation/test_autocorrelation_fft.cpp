// Transforms of autocorr_fft: every length of a pass, every number of passes, along rows and along
// columns, and lengths as such.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "algorithms/autocorrelation/autocorr_fft/lengths.hpp"
#include "harness/registry.hpp"
#include "tests/emulation/emulation.hpp"
#include "tests/emulation/global_memory.hpp"

namespace xcorr::emulation {
namespace {

using autocorrelation::choose_passes;
using autocorrelation::kRadices;
using autocorrelation::Lengths;
using autocorrelation::Passes;

constexpr const char* kId = "emulated.autocorr_fft";

std::string image_of(Index rows, Index cols, const std::string& window) {
  const std::string shape = std::to_string(rows) + "x" + std::to_string(cols);
  return "one-to-one/" + shape + "/" + shape + "/1:1/" + window + "/same=yes";
}

double expected(const Problem& q, const std::vector<float>& image, Index sy, Index sx) {
  double sum = 0;
  for (Index y = std::max<Index>(0, -sy); y < q.left.rows - std::max<Index>(0, sy); ++y) {
    for (Index x = std::max<Index>(0, -sx); x < q.left.cols - std::max<Index>(0, sx); ++x) {
      sum += static_cast<double>(image[static_cast<std::size_t>(y * q.left.cols + x)]) *
             image[static_cast<std::size_t>((y + sy) * q.left.cols + x + sx)];
    }
  }
  return sum;
}

void expect_correlates(const std::string& id, const std::string& params) {
  const Problem q = parse_problem(id);
  const Variant& variant = find_variant(kId);
  PlanRequest request{q, parse_params(variant, params), Precision::fp32};
  ASSERT_EQ(variant.supports(request).reason, "") << id;
  const GlobalMemory workspace(variant.workspace_bytes(request));
  request.workspace = workspace.get();
  std::vector<float> image(static_cast<std::size_t>(q.left.size()));
  for (std::size_t i = 0; i < image.size(); ++i) {
    image[i] = static_cast<float>(i * i * 7 % 101 % 17) - 5.0f;
  }
  std::vector<float> out(static_cast<std::size_t>(q.out_elements()),
                         std::numeric_limits<float>::quiet_NaN());
  const auto plan = variant.plan(request);
  set_order(1);
  plan->compute({image.data(), image.data(), out.data()});
  const double power = expected(q, image, 0, 0);
  std::size_t at = 0;
  for (Index sy = q.window.sy.first; sy <= q.window.sy.last; ++sy) {
    for (Index sx = q.window.sx.first; sx <= q.window.sx.last; ++sx, ++at) {
      ASSERT_NEAR(out[at], expected(q, image, sy, sx), 1e-6 * power)
          << id << " " << params << " sy " << sy << " sx " << sx;
    }
  }
}

class AutocorrelationFft : public testing::Test {
 protected:
  // A program of one other unit has no such variant (tests/mutants).
  void SetUp() override {
    const auto& all = variants();
    if (std::none_of(all.begin(), all.end(), [](const Variant& v) { return v.id == kId; })) {
      GTEST_SKIP() << kId << " is not in this program";
    }
  }
};

// One shift, so that a transform is hardly longer than its image.
TEST_F(AutocorrelationFft, every_length_of_a_pass_in_rows_and_columns) {
  std::set<int> first, middle, last;
  for (const Index n :
       {9, 12, 15, 25, 32, 36, 48, 60, 72, 100, 144, 256, 300, 400, 432, 500, 512, 864, 1280}) {
    const Passes passes = choose_passes(n, Lengths::smooth);
    first.insert(passes.pass[0].radix);
    last.insert(passes.pass[passes.count - 1].radix);
    for (int i = 1; i + 1 < passes.count; ++i) middle.insert(passes.pass[i].radix);
    expect_correlates(image_of(3, n, "sy:0..0,sx:0..0"), "columns=4;lengths=smooth");
    expect_correlates(image_of(n, 3, "sy:0..0,sx:0..0"), "columns=2;lengths=smooth");
  }
  const std::set<int> all(kRadices.begin(), kRadices.end());
  EXPECT_EQ(first, all);
  EXPECT_EQ(last, all);
  EXPECT_EQ(middle, (std::set<int>{5, 6, 8, 10, 12}));
}

TEST_F(AutocorrelationFft, windows_beside_zero_and_across_it) {
  for (const char* window :
       {"full", "sy:0..6,sx:-6..6", "sy:-6..6,sx:-6..6", "sy:-9..4,sx:-7..7", "sy:-3..12,sx:-5..9",
        "sy:3..9,sx:2..11", "sy:-9..-3,sx:-11..-2", "sy:-1..0,sx:-33..33"}) {
    for (const char* params : {"columns=4;lengths=smooth", "columns=2;lengths=power"}) {
      expect_correlates(image_of(29, 34, window), params);
    }
  }
}

TEST(AutocorrelationFftLengths, lengths_are_products_of_their_passes) {
  for (const Lengths lengths : {Lengths::smooth, Lengths::power}) {
    for (Index least = 1; least < 3000; least += least < 200 ? 1 : 37) {
      const Passes passes = choose_passes(least, lengths);
      ASSERT_GE(passes.count, 2) << least;
      ASSERT_GE(passes.length, least);
      ASSERT_LT(passes.length, std::max<Index>(17, 2 * least));
      int product = 1;
      for (int i = 0; i < passes.count; ++i) {
        EXPECT_EQ(passes.pass[i].before, product);
        EXPECT_EQ(passes.pass[i].tasks * passes.pass[i].radix, passes.length);
        product *= passes.pass[i].radix;
        EXPECT_EQ(passes.pass[i].root_step * product, passes.length);
      }
      EXPECT_EQ(product, passes.length);
      if (lengths == Lengths::power) EXPECT_EQ(passes.length & (passes.length - 1), 0);
    }
  }
  EXPECT_EQ(choose_passes(850, Lengths::smooth).length, 864);
  EXPECT_EQ(choose_passes(1600, Lengths::smooth).length, 1600);
  EXPECT_EQ(choose_passes(1600, Lengths::smooth).count, 3);
}

}  // namespace
}  // namespace xcorr::emulation
