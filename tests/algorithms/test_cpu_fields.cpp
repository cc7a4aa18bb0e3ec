// The CPU variants with the fields of a problem (docs/design.md, Fields of a problem), beside loops
// over pixels that are written here. Conformance asks the same of every variant, with wider bounds;
// these variants work in float64 and are held to that.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "harness/registry.hpp"
#include "tests/support/field_reference.hpp"

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
std::vector<double> run_in(const Variant& variant, const Params& params, const Problem& q,
                           const FieldInput& left, const FieldInput& right) {
  PlanRequest request{q, params, sizeof(T) == 4 ? Precision::fp32 : Precision::fp64};
  EXPECT_TRUE(variant.supports(request)) << variant.supports(request).reason;
  const std::size_t lines = variant.workspace_bytes(request) / 256 + 1;
  struct alignas(256) Line {
    unsigned char bytes[256];
  };
  std::vector<Line> workspace(lines);
  std::fill_n(workspace[0].bytes, lines * 256, 0xff);  // NaN
  request.workspace = workspace.data();
  const std::vector<T> left_array(left.array.begin(), left.array.end());
  const std::vector<T> right_array(right.array.begin(), right.array.end());
  std::vector<T> out(q.out_elements());
  Call call;
  call.left = left_array.data();
  call.right = right_array.data();
  call.out = out.data();
  call.left_mask = left.mask_data();
  call.right_mask = right.mask_data();
  call.left_view = left.view();
  call.right_view = right.view();
  const std::unique_ptr<Plan> plan = variant.plan(request);
  for (int round = 0; round < 2; ++round) {  // nothing may be left over from a call
    std::fill(out.begin(), out.end(), std::numeric_limits<T>::quiet_NaN());
    plan->compute(call);
  }
  return {out.begin(), out.end()};
}

std::vector<double> run(const std::string& id, const Problem& q, Precision precision,
                        const FieldInput& left, const FieldInput& right, std::size_t point = 0) {
  const Variant& variant = find_variant(id);
  const Params params = grid_points(variant)[point];
  return precision == Precision::fp32 ? run_in<float>(variant, params, q, left, right)
                                      : run_in<double>(variant, params, q, left, right);
}

// Every output of every variant, point and precision beside the loops. `error` is in units of the
// norms, beside the rounding of the result.
void compare(const Problem& q, const Fill& fill, double error = 1e-11,
             bool (*mask)(Side, Index) = three_of_four) {
  const FieldInput left(q, Side::left, fill, mask);
  const FieldInput right = q.fields.same ? left : FieldInput(q, Side::right, fill, mask);
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

const std::string kZero[] = {"one-to-one/1x1/1x1/1:1/full",
                             "n-to-m/5x8/5x8/2:3/full",
                             "one-to-many/3x7/9x4/1:3/full",
                             "n-to-mn/9x4/3x7/2:4/full",
                             "n-to-m/3x5/11x9/2:2/valid",
                             "one-to-one/11x9/3x5/1:1/valid",
                             "n-to-m/7x6/7x6/2:1/sy:-2..4,sx:-5..-1",
                             "n-to-m/1x16/1x90/2:1/valid",
                             "one-to-one/17x1/5x1/1:1/sy:-3..-3,sx:0..0"};
const std::string kCircular[] = {"one-to-one/1x1/1x1/1:1/full", "n-to-m/5x8/5x8/2:3/full",
                                 "n-to-mn/9x7/9x7/2:4/sy:-4..1,sx:2..3",
                                 "one-to-many/1x26/1x26/1:2/full",
                                 "n-to-m/11x3/11x3/3:1/sy:-5..5,sx:-1..-1"};

TEST(CpuFields, ZeroBoundary) {
  for (const std::string& plain : kZero) {
    for (const std::string score :
         {"/score=covariance", "/score=ncc:0.3", "/score=zncc:0.3", "/score=zncc:0.01"}) {
      compare(parse_problem(plain + score), noise);
    }
  }
}

TEST(CpuFields, Masks) {
  for (const std::string& plain : kZero) {
    for (const std::string score : {"/score=ncc:0.3", "/score=zncc:0.5"}) {
      for (const std::string masks : {"/masks=left", "/masks=right", "/masks=both"}) {
        compare(parse_problem(plain + score + masks), noise);
      }
    }
  }
}

TEST(CpuFields, CircularBoundary) {
  for (const std::string& plain : kCircular) {
    for (const std::string score : {"", "/score=covariance"}) {
      compare(parse_problem(plain + "/boundary=circular" + score), noise);
    }
  }
}

TEST(CpuFields, Phase) {
  for (const std::string& plain : kCircular) {
    for (const std::string score : {"/score=phase:0", "/score=phase:0.5"}) {
      compare(parse_problem(plain + "/boundary=circular" + score), noise, 1e-9);
      compare(parse_problem(plain + "/boundary=circular" + score), offset, 1e-9);  // small bins
    }
  }
}

TEST(CpuFields, Views) {
  for (const std::string views : {"/views=windows", "/views=channels"}) {
    for (const std::string& plain : kZero) {
      compare(parse_problem(plain + views), noise);
      compare(parse_problem(plain + "/score=zncc:0.3/masks=both" + views), noise);
    }
    compare(parse_problem(kCircular[1] + "/boundary=circular/score=phase:0" + views), noise, 1e-9);
  }
}

TEST(CpuFields, OneArrayTwice) {
  compare(parse_problem("n-to-m/5x8/5x8/2:2/full/score=zncc:0.3/same=yes"), noise);
}

TEST(CpuFields, AnOffsetIsNoError) {
  const std::string shapes = "n-to-m/19x23/19x23/1:2/full";
  compare(parse_problem(shapes + "/score=ncc:0.3"), offset, 1e-12);
  compare(parse_problem(shapes + "/score=zncc:0.3"), offset, 1e-12);
  compare(parse_problem(shapes + "/score=zncc:0.3/masks=both"), offset, 1e-12);
  // A mean that is rounded once gives 1e-12.
  compare(parse_problem(shapes + "/score=covariance"), offset, 2e-14);
}

// One pixel is so large that sums about the mean of the matrix lose the noise of overlaps without
// that pixel.
TEST(CpuFields, OnePixelDoesNotSpoilTheOthers) {
  const Fill outlier = [](Side side, Index k) { return k == 3 ? 1e6 : noise(side, k); };
  for (const std::string masks : {"", "/masks=both"}) {
    compare(parse_problem("one-to-one/6x9/13x17/1:1/full/score=zncc:0.3" + masks), outlier, 1e-9);
  }
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
  for (const std::string fields :
       {"5x8/7x6/1:2/full/score=zncc:0.3", "5x8/7x6/1:2/full/score=ncc:0.3",
        "5x8/7x6/1:2/full/score=zncc:0.3/masks=both",
        "6x9/6x9/1:2/full/boundary=circular/score=phase:0"}) {
    const Problem q = parse_problem("n-to-m/" + fields);
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
    PlanRequest request;
    request.problem = parse_problem("one-to-one/" + shape + "/" + shape +
                                    "/1:1/full/boundary=circular/score=phase:0");
    request.params = grid_points(find_variant(id))[0];
    return static_cast<bool>(find_variant(id).supports(request));
  };
  EXPECT_TRUE(supported("cpu_definition", "64x64"));
  EXPECT_FALSE(supported("cpu_definition", "64x65"));
  EXPECT_TRUE(supported("cpu_fft", "64x65"));
}

}  // namespace
}  // namespace xcorr
