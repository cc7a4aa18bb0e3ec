// The CPU variants with the fields of a problem (docs/design.md, Fields of a problem), beside loops
// over pixels that are written here. Conformance asks the same of every variant, with wider bounds;
// these variants work in float64 and are held to that.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/field_reference.hpp"
#include "tests/support/planned.hpp"

namespace xcorr {
namespace {

const char* const kVariants[] = {"cpu_definition", "cpu_row_streaming", "cpu_fft"};

// Value of an element of the array of a side.
using Fill = std::function<double(Side, Index)>;

double noise(Side side, Index index) {
  const std::uint64_t bits = mix(mix(index) ^ (side == Side::left ? 11u : 12u));
  return static_cast<double>(bits >> 43) * 0x1p-20 - 1;  // [-1, 1), exact in float32
}

// Multiples of 2^-10, which float32 has near 1e4.
double offset(Side side, Index index) {
  return 1e4 + std::floor(noise(side, index) * 0x1p10) * 0x1p-10;
}

template <typename T>
std::vector<double> run_in(Planned& planned, const Problem& q, const FieldInput& left,
                           const FieldInput& right) {
  const std::vector<T> left_array(left.array.begin(), left.array.end());
  const std::vector<T> right_array(right.array.begin(), right.array.end());
  const Call call = call_of(left, left_array.data(), right, right_array.data());
  planned.compute(call);  // nothing may be left over from a call
  const auto* const out = static_cast<const T*>(planned.compute(call));
  return {out, out + q.out_elements()};
}

std::vector<double> run(const std::string& id, const Problem& q, Precision precision,
                        const FieldInput& left, const FieldInput& right, std::size_t point = 0) {
  const Variant& variant = find_variant(id);
  Planned planned(variant, q, grid_points(variant)[point], precision);
  return precision == Precision::fp32 ? run_in<float>(planned, q, left, right)
                                      : run_in<double>(planned, q, left, right);
}

// Every output of every variant, point and precision beside the loops. `error` is in units of the
// norms, beside the rounding of the result.
void compare(const Problem& q, const Fill& fill, double error = 1e-11) {
  const FieldInput left(q, Side::left, fill);
  const FieldInput right = q.fields.same ? left : FieldInput(q, Side::right, fill);
  const std::vector<FieldValue> truth = field_reference(q, left, right);
  for (const std::string id : kVariants) {
    const bool phase = q.fields.score.kind == ScoreKind::phase;
    if (phase && id == "cpu_row_streaming") continue;
    for (std::size_t point = 0; point < grid_points(find_variant(id)).size(); ++point) {
      for (const Precision precision : {Precision::fp32, Precision::fp64}) {
        const std::vector<double> out = run(id, q, precision, left, right, point);
        const double unit = precision == Precision::fp32 ? 0x1p-24 : 0x1p-53;
        for (std::size_t k = 0; k < out.size(); ++k) {
          const FieldValue& want = truth[k];
          ASSERT_LE(std::abs(out[k] - want.value),
                    2 * unit * std::abs(want.value) + error * want.norms)
              << id << " " << q.id() << " point " << point << ", " << to_string(precision)
              << ", output " << k << ": " << out[k] << " instead of " << want.value;
        }
      }
    }
  }
}

void compare(const Texts& ids, const Texts& fields, const Fill& fill, double error = 1e-11) {
  for (const Problem& q : problems_of(ids, fields)) compare(q, fill, error);
}

const Texts kZero = {"one-to-one/1x1/1x1/1:1/full",
                     "n-to-m/5x8/5x8/2:3/full",
                     "one-to-many/3x7/9x4/1:3/full",
                     "n-to-mn/9x4/3x7/2:4/full",
                     "n-to-m/3x5/11x9/2:2/valid",
                     "one-to-one/11x9/3x5/1:1/valid",
                     "n-to-m/7x6/7x6/2:1/sy:-2..4,sx:-5..-1",
                     "n-to-m/1x16/1x90/2:1/valid",
                     "one-to-one/17x1/5x1/1:1/sy:-3..-3,sx:0..0"};
const Texts kCircular = {"one-to-one/1x1/1x1/1:1/full", "n-to-m/5x8/5x8/2:3/full",
                         "n-to-mn/9x7/9x7/2:4/sy:-4..1,sx:2..3", "one-to-many/1x26/1x26/1:2/full",
                         "n-to-m/11x3/11x3/3:1/sy:-5..5,sx:-1..-1"};

TEST(CpuFields, ZeroBoundary) {
  compare(kZero, {"/score=covariance", "/score=ncc:0.3", "/score=zncc:0.3", "/score=zncc:0.01"},
          noise);
}

TEST(CpuFields, Masks) {
  for (const std::string masks : {"/masks=left", "/masks=right", "/masks=both"}) {
    compare(kZero, {"/score=ncc:0.3" + masks, "/score=zncc:0.5" + masks}, noise);
  }
}

TEST(CpuFields, CircularBoundary) {
  compare(kCircular, {"/boundary=circular", "/boundary=circular/score=covariance"}, noise);
}

TEST(CpuFields, Phase) {
  for (const Fill& fill : {Fill(noise), Fill(offset)}) {  // the latter has small bins
    compare(kCircular, {"/boundary=circular/score=phase:0", "/boundary=circular/score=phase:0.5"},
            fill, 1e-9);
  }
}

TEST(CpuFields, Views) {
  for (const std::string views : {"/views=windows", "/views=channels"}) {
    compare(kZero, {views, "/score=zncc:0.3/masks=both" + views}, noise);
    compare({kCircular[1]}, {"/boundary=circular/score=phase:0" + views}, noise, 1e-9);
  }
}

TEST(CpuFields, OneArrayTwice) {
  compare(parse_problem("n-to-m/5x8/5x8/2:2/full/score=zncc:0.3/same=yes"), noise);
}

TEST(CpuFields, AnOffsetIsNoError) {
  const Texts shapes = {"n-to-m/19x23/19x23/1:2/full"};
  compare(shapes, {"/score=ncc:0.3", "/score=zncc:0.3", "/score=zncc:0.3/masks=both"}, offset,
          1e-12);
  // A mean that is rounded once gives 1e-12.
  compare(shapes, {"/score=covariance"}, offset, 2e-14);
}

// One pixel is so large that sums about the mean of the matrix lose the noise of overlaps without
// that pixel.
TEST(CpuFields, OnePixelDoesNotSpoilTheOthers) {
  const Fill outlier = [](Side side, Index k) { return k == 3 ? 1e6 : noise(side, k); };
  compare({"one-to-one/6x9/13x17/1:1/full/score=zncc:0.3"}, {"", "/masks=both"}, outlier, 1e-9);
}

// A part that is constant up to 8 roundings of float32 of its values.
TEST(CpuFields, FlatPartsScoreZero) {
  const Fill flat = [](Side side, Index k) {
    return side == Side::right && k % 17 < 9 ? 1e3 + 1e-6 * noise(side, k) : noise(side, k);
  };
  const Problem q = parse_problem("one-to-one/6x7/13x17/1:1/valid/score=zncc:0.3");
  compare(q, flat, 1e-9);
  const FieldInput left(q, Side::left, flat), right(q, Side::right, flat);
  for (const std::string id : kVariants) {
    const std::vector<double> out = run(id, q, Precision::fp64, left, right);
    EXPECT_EQ(out[0], 0) << id;
    EXPECT_EQ(out[2], 0) << id;
    EXPECT_NE(out[3], 0) << id;
  }
}

// What a mask hides has no influence, NaN included.
TEST(CpuFields, HiddenPixelsAreNotRead) {
  const Problem q = parse_problem("n-to-m/6x9/7x5/2:1/full/score=zncc:0.3/masks=both");
  const FieldInput left(q, Side::left, noise), right(q, Side::right, noise);
  FieldInput spoilt = left;
  for (std::size_t k = 0; k < spoilt.mask.size(); ++k) {
    if (!spoilt.mask[k]) spoilt.array[k] = std::numeric_limits<double>::quiet_NaN();
  }
  for (const std::string id : kVariants) {
    EXPECT_EQ(run(id, q, Precision::fp32, left, right), run(id, q, Precision::fp32, spoilt, right))
        << id;
  }
}

TEST(CpuFields, APowerOfTwoChangesNoBit) {
  for (const Problem& q : problems_of(
           {"n-to-m/"}, {"5x8/7x6/1:2/full/score=zncc:0.3", "5x8/7x6/1:2/full/score=ncc:0.3",
                         "5x8/7x6/1:2/full/score=zncc:0.3/masks=both",
                         "6x9/6x9/1:2/full/boundary=circular/score=phase:0"})) {
    const bool phase = q.fields.score.kind == ScoreKind::phase;
    for (const std::string id : kVariants) {
      if (phase && id == "cpu_row_streaming") continue;
      for (const Precision precision : {Precision::fp32, Precision::fp64}) {
        const auto scaled = [&](int of_left, int of_right) {
          const Fill fill = [&](Side side, Index k) {
            return std::ldexp(offset(side, k), side == Side::left ? of_left : of_right);
          };
          return run(id, q, precision, FieldInput(q, Side::left, fill),
                     FieldInput(q, Side::right, fill));
        };
        // The spectrum of a phase is not scaled first.
        const int far = precision == Precision::fp32 || phase ? 100 : 1000;
        EXPECT_EQ(scaled(0, 0), scaled(far, -1)) << id << " " << q.id();
        EXPECT_EQ(scaled(0, 0), scaled(-far, -far)) << id << " " << q.id();
      }
    }
  }
}

TEST(CpuFields, ConstantsAndHiddenMatricesScoreZero) {
  const Fill constant = [](Side side, Index k) {
    return side == Side::left ? 1.2345678 : offset(side, k);
  };
  const Fill zero = [](Side side, Index k) { return side == Side::left ? 0 : noise(side, k); };
  const auto all_zero = [](const std::string& fields, const Fill& fill, bool (*mask)(Side, Index)) {
    const Problem q = parse_problem("n-to-m/6x9/7x5/2:1/full" + fields);
    const FieldInput left(q, Side::left, fill, mask), right(q, Side::right, fill, mask);
    for (const std::string id : kVariants) {
      for (const Precision precision : {Precision::fp32, Precision::fp64}) {
        const std::vector<double> zeros(static_cast<std::size_t>(q.out_elements()));
        EXPECT_EQ(run(id, q, precision, left, right), zeros) << id << fields;
      }
    }
  };
  all_zero("/score=zncc:0.3", constant, three_of_four);
  all_zero("/score=zncc:0.3/masks=both", constant, three_of_four);
  all_zero("/score=ncc:0.3", zero, three_of_four);
  const auto none = [](Side, Index) { return false; };
  for (const std::string score : {"/score=zncc:0.3", "/score=ncc:0.3"}) {
    for (const std::string masks : {"/masks=left", "/masks=right", "/masks=both"}) {
      all_zero(score + masks, noise, none);
    }
  }
}

TEST(CpuFields, OnlyTheDefinitionLimitsTheSizeOfAPhase) {
  const auto supported = [](const std::string& id, const std::string& shape) {
    const Problem q = parse_problem("one-to-one/" + shape + "/" + shape +
                                    "/1:1/full/boundary=circular/score=phase:0");
    const Variant& variant = find_variant(id);
    return static_cast<bool>(variant.supports({q, grid_points(variant)[0]}));
  };
  EXPECT_TRUE(supported("cpu_definition", "64x64"));
  EXPECT_FALSE(supported("cpu_definition", "64x65"));
  EXPECT_TRUE(supported("cpu_fft", "64x65"));
}

}  // namespace
}  // namespace xcorr
