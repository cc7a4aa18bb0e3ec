// Results of variants that write no surface, but of time series: by the verdict of the harness, and by its
// reduction of the variant's own surface where outputs are equal, infinite or NaN.
#include <cstdlib>
#include <fstream>
#include <functional>
#include <set>
#include <tuple>

#include "tests/emulation/conformance.hpp"
#include "tests/emulation/support.hpp"
#include "tests/support/records.hpp"

namespace xcorr::emulation {
namespace {

std::vector<Variant> with_peaks() {
  return emulated([](const Variant& v) {
    // test_templates.cpp is for those that take valid windows only.
    return v.family != "time_series" && has(v.results, ResultKind::peak) &&
           !takes_templates_only(v);
  });
}

// Sums take too long on the host where there are more products.
constexpr Index kMostProducts = 700'000;

class Peaks : public testing::TestWithParam<Variant> {
 protected:
  bool takes_fields(const Problem& q) const {
    const Variant& v = GetParam();
    return has(v.boundaries, q.fields.boundary) && has(v.scores, q.fields.score.kind) &&
           has(v.results, q.fields.result.kind);
  }
  // A point that takes the problem and its surface, each time another one; none where there is none.
  std::vector<Params> next_point(const Problem& q) {
    const Variant& v = GetParam();
    if (!takes_fields(q) || (is_definition(v.algorithm_class) && q.fmas() > kMostProducts)) {
      return {};
    }
    const std::vector<Params> points = emulated_points(v);
    for (std::size_t i = 0; i < points.size(); ++i) {
      const Params& params = points[(turn_ + i) % points.size()];
      if (!v.supports({q, params}) || !v.supports({q.surface(), params})) continue;
      turn_ += i + 1;
      return {params};
    }
    return {};
  }

 private:
  std::size_t turn_ = 0;
};
XCORR_TESTS_OF_VARIANTS(Peaks, with_peaks());

// Shapes of all forms, each with every second of these fields in turn. All that the variant declares
// must be met.
TEST_P(Peaks, are_right_by_the_verdict) {
  constexpr InputKind kKinds[] = {InputKind::integer,  InputKind::offset,  InputKind::outlier,
                                  InputKind::constant, InputKind::unequal, InputKind::blank};
  const std::string kResults[] = {"",
                                  "/result=peak",
                                  "/result=peak:gaussian",
                                  "/result=peaks:4",
                                  "/result=above:0.1:200000",
                                  "/result=sum",
                                  "/result=peak:upsample=3"};
  std::size_t turn = 0, shape = 0;  // of those that the variant takes
  std::set<std::tuple<Boundary, ScoreKind, ResultKind>> met;
  for (const std::string shapes :
       {"n-to-mn/32x32/32x32/3:6/full/boundary=circular",
        "one-to-many/48x48/48x48/1:2/full/boundary=circular",
        "n-to-m/32x32/32x32/2:3/sy:-16..3,sx:-5..15/boundary=circular",
        "one-to-one/64x64/64x64/1:1/sy:-4..9,sx:-32..31/boundary=circular",
        "n-to-mn/64x64/64x64/2:2/full/boundary=circular",
        "n-to-m/96x96/96x96/1:2/full/boundary=circular",
        "one-to-one/256x256/256x256/1:1/full/boundary=circular", "n-to-m/1x1/1x1/3:2/full",
        "n-to-mn/16x16/16x16/2:6/full", "one-to-many/9x5/17x28/1:3/sy:-2..7,sx:0..27",
        "n-to-m/5x12/12x5/2:2/full", "one-to-many/20x20/20x20/1:5/sy:-3..4,sx:-9..1",
        "n-to-mn/33x30/33x30/2:2/full", "one-to-one/96x96/96x96/1:1/full",
        "one-to-one/1x190/1x3/1:1/full", "n-to-mn/120x120/120x120/2:2/sy:-5..5,sx:-8..0",
        "n-to-m/3x20/3x20/6:7/full", "n-to-m/3x3/50x20/4:5/sy:-2..47,sx:-2..17"}) {
    bool taken = false;
    for (const std::string score :
         {"", "/score=covariance", "/score=phase:0", "/score=phase:0.5"}) {
      const bool circular = shapes.find("circular") != std::string::npos;
      std::size_t number = 0;
      if (score.find("phase") != std::string::npos && !circular) continue;
      for (const std::string& result : kResults) {
        if (result.find("upsample") != std::string::npos &&
            shapes.find("/full") == std::string::npos) {
          continue;
        }
        const Problem q = parse_problem(shapes + score + result);
        if (++number % 2 == shape % 2) continue;
        const std::vector<Params> point = next_point(q);
        if (point.empty()) continue;
        taken = true;
        met.insert({q.fields.boundary, q.fields.score.kind, q.fields.result.kind});
        const bool phase = q.fields.score.kind == ScoreKind::phase;
        const InputKind other = phase ? InputKind::integer : kKinds[turn++ % std::size(kKinds)];
        expect_verdicts(GetParam(), q, point.front(), {InputKind::zero_mean, other});
      }
    }
    shape += taken;
  }
  for (const Boundary boundary : GetParam().boundaries) {
    for (const ScoreKind score : GetParam().scores) {
      if (score == ScoreKind::phase && boundary != Boundary::circular) continue;
      for (const ResultKind result : GetParam().results) {
        EXPECT_TRUE(met.contains({boundary, score, result}))
            << to_string(boundary) << " " << to_string(score) << " " << to_string(result)
            << " is declared, and no problem has it";
      }
    }
  }
}

bool equal(const Detection& a, const Detection& b) {
  return std::tie(a.pair, a.sy, a.sx, a.value) == std::tie(b.pair, b.sy, b.sx, b.value);
}

// The same detections, or as many different ones as the capacity where there are more.
void expect_same_detections(const Problem& q, const void* got, const void* want) {
  const Listed found = listed(q, got), all = listed(q, want);
  EXPECT_EQ(found.header.count, all.header.count) << q.id();
  EXPECT_EQ(found.header.spare, 0u) << q.id();
  ASSERT_EQ(found.sorted.size(), all.sorted.size()) << q.id();
  if (all.header.count > all.sorted.size()) {
    for (std::size_t i = 1; i < found.sorted.size(); ++i) {
      EXPECT_FALSE(equal(found.sorted[i - 1], found.sorted[i]))
          << q.id() << ": detection " << i << " twice";
    }
    return;
  }
  EXPECT_TRUE(std::ranges::equal(found.sorted, all.sorted, equal)) << q.id();
}

void expect_same_sums(const Problem& q, const double* got, const double* want,
                      const float* surface) {
  for (Index p = 0; p < q.pairs(); ++p) {
    double absolute = 0;
    for (Index i = 0; i < q.out_size(); ++i) {
      absolute += std::abs(static_cast<double>(surface[p * q.out_size() + i]));
    }
    const bool right_one = got[p] == want[p] || (std::isnan(got[p]) && std::isnan(want[p])) ||
                           std::abs(got[p] - want[p]) <= 1e-12 * absolute;
    EXPECT_TRUE(right_one) << q.id() << " pair " << p << ": " << got[p] << ", not " << want[p];
  }
}

// The records of problems are those that the harness makes of the variant's surface.
void expect_reduced(const Variant& variant, const std::vector<Problem>& problems,
                    const Params& params, const Operands& in) {
  Planned surfaces(variant, problems.front().surface(), params);
  const auto* const surface = static_cast<const float*>(surfaces.compute(in));
  for (const Problem& q : problems) {
    Planned planned(variant, q, params);
    const void* const got = planned.compute(in);
    GlobalMemory want(static_cast<std::size_t>(q.result_bytes(sizeof(float))));
    reduce_on_cpu(q, Precision::fp32, surface, nullptr, want.get());
    if (q.fields.result.kind == ResultKind::sum) {
      expect_same_sums(q, static_cast<const double*>(got), want.get<double>(), surface);
    } else if (q.fields.result.kind == ResultKind::above) {
      expect_same_detections(q, got, want.get());
    } else {
      const Index records = q.result_bytes(sizeof(float)) / static_cast<Index>(sizeof(Peak));
      for (Index i = 0; i < records; ++i) {
        expect_same_peak(q.id() + " record " + std::to_string(i), planned.peaks()[i],
                         want.get<Peak>()[i]);
      }
    }
  }
}

const std::string kShapesOfReduction[] = {
    "n-to-mn/32x32/32x32/2:4/full/boundary=circular",
    "n-to-m/32x32/32x32/2:2/sy:-7..15,sx:3..14/boundary=circular",
    "one-to-many/32x32/32x32/1:3/sy:-16..-12,sx:-16..15/boundary=circular",
    "one-to-many/32x32/32x32/1:2/sy:4..4,sx:-2..3/boundary=circular",
    "one-to-one/48x48/48x48/1:1/full/boundary=circular",
    "n-to-m/256x256/256x256/1:1/sy:-32..32,sx:-32..32",
    "n-to-m/3x3/3x3/3:3/full",
    "n-to-mn/16x16/16x16/2:2/full",
    "one-to-many/9x5/17x28/1:2/sy:-2..7,sx:0..27",
    "one-to-many/64x64/64x64/1:2/full/boundary=circular",
    "one-to-one/60x60/60x60/1:1/full",
    "n-to-mn/2x30/2x30/3:9/full",
    "n-to-mn/32x32/32x32/2:2/full",
    "n-to-m/3x3/50x20/4:5/sy:-2..47,sx:-2..17",
};

// A number of 0 to 2^31 - 1.
std::int64_t drawn(Side side, Index i) {
  return static_cast<std::int64_t>(mix(static_cast<std::uint64_t>(2 * i + (side == Side::left))) >>
                                   33);
}

class ReducedPeaks : public Peaks {
 protected:
  // A peak and another result of every second shape, in turn.
  void expect_all(const std::function<float(Side, Index, const Problem&)>& value) {
    const char* const kFits[] = {"peak", "peak:gaussian"};
    const char* const kOthers[] = {"peaks:3", "above:0.5:100000", "sum", "above:1:7", "peaks:11"};
    Index met = 0;
    std::size_t number = ++calls_;
    for (const std::string& shapes : kShapesOfReduction) {
      if (++number % 2 == 0) continue;
      std::vector<Problem> problems;
      for (const char* const result :
           {kFits[turn_ % std::size(kFits)], kOthers[turn_ % std::size(kOthers)]}) {
        const Problem q = parse_problem(shapes + "/result=" + result);
        if (takes_fields(q)) problems.push_back(q);
      }
      if (problems.empty()) continue;
      const Index before = met;
      // Points cut a surface in different ways.
      for (std::size_t i = 0; i < std::min<std::size_t>(emulated_points(GetParam()).size(), 4);
           ++i) {
        const std::vector<Params> point = next_point(problems.front());
        if (point.empty()) continue;
        ++met;
        std::vector<Problem> taken = problems;
        std::erase_if(taken,
                      [&](const Problem& q) { return !GetParam().supports({q, point.front()}); });
        const Problem& q = problems.front();
        expect_reduced(GetParam(), taken, point.front(),
                       Operands(
                           q, [&](Index i) { return value(Side::left, i, q); },
                           [&](Index i) { return value(Side::right, i, q); }));
      }
      turn_ += met > before;
    }
    EXPECT_GT(met, 0);
  }

 private:
  std::size_t turn_ = 0, calls_ = 0;
};
XCORR_TESTS_OF_VARIANTS(ReducedPeaks, with_peaks());

// Eighths, whose sums of products are exact: a variant may add up a surface in another order.
TEST_P(ReducedPeaks, noise_with_and_without_an_offset) {
  expect_all([](Side side, Index i, const Problem&) {
    return static_cast<float>(drawn(side, i) % 17 - 8) / 8;
  });
  // A surface that rises towards its middle: many rows are larger than the second peak.
  expect_all([](Side side, Index i, const Problem&) {
    return 3 + static_cast<float>(drawn(side, i) % 8) / 8;
  });
}

// Products with one element of 1 are the other matrix, to the bit in most transforms: levels of it
// are equal outputs, next to each other and far apart.
TEST_P(ReducedPeaks, equal_outputs) {
  for (const int levels : {1, 2, 3}) {
    expect_all([=](Side side, Index i, const Problem& q) {
      const Index size = side == Side::left ? q.left.size() : q.right.size();
      if (side == Side::left) return i % size == size / 3 ? 1.0f : 0.0f;
      return static_cast<float>(drawn(side, i) % levels);
    });
  }
}

// Rectangles of equal outputs, of a row, a column, or longer than what blocks share, and a fall from a corner.
TEST_P(ReducedPeaks, ridges_and_corners) {
  constexpr Index kSizes[][2] = {{1, 1}, {1, 0}, {0, 1},  {1, 2},   {2, 1}, {2, 2},
                                 {3, 5}, {9, 1}, {1, 14}, {17, 23}, {0, 0}};  // 0: all
  for (const auto& [rows, cols] : kSizes) {
    expect_all([&](Side side, Index i, const Problem& q) {
      const Shape shape = side == Side::left ? q.left : q.right;
      const Index at = i % shape.size(), y = at / shape.cols, x = at % shape.cols;
      if (side == Side::left) return at == 0 ? 1.0f : 0.0f;
      if (rows + cols == 0) return -static_cast<float>(y * y + x * x);
      const auto in = [](Index i, Index n) { return n == 0 || (i >= 0 && i < n); };
      return in(y - shape.rows / 5, rows) && in(x - shape.cols / 5, cols) ? 3.0f : 0.0f;
    });
  }
}

// In a sum of products, an infinity or a NaN among numbers may reach other outputs when the shifts are cut in another way, as
// they are for a surface.
TEST_P(ReducedPeaks, outputs_that_are_no_numbers) {
  const bool is_cut = is_definition(GetParam().algorithm_class);
  for (const float odd :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 3e38f}) {
    if (is_cut && !std::isnan(odd)) continue;
    expect_all([=](Side side, Index i, const Problem& q) {
      // In the first right matrix only.
      const Index size = q.right.size();
      if (side == Side::right && (is_cut ? i < size : i == size / 2)) return odd;
      return static_cast<float>(drawn(side, i) % 17 - 8) / 8;
    });
  }
  expect_all([](Side, Index, const Problem&) { return 0.0f; });
}

// Surfaces that are the right matrix, 0 but for four outputs: the peak, two that only its 5 x 5 exclude,
// and the second peak behind them. The peak lies in each row, then in each column: where a variant
// cuts a surface, the other three are on the other side.
TEST_P(ReducedPeaks, second_peaks_behind_a_cut) {
  const std::size_t points = emulated_points(GetParam()).size();
  for (const bool along_y : {true, false}) {
    for (const Index way : {1, -1}) {
      const std::string shape = along_y ? "40x12" : "12x40";
      const Problem q = parse_problem("one-to-many/1x1/" + shape + "/1:28/full/result=peak");
      // Every second point.
      for (std::size_t i = 0; i < (points + 1) / 2; ++i) {
        const std::vector<Params> point = next_point(q);
        if (point.empty()) break;
        const auto value = [&](Index at) {
          const Index pair = at / q.right.size(), in_matrix = at % q.right.size();
          const Index row = in_matrix / q.right.cols, col = in_matrix % q.right.cols;
          const Index along = way * ((along_y ? row : col) - pair - 6);
          const Index across = (along_y ? col : row) - 5;
          if (along == 0 && across == 0) return 10;
          if (along == -1 && across == -2) return 9;
          if (along == -2 && across == 2) return 8;
          return along == -5 && across == 0 ? 7 : 0;
        };
        expect_reduced(GetParam(), {q}, point.front(), Operands(q, [](Index) { return 1; }, value));
      }
    }
  }
}

// Sums of products: of a pair with one NaN far from the peak, the record has the peak and the flag.
TEST_P(ReducedPeaks, a_nan_far_from_the_peak) {
  if (!is_definition(GetParam().algorithm_class)) return;
  const Problem q = parse_problem("one-to-many/1x1/60x60/1:17/full/result=peak");
  const std::vector<Params> points = emulated_points(GetParam());
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::vector<Params> point = next_point(q);
    ASSERT_FALSE(point.empty());
    const Operands in(
        q, [](Index) { return 1; },
        [&](Index e) {
          const Index at = e % q.right.size();
          return at == 58 * q.right.cols + 57 ? std::nan("")
                 : at == 3 * q.right.cols + 3 ? 10.0
                                              : 0.0;
        });
    Planned planned(GetParam(), q, point.front());
    const auto* const peaks = static_cast<const Peak*>(planned.compute(in));
    for (Index p = 0; p < q.pairs(); ++p) {
      EXPECT_EQ(std::tuple(peaks[p].value, peaks[p].sy, peaks[p].sx, peaks[p].flags),
                std::tuple(10, 3, 3, std::uint32_t{kPeakNotFinite}))
          << point.front().canonical();
    }
  }
}

// Four waves have all of the power but that of the mean. Rounding errors of the other bins, divided by their
// own moduli, would be most of the surface.
TEST_P(Peaks, phase_leaves_empty_bins_alone) {
  for (const char* const size : {"32x32", "48x48", "64x64", "96x96"}) {
    const Problem q = parse_problem("n-to-m/" + std::string(size) + "/" + size +
                                    "/2:1/full/boundary=circular/score=phase:0");
    const std::vector<Params> point = next_point(q);
    if (point.empty()) continue;
    const Index n = q.left.rows;
    const auto wave = [n](Index at) {
      return std::cos(2 * std::numbers::pi * static_cast<double>(at) / static_cast<double>(n));
    };
    const Operands in(
        q, [&](Index i) { return 1 + wave(i / n) + wave(i); },
        [&](Index i) { return 1 + wave(i / n - 3) + wave(i - 5); });
    Planned planned(GetParam(), q, point.front());
    const auto* const out = static_cast<const float*>(planned.compute(in));
    double worst = 0;
    each_output(q, [&](Index i, Pair, Index sy, Index sx) {
      const double want = 2 * wave(sy - 3) + 2 * wave(sx - 5);
      worst = worse(worst, std::abs(double{out[i]} * static_cast<double>(n * n) - want));
    });
    EXPECT_LT(worst, 0.5) << q.id();
  }
}

// The peaks of problems that another program gives (tests/xcorr/test_upsample_vs_skimage.py): a line
// "number id" for each in the file `problems`, with matrices in number.left and number.right.
TEST_P(Peaks, DISABLED_peaks_of_files) {
  const char* const folder = std::getenv("XCORR_PEAKS_OF_FILES");
  ASSERT_NE(folder, nullptr) << "set XCORR_PEAKS_OF_FILES to a folder";
  const std::string in = std::string(folder) + "/";
  std::ifstream problems(in + "problems");
  ASSERT_TRUE(problems) << in << "problems";
  std::string number, id;
  while (problems >> number >> id) {
    const Problem q = parse_problem(id);
    const std::vector<Params> point = next_point(q);
    if (point.empty()) continue;
    const Operands operands(q);
    const auto read = [&](const char* side, const GlobalMemory& to, Index elements) {
      std::ifstream file(in + number + "." + side, std::ios::binary);
      file.read(to.get<char>(), static_cast<std::streamsize>(floats(elements)));
      EXPECT_TRUE(file) << number << "." << side;
    };
    read("left", operands.left, q.left_elements());
    read("right", operands.right, q.right_elements());
    Planned planned(GetParam(), q, point.front());
    std::ofstream out(in + number + ".peak." + GetParam().id, std::ios::binary);
    out.write(static_cast<const char*>(planned.compute(operands)), q.result_bytes(sizeof(float)));
    EXPECT_TRUE(out) << number;
  }
}

// A variant refuses with a reason what it does not compute.
TEST_P(Peaks, refusals_have_a_reason) {
  for (const char* const result : {"peak:upsample=4", "above:8mad:100"}) {
    const Problem q = parse_problem("one-to-one/8x8/8x8/1:1/full/result=" + std::string(result));
    if (!takes_fields(q) || !next_point(q).empty()) continue;
    for (const Params& params : emulated_points(GetParam())) {
      EXPECT_NE(GetParam().supports({q, params, Precision::fp32}).reason, "") << q.id();
    }
  }
}

}  // namespace
}  // namespace xcorr::emulation
