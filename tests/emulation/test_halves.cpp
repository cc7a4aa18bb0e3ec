// Surfaces and peaks of fused_fft_halves: surfaces by the verdict of the harness, records against the host's reduction of
// the surface that the same kernels make of the same inputs.
#include <cstring>

#include "tests/emulation/support.hpp"

namespace xcorr::emulation {
namespace {

class Halves : public OfVariant {
 protected:
  Halves() : OfVariant("fused_fft_halves") {}
};

double drawn(Index i) { return noise(0, i); }

// Lengths 64 (small and large windows, all forms), then one of each longer length and window.
const Texts kProblems = {
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

TEST_F(Halves, surfaces_are_right_by_the_verdict) {
  for (const std::string& text : kProblems) {
    expect_verdicts(variant(), parse_problem(text), {},
                    {InputKind::integer, InputKind::flat_spectrum});
  }
}

TEST_F(Halves, peaks_are_right_by_the_verdict) {
  std::size_t turn = 0;
  for (const std::string& text : kProblems) {
    const char* const result = ++turn % 2 ? "/result=peak" : "/result=peak:gaussian";
    expect_verdicts(variant(), parse_problem(text + result), {}, {InputKind::zero_mean});
  }
}

TEST_F(Halves, peaks_are_those_of_the_surface) {
  for (const Problem& q : problems_of(kProblems, {"/result=peak"})) {
    expect_peaks_of_surface(variant(), q,
                            Operands(q, drawn, [](Index i) { return drawn(i + 77777); }));
  }
}

// Small windows, large ones, and circular ones of length 64.
const Texts kFew = {
    "one-to-many/24x24/24x24/1:2/sy:-7..7,sx:-9..9", "one-to-many/20x24/20x24/1:2/full",
    "one-to-many/64x64/64x64/1:2/full/boundary=circular",
    "one-to-many/9x9/9x9/1:2/sy:2..2,sx:-3..3", "one-to-many/9x9/9x9/1:2/sy:0..0,sx:0..0"};

TEST_F(Halves, ties_and_plateaus) {
  const auto zero = [](Index) { return 0; };
  const auto first = [](Index i) { return i == 0 ? 1 : 0; };
  for (const Problem& q : problems_of(kFew, {"/result=peak:gaussian"})) {
    const auto ridges = [&](Index i) { return i / q.right.cols % 4 == 1 ? 2 : 0; };
    const auto corners = [&](Index i) { return i % q.right.size() == 0 ? 3 : i % 3; };
    // All outputs are 0: the first one is the peak, on a plateau and at the border.
    expect_peaks_of_surface(variant(), q, Operands(q, zero, zero));
    // Ridges along rows, then the largest outputs at the corners.
    expect_peaks_of_surface(variant(), q, Operands(q, first, ridges));
    expect_peaks_of_surface(variant(), q, Operands(q, first, corners));
  }
}

TEST_F(Halves, what_is_no_number) {
  for (const Problem& q : problems_of(kFew, {"/result=peak"})) {
    // The second pair has NaN everywhere; it does not touch the first one.
    for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
      const auto right = [&](Index i) { return i == q.right.size() + 5 ? bad : drawn(i); };
      expect_peaks_of_surface(variant(), q, Operands(q, drawn, right));
    }
  }
}

// A call leaves nothing for the next one: one plan computes other inputs in other orders of threads.
TEST_F(Halves, calls_are_apart) {
  for (const Problem& q : problems_of(kFew, {"/result=peak"})) {
    Planned planned(variant(), q);
    const Operands in(q, drawn, [](Index i) { return drawn(i + 5); }),
        other(q, [](Index i) { return -drawn(i); }, [](Index) { return 1e20; });
    const std::size_t bytes = static_cast<std::size_t>(q.result_bytes(sizeof(float)));
    const auto* const out = static_cast<const unsigned char*>(planned.compute(in));
    const std::vector<unsigned char> first(out, out + bytes);
    planned.compute(other);
    planned.compute(in);
    EXPECT_EQ(std::memcmp(first.data(), out, bytes), 0) << q.id();
  }
}

TEST_F(Halves, says_what_it_does_not_take) {
  const auto reason = [&](const char* text) {
    return variant().supports({parse_problem(text), {}, Precision::fp32}).reason;
  };
  EXPECT_NE(reason("one-to-one/300x300/300x300/1:1/full"), "");
  EXPECT_NE(reason("one-to-one/64x256/64x256/1:1/full/boundary=circular"), "");
  EXPECT_NE(reason("one-to-one/100x100/100x100/1:1/full/boundary=circular"), "");
  EXPECT_NE(reason("one-to-one/20x20/20x20/1:1/full/result=peak:upsample=4"), "");
  EXPECT_EQ(reason("one-to-one/256x256/256x256/1:1/sy:-32..32,sx:-32..32/result=peak"), "");
}

}  // namespace
}  // namespace xcorr::emulation
