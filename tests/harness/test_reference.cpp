// The float64 references against each other and against single elements of the definition.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "harness/truth/reference.hpp"
#include "tests/support/fixture.hpp"

namespace xcorr {
namespace {

struct Data {
  std::vector<double> left, right, out;
};

Data definition(const Problem& problem, std::uint64_t seed) {
  Data data{std::vector<double>(problem.left_elements()),
            std::vector<double>(problem.right_elements()),
            std::vector<double>(static_cast<std::size_t>(problem.out_elements()), std::nan(""))};
  fill_inputs(data.left.data(), make_inputs(problem, InputKind::zero_mean, seed, Side::left, 1), 0,
              problem.left_elements());
  fill_inputs(data.right.data(), make_inputs(problem, InputKind::zero_mean, seed, Side::right, 1),
              0, problem.right_elements());
  correlate_definition(problem, data.left.data(), data.right.data(), 0, problem.pairs(),
                       data.out.data());
  return data;
}

// Output `at` of a surface as a single element.
double element(const Problem& q, const Data& data, Index at) {
  return correlate_element(q, data.left.data(), data.right.data(), at / q.out_size(),
                           at % q.out_size() / q.out_cols(), at % q.out_cols());
}

// A problem of random form, shapes, counts and window.
Problem random_problem(std::mt19937& random) {
  const auto up_to = [&](Index n) {
    return static_cast<Index>(random() % static_cast<unsigned>(n)) + 1;
  };
  const Form form = static_cast<Form>(random() % 4);
  const Shape left{up_to(20), up_to(20)}, right{up_to(20), up_to(20)};
  const Index lefts = form == Form::one_to_one || form == Form::one_to_many ? 1 : up_to(3);
  const Index rights = form == Form::one_to_one ? 1
                       : form == Form::n_to_mn  ? lefts * up_to(3)
                                                : up_to(4);
  std::string window = "full";
  if (random() % 3 != 0) {
    const auto range = [&](Index l, Index r) {
      const Index first = up_to(l + r - 1) - l, last = first + up_to(r - first) - 1;
      return std::to_string(first) + ".." + std::to_string(last);
    };
    window = "sy:" + range(left.rows, right.rows) + ",sx:" + range(left.cols, right.cols);
  }
  return make_problem(form, left, right, lefts, rights, window);
}

TEST(Reference, KnownByHand) {
  const Problem problem = parse_problem("one-to-one/1x2/1x3/1:1/full");
  const double left[] = {2, 3}, right[] = {5, 7, 11};
  double out[4];
  correlate_definition(problem, left, right, 0, 1, out);
  // sx = -1: 3*5; 0: 2*5 + 3*7; 1: 2*7 + 3*11; 2: 2*11
  EXPECT_EQ(std::vector<double>(out, out + 4), (std::vector<double>{15, 31, 47, 22}));
}

TEST(Reference, DefinitionAgreesWithItsElementsAndWithTheTransform) {
  std::mt19937 random(20);
  for (int i = 0; i < 60; ++i) {
    const Problem problem = random_problem(random);
    const Data data = definition(problem, static_cast<std::uint64_t>(i));
    std::vector<double> transformed(data.out.size(), std::nan(""));
    FftReference(problem, data.left.data(), data.right.data())
        .correlate(0, problem.pairs(), transformed.data());
    for (Index at = 0; at < problem.out_elements(); ++at) {
      ASSERT_NEAR(element(problem, data, at), data.out[at], 1e-12)
          << problem.id() << " output " << at;
      ASSERT_NEAR(transformed[at], data.out[at], 1e-11) << problem.id() << " output " << at;
    }
  }
}

// Long rows are computed in blocks of columns.
TEST(Reference, LongRowsAgreeAtTheBordersOfBlocks) {
  for (const Problem& problem :
       problems_of({"n-to-m/2x7/2x5003/3:1/valid", "one-to-one/3x9/4x2055/1:1/full"})) {
    const Data data = definition(problem, 5);
    for (Index at = 0; at < problem.out_elements(); ++at) {
      ASSERT_NEAR(element(problem, data, at), data.out[at], 1e-12)
          << problem.id() << " output " << at;
    }
  }
}

TEST(Reference, PartsOfThePairsAreTheWhole) {
  for (const char* id : {"n-to-m/5x6/7x4/3:4/full", "n-to-mn/5x6/7x4/3:6/full"}) {
    const Problem problem = parse_problem(id);
    const Data whole = definition(problem, 3);
    const FftReference transform(problem, whole.left.data(), whole.right.data());
    const auto size = static_cast<std::size_t>(problem.out_size());
    for (Index first = 0; first < problem.pairs(); first += 2) {
      std::vector<double> part(2 * size), by_transform(2 * size);
      correlate_definition(problem, whole.left.data(), whole.right.data(), first, 2, part.data());
      transform.correlate(first, 2, by_transform.data());
      for (std::size_t i = 0; i < part.size(); ++i) {
        const double want = whole.out[static_cast<std::size_t>(first) * size + i];
        ASSERT_EQ(part[i], want) << id << " pair " << first;
        ASSERT_NEAR(by_transform[i], want, 1e-11) << id << " pair " << first;
      }
    }
  }
}

TEST(Reference, TransformPointsAreThoseOfALinearTransform) {
  EXPECT_DOUBLE_EQ(log2_transform_points(parse_problem("one-to-one/5x5/4x4/1:1/full")), 6.0);
  EXPECT_DOUBLE_EQ(log2_transform_points(parse_problem("one-to-one/1x1/1x1/1:1/full")), 1.0);
}

}  // namespace
}  // namespace xcorr
