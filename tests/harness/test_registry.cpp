// Registry and grids: exact points, their names, sorting, twins, nearest matches.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <set>

#include "harness/problem/inputs.hpp"
#include "harness/registry.hpp"
#include "tests/support/fixture.hpp"

namespace xcorr {
namespace {

bool add(const char* id) {
  return register_variant({}, id, "tests", "tests/harness/test_registry.cpp", "0");
}
// Neither order of the alphabet: what comes first here must not matter.
const bool kAdded[] = {add("zz_last"), add("aa_first"), add("mm_middle")};

std::vector<std::string> names(const Variant& variant) {
  std::vector<std::string> result;
  for (const Params& point : grid_points(variant)) result.push_back(point.canonical());
  return result;
}

Variant with_axes(std::vector<Axis> axes, std::vector<Drop> drops = {}) {
  Variant variant;
  variant.id = "fake";
  variant.axes = std::move(axes);
  variant.drops = std::move(drops);
  return variant;
}

using Names = std::vector<std::string>;

TEST(Grid, WithoutAxesIsOneEmptyPoint) { EXPECT_EQ(names(with_axes({})), Names{""}); }

TEST(Grid, IsTheProductInTheOrderOfTheValuesWithSortedKeys) {
  EXPECT_EQ(names(with_axes({{"warps", {"8", "4"}}, {"rows", {"1", "16", "2"}}})),
            (Names{"rows=1;warps=8", "rows=16;warps=8", "rows=2;warps=8", "rows=1;warps=4",
                   "rows=16;warps=4", "rows=2;warps=4"}));
}

TEST(Grid, ADropLeavesOnePointWhereTheParameterMeansNothing) {
  EXPECT_EQ(names(with_axes({{"distribution", {"none", "rectangle"}}, {"rows", {"1", "2"}}},
                            {{"distribution", "none", "rows"}})),
            (Names{"distribution=none", "distribution=rectangle;rows=1",
                   "distribution=rectangle;rows=2"}));
}

TEST(Grid, HoldsNoPointTwice) {
  const Names points =
      names(with_axes({{"a", {"1", "2", "1"}}, {"b", {"x", "y"}}, {"c", {"p", "q"}}},
                      {{"a", "1", "b"}, {"a", "2", "c"}}));
  EXPECT_EQ(std::set<std::string>(points.begin(), points.end()).size(), points.size());
  EXPECT_EQ(points.size(), 4u);
}

TEST(Grid, QuickBuildsTheSubset) {
  const Variant variant =
      with_axes({{"rows", {"1", "2", "4", "8"}, true, {"2", "8"}}, {"t", {"1"}}});
#ifdef XCORR_GRID_QUICK
  EXPECT_EQ(names(variant), (Names{"rows=2;t=1", "rows=8;t=1"}));
#else
  EXPECT_EQ(names(variant), (Names{"rows=1;t=1", "rows=2;t=1", "rows=4;t=1", "rows=8;t=1"}));
#endif
}

TEST(Params, ParseExactlyThePointsOfTheGrid) {
  const Variant variant = with_axes({{"warps", {"4", "8"}}, {"rows", {"1", "2"}}});
  const Params point = parse_params(variant, "rows=2;warps=4");
  EXPECT_EQ(point.get_int("rows"), 2);
  EXPECT_EQ(point.get("warps"), "4");
  EXPECT_FALSE(point.has("streams"));
  const std::string message = user_error([&] { parse_params(variant, "rows=2;warps=5"); });
  expect_says(message, "no point of fake; the nearest is 'rows=2;warps=");
  EXPECT_NE(user_error([&] { parse_params(variant, "warps=4;rows=2"); }), "") << "not canonical";
  EXPECT_NE(user_error([&] { parse_params(variant, ""); }), "");
}

TEST(Registry, IsSortedByIdWhateverTheOrderOfRegistration) {
  ASSERT_TRUE(kAdded[0] && kAdded[1] && kAdded[2]);
  std::vector<std::string> ids;
  for (const Variant& variant : variants()) ids.push_back(variant.id);
  EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
  EXPECT_EQ(ids.front(), "aa_first");
  EXPECT_EQ(ids.back(), "zz_last");
  EXPECT_EQ(find_variant("mm_middle").family, "tests");
  EXPECT_EQ(find_variant("mm_middle").source_file, "tests/harness/test_registry.cpp");
}

TEST(Registry, AnUnknownIdNamesTheNearest) {
  expect_says(user_error([] { find_variant("mm_midle"); }), "the nearest is 'mm_middle'");
}

// The registry belongs to the process, so the twin gets a process of its own.
TEST(RegistryDeathTest, TwoFilesOfOneIdAreRefused) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto twin = [] {
    register_variant({}, "mm_middle", "elsewhere", "algorithms/elsewhere/mm_middle.cpp", "1");
    std::cerr << user_error([] { variants(); });
    std::exit(7);
  };
  EXPECT_EXIT(twin(), testing::ExitedWithCode(7), "variant 'mm_middle': two files have this name");
}

TEST(Nearest, IsByEditDistance) {
  EXPECT_EQ(nearest("cpu_ftt", {"cpu_definition", "cpu_fft", "cpu_row_streaming"}), "cpu_fft");
  EXPECT_EQ(nearest("x", {}), "");
}

TEST(Precisions, ParseAndName) {
  for (const char* name : {"fp64", "fp32", "tf32", "3xtf32", "bf16x3", "fp16"}) {
    EXPECT_EQ(to_string(parse_precision(name)), name);
  }
  expect_says(user_error([] { parse_precision("fp33"); }), "the nearest is 'fp32'");
  EXPECT_EQ(scalar_bytes(Precision::fp64), 8u);
  EXPECT_EQ(scalar_bytes(Precision::tf32), 4u);
  EXPECT_EQ(unit_roundoff(Precision::fp32), std::ldexp(1.0, -24));
}

// A float rounded to so many significant bits, to nearest.
double rounded(double v, int bits) {
  int exponent = 0;
  const double fraction = std::frexp(v, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, bits)), exponent - bits);
}

// What a product of two numbers loses when each is taken in `parts` parts of so many bits; of two
// parts each, the product of both rests is left out.
TEST(Precisions, HaveTheUnitRoundoffThatTheirProductsShow) {
  struct Class {
    Precision precision;
    int bits, parts;
  };
  for (const auto& [precision, bits, parts] :
       {Class{Precision::fp32, 24, 1}, Class{Precision::tf32, 11, 1}, Class{Precision::fp16, 11, 1},
        Class{Precision::three_tf32, 11, 2}, Class{Precision::bf16x3, 8, 2}}) {
    double largest = 0;
    for (Index i = 0; i < 200000; ++i) {
      const double a = 1.0 + Inputs{InputKind::uniform, 1, Side::left}.value(i);
      const double b = 1.0 + Inputs{InputKind::uniform, 1, Side::right}.value(i);
      const double a1 = rounded(a, bits), b1 = rounded(b, bits);
      const double a2 = parts == 2 ? rounded(a - a1, bits) : 0.0;
      const double b2 = parts == 2 ? rounded(b - b1, bits) : 0.0;
      largest = std::max(largest, std::abs(a1 * b1 + a1 * b2 + a2 * b1 - a * b) / (a * b));
    }
    // Two inputs are rounded; of fp32 none is, only the product.
    const double expected = 2.0 * unit_roundoff(precision);
    if (precision != Precision::fp32) {
      EXPECT_GT(largest, 0.3 * expected) << to_string(precision);
    }
    EXPECT_LE(largest, expected) << to_string(precision);
  }
}

}  // namespace
}  // namespace xcorr
