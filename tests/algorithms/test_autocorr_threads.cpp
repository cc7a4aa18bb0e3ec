// autocorr_simd with several threads: which points the machine and the problem allow, and outputs that
// depend neither on the number of threads nor on what the threads divide.
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <string>
#include <vector>

#include "harness/problem/inputs.hpp"
#include "tests/support/planned.hpp"

namespace xcorr {
namespace {

constexpr int kThreads = 8;

// Of three images and rows of two sizes, so that no number of threads but 1 divides the work evenly.
const std::string kStack = "n-to-mn/9x37/9x37/3:3/sy:-4..4,sx:-5..5/same=yes";
const std::string kImage = "one-to-one/9x37/9x37/1:1/sy:0..4,sx:-5..5/same=yes";

class AutocorrThreads : public ::testing::Test {
 protected:
  AutocorrThreads() { omp_set_num_threads(kThreads); }
  ~AutocorrThreads() override { omp_set_num_threads(before_); }

  const Variant& variant_ = find_variant("autocorr_simd");

  std::string refusal(const std::string& problem, const std::string& point) const {
    return variant_.supports({parse_problem(problem), parse_params(variant_, point)}).reason;
  }

 private:
  int before_ = omp_get_max_threads();
};

TEST_F(AutocorrThreads, MoreThanOpenMpHasAreRefused) {
  EXPECT_EQ(refusal(kStack, "threads=8;threads_over=images"), "");
  EXPECT_EQ(refusal(kStack, "threads=16;threads_over=images"),
            "threads=16: OpenMP has 8 threads here; take threads=all");
  omp_set_num_threads(1);
  EXPECT_EQ(refusal(kStack, "threads=1"), "");
  EXPECT_EQ(refusal(kStack, "threads=all"), "");
  EXPECT_NE(refusal(kStack, "threads=2;threads_over=rows_of_shifts"), "");
}

TEST_F(AutocorrThreads, OneImageIsNotDivided) {
  EXPECT_EQ(refusal(kImage, "threads=2;threads_over=images"),
            "threads_over=images: the problem has one image; take threads_over=rows_of_shifts");
  EXPECT_EQ(refusal(kImage, "threads=2;threads_over=rows_of_shifts"), "");
}

TEST_F(AutocorrThreads, OutputsDependOnNeitherThreadsNorDivision) {
  const Problem q = parse_problem(kStack);
  std::vector<float> images(static_cast<std::size_t>(q.lefts * q.left.size()));
  for (std::size_t i = 0; i < images.size(); ++i) {
    images[i] = static_cast<float>(mix(i) >> 43) * 0x1p-20f - 1;
  }
  const auto outputs = [&](const Params& point) {
    Planned planned(variant_, q, point);
    planned.compute({images.data(), images.data()});
    const float* const first = planned.surface();
    return std::vector<float>(first, first + q.pairs() * q.out_size());
  };
  const std::vector<float> one = outputs(parse_params(variant_, "threads=1"));
  int compared = 0;
  for (const Params& point : grid_points(variant_)) {
    if (!variant_.supports({q, point})) continue;
    EXPECT_EQ(outputs(point), one) << point.canonical();
    ++compared;
  }
  EXPECT_EQ(compared, 2 + 2 * 3) << "1, all, and 2, 4 and 8 threads over rows and over images";
}

}  // namespace
}  // namespace xcorr
