// Peaks of the variants of fused_fft that write them: by the verdict of the harness on its kinds of
// input, and by the harness's own reduction of the variant's own surface where outputs are equal,
// infinite or NaN.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "harness/device.hpp"
#include "harness/inputs.hpp"
#include "harness/reduce.hpp"
#include "harness/registry.hpp"
#include "harness/results.hpp"
#include "tests/emulation/emulation.hpp"
#include "tests/emulation/global_memory.hpp"

namespace xcorr::emulation {
namespace {

std::vector<Variant> with_peaks() {
  std::vector<Variant> found;
  for (const Variant& v : variants()) {
    const bool writes =
        std::find(v.results.begin(), v.results.end(), ResultKind::peak) != v.results.end();
    if (v.source_hash == "emulated" && v.family == "fused_fft" && writes) found.push_back(v);
  }
  return found;
}

class Peaks : public testing::TestWithParam<Variant> {
 protected:
  bool takes(const Problem& q) const {
    const auto has = [](const auto& list, auto value) {
      return std::find(list.begin(), list.end(), value) != list.end();
    };
    const Variant& v = GetParam();
    return has(v.boundaries, q.fields.boundary) && has(v.scores, q.fields.score.kind) &&
           has(v.results, q.fields.result.kind) && v.supports({q, {}, Precision::fp32});
  }
};
// A program for one mutant has the kernels of one variant.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Peaks);
INSTANTIATE_TEST_SUITE_P(Variants, Peaks, testing::ValuesIn(with_peaks()), [](const auto& info) {
  return info.param.id.substr(info.param.id.find('.') + 1);
});

// Plans a problem and computes it any number of times.
class Planned {
 public:
  Planned(const Variant& variant, const Problem& problem)
      : request_{problem, {}, Precision::fp32},
        workspace_(variant.workspace_bytes(request_)),
        out_(static_cast<std::size_t>(problem.result_bytes(sizeof(float)))) {
    request_.workspace = workspace_.get();
    plan_ = variant.plan(request_);
  }
  const void* compute(const void* left, const void* right) {
    out_.poison();
    set_order(++order_);
    plan_->compute({left, right, out_.get()});
    return out_.get();
  }

 private:
  PlanRequest request_;
  GlobalMemory workspace_, out_;
  std::unique_ptr<Plan> plan_;
  std::uint64_t order_ = 0;
};

std::size_t floats(Index elements) { return static_cast<std::size_t>(elements) * sizeof(float); }

TEST_P(Peaks, are_right_by_the_verdict) {
  const std::unique_ptr<Device> device = open_cpu();
  constexpr InputKind kKinds[] = {InputKind::integer, InputKind::offset, InputKind::outlier,
                                  InputKind::uniform, InputKind::constant};
  std::size_t turn = 0;
  Index met = 0;
  for (const std::string shapes :
       {"n-to-mn/32x32/32x32/3:6/full/boundary=circular",
        "one-to-many/48x48/48x48/1:2/full/boundary=circular",
        "n-to-m/32x32/32x32/2:3/sy:-16..3,sx:-5..15/boundary=circular",
        "one-to-one/64x64/64x64/1:1/sy:-4..9,sx:-32..31/boundary=circular",
        "n-to-m/96x96/96x96/1:2/full/boundary=circular",
        "one-to-one/256x256/256x256/1:1/full/boundary=circular", "n-to-m/1x1/1x1/3:2/full",
        "n-to-mn/16x16/16x16/2:6/full", "one-to-many/9x5/17x28/1:3/sy:-2..7,sx:0..27",
        "n-to-m/5x12/12x5/2:2/full", "one-to-many/20x20/20x20/1:5/sy:-3..4,sx:-9..1",
        "n-to-mn/33x30/33x30/2:2/full", "one-to-one/96x96/96x96/1:1/full",
        "one-to-one/1x190/1x3/1:1/full", "n-to-mn/120x120/120x120/2:2/sy:-5..5,sx:-8..0"}) {
    for (const std::string fields :
         {"/result=peak", "/result=peak:gaussian", "/score=phase:0/result=peak",
          "/score=phase:0.5/result=peak:gaussian", "/score=phase:0.25", ""}) {
      if (fields.find("phase") != std::string::npos && shapes.find("circular") == std::string::npos)
        continue;
      // An id has its fields in order.
      const Problem q = parse_problem(shapes + fields);
      if (!takes(q)) continue;
      ++met;
      const auto truth = device->truth(q, Precision::fp32, GetParam().algorithm_class, 1);
      Planned planned(GetParam(), q);
      GlobalMemory left(floats(q.left_elements())), right(floats(q.right_elements()));
      const bool phase = q.fields.score.kind == ScoreKind::phase;
      const InputKind other = phase ? InputKind::integer : kKinds[turn++ % std::size(kKinds)];
      for (const InputKind kind : {InputKind::zero_mean, other}) {
        truth->fill(kind, left.get(), right.get());
        const Check check = truth->check(kind, planned.compute(left.get(), right.get()));
        EXPECT_TRUE(check.passed())
            << q.id() << " " << to_string(kind) << ": " << check.first_wrong << "; L2 "
            << check.rel_l2_error << " of " << check.rel_l2_bound;
        EXPECT_EQ(truth->changed_inputs(kind, left.get(), right.get()), "") << q.id();
      }
    }
  }
  EXPECT_GT(met, 0);
}

bool same(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// The records of a problem are those that the harness makes of the variant's surface.
void expect_reduced(const Variant& variant, const Problem& q,
                    const std::function<float(Side, Index)>& value) {
  GlobalMemory left(floats(q.left_elements())), right(floats(q.right_elements()));
  for (Index i = 0; i < q.left_elements(); ++i) left.get<float>()[i] = value(Side::left, i);
  for (Index i = 0; i < q.right_elements(); ++i) right.get<float>()[i] = value(Side::right, i);
  Planned surfaces(variant, q.surface()), peaks(variant, q);
  const void* const surface = surfaces.compute(left.get(), right.get());
  std::vector<Peak> want(static_cast<std::size_t>(q.pairs()));
  reduce_on_cpu(q, Precision::fp32, surface, nullptr, want.data());
  const auto* const got = static_cast<const Peak*>(peaks.compute(left.get(), right.get()));
  for (std::size_t p = 0; p < want.size(); ++p) {
    const auto expect = [&](bool right_one, const char* what, auto is, auto should) {
      EXPECT_TRUE(right_one) << q.id() << " pair " << p << ": " << what << " is " << is
                             << ", expected " << should;
    };
    expect(same(got[p].value, want[p].value), "value", got[p].value, want[p].value);
    expect(got[p].sy == want[p].sy, "sy", got[p].sy, want[p].sy);
    expect(got[p].sx == want[p].sx, "sx", got[p].sx, want[p].sx);
    expect(std::abs(got[p].sub_sy - want[p].sub_sy) <= 1e-6, "sub_sy", got[p].sub_sy,
           want[p].sub_sy);
    expect(std::abs(got[p].sub_sx - want[p].sub_sx) <= 1e-6, "sub_sx", got[p].sub_sx,
           want[p].sub_sx);
    expect(same(got[p].second, want[p].second), "second", got[p].second, want[p].second);
    expect(got[p].flags == want[p].flags, "flags", got[p].flags, want[p].flags);
    expect(got[p].spare == 0, "spare", got[p].spare, 0);
  }
}

const std::vector<std::string>& shapes_of_reduction() {
  static const std::vector<std::string> all = {
      "n-to-mn/32x32/32x32/2:4/full/boundary=circular",
      "n-to-m/32x32/32x32/2:2/sy:-7..15,sx:3..14/boundary=circular",
      "one-to-many/32x32/32x32/1:3/sy:-16..-12,sx:-16..15/boundary=circular",
      "one-to-many/32x32/32x32/1:2/sy:4..4,sx:-2..3/boundary=circular",
      "one-to-one/48x48/48x48/1:1/full/boundary=circular",
      "n-to-m/256x256/256x256/1:1/sy:-32..32,sx:-32..32",
      "n-to-m/3x3/3x3/3:3/full",
      "n-to-mn/16x16/16x16/2:2/full",
      "one-to-many/9x5/17x28/1:2/sy:-2..7,sx:0..27",
      "one-to-one/60x60/60x60/1:1/full",
  };
  return all;
}

std::int64_t noise(Side side, Index i) {
  return static_cast<std::int64_t>(
      mix(static_cast<std::uint64_t>(i) * 2 + (side == Side::left ? 1 : 0)) >> 33);
}

class ReducedPeaks : public Peaks {
 protected:
  void expect_all(const std::function<float(Side, Index, const Problem&)>& value) {
    Index met = 0;
    for (const std::string& shapes : shapes_of_reduction()) {
      for (const char* fit : {"", ":gaussian"}) {
        const Problem q = parse_problem(shapes + "/result=peak" + fit);
        if (!takes(q)) continue;
        ++met;
        expect_reduced(GetParam(), q, [&](Side side, Index i) { return value(side, i, q); });
      }
    }
    EXPECT_GT(met, 0);
  }
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ReducedPeaks);
INSTANTIATE_TEST_SUITE_P(Variants, ReducedPeaks, testing::ValuesIn(with_peaks()),
                         [](const auto& info) {
                           return info.param.id.substr(info.param.id.find('.') + 1);
                         });

TEST_P(ReducedPeaks, noise_with_and_without_an_offset) {
  expect_all([](Side side, Index i, const Problem&) {
    return static_cast<float>(noise(side, i) % 2001 - 1000) / 1000;
  });
  // A surface that rises towards its middle: many rows are larger than the second peak.
  expect_all([](Side side, Index i, const Problem&) {
    return 3 + static_cast<float>(noise(side, i) % 1000) / 1000;
  });
}

// Products with one element of 1 are the other matrix, to the bit in most transforms: levels of it
// are equal outputs, next to each other and far apart.
TEST_P(ReducedPeaks, equal_outputs) {
  for (const int levels : {1, 2, 3}) {
    expect_all([=](Side side, Index i, const Problem& q) {
      const Index size = side == Side::left ? q.left.size() : q.right.size();
      if (side == Side::left) return i % size == size / 3 ? 1.0f : 0.0f;
      return static_cast<float>(noise(side, i) % levels);
    });
  }
}

// Surfaces that are a single point, a row or a column, and ones that fall from a corner.
TEST_P(ReducedPeaks, ridges_and_corners) {
  for (const int kind : {0, 1, 2, 3}) {
    expect_all([=](Side side, Index i, const Problem& q) {
      const Shape shape = side == Side::left ? q.left : q.right;
      const Index at = i % shape.size(), y = at / shape.cols, x = at % shape.cols;
      if (side == Side::left) return at == 0 ? 1.0f : 0.0f;
      if (kind == 0) return at == shape.size() / 2 ? 5.0f : 0.0f;
      if (kind == 1) return y == shape.rows / 2 ? 1.0f : 0.0f;
      if (kind == 2) return x == shape.cols / 2 ? 1.0f : 0.0f;
      return -static_cast<float>(y * y + x * x);
    });
  }
}

TEST_P(ReducedPeaks, outputs_that_are_no_numbers) {
  for (const float odd :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 3e38f}) {
    expect_all([=](Side side, Index i, const Problem& q) {
      // In the first right matrix only.
      if (side == Side::right && i == q.right.size() / 2) return odd;
      return static_cast<float>(noise(side, i) % 2001 - 1000) / 1000;
    });
  }
  expect_all([](Side, Index, const Problem&) { return 0.0f; });
}

// Five waves have all of the power. Were the other bins, which hold rounding errors, divided by their
// own moduli, or by the largest one of some of them, they would be most of the surface.
TEST_P(Peaks, phase_leaves_empty_bins_alone) {
  for (const char* const size : {"32x32", "48x48", "64x64", "96x96"}) {
    const Problem q = parse_problem("n-to-m/" + std::string(size) + "/" + size +
                                    "/2:1/full/boundary=circular/score=phase:0");
    if (!takes(q)) continue;
    const Index n = q.left.rows;
    const auto wave = [n](Index at) {
      return std::cos(2 * 3.14159265358979323846 * static_cast<double>(at) /
                      static_cast<double>(n));
    };
    GlobalMemory left(floats(q.left_elements())), right(floats(q.right_elements()));
    for (Index i = 0; i < q.left_elements(); ++i) {
      left.get<float>()[i] = static_cast<float>(1 + wave(i / n) + wave(i));
    }
    for (Index i = 0; i < n * n; ++i) {
      right.get<float>()[i] = static_cast<float>(1 + wave(i / n - 3) + wave(i - 5));
    }
    Planned planned(GetParam(), q);
    const auto* const out = static_cast<const float*>(planned.compute(left.get(), right.get()));
    double worst = 0;
    for (Index i = 0; i < q.out_elements(); ++i) {
      const Index sy = q.window.sy.first + i / n % n, sx = q.window.sx.first + i % n;
      const double want = 1 + 2 * wave(sy - 3) + 2 * wave(sx - 5);
      worst = std::max(worst,
                       std::abs(static_cast<double>(out[i]) * static_cast<double>(n * n) - want));
    }
    EXPECT_LT(worst, 0.5) << q.id();
  }
}

TEST_P(Peaks, interpolation_is_refused) {
  const Problem q = parse_problem("one-to-one/8x8/8x8/1:1/full/result=peak:upsample=4");
  EXPECT_NE(GetParam().supports({q, {}, Precision::fp32}).reason, "");
}

}  // namespace
}  // namespace xcorr::emulation
