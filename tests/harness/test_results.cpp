// The verdict on results: fabricated records against surfaces that are known.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "harness/problem/results.hpp"
#include "harness/reduce/reduce.hpp"
#include "harness/registry.hpp"
#include "harness/verdict/large_median.hpp"
#include "harness/verdict/result_verdict.hpp"
#include "tests/support/fixture.hpp"

namespace xcorr {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A truth that is nothing but a surface and bounds.
class Known : public Truth {
 public:
  Known(std::vector<double> value, double bound)
      : value_(std::move(value)), bound_(value_.size(), bound) {}

  void set_round(Index) override {}
  void fill(InputKind, void*, void*) override {}
  std::string changed_inputs(InputKind, const void*, const void*) override { return ""; }
  Check check(InputKind, const void*) override { return {}; }
  void surface(InputKind, Index first, Index count, Reference& into) override {
    references += count;
    const auto part = [&](const std::vector<double>& all) {
      const auto size = static_cast<std::ptrdiff_t>(out_size);
      return std::vector<double>(all.begin() + first * size, all.begin() + (first + count) * size);
    };
    into = {part(value_), part(bound_)};
  }
  const std::vector<double>& values() const { return value_; }
  Index out_size = 0;
  Index references = 0;  // of pairs that were computed

 private:
  std::vector<double> value_, bound_;
};

// A problem, its truth, and the right records: those of the float32 surface.
class Judged {
 public:
  Judged(const Problem& problem, const std::vector<double>& values, double bound = 0,
         const std::vector<double>& errors = {})
      : problem_(problem), truth_(values, bound) {
    truth_.out_size = problem.out_size();
    std::vector<float> surface(values.begin(), values.end());
    for (std::size_t i = 0; i < errors.size(); ++i) {
      surface[i] = static_cast<float>(values[i] + errors[i]);
    }
    records_.resize(static_cast<std::size_t>(problem.result_bytes(sizeof(float))) / 8);
    reduce_on_cpu(problem, Precision::fp32, surface.data(), nullptr, records_.data());
  }
  Peak& peak(std::size_t i = 0) { return reinterpret_cast<Peak*>(records_.data())[i]; }
  AboveHeader& header() { return *reinterpret_cast<AboveHeader*>(records_.data()); }
  Detection& detection(std::size_t i) {
    return reinterpret_cast<Detection*>(records_.data() + 2)[i];
  }
  double& sum(std::size_t i) { return records_[i]; }
  const void* records() const { return records_.data(); }

  // "" where the records pass.
  std::string wrong(InputKind kind = InputKind::zero_mean) {
    const Check check = check_result(problem_, truth_, kind, records_.data());
    return check.passed() ? "" : describe_failure(problem_, check);
  }

 private:
  Problem problem_;
  Known truth_;
  std::vector<double> records_;
};

using Spoil = std::function<void(Judged&)>;

// What the verdict says of right records after `spoil` has changed them.
std::string said_of(const Problem& problem, const std::vector<double>& surface, const Spoil& spoil,
                    double bound = 1e-4) {
  Judged judged(problem, surface, bound);
  spoil(judged);
  return judged.wrong();
}

// Two peaks on a slope: the largest at (3, 4), and a smaller one at (7, 9).
constexpr Index kRows = 9, kCols = 12;
std::vector<double> two_peaks(double second = 6) {
  std::vector<double> surface;
  for (Index y = 0; y < kRows; ++y) {
    for (Index x = 0; x < kCols; ++x) {
      const double far1 = std::hypot(static_cast<double>(y) - 3.2, static_cast<double>(x) - 3.9);
      const double far2 = std::hypot(static_cast<double>(y) - 7.0, static_cast<double>(x) - 9.0);
      surface.push_back(10 * std::exp(-far1 * far1 / 8) + second * std::exp(-far2 * far2 / 3));
    }
  }
  return surface;
}

TEST(Verdict, RightRecordsPass) {
  for (const char* result : {"peak", "peak:gaussian", "peak:upsample=10", "peaks:1", "peaks:4",
                             "above:5:50", "above:2mad:200", "above:1:50:4", "sum"}) {
    Judged judged(circular_problem(kRows, kCols, result), two_peaks(), 1e-4);
    EXPECT_EQ(judged.wrong(), "") << result;
  }
}

// Of every kind of surface, and of errors within the bounds, nothing right is refused.
TEST(Verdict, RecordsOfAnySurfaceWithinTheBoundsPass) {
  std::mt19937 random(3);
  const auto unit = [&] { return static_cast<double>(random()) / 4294967296.0; };
  for (int round = 0; round < 120; ++round) {
    const Index rows = 1 + random() % 9, cols = 1 + random() % 9, pairs = 2;
    const int levels = round % 3 == 0 ? 3 : 1000;  // few: ties and plateaus
    const double bound = round % 2 ? 0.02 : 0.0;
    const auto count = static_cast<std::size_t>(rows * cols * pairs);
    std::vector<double> values(count), errors(count);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = std::floor(unit() * levels) / (levels == 3 ? 1 : 128.0) - 0.5;
      errors[i] = (2 * unit() - 1) * bound * 0.99;
    }
    for (const char* result : {"peak", "peak:gaussian", "peak:upsample=5", "peaks:3",
                               "above:0.5:500", "above:1mad:500", "above:0.1:500:3", "sum"}) {
      // Sums are judged by independent errors, these have the size of the bound.
      if (std::string(result) == "sum" && bound > 0) continue;
      const Problem problem = circular_problem(rows, cols, result, pairs);
      Judged judged(problem, values, bound, errors);
      ASSERT_EQ(judged.wrong(), "") << round << " " << problem.id();
    }
  }
}

TEST(Verdict, APeakElsewhereIsFound) {
  Judged judged(circular_problem(kRows, kCols, "peak"), two_peaks(), 1e-4);
  judged.peak().sx += 1;
  expect_says(judged.wrong(), "is no peak");
  judged.peak().sx += 100;
  expect_says(judged.wrong(), "is outside the window");
}

TEST(Verdict, ThePeakOfTheWrongPairIsFound) {
  std::vector<double> both = two_peaks(), other = two_peaks(14);
  both.insert(both.end(), other.begin(), other.end());
  Judged judged(circular_problem(kRows, kCols, "peak", 2), both, 1e-4);
  EXPECT_EQ(judged.wrong(), "");
  judged.peak(1) = judged.peak(0);
  expect_says(judged.wrong(), "1 wrong records; pair 1 ");
}

TEST(Verdict, OfAlmostEqualPeaksEitherPasses) {
  // The two largest differ by less than two bounds.
  std::vector<double> surface(25);
  surface[6] = 5, surface[18] = 5.001;
  for (const double bound : {0.001, 1e-5}) {
    Judged judged(circular_problem(5, 5, "peak"), surface, bound);
    judged.peak() = {5.0f, -1, -1, 0, 0, kNan, 0, 0};
    EXPECT_EQ(judged.wrong().empty(), bound == 0.001);
  }
}

TEST(Verdict, ATieBrokenTheWrongWayIsFoundWhereSumsAreExact) {
  std::vector<double> surface(49);
  surface[8] = surface[40] = 7;
  for (const double bound : {0.0, 0.01}) {
    Judged judged(circular_problem(7, 7, "peak"), surface, bound);
    EXPECT_EQ(judged.wrong(), "");
    EXPECT_EQ(judged.peak().sy, -2);
    judged.peak().sy = judged.peak().sx = 2;
    EXPECT_EQ(judged.wrong().find("is no peak") != std::string::npos, bound == 0);
    EXPECT_EQ(judged.wrong().empty(), bound > 0);
  }
}

TEST(Verdict, AWrongValueIsFound) {
  Judged judged(circular_problem(kRows, kCols, "peak"), two_peaks(), 1e-4);
  judged.peak().value *= 1.0001f;
  expect_says(judged.wrong(), "value is ");
  judged.peak().value = kNan;
  expect_says(judged.wrong(), "value is nan");
}

TEST(Verdict, AFitOfTheWrongSignIsFound) {
  for (const char* result : {"peak", "peak:gaussian", "peak:upsample=10", "peaks:2"}) {
    for (float Peak::* sub : {&Peak::sub_sy, &Peak::sub_sx}) {
      Judged judged(circular_problem(kRows, kCols, result), two_peaks(), 1e-4);
      EXPECT_GT(std::abs(judged.peak().*sub), 0.04) << result;
      judged.peak().*sub *= -1;
      expect_says(judged.wrong(), "sub");
    }
  }
}

TEST(Verdict, AFitIsJudgedByTheCurvature) {
  // Through (0, 1, 0): 2 bounds / curvature is the bound of the fit.
  for (const double bound : {1e-3, 1e-5}) {
    Judged judged(circular_problem(1, 3, "peak"), {0, 1, 0.5}, bound);
    const float fit = judged.peak().sub_sx;
    EXPECT_FLOAT_EQ(fit, 1.0f / 6);
    judged.peak().sub_sx = fit + static_cast<float>(1.2 * bound / 1.5);
    EXPECT_EQ(judged.wrong(), "");
    judged.peak().sub_sx = fit + static_cast<float>(2.5 * bound / 1.5);
    expect_says(judged.wrong(), "sub_sx is ");
  }
}

TEST(Verdict, AtABorderThePositionIsWhole) {
  Judged at_border(circular_problem(1, 4, "peak"), {5, 3, 2, 1}, 1e-4);
  EXPECT_EQ(at_border.wrong(), "");
  at_border.peak().sub_sx = 0.1f;
  expect_says(at_border.wrong(), "sub_sx is 0.1");
}

TEST(Verdict, OnAPlateauThePositionIsItsCentre) {
  for (const char* const fit : {"peak", "peak:gaussian", "peaks:1"}) {
    for (const int equal : {2, 3, 4}) {
      std::vector<double> surface(7, 1.0);
      std::fill_n(surface.begin() + 1, equal, 5.0);
      Judged flat(circular_problem(1, 7, fit), surface);
      EXPECT_EQ(flat.wrong(), "");
      EXPECT_EQ(flat.peak().sub_sx, 0.5f * static_cast<float>(equal - 1));
      for (const float wrong : {0.0f, 0.25f, 0.5f * static_cast<float>(equal)}) {
        flat.peak().sub_sx = wrong;
        expect_says(flat.wrong(), "a plateau's centre");
      }
    }
  }
}

TEST(Verdict, APlateauEndsWhereALargerOutputFollows) {
  for (const char* const fit : {"peaks:2", "peaks:3"}) {
    Judged judged(circular_problem(1, 7, fit), {1, 5, 5, 5, 8, 8, 1});
    EXPECT_EQ(judged.wrong(), "");
  }
}

TEST(Verdict, OutputsThatMayBeEqualAreHalfAPixel) {
  Judged judged(circular_problem(1, 4, "peak"), {1, 5, 5 - 1e-6, 1}, 1e-6);
  EXPECT_EQ(judged.wrong(), "");
  EXPECT_NEAR(judged.peak().sub_sx, 0.5, 1e-6);
  judged.peak().flags |= kPeakOnPlateau;  // another surface within the bounds
  judged.peak().sub_sx = 0.5f;
  EXPECT_EQ(judged.wrong(), "");
  judged.peak().sub_sx = 0;
  expect_says(judged.wrong(), "sub_sx is 0");
}

TEST(Verdict, WrongFlagsAreFound) {
  const auto said = [](const std::vector<double>& surface, std::uint32_t toggled,
                       double bound = 0) {
    const Problem problem = circular_problem(5, 5, "peak");
    EXPECT_EQ(said_of(problem, surface, [](Judged&) {}, bound), "");
    return said_of(problem, surface, [&](Judged& j) { j.peak().flags ^= toggled; }, bound);
  };
  std::vector<double> inside(25), border(25), flat(25);
  inside[12] = border[2] = flat[12] = flat[13] = 4;
  expect_says(said(inside, kPeakAtBorder), "border is set");
  expect_says(said(border, kPeakAtBorder), "border is not set");
  expect_says(said(inside, kPeakOnPlateau), "plateau is set");
  expect_says(said(flat, kPeakOnPlateau), "plateau is not set");
  expect_says(said(inside, kPeakNotFinite), "not finite is set");
  EXPECT_EQ(said(flat, 0, 0.1), "");
}

TEST(Verdict, ASecondOnTheFlankIsFound) {
  Judged judged(circular_problem(kRows, kCols, "peak"), two_peaks(), 1e-4);
  const float second = judged.peak().second;
  EXPECT_NEAR(second, 6, 0.1);
  // The largest output outside 5 x 5 that is no local maximum, just beside.
  judged.peak().second = static_cast<float>(two_peaks()[3 * kCols + 7]);
  expect_says(judged.wrong(), "no local maximum");
  judged.peak().second = kNan;
  expect_says(judged.wrong(), "second is NaN");
  judged.peak().second = judged.peak().value;
  expect_says(judged.wrong(), "no local maximum");
}

TEST(Verdict, ASmallerSecondIsFound) {
  std::vector<double> surface(81);
  surface[0] = 9, surface[40] = 7, surface[80] = 5;
  Judged judged(circular_problem(9, 9, "peak"), surface, 1e-4);
  judged.peak().second = 5;
  expect_says(judged.wrong(), "a larger local maximum is at least");
}

TEST(Verdict, ListsOfPeaksAreJudged) {
  std::vector<double> surface(121);
  surface[0] = 9, surface[40] = 7, surface[60] = 5, surface[120] = 3;
  const auto said = [&](const Spoil& spoil, const char* result) {
    EXPECT_EQ(said_of(circular_problem(11, 11, result), surface, [](Judged&) {}), "");
    return said_of(circular_problem(11, 11, result), surface, spoil);
  };
  expect_says(said([](Judged& j) { std::swap(j.peak(0), j.peak(1)); }, "peaks:3"), "larger than");
  expect_says(said([](Judged& j) { j.peak(2) = j.peak(1); }, "peaks:3"), "is listed twice");
  expect_says(said([](Judged& j) { j.peak(2).value = kNan; }, "peaks:3"), "is missing");
  expect_says(said([](Judged& j) { j.peak(1).value = kNan; }, "peaks:3"), "follows a missing");
  expect_says(said([](Judged& j) { j.peak(1) = j.peak(2), j.peak(2) = j.peak(3); }, "peaks:4"),
              "is listed twice");
  expect_says(said([](Judged& j) { j.peak(0).second = 1; }, "peaks:3"), "expected NaN");
  expect_says(said([](Judged& j) { j.peak(2).sx += 1; }, "peaks:3"), "is no local maximum");
}

TEST(Verdict, TheSmallerOfTwoLeftOutIsFound) {
  std::vector<double> surface(121);
  surface[0] = 9, surface[40] = 7, surface[60] = 5;
  Judged judged(circular_problem(11, 11, "peaks:2"), surface, 1e-4);
  judged.peak(1) = {5, 0, 0, 0, 0, kNan, 0, 0};
  expect_says(judged.wrong(), "the local maximum 7");
}

TEST(Verdict, DetectionsAreJudged) {
  const auto said = [](const Spoil& spoil, const char* result) {
    return said_of(circular_problem(2, 4, result), {1, 5, 2, 7, 3, 0, 4, 0}, spoil);
  };
  const char* all = "above:3.5:5";
  EXPECT_EQ(said([](Judged&) {}, all), "");
  EXPECT_EQ(said([](Judged& j) { std::swap(j.detection(0), j.detection(2)); }, all), "");
  expect_says(said([](Judged& j) { j.detection(0) = j.detection(1); }, all), "is listed twice");
  expect_says(said([](Judged& j) { j.detection(0) = j.detection(1); }, all), "2 wrong records");
  expect_says(said([](Judged& j) { j.detection(0).sx += 1; }, all), "is below the threshold");
  expect_says(said([](Judged& j) { j.detection(0).sx += 10; }, all), "is outside the problem");
  expect_says(said([](Judged& j) { j.detection(0).pair = 1; }, all), "is outside the problem");
  expect_says(said([](Judged& j) { j.detection(0).value += 1; }, all), "value is ");
  expect_says(said([](Judged& j) { --j.header().count; }, all), "4 +- 0.000100238419 is missing");
}

TEST(Verdict, DetectionsKeepTheirDistance) {
  // 9 and 8 are two columns apart, and 7 is far from both.
  const std::vector<double> surface = {1, 9, 2, 8, 3, 0, 0, 7, 0};
  const auto said = [&](const Spoil& spoil, const char* result) {
    return said_of(circular_problem(1, 9, result), surface, spoil);
  };
  EXPECT_EQ(said([](Judged& j) { EXPECT_EQ(j.header().count, 3u); }, "above:3.5:5:2"), "");
  EXPECT_EQ(said([](Judged& j) { EXPECT_EQ(j.header().count, 2u); }, "above:3.5:5:3"), "");
  EXPECT_EQ(said([](Judged& j) { EXPECT_EQ(j.header().count, 1u); }, "above:3.5:5:7"), "");
  const auto add = [](Judged& j) {
    j.detection(1) = {0, j.detection(0).sy, j.detection(0).sx + 2, 8};
  };
  expect_says(said(add, "above:3.5:5:3"), "is too close to a larger output");
  expect_says(said([](Judged& j) { --j.header().count; }, "above:3.5:5:3"), "is missing");
}

// Surfaces of detections take long, and many points share their truth.
TEST(Verdict, SurfacesOfDetectionsAreComputedOnce) {
  const Problem problem = circular_problem(2, 4, "above:3.5:5");
  const std::vector<double> surface = {1, 5, 2, 7, 3, 0, 4, 0};
  const auto known = std::make_shared<Known>(surface, 1e-4);
  known->out_size = problem.out_size();
  const std::unique_ptr<Device> device = open_cpu();
  const std::unique_ptr<Truth> truth = make_result_truth(problem, known, *device);
  const auto said = [&](const Spoil& spoil, InputKind kind = InputKind::sparse) {
    Judged judged(problem, surface, 1e-4);
    spoil(judged);
    const Check check = truth->check(kind, judged.records());
    return check.passed() ? "" : describe_failure(problem, check);
  };
  const auto nothing = [](Judged&) {};
  EXPECT_EQ(said(nothing), "");
  EXPECT_EQ(said(nothing), "");
  expect_says(said([](Judged& j) { --j.header().count; }), "is missing");
  EXPECT_EQ(known->references, 1);
  expect_says(said([](Judged& j) { j.detection(0).sx += 1; }), "is below the threshold");
  EXPECT_EQ(known->references, 2) << "an output that is no candidate is looked at";
  EXPECT_EQ(said(nothing, InputKind::zero_mean), "");
  EXPECT_EQ(known->references, 3) << "another input";
  truth->set_round(0);
  EXPECT_EQ(said(nothing), "");
  EXPECT_EQ(known->references, 3) << "the same round";
  truth->set_round(1);
  EXPECT_EQ(said(nothing), "");
  EXPECT_EQ(known->references, 4) << "other sparse inputs";
}

TEST(LargeMedian, IsThatOfAllNumbersInOrder) {
  std::mt19937_64 dice(7);
  std::normal_distribution<double> normal;
  const auto random = [&](Index) { return normal(dice); };
  const auto alternating = [](Index i) { return i % 2 ? 1.0 : -1.0; };
  // Every number that a sample of equal distances takes is alike: the median lies elsewhere.
  const auto like_no_sample = [](Index i) { return i % 8 ? static_cast<double>(i) : -5.0; };
  for (const Index size : {1, 2, 5, 1000, 32768 * 8, 32768 * 8 + 1}) {
    for (const std::function<double(Index)>& make :
         {std::function<double(Index)>(random), {alternating}, {like_no_sample}}) {
      std::vector<double> values(size);
      for (Index i = 0; i < size; ++i) values[i] = make(i);
      std::vector<double> sorted = values;
      std::sort(sorted.begin(), sorted.end());
      const double middle = (sorted[(size - 1) / 2] + sorted[size / 2]) / 2;
      EXPECT_DOUBLE_EQ(judged::large_median(size, [&](Index i) { return values[i]; }), middle);
    }
  }
}

TEST(Verdict, ACapacityExceededIsNeverRight) {
  const std::vector<double> surface = {1, 5, 2, 7, 3, 0, 4, 0};
  Judged judged(circular_problem(2, 4, "above:3.5:2"), surface, 1e-4);
  expect_says(judged.wrong(), "capacity exceeded: 3 outputs are at least the threshold");
  judged.header().count = 2;  // in silence
  expect_says(judged.wrong(), "is missing");
}

TEST(Verdict, AtTheThresholdEitherPasses) {
  Judged judged(circular_problem(1, 3, "above:5:3"), {5.00005, 1, 7}, 1e-4);
  EXPECT_EQ(judged.wrong(), "");
  judged.detection(0) = judged.detection(1);
  judged.header().count = 1;
  EXPECT_EQ(judged.wrong(), "");
  Judged exact(circular_problem(1, 3, "above:5:3"), {5, 1, 7});
  exact.detection(0) = exact.detection(1);
  exact.header().count = 1;
  expect_says(exact.wrong(), "is missing");
}

TEST(Verdict, TheSumOfHalfTheSurfaceIsFound) {
  for (const InputKind kind : {InputKind::uniform, InputKind::zero_mean}) {
    Judged judged(circular_problem(kRows, kCols, "sum"), two_peaks(), 1e-4);
    EXPECT_EQ(judged.wrong(kind), "");
    judged.sum(0) = 0;
    for (Index i = 0; i < kRows / 2 * kCols; ++i) judged.sum(0) += two_peaks()[i];
    expect_says(judged.wrong(kind), "the sum is ");
  }
}

// The whole way of a point: a variant that writes surfaces, every result, and the phase `result`.
TEST(Results, EveryResultOfAVariantThatWritesSurfacesIsMeasured) {
  for (const char* id : {"cpu_definition", "cpu_fft"}) {
    for (const char* result : {"peak", "peak:gaussian", "peak:upsample=7", "peaks:4",
                               "above:2:100000", "above:2mad:100000", "above:2:100000:5", "sum"}) {
      const Variant& variant = find_variant(id);
      Point point({&variant, grid_points(variant).front(), Precision::fp32,
                   parse_problem(std::string("n-to-m/9x7/6x8/2:3/full/result=") + result)},
                  cpu());
      EXPECT_EQ(live(point, 1), Outcome::passed) << result << ": " << point.reason();
      const nlohmann::json record = point.record();
      EXPECT_EQ(record["result"], result);
      EXPECT_FALSE(record.contains("score"));
      EXPECT_GT(record["repetitions"][0]["result_us"], 0.0);
      EXPECT_EQ(record["source_hash"], point_hash(variant, point.request().problem));
    }
  }
}

TEST(Results, APlainProblemHasNoNewKeys) {
  const Variant& variant = find_variant("cpu_definition");
  Point point({&variant, grid_points(variant).front(), Precision::fp32,
               parse_problem("n-to-m/9x7/6x8/2:3/full")},
              cpu());
  EXPECT_EQ(live(point, 1), Outcome::passed) << point.reason();
  const nlohmann::json record = point.record();
  for (const std::string_view name : kFieldNames) {
    EXPECT_FALSE(record.contains(std::string(name))) << name;
  }
  EXPECT_FALSE(record["repetitions"][0].contains("result_us"));
  EXPECT_EQ(record["source_hash"], variant.source_hash);
}

}  // namespace
}  // namespace xcorr
