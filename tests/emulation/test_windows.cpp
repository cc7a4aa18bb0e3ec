// Windows of a frame, of the emulated variants whose result is a peak and which take them: image velocimetry.
#include <cstring>

#include "harness/problem/views.hpp"
#include "tests/emulation/support.hpp"

namespace xcorr::emulation {
namespace {

// Variants by transforms that have peaks of windows.
std::vector<Variant> with_windows() {
  return emulated([](const Variant& v) {
    return !is_definition(v.algorithm_class) && has(v.results, ResultKind::peak) &&
           has(v.views, Views::windows);
  });
}

// A frame of one side, and its windows.
struct Frame {
  // The rows are longer by `pad` than the view asks.
  template <typename Value>
  Frame(const Problem& q, Side side, std::uint64_t seed, Index pad, const Value& value)
      : layout(view_layout(q, side, seed)), shape(side == Side::left ? q.left : q.right) {
    layout.pitch += pad;
    layout.elements += pad * (shape.rows - 1);
    for (Index i = 0; i < layout.elements; ++i) frame.push_back(static_cast<float>(value(i)));
  }
  View view() const { return {layout.offsets.data(), layout.pitch}; }
  // The first windows, one behind the other.
  std::vector<float> windows(Index count) const {
    std::vector<float> all;
    for (Index i = 0; i < count * shape.size(); ++i) {
      const Index row = layout.row(i / shape.size(), i % shape.size() / shape.cols, shape.rows);
      all.push_back(frame.at(static_cast<std::size_t>(row + i % shape.cols)));
    }
    return all;
  }
  std::vector<double> window_without_mean(Index number) const {
    const std::vector<float> all = windows(number + 1);
    std::vector<double> centred(all.end() - shape.size(), all.end());
    double sum = 0;
    for (const double value : centred) sum += value;
    for (double& value : centred) value -= sum / static_cast<double>(centred.size());
    return centred;
  }

  ViewLayout layout;
  Shape shape;
  std::vector<float> frame;
};

const void* compute(Planned& planned, const Frame& left, const Frame& right) {
  return planned.compute({.left = left.frame.data(),
                          .right = right.frame.data(),
                          .left_view = left.view(),
                          .right_view = right.view()});
}

// The result has the same bits as that of a dense copy of the windows.
TEST(Windows, OfAFrameAreReadWhereTheyAre) {
  for (const Variant& v : with_windows()) {
    int met = 0;
    for (const Problem& q : problems_of(
             {"n-to-mn/32x32/32x32/3:6/full/boundary=circular",
              "n-to-m/32x32/32x32/2:3/sy:-16..15,sx:-16..15/boundary=circular",
              "n-to-mn/16x16/16x16/2:4/full", "one-to-many/9x5/17x15/1:3/full",
              "n-to-mn/16x16/16x16/3:6/full/boundary=circular", "n-to-mn/32x32/32x32/3:3/full",
              "n-to-m/32x32/32x32/2:2/sy:-16..15,sx:-16..15",
              "n-to-mn/64x64/64x64/2:4/full/boundary=circular", "n-to-mn/64x64/64x64/2:2/full"},
             {"/result=peak:gaussian/views=windows",
              "/score=covariance/result=peak/views=windows"})) {
      if (!v.supports({q, {}})) continue;
      ++met;
      const auto value = [](Index i) { return (i * i * 7 + i * 13) % 101 + 1000; };
      // The rows of the right frame are longer.
      const Frame left(q, Side::left, 5, 0, value), right(q, Side::right, 5, 3, value);
      Problem dense = q;
      dense.fields.views = Views::dense;
      Planned copied(v, dense), viewed(v, q);
      const void* const want =
          copied.compute(left.windows(q.lefts).data(), right.windows(q.rights).data());
      const auto bytes = static_cast<std::size_t>(dense.result_bytes(4));
      EXPECT_EQ(std::memcmp(compute(viewed, left, right), want, bytes), 0) << v.id << " " << q.id();
    }
    EXPECT_GE(met, 4) << v.id;
  }
}

// Frames with an offset of 1e5 and noise of 1, windows at any offsets: the error is that of the noise.
TEST(Windows, CovarianceOfFramesWithAnOffset) {
  for (const Variant& v : with_windows()) {
    for (const Problem& q :
         problems_of({"n-to-mn/32x32/32x32/2:2/full/boundary=circular",
                      "n-to-mn/16x16/16x16/3:3/full/boundary=circular",
                      "n-to-mn/64x64/64x64/1:2/full/boundary=circular",
                      "n-to-mn/32x32/32x32/2:2/full", "n-to-m/32x32/32x32/1:2/sy:-31..31,sx:-9..20",
                      "n-to-m/32x32/32x32/2:1/sy:-20..31,sx:-31..31",
                      "n-to-mn/64x64/64x64/1:1/full", "n-to-m/13x16/16x11/1:2/full"},
                     {"/score=covariance/views=windows"})) {
      if (!v.supports({q, {}})) continue;
      const auto values = [](Index side) {
        return [side](Index i) { return 1e5f + static_cast<float>(noise(0, 2 * i + side)); };
      };
      const Frame left(q, Side::left, 9, 0, values(0)), right(q, Side::right, 9, 0, values(1));
      Planned planned(v, q);
      const auto* const got = static_cast<const float*>(compute(planned, left, right));
      double largest = 0;
      std::vector<double> l, r;
      each_output(q, [&](Index i, Pair pair, Index sy, Index sx) {
        if (i % q.out_size() == 0) {
          l = left.window_without_mean(pair.left);
          r = right.window_without_mean(pair.right);
        }
        const double want = product_sum(q, l.data(), r.data(), sy, sx);
        largest = worse(largest, std::abs(want - double{got[i]}));
      });
      // Noise of a variance of 1/3: both norms are the root of a third of the elements.
      const double norms = std::sqrt(static_cast<double>(q.left.size() * q.right.size())) / 3;
      EXPECT_LT(largest, 0x1p-24 * 3 * norms) << v.id << " " << q.id();
      RecordProperty(v.id + " " + q.id(), std::to_string(largest / norms * 0x1p24));
    }
  }
}

TEST(Windows, PeaksAtTheLimits) {
  for (const Variant& v : with_windows()) {
    for (const std::string shapes :
         {"one-to-one/32x32/32x32/1:1/full", "one-to-one/64x64/64x64/1:1/full/boundary=circular",
          "one-to-one/32x32/32x32/1:1/full/boundary=circular"}) {
      const Problem q = parse_problem(shapes + "/result=peak");
      if (!v.supports({q, {}})) continue;
      // All outputs are negative: the zero of a shift at which nothing overlaps is none of them.
      const Operands signs(q, [](Index) { return 1; }, [](Index) { return -1; });
      expect_peaks_of_surface(v, q, signs);
      // All covariances are 0: the first shift is the first one that exists.
      const Problem covariance = parse_problem(shapes + "/score=covariance/result=peak");
      if (v.supports({covariance, {}})) expect_peaks_of_surface(v, covariance, signs);
      // Sums that are not scaled yet are beyond float32 at one shift alone, left or right of 0.
      const Index at = q.left.size() / 2 + 9;
      for (const Index shift : {5, -5}) {
        const Operands far(
            q, [&](Index i) { return i == at ? 1e17 : 0; },
            [&](Index i) { return i == at + shift ? 3e17 : 0; });
        expect_peaks_of_surface(v, q, far);
      }
    }
  }
}

}  // namespace
}  // namespace xcorr::emulation
