// Every broken variant must be found, in every form where its fault shows, with the place or the
// cause in the reason (docs/design.md, Checks).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "harness/registry.hpp"
#include "tests/support/fixture.hpp"
#include "tests/support/forwarding_device.hpp"

namespace xcorr {
namespace {

// `reason` is a regular expression; SY, SX stand for the first shifts, LAST for the place of the
// last output.
struct Fault {
  const char* id;
  Outcome outcome;
  const char* reason;
};

constexpr Outcome kIncorrect = Outcome::incorrect, kFailed = Outcome::failed;
constexpr const char* kFirstRow =
    R"(^integer input: \d+ of \d+ outputs are wrong; pair 0 \(left 0, right 0\) at sy=SY sx=)";
const Fault kFaults[] = {
    {"broken_last_row", kIncorrect, kFirstRow},
    {"broken_sign", kIncorrect, kFirstRow},
    {"broken_swapped", kIncorrect, kFirstRow},
    {"broken_pairing", kIncorrect,
     R"(^integer input: .*pair [01] \(left 0, right [01]\) at sy=SY sx=)"},
    {"broken_no_product", kIncorrect, R"(^integer input: (\d+) of \1 outputs are wrong; pair 0 )"},
    {"broken_window", kIncorrect, kFirstRow},
    {"broken_missing", kIncorrect,
     R"(^integer input: 1 of \d+ outputs are wrong; pair LAST is -?nan)"},
    {"broken_no_clear", kIncorrect,
     R"(^zero-mean input: .* at sy=SY sx=-?\d+ is -?[0-9.e-]+, expected)"},
    {"broken_second_call", kIncorrect,
     R"(^zero-mean input: (\d+) of \1 outputs are wrong; .*sx=SX is -?nan)"},
    {"broken_later", kIncorrect,
     R"(^uniform input after the timed loop: 1 of .*pair 0 .*sy=SY sx=SX is 10\d)"},
    {"broken_remembers", kIncorrect, R"(^uniform input after the timed loop: .* is -?nan)"},
    {"broken_left_overwritten", kIncorrect, "^integer input: the left matrices were overwritten$"},
    {"broken_right_overwritten", kIncorrect,
     "^integer input: the right matrices were overwritten$"},
    {"broken_writes_behind", kIncorrect, "^integer input: memory beside the output was written$"},
    {"broken_writes_before", kIncorrect, "^integer input: memory beside the output was written$"},
    {"broken_reads_left", kIncorrect, "^integer input: 1 of .*sy=SY sx=SX is -?nan"},
    {"broken_reads_right", kIncorrect, "^integer input: 1 of .*sy=SY sx=SX is -?nan"},
    {"broken_throws", kFailed, "^thrown by compute$"},
    {"broken_throws_later", kFailed, "^thrown in the timed loop$"},
    {"broken_throws_int", kFailed, "."},
    {"broken_plan", kFailed, "^thrown by plan$"},
    {"broken_supports", kFailed, "^thrown by supports$"},
    {"broken_workspace", kFailed, "^thrown by workspace_bytes$"},
    {"broken_memory", Outcome::out_of_memory, "allocation"},
    {"broken_late_write", kIncorrect, "^calls in turn: uniform input: 1 of .*; pair LAST is "},
    {"broken_first_inputs", kIncorrect,
     "^calls in turn: integer input: .*; pair 0 .*sy=SY sx=SX is "},
    {"broken_beside_second", kIncorrect,
     "^calls in turn: memory beside the second output was written$"},
};
// Variants of class fft. Any input finds a pass without twiddles, the flat spectrum finds all of them.
constexpr const char* kSpectralFaults[] = {
    "broken_bin_lost", "broken_bin_conjugated", "broken_bins_swapped",   "broken_bin_off",
    "broken_nyquist",  "broken_twiddles",       "broken_middle_twiddles"};
// Faults of scores, boundaries and masks: a problem and an input where the fault shows. INPUT stands for the input.
constexpr const char* kAnyInput =
    R"(^(integer|zero-mean) input: \d+ of \d+ outputs are wrong; pair )";
constexpr const char* kThatInput = R"(^INPUT input: \d+ of \d+ outputs are wrong; pair )";
constexpr const char* kCorner =
    R"(^integer input: \d+ of \d+ outputs are wrong; pair 0 .* at sy=SY sx=SX is .*, expected 0 )";
struct ScoreFault {
  const char* id;
  const char* problem;
  InputKind input = InputKind::uniform;
  const char* reason = kAnyInput;  // as in Fault
};
const ScoreFault kScoreFaults[] = {
    {"broken_deviation", "n-to-m/16x12/16x12/2:2/full/score=zncc"},
    {"broken_count", "n-to-m/16x12/16x12/2:2/full/score=zncc"},
    {"broken_whole_mean", "one-to-one/16x12/16x12/1:1/full/score=zncc"},
    {"broken_uncentred", "one-to-one/16x12/16x12/1:1/full/score=zncc", InputKind::offset,
     R"(^offset input: \d+ of \d+ outputs are wrong; pair 0 )"},
    {"broken_constant", "one-to-many/5x7/20x24/1:6/valid/score=zncc", InputKind::fill,
     R"(^fill input: \d+ of \d+ outputs are wrong; pair .* is 0, expected )"},
    {"broken_pivot", "one-to-many/5x7/20x24/1:6/valid/score=zncc", InputKind::fill, kThatInput},
    {"broken_pivot", "one-to-many/5x7/20x24/1:2/valid/score=zncc", InputKind::bimodal, kThatInput},
    {"broken_shared", "one-to-one/16x12/16x12/1:1/full", InputKind::unequal, kThatInput},
    {"broken_shared", "n-to-mn/16x12/16x12/2:4/full", InputKind::blank, kThatInput},
    {"broken_mask", "one-to-many/16x12/16x12/1:2/full/score=zncc/masks=left"},
    {"broken_mask", "one-to-one/5x7/12x9/1:1/valid/score=ncc/masks=both"},
    {"broken_least_overlap", "one-to-one/16x12/16x12/1:1/full/score=ncc", InputKind::uniform,
     kCorner},
    {"broken_modulo", "n-to-m/16x12/16x12/2:2/full/boundary=circular"},
    {"broken_covariance", "n-to-m/16x12/16x12/2:2/full/score=covariance"},
    {"broken_exponent", "one-to-one/16x12/16x12/1:1/full/boundary=circular/score=phase:0.5"},
    {"broken_brightness", "one-to-one/16x12/16x12/1:1/full/boundary=circular/score=phase:0"},
    {"broken_unguarded", "one-to-one/16x12/16x12/1:1/full/boundary=circular/score=phase:0",
     InputKind::constant, R"(^constant input: \d+ of \d+ outputs are wrong; pair 0 )"}};
const Texts kProblems = {
    "one-to-one/16x12/16x12/1:1/full", "one-to-many/16x12/16x12/1:7/full",
    "n-to-mn/16x12/16x12/3:12/full",   "n-to-m/16x12/16x12/3:5/full",
    "one-to-one/5x7/12x9/1:1/full",    "one-to-many/5x7/12x9/1:3/sy:-3..8,sx:-4..5",
    "n-to-mn/12x9/5x7/2:6/full",       "n-to-m/12x9/5x7/2:3/full"};

bool shows(const Fault& fault, const Problem& problem) {
  if (std::string(fault.id) == "broken_window") return problem.window.kind != Window::Kind::full;
  return problem.form != Form::one_to_one || std::string(fault.id) != "broken_pairing";
}

std::regex expected(const std::string& reason, const Problem& q,
                    InputKind input = InputKind::uniform) {
  const Index p = q.pairs() - 1;
  const auto number = [](Index n) { return std::to_string(n); };
  const std::string last = number(p) + R"( \(left )" + number(q.pair(p).left) + ", right " +
                           number(q.pair(p).right) + R"(\) at sy=)" + number(q.window.sy.last) +
                           " sx=" + number(q.window.sx.last);
  std::string text = reason;
  for (const auto& [name, value] :
       {std::pair<std::string, std::string>{"SY", number(q.window.sy.first)},
        {"SX", number(q.window.sx.first)},
        {"LAST", last},
        {"INPUT", std::string(to_string(input))}}) {
    const std::size_t at = text.find(name);
    if (at != std::string::npos) text.replace(at, name.size(), value);
  }
  return std::regex(text);
}

Point point_of(const char* id, const Problem& problem, Device& device,
               InputKind input = InputKind::uniform, bool brief = false) {
  return Point(
      {&find_variant(id), Params{}, Precision::fp32, problem, Mode::stream, input, 1, 0, brief},
      device);
}

// Faults that show in a second output or with other inputs in turn alone.
const std::set<std::string> kInTurn = {"broken_late_write", "broken_first_inputs",
                                       "broken_beside_second"};

// A fault that is there in the outputs of the timed loop is found where nothing else is verified.
TEST(Brief, FaultsOfTheTimedOutputsAreFound) {
  const Problem problem = parse_problem("one-to-many/5x7/12x9/1:3/sy:-3..8,sx:-4..5");
  for (const Fault& fault : kFaults) {
    Point point = point_of(fault.id, problem, cpu(), InputKind::uniform, true);
    const bool shows_here = kInTurn.count(fault.id) == 0;
    EXPECT_EQ(live(point) != Outcome::passed, shows_here) << fault.id << ": " << point.reason();
    if (shows_here) {
      EXPECT_EQ(point.record()["repetitions"].size(), 0u) << "no time without a check";
    }
  }
}

class Negative : public testing::TestWithParam<Fault> {};

TEST_P(Negative, IsFoundInEveryForm) {
  const Fault fault = GetParam();
  for (const Problem& problem : problems_of(kProblems)) {
    if (!shows(fault, problem)) continue;
    Point point = point_of(fault.id, problem, cpu());
    EXPECT_EQ(live(point), fault.outcome) << problem.id() << ": " << to_string(point.outcome());
    EXPECT_TRUE(std::regex_search(point.reason(), expected(fault.reason, problem)))
        << problem.id() << "\n  reason: " << point.reason() << "\n  expected: " << fault.reason;
    const nlohmann::json record = point.record();
    EXPECT_EQ(record["outcome"], to_string(fault.outcome));
    EXPECT_EQ(record["repetitions"].size(), 0u) << "no time without a check";
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, Negative, testing::ValuesIn(kFaults), [](const auto& info) {
  std::string name = info.param.id;
  std::erase(name, '_');
  return name;
});

TEST(NegativeTests, CoverEveryBrokenVariant) {
  std::set<std::string> tested = {"broken_nothing", "broken_no_spectrum", "broken_no_score",
                                  "broken_no_phase"};
  // test_classes.cpp tests those of precision classes.
  tested.insert({"broken_no_class", "broken_lost_block", "broken_tf32_declared",
                 "broken_bf16x3_declared", "broken_bf16_declared", "broken_truncated"});
  for (const ScoreFault& fault : kScoreFaults) tested.insert(fault.id);
  for (const char* id : kSpectralFaults) tested.insert(id);
  for (const Fault& fault : kFaults) tested.insert(fault.id);
  for (const Variant& variant : variants()) {
    if (variant.family == "negative") {
      EXPECT_EQ(tested.count(variant.id), 1u) << variant.id;
    }
  }
}

TEST(NegativeTests, FaultsOfScoresAreFound) {
  for (const ScoreFault& fault : kScoreFaults) {
    const Problem problem = parse_problem(fault.problem);
    Point point = point_of(fault.id, problem, cpu(), fault.input);
    EXPECT_EQ(live(point, 1), Outcome::incorrect) << fault.id;
    EXPECT_TRUE(std::regex_search(point.reason(), expected(fault.reason, problem, fault.input)))
        << fault.id << ": " << point.reason();
    // The control is right there.
    const bool phase = problem.fields.score.kind == ScoreKind::phase;
    Point control =
        point_of(phase ? "broken_no_phase" : "broken_no_score", problem, cpu(), fault.input);
    EXPECT_EQ(live(control, 1), Outcome::passed) << fault.problem << ": " << control.reason();
  }
}

class Spectra : public testing::TestWithParam<const char*> {};

TEST_P(Spectra, AreFoundAtEverySize) {
  const Problem problem = parse_problem(GetParam());
  for (const char* id : kSpectralFaults) {
    Point point = point_of(id, problem, cpu());
    EXPECT_EQ(point.prepare(), Outcome::incorrect) << id;
    EXPECT_TRUE(std::regex_search(
        point.reason(),
        std::regex("outputs are wrong; pair|pairs exceed .*; pair .* relative L2 error")))
        << id << ": " << point.reason();
  }
  Point control = point_of("broken_no_spectrum", problem, cpu());
  EXPECT_EQ(live(control, 1), Outcome::passed) << control.reason();
}

INSTANTIATE_TEST_SUITE_P(Sizes, Spectra,
                         testing::Values("one-to-one/64x64/64x64/1:1/full",
                                         "one-to-one/256x256/256x256/1:1/full",
                                         "one-to-one/1024x1024/1024x1024/1:1/full",
                                         "n-to-m/36x50/20x61/2:2/sy:-3..8,sx:-4..5"));

TEST(NegativeTests, TheControlOfTransformsPassesOddShapes) {
  for (const Problem& problem : problems_of(kProblems)) {
    for (const InputKind input : kInputKinds) {
      Point point = point_of("broken_no_spectrum", problem, cpu(), input);
      EXPECT_EQ(live(point, 1), Outcome::passed) << problem.id() << ": " << point.reason();
    }
  }
}

TEST(NegativeTests, TheControlPasses) {
  for (const Problem& problem : problems_of(kProblems)) {
    for (const InputKind input : {InputKind::uniform, InputKind::zero_mean, InputKind::integer}) {
      Point point = point_of("broken_nothing", problem, cpu(), input);
      EXPECT_EQ(live(point), Outcome::passed) << problem.id() << ": " << point.reason();
      EXPECT_EQ(point.record()["repetitions"].size(), 30u);
    }
  }
}

TEST(NegativeTests, FaultsOfTheTimedLoopAreFoundWithEveryInput) {
  for (const InputKind input : {InputKind::uniform, InputKind::zero_mean, InputKind::integer}) {
    Point point =
        point_of("broken_later", parse_problem("one-to-one/16x12/16x12/1:1/full"), cpu(), input);
    EXPECT_EQ(live(point), Outcome::incorrect) << to_string(input);
    const std::string where = std::string(to_string(input)) + " input after the timed loop";
    EXPECT_EQ(point.reason().rfind(where, 0), 0u) << point.reason();
    const nlohmann::json record = point.record();
    const bool exact = input == InputKind::integer;
    EXPECT_GT(record[exact ? "exact_error" : "max_error"],
              record[exact ? "exact_bound" : "error_bound"])
        << "the row shows the error that was found";
  }
}

TEST(NegativeTests, NothingPassesBeforeAllHasBeenChecked) {
  const Problem problem = parse_problem("one-to-one/16x12/16x12/1:1/full");
  Point point = point_of("broken_nothing", problem, cpu());
  EXPECT_EQ(point.outcome(), Outcome::failed);
  EXPECT_EQ(point.record()["outcome"], "failed") << "not prepared";
  ASSERT_EQ(point.prepare(), Outcome::passed) << point.reason();
  EXPECT_EQ(point.record()["outcome"], "failed") << "not finished";
  point.finish({});
  EXPECT_EQ(point.record()["outcome"], "failed") << "not timed";
  Point whole = point_of("broken_nothing", problem, cpu());
  EXPECT_EQ(live(whole), Outcome::passed) << whole.reason();
  EXPECT_EQ(whole.record()["outcome"], "passed");
}

TEST(NegativeTests, AnImpossibleTimeIsRejected) {
  Point point = point_of("broken_nothing", parse_problem("n-to-m/16x12/16x12/3:5/full"), cpu());
  ASSERT_EQ(point.prepare(), Outcome::passed) << point.reason();
  point.time(1);
  point.finish({{1, 50.0}, {1, 1e-6}});
  EXPECT_EQ(point.outcome(), Outcome::failed);
  EXPECT_NE(point.reason().find("faster than the hardware"), std::string::npos) << point.reason();
  EXPECT_EQ(point.record()["repetitions"].size(), 0u);
}

// A device whose memory is spent once the point has what it needs.
class Spent : public ForwardingDevice {
 public:
  std::size_t available_bytes() const override {
    return spent ? 0 : ForwardingDevice::available_bytes();
  }
  bool spent = false;
};

TEST(CallsInTurn, ARowSaysWhetherTheyWereChecked) {
  for (const bool spent : {false, true}) {
    Spent device;
    Point point = point_of("broken_nothing", parse_problem(kProblems[0]), device);
    ASSERT_EQ(point.prepare(), Outcome::passed) << point.reason();
    device.spent = spent;
    EXPECT_EQ(live(point), Outcome::passed) << point.reason();
    const std::string said = point.record()["overlap_checked"];
    EXPECT_EQ(said.rfind(spent ? "no: memory: " : "yes", 0), 0u) << said;
  }
}

}  // namespace
}  // namespace xcorr
