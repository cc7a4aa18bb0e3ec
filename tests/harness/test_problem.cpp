// Problem: pairing, overlap, work, windows, rejections, names.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "tests/support/fixture.hpp"

namespace xcorr {
namespace {

TEST(Pairing, IsThatOfTheForm) {
  using Pairs = std::vector<std::pair<Index, Index>>;
  for (const auto& [id, expected] :
       {std::pair{"one-to-one/2x2/2x2/1:1/full", Pairs{{0, 0}}},
        {"one-to-many/2x2/2x2/1:3/full", {{0, 0}, {0, 1}, {0, 2}}},
        // Each left has its own rights.
        {"n-to-mn/2x2/2x2/2:6/full", {{0, 0}, {0, 1}, {0, 2}, {1, 3}, {1, 4}, {1, 5}}},
        {"n-to-mn/2x2/2x2/2:2/full", {{0, 0}, {1, 1}}},
        // Left-major.
        {"n-to-m/2x2/2x2/2:3/full", {{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}}}}) {
    const Problem problem = parse_problem(id);
    Pairs pairs;
    for (Index p = 0; p < problem.pairs(); ++p) {
      pairs.emplace_back(problem.pair(p).left, problem.pair(p).right);
    }
    EXPECT_EQ(pairs, expected) << id;
  }
}

TEST(Overlap, CountsThePositionsWhosePartnerLiesInside) {
  for (Index left = 1; left <= 5; ++left) {
    for (Index right = 1; right <= 5; ++right) {
      for (Index shift = -8; shift <= 8; ++shift) {
        Index count = 0, first = -1;
        for (Index y = 0; y < left; ++y) {
          if (y + shift < 0 || y + shift >= right) continue;
          if (count++ == 0) first = y;
        }
        const Overlap seen = overlap(left, right, shift);
        EXPECT_EQ(seen.count, count) << left << " " << right << " " << shift;
        if (count > 0) {
          EXPECT_EQ(seen.first, first) << left << " " << right << " " << shift;
        }
      }
    }
  }
}

TEST(UsefulWork, IsTheSquareOfTheSizeForEqualShapesAndFullWindow) {
  EXPECT_EQ(parse_problem("one-to-one/256x256/256x256/1:1/full").fmas(), Index{1} << 32);
  EXPECT_EQ(parse_problem("n-to-m/7x9/7x9/3:5/full").fmas(), 63 * 63 * 15);
  EXPECT_EQ(parse_problem("n-to-mn/7x9/7x9/3:6/full").fmas(), 63 * 63 * 6);
  EXPECT_EQ(parse_problem("one-to-one/7x9/7x9/1:1/full").max_overlap(), 63);
}

TEST(UsefulWork, EqualsTheProductsCountedOneByOne) {
  for (const char* id :
       {"one-to-one/1x1/1x1/1:1/full", "one-to-one/3x4/8x9/1:1/full",
        "one-to-one/8x9/3x4/1:1/valid", "one-to-one/3x9/8x4/1:1/full",
        "one-to-many/5x5/5x5/1:3/sy:-4..-2,sx:1..4", "n-to-mn/5x6/9x7/2:4/sy:-3..6,sx:-5..0",
        "n-to-m/1x9/1x30/2:3/valid", "n-to-m/6x2/3x7/2:3/sy:-1..1,sx:-1..6",
        "one-to-one/6x2/3x7/1:1/sy:2..2,sx:6..6", "one-to-one/9x7/4x3/1:1/sy:-8..-6,sx:-6..-6"}) {
    const Problem problem = parse_problem(id);
    Index fmas = 0, max_overlap = 0;
    each_output(problem, [&](Index, Pair, Index sy, Index sx) {
      Index terms = 0;
      each_meeting(problem, sy, sx, [&](Index, Index) { ++terms; });
      fmas += terms;
      max_overlap = std::max(max_overlap, terms);
    });
    EXPECT_EQ(problem.fmas(), fmas) << id;
    EXPECT_EQ(problem.max_overlap(), max_overlap) << id;
  }
}

TEST(Bytes, CountInputsAndOutputsOnce) {
  const Problem problem = parse_problem("n-to-m/2x3/4x5/2:3/full");
  EXPECT_EQ(problem.out_rows(), 5);
  EXPECT_EQ(problem.out_cols(), 7);
  EXPECT_EQ(problem.bytes(4), 4 * (2 * 6 + 3 * 20 + 6 * 35));
  EXPECT_EQ(problem.bytes(8), 2 * problem.bytes(4));
}

TEST(Windows, FullValidAndExplicit) {
  for (const auto& [id, sy, sx] :
       {std::tuple{"one-to-one/3x4/8x9/1:1/full", Shifts{-2, 7}, Shifts{-3, 8}},
        {"one-to-one/3x4/8x9/1:1/valid", {0, 5}, {0, 5}},
        {"one-to-one/8x9/3x4/1:1/valid", {-5, 0}, {-5, 0}},
        {"one-to-one/8x9/8x9/1:1/valid", {0, 0}, {0, 0}},
        {"one-to-one/8x9/8x9/1:1/sy:-7..7,sx:3..3", {-7, 7}, {3, 3}}}) {
    EXPECT_EQ(parse_problem(id).window.sy, sy) << id;
    EXPECT_EQ(parse_problem(id).window.sx, sx) << id;
  }
}

TEST(Names, IdRoundTrips) {
  for (const char* id :
       {"one-to-one/64x48/64x48/1:1/full", "one-to-many/3x4/8x9/1:9/valid",
        "n-to-mn/8x9/8x9/3:12/sy:-7..7,sx:3..3", "n-to-m/1x5/1x7/4:2/sy:0..0,sx:-4..6"}) {
    EXPECT_EQ(parse_problem(id).id(), id);
  }
  for (const Form form : {Form::one_to_one, Form::one_to_many, Form::n_to_mn, Form::n_to_m}) {
    EXPECT_EQ(parse_form(to_string(form)), form);
  }
}

// Each rejection is one line that holds `part`.
struct Rejected {
  const char* id;
  const char* part;
};
class Rejections : public testing::TestWithParam<Rejected> {};

TEST_P(Rejections, AreOneLineThatNamesTheCause) {
  const auto [id, part] = GetParam();
  const std::string message = user_error([id = id] { parse_problem(id); });
  expect_says(message, part);
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    All, Rejections,
    testing::Values(
        Rejected{"one-to-one/0x4/4x4/1:1/full", "left rows = 0"},
        Rejected{"one-to-one/4x0/4x4/1:1/full", "left cols = 0"},
        Rejected{"one-to-one/4x4/-4x4/1:1/full", "right rows = -4"},
        Rejected{"one-to-one/4x4/4x-1/1:1/full", "right cols = -1"},
        Rejected{"one-to-many/4x4/4x4/1:0/full", "rights = 0"},
        Rejected{"n-to-m/4x4/4x4/-1:3/full", "lefts = -1"},
        Rejected{"one-to-one/99999999999x4/4x4/1:1/full", "left rows = 99999999999"},
        Rejected{"one-to-one/99999999999999999999x4/4x4/1:1/full", "overflows 64 bits"},
        Rejected{"one-to-one/4x4/4x4/1:2/full", "one-to-one means 1:1"},
        Rejected{"one-to-many/4x4/4x4/2:2/full", "one-to-many has one left"},
        Rejected{"n-to-mn/4x4/4x4/3:5/full", "divisible by lefts"},
        Rejected{"n-to-mn/4x4/4x4/3:5/full", "the next is 6"},
        Rejected{"one-to-one/3x9/9x3/1:1/valid", "neither 3x9 nor 9x3 contains the other"},
        Rejected{"one-to-one/4x4/4x4/1:1/sy:-4..0,sx:0..0", "sy leaves the full window"},
        Rejected{"one-to-one/4x4/4x4/1:1/sy:0..0,sx:0..4", "stay within -3..3"},
        Rejected{"one-to-one/4x4/4x4/1:1/sy:2..1,sx:0..0",
                 "sy is empty: its first shift is larger"},
        Rejected{"one-to-one/4x4/4x4/1:1/same", "not understood"},
        Rejected{"one-to-one/4x4/4x4/1:1/sy:0..1", "',sx:' was expected"},
        Rejected{"one-to-one/4x4/4x4/1:1/sy:0.1,sx:0..0", "'..' was expected"},
        Rejected{"one-to-one/4x4/4x4/1:1/sy:a..1,sx:0..0", "a number was expected"},
        Rejected{"one-to-one/4x4/4x4/1:1/sy:0..1,sx:0..0z", "'z' follows the last shift"},
        Rejected{"one-to-one/4x4/4x4/1:1", "problem 'one-to-one/4x4/4x4/1:1': not understood"},
        Rejected{"one-to-one/4x4/4x4/1:1/full/", "not understood"},
        Rejected{"one-to-one/4x4/4x4/1/full", "not understood"},
        Rejected{"one-to-one/4x4/4x4/1:1x/full", "not understood"},
        Rejected{"one-to-one/4x4/4x4/:1/full", "not understood"},
        Rejected{"", "write FORM/ROWSxCOLS/ROWSxCOLS/LEFTS:RIGHTS/WINDOW"},
        Rejected{"one-to-four/4x4/4x4/1:1/full", "form 'one-to-four'"},
        Rejected{"one-to-one/4*4/4x4/1:1/full", "write ROWSxCOLS"},
        Rejected{"one-to-one/4x4x4/4x4/1:1/full", "write ROWSxCOLS"},
        Rejected{"one-to-one/4294967296x4294967296/4x4/1:1/full", "overflows 64 bits"},
        Rejected{"one-to-many/4x4/65536x65536/1:4294967296/full", "overflows 64 bits"},
        Rejected{"n-to-m/1x1/1x1/4294967296:4294967296/full", "overflows 64 bits"},
        // Every size fits; the work, 2^64 products, does not.
        Rejected{"one-to-one/4294967296x1/4294967296x1/1:1/full", "overflow 64 bits"},
        Rejected{"one-to-one/65536x65536/65536x65536/1:1/full", "overflows 64 bits"}));

TEST(Problem, TimeSeriesAreTemplatesAlongSignals) {
  for (const char* id : {"n-to-m/1x256/1x5000/16:1/valid", "one-to-one/3x8/3x8/1:1/valid",
                         "n-to-m/16x5/16x9/2:3/valid", "n-to-m/1x20/1x99/2:1/sy:0..0,sx:3..70"}) {
    EXPECT_TRUE(parse_problem(id).is_time_series()) << id;
  }
  for (const char* id :
       {"n-to-m/17x5/17x9/2:1/valid", "n-to-m/1x9/1x5/2:1/valid", "n-to-m/2x5/3x9/2:1/valid",
        "n-to-m/1x5/1x9/2:1/full", "n-to-m/1x5/1x9/2:1/sy:0..0,sx:3..5",
        "n-to-m/1x5/1x9/2:1/valid/score=ncc", "one-to-one/1x9/1x9/1:1/valid/same=yes",
        "one-to-one/16x16/16x16/1:1/full"}) {
    EXPECT_FALSE(parse_problem(id).is_time_series()) << id;
  }
}

}  // namespace
}  // namespace xcorr
