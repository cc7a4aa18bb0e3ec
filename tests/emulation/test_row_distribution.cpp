// Row distributions are pure arithmetic: every task of every kind against the stripes that the
// overlaps of a problem are cut into, one row at a time.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "algorithms/blocks/row_distribution.hpp"
#include "algorithms/warp_shuffle/group_stripes.hpp"

namespace xcorr {
namespace {

using Kind = RowDistribution::Kind;

Problem rows_only(Index left, Index right, const std::string& window = "full") {
  return make_problem(Form::one_to_one, {left, 1}, {right, 1}, 1, 1, window);
}

// Every stripe of every overlap is some task's, once, and no task has anything else.
void expect_exact(const Problem& q, Kind kind, Index rows) {
  const RowDistribution distribution(q, kind, rows);
  const std::string what = q.id() + " rows " + std::to_string(rows);
  ASSERT_TRUE(distribution.fits()) << what;
  bool splits = false;
  Index stripes = 0;
  std::vector<std::vector<char>> met;
  for (Index row = 0; row < q.out_rows(); ++row) {
    const Index tall = overlap(q.left.rows, q.right.rows, q.window.sy.first + row).count;
    const Index count = kind == Kind::none ? 1 : ceil_div(tall, rows);
    splits |= count > 1;
    stripes += count;
    met.emplace_back(static_cast<std::size_t>(count), 0);
  }
  EXPECT_EQ(distribution.splits(), splits) << what;
  if (kind == Kind::triangle) {
    EXPECT_EQ(distribution.tasks(), stripes) << what;
  }
  if (kind == Kind::none) {
    EXPECT_EQ(distribution.tasks(), q.out_rows()) << what;
  }
  for (Index task = 0; task < distribution.tasks(); ++task) {
    const Stripe got = distribution.stripe(static_cast<int>(task));
    ASSERT_TRUE(got.row >= 0 && got.row < q.out_rows()) << what << " task " << task;
    const Overlap whole = overlap(q.left.rows, q.right.rows, q.window.sy.first + got.row);
    if (got.first == got.end) {
      ASSERT_EQ(kind, Kind::rectangle) << what << " task " << task << " is idle";
      continue;
    }
    const Index height = kind == Kind::none ? whole.count : rows;
    const Index number = (got.first - whole.first) / height;
    ASSERT_EQ(got.first, whole.first + number * height) << what << " task " << task;
    ASSERT_EQ(got.end, std::min(whole.first + whole.count, Index{got.first} + height))
        << what << " task " << task;
    auto& its = met[static_cast<std::size_t>(got.row)];
    ASSERT_LT(static_cast<std::size_t>(number), its.size()) << what << " task " << task;
    ASSERT_EQ(got.whole, its.size() == 1) << what << " task " << task;
    ASSERT_EQ(its[static_cast<std::size_t>(number)]++, 0) << what << " task " << task;
  }
  for (const auto& its : met) {
    for (const char times : its) ASSERT_EQ(times, 1) << what;
  }
}

void expect_all_exact(const Problem& q) {
  expect_exact(q, Kind::none, 0);
  for (const Index rows : {1, 2, 4, 8, 16}) {
    expect_exact(q, Kind::rectangle, rows);
    expect_exact(q, Kind::triangle, rows);
  }
}

TEST(RowDistribution, equal_heights) {
  for (Index height = 1; height <= 300; height += height < 70 ? 1 : 11) {
    expect_all_exact(rows_only(height, height));
  }
}

TEST(RowDistribution, different_heights) {
  for (Index left = 1; left <= 300; left += left < 20 ? 1 : 23) {
    for (const Index right : {1, 2, 3, 7, 16, 17, 33, 64, 150, 299}) {
      expect_all_exact(rows_only(left, right));
    }
  }
}

TEST(RowDistribution, partial_windows) {
  std::mt19937 random(1);
  const auto between = [&](Index low, Index high) {
    return std::uniform_int_distribution<Index>(low, high)(random);
  };
  for (int i = 0; i < 2000; ++i) {
    const Index left = between(1, 60), right = between(1, 60);
    const Index first = between(1 - left, right - 1), last = between(first, right - 1);
    expect_all_exact(rows_only(
        left, right, "sy:" + std::to_string(first) + ".." + std::to_string(last) + ",sx:0..0"));
  }
}

// Up to 2^30 the root changes only at triangular numbers.
TEST(RowDistribution, triangular_root_is_exact) {
  for (std::uint32_t q = 0; q <= 46340; ++q) {
    const std::uint32_t first = triangular(q);
    const std::uint32_t last = std::min(triangular(q + 1) - 1, 1u << 30);
    ASSERT_EQ(triangular_root(first), q);
    ASSERT_EQ(triangular_root(first + (last - first) / 2), q);
    ASSERT_EQ(triangular_root(last), q);
  }
}

TEST(RowDistribution, refuses_more_tasks_than_it_can_number) {
  const Problem q = rows_only(65536, 65536);
  EXPECT_FALSE(RowDistribution(q, Kind::triangle, 1).fits());
  EXPECT_FALSE(RowDistribution(q, Kind::rectangle, 1).fits());
  EXPECT_TRUE(RowDistribution(q, Kind::triangle, 16).fits());
  EXPECT_TRUE(RowDistribution(q, Kind::none, 0).fits());
}

// Every left row of every group of overlaps is some task's, once. Tasks have whole multiples of the
// rows of a group, and only those of a rectangle and of the last group may be unused.
void expect_every_row_once(const Problem& q, int overlaps, Kind kind, Index rows) {
  const warp_shuffle::GroupStripes stripes(q, overlaps, kind, rows);
  const std::string what = q.id() + " groups of " + std::to_string(overlaps) + ", rows " +
                           std::to_string(rows) + ", kind " +
                           std::to_string(static_cast<int>(kind));
  ASSERT_TRUE(stripes.fits()) << what;
  const Index groups = ceil_div<Index>(q.out_rows(), overlaps);
  std::vector<std::vector<int>> times(static_cast<std::size_t>(groups));
  std::vector<Index> first;
  Index tallest = 0;
  for (Index group = 0; group < groups; ++group) {
    const Index sy = q.window.sy.first + group * overlaps;
    const Index last = std::min<Index>(sy + overlaps - 1, q.window.sy.last);
    const Index begin = std::max<Index>(0, -last), end = std::min(q.left.rows, q.right.rows - sy);
    first.push_back(begin);
    times[static_cast<std::size_t>(group)].resize(static_cast<std::size_t>(end - begin));
    tallest = std::max(tallest, end - begin);
  }
  for (Index task = 0; task < stripes.tasks(); ++task) {
    const auto got = stripes.stripe(static_cast<int>(task));
    ASSERT_TRUE(got.group >= 0 && got.group < groups) << what << " task " << task;
    ASSERT_TRUE(got.skipped >= 0 && got.rows <= ceil_div<Index>(rows, overlaps) * overlaps)
        << what << " task " << task;
    auto& its = times[static_cast<std::size_t>(got.group)];
    const Index height = static_cast<Index>(its.size());
    const bool unused = got.rows == 0 || got.skipped >= height;
    ASSERT_TRUE(!unused || kind == Kind::rectangle || got.group + 1 == groups)
        << what << " task " << task;
    if (got.whole && !unused) {
      ASSERT_TRUE(got.skipped == 0 && got.rows >= height) << what;
    }
    for (Index row = got.skipped; row < std::min<Index>(got.skipped + got.rows, height); ++row) {
      ++its[static_cast<std::size_t>(row)];
    }
  }
  for (const auto& its : times) {
    for (const int count : its) ASSERT_EQ(count, 1) << what;
  }
  if (!stripes.splits()) {
    ASSERT_LE(tallest, ceil_div<Index>(rows, overlaps) * overlaps) << what;
  }
}

TEST(GroupStripes, every_row_of_a_group_is_computed_once) {
  std::mt19937 random(2);
  const auto between = [&](Index low, Index high) {
    return std::uniform_int_distribution<Index>(low, high)(random);
  };
  for (int round = 0; round < 3000; ++round) {
    const Index left = between(1, round % 2 == 0 ? 12 : 140), right = between(1, 140);
    const Index first = between(1 - left, right - 1), last = between(first, right - 1);
    const std::string window =
        "sy:" + std::to_string(first) + ".." + std::to_string(last) + ",sx:0..0";
    for (const Problem& q : {rows_only(left, right), rows_only(left, right, window)}) {
      const int overlaps = 1 << between(0, 3);
      const Index rows = between(1, 20);
      for (const Kind kind : {Kind::rectangle, Kind::triangle}) {
        expect_every_row_once(q, overlaps, kind, rows);
        if (HasFatalFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace xcorr
