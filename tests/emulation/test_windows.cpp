// Windows of a frame, of the emulated variants whose result is a peak and which take them: image
// velocimetry.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "harness/registry.hpp"
#include "harness/views.hpp"
#include "tests/emulation/emulation.hpp"
#include "tests/emulation/planned.hpp"

namespace xcorr::emulation {
namespace {

template <typename List, typename Value>
bool has(const List& list, const Value& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// The same bits as of a dense copy of the windows.
void expect_windows_are_read_where_they_are(const Variant& v) {
  for (const std::string shapes :
       {"n-to-mn/32x32/32x32/3:6/full/boundary=circular",
        "n-to-m/32x32/32x32/2:3/sy:-16..15,sx:-16..15/boundary=circular",
        "n-to-mn/16x16/16x16/2:4/full", "one-to-many/9x5/17x15/1:3/full"}) {
    for (const std::string fields : {"/result=peak:gaussian", "/score=covariance/result=peak"}) {
      const Problem dense = parse_problem(shapes + fields);
      const Problem windows = parse_problem(shapes + fields + "/views=windows");
      ASSERT_TRUE(v.supports({windows, {}})) << v.id << " " << windows.id();
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
}

TEST(Windows, OfAFrameAreReadWhereTheyAre) {
  for (const Variant& v : variants()) {
    if (v.source_hash == "emulated" && v.algorithm_class == AlgorithmClass::fft_of_both &&
        has(v.results, ResultKind::peak) && has(v.views, Views::windows)) {
      expect_windows_are_read_where_they_are(v);
    }
  }
}

}  // namespace
}  // namespace xcorr::emulation
