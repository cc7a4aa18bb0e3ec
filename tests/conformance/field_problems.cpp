#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "harness/problem/error.hpp"
#include "tests/conformance/problems.hpp"
#include "tests/support/problems.hpp"

namespace xcorr::conformance {
namespace {

struct Counts {
  Form form;
  Index lefts, rights;
};
const std::vector<Counts> kCounts = {{Form::one_to_one, 1, 1},
                                     {Form::one_to_many, 1, 4},
                                     {Form::n_to_mn, 2, 6},
                                     {Form::n_to_m, 3, 2}};
// One array twice needs as many lefts as rights.
const std::vector<Counts> kSameCounts = {
    {Form::one_to_one, 1, 1}, {Form::n_to_mn, 3, 3}, {Form::n_to_m, 3, 3}};

struct Shapes {
  const char *left, *right;
  std::vector<const char*> windows;
};
const std::vector<Shapes> kEqualShapes = {
    {"1x1", "1x1", {"full"}},
    {"1x9", "1x9", {"full", "sy:0..0,sx:-4..1"}},
    {"8x1", "8x1", {"full", "sy:-1..3,sx:0..0"}},
    {"5x8", "5x8", {"full", "sy:0..2,sx:-4..3", "sy:-2..-1,sx:1..3"}},
    {"16x16", "16x16", {"full", "sy:-3..3,sx:-5..5"}},
    {"33x33", "33x33", {"full", "sy:0..16,sx:-16..16"}},
    {"17x40", "17x40", {"full", "sy:-8..-8,sx:0..19"}}};
const std::vector<Shapes> kUnequalShapes = {
    {"3x7", "9x4", {"full", "sy:-2..5,sx:-6..3", "sy:6..8,sx:3..3"}},
    {"8x9", "33x21", {"valid", "full"}},
    {"33x21", "8x9", {"valid", "sy:-30..-20,sx:0..7"}},
    {"1x8", "1x70", {"valid", "full"}},
    {"12x40", "40x12", {"full", "sy:0..28,sx:-28..0"}}};

// Every shape in every form and window, as texts of problems without fields.
std::vector<std::string> places(const std::vector<Shapes>& all, const std::vector<Counts>& counts,
                                bool all_shifts) {
  std::vector<std::string> found;
  for (const Shapes& shapes : all) {
    for (const auto& [form, lefts, rights] : counts) {
      for (const std::string window : shapes.windows) {
        if (all_shifts && window != "full") continue;
        found.push_back(std::string(to_string(form)) + "/" + shapes.left + "/" + shapes.right +
                        "/" + std::to_string(lefts) + ":" + std::to_string(rights) + "/" + window);
      }
    }
  }
  return found;
}

// The places in turn. Each has come once before one comes again, and neighbours differ in shape and
// mostly in form.
class Turns {
 public:
  explicit Turns(std::vector<std::string> all) : all_(std::move(all)) {}
  const std::string& next() {
    // A prime that divides no number of places.
    constexpr std::size_t kStep = 17;
    if (all_.size() % kStep == 0)
      throw std::logic_error("places: as many as a multiple of the step");
    at_ = (at_ + kStep) % all_.size();
    return all_[at_];
  }

 private:
  std::vector<std::string> all_;
  std::size_t at_ = 0;
};

// Collects problems: a few of each field. Places take turns, those of ncc and zncc apart from those of
// other scores, since many variants have one kind of score only. There are so many fields that each of
// both kinds meets each place (test_field_problems.cpp).
class Collected {
 public:
  void add(const std::string& fields, bool unequal) {
    // Fewer fields have other scores than ncc and zncc.
    const int of_unequal = fields.find("ncc") != std::string::npos ? 2 : 4;
    add(fields, kEqualShapes, 3);
    if (unequal) add(fields, kUnequalShapes, of_unequal);
  }
  // Each problem with each of the fields.
  void add_each(const Texts& ids, const Texts& fields = {""}) {
    std::ranges::move(problems_of(ids, fields), std::back_inserter(problems));
  }
  std::vector<Problem> problems;

 private:
  void add(const std::string& fields, const std::vector<Shapes>& shapes, int count) {
    const auto has = [&](const char* text) { return fields.find(text) != std::string::npos; };
    const bool same = has("/same=yes"), all_shifts = has("upsample");
    const std::vector<Counts>& counts = same ? kSameCounts : kCounts;
    const auto key = std::tuple(&shapes, same, all_shifts, has("ncc"));
    Turns& turns = turns_.try_emplace(key, places(shapes, counts, all_shifts)).first->second;
    for (int i = 0; i < count; ++i) problems.push_back(parse_problem(turns.next() + fields));
  }

  std::map<std::tuple<const std::vector<Shapes>*, bool, bool, bool>, Turns> turns_;
};

// A list of this capacity holds every output: `above` is judged, not its overflow.
constexpr Index kAllOutputs = Index{1} << 20;

std::string above(const std::string& threshold) {
  return "/result=above:" + threshold + ":" + std::to_string(kAllOutputs);
}

}  // namespace

std::vector<Problem> field_places() {
  std::vector<Problem> found;
  for (const auto* const shapes : {&kEqualShapes, &kUnequalShapes}) {
    for (const std::string& place : places(*shapes, kCounts, /*all_shifts=*/false)) {
      found.push_back(parse_problem(place));
    }
  }
  return found;
}

std::vector<Problem> field_problems() {
  Collected all;
  const std::string circular = "/boundary=circular";
  for (const std::string score :
       {"", "/score=covariance", "/score=phase:0", "/score=phase:0.5", "/score=phase:0.25"}) {
    all.add(circular + score, false);
  }
  all.add("/score=covariance", true);
  for (const std::string score : {"ncc:0.3", "ncc:1", "zncc:0.3", "zncc:0.01", "zncc:1"}) {
    all.add("/score=" + score, true);
  }
  for (const std::string score : {"ncc:0.3", "zncc:0.3", "zncc:0.01"}) {
    for (const std::string masks : {"left", "right", "both"}) {
      all.add("/score=" + score + "/masks=" + masks, true);
    }
  }
  for (const std::string& result :
       Texts{"/result=peak", "/result=peak:gaussian", "/result=peaks:1", "/result=peaks:5",
             "/result=sum", above("0.5"), above("-1000"), above("2mad"), above("0.1") + ":3"}) {
    all.add(result, true);
    all.add("/score=zncc:0.3" + result, true);
  }
  all.add("/result=peak:upsample=4", true);
  all.add(circular + "/result=peak:upsample=10", false);
  all.add(circular + "/score=phase:0/result=peak", false);
  all.add("/score=ncc:0.3/masks=both/result=peaks:3", true);
  for (const std::string score : {"", "/score=covariance", "/score=zncc:0.3"}) {
    all.add(score + "/same=yes", false);
    all.add(score + "/views=windows", true);
    all.add(score + "/views=channels", true);
  }
  // Autocorrelation: half planes, windows that are symmetric and not, lines of several panels, several images.
  all.add_each({"one-to-one/40x300/40x300/1:1/sy:0..3,sx:-9..9",
                "one-to-one/33x33/33x33/1:1/sy:-5..3,sx:-32..32",
                "one-to-one/21x20/21x20/1:1/sy:-6..4,sx:-5..9", "n-to-mn/30x31/30x31/3:3/full",
                "n-to-mn/12x280/12x280/2:2/sy:0..11,sx:-279..279"},
               {"/same=yes"});
  all.add(circular + "/same=yes", false);
  all.add("/result=peak/same=yes", false);
  all.add("/same=yes/views=windows", false);
  all.add("/score=zncc:0.3/masks=both/result=peak/views=windows", true);
  all.add(circular + "/views=channels", false);
  // Lengths of transforms that other shapes do not reach, with small windows and with large ones.
  all.add_each({"one-to-many/64x64/64x64/1:2/full/boundary=circular",
                "one-to-one/256x256/256x256/1:1/sy:-9..9,sx:-9..8/boundary=circular",
                "one-to-one/256x256/256x256/1:1/sy:-60..59,sx:-1..1/boundary=circular",
                "one-to-many/256x256/256x256/1:2/sy:-12..12,sx:-4..4"},
               {"/result=peak"});
  // Lengths that transforms without padding are compiled for.
  all.add_each(
      {"n-to-mn/32x32/32x32/3:6/full", "n-to-m/32x32/32x32/2:3/sy:-16..3,sx:-5..15",
       "one-to-many/48x48/48x48/1:3/full", "n-to-m/64x64/64x64/2:2/sy:-32..-30,sx:-9..31",
       "n-to-mn/96x96/96x96/2:2/sy:-4..4,sx:-48..-45",
       "one-to-one/128x128/128x128/1:1/sy:0..5,sx:-2..4",
       "one-to-many/192x192/192x192/1:2/sy:-3..3,sx:-3..3"},
      {circular, circular + "/result=peak", circular + "/score=phase:0/result=peak:gaussian"});
  // Long rows of odd length, of which libraries of transforms make one array of two matrices.
  all.add_each({"n-to-mn/9x131/9x131/2:4/sy:-4..4,sx:-9..65",
                "one-to-one/1x1009/1x1009/1:1/sy:0..0,sx:-7..9"},
               {circular, circular + "/score=covariance", circular + "/score=phase:0.5"});
  // Image velocimetry: windows of frames.
  all.add_each(
      {"n-to-mn/16x16/16x16/5:5/full/boundary=circular",
       "n-to-mn/16x16/16x16/3:6/sy:-8..7,sx:-8..7",
       "n-to-mn/32x32/32x32/3:3/full/boundary=circular", "n-to-mn/32x32/32x32/3:3/full",
       "n-to-m/32x32/32x32/2:2/sy:-16..15,sx:-16..15",
       "n-to-mn/64x64/64x64/2:2/full/boundary=circular", "one-to-one/64x64/64x64/1:1/full"},
      {"/score=covariance/views=windows", "/score=covariance/result=peak:gaussian/views=windows"});
  // Templates in frames of several tiles, of which the last ones are smaller.
  all.add_each({"n-to-m/5x6/23x205/2:2/valid/score=zncc:0.3",
                "one-to-one/5x6/23x205/1:1/sy:2..17,sx:1..190/score=zncc:0.3/masks=both",
                "one-to-many/4x7/120x21/1:2/valid/score=ncc:0.9/masks=right",
                "n-to-mn/5x6/23x205/2:4/valid/score=zncc:0.3/masks=left/views=windows",
                "n-to-mn/1x1/5x6/2:2/valid/score=zncc:0.3",
                "n-to-m/5x6/120x20/1:2/sy:3..110,sx:0..14/score=covariance/result=peak",
                // Sums of ncc are long, and with many pairs some are of values that lose digits.
                "n-to-m/40x30/50x47/4:5/valid/score=ncc:0.3",
                // Tall ones, whose sums are made in parts.
                "n-to-m/70x5/90x33/2:2/valid/score=zncc:0.3",
                "n-to-mn/53x9/71x24/2:2/sy:1..17,sx:2..13/score=covariance"});
  // Several templates in several frames; tiles of templates and of shifts leave a remainder on both axes.
  all.add_each({"n-to-m/9x11/40x53/3:2", "n-to-mn/9x11/40x53/2:6", "n-to-m/16x16/79x70/2:3",
                "n-to-mn/16x16/79x70/3:6", "n-to-m/18x37/35x90/3:2", "n-to-mn/18x37/35x90/2:4",
                "n-to-m/20x30/31x230/2:2", "n-to-mn/20x30/31x230/2:4"},
               {"/valid/score=zncc:0.3", "/valid/score=zncc:0.3/result=peak"});
  // Templates along one signal: a matched filter.
  all.add_each(
      {"n-to-m/1x64/1x487/3:1/valid/score=zncc:0.3", "n-to-m/3x65/3x320/2:1/valid/score=ncc:0.3",
       "n-to-m/1x31/1x1054/5:1/valid/score=ncc:0.3", "n-to-m/3x33/3x290/5:1/valid/score=zncc:0.3"},
      {"", above("8mad"), above("0.5")});
  all.add_each({"n-to-m/1x32/1x30031/1:1/valid/score=zncc:0.3",
                // Enough shifts for a threshold that is found from a sample of them first.
                "n-to-m/1x33/1x65633/1:1/valid/score=zncc:0.3" + above("4mad")});
  // A signal for each template: moveouts.
  all.add_each(
      {"n-to-mn/3x49/3x1201/3:3/valid"},
      {"/views=channels", "/score=zncc:0.3/views=channels", "/score=ncc:0.3/views=channels"});
  return all.problems;
}

std::vector<InputKind> usual_inputs(const Problem& problem) {
  std::vector<InputKind> kinds = {InputKind::integer, InputKind::zero_mean};
  Problem plain = problem;
  plain.fields = {};
  const bool scored = is_normalised(problem.fields.score.kind);
  // Rows with offsets of their own run over several matrices, where the drift has steps.
  const bool dense = problem.fields.views == Views::dense;
  if (scored && dense && plain.is_time_series()) kinds.push_back(InputKind::drift);
  // Products that are all alike: long sums of them lose most digits. Scores of matrices without their means
  // have none.
  const bool ncc = problem.fields.score.kind == ScoreKind::ncc;
  if (ncc && !plain.is_time_series()) kinds.push_back(InputKind::constant);
  // A value outside an overlap may not decide its score, and the rounding errors of a side may not depend on the other one.
  // Each problem has one of these kinds: the list has many problems.
  const Index turn = plain.left.cols + plain.right.rows + plain.lefts + plain.rights;
  constexpr InputKind kOutside[] = {InputKind::fill, InputKind::bimodal, InputKind::contrast};
  constexpr InputKind kSides[] = {InputKind::unequal, InputKind::blank};
  kinds.push_back(scored ? kOutside[turn % 3] : kSides[turn % 2]);
  // Lengths with large primes lose digits of data with a mean alone.
  if (plain.left.size() == 1 && plain.right.size() > 10'000) kinds.push_back(InputKind::uniform);
  return kinds;
}

Problem with_drawn_fields(Rng& rng, const Variant& variant, const Problem& plain,
                          const Limits& limits) {
  Fields fields;
  if (plain.left == plain.right) fields.boundary = rng.of(variant.boundaries);
  fields.score.kind = rng.of(variant.scores);
  if (is_normalised(fields.score.kind)) {
    constexpr double kOverlaps[] = {0.3, 0.05, 1};
    fields.score.min_overlap = kOverlaps[rng.below(3)];
    if (variant.masks && rng.chance(0.5)) {
      constexpr Masks kSides[] = {Masks::left, Masks::right, Masks::both};
      fields.masks = kSides[rng.below(3)];
    }
  }
  if (fields.score.kind == ScoreKind::phase) {
    fields.boundary = Boundary::circular;
    fields.score.exponent = rng.chance(0.5) ? 0 : 0.5;
  }
  fields.views = rng.of(variant.views);
  fields.same = plain.left == plain.right && plain.lefts == plain.rights && rng.chance(0.3);
  if (rng.chance(0.4)) {
    constexpr const char* kResults[] = {"peak", "peak:gaussian", "peaks:3",
                                        "sum",  "above:0.5:",    "above:3mad:"};
    std::string result = kResults[rng.below(std::size(kResults))];
    // Enough for every output of either boundary.
    const Index most = plain.pairs() * std::max(plain.out_size(), plain.left.size());
    if (result.ends_with(":")) {
      result += std::to_string(most);
      if (rng.chance(0.3)) result += ":" + std::to_string(2 + rng.below(6));
    }
    set_field(fields, "result", result);
  }
  std::string window = to_string(plain.window);
  if (fields.boundary == Boundary::circular) {
    const auto part = [&](Index length) {
      const Index first = -(length / 2), last = (length - 1) / 2;
      const Index from = rng.chance(0.5) ? first : first + rng.below(length);
      return std::to_string(from) + ".." + std::to_string(from + rng.below(last - from + 1));
    };
    window =
        rng.chance(0.6) ? "full" : "sy:" + part(plain.left.rows) + ",sx:" + part(plain.left.cols);
  }
  try {
    const Problem drawn = make_problem(plain.form, plain.left, plain.right, plain.lefts,
                                       plain.rights, window, fields);
    return limits.hold_work_of(drawn) && limits.hold_bytes_of(drawn) &&
                   limits.hold_bytes_of(drawn.surface())
               ? drawn
               : plain;
  } catch (const UserError&) {
    return plain;
  }
}

}  // namespace xcorr::conformance
