// Scores of time series on tensor cores where a signal has nodata fills as large as the largest float32, against the
// definition in long double: in windows with fills, and where a fill is alone also in windows without. Of many fills the
// samples of a tile have a pivot far from the others, and a tile in float32 then loses the others.
#include "tests/emulation/support.hpp"
#include "tests/support/field_reference.hpp"

namespace xcorr::emulation {
namespace {

class WideSamples : public testing::TestWithParam<Variant> {};
XCORR_TESTS_OF_VARIANTS(WideSamples, emulated([](const Variant& v) {
                          return v.family == "time_series" && has(v.scores, ScoreKind::zncc);
                        }));

constexpr float kFill = std::numeric_limits<float>::max();

double drawn(Index i) { return noise(5, i); }

enum class Fills { one, some, both_signs, all_of_an_end, beside_small };

std::vector<float> signal(Index samples, Fills fills) {
  std::vector<float> values;
  for (Index i = 0; i < samples; ++i) {
    const std::uint64_t draw = mix(77 ^ static_cast<std::uint64_t>(i)) % 10;
    const bool is_fill = fills == Fills::some            ? draw < 2
                         : fills == Fills::both_signs    ? draw < 6
                         : fills == Fills::all_of_an_end ? i >= samples / 2
                                                         : i == samples / 2;
    const bool is_negative = fills == Fills::one || (fills == Fills::both_signs && draw % 2);
    const double size = fills == Fills::both_signs ? 0.6 + 0.05 * static_cast<double>(draw) : 1;
    const float fill = is_negative ? -kFill : kFill * static_cast<float>(size);
    const float own =
        static_cast<float>(drawn(i + 500)) * (fills == Fills::beside_small ? 0x1p-50f : 1);
    values.push_back(is_fill ? fill : own);
  }
  return values;
}

TEST_P(WideSamples, scores_are_those_of_the_definition) {
  const Variant& variant = GetParam();
  const Precision precision = variant.precisions.front();
  const bool of_pairs = variant.forms.front() == Form::n_to_mn;
  const double bound = precision == Precision::tf32 ? 1e-2 : 1e-5;
  Params params;
  if (!variant.axes.empty()) params.set("warps_per_block", "4");
  constexpr Index kTemplates = 2, kSamples = 420;
  for (const Index length : {1, 3, 10, 40}) {
    for (const Fills fills :
         {Fills::one, Fills::some, Fills::both_signs, Fills::all_of_an_end, Fills::beside_small}) {
      const bool is_alone = fills == Fills::one || fills == Fills::beside_small;
      std::vector<float> left, right = signal(kSamples, fills);
      for (Index i = 0; i < kTemplates * length; ++i) {
        left.push_back(static_cast<float>(drawn(i + 9000)));
      }
      if (of_pairs) right.insert(right.end(), right.begin(), right.begin() + kSamples);
      for (const bool centred : {false, true}) {
        if (centred && length == 1) continue;
        const Problem q =
            parse_problem(std::string(of_pairs ? "n-to-mn" : "n-to-m") + "/1x" +
                          std::to_string(length) + "/1x420/2:" + (of_pairs ? "2" : "1") +
                          "/valid/score=" + (centred ? "zncc:1" : "ncc:1"));
        Planned planned(variant, q, params, precision);
        const auto* const out =
            static_cast<const float*>(planned.compute(left.data(), right.data()));
        const auto value = [&](Side side, Index i) {
          return double{(side == Side::left ? left : right)[static_cast<std::size_t>(i)]};
        };
        const std::vector<FieldValue> want =
            field_reference(q, FieldInput(q, Side::left, value), FieldInput(q, Side::right, value));
        double worst = 0;
        Index at = -1;
        each_output(q, [&](Index i, Pair, Index, Index shift) {
          const float* const window = right.data() + shift;
          const bool has_fill =
              std::any_of(window, window + length, [](float value) { return std::abs(value) > 1; });
          if (!is_alone && !has_fill) return;
          const double error = std::abs(out[i] - want[static_cast<std::size_t>(i)].value);
          if (!(error <= worst) && !std::isnan(worst)) worst = error, at = i;
        });
        EXPECT_LE(worst, bound) << q.id() << ", fills " << static_cast<int>(fills) << ", at " << at
                                << ": " << out[std::max<Index>(at, 0)];
      }
    }
  }
}

}  // namespace
}  // namespace xcorr::emulation
