// Cases of autocorrelation that the usual inputs do not reach. Line kernels: images with panels of 8-bit values beside panels of
// others, and sums that one 32-bit integer does not hold. autocorr_cuda_whole_lines: the limits of a block. autocorr_cuda_tile: chunks of shifts, panels, threads one below
// the other, blocks that share a task, sums of several tiles. autocorr_fft: every length of a pass along rows and columns,
// windows on all sides of shift 0, lengths as such.
#include <set>

#include "algorithms/autocorrelation/autocorr_fft/lengths.hpp"
#include "algorithms/autocorrelation/tile_tasks.hpp"
#include "tests/emulation/support.hpp"

namespace xcorr::emulation {
namespace {

using autocorrelation::choose_passes;
using autocorrelation::kRadices;
using autocorrelation::Lengths;
using autocorrelation::Passes;
using emulated::autocorrelation::TileTasks;
using Images = std::vector<float>;

// Tests of one variant against the definition.
class Autocorrelation : public OfVariant {
 protected:
  using OfVariant::OfVariant;
  // `tolerance` is in units of the first image's power.
  void expect_right(const Problem& q, const std::string& params, const Images& images,
                    double tolerance = 0) const {
    const PlanRequest asked{q, parse_params(variant(), params), Precision::fp32};
    ASSERT_EQ(variant().supports(asked).reason, "") << q.id();
    Planned planned(variant(), q, asked.params);
    const double power = product_sum(q, images.data(), images.data(), 0, 0);
    std::vector<double> want;
    each_output(q, [&](Index, Pair pair, Index sy, Index sx) {
      const float* const image = images.data() + pair.left * q.left.size();
      want.push_back(product_sum(q, image, image, sy, sx));
      if (tolerance == 0) want.back() = static_cast<float>(want.back());
    });
    for (int call = 0; call < 2; ++call) {
      planned.compute(images.data(), images.data());
      for (std::size_t i = 0; i < want.size(); ++i) {
        ASSERT_NEAR(planned.surface()[i], want[i], tolerance * power)
            << q.id() << " " << params << " output " << i;
      }
    }
  }
};

struct LineKernel : Autocorrelation {
  LineKernel() : Autocorrelation("autocorr_cuda_line") {}
  void expect_exact(const char* id, const Images& image) const {
    for (const std::string sums : {"float", "integer"}) {
      for (const std::string shifts : {"1", "4", "8"}) {
        expect_right(parse_problem(id),
                     "lines_per_thread=1;shifts_per_thread=" + shifts + ";sums=" + sums, image);
      }
    }
  }
};

// Halves and numbers of nine bits; all sums are exact in float32.
TEST_F(LineKernel, panels_of_other_values_are_added_too) {
  Images image(4 * 600);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i % 7) - 2.0f;
  image[600 + 20] = 0.5f;      // first panel of line 1
  image[3 * 600 + 590] = 300;  // last panel of line 3
  expect_exact("one-to-one/4x600/4x600/1:1/sy:-1..2,sx:-3..3/same=yes", image);
}

// Its square is 2^32.
TEST_F(LineKernel, whole_numbers_beyond_eight_bits_are_no_integers) {
  Images image(3 * 40);
  image[50] = 65536;
  image[51] = 1;
  expect_exact("one-to-one/3x40/3x40/1:1/sy:0..1,sx:-2..2/same=yes", image);
}

// 255^2 on 200 lines of 300 columns is 3.9e9, beyond 2^31.
TEST_F(LineKernel, integers_take_no_more_lines_than_fit) {
  expect_right(parse_problem("one-to-one/200x300/200x300/1:1/sy:0..0,sx:0..0/same=yes"),
               "lines_per_thread=16;shifts_per_thread=1;sums=integer", Images(60000, 255.0f));
}

TEST_F(LineKernel, lines_too_long_for_an_integer_are_refused) {
  const auto support = [&](const char* id, const std::string& sums) {
    const Params params =
        parse_params(variant(), "lines_per_thread=1;shifts_per_thread=8;sums=" + sums);
    return variant().supports({parse_problem(id), params, Precision::fp32}).reason;
  };
  EXPECT_EQ(support("one-to-one/1x33025/1x33025/1:1/full/same=yes", "integer"), "");
  const char* const longer = "one-to-one/1x33026/1x33026/1:1/full/same=yes";
  EXPECT_NE(support(longer, "integer").find("does not fit 32 bits"), std::string::npos);
  EXPECT_EQ(support(longer, "float"), "");
}

struct WholeLineKernel : Autocorrelation {
  WholeLineKernel() : Autocorrelation("autocorr_cuda_whole_lines") {}
  // Whole numbers, so that all sums are exact.
  void expect_exact(const std::string& id) const {
    const Problem q = parse_problem(id);
    Images images;
    for (Index i = 0; i < q.left_elements(); ++i) {
      images.push_back(static_cast<float>(std::floor(8 * noise(1, i))));
    }
    expect_right(q, "", images);
  }
  std::string refusal(const char* id) const {
    return variant().supports({parse_problem(id), {}, Precision::fp32}).reason;
  }
};

// 512 threads, of which the last has shift 255; windows of one sign, whose other threads have no output.
TEST_F(WholeLineKernel, offsets_up_to_the_threads_of_a_block) {
  for (const char* window : {"sy:0..2,sx:-255..255", "sy:-1..1,sx:-255..255",
                             "sy:-2..1,sx:250..255", "sy:0..1,sx:-255..-254"}) {
    expect_exact(std::string("one-to-one/3x259/3x259/1:1/") + window + "/same=yes");
  }
  expect_exact("one-to-one/2x256/2x256/1:1/full/same=yes");
}

TEST_F(WholeLineKernel, larger_offsets_are_refused) {
  for (const char* id : {"one-to-one/2x300/2x300/1:1/sy:0..1,sx:-256..3/same=yes",
                         "one-to-one/2x300/2x300/1:1/sy:0..1,sx:256..256/same=yes"}) {
    EXPECT_EQ(refusal(id),
              "offset 256: a block of 512 threads has offsets of at most 255; use "
              "autocorr_cuda_line");
  }
}

// Two lines, of which one is filled up to a group of four and the other has zeros on both sides: 2 x 6140 + 2 x 3 floats are 48 KiB less 8
// bytes, and one pixel more takes five floats.
TEST_F(WholeLineKernel, a_line_that_just_fits_and_a_longer_one) {
  const SharedMemoryOf memory(48 * 1024);
  expect_exact("one-to-one/2x6140/2x6140/1:1/sy:0..1,sx:-3..2/same=yes");
  EXPECT_EQ(refusal("one-to-one/2x6141/2x6141/1:1/sy:0..1,sx:-3..2/same=yes"),
            "two whole lines: 49164 bytes of shared memory, and a block has 49152");
}

// More rows of shifts, and more images, than the grid has blocks; rows before and after the mirrored ones.
TEST_F(WholeLineKernel, blocks_take_several_rows_and_images) {
  expect_exact("n-to-mn/40x5/40x5/18:18/sy:-39..30,sx:-3..3/same=yes");
}

struct TileKernel : Autocorrelation {
  TileKernel() : Autocorrelation("autocorr_cuda_tile") {}
  // Whole numbers, so that all sums are exact.
  void expect_exact(const Problem& q, int threads, int rows) const {
    Images images;
    for (Index i = 0; i < q.left_elements(); ++i) {
      images.push_back(static_cast<float>(std::floor(8 * noise(1, i))));
    }
    expect_right(q,
                 "rows_per_thread=" + std::to_string(rows) + ";threads=" + std::to_string(threads),
                 images);
  }
};

// Rows are mirrored and others lie before them; some groups are one row of shifts; a tile has threads beside and below
// each other; three blocks share the tiles, which are more than a sum takes.
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
  expect_exact(q, 128, 8);
  expect_exact(q, 256, 48);
}

// Chunks of shifts, of which some need a part of the columns only; panels; several images.
TEST_F(TileKernel, chunks_of_shifts_have_panels_of_their_own) {
  const Problem q = parse_problem("n-to-mn/5x300/5x300/2:2/sy:0..4,sx:-290..-10/same=yes");
  const TileTasks tasks(q, 128, 8);
  EXPECT_GT(tasks.chunks, 1);
  EXPECT_GT(tasks.panels_of(tasks.chunks - 1), 1);
  EXPECT_LT(tasks.panels_of(0), tasks.panels_of(tasks.chunks - 1));
  EXPECT_GT(tasks.skipped, 0);
  expect_exact(q, 128, 8);
}

struct AutocorrelationFft : Autocorrelation {
  AutocorrelationFft() : Autocorrelation("autocorr_fft") {}
  void expect_correlates(Index rows, Index cols, const std::string& window,
                         const std::string& params) const {
    const std::string shape = std::to_string(rows) + "x" + std::to_string(cols);
    Images image(static_cast<std::size_t>(rows * cols));
    for (std::size_t i = 0; i < image.size(); ++i) {
      image[i] = static_cast<float>(i * i * 7 % 101 % 17) - 5.0f;
    }
    expect_right(
        parse_problem("one-to-one/" + shape + "/" + shape + "/1:1/" + window + "/same=yes"), params,
        image, 1e-6);
  }
};

// The window is one shift, so that a transform is hardly longer than its image.
TEST_F(AutocorrelationFft, every_length_of_a_pass_in_rows_and_columns) {
  std::set<int> first, middle, last;
  for (const Index n :
       {9, 12, 15, 25, 32, 36, 48, 60, 72, 100, 144, 256, 300, 400, 432, 500, 512, 864, 1280}) {
    const Passes passes = choose_passes(n, Lengths::smooth);
    first.insert(passes.pass[0].radix);
    last.insert(passes.pass[passes.count - 1].radix);
    for (int i = 1; i + 1 < passes.count; ++i) middle.insert(passes.pass[i].radix);
    expect_correlates(3, n, "sy:0..0,sx:0..0", "columns=4;lengths=smooth");
    expect_correlates(n, 3, "sy:0..0,sx:0..0", "columns=2;lengths=smooth");
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
      expect_correlates(29, 34, window, params);
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
      const bool is_power = (passes.length & (passes.length - 1)) == 0;
      EXPECT_TRUE(is_power || lengths != Lengths::power);
    }
  }
  EXPECT_EQ(choose_passes(850, Lengths::smooth).length, 864);
  EXPECT_EQ(choose_passes(1600, Lengths::smooth).length, 1600);
  EXPECT_EQ(choose_passes(1600, Lengths::smooth).count, 3);
}

}  // namespace
}  // namespace xcorr::emulation
