#include "harness/problem/views.hpp"

#include <algorithm>

namespace xcorr {

ViewLayout view_layout(const Problem& problem, Side side, std::uint64_t seed) {
  // One array has one layout.
  if (problem.fields.same) side = Side::left;
  const bool left = side == Side::left;
  const Shape shape = left ? problem.left : problem.right;
  const Index matrices = left ? problem.lefts : problem.rights;
  const std::uint64_t key = mix(seed ^ (left ? 0x76696577u : 0x77656976u));
  const auto random = [&](Index i, Index below) {
    return static_cast<Index>(mix(key ^ static_cast<std::uint64_t>(i)) %
                              static_cast<std::uint64_t>(below));
  };
  ViewLayout layout;
  switch (problem.fields.views) {
    case Views::dense:
      layout.elements = matrices * shape.size();
      break;
    case Views::windows: {
      constexpr Index kMargin = 9;  // of the frame beside a window
      layout.pitch = shape.cols + kMargin;
      for (Index i = 0; i < matrices; ++i) {
        const Index y = random(2 * i, kMargin + 1 + matrices / 2),
                    x = random(2 * i + 1, kMargin + 1);
        layout.offsets.push_back(y * layout.pitch + x);
      }
      const Index last = *std::max_element(layout.offsets.begin(), layout.offsets.end());
      layout.elements = last + (shape.rows - 1) * layout.pitch + shape.cols;
      break;
    }
    case Views::channels: {
      const Index rows = matrices * shape.rows;
      const Index span = 17 + rows * std::max<Index>(1, shape.cols / 4);
      for (Index i = 0; i < rows; ++i) layout.offsets.push_back(random(i, span));
      layout.elements =
          *std::max_element(layout.offsets.begin(), layout.offsets.end()) + shape.cols;
      break;
    }
  }
  return layout;
}

}  // namespace xcorr
