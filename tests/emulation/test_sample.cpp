// The sample of compile-time points (sample.hpp) has every pair of values of two axes.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "tests/emulation/sample.hpp"

namespace xcorr::emulation {
namespace {

template <std::size_t kPoints>
std::size_t count(const std::array<bool, kPoints>& sample) {
  return static_cast<std::size_t>(std::count(sample.begin(), sample.end(), true));
}

// Counted from the points themselves, without the table that the sample is drawn with.
template <std::size_t... kSizes>
void expect_pairs(std::uint64_t seed, std::size_t most) {
  constexpr std::array<std::size_t, sizeof...(kSizes)> sizes = {kSizes...};
  constexpr std::size_t kPoints = (kSizes * ...);
  const auto sample = pairwise_sample<kPoints>(sizes, seed);
  std::set<std::tuple<std::size_t, std::size_t, std::size_t, std::size_t>> got;
  std::set<std::pair<std::size_t, std::size_t>> values;
  for (std::size_t i = 0; i < kPoints; ++i) {
    if (!sample[i]) continue;
    std::size_t stride = kPoints;
    std::vector<std::size_t> at;
    for (const std::size_t size : sizes) {
      stride /= size;
      at.push_back(i / stride % size);
      values.insert({at.size() - 1, at.back()});
    }
    for (std::size_t a = 0; a < at.size(); ++a) {
      for (std::size_t b = a + 1; b < at.size(); ++b) got.insert({a, b, at[a], at[b]});
    }
  }
  std::size_t pairs = 0;
  for (std::size_t a = 0; a < sizes.size(); ++a) {
    for (std::size_t b = a + 1; b < sizes.size(); ++b) pairs += sizes[a] * sizes[b];
  }
  EXPECT_EQ(got.size(), pairs) << "seed " << seed;
  EXPECT_EQ(values.size(), (kSizes + ...)) << "seed " << seed;
  EXPECT_LE(count(sample), most) << "seed " << seed;
}

TEST(Sample, has_every_value_and_every_pair) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    expect_pairs<5>(seed, 5);
    expect_pairs<4, 4>(seed, 16);
    expect_pairs<2, 2, 2>(seed, 6);
    expect_pairs<2, 2, 1, 2>(seed, 6);
    expect_pairs<3, 3, 3>(seed, 14);
    expect_pairs<3, 3, 3, 3>(seed, 16);
    expect_pairs<2, 5, 3>(seed, 20);
  }
}

TEST(Sample, is_drawn_from_the_seed) {
  constexpr std::array<std::size_t, 4> kSizes = {3, 3, 3, 3};
  std::set<std::array<bool, 81>> samples;
  for (std::uint64_t seed = 0; seed < 20; ++seed) samples.insert(pairwise_sample<81>(kSizes, seed));
  EXPECT_GT(samples.size(), 10u);
  EXPECT_EQ(pairwise_sample<81>(kSizes, 7), pairwise_sample<81>(kSizes, 7));
  // Points that no sample has would never be tested without --exhaustive.
  std::array<bool, 81> ever = {};
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const auto sample = pairwise_sample<81>(kSizes, seed);
    for (std::size_t i = 0; i < 81; ++i) ever[i] = ever[i] || sample[i];
  }
  EXPECT_EQ(count(ever), 81u);
}

TEST(Sample, all_is_every_point) {
  constexpr std::array<std::size_t, 3> kSizes = {3, 3, 3};
  constexpr auto kEvery = PointChoice<true, 1>::of<27>(kSizes),
                 kSome = PointChoice<false, 1>::of<27>(kSizes);
  EXPECT_EQ(count(kEvery), 27u);
  EXPECT_LT(count(kSome), 27u);
}

TEST(Sample, names_the_points_that_it_left_out) {
  using Choice = PointChoice<false, 1>;
  Choice::made("sample_test", {1}, +[] {});
  Choice::left_out("sample_test", {2});
  EXPECT_NO_THROW(Choice::wanted("sample_test", {1}));
  EXPECT_THROW(Choice::wanted("sample_test", {2}), NotInSample);
  EXPECT_NO_THROW(Choice::wanted("sample_test", {3})) << "no point at all: points.hpp says so";
  compiled_points().erase("sample_test");
}

}  // namespace
}  // namespace xcorr::emulation
