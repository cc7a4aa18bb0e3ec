// Transforms of sides of unlike scale. Left and right may share a transform. Its rounding errors must not be those of the
// larger side, also where squares of a side leave the range of float32. A side of equal elements gives zeros.
#include "tests/emulation/support.hpp"

namespace xcorr::emulation {
namespace {

struct Sides {
  float left, right;   // what numbers are multiplied by
  bool blank = false;  // all elements of the first right matrix are `right`
};

std::vector<float> surfaces(const Variant& v, const Params& point, const Problem& q, Sides sides) {
  const Operands in(
      q, [&](Index i) { return sides.left * static_cast<float>(noise(1, i)); },
      [&](Index i) {
        const bool blank = sides.blank && i < q.right.size();
        return sides.right * (blank ? 1 : static_cast<float>(noise(2, i)));
      });
  Planned planned(v, q, point);
  planned.compute(in);
  return {planned.surface(), planned.surface() + q.out_elements()};
}

// f(variant, point, problem) for transforms of every field that knows no window of its own.
template <typename F>
void each_transform(const std::vector<std::string>& fields, const std::vector<std::string>& sizes,
                    const std::string& counts, F f) {
  int met = 0;
  for (const Variant& v : emulated([](const Variant& one) {
         return !is_definition(one.algorithm_class) && has(one.results, ResultKind::surface) &&
                !one.same_only;
       })) {
    for (const std::string& of_fields : fields) {
      for (const std::string& size : sizes) {
        const Problem q =
            parse_problem("n-to-mn/" + size + "/" + size + "/" + counts + "/full" + of_fields);
        if (!has(v.boundaries, q.fields.boundary) || !has(v.scores, q.fields.score.kind)) continue;
        for (const Params& point : emulated_points(v)) {
          if (!v.supports({q, point})) continue;
          f(v, point, q);
          ++met;
          break;
        }
      }
    }
  }
  // A program for one mutant has the kernels of one variant.
  if (met == 0) GTEST_SKIP() << "no transforms";
}

template <typename F>
void each_transform(F f) {
  each_transform({"", "/score=covariance", "/boundary=circular",
                  "/boundary=circular/score=covariance", "/boundary=circular/score=phase:0"},
                 {"20x31", "32x32", "64x64"}, "2:2", f);
}

TEST(UnequalSides, scales_change_no_digit_but_the_last) {
  each_transform([](const Variant& v, const Params& point, const Problem& q) {
    const bool phase = q.fields.score.kind == ScoreKind::phase;
    const std::vector<float> plain = surfaces(v, point, q, {1, 1});
    double largest = 0;
    for (const float value : plain) largest = std::max(largest, std::abs(double{value}));
    for (const Sides sides : {Sides{0x1p40f, 0x1p-40f},
                              {0x1p-60f, 0x1p40f},
                              {0x1p-30f, 0x1p-30f},
                              {0x1p75f, 0x1p-75f}}) {
      const std::vector<float> out = surfaces(v, point, q, sides);
      const double scale = phase ? 1 : double{sides.left} * double{sides.right};
      double worst = 0;
      for (std::size_t i = 0; i < out.size(); ++i) {
        worst = worse(worst, std::abs(double{out[i]} / scale - double{plain[i]}));
      }
      EXPECT_LT(worst, 1e-5 * largest)
          << v.id << " " << point.canonical() << " " << q.id() << " " << sides.left;
    }
  });
}

TEST(UnequalSides, of_a_blank_side_nothing_is_left) {
  each_transform([](const Variant& v, const Params& point, const Problem& q) {
    if (q.fields.score.kind == ScoreKind::product) return;
    for (const float value : {0.0f, 0.1f, 1e5f / 3}) {
      const std::vector<float> out = surfaces(v, point, q, {1, value, true});
      for (Index i = 0; i < q.out_size(); ++i) {
        ASSERT_EQ(out[static_cast<std::size_t>(i)], 0) << v.id << " " << q.id() << " " << value;
      }
    }
  });
}

// Ones have their energy in few bins, noise in all. A bin in which one side is large counts squared, so like norms are not
// enough. The seed decides which side is ones.
TEST(UnequalSides, a_side_of_ones_keeps_the_bounds) {
  each_transform({"", "/boundary=circular"}, {"16x16", "20x31", "31x31", "32x32", "64x64"}, "3:12",
                 [](const Variant& v, const Params& point, const Problem& q) {
                   for (std::uint64_t seed = 5; seed < 9; ++seed) {
                     SCOPED_TRACE("seed " + std::to_string(seed));
                     expect_verdicts(v, q, point, {InputKind::blank}, seed);
                   }
                 });
}

}  // namespace
}  // namespace xcorr::emulation
