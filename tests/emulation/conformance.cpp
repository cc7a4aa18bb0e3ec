#include "tests/emulation/conformance.hpp"

#include <omp.h>

#include <algorithm>

#include "harness/registry.hpp"
#include "harness/verdict/verdict.hpp"
#include "tests/emulation/planned.hpp"
#include "tests/emulation/sample.hpp"
#include "tests/support/problems.hpp"

namespace xcorr::emulation {
namespace {

constexpr std::size_t kKeepBytes = std::size_t{1} << 30;

constexpr std::uint64_t kManyThreads = 1024;
std::uint64_t plans_not_in_sample = 0, checks_that_were_brief = 0;

// Forms with their counts of lefts and rights.
using Counts = std::vector<std::pair<std::string, std::string>>;
const Counts kUsual = {
    {"one-to-one", "1:1"}, {"one-to-many", "1:3"}, {"n-to-mn", "2:6"}, {"n-to-m", "3:2"}};

// Shapes, as "3x5/9x33", and windows of them.
struct Shapes {
  std::string shapes;
  Texts windows;
};

// Every window of all shapes in each form, and other problems. A form has all its problems one behind the other.
std::vector<Problem> in_every_form(const Counts& forms, const std::vector<Shapes>& all,
                                   const Texts& others = {}) {
  Texts ids;
  for (const auto& [form, counts] : forms) {
    for (const auto& [shapes, windows] : all) {
      for (const std::string& window : windows) {
        ids.push_back(form + "/" + shapes + "/" + counts + "/" + window);
      }
    }
  }
  ids.insert(ids.end(), others.begin(), others.end());
  return problems_of(ids);
}

}  // namespace

std::string failure(const Variant& variant, const Params& params, Precision precision,
                    const Problem& problem, std::uint64_t seed, Effort effort) {
  const auto bytes = [&](Index elements) {
    return static_cast<std::size_t>(elements) * scalar_bytes(precision);
  };
  // Threads that wait for each other cost more than these small references.
  omp_set_num_threads(1);
  PlanRequest request{problem, params, precision};
  if (variant.same_only && !problem.fields.same) return "";
  if (const Support support = variant.supports(request); !support) return "";
  GlobalMemory left(bytes(problem.left_elements())), right(bytes(problem.right_elements()));
  GlobalMemory out(bytes(problem.out_elements())), workspace(variant.workspace_bytes(request));
  request.workspace = workspace.get();
  HostTruth truth(problem, precision, variant.algorithm_class, seed, kKeepBytes);
  try {
    set_order(seed);
    const std::unique_ptr<Plan> plan = variant.plan(request);
    for (const InputKind kind : {InputKind::integer, InputKind::integer, InputKind::zero_mean}) {
      truth.fill(kind, left.get(), right.get());
      const void* const second = problem.fields.same ? left.get() : right.get();
      out.poison();
      set_order(++seed);
      const std::uint64_t before = threads_started();
      const Call call{left.get(), second, out.get()};
      plan->compute(call);
      const std::string fault = checked_call(truth, problem, kind, call).fault;
      if (!fault.empty()) return fault;
      if (effort == Effort::brief) break;
      if (effort == Effort::thorough_of_few && threads_started() - before > kManyThreads) {
        ++checks_that_were_brief;
        break;
      }
    }
  } catch (const Fault& fault) {
    return fault.what();
  } catch (const NotInSample&) {
    ++plans_not_in_sample;
  }
  return "";
}

std::uint64_t not_in_sample() { return plans_not_in_sample; }
std::uint64_t were_brief() { return checks_that_were_brief; }

std::vector<Problem> odd_problems() {
  return in_every_form(
      kUsual,
      {
          {"1x1/1x1", {"full"}},
          {"1x7/1x7", {"full", "valid"}},
          {"5x1/5x1", {"full", "sy:-4..-2,sx:0..0"}},
          {"3x31/3x31", {"full"}},
          {"2x32/2x32", {"full", "sy:1..1,sx:-31..2"}},
          {"3x33/3x33", {"full", "sy:-1..2,sx:-3..5"}},
          {"17x16/17x16", {"full", "sy:-9..16,sx:7..15"}},
          {"2x65/2x65", {"full", "sy:0..0,sx:-64..-60"}},
          {"3x5/9x33", {"full", "valid", "sy:-2..0,sx:20..32"}},
          {"9x33/3x5", {"full", "valid"}},
          {"2x40/6x8", {"full", "sy:3..5,sx:-39..-1"}},
          {"1x8/1x150", {"valid", "full"}},
          {"40x3/2x3", {"valid", "full"}},
          {"3x1/277x1", {"full"}},                // more output rows than 16 blocks of 16
          {"140x1/140x1", {"sy:-5..1,sx:0..0"}},  // tall overlaps
          {"2x16/3x17", {"full"}},  // a transform of 32 that half of it as a rotation does not fit
          {"30x2/30x9", {"sy:-3..1,sx:-1..8"}},  // rows_of_a_part: several parts, two lengths
      },
      // More left matrices than streams, more pairs than a block has warps.
      {"n-to-m/2x3/2x3/11:5/full", "n-to-mn/3x2/4x2/10:40/full"});
}

std::vector<Problem> length_problems() {
  return in_every_form(
      {{"one-to-one", "1:1"}, {"one-to-many", "1:2"}, {"n-to-mn", "2:2"}, {"n-to-m", "2:2"}},
      {{"1x60/1x60", {"full"}},
       {"40x1/40x1", {"full"}},
       {"60x1/60x1", {"full"}},
       {"90x1/90x1", {"full"}},
       {"1x120/1x120", {"full"}},
       {"120x1/120x1", {"full"}},
       {"140x1/140x1", {"full"}},
       {"1x155/1x155", {"full"}},
       {"1x180/1x180", {"full"}},
       {"1x250/1x250", {"full"}},
       {"250x1/250x1", {"full"}}},
      // Five batches of pairs, all of which have outputs in their last rows: fused_fft_lanes keeps two.
      {"n-to-m/120x1/120x1/4:20/full", "n-to-m/120x1/120x1/20:4/full"});
}

std::vector<Problem> time_series_problems() {
  return problems_of(
      {"n-to-m/1x1/1x1/1:1/valid", "n-to-m/1x7/1x100/3:1/valid",
       "n-to-m/3x20/3x1171/5:1/valid",  // three segments of 512
       "n-to-m/1x255/1x1033/2:1/valid",
       "n-to-m/2x400/2x1061/3:1/valid",  // six segments of 512, one and a bit of 1024
       "n-to-m/1x33/1x8401/1:1/valid",   // three segments of 4096
       "n-to-m/1x33/1x300/17:1/sy:0..0,sx:5..260",
       // Groups of 16 templates, steps of 16 samples, panels of 80 and tiles of shifts: whole ones, one
       // more or fewer; more groups than a grid has blocks along y.
       "n-to-m/1x16/1x143/16:1/valid", "n-to-m/1x80/1x207/2:1/valid", "n-to-m/2x81/2x500/2:1/valid",
       "n-to-m/1x7/1x30/270:1/valid",
       // A signal for each template.
       "n-to-mn/2x33/2x600/3:3/valid", "n-to-mn/1x8/1x40/17:17/valid"});
}

std::vector<Problem> template_problems() {
  return in_every_form(kUsual,
                       {{"1x1/1x1", {"valid"}},
                        {"1x1/5x9", {"valid"}},
                        {"3x5/9x33", {"valid"}},
                        {"9x33/9x33", {"valid"}},
                        {"1x8/1x150", {"valid"}},
                        {"40x3/41x3", {"valid"}},
                        {"5x4/37x21", {"valid"}},
                        {"2x3/130x3", {"valid"}},
                        {"6x19/9x47", {"sy:1..3,sx:3..20"}},
                        {"17x18/30x37", {"valid"}},
                        {"3x6/20x70", {"sy:7..7,sx:1..62"}}},
                       {"one-to-one/24x17/70x49/1:1/valid", "n-to-m/33x70/36x90/2:1/valid",
                        "n-to-m/2x5/3x40/5:1/valid"});
}

bool takes_templates_only(const Variant& variant) {
  const std::vector<Params> points = emulated_points(variant);
  const auto takes = [&](const char* id) {
    return std::any_of(points.begin(), points.end(), [&](const Params& point) {
      return bool(variant.supports({parse_problem(id), point}));
    });
  };
  return takes("one-to-one/2x3/4x7/1:1/valid") && !takes("one-to-one/2x3/4x7/1:1/full");
}

std::vector<Problem> autocorrelation_problems() {
  return problems_of(
      {"one-to-one/1x1/1x1/1:1/full", "one-to-one/1x7/1x7/1:1/full", "one-to-one/5x1/5x1/1:1/full",
       "one-to-one/3x33/3x33/1:1/full", "one-to-one/17x16/17x16/1:1/sy:-9..16,sx:7..15",
       "one-to-one/6x31/6x31/1:1/sy:0..5,sx:-30..30", "one-to-one/9x12/9x12/1:1/sy:-8..3,sx:-4..4",
       "one-to-one/9x12/9x12/1:1/sy:-3..8,sx:-11..11", "one-to-one/9x12/9x12/1:1/sy:-3..8,sx:-4..3",
       "one-to-one/9x12/9x12/1:1/sy:-8..-2,sx:-3..3",
       // Two panels and more, one of them partial; chunks of shifts; several groups of lines.
       "one-to-one/2x257/2x257/1:1/sy:-1..1,sx:-6..6", "one-to-one/3x290/3x290/1:1/full",
       "one-to-one/2x530/2x530/1:1/sy:0..0,sx:-529..-500",
       "one-to-one/90x9/90x9/1:1/sy:-2..2,sx:-2..2", "one-to-one/140x2/140x2/1:1/sy:0..3,sx:-1..1",
       // Several images; more rows than a grid has blocks along y.
       "n-to-mn/5x8/5x8/3:3/full", "n-to-mn/3x20/3x20/7:7/sy:0..2,sx:-5..5",
       "n-to-mn/1x1/1x1/40:40/full"},
      {"/same=yes"});
}

std::vector<Problem> of_one_array(const std::vector<Problem>& problems) {
  std::vector<Problem> found;
  for (Problem problem : problems) {
    if (problem.left != problem.right) continue;
    problem.rights = problem.lefts;
    problem.fields.same = true;
    found.push_back(problem);
  }
  return found;
}

std::vector<Problem> remainder_problems() {
  // The last for kernels that read rows as whole vectors of four.
  return in_every_form(kUsual, {{"1x1/1x1", {"full"}},
                                {"3x33/3x33", {"full"}},
                                {"9x17/9x17", {"full"}},
                                {"17x5/17x5", {"full"}},
                                {"5x12/5x12", {"full"}}});
}

std::vector<Problem> many_matrices_problems() {
  return problems_of({"one-to-many/5x12/5x12/1:9/full", "n-to-mn/5x12/5x12/2:18/full",
                      "n-to-m/5x12/5x12/9:9/full"});
}

std::vector<Problem> panel_problems() {
  return problems_of(
      {"one-to-one/60x60/60x60/1:1/sy:-2..1,sx:-3..4",
       "one-to-many/33x80/33x80/1:3/sy:5..6,sx:-9..3", "n-to-mn/40x33/20x70/2:4/sy:-9..-8,sx:0..20",
       "n-to-m/28x60/28x60/2:3/sy:0..1,sx:-7..7", "n-to-m/1x250/1x250/2:1/sy:0..0,sx:-3..3",
       // As many pairs as a block of fused_fft_warp takes.
       "n-to-mn/12x12/12x12/2:60/sy:-11..-10,sx:0..3"});
}

std::vector<Problem> large_problems() {
  // One for all; rows of whole vectors of four; what the shortest transforms hold.
  return problems_of({"one-to-one/40x33/40x33/1:1/full", "one-to-one/40x36/40x36/1:1/full",
                      "one-to-one/16x16/16x16/1:1/full"});
}

}  // namespace xcorr::emulation
