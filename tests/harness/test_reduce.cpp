// The reduction of surfaces on the host, against results that are found in another way.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "harness/problem/results.hpp"
#include "harness/reduce/reduce.hpp"
#include "harness/registry.hpp"
#include "tests/support/fixture.hpp"
#include "tests/support/records.hpp"

namespace xcorr {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

void expect_at(const Peak& peak, Index sy, Index sx) {
  EXPECT_EQ(peak.sy, sy);
  EXPECT_EQ(peak.sx, sx);
}

template <typename Record, typename T>
std::vector<Record> records(const Problem& problem, const std::vector<T>& surface) {
  const std::vector<char> bytes = reduced(problem, surface);
  std::vector<Record> found(bytes.size() / sizeof(Record));
  std::memcpy(found.data(), bytes.data(), found.size() * sizeof(Record));
  return found;
}
template <typename T>
Peak peak_of(Index rows, Index cols, const std::vector<T>& surface,
             const std::string& result = "peak") {
  return records<Peak>(circular_problem(rows, cols, result), surface).at(0);
}

template <typename T>
Listed detections(const Problem& problem, const std::vector<T>& surface) {
  return listed(problem, reduced(problem, surface).data());
}

// Few values, so that there are ties and plateaus.
std::vector<float> coarse(std::size_t count, unsigned seed, bool with_nan) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& v : values) {
    v = static_cast<float>(random() % 7);
    if (with_nan && random() % 11 == 0) v = kNan;
  }
  return values;
}

TEST(Peak, OfEqualOnesIsTheFirst) {
  const Peak peak = peak_of<float>(3, 4, {0, 1, 2, 5, 5, 0, 1, 5, 0, 0, 5, 0});
  EXPECT_EQ(peak.value, 5);
  expect_at(peak, -1, 1);
  EXPECT_EQ(peak.flags, kPeakAtBorder | kPeakOnPlateau);
  EXPECT_EQ(peak.sub_sy, 0);
  EXPECT_EQ(peak.sub_sx, 0);
}

TEST(Peak, OnAPlateauIsItsCentre) {
  for (const char* const fit : {"peak", "peak:gaussian"}) {
    for (const int rows : {1, 2, 3, 4}) {
      for (const int cols : {1, 2, 3, 6}) {
        std::vector<float> surface(8 * 9, 1.0f);
        for (int y = 0; y < rows; ++y) std::fill_n(surface.begin() + (y + 2) * 9 + 1, cols, 4.0f);
        const Peak peak = peak_of(8, 9, surface, fit);
        EXPECT_EQ(peak.sub_sy, 0.5f * static_cast<float>(rows - 1)) << fit;
        EXPECT_EQ(peak.sub_sx, 0.5f * static_cast<float>(cols - 1)) << fit;
        EXPECT_EQ(peak.flags, rows * cols > 1 ? kPeakOnPlateau : 0u);
      }
    }
  }
}

// Rounding decides which of two equal outputs is the peak, and whether they are a plateau, but not where it is.
TEST(Peak, HalfAPixelIsHalfAPixelWhateverRoundingDoes) {
  for (const char* const fit : {"peak", "peak:gaussian", "peak:upsample=20"}) {
    for (const int ulps : {-3, -1, 0, 1, 3}) {
      float second = 7.0f;
      for (int i = 0; i < std::abs(ulps); ++i)
        second = std::nextafter(second, ulps < 0 ? 0.f : 9.f);
      // Symmetric about the middle of columns 3 and 4.
      const std::vector<float> line = {0, 1, 4, 7.0f, second, 4, 1, 0};
      const Peak peak = peak_of(1, 8, line, fit);
      EXPECT_NEAR(peak.sx + peak.sub_sx, -1 + 0.5, 1e-5) << fit << " " << ulps;
    }
  }
}

TEST(Peak, IsFittedByAParabolaAlongEachAxis) {
  std::vector<double> surface;
  for (int y = 0; y < 7; ++y) {
    for (int x = 0; x < 9; ++x) {
      surface.push_back(50 - 2 * std::pow(y - 3.25, 2) - std::pow(x - 4.375, 2));
    }
  }
  const Peak peak = peak_of(7, 9, surface);
  expect_at(peak, 0, 0);
  EXPECT_NEAR(peak.sub_sy, 0.25, 1e-6);
  EXPECT_NEAR(peak.sub_sx, 0.375, 1e-6);
  EXPECT_EQ(peak.flags, 0u);
  EXPECT_TRUE(std::isnan(peak.second));
}

TEST(Peak, OfAGaussianIsFoundByTheFitOfLogarithms) {
  std::vector<double> surface;
  for (int y = 0; y < 11; ++y) {
    for (int x = 0; x < 8; ++x) {
      surface.push_back(3 * std::exp(-std::pow((y - 5.3) / 1.2, 2) - std::pow((x - 3.8) / 1.7, 2)));
    }
  }
  const Peak peak = peak_of(11, 8, surface, "peak:gaussian");
  EXPECT_NEAR(peak.sy + peak.sub_sy, 0.3, 1e-6);
  EXPECT_NEAR(peak.sx + peak.sub_sx, -0.2, 1e-6);
  const Peak parabola = peak_of(11, 8, surface);
  EXPECT_GT(std::abs(parabola.sy + parabola.sub_sy - 0.3), 1e-3) << "another fit";
}

TEST(Peak, WithoutThreePositiveValuesTheGaussianIsAParabola) {
  const std::vector<float> surface = {0, 0, 0, -1, 4, 2, 0, 0, 0};
  EXPECT_EQ(peak_of(3, 3, surface, "peak:gaussian").sub_sx, peak_of(3, 3, surface).sub_sx);
  EXPECT_FLOAT_EQ(peak_of(3, 3, surface).sub_sx, 0.5f * 3 / 7);
}

TEST(Peak, AtABorderIsFittedAlongTheOtherAxis) {
  const Peak peak = peak_of<float>(3, 3, {1, 9, 5, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(peak.flags, std::uint32_t{kPeakAtBorder});
  EXPECT_EQ(peak.sub_sy, 0);
  EXPECT_FLOAT_EQ(peak.sub_sx, 0.5f * (5 - 1) / (18 - 6));
}

TEST(Peak, SecondIsOutsideFiveByFive) {
  std::vector<float> surface(9 * 9);
  surface[4 * 9 + 4] = 10;
  surface[4 * 9 + 6] = 9;  // inside
  surface[1 * 9 + 4] = 8;  // the first outside
  surface[8 * 9 + 8] = 7;
  EXPECT_EQ(peak_of(9, 9, surface).second, 8);
  surface[0 * 9 + 4] = 8.5;  // beside it: now this is the local maximum
  EXPECT_EQ(peak_of(9, 9, surface).second, 8.5);
}

TEST(Peak, OnTheFlankThereIsNoSecond) {
  std::vector<float> surface;
  for (int i = 0; i < 15; ++i) surface.push_back(static_cast<float>(-i));
  EXPECT_TRUE(std::isnan(peak_of(1, 15, surface).second));
}

TEST(Peak, NanIsNeverTheLargest) {
  const Peak peak = peak_of<float>(3, 3, {kNan, 1, 0, 0, 2, kNan, 0, 0, 0});
  EXPECT_EQ(peak.value, 2);
  EXPECT_EQ(peak.flags, std::uint32_t{kPeakNotFinite});
  EXPECT_EQ(peak.sub_sx, 0);
}

TEST(Peak, OfNothingButNanIsNanAtTheFirstShift) {
  const Peak peak = peak_of(4, 6, std::vector<float>(24, kNan));
  EXPECT_TRUE(std::isnan(peak.value));
  EXPECT_TRUE(std::isnan(peak.second));
  expect_at(peak, -2, -3);
  EXPECT_EQ(peak.flags, std::uint32_t{kPeakNotFinite});
}

TEST(Peak, InfinityIsTheLargest) {
  const Peak peak = peak_of<float>(1, 5, {0, 1, kInf, 1, 0});
  EXPECT_EQ(peak.value, kInf);
  EXPECT_EQ(peak.sx, 0);
  EXPECT_EQ(peak.sub_sx, 0);
  EXPECT_EQ(peak.flags, kPeakNotFinite | kPeakAtBorder);
}

TEST(Peaks, AreThoseOfAPlainSearch) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const Index rows = 1 + seed % 7, cols = 1 + seed % 11, pairs = 3;
    const Problem problem = circular_problem(rows, cols, "peaks:5", pairs);
    const std::vector<float> all =
        coarse(static_cast<std::size_t>(problem.out_elements()), seed, seed % 2);
    const std::vector<Peak> found = records<Peak>(problem, all);
    for (Index p = 0; p < pairs; ++p) {
      const auto value = [&](Index y, Index x) { return all[(p * rows + y) * cols + x]; };
      struct Place {
        float value;
        Index y, x;
      };
      std::vector<Place> maxima;
      for (Index y = 0; y < rows; ++y) {
        for (Index x = 0; x < cols; ++x) {
          bool largest = !std::isnan(value(y, x));
          for (Index i = 0; i < 9; ++i) {
            const Index v = y + i / 3 - 1, u = x + i % 3 - 1;
            if (v < 0 || v >= rows || u < 0 || u >= cols) continue;
            const float other = value(v, u);
            if (other > value(y, x) || (i < 4 && other == value(y, x))) largest = false;
          }
          if (largest) maxima.push_back({value(y, x), y, x});
        }
      }
      std::stable_sort(maxima.begin(), maxima.end(),
                       [](const Place& a, const Place& b) { return a.value > b.value; });
      for (std::size_t k = 0; k < 5; ++k) {
        const Peak& peak = found[static_cast<std::size_t>(p) * 5 + k];
        EXPECT_TRUE(std::isnan(peak.second));
        if (k >= maxima.size()) {
          EXPECT_TRUE(std::isnan(peak.value)) << seed << " " << k;
          continue;
        }
        EXPECT_EQ(peak.value, maxima[k].value) << seed << " " << k;
        expect_at(peak, maxima[k].y - rows / 2, maxima[k].x - cols / 2);
      }
    }
  }
}

TEST(Above, ListsAllInOrderAndCountsMoreThanItHolds) {
  const Problem problem = circular_problem(2, 3, "above:2:3", 2);
  const std::vector<float> surface = {1, 2, 3, kNan, 0, 2, 9, 0, 0, 0, 0, kInf};
  const Listed found = detections(problem, surface);
  EXPECT_EQ(found.header.count, 5u);
  ASSERT_EQ(found.written.size(), 3u);
  const auto is = [](const Detection& d, int pair, int sy, int sx, float value) {
    return d.pair == pair && d.sy == sy && d.sx == sx && d.value == value;
  };
  EXPECT_TRUE(is(found.written[0], 0, -1, 0, 2));
  EXPECT_TRUE(is(found.written[1], 0, -1, 1, 3));
  EXPECT_TRUE(is(found.written[2], 0, 0, 1, 2));
}

// No output that is closer than the distance to a larger one, or to an equal one before it.
TEST(Above, WithADistanceListsTheLargestOfItsSurroundings) {
  constexpr Index kRows = 9, kCols = 13;
  for (unsigned seed = 0; seed < 30; ++seed) {
    const std::vector<float> surface = coarse(2 * kRows * kCols, seed, seed % 2 == 1);
    for (const int distance : {1, 2, 3, 5, 40}) {
      const auto problem =
          circular_problem(kRows, kCols, "above:3:500:" + std::to_string(distance), 2);
      const Listed found = detections(problem, surface);
      std::size_t next = 0;
      for (Index at = 0; at < 2 * kRows * kCols; ++at) {
        const Index p = at / (kRows * kCols), y = at / kCols % kRows, x = at % kCols;
        const float value = surface[at];
        bool expected = value >= 3;
        for (Index i = 0; i < kRows * kCols; ++i) {
          const Index dy = std::abs(i / kCols - y), dx = std::abs(i % kCols - x);
          const float other = surface[p * kRows * kCols + i];
          const bool before = other > value || (other == value && i < y * kCols + x);
          if (before && std::max(dy, dx) < distance) expected = false;
        }
        if (!expected) continue;
        ASSERT_LT(next, found.written.size());
        EXPECT_EQ(found.written[next].pair, p);
        EXPECT_EQ(found.written[next].sy, y - kRows / 2);
        EXPECT_EQ(found.written[next].sx, x - kCols / 2);
        ++next;
      }
      EXPECT_EQ(found.header.count, next);
    }
  }
}

// The median with the mean of the middle two, as numpy.median.
double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

template <typename T>
void thresholds_are_exact() {
  std::mt19937 random(7);
  for (const Index size : {1, 2, 3, 4, 10, 101, 1000, 4097}) {
    for (const bool coarse_values : {false, true}) {
      std::vector<T> surface(size);
      std::vector<double> values;
      for (T& v : surface) {
        v = static_cast<T>(static_cast<double>(random()) / 4294967296.0 - 0.5);
        if (coarse_values) v = static_cast<T>(std::floor(v * 8));
        if (size > 10 && random() % 10 == 0) {
          v = std::numeric_limits<T>::quiet_NaN();
        } else {
          values.push_back(static_cast<double>(v));
        }
      }
      const double centre = median(values);
      std::vector<double> deviations;
      for (const double v : values) {
        deviations.push_back(static_cast<double>(static_cast<T>(std::abs(v - centre))));
      }
      const double threshold = centre + 1.5 * median(deviations);
      std::size_t expected = 0;
      for (const double v : values) expected += v >= threshold;
      const Listed found = detections(circular_problem(1, size, "above:1.5mad:5000"), surface);
      EXPECT_EQ(found.header.count, expected) << size;
      for (const Detection& d : found.written) EXPECT_GE(d.value, static_cast<float>(threshold));
    }
  }
}
TEST(Above, DeviationsAreExactInFloat) { thresholds_are_exact<float>(); }
TEST(Above, DeviationsAreExactInDouble) { thresholds_are_exact<double>(); }

TEST(Above, BothZerosAreOneNumberAndNanIsNone) {
  // The median is 0 and the deviations are 1, 0, 0 and 5: one deviation is 0.5.
  const std::vector<float> zeros = {5, -0.0f, -1, 0}, none(4, kNan);
  for (const auto& [surface, result, count] : {std::tuple{zeros, "above:1mad:9", 1u},
                                               {zeros, "above:0mad:9", 3u},
                                               {none, "above:8mad:9", 0u}}) {
    EXPECT_EQ(detections(circular_problem(2, 2, result), surface).header.count, count) << result;
  }
}

TEST(Sum, IsOfAllOutputsOfAPair) {
  const Problem problem = circular_problem(37, 41, "sum", 3);
  std::vector<float> surface(problem.out_elements());
  std::vector<double> expected(3);
  for (std::size_t i = 0; i < surface.size(); ++i) {
    surface[i] = static_cast<float>(i % 101) - 33;
    expected[i / (37 * 41)] += static_cast<double>(surface[i]);
  }
  EXPECT_EQ(records<double>(problem, surface), expected);
}

// A sum of few frequencies, whose maximum between outputs is known: the interpolation is exact.
TEST(Upsample, FindsTheMaximumOfABandLimitedSurface) {
  for (const auto& [rows, cols] : {std::pair<Index, Index>{16, 12}, {15, 13}, {1, 32}}) {
    constexpr double kTurn = 6.283185307179586;
    const double at_y = rows == 1 ? 0 : static_cast<double>(rows / 2) + 0.35,
                 at_x = static_cast<double>(cols / 2) - 0.2;
    std::vector<double> surface;
    for (Index y = 0; y < rows; ++y) {
      for (Index x = 0; x < cols; ++x) {
        const double dy = kTurn * (static_cast<double>(y) - at_y) / static_cast<double>(rows);
        const double dx = kTurn * (static_cast<double>(x) - at_x) / static_cast<double>(cols);
        surface.push_back((rows == 1 ? 1 : std::cos(dy) + 0.5 * std::cos(2 * dy)) + std::cos(dx) +
                          0.25 * std::cos(3 * dx));
      }
    }
    const Peak peak = peak_of(rows, cols, surface, "peak:upsample=20");
    EXPECT_NEAR(peak.sy + peak.sub_sy, rows == 1 ? 0 : 0.35, 1e-6);
    EXPECT_NEAR(peak.sx + peak.sub_sx, -0.2, 1e-6);
  }
}

TEST(Upsample, TakesTheSurfaceAsPeriodic) {
  constexpr double kTurn = 6.283185307179586;
  std::vector<double> surface;
  for (int x = 0; x < 10; ++x) surface.push_back(std::cos(kTurn * (x - 9.75) / 10));
  const Peak peak = peak_of(1, 10, surface, "peak:upsample=4");
  EXPECT_EQ(peak.sx, -5) << "index 0 is 0.25 before the maximum's next period";
  EXPECT_FLOAT_EQ(peak.sub_sx, -0.25f);
  EXPECT_TRUE(peak.flags & kPeakAtBorder);
}

// What compute of a reduced plan leaves is what the reduction makes of the variant's surface.
TEST(MakePlan, ReducesTheSurfaceOfTheVariant) {
  const Variant& variant = find_variant("cpu_definition");
  const PlanRequest request{parse_problem("n-to-m/5x6/4x7/2:3/full/result=peaks:3"),
                            grid_points(variant).front()};
  const std::vector<float> left = coarse(2 * 30, 1, false), right = coarse(3 * 28, 2, false);
  const auto computed = [&](PlanRequest asked, void* out) {
    const GlobalMemory workspace(plan_workspace_bytes(variant, asked));
    asked.workspace = workspace.get();
    make_plan(variant, asked)->compute({left.data(), right.data(), out});
  };
  std::vector<float> surface(request.problem.out_elements());
  PlanRequest of_surface = request;
  of_surface.problem = request.problem.surface();
  EXPECT_EQ(plan_workspace_bytes(variant, of_surface), variant.workspace_bytes(of_surface));
  computed(of_surface, surface.data());
  std::vector<char> found(request.problem.result_bytes(sizeof(float)));
  computed(request, found.data());
  EXPECT_EQ(found, reduced(request.problem, surface));
  EXPECT_EQ(point_hash(variant, of_surface.problem), variant.source_hash);
  EXPECT_EQ(point_hash(variant, request.problem),
            variant.source_hash + "+" + reduction_hash(Backend::cpu));
}

}  // namespace
}  // namespace xcorr
