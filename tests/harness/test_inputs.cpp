// Inputs: the values that published rows rest on, and what each kind promises.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <numbers>
#include <set>
#include <vector>

#include "harness/problem/inputs.hpp"
#include "tests/support/fixture.hpp"

namespace xcorr {
namespace {

std::vector<double> values(const Problem& problem, InputKind kind, Side side,
                           std::uint64_t seed = 9, Index round = 0) {
  const Index count = side == Side::left ? problem.left_elements() : problem.right_elements();
  std::vector<double> data(count);
  fill_inputs(data.data(), make_inputs(problem, kind, seed, side, 5, round), 0, count);
  return data;
}

TEST(Inputs, OfPublishedRowsNeverChange) {
  const std::uint64_t hashes[3][2] = {{0x08d4ac59aadf3b17u, 0xae8114131c71bda1u},
                                      {0xf99352911aa91d76u, 0xe15e64179e3eadf0u},
                                      {0x4dacf88f5f1117bcu, 0x7121ee9c8b29f6f9u}};
  for (const InputKind kind : {InputKind::uniform, InputKind::zero_mean, InputKind::integer}) {
    for (const Side side : {Side::left, Side::right}) {
      std::uint64_t hash = 0;
      for (Index i = 0; i < 1000; ++i) {
        const double v = Inputs{kind, 7, side, 37}.value(i);
        std::uint64_t bits;
        std::memcpy(&bits, &v, sizeof bits);
        hash = mix(hash ^ bits);
      }
      EXPECT_EQ(hash, hashes[static_cast<int>(kind)][static_cast<int>(side)]) << to_string(kind);
    }
  }
}

TEST(Inputs, AreAPureFunctionOfThePositionAndTheSameInBothPrecisions) {
  const Problem problem = parse_problem("n-to-m/9x7/6x11/3:4/full");
  for (const InputKind kind : kInputKinds) {
    EXPECT_EQ(parse_input_kind(to_string(kind)), kind);
    for (const Side side : {Side::left, Side::right}) {
      const std::vector<double> whole = values(problem, kind, side);
      std::vector<double> part(30);
      fill_inputs(part.data(), make_inputs(problem, kind, 9, side, 5), 40, 30);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 40)) << to_string(kind);
      EXPECT_NE(whole, values(problem, kind, side, 10)) << "seeds differ: " << to_string(kind);
      for (const double v : whole) EXPECT_EQ(static_cast<double>(static_cast<float>(v)), v);
    }
    const Problem equal = parse_problem("n-to-m/9x7/9x7/3:3/full");
    EXPECT_NE(values(equal, kind, Side::left), values(equal, kind, Side::right)) << "sides differ";
  }
}

TEST(Inputs, LieWhereTheyShould) {
  const Problem problem = parse_problem("one-to-many/30x40/30x40/1:2/full");
  const auto range = [&](InputKind kind, Side side) {
    const std::vector<double> data = values(problem, kind, side);
    const auto [least, most] = std::minmax_element(data.begin(), data.end());
    return std::pair{*least, *most};
  };
  const auto within = [&](InputKind kind, Side side, double least, double most) {
    const auto [a, b] = range(kind, side);
    EXPECT_GE(a, least) << to_string(kind);
    EXPECT_LE(b, most) << to_string(kind);
    EXPECT_LT(a, least + 0.02 * (most - least)) << to_string(kind) << ": uses its range";
    EXPECT_GT(b, most - 0.02 * (most - least)) << to_string(kind) << ": uses its range";
  };
  within(InputKind::uniform, Side::left, 0, 1);
  within(InputKind::zero_mean, Side::right, -1, 1);
  within(InputKind::integer, Side::left, -5, 5);
  within(InputKind::offset, Side::left, 9999, 10001);
  within(InputKind::offset, Side::right, 9999, 10001);
  within(InputKind::alternating, Side::left, -10001, 10001);
  within(InputKind::drift, Side::right, 14998.8, 15001);
  within(InputKind::bimodal, Side::right, 0, 10002);
  within(InputKind::fill, Side::left, -1, 1);
  within(InputKind::subnormal, Side::left, -0x1p-120, 0x1p-120);
  within(InputKind::subnormal, Side::right, -1, 1);

  const auto size_of = [&](InputKind kind, Side side) {
    const auto [least, most] = range(kind, side);
    return std::max(-least, most);
  };
  EXPECT_NE(size_of(InputKind::unequal, Side::left), size_of(InputKind::unequal, Side::right));
  EXPECT_NEAR(std::log2(size_of(InputKind::unequal, Side::left)), 0, 31);
  EXPECT_NEAR(std::log2(size_of(InputKind::unequal, Side::right)), 0, 31);
  const auto is_blank = [&](Side side, std::ptrdiff_t first) {
    const std::vector<double> all = values(problem, InputKind::blank, side);
    return std::count(all.begin() + first, all.begin() + first + 1200, all[first]) == 1200;
  };
  EXPECT_NE(is_blank(Side::left, 0), is_blank(Side::right, 0));

  const std::vector<double> outlier = values(problem, InputKind::outlier, Side::left);
  EXPECT_EQ(std::count(outlier.begin(), outlier.end(), 1e6), 1);
  EXPECT_EQ(std::count_if(outlier.begin(), outlier.end(), [](double v) { return v > 1; }), 1);
  const std::vector<double> small = values(problem, InputKind::subnormal, Side::left);
  EXPECT_GT(std::count_if(small.begin(), small.end(),
                          [](double v) { return v != 0 && std::abs(v) < 0x1p-126; }),
            5);
  const std::vector<double> constant = values(problem, InputKind::constant, Side::right);
  EXPECT_EQ(std::count(constant.begin(), constant.begin() + 1200, constant[0]), 1200);
  EXPECT_NE(constant[0], constant[1200]) << "matrices differ";
  const std::vector<double> signs = values(problem, InputKind::alternating, Side::left);
  for (std::size_t i = 1; i < 40; ++i) EXPECT_LT(signs[i] * signs[i - 1], 0);
  EXPECT_LT(signs[0] * signs[40], 0) << "along columns too";
}

TEST(Inputs, OfFillsHoldOneOrARunInEveryRightMatrix) {
  const Problem zncc = parse_problem("one-to-many/3x4/30x40/1:40/full/score=zncc:0.3");
  const Problem product = parse_problem("one-to-many/3x4/30x40/1:40/full");
  for (const Problem& problem : {zncc, product}) {
    const std::vector<double> right = values(problem, InputKind::fill, Side::right);
    std::set<double> fills;
    std::set<std::ptrdiff_t> counts;
    for (auto matrix = right.begin(); matrix != right.end(); matrix += 1200) {
      const auto is_fill = [](double v) { return std::abs(v) > 1; };
      fills.insert(*std::find_if(matrix, matrix + 1200, is_fill));
      counts.insert(std::count_if(matrix, matrix + 1200, is_fill));
    }
    EXPECT_EQ(counts, (std::set<std::ptrdiff_t>{1, 240})) << problem.id();
    const std::set<double> of_scores{-0x1.fffffep127, static_cast<float>(1e11),
                                     static_cast<float>(1e20), -2147483648.0, 65535};
    const std::set<double> of_products{-1e6, 65535, 1e6};
    const bool scored = is_normalised(problem.fields.score.kind);
    EXPECT_EQ(fills, scored ? of_scores : of_products);
  }
}

TEST(Inputs, OfContrastHaveADeviationOfTheirOwnForEveryMatrix) {
  const Problem problem = parse_problem("one-to-many/3x4/30x40/1:100/full");
  const std::vector<double> right = values(problem, InputKind::contrast, Side::right);
  std::set<int> ratios;
  for (auto matrix = right.begin(); matrix != right.end(); matrix += 1200) {
    const auto [least, most] = std::minmax_element(matrix, matrix + 1200);
    ratios.insert(std::ilogb((*most - *least) / 2));
    for (auto v = matrix; v != matrix + 1200; ++v) ASSERT_EQ(*v, static_cast<float>(*v));
  }
  EXPECT_LE(*ratios.begin(), -19);
  EXPECT_GE(*ratios.rbegin(), -8);
  EXPECT_GE(ratios.size(), 12u);
}

TEST(Inputs, ThatDriftHaveTheirTemplatesInTheFirstSignal) {
  const Problem problem = parse_problem("n-to-m/3x40/3x5000000/2:1/valid");
  const Inputs left = make_inputs(problem, InputKind::drift, 9, Side::left, 5);
  const Inputs right = make_inputs(problem, InputKind::drift, 9, Side::right, 5);
  for (Index m = 0; m < problem.lefts; ++m) {
    for (Index y = 0; y < 3; ++y) {
      for (Index x = 0; x < 40; ++x) {
        EXPECT_EQ(left.value(m * 120 + y * 40 + x),
                  right.value(y * problem.right.cols + 97 * (m + 1) + x));
      }
    }
  }
  EXPECT_NE(right.value(0), right.value(problem.right.cols)) << "channels have their own noise";
  EXPECT_NEAR(right.value(1024000), 10000, 1);
  EXPECT_NEAR(right.value(2048000), 5000, 1);
  EXPECT_NEAR(right.value(4096000), 15000, 1);
}

// A discrete Fourier transform of one axis, zero-padded to twice its length.
std::vector<double> magnitudes(const std::vector<double>& data) {
  const std::size_t n = data.size();
  std::vector<double> result;
  for (std::size_t k = 0; k <= n; ++k) {
    std::complex<double> sum;
    for (std::size_t i = 0; i < n; ++i) {
      sum += data[i] * std::polar(1.0, -std::numbers::pi * static_cast<double>(i * k % (2 * n)) /
                                           static_cast<double>(n));
    }
    result.push_back(std::abs(sum));
  }
  return result;
}

TEST(Inputs, OfAFlatSpectrumLetEveryBinWeighAlike) {
  for (const Index length : {16, 33, 37, 64, 192, 250, 251}) {
    const std::string text = std::to_string(length);
    const Problem problem = parse_problem("one-to-one/1x" + text + "/1x" + text + "/1:1/full");
    const std::vector<double> left = values(problem, InputKind::flat_spectrum, Side::left);
    EXPECT_EQ(std::count(left.begin(), left.end(), 1.0), 1);
    EXPECT_EQ(std::count(left.begin(), left.end(), 0.0), length - 1);
    const std::vector<double> size =
        magnitudes(values(problem, InputKind::flat_spectrum, Side::right));
    const auto [least, most] = std::minmax_element(size.begin(), size.end());
    EXPECT_LT(*most, 2.0 * *least) << length;
    // The control: zero-mean noise has bins that hardly weigh.
    const std::vector<double> noise =
        magnitudes(values(problem, InputKind::zero_mean, Side::right));
    const auto [low, high] = std::minmax_element(noise.begin(), noise.end());
    EXPECT_GT(*high, 4.0 * *low) << length;
  }
}

TEST(Inputs, OfAFlatSpectrumReachEveryWindow) {
  for (const char* id : {"n-to-m/8x9/33x21/3:2/valid", "n-to-m/33x21/8x9/3:2/valid",
                         "n-to-m/12x40/40x12/3:2/sy:39..39,sx:-39..-39",
                         "n-to-m/5x33/33x33/3:2/sy:-4..-4,sx:0..0"}) {
    const Problem problem = parse_problem(id);
    const std::vector<double> left = values(problem, InputKind::flat_spectrum, Side::left),
                              right = values(problem, InputKind::flat_spectrum, Side::right);
    std::vector<double> out(problem.out_elements());
    correlate_definition(problem, left.data(), right.data(), 0, problem.pairs(), out.data());
    for (Index p = 0; p < problem.pairs(); ++p) {
      const auto first = out.begin() + p * problem.out_size();
      EXPECT_TRUE(std::any_of(first, first + problem.out_size(), [](double v) { return v != 0; }))
          << id << " pair " << p;
    }
  }
}

TEST(SparseInputs, StayBelowTheLimitAndCoverEveryElement) {
  for (const char* id : {"one-to-one/20x30/25x28/1:1/full", "one-to-one/1x200/1x300/1:1/full",
                         "one-to-one/90x2/90x2/1:1/full"}) {
    const Problem problem = parse_problem(id);
    for (const Index limit : {Index{1000000}, Index{60}, Index{33}}) {
      const Index rounds = sparse_rounds(problem, limit);
      EXPECT_EQ(rounds > 1, problem.max_overlap() > limit) << id;
      std::vector<int> used(problem.left.size());
      for (Index round = 0; round < rounds; ++round) {
        Inputs left = make_inputs(problem, InputKind::sparse, 3, Side::left, 1, round);
        left.rounds = rounds;
        std::vector<double> data(used.size());
        fill_inputs(data.data(), left, 0, problem.left.size());
        std::vector<double> products(data.size());
        for (std::size_t i = 0; i < data.size(); ++i) {
          products[i] = std::abs(data[i]);
          used[i] += data[i] != 0;
        }
        const std::vector<double> ones(static_cast<std::size_t>(problem.right.size()), 1.0);
        std::vector<double> count(problem.out_size());
        correlate_definition(problem, products.data(), ones.data(), 0, 1, count.data());
        EXPECT_LE(*std::max_element(count.begin(), count.end()), static_cast<double>(limit)) << id;
      }
      EXPECT_TRUE(std::all_of(used.begin(), used.end(), [](int n) { return n == 1; })) << id;
    }
  }
  EXPECT_EQ(sparse_rounds(parse_problem("one-to-one/4096x4096/4096x4096/1:1/full")), 1);
  EXPECT_EQ(sparse_rounds(parse_problem("one-to-one/8192x8192/8192x8192/1:1/full")), 4);
}

}  // namespace
}  // namespace xcorr
