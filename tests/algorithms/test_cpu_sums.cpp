// Sums of products of the CPU variants by definition hold their bound at any length. Every product is alike, so
// that float32 rounds every addition of a plain sum in one direction.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "harness/problem/inputs.hpp"
#include "tests/support/planned.hpp"

namespace xcorr {
namespace {

using Fill = std::function<double(int side, std::uint64_t index)>;

double noise(int side, std::uint64_t index) {
  return static_cast<double>(mix(mix(index) ^ static_cast<std::uint64_t>(side)) >> 43) * 0x1p-20 -
         1;
}
// Multiples of 2^-10, which float32 has near 1e4.
double offset(int side, std::uint64_t index) {
  return 1e4 + std::floor(noise(side, index) * 0x1p10) * 0x1p-10;
}

struct Sum {
  double got, expected, norms;
};

// The one output of `shape` against itself at shift 0.
Sum sum_of(const std::string& id, const std::string& shape, const Fill& fill) {
  const Variant& variant = find_variant(id);
  const Problem q = parse_problem("one-to-one/" + shape + "/" + shape + "/1:1/sy:0..0,sx:0..0");
  const auto elements = static_cast<std::size_t>(q.left.size());
  std::vector<float> left(elements), right(elements);
  long double expected = 0, left_squares = 0, right_squares = 0;
  for (std::size_t k = 0; k < elements; ++k) {
    left[k] = static_cast<float>(fill(0, k));
    right[k] = static_cast<float>(fill(1, k));
    expected += static_cast<long double>(left[k]) * right[k];
    left_squares += static_cast<long double>(left[k]) * left[k];
    right_squares += static_cast<long double>(right[k]) * right[k];
  }
  Planned planned(variant, q, grid_points(variant).front());
  planned.compute({left.data(), right.data()});
  return {planned.surface()[0], static_cast<double>(expected),
          static_cast<double>(std::sqrt(left_squares * right_squares))};
}

TEST(CpuSums, OfProductsOfOneSignHoldTheirBoundAtAnyLength) {
  const Fill grey = [](int, std::uint64_t) { return 200.0; };
  const Fill bytes = [](int side, std::uint64_t k) {
    return std::floor((noise(side, k) + 1) * 128);
  };
  const Fill ones = [](int, std::uint64_t) { return 1.0; };
  const Fill thirds = [](int, std::uint64_t) { return static_cast<double>(1.1f); };
  for (const std::string id : {"cpu_definition", "cpu_row_streaming"}) {
    EXPECT_EQ(sum_of(id, "1x17000000", ones).got, 17e6) << id;
    for (const std::string shape : {"700x700", "1x500000", "500000x1"}) {
      for (const Fill& fill : {grey, bytes, ones, thirds, Fill(offset)}) {
        const Sum sum = sum_of(id, shape, fill);
        EXPECT_NEAR(sum.got, sum.expected, 3e-6 * sum.norms) << id << " " << shape;
      }
    }
  }
}

}  // namespace
}  // namespace xcorr
