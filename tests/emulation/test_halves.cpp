// Surfaces and peaks of fused_fft_halves: surfaces by the verdict of the harness, records against the
// host's reduction of the surface that the same kernels make of the same inputs, bit by bit
// but for the fits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "harness/device/device.hpp"
#include "harness/problem/inputs.hpp"
#include "harness/problem/results.hpp"
#include "harness/reduce/reduce.hpp"
#include "harness/registry.hpp"
#include "tests/emulation/emulation.hpp"
#include "tests/emulation/planned.hpp"

namespace xcorr::emulation {
namespace {

const char* const kId = "emulated.fused_fft_halves";

// A program of one other unit has no such variant (tests/mutants).
class Halves : public testing::Test {
 protected:
  void SetUp() override {
    const auto& all = variants();
    if (std::none_of(all.begin(), all.end(), [](const Variant& v) { return v.id == kId; })) {
      GTEST_SKIP() << "fused_fft_halves is not in this program";
    }
  }
};

Planned plan_of(const Problem& q) { return Planned(find_variant(kId), q); }

struct Operands {
  explicit Operands(const Problem& q)
      : left(floats(q.left_elements())), right(floats(q.right_elements())) {}
  void fill(const Problem& q, const std::function<float(Index)>& of_left,
            const std::function<float(Index)>& of_right) {
    for (Index i = 0; i < q.left_elements(); ++i) left.get<float>()[i] = of_left(i);
    for (Index i = 0; i < q.right_elements(); ++i) right.get<float>()[i] = of_right(i);
  }
  GlobalMemory left, right;
};

// The peaks of a problem twice: as compute writes them, and reduced by the host.
void expect_peaks_of_surface(const Problem& q, Operands& in) {
  const Problem surface = q.surface();
  Planned peaks = plan_of(q), surfaces = plan_of(surface);
  const auto* const got = static_cast<const Peak*>(peaks.compute(in.left.get(), in.right.get()));
  const void* const outputs = surfaces.compute(in.left.get(), in.right.get());
  std::vector<Peak> want(static_cast<std::size_t>(q.pairs()));
  reduce_on_cpu(q, Precision::fp32, outputs, nullptr, want.data());
  for (std::size_t p = 0; p < want.size(); ++p) {
    const Peak& a = got[p];
    const Peak& b = want[p];
    // Kernels fit in float32.
    const bool fits =
        std::abs(a.sub_sy - b.sub_sy) < 0x1p-20f && std::abs(a.sub_sx - b.sub_sx) < 0x1p-20f;
    EXPECT_TRUE(a.sy == b.sy && a.sx == b.sx && fits)
        << q.id() << " pair " << p << ": (" << a.sy << ", " << a.sx << ") + (" << a.sub_sy << ", "
        << a.sub_sx << "), not (" << b.sy << ", " << b.sx << ") + (" << b.sub_sy << ", " << b.sub_sx
        << ")";
    const auto same = [](float x, float y) { return x == y || (x != x && y != y); };
    EXPECT_TRUE(same(a.value, b.value)) << q.id() << ": " << a.value << " not " << b.value;
    EXPECT_TRUE(same(a.second, b.second))
        << q.id() << " pair " << p << ": second " << a.second << ", not " << b.second;
    EXPECT_EQ(a.flags, b.flags) << q.id() << " pair " << p;
    EXPECT_EQ(a.spare, 0u);
  }
}

float noise(Index i) {
  return static_cast<float>(static_cast<double>(mix(static_cast<std::uint64_t>(i)) >> 40) *
                            0x1p-23) -
         1.0f;
}

// Lengths 64 (small and large windows, all forms), then one of each longer length and window.
const std::vector<std::string>& problems() {
  static const std::vector<std::string> all = {
      "one-to-one/20x24/20x24/1:1/full",
      "one-to-many/24x24/24x24/1:5/sy:-7..7,sx:-9..9",
      "n-to-mn/33x31/17x20/2:6/full",
      "n-to-mn/31x20/31x25/2:4/sy:-3..12,sx:2..19",
      "n-to-m/9x33/21x8/3:2/full",
      "n-to-m/40x3/40x60/2:3/sy:-1..1,sx:-2..-2",
      "one-to-many/64x64/64x64/1:4/full/boundary=circular",
      "n-to-m/64x64/64x64/2:2/sy:-32..-20,sx:-32..31/boundary=circular",
      "n-to-mn/64x64/64x64/2:4/sy:-6..9,sx:3..12/boundary=circular",
      "one-to-one/200x181/200x181/1:1/sy:-20..20,sx:-21..30",
      "one-to-one/128x96/129x161/1:1/full",
      "n-to-m/1x160/3x97/1:2/full",
      "one-to-one/256x256/256x256/1:1/full/boundary=circular",
      "one-to-one/256x256/256x256/1:1/sy:-32..32,sx:-32..32",
      "one-to-one/140x130/149x150/1:1/full",
      "one-to-one/288x200/250x270/1:1/sy:-30..30,sx:-32..32",
      "one-to-one/150x160/170x161/1:1/full",
  };
  return all;
}

TEST_F(Halves, surfaces_are_right_by_the_verdict) {
  const std::unique_ptr<Device> device = open_cpu();
  for (const std::string& text : problems()) {
    const Problem q = parse_problem(text);
    const auto truth = device->truth(q, Precision::fp32, AlgorithmClass::fft, 1);
    Planned planned = plan_of(q);
    Operands in(q);
    for (const InputKind kind : {InputKind::integer, InputKind::flat_spectrum}) {
      truth->fill(kind, in.left.get(), in.right.get());
      const Check check = truth->check(kind, planned.compute(in.left.get(), in.right.get()));
      EXPECT_TRUE(check.passed()) << q.id() << " " << to_string(kind) << ": " << check.first_wrong;
    }
  }
}

TEST_F(Halves, peaks_are_right_by_the_verdict) {
  const std::unique_ptr<Device> device = open_cpu();
  std::size_t turn = 0;
  for (const std::string& text : problems()) {
    const Problem q = parse_problem(text + (++turn % 2 ? "/result=peak" : "/result=peak:gaussian"));
    const auto truth = device->truth(q, Precision::fp32, AlgorithmClass::fft, 1);
    Planned planned = plan_of(q);
    Operands in(q);
    truth->fill(InputKind::zero_mean, in.left.get(), in.right.get());
    const Check check =
        truth->check(InputKind::zero_mean, planned.compute(in.left.get(), in.right.get()));
    EXPECT_TRUE(check.passed()) << q.id() << ": " << check.first_wrong;
  }
}

TEST_F(Halves, peaks_are_those_of_the_surface) {
  for (const std::string& text : problems()) {
    const Problem q = parse_problem(text + "/result=peak");
    Operands in(q);
    in.fill(q, noise, [](Index i) { return noise(i + 77777); });
    expect_peaks_of_surface(q, in);
  }
}

// Small windows, large ones, and circular ones of length 64.
const char* const kFew[] = {
    "one-to-many/24x24/24x24/1:2/sy:-7..7,sx:-9..9", "one-to-many/20x24/20x24/1:2/full",
    "one-to-many/64x64/64x64/1:2/full/boundary=circular",
    "one-to-many/9x9/9x9/1:2/sy:2..2,sx:-3..3", "one-to-many/9x9/9x9/1:2/sy:0..0,sx:0..0"};

TEST_F(Halves, ties_and_plateaus) {
  for (const char* text : kFew) {
    const Problem q = parse_problem(std::string(text) + "/result=peak:gaussian");
    Operands in(q);
    // All outputs 0: the first one is the peak, on a plateau and at the border.
    in.fill(q, [](Index) { return 0.0f; }, [](Index) { return 0.0f; });
    expect_peaks_of_surface(q, in);
    // Ridges along rows.
    const Index cols = q.right.cols;
    in.fill(
        q, [](Index i) { return i == 0 ? 1.0f : 0.0f; },
        [&](Index i) { return i / cols % 4 == 1 ? 2.0f : 0.0f; });
    expect_peaks_of_surface(q, in);
    // The largest outputs at the corners.
    in.fill(
        q, [](Index i) { return i == 0 ? 1.0f : 0.0f; },
        [&](Index i) { return i % q.right.size() == 0 ? 3.0f : static_cast<float>(i % 3); });
    expect_peaks_of_surface(q, in);
  }
}

TEST_F(Halves, what_is_no_number) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const char* text : kFew) {
    const Problem q = parse_problem(std::string(text) + "/result=peak");
    Operands in(q);
    // The second pair has NaN everywhere, the first one is not touched by it.
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInfinity}) {
      in.fill(q, noise, [&](Index i) { return i == q.right.size() + 5 ? bad : noise(i); });
      expect_peaks_of_surface(q, in);
    }
  }
}

// Nothing of a call reaches the next: one plan, other inputs, in other orders of threads.
TEST_F(Halves, calls_are_apart) {
  for (const char* text : kFew) {
    const Problem q = parse_problem(std::string(text) + "/result=peak");
    Planned planned = plan_of(q);
    Operands in(q), other(q);
    in.fill(q, noise, [](Index i) { return noise(i + 5); });
    other.fill(q, [](Index i) { return -noise(i); }, [](Index) { return 1e20f; });
    const std::size_t bytes = static_cast<std::size_t>(q.result_bytes(sizeof(float)));
    const auto* const out =
        static_cast<const unsigned char*>(planned.compute(in.left.get(), in.right.get()));
    const std::vector<unsigned char> first(out, out + bytes);
    planned.compute(other.left.get(), other.right.get());
    planned.compute(in.left.get(), in.right.get());
    EXPECT_EQ(std::memcmp(first.data(), out, bytes), 0) << q.id();
  }
}

TEST_F(Halves, says_what_it_does_not_take) {
  const auto reason = [](const char* text) {
    return find_variant(kId).supports({parse_problem(text), {}, Precision::fp32}).reason;
  };
  EXPECT_NE(reason("one-to-one/300x300/300x300/1:1/full"), "");
  EXPECT_NE(reason("one-to-one/64x256/64x256/1:1/full/boundary=circular"), "");
  EXPECT_NE(reason("one-to-one/100x100/100x100/1:1/full/boundary=circular"), "");
  EXPECT_NE(reason("one-to-one/20x20/20x20/1:1/full/result=peak:upsample=4"), "");
  EXPECT_EQ(reason("one-to-one/256x256/256x256/1:1/sy:-32..32,sx:-32..32/result=peak"), "");
}

}  // namespace
}  // namespace xcorr::emulation
