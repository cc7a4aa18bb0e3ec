// Windows of a frame, of the emulated variants whose result is a peak and which take them: image
// velocimetry.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "harness/problem/inputs.hpp"
#include "harness/problem/results.hpp"
#include "harness/problem/views.hpp"
#include "harness/reduce/reduce.hpp"
#include "harness/registry.hpp"
#include "tests/emulation/emulation.hpp"
#include "tests/emulation/planned.hpp"

namespace xcorr::emulation {
namespace {

template <typename List, typename Value>
bool has(const List& list, const Value& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// By transforms, which have peaks of windows.
bool takes_windows(const Variant& v) {
  return v.source_hash == "emulated" && !is_definition(v.algorithm_class) &&
         has(v.results, ResultKind::peak) && has(v.views, Views::windows);
}

// The same bits as of a dense copy of the windows.
void expect_windows_are_read_where_they_are(const Variant& v) {
  int met = 0;
  for (const std::string shapes :
       {"n-to-mn/32x32/32x32/3:6/full/boundary=circular",
        "n-to-m/32x32/32x32/2:3/sy:-16..15,sx:-16..15/boundary=circular",
        "n-to-mn/16x16/16x16/2:4/full", "one-to-many/9x5/17x15/1:3/full",
        "n-to-mn/16x16/16x16/3:6/full/boundary=circular", "n-to-mn/32x32/32x32/3:3/full",
        "n-to-m/32x32/32x32/2:2/sy:-16..15,sx:-16..15",
        "n-to-mn/64x64/64x64/2:4/full/boundary=circular", "n-to-mn/64x64/64x64/2:2/full"}) {
    for (const std::string fields : {"/result=peak:gaussian", "/score=covariance/result=peak"}) {
      const Problem dense = parse_problem(shapes + fields);
      const Problem windows = parse_problem(shapes + fields + "/views=windows");
      if (!v.supports({windows, {}})) continue;
      ++met;
      struct Operand {
        ViewLayout layout;
        std::vector<float> frame, copies;
      } of[2];
      for (const Side side : {Side::left, Side::right}) {
        Operand& own = of[side == Side::right];
        own.layout = view_layout(windows, side, 5);
        const Shape shape = side == Side::left ? windows.left : windows.right;
        if (side == Side::right) {  // another frame, whose rows are longer
          own.layout.pitch += 3;
          own.layout.elements += 3 * (shape.rows - 1);
        }
        for (Index i = 0; i < own.layout.elements; ++i) {
          own.frame.push_back(static_cast<float>((i * i * 7 + i * 13) % 101) + 1e3f);
        }
        const Index matrices = side == Side::left ? windows.lefts : windows.rights;
        for (Index m = 0; m < matrices; ++m) {
          for (Index i = 0; i < shape.size(); ++i) {
            const Index row = own.layout.row(m, i / shape.cols, shape.rows);
            own.copies.push_back(own.frame.at(static_cast<std::size_t>(row + i % shape.cols)));
          }
        }
      }
      Planned copied(v, dense), viewed(v, windows);
      const auto view = [](const Operand& own) {
        return View{own.layout.offsets.data(), own.layout.pitch};
      };
      const void* const want = copied.compute(of[0].copies.data(), of[1].copies.data());
      const void* const got =
          viewed.compute(of[0].frame.data(), of[1].frame.data(), view(of[0]), view(of[1]));
      EXPECT_EQ(std::memcmp(got, want, static_cast<std::size_t>(dense.result_bytes(4))), 0)
          << v.id << " " << windows.id();
    }
  }
  EXPECT_GE(met, 4) << v.id;
}

TEST(Windows, OfAFrameAreReadWhereTheyAre) {
  for (const Variant& v : variants()) {
    if (takes_windows(v)) expect_windows_are_read_where_they_are(v);
  }
}

// Frames with an offset of 1e5 and noise of 1, windows at any offsets: the error is that of the noise.
TEST(Windows, CovarianceOfFramesWithAnOffset) {
  for (const Variant& v : variants()) {
    if (!takes_windows(v)) continue;
    for (const std::string shapes :
         {"n-to-mn/32x32/32x32/2:2/full/boundary=circular",
          "n-to-mn/16x16/16x16/3:3/full/boundary=circular",
          "n-to-mn/64x64/64x64/1:2/full/boundary=circular", "n-to-mn/32x32/32x32/2:2/full",
          "n-to-m/32x32/32x32/1:2/sy:-31..31,sx:-9..20",
          "n-to-m/32x32/32x32/2:1/sy:-20..31,sx:-31..31", "n-to-mn/64x64/64x64/1:1/full",
          "n-to-m/13x16/16x11/1:2/full"}) {
      const Problem q = parse_problem(shapes + "/score=covariance/views=windows");
      if (!v.supports({q, {}})) continue;
      const ViewLayout layouts[] = {view_layout(q, Side::left, 9), view_layout(q, Side::right, 9)};
      std::vector<float> frames[2];
      for (const int side : {0, 1}) {
        for (Index i = 0; i < layouts[side].elements; ++i) {
          const auto bits = mix(static_cast<std::uint64_t>(2 * i + side)) >> 40;
          frames[side].push_back(1e5f +
                                 static_cast<float>(static_cast<double>(bits) * 0x1p-23 - 1));
        }
      }
      // A window without its mean.
      const auto centred = [&](int side, Index matrix, const Shape& shape) {
        std::vector<double> values;
        double sum = 0;
        for (Index i = 0; i < shape.size(); ++i) {
          const Index row = layouts[side].row(matrix, i / shape.cols, shape.rows);
          values.push_back(frames[side].at(static_cast<std::size_t>(row + i % shape.cols)));
          sum += values.back();
        }
        for (double& value : values) value -= sum / static_cast<double>(shape.size());
        return values;
      };
      Planned planned(v, q);
      const auto* const got = static_cast<const float*>(planned.compute(
          frames[0].data(), frames[1].data(), View{layouts[0].offsets.data(), layouts[0].pitch},
          View{layouts[1].offsets.data(), layouts[1].pitch}));
      double largest = 0;
      for (Index p = 0; p < q.pairs(); ++p) {
        const Pair pair = q.pair(p);
        const auto l = centred(0, pair.left, q.left), r = centred(1, pair.right, q.right);
        for (Index i = 0; i < q.out_size(); ++i) {
          const Index sy = q.window.sy.first + i / q.out_cols(),
                      sx = q.window.sx.first + i % q.out_cols();
          double sum = 0;
          for (Index y = 0; y < q.left.rows; ++y) {
            for (Index x = 0; x < q.left.cols; ++x) {
              Index ry = y + sy, rx = x + sx;
              if (q.fields.boundary == Boundary::circular) {
                ry = (ry + q.right.rows) % q.right.rows, rx = (rx + q.right.cols) % q.right.cols;
              }
              if (ry < 0 || rx < 0 || ry >= q.right.rows || rx >= q.right.cols) continue;
              sum += l[static_cast<std::size_t>(y * q.left.cols + x)] *
                     r[static_cast<std::size_t>(ry * q.right.cols + rx)];
            }
          }
          largest = worse(largest, std::abs(sum - static_cast<double>(got[p * q.out_size() + i])));
        }
      }
      // Noise of a variance of 1/3: both norms are the root of a third of the elements.
      const double norms = std::sqrt(static_cast<double>(q.left.size() * q.right.size())) / 3;
      EXPECT_LT(largest, 0x1p-24 * 3 * norms) << v.id << " " << q.id();
      RecordProperty(v.id + " " + q.id(), std::to_string(largest / norms * 0x1p24));
    }
  }
}

// The record of the only pair is what the harness makes of the variant's surface.
void expect_reduced(const Variant& v, const Problem& q, const std::vector<float>& left,
                    const std::vector<float>& right) {
  Planned surfaces(v, q.surface()), peaks(v, q);
  Peak want{}, got{};
  reduce_on_cpu(q, Precision::fp32, surfaces.compute(left.data(), right.data()), nullptr, &want);
  std::memcpy(&got, peaks.compute(left.data(), right.data()), sizeof(Peak));
  const auto same = [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  EXPECT_TRUE(same(got.value, want.value)) << q.id() << ": " << got.value << " " << want.value;
  EXPECT_TRUE(same(got.second, want.second)) << q.id() << ": " << got.second << " " << want.second;
  EXPECT_EQ(got.sy, want.sy) << q.id();
  EXPECT_EQ(got.sx, want.sx) << q.id();
  EXPECT_EQ(got.flags, want.flags) << q.id();
}

TEST(Windows, PeaksAtTheLimits) {
  for (const Variant& v : variants()) {
    if (!takes_windows(v)) continue;
    for (const std::string shapes :
         {"one-to-one/32x32/32x32/1:1/full", "one-to-one/64x64/64x64/1:1/full/boundary=circular",
          "one-to-one/32x32/32x32/1:1/full/boundary=circular"}) {
      const Problem q = parse_problem(shapes + "/result=peak");
      if (!v.supports({q, {}})) continue;
      const auto size = static_cast<std::size_t>(q.left.size());
      // All outputs are negative: the zero of a shift at which nothing overlaps is none of them.
      const std::vector<float> ones(size, 1.0f), minus(size, -1.0f);
      expect_reduced(v, q, ones, minus);
      // All covariances are 0: the first shift is the first one that exists.
      const Problem covariance = parse_problem(shapes + "/score=covariance/result=peak");
      if (v.supports({covariance, {}})) expect_reduced(v, covariance, ones, minus);
      // Sums that are not scaled yet are beyond float32 at one shift alone, left or right of 0.
      for (const int shift : {5, -5}) {
        std::vector<float> left(size, 0.0f), right(size, 0.0f);
        left[size / 2 + 9] = 1e17f;
        right[static_cast<std::size_t>(static_cast<int>(size / 2 + 9) + shift)] = 3e17f;
        expect_reduced(v, q, left, right);
      }
    }
  }
}

}  // namespace
}  // namespace xcorr::emulation
