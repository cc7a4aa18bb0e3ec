// Random small problems for every CUDA variant that can be emulated: the draws of the program
// `conformance`, with seeds that do not change. XCORR_RANDOM_SEED and XCORR_RANDOM_CASES draw others, in search of bounds that
// are too strict, which a card finds in one of 10,000 problems.
#include <cstdlib>

#include "tests/conformance/random.hpp"
#include "tests/emulation/conformance.hpp"
#include "tests/emulation/support.hpp"

namespace xcorr::emulation {
namespace {

// Problems with fields: test_fields.cpp.
constexpr conformance::Limits kSmall{
    24, std::size_t{1} << 14, Index{1} << 14, Index{1} << 10, 24, 400, false};
constexpr std::uint64_t kSeed = 1, kCases = 12;
// Variants whose workers are warps start 32 times the threads of others: fewer cases of them.
constexpr std::uint64_t kThreads = 40000;
// Problems with fields, of one kind of input each.
constexpr conformance::Limits kFields{
    48, std::size_t{1} << 18, Index{1} << 17, Index{1} << 12, 120, 2000};
constexpr std::uint64_t kFieldCases = 2;

std::uint64_t asked(const char* variable, std::uint64_t usual) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? usual : std::strtoull(text, nullptr, 10);
}

class RandomProblems : public testing::TestWithParam<Variant> {};

TEST_P(RandomProblems, agree_with_the_truth) {
  const Variant& variant = GetParam();
  conformance::Draws draws(kSeed, {&variant}, std::nullopt, kSmall);
  const std::vector<Params> points = emulated_points(variant);
  const std::uint64_t before = threads_started();
  Index computed = 0;
  for (std::uint64_t i = 0; i < kCases && threads_started() - before < kThreads; ++i) {
    const auto drawn = draws.draw(i, [&](const conformance::Case& c) {
      if (!has(points, c.params)) return no("its kernel was not compiled");
      return c.variant->supports({c.problem, c.params, c.precision});
    });
    if (!drawn) continue;
    const auto& [v, params, precision, problem, inputs, seed] = *drawn;
    computed += expect_right(variant, params, precision, problem, Effort::thorough, seed);
  }
  EXPECT_GT(computed, 0) << "every draw was refused";
}

// Surfaces: what is made of them is compared elsewhere. Masks and views are those of test_fields.cpp: their operands are others.
TEST_P(RandomProblems, with_fields_are_right_by_the_verdict) {
  const Variant& variant = GetParam();
  conformance::Draws draws(asked("XCORR_RANDOM_SEED", kSeed), {&variant},
                           variant.precisions.front(), kFields);
  const std::vector<Params> points = emulated_points(variant);
  const std::uint64_t cases = asked("XCORR_RANDOM_CASES", kFieldCases);
  for (std::uint64_t i = 0; i < cases; ++i) {
    const auto drawn = draws.draw(i, [&](const conformance::Case& c) {
      if (!has(points, c.params)) return no("its kernel was not compiled");
      const Fields& fields = c.problem.fields;
      if (fields.masks != Masks::none || fields.views != Views::dense) return no("other operands");
      return c.variant->supports({c.problem.surface(), c.params, c.precision});
    });
    if (!drawn) continue;
    try {
      expect_verdicts(variant, drawn->problem.surface(), drawn->params, drawn->inputs, drawn->seed);
    } catch (const NotInSample&) {  // another kernel of the same parameters
    }
  }
}

// Asked only: no kernel runs.
TEST_P(RandomProblems, of_a_card_are_drawn_within_the_limits) {
  const Variant& variant = GetParam();
  const conformance::Limits limits = conformance::default_limits(Backend::cuda);
  constexpr std::uint64_t kDraws = 100;
  conformance::Draws draws(kSeed, {&variant}, std::nullopt, limits);
  std::uint64_t drawn = 0;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    const auto c = draws.draw(i, [](const conformance::Case& asked) {
      return asked.variant->supports({asked.problem, asked.params, asked.precision});
    });
    if (!c) continue;
    ++drawn;
    const Problem& p = c->problem;
    EXPECT_LE(std::max({p.left.rows, p.left.cols, p.right.rows, p.right.cols}),
              p.is_time_series() ? limits.signal : limits.side);
    EXPECT_LE(static_cast<std::size_t>(p.bytes(scalar_bytes(c->precision))), limits.bytes);
    EXPECT_LE(p.fmas(), limits.fmas) << p.id();
    EXPECT_LE(p.max_overlap(), limits.overlap);
    EXPECT_LE(p.pairs(), limits.pairs);
  }
  Index refused = 0;
  for (const auto& [reason, count] : draws.refused()) refused += count;
  RecordProperty("refused", std::to_string(refused));
  EXPECT_GE(drawn, kDraws * 9 / 10) << refused << " draws were refused";
}

INSTANTIATE_TEST_SUITE_P(Variants, RandomProblems,
                         testing::ValuesIn(emulated([](const Variant&) { return true; })), name_of);

}  // namespace
}  // namespace xcorr::emulation
