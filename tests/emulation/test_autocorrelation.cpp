// What the usual inputs do not reach of the line kernels: images with panels of 8-bit values beside
// panels of others, and sums that one 32-bit integer does not hold. Of autocorr_cuda_tile: chunks of
// shifts, panels, threads one below the other, blocks that share a task, sums of several tiles.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "algorithms/autocorrelation/tile_tasks.hpp"
#include "harness/registry.hpp"
#include "tests/emulation/emulation.hpp"
#include "tests/emulation/global_memory.hpp"

namespace xcorr::emulation {
namespace {

constexpr const char* kId = "emulated.autocorr_cuda_line";
constexpr const char* kTileId = "emulated.autocorr_cuda_tile";

class OfVariant : public testing::Test {
 protected:
  explicit OfVariant(const char* id) : id_(id) {}
  // A program of one other unit has no such variant (tests/mutants).
  void SetUp() override {
    const auto& all = variants();
    if (std::none_of(all.begin(), all.end(), [&](const Variant& v) { return v.id == id_; })) {
      GTEST_SKIP() << id_ << " is not in this program";
    }
  }

 private:
  const char* id_;
};
class LineKernel : public OfVariant {
 protected:
  LineKernel() : OfVariant(kId) {}
};
class TileKernel : public OfVariant {
 protected:
  TileKernel() : OfVariant(kTileId) {}
};

std::vector<float> computed(const Problem& q, const std::string& params,
                            const std::vector<float>& image, const char* id = kId) {
  const Variant& variant = find_variant(id);
  PlanRequest request{q, parse_params(variant, params), Precision::fp32};
  const GlobalMemory workspace(variant.workspace_bytes(request));
  request.workspace = workspace.get();
  std::vector<float> out(static_cast<std::size_t>(q.out_elements()),
                         std::numeric_limits<float>::quiet_NaN());
  const auto plan = variant.plan(request);
  for (std::uint64_t order = 1; order <= 2; ++order) {
    set_order(order);
    plan->compute({image.data(), image.data(), out.data()});
  }
  return out;
}

double expected(const Problem& q, const std::vector<float>& image, Index sy, Index sx) {
  double sum = 0;
  for (Index y = 0; y < q.left.rows; ++y) {
    for (Index x = 0; x < q.left.cols; ++x) {
      if (y + sy < 0 || y + sy >= q.left.rows || x + sx < 0 || x + sx >= q.left.cols) continue;
      sum += static_cast<double>(image[static_cast<std::size_t>(y * q.left.cols + x)]) *
             image[static_cast<std::size_t>((y + sy) * q.left.cols + x + sx)];
    }
  }
  return sum;
}

void expect_exact(const char* id, const std::vector<float>& image) {
  const Problem q = parse_problem(id);
  for (const char* sums : {"float", "integer"}) {
    for (const char* shifts : {"1", "4", "8"}) {
      const std::string params =
          std::string("lines_per_thread=1;shifts_per_thread=") + shifts + ";sums=" + sums;
      const std::vector<float> out = computed(q, params, image);
      std::size_t at = 0;
      for (Index sy = q.window.sy.first; sy <= q.window.sy.last; ++sy) {
        for (Index sx = q.window.sx.first; sx <= q.window.sx.last; ++sx, ++at) {
          EXPECT_EQ(out[at], static_cast<float>(expected(q, image, sy, sx)))
              << params << " sy " << sy << " sx " << sx;
        }
      }
    }
  }
}

// Halves and numbers of nine bits; all sums are exact in float32.
TEST_F(LineKernel, panels_of_other_values_are_added_too) {
  std::vector<float> image(4 * 600);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i % 7) - 2.0f;
  image[600 + 20] = 0.5f;      // first panel of line 1
  image[3 * 600 + 590] = 300;  // last panel of line 3
  expect_exact("one-to-one/4x600/4x600/1:1/sy:-1..2,sx:-3..3/same=yes", image);
}

// Its square is 2^32.
TEST_F(LineKernel, whole_numbers_beyond_eight_bits_are_no_integers) {
  std::vector<float> image(3 * 40);
  image[50] = 65536;
  image[51] = 1;
  expect_exact("one-to-one/3x40/3x40/1:1/sy:0..1,sx:-2..2/same=yes", image);
}

// 255^2 on 200 lines of 300 columns is 3.9e9, beyond 2^31.
TEST_F(LineKernel, integers_take_no_more_lines_than_fit) {
  const Problem q = parse_problem("one-to-one/200x300/200x300/1:1/sy:0..0,sx:0..0/same=yes");
  const std::vector<float> out = computed(q, "lines_per_thread=16;shifts_per_thread=1;sums=integer",
                                          std::vector<float>(60000, 255.0f));
  EXPECT_EQ(out[0], static_cast<float>(60000.0 * 255 * 255));
}

TEST_F(LineKernel, lines_too_long_for_an_integer_are_refused) {
  const Variant& variant = find_variant(kId);
  const auto support = [&](const char* id, const std::string& sums) {
    const Params params =
        parse_params(variant, "lines_per_thread=1;shifts_per_thread=8;sums=" + sums);
    return variant.supports({parse_problem(id), params, Precision::fp32}).reason;
  };
  EXPECT_EQ(support("one-to-one/1x33025/1x33025/1:1/full/same=yes", "integer"), "");
  const char* const longer = "one-to-one/1x33026/1x33026/1:1/full/same=yes";
  EXPECT_NE(support(longer, "integer").find("does not fit 32 bits"), std::string::npos);
  EXPECT_EQ(support(longer, "float"), "");
}

// Whole numbers, so that all sums are exact.
std::vector<float> images_of(const Problem& q) {
  std::vector<float> images(static_cast<std::size_t>(q.lefts * q.left.size()));
  unsigned state = 1;
  for (float& value : images) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 28) - 7.0f;
  }
  return images;
}

void expect_exact_tiles(const Problem& q, int threads, int rows) {
  const std::vector<float> images = images_of(q);
  const std::string params =
      "rows_per_thread=" + std::to_string(rows) + ";threads=" + std::to_string(threads);
  const std::vector<float> out = computed(q, params, images, kTileId);
  std::size_t at = 0;
  int wrong = 0;
  for (Index pair = 0; pair < q.pairs(); ++pair) {
    const auto first = images.begin() + pair * q.left.size();
    const std::vector<float> image(first, first + q.left.size());
    for (Index sy = q.window.sy.first; sy <= q.window.sy.last; ++sy) {
      for (Index sx = q.window.sx.first; sx <= q.window.sx.last; ++sx, ++at) {
        const auto right = static_cast<float>(expected(q, image, sy, sx));
        if (out[at] == right || ++wrong > 5) continue;
        ADD_FAILURE() << q.id() << " " << params << " pair " << pair << " sy " << sy << " sx " << sx
                      << ": " << out[at] << " in place of " << right;
      }
    }
  }
  EXPECT_EQ(wrong, 0);
}

using emulated::autocorrelation::TileTasks;

// Rows are mirrored and others lie before them; some groups are one row of shifts; a tile has threads beside and below each other; three
// blocks share the tiles, which are more than a sum takes.
TEST_F(TileKernel, blocks_share_tasks_of_several_tiles) {
  const Problem q = parse_problem("one-to-one/70x60/70x60/1:1/sy:-9..8,sx:-20..20/same=yes");
  const TileTasks tasks(q, 128, 8);
  EXPECT_GT(tasks.window_rows.before, 0);
  EXPECT_GT(tasks.window_rows.mirrored, 0);
  EXPECT_EQ(tasks.count_of(0), 1);
  EXPECT_EQ(tasks.count_of(1), 4);
  EXPECT_EQ(tasks.count_of(tasks.groups - 1), 1);
  EXPECT_GT(tasks.single_rows, 4);
  EXPECT_GT(tasks.across, 1);
  EXPECT_GT(tasks.down, 1);
  const Index steps_of_tile = tasks.rows_per_thread / 4;
  EXPECT_GT(tasks.steps_of_panel(1), steps_of_tile);
  EXPECT_GT(tasks.steps, 3 * kResidentBlocks * steps_of_tile);
  expect_exact_tiles(q, 128, 8);
  expect_exact_tiles(q, 256, 48);
}

// Chunks of shifts, of which some need a part of the columns only; panels; several images.
TEST_F(TileKernel, chunks_of_shifts_have_panels_of_their_own) {
  const Problem q = parse_problem("n-to-mn/5x300/5x300/2:2/sy:0..4,sx:-290..-10/same=yes");
  const TileTasks tasks(q, 128, 8);
  EXPECT_GT(tasks.chunks, 1);
  EXPECT_GT(tasks.panels_of(tasks.chunks - 1), 1);
  EXPECT_LT(tasks.panels_of(0), tasks.panels_of(tasks.chunks - 1));
  EXPECT_GT(tasks.skipped, 0);
  expect_exact_tiles(q, 128, 8);
}

}  // namespace
}  // namespace xcorr::emulation
