#include "tests/emulation/conformance.hpp"

#include <omp.h>

#include <algorithm>

#include "harness/registry.hpp"
#include "harness/verdict/verdict.hpp"
#include "tests/emulation/planned.hpp"
#include "tests/emulation/sample.hpp"

namespace xcorr::emulation {
namespace {

constexpr std::size_t kKeepBytes = std::size_t{1} << 30;

constexpr std::uint64_t kManyThreads = 1024;
std::uint64_t plans_not_in_sample = 0, checks_that_were_brief = 0;

struct Shapes {
  const char *left, *right;
  std::vector<const char*> windows;
};

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
  const std::vector<Shapes> all = {
      {"1x1", "1x1", {"full"}},
      {"1x7", "1x7", {"full", "valid"}},
      {"5x1", "5x1", {"full", "sy:-4..-2,sx:0..0"}},
      {"3x31", "3x31", {"full"}},
      {"2x32", "2x32", {"full", "sy:1..1,sx:-31..2"}},
      {"3x33", "3x33", {"full", "sy:-1..2,sx:-3..5"}},
      {"17x16", "17x16", {"full", "sy:-9..16,sx:7..15"}},
      {"2x65", "2x65", {"full", "sy:0..0,sx:-64..-60"}},
      {"3x5", "9x33", {"full", "valid", "sy:-2..0,sx:20..32"}},
      {"9x33", "3x5", {"full", "valid"}},
      {"2x40", "6x8", {"full", "sy:3..5,sx:-39..-1"}},
      {"1x8", "1x150", {"valid", "full"}},
      {"40x3", "2x3", {"valid", "full"}},
      {"3x1", "277x1", {"full"}},                // more output rows than 16 blocks of 16
      {"140x1", "140x1", {"sy:-5..1,sx:0..0"}},  // tall overlaps
      {"2x16", "3x17", {"full"}},  // a transform of 32 that half of it as a rotation does not fit
      {"30x2",
       "30x9",
       {"sy:-3..1,sx:-1..8"}},  // several parts of rows of two lengths (rows_of_a_part)
  };
  struct Counts {
    Form form;
    Index lefts, rights;
  };
  std::vector<Problem> problems;
  for (const auto& [form, lefts, rights] : {Counts{Form::one_to_one, 1, 1},
                                            {Form::one_to_many, 1, 3},
                                            {Form::n_to_mn, 2, 6},
                                            {Form::n_to_m, 3, 2}}) {
    for (const Shapes& shapes : all) {
      for (const char* window : shapes.windows) {
        problems.push_back(make_problem(form, parse_shape(shapes.left), parse_shape(shapes.right),
                                        lefts, rights, window));
      }
    }
  }
  // More left matrices than streams, more pairs than a block has warps.
  problems.push_back(make_problem(Form::n_to_m, {2, 3}, {2, 3}, 11, 5, "full"));
  problems.push_back(make_problem(Form::n_to_mn, {3, 2}, {4, 2}, 10, 40, "full"));
  return problems;
}

std::vector<Problem> length_problems() {
  std::vector<Problem> problems;
  for (const Shape shape : {Shape{1, 60},
                            {40, 1},
                            {60, 1},
                            {90, 1},
                            {1, 120},
                            {120, 1},
                            {140, 1},
                            {1, 155},
                            {1, 180},
                            {1, 250},
                            {250, 1}}) {
    problems.push_back(make_problem(Form::one_to_one, shape, shape, 1, 1, "full"));
    problems.push_back(make_problem(Form::one_to_many, shape, shape, 1, 2, "full"));
    problems.push_back(make_problem(Form::n_to_mn, shape, shape, 2, 2, "full"));
    problems.push_back(make_problem(Form::n_to_m, shape, shape, 2, 2, "full"));
  }
  // Five batches of pairs, all of which have outputs in their last rows: fused_fft_lanes keeps two.
  problems.push_back(make_problem(Form::n_to_m, {120, 1}, {120, 1}, 4, 20, "full"));
  problems.push_back(make_problem(Form::n_to_m, {120, 1}, {120, 1}, 20, 4, "full"));
  return problems;
}

std::vector<Problem> time_series_problems() {
  std::vector<Problem> problems;
  const auto add = [&](Index templates, Shape of_template, Index samples, const char* window) {
    problems.push_back(
        make_problem(Form::n_to_m, of_template, {of_template.rows, samples}, templates, 1, window));
  };
  add(1, {1, 1}, 1, "valid");
  add(3, {1, 7}, 100, "valid");
  add(5, {3, 20}, 1171, "valid");  // three segments of 512
  add(2, {1, 255}, 1033, "valid");
  add(3, {2, 400}, 1061, "valid");  // six segments of 512, one and a bit of 1024
  add(1, {1, 33}, 8401, "valid");   // three segments of 4096
  add(17, {1, 33}, 300, "sy:0..0,sx:5..260");
  // Groups of 16 templates, steps of 16 samples, panels of 80 and tiles of shifts: whole ones, one
  // more or fewer; more groups than a grid has blocks along y.
  add(16, {1, 16}, 143, "valid");
  add(2, {1, 80}, 207, "valid");
  add(2, {2, 81}, 500, "valid");
  add(270, {1, 7}, 30, "valid");
  // A signal for each template.
  problems.push_back(make_problem(Form::n_to_mn, {2, 33}, {2, 600}, 3, 3, "valid"));
  problems.push_back(make_problem(Form::n_to_mn, {1, 8}, {1, 40}, 17, 17, "valid"));
  return problems;
}

std::vector<Problem> template_problems() {
  std::vector<Problem> problems;
  for (const char* const counts :
       {"one-to-one 1:1", "one-to-many 1:3", "n-to-mn 2:6", "n-to-m 3:2"}) {
    const std::string words = counts, form = words.substr(0, words.find(' ')),
                      number = words.substr(words.find(' ') + 1);
    for (const char* const shapes :
         {"1x1/1x1/ /valid", "1x1/5x9/ /valid", "3x5/9x33/ /valid", "9x33/9x33/ /valid",
          "1x8/1x150/ /valid", "40x3/41x3/ /valid", "5x4/37x21/ /valid", "2x3/130x3/ /valid",
          "6x19/9x47/ /sy:1..3,sx:3..20", "17x18/30x37/ /valid", "3x6/20x70/ /sy:7..7,sx:1..62"}) {
      const std::string text = shapes;
      const std::size_t at = text.find(' ');
      problems.push_back(
          parse_problem(form + "/" + text.substr(0, at) + number + text.substr(at + 1)));
    }
  }
  problems.push_back(parse_problem("one-to-one/24x17/70x49/1:1/valid"));
  problems.push_back(parse_problem("n-to-m/33x70/36x90/2:1/valid"));
  problems.push_back(parse_problem("n-to-m/2x5/3x40/5:1/valid"));
  return problems;
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
  std::vector<Problem> problems;
  for (const char* const id :
       {"one-to-one/1x1/1x1/1:1/full", "one-to-one/1x7/1x7/1:1/full", "one-to-one/5x1/5x1/1:1/full",
        "one-to-one/3x33/3x33/1:1/full", "one-to-one/17x16/17x16/1:1/sy:-9..16,sx:7..15",
        "one-to-one/6x31/6x31/1:1/sy:0..5,sx:-30..30", "one-to-one/9x12/9x12/1:1/sy:-8..3,sx:-4..4",
        "one-to-one/9x12/9x12/1:1/sy:-3..8,sx:-11..11",
        "one-to-one/9x12/9x12/1:1/sy:-3..8,sx:-4..3", "one-to-one/9x12/9x12/1:1/sy:-8..-2,sx:-3..3",
        // Two panels and more, one of them partial; chunks of shifts; several groups of lines.
        "one-to-one/2x257/2x257/1:1/sy:-1..1,sx:-6..6", "one-to-one/3x290/3x290/1:1/full",
        "one-to-one/2x530/2x530/1:1/sy:0..0,sx:-529..-500",
        "one-to-one/90x9/90x9/1:1/sy:-2..2,sx:-2..2", "one-to-one/140x2/140x2/1:1/sy:0..3,sx:-1..1",
        // Several images; more rows than a grid has blocks along y.
        "n-to-mn/5x8/5x8/3:3/full", "n-to-mn/3x20/3x20/7:7/sy:0..2,sx:-5..5",
        "n-to-mn/1x1/1x1/40:40/full"}) {
    problems.push_back(parse_problem(std::string(id) + "/same=yes"));
  }
  return problems;
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
  std::vector<Problem> problems;
  // The last for kernels that read rows as whole vectors of four.
  for (const Shape shape : {Shape{1, 1}, {3, 33}, {9, 17}, {17, 5}, {5, 12}}) {
    problems.push_back(make_problem(Form::one_to_one, shape, shape, 1, 1, "full"));
    problems.push_back(make_problem(Form::one_to_many, shape, shape, 1, 3, "full"));
    problems.push_back(make_problem(Form::n_to_mn, shape, shape, 2, 6, "full"));
    problems.push_back(make_problem(Form::n_to_m, shape, shape, 3, 2, "full"));
  }
  return problems;
}

std::vector<Problem> many_matrices_problems() {
  return {make_problem(Form::one_to_many, {5, 12}, {5, 12}, 1, 9, "full"),
          make_problem(Form::n_to_mn, {5, 12}, {5, 12}, 2, 18, "full"),
          make_problem(Form::n_to_m, {5, 12}, {5, 12}, 9, 9, "full")};
}

std::vector<Problem> panel_problems() {
  return {make_problem(Form::one_to_one, {60, 60}, {60, 60}, 1, 1, "sy:-2..1,sx:-3..4"),
          make_problem(Form::one_to_many, {33, 80}, {33, 80}, 1, 3, "sy:5..6,sx:-9..3"),
          make_problem(Form::n_to_mn, {40, 33}, {20, 70}, 2, 4, "sy:-9..-8,sx:0..20"),
          make_problem(Form::n_to_m, {28, 60}, {28, 60}, 2, 3, "sy:0..1,sx:-7..7"),
          make_problem(Form::n_to_m, {1, 250}, {1, 250}, 2, 1, "sy:0..0,sx:-3..3"),
          // As many pairs as a block of fused_fft_warp has room for.
          make_problem(Form::n_to_mn, {12, 12}, {12, 12}, 2, 60, "sy:-11..-10,sx:0..3")};
}

std::vector<Problem> large_problems() {
  std::vector<Problem> problems;
  // One for all; rows of whole vectors of four; what the shortest transforms hold.
  for (const Shape shape : {Shape{40, 33}, {40, 36}, {16, 16}}) {
    problems.push_back(make_problem(Form::one_to_one, shape, shape, 1, 1, "full"));
  }
  return problems;
}

}  // namespace xcorr::emulation
