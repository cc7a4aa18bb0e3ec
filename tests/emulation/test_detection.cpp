// Scores and detections of the time-series variants that list their results: by the verdict of the
// harness on its kinds of input, and on data that these do not have: a drifting mean, gaps, bursts
// between the tiles of a survey, infinities.
#include <functional>
#include <set>

#include "harness/problem/views.hpp"
#include "tests/emulation/support.hpp"

namespace xcorr::emulation {
namespace {

std::vector<Variant> detecting() {
  return emulated([](const Variant& v) {
    return v.family == "time_series" && has(v.results, ResultKind::above);
  });
}

double noise(Index i) { return emulation::noise(11, i); }

// Templates of noise along one signal.
struct Series {
  Series(Index templates_, Index channels_, Index length_, Index samples_,
         const std::function<double(Index)>& value)
      : templates(templates_), channels(channels_), length(length_), samples(samples_) {
    for (Index i = 0; i < templates * channels * length; ++i) {
      left.push_back(static_cast<float>(3 + noise(i + 1000000)));
    }
    for (Index i = 0; i < channels * samples; ++i) right.push_back(static_cast<float>(value(i)));
  }
  // Template `of` at `at`, so large.
  void plant(Index of, Index at, float size) {
    for (Index c = 0; c < channels; ++c) {
      for (Index i = 0; i < length; ++i) {
        right[static_cast<std::size_t>(c * samples + at + i)] +=
            size * left[static_cast<std::size_t>((of * channels + c) * length + i)];
      }
    }
  }
  Problem problem(const std::string& fields) const {
    const auto shape = [&](Index cols) {
      return std::to_string(channels) + "x" + std::to_string(cols);
    };
    return parse_problem("n-to-m/" + shape(length) + "/" + shape(samples) + "/" +
                         std::to_string(templates) + ":1/valid/" + fields);
  }
  Index shifts() const { return samples - length + 1; }

  // zncc by the definition.
  double score(Index of, Index shift) const {
    return normalised_score(channels * length, true, [&](const auto& use) {
      for (Index c = 0; c < channels; ++c) {
        for (Index i = 0; i < length; ++i) {
          use(left[static_cast<std::size_t>((of * channels + c) * length + i)],
              right[static_cast<std::size_t>(c * samples + shift + i)]);
        }
      }
    });
  }

  Index templates, channels, length, samples;
  std::vector<float> left, right;
};

struct Surface {
  std::vector<float> values;
  Index shifts;
  float operator()(Index of, Index shift) const {
    return values.at(static_cast<std::size_t>(of * shifts + shift));
  }
};

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n == 0 ? std::numeric_limits<double>::quiet_NaN()
                : (values[(n - 1) / 2] + values[n / 2]) / 2;
}

Params of_warps(const char* warps) {
  Params params;
  params.set("warps_per_block", warps);
  return params;
}
Planned plan_of(const Variant& variant, const Problem& problem) {
  return Planned(variant, problem, of_warps("4"), variant.precisions.front());
}

class Detection : public testing::TestWithParam<Variant> {
 protected:
  bool is_narrow() const { return GetParam().precisions.front() == Precision::tf32; }
  // With warpgroups tiles are larger, and thresholds that no survey gave come from other products, whose inputs lie about
  // other pivots, than surfaces do.
  bool by_warpgroups() const { return GetParam().id.find("wgmma") != std::string::npos; }

  Surface surface_of(const Series& of, const std::string& score) const {
    const Problem q = of.problem("score=" + score);
    Planned planned = plan_of(GetParam(), q);
    planned.compute(of.left.data(), of.right.data());
    return {{planned.surface(), planned.surface() + q.out_elements()}, of.shifts()};
  }

  // What `above` lists is what the variant's surface says, but for rounding (tiles may differ, and with them pivots) and for
  // scores near the threshold: where it is found from brackets, their bins are 2^-13 wide here. Returns the number of
  // detections that are certain.
  std::size_t expect_detections(const Series& of, const std::string& score, double deviations,
                                Index capacity = 100000) const {
    const double near = (1 + deviations) * 0x1p-13;
    const Surface surface = surface_of(of, score);
    const Problem q = of.problem("score=" + score + "/result=above:" + std::to_string(deviations) +
                                 "mad:" + std::to_string(capacity));
    Planned planned = plan_of(GetParam(), q);
    const void* const out = planned.compute(of.left.data(), of.right.data());
    const auto* const header = static_cast<const AboveHeader*>(out);
    const auto* const found = reinterpret_cast<const xcorr::Detection*>(header + 1);
    std::set<std::pair<Index, Index>> listed;
    for (Index i = 0; i < std::min<Index>(static_cast<Index>(header->count), capacity); ++i) {
      EXPECT_EQ(found[i].sy, 0);
      EXPECT_TRUE(listed.insert({found[i].pair, found[i].sx}).second) << "twice";
      EXPECT_NEAR(found[i].value, surface(found[i].pair, found[i].sx),
                  by_warpgroups() ? 1e-3 : 1e-6);
    }
    std::size_t certain = 0, possible = 0, missing = 0, wrong = 0;
    for (Index t = 0; t < of.templates; ++t) {
      std::vector<double> values, distances;
      for (Index s = 0; s < of.shifts(); ++s) {
        if (!std::isnan(surface(t, s))) values.push_back(surface(t, s));
      }
      const double median = median_of(values);
      for (const double value : values) distances.push_back(std::abs(value - median));
      const double threshold = median + deviations * median_of(distances);
      for (Index s = 0; s < of.shifts(); ++s) {
        const bool is_listed = listed.count({t, s}) > 0;
        const bool is_certain = surface(t, s) >= threshold + near;
        const bool is_possible = surface(t, s) >= threshold - near;
        certain += is_certain;
        possible += is_possible;
        missing += is_certain && !is_listed;
        wrong += is_listed && !is_possible;
      }
    }
    if (static_cast<Index>(header->count) <= capacity) {
      EXPECT_EQ(missing, 0u);
    }
    EXPECT_EQ(wrong, 0u);
    EXPECT_GE(header->count, certain);
    EXPECT_LE(header->count, possible);
    return certain;
  }
};
XCORR_TESTS_OF_VARIANTS(Detection, detecting());

TEST_P(Detection, results_are_right_by_the_verdict) {
  // Fields and kinds of input take turns over the shapes.
  constexpr InputKind kKinds[] = {InputKind::integer,  InputKind::offset,  InputKind::outlier,
                                  InputKind::constant, InputKind::uniform, InputKind::subnormal,
                                  InputKind::drift,    InputKind::fill,    InputKind::bimodal,
                                  InputKind::contrast, InputKind::unequal, InputKind::blank};
  std::size_t turn = 0, field = 0;
  for (const Problem& q : problems_of(
           {"n-to-m/1x1/1x1/1:1/valid", "n-to-m/1x7/1x100/3:1/valid", "n-to-m/3x20/3x231/5:1/valid",
            "n-to-m/1x33/1x300/17:1/sy:0..0,sx:5..260", "n-to-m/2x81/2x150/2:1/valid"},
           {"", "/score=zncc:0.3", "/score=zncc:0.3/result=above:0.1:100000",
            "/score=zncc:1/result=above:2mad:100000", "/score=ncc:0.3",
            "/score=ncc:0.3/result=above:3mad:100000", "/result=above:0.5:100000",
            "/result=above:2mad:100000"})) {
    if (++field % (is_narrow() ? 2 : 5) != 0) continue;
    expect_verdicts(GetParam(), q, of_warps(turn % 2 ? "4" : "8"),
                    {InputKind::zero_mean, kKinds[turn % std::size(kKinds)]});
    ++turn;
  }
}

// A day of data at 100 Hz whose mean drifts by 1e4 moves by 0.1 in 80 samples. Here the mean drifts ten times as fast where
// tiles are small. Without a pivot near it, every window far from the global mean would be lost.
TEST_P(Detection, scores_of_a_drifting_mean) {
  const Index scale = by_warpgroups() ? 10 : 1, samples = 900 * scale;
  Series series(3, 2, 64, samples, [=](Index i) {
    const Index at = i % samples;
    return 1e4 + 10 * static_cast<double>(at) / static_cast<double>(samples) +
           1e4 * (at > 500 * scale) + noise(i);
  });
  const Surface surface = surface_of(series, "zncc:0.3");
  double worst = 0;
  for (Index t = 0; t < series.templates; ++t) {
    for (Index s = 0; s < series.shifts(); ++s) {
      const float value = surface(t, s);
      ASSERT_LE(std::abs(value), 1.0f);
      // Away from the step.
      if (s + series.length > 320 * scale && s < 690 * scale) continue;
      worst = worse(worst, std::abs(static_cast<double>(value) - series.score(t, s)));
    }
  }
  EXPECT_LE(worst, is_narrow() ? 3e-4 : 1e-5);
}

// The last chunk of a signal may hold one sample, and a short signal has few chunks: the line follows the drift there too.
TEST_P(Detection, scores_at_the_end_of_a_drift) {
  for (const Index samples : {70, 100, 130, 200, 250, 321, 330, 450, 512}) {
    Series series(2, 1, 16, samples,
                  [](Index i) { return 1e4 - 0.3 * static_cast<double>(i) + noise(i); });
    const Surface surface = surface_of(series, "zncc:0.3");
    double worst = 0;
    for (Index t = 0; t < series.templates; ++t) {
      for (Index s = 0; s < series.shifts(); ++s) {
        worst = worse(worst, std::abs(static_cast<double>(surface(t, s)) - series.score(t, s)));
      }
    }
    EXPECT_LE(worst, is_narrow() ? 4e-4 : 1e-5) << samples;
  }
}

// An outlier changes no score of a window that does not hold it, and a constant part has scores of 0 whatever else the
// signal has: both were judged by the mean of the whole signal, which the outlier moves.
TEST_P(Detection, an_outlier_costs_nothing_elsewhere) {
  const Index scale = by_warpgroups() ? 10 : 1, samples = 900 * scale, begin = 700 * scale;
  for (const double outlier : {1e6, 1e11, -3e30}) {
    Series series(3, 2, 64, samples, [=](Index i) {
      const Index at = i % samples;
      if (i == 350 * scale) return outlier;
      return at >= begin && at < begin + 90 ? 0.1 : 5 + noise(i);
    });
    const Surface surface = surface_of(series, "zncc:0.3");
    double worst = 0;
    for (Index t = 0; t < series.templates; ++t) {
      for (Index s = 0; s < 500 * scale; ++s) {
        if (s <= 350 * scale && s + series.length > 350 * scale) continue;
        const float value = surface(t, s);
        worst = worse(worst, std::abs(static_cast<double>(value) - series.score(t, s)));
      }
      for (Index s = begin; s + series.length <= begin + 90; ++s) {
        ASSERT_EQ(surface(t, s), 0.0f) << outlier;
      }
    }
    EXPECT_LE(worst, is_narrow() ? 3e-4 : 1e-5) << outlier;
  }
}

// A block takes several tiles, one after the other, and the factors of each are others: the signal's scale is ten times
// that of the tile before. In many orders of threads, since a warp reads factors while others go on.
TEST_P(Detection, scores_of_tiles_of_other_scales) {
  const Index tile = by_warpgroups() ? 2048 : 256;
  Series series(is_narrow() ? 17 : 2, 1, 40, 5 * tile + 11,
                [=](Index i) { return std::pow(10.0, i / tile % 5) * noise(i); });
  Planned planned = plan_of(GetParam(), series.problem("score=zncc:0.3"));
  for (int call = 0; call < 12; ++call) {
    const auto* const surface =
        static_cast<const float*>(planned.compute(series.left.data(), series.right.data()));
    for (Index t = 0; t < series.templates; t += 8) {
      for (Index s = 0; s < series.shifts(); s += 7) {
        // Away from a step, which costs digits in its tile.
        if (s % tile + series.length > tile) continue;
        ASSERT_NEAR(surface[t * series.shifts() + s], series.score(t, s), is_narrow() ? 2e-3 : 1e-4)
            << t << " " << s;
      }
    }
  }
}

// There are enough shifts for brackets, in two groups of templates. The planted templates are found.
TEST_P(Detection, thresholds_from_brackets) {
  Series series(is_narrow() ? 17 : 2, 1, 32, 2000, noise);
  series.plant(1, 700, 3);
  series.plant(series.templates - 1, 1968, 3);  // the last shift
  EXPECT_GE(expect_detections(series, "zncc:0.3", 5), 2u);
  if (is_narrow()) expect_detections(series, "ncc:0.3", 4);
}

// Scores that lie closer on one side of their median than on the other: the deviation from a number
// near the median is another one than that from the median.
TEST_P(Detection, thresholds_of_skewed_scores) {
  Series series(1, 1, 8, 8000, [](Index i) {
    const double most = i / 64 % 2 ? 10.5 : 12;  // the survey sees every second tile
    return 1 + 0.2 * noise(i) + (i % 8 == 0 ? most * std::pow(noise(i + 50000), 4) : 0);
  });
  expect_detections(series, "ncc:0.3", 1);
}

// A survey of 1000 scores leaves wide brackets: half of all scores are noted for histograms, more than a
// queue takes of both templates of a lane. Windows shorter and longer than the shifts of a thread.
TEST_P(Detection, thresholds_from_full_queues) {
  for (const Index length : {12, 24}) {
    Series series(9, 1, length, 2000, noise);
    series.plant(8, 500, 3);
    EXPECT_GE(expect_detections(series, "zncc:0.3", 2), 100u);
  }
}

// The survey takes every second tile of 64 shifts. Windows of the others alone hold these oscillations,
// which are like the first template: no bracket of its deviation holds its rank.
TEST_P(Detection, thresholds_where_the_survey_misleads) {
  Series series(2, 1, 32, 2000, noise);
  for (Index i = 0; i < 32; ++i) series.left[static_cast<std::size_t>(i)] = i % 2 ? 1 : -1;
  for (Index i = 0; i < series.samples; ++i) {
    if (i / 32 % 4 == 3) series.right[static_cast<std::size_t>(i)] += i % 2 ? 50 : -50;
  }
  EXPECT_GE(expect_detections(series, "zncc:0.3", 1), 1u);
}

// Candidates beyond the list and detections beyond the result are counted.
TEST_P(Detection, more_detections_than_the_capacity) {
  Series series(3, 1, 32, 2000, noise);
  EXPECT_GE(expect_detections(series, "zncc:0.3", 1, 5), 100u);
  // The list holds the candidates, and the result does not hold the detections.
  Series few(2, 1, 32, 2000, noise);
  few.plant(0, 100, 3);
  few.plant(1, 1900, 3);
  EXPECT_GE(expect_detections(few, "zncc:0.3", 5.5, 1), 2u);
}

// A spike leaves windows beside it whose mean is far from the pivot, and a signal so small or so large that
// float32 does not hold its squares: scores are those of the same signal in units near 1.
TEST_P(Detection, scores_do_not_depend_on_the_unit) {
  Series series(2, 1, 40, 1500, [](Index i) { return noise(i) + (i == 700 ? 3e3 : 0); });
  const Surface near_one = surface_of(series, "zncc:0.3");
  for (Index s = 0; s < series.shifts(); ++s) {
    if (s <= 700 && s + series.length > 700) continue;
    ASSERT_NEAR(near_one(0, s), series.score(0, s), is_narrow() ? 1e-2 : 2e-5) << s;
  }
  for (const float unit : {0x1p-20f, 0x1p+40f}) {
    Series other = series;
    for (float& value : other.right) value *= unit;
    ASSERT_EQ(surface_of(other, "zncc:0.3").values, near_one.values) << unit;
  }
  Series large = series;
  for (float& value : large.right) value *= 0x1p+100f;
  const Surface of_large = surface_of(large, "zncc:0.3");
  for (std::size_t i = 0; i < of_large.values.size(); ++i) {
    ASSERT_NEAR(of_large.values[i], near_one.values[i], 1e-6) << i;
  }
}

// Windows in gaps are constant. Their scores are 0 and count.
TEST_P(Detection, gaps_score_zero) {
  Series series(2, 1, 27, 2000, [](Index i) { return i % 64 < 36 ? 7.3 : 7.3 + noise(i); });
  const Surface surface = surface_of(series, "zncc:0.3");
  for (Index s = 0; s < series.shifts(); ++s) {
    ASSERT_EQ(surface(0, s) == 0, s % 64 <= 9) << s;
  }
  expect_detections(series, "zncc:0.3", 3);
}

// An infinity or a NaN reaches the scores whose windows hold it and no others, and is never counted.
TEST_P(Detection, infinities_stay_in_their_windows) {
  Series series(2, 1, 20, 1800, noise);
  series.right[300] = std::numeric_limits<float>::infinity();
  series.right[900] = std::numeric_limits<float>::quiet_NaN();
  Series other = series;
  other.right[300] = other.right[900] = 0;
  const Surface surface = surface_of(series, "zncc:0.3");
  const Surface without = surface_of(other, "zncc:0.3");
  for (Index s = 0; s < series.shifts(); ++s) {
    const bool holds = (s <= 300 && s + 20 > 300) || (s <= 900 && s + 20 > 900);
    ASSERT_EQ(std::isnan(surface(0, s)), holds) << s;
    if (holds) continue;
    ASSERT_NEAR(surface(0, s), without(0, s), is_narrow() ? 2e-3 : 1e-5) << s;
  }
  expect_detections(series, "zncc:0.3", 3);
  // A template with a NaN has no score.
  series.left[25] = std::numeric_limits<float>::quiet_NaN();
  expect_detections(series, "zncc:0.3", 3);
}

class MoveoutDetection : public OfVariant {
 protected:
  MoveoutDetection() : OfVariant("timeseries_tf32_moveouts") {}
};

// Each template has one signal; rows have offsets.
TEST_F(MoveoutDetection, scores_are_right_by_the_verdict) {
  const std::unique_ptr<Device> device = open_cpu();
  for (const Problem& q :
       problems_of({"n-to-mn/1x1/1x1/1:1/valid", "n-to-mn/3x20/3x600/3:3/valid",
                    "n-to-mn/2x97/2x200/2:2/sy:0..0,sx:5..90", "n-to-mn/1x32/1x1100/2:2/valid"},
                   {"/score=zncc:0.3/views=channels", "/score=zncc:0.3",
                    "/score=ncc:0.3/views=channels", "/score=ncc:0.3", "/views=channels", ""})) {
    const auto truth = device->truth(q, Precision::tf32, variant().algorithm_class, 1);
    const ViewLayout left = view_layout(q, Side::left, 1), right = view_layout(q, Side::right, 1);
    Planned planned = plan_of(variant(), q);
    const Operands in(left.elements, right.elements);
    const Call call{
        .left = in.left.get(),
        .right = in.right.get(),
        .left_view = {left.offsets.empty() ? nullptr : left.offsets.data(), left.pitch},
        .right_view = {right.offsets.empty() ? nullptr : right.offsets.data(), right.pitch}};
    // In a view the drift has steps, where no pivot is near all samples of a window: its bound allows what an offset costs.
    std::vector<InputKind> kinds = {InputKind::zero_mean};
    if (is_normalised(q.fields.score.kind)) {
      kinds.insert(kinds.end(), {InputKind::drift, InputKind::offset});
    } else {
      kinds.push_back(InputKind::integer);
    }
    for (const InputKind kind : kinds) {
      expect_verdict(*truth, kind, in, q.id(), [&] { return planned.compute(call); });
    }
  }
}

}  // namespace
}  // namespace xcorr::emulation
