// What tests of emulated variants share: the variants to test, noise, sums by definition, and what the harness says of a result.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <vector>

#include "harness/device/device.hpp"
#include "harness/problem/inputs.hpp"
#include "harness/reduce/reduce.hpp"
#include "harness/registry.hpp"
#include "tests/emulation/conformance.hpp"
#include "tests/emulation/planned.hpp"
#include "tests/emulation/sample.hpp"
#include "tests/support/problems.hpp"

namespace xcorr::emulation {

template <typename List, typename Value>
bool has(const List& list, const Value& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// The emulated variants for which `wanted` is true. The library may hold the same variants compiled for a GPU.
template <typename Predicate>
std::vector<Variant> emulated(const Predicate& wanted) {
  std::vector<Variant> found;
  for (const Variant& v : variants()) {
    if (v.source_hash == "emulated" && wanted(v)) found.push_back(v);
  }
  return found;
}

inline std::string short_id(const Variant& variant) {
  return variant.id.substr(variant.id.find('.') + 1);
}
inline std::string name_of(const testing::TestParamInfo<Variant>& info) {
  return short_id(info.param);
}

// Tests of one variant. They are skipped in a program without it, as one for a mutant of another unit (tests/mutants).
class OfVariant : public testing::Test {
 protected:
  explicit OfVariant(const std::string& id) : id_("emulated." + id) {}
  void SetUp() override {
    if (emulated([&](const Variant& v) { return v.id == id_; }).empty()) {
      GTEST_SKIP() << id_ << " is not in this program";
    }
  }
  const Variant& variant() const { return find_variant(id_); }

 private:
  std::string id_;
};

// Makes tests for each of the variants. A program for one mutant has the kernels of one variant, so there may be none.
#define XCORR_TESTS_OF_VARIANTS(suite, ...)             \
  GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(suite); \
  INSTANTIATE_TEST_SUITE_P(Variants, suite, testing::ValuesIn(__VA_ARGS__), name_of)

// Uniform in [-1, 1), exact in float32.
inline double noise(std::uint64_t seed, Index i) {
  return static_cast<double>(mix(seed ^ static_cast<std::uint64_t>(i)) >> 40) * 0x1p-23 - 1;
}

// The larger of two errors, or the one that is NaN: std::max() would drop it.
inline double worse(double a, double b) { return std::isnan(a) || a > b ? a : b; }

inline bool same(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// ncc, or zncc if `centred`, of `count` products. each(use) calls use(left, right) for every product.
template <typename Each>
double normalised_score(Index count, bool centred, const Each& each) {
  const auto n = static_cast<long double>(count);
  long double l = 0, r = 0, products = 0, ll = 0, rr = 0;
  if (centred) each([&](long double a, long double b) { l += a, r += b; });
  each([&](long double a, long double b) {
    a -= l / n, b -= r / n;
    products += a * b, ll += a * a, rr += b * b;
  });
  return rr == 0 || ll == 0 ? 0 : static_cast<double>(products / std::sqrt(ll * rr));
}

// The transform of `count` values that lie `step` apart, by the definition. The inverse is not scaled.
// For float and double; in a unit of its own, since it takes long without the optimizer.
template <typename T>
void transform_line(std::complex<T>* first, Index step, Index count, bool is_forward);

// Expects that the definition finds no failure (conformance.hpp). False where the kernel is not in the sample.
inline bool expect_right(const Variant& variant, const Params& params, Precision precision,
                         const Problem& problem, Effort effort, std::uint64_t seed = 1) {
  const std::uint64_t left_out = not_in_sample();
  EXPECT_EQ(failure(variant, params, precision, problem, seed, effort), "")
      << variant.id << " " << params.canonical() << " " << to_string(precision) << " "
      << problem.id();
  return not_in_sample() == left_out;
}

// Fills the inputs, computes, and expects that the harness finds the result right and the inputs as they were.
template <typename Compute>
void expect_verdict(Truth& truth, InputKind kind, const Operands& in, const std::string& where,
                    const Compute& compute) {
  truth.fill(kind, in.left.get(), in.right.get());
  const Check check = truth.check(kind, compute());
  EXPECT_TRUE(check.passed()) << where << " " << to_string(kind) << ": " << check.first_wrong
                              << "; L2 " << check.rel_l2_error << " of " << check.rel_l2_bound;
  EXPECT_EQ(truth.changed_inputs(kind, in.left.get(), in.right.get()), "") << where;
}
// The same of each kind of input, one after the other in one plan.
inline void expect_verdicts(const Variant& variant, const Problem& q, const Params& params,
                            const std::vector<InputKind>& kinds, std::uint64_t seed = 1) {
  static const std::unique_ptr<Device> device = open_cpu();
  const Precision precision = variant.precisions.front();
  const auto truth = device->truth(q, precision, variant.algorithm_class, seed);
  Planned planned(variant, q, params, precision);
  const Operands in(q);
  const std::string where = variant.id + " " + q.id() + " " + params.canonical();
  for (const InputKind kind : kinds) {
    expect_verdict(*truth, kind, in, where, [&] {
      return planned.compute(in.left.get(), q.fields.same ? in.left.get() : in.right.get());
    });
  }
}

inline void expect_same_peak(const std::string& where, const Peak& got, const Peak& want) {
  const auto expect = [&](bool right_one, const char* what, auto is, auto should) {
    EXPECT_TRUE(right_one) << where << ": " << what << " is " << is << ", expected " << should;
  };
  // Kernels fit in float32.
  const auto fits = [](float a, float b) { return std::abs(a - b) < 0x1p-20f; };
  expect(same(got.value, want.value), "value", got.value, want.value);
  expect(got.sy == want.sy, "sy", got.sy, want.sy);
  expect(got.sx == want.sx, "sx", got.sx, want.sx);
  expect(fits(got.sub_sy, want.sub_sy), "sub_sy", got.sub_sy, want.sub_sy);
  expect(fits(got.sub_sx, want.sub_sx), "sub_sx", got.sub_sx, want.sub_sx);
  expect(same(got.second, want.second), "second", got.second, want.second);
  expect(got.flags == want.flags, "flags", got.flags, want.flags);
  expect(got.spare == 0, "spare", got.spare, 0);
}

// One record a pair is that of the host's reduction of a surface.
inline void expect_peaks_of(const Problem& q, const void* surface, const Peak* got,
                            const std::string& where) {
  std::vector<Peak> want(static_cast<std::size_t>(q.pairs()));
  reduce_on_cpu(q, Precision::fp32, surface, nullptr, want.data());
  for (std::size_t p = 0; p < want.size(); ++p) {
    expect_same_peak(q.id() + " " + where + " pair " + std::to_string(p), got[p], want[p]);
  }
}
inline void expect_peaks_of_surface(const Variant& variant, const Problem& q, const Operands& in) {
  Planned peaks(variant, q), surfaces(variant, q.surface());
  peaks.compute(in);
  expect_peaks_of(q, surfaces.compute(in), peaks.peaks(), "");
}

}  // namespace xcorr::emulation
