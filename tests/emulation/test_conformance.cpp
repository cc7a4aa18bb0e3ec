// Every CUDA variant that can be emulated, on every odd problem, against the definition in float64.
#include <gmock/gmock.h>

#include <cstdlib>
#include <map>

#include "algorithms/blocks/pairs.hpp"
#include "tests/emulation/conformance.hpp"
#include "tests/emulation/support.hpp"

namespace xcorr::emulation {
namespace {

// The problems of a list that a variant takes: some take no others.
std::vector<Problem> fitting(const Variant& variant, const std::vector<Problem>& problems) {
  if (takes_templates_only(variant)) return template_problems();
  return variant.same_only ? of_one_array(problems) : problems;
}
std::vector<Problem> odd_problems_of(const Variant& variant) {
  if (variant.family == "time_series") return time_series_problems();
  if (takes_templates_only(variant)) return template_problems();
  return variant.same_only ? autocorrelation_problems() : odd_problems();
}

// Every second problem, in turns over shapes and forms, for a variant that starts many threads for a problem: it meets each
// shape in half of the forms. XCORR_HALF_OF_PROBLEMS is the seed of the half; without it the variant meets all.
class Half {
 public:
  explicit Half(const Variant& variant) {
    const char* const seed = std::getenv("XCORR_HALF_OF_PROBLEMS");
    drawn_ = seed != nullptr && variant.forms.size() >= 3;
    if (drawn_) seed_ = std::stoul(seed);
  }
  // `number`: of the problem in a list that has all shapes of a form one behind the other.
  bool leaves_out(std::size_t number, Form form) const {
    return drawn_ && (number + static_cast<std::size_t>(form) + seed_) % 2 == 1;
  }

 private:
  bool drawn_;
  std::size_t seed_ = 0;
};

class Conformance : public testing::TestWithParam<Variant> {};

// Points of a large grid take turns: all of them are met over the problems of a form.
constexpr std::size_t kPointsPerProblem = 3;
// One point is enough for a problem of more products than this, whose few threads make many steps, and where a
// computation starts many threads.
constexpr Index kManyProducts = 150000;

TEST_P(Conformance, odd_problems) {
  const Variant& variant = GetParam();
  const std::vector<Params> points = emulated_points(variant);
  std::size_t turn = 0, computed = 0;
  const std::uint64_t brief_before = were_brief();
  const auto check = [&](const Problem& problem, std::size_t precision, Effort effort) {
    computed +=
        expect_right(variant, points[turn % points.size()],
                     variant.precisions[precision % variant.precisions.size()], problem, effort);
  };
  const bool series = variant.family == "time_series";
  if (variant.algorithm_class == AlgorithmClass::fft && !series) {
    for (const Problem& problem : length_problems()) {
      if (!has(variant.forms, problem.form)) continue;
      check(problem, turn, Effort::brief);
      ++turn;
    }
  }
  const Half half(variant);
  std::size_t number = 0;
  for (const Problem& problem : odd_problems_of(variant)) {
    const bool left_out = half.leaves_out(number++, problem.form);
    if (!has(variant.forms, problem.form)) continue;
    if (left_out && were_brief() > brief_before) continue;
    const bool many_products = problem.fmas() > kManyProducts;
    const Effort effort = many_products ? Effort::brief : Effort::thorough_of_few;
    bool enough = false;
    for (std::size_t i = 0; i < std::min(kPointsPerProblem, points.size()) && !enough;
         ++i, ++turn) {
      for (std::size_t p = 0; p < variant.precisions.size() && !enough; ++p) {
        const std::uint64_t started = threads_started(), brief = were_brief();
        check(problem, turn + p, effort);
        enough = were_brief() > brief || (many_products && threads_started() > started);
      }
    }
  }
  EXPECT_GT(computed, 0u);
}

// The kernels of a variant that no launch has reached, by the values of their point.
std::vector<std::vector<int>> not_launched(const Variant& variant) {
  std::vector<std::vector<int>> found;
  const auto compiled = compiled_points().find(variant.id);
  if (compiled == compiled_points().end()) return found;
  for (const auto& [point, kernel] : compiled->second) {
    if (kernel != nullptr && !launched_kernels().contains(kernel)) found.push_back(point);
  }
  return found;
}

// Each point that is a kernel of its own, in every form, on shapes that its tiles do not divide;
// what is chosen at run time takes turns. A kernel that is reached by none of the problems of a half meets the others.
TEST_P(Conformance, every_compile_time_point) {
  const Variant& variant = GetParam();
  launched_kernels().clear();
  std::map<std::vector<std::string>, std::vector<Params>> kernels;
  for (const Params& point : emulated_points(variant)) {
    std::vector<std::string> kernel;
    for (const Axis& axis : variant.axes) {
      // Not every tile has it.
      if (axis.compile_time) kernel.push_back(point.has(axis.name) ? point.get(axis.name) : "");
    }
    kernels[kernel].push_back(point);
  }
  std::size_t turn = 0;
  std::map<std::vector<std::string>, int> met;
  const auto every_kernel = [&](const Problem& problem) {
    for (const auto& [kernel, points] : kernels) {
      std::vector<Params> supported;
      for (const Params& point : points) {
        if (variant.supports({problem, point})) supported.push_back(point);
      }
      met[kernel] += !supported.empty();
      if (supported.empty()) continue;
      const Params& params = supported[turn++ % supported.size()];
      for (const Precision precision : variant.precisions) {
        expect_right(variant, params, precision, problem, Effort::brief);
      }
    }
  };
  const bool time_series = variant.family == "time_series";
  const Half half(variant);
  std::size_t number = 0;
  std::vector<Problem> others;
  for (const Problem& problem :
       time_series ? time_series_problems() : fitting(variant, remainder_problems())) {
    const bool left_out = half.leaves_out(number++, problem.form);
    if (is_definition(variant.algorithm_class) && problem.fmas() > kManyProducts) continue;
    if (!has(variant.forms, problem.form)) continue;
    if (left_out) {
      others.push_back(problem);
    } else {
      every_kernel(problem);
    }
  }
  const auto all_met = [&] {
    return not_launched(variant).empty() && met.size() == kernels.size() &&
           std::ranges::all_of(met, [](const auto& one) { return one.second > 0; });
  };
  for (const Problem& problem : fitting(variant, many_matrices_problems())) {
    if (has(variant.forms, problem.form)) others.push_back(problem);
  }
  for (const Problem& problem : others) {
    if (!all_met()) every_kernel(problem);
  }
  for (const auto& [kernel, problems] : met) {
    EXPECT_GT(problems, 0) << variant.id << ": a kernel that no problem reaches";
  }
  EXPECT_THAT(not_launched(variant), testing::IsEmpty());
}

TEST_P(Conformance, large_problem) {
  const Variant& variant = GetParam();
  if (!has(variant.forms, Form::one_to_one)) return;
  // The last point that is one of one-to-one, on the first problem that the variant takes.
  for (const Problem& problem : fitting(variant, large_problems())) {
    std::vector<Params> points = emulated_points(variant);
    std::erase_if(points, [&](const Params& p) { return !variant.supports({problem, p}); });
    if (points.empty()) continue;
    expect_right(variant, points.back(), variant.precisions.front(), problem, Effort::brief);
    return;
  }
  FAIL() << variant.id << ": no point takes a large problem";
}

// Blocks of other devices have less shared memory: every point gives a right result there or says
// why it cannot. 40 KiB is no device's: panels of matrices of this size need it. The other sizes take turns over points
// and problems.
TEST_P(Conformance, little_shared_memory) {
  const Variant& variant = GetParam();
  constexpr std::size_t kTurns[] = {48, 99, 163};
  for (const std::size_t kib : {40, 48, 99, 163}) {
    const SharedMemoryOf memory(kib * 1024);
    std::size_t turn = 0;  // of the problem
    for (const Problem& problem : fitting(variant, panel_problems())) {
      if (!has(variant.forms, problem.form)) continue;
      std::size_t at = turn++;
      for (const Params& params : emulated_points(variant)) {
        if (const std::size_t its = kTurns[at++ % std::size(kTurns)]; kib != 40 && kib != its)
          continue;
        const Precision precision = variant.precisions.front();
        const Support support = variant.supports({problem, params, precision});
        if (!support) {
          EXPECT_NE(support.reason, "") << variant.id << " " << params.canonical();
          continue;
        }
        SCOPED_TRACE(std::to_string(kib) + " KiB of shared memory");
        expect_right(variant, params, precision, problem, Effort::brief);
        // A variant that does not ask for the size computes the same way with any size.
        if (memory.asked() == 0) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, Conformance,
                         testing::ValuesIn(emulated([](const Variant&) { return true; })), name_of);

TEST(Pairing, equals_the_pairing_of_the_problem) {
  std::vector<Problem> problems = odd_problems();
  std::ranges::copy(problems_of({"one-to-one/2x2/2x2/1:1/full", "one-to-many/2x3/2x2/1:5/full",
                                 "n-to-mn/2x2/2x2/3:12/full", "n-to-m/2x2/2x2/3:4/full"}),
                    std::back_inserter(problems));
  for (const Problem& problem : problems) {
    ASSERT_TRUE(indices_fit(problem));
    const Pairing pairing(problem);
    for (Index p = 0; p < problem.pairs(); ++p) {
      const Pair got = pairing.pair(static_cast<std::uint32_t>(p)), want = problem.pair(p);
      EXPECT_EQ(got.left, want.left) << problem.id() << " pair " << p;
      EXPECT_EQ(got.right, want.right) << problem.id() << " pair " << p;
      EXPECT_EQ(got.right, p - p / rights_of_a_left(problem) * rights_back(problem))
          << problem.id() << " pair " << p;
    }
  }
}

class Ring : public OfVariant {
 protected:
  Ring() : OfVariant("fused_fft_lanes") {}
};

// Images of a batch of pairs lie where those of an earlier batch lay, whose rows must have been read. One run shows a
// block that does not wait only where another one is late, so there are many batches of few tasks, in many orders.
TEST_F(Ring, images_are_overwritten_only_when_their_rows_are_done) {
  const Problem problem = parse_problem("n-to-m/2x2/2x2/16:16/full");
  Params params;
  params.set("ring_mib", "44");
  params.set("spectra", "workspace");
  // One order in six shows a fault; the orders of seeds 5, 7 and 9 do. The usual tests, with half of the problems, take
  // one order.
  const std::uint64_t orders = std::getenv("XCORR_HALF_OF_PROBLEMS") == nullptr ? 12 : 1;
  for (std::uint64_t seed = 5; seed < 5 + orders; ++seed) {
    ASSERT_EQ(failure(variant(), params, Precision::fp32, problem, seed, Effort::brief), "")
        << seed;
  }
}

}  // namespace
}  // namespace xcorr::emulation
