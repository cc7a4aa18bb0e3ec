// What tests of emulated variants share: the variants to test, noise, sums by definition, and what the harness says of a result.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "harness/device/device.hpp"
#include "harness/problem/inputs.hpp"
#include "harness/reduce/reduce.hpp"
#include "harness/registry.hpp"
#include "tests/emulation/planned.hpp"
#include "tests/emulation/sample.hpp"

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

// Uniform in [-1, 1), exact in float32.
inline double noise(std::uint64_t seed, Index i) {
  return static_cast<double>(mix(seed ^ static_cast<std::uint64_t>(i)) >> 40) * 0x1p-23 - 1;
}

// The larger of two errors, or the one that is NaN: std::max() would drop it.
inline double worse(double a, double b) { return std::isnan(a) || a > b ? a : b; }

inline bool same(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// A sum of products by the definition, of one left and one right matrix.
template <typename T>
double product_sum(const Problem& q, const T* left, const T* right, Index sy, Index sx) {
  const bool wraps = q.fields.boundary == Boundary::circular;
  double sum = 0;
  for (Index y = 0; y < q.left.rows; ++y) {
    const Index ry = wraps ? (y + sy + q.right.rows) % q.right.rows : y + sy;
    if (ry < 0 || ry >= q.right.rows) continue;
    for (Index x = 0; x < q.left.cols; ++x) {
      const Index rx = wraps ? (x + sx + q.right.cols) % q.right.cols : x + sx;
      if (rx < 0 || rx >= q.right.cols) continue;
      sum += static_cast<double>(left[y * q.left.cols + x]) *
             static_cast<double>(right[ry * q.right.cols + rx]);
    }
  }
  return sum;
}

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

// Calls use(i, pair, sy, sx) for output i of a surface.
template <typename Use>
void each_output(const Problem& q, const Use& use) {
  for (Index i = 0; i < q.out_elements(); ++i) {
    const Index at = i % q.out_size();
    use(i, q.pair(i / q.out_size()), q.window.sy.first + at / q.out_cols(),
        q.window.sx.first + at % q.out_cols());
  }
}

// The transform of `count` values that lie `step` apart, by the definition. The inverse is not scaled.
template <typename Complex>
void transform_line(Complex* first, Index step, Index count, bool is_forward) {
  const auto n = static_cast<std::size_t>(count);
  std::vector<std::complex<double>> in(n), roots(n);
  for (std::size_t i = 0; i < n; ++i) {
    in[i] = std::complex<double>(first[static_cast<Index>(i) * step]);
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n);
    roots[i] = std::polar(1.0, is_forward ? -angle : angle);
  }
  for (std::size_t k = 0; k < n; ++k) {
    std::complex<double> sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += in[i] * roots[i * k % n];
    first[static_cast<Index>(k) * step] = Complex(sum);
  }
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
