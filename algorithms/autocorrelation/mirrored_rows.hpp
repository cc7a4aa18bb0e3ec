// Rows of a window that are mirror images of other rows, for all variants that mirror.
#pragma once

#include <algorithm>

#include "harness/variant.hpp"

namespace xcorr::autocorrelation {

// One array with itself has out[-sy][-sx] = out[sy][sx]. If the window has as many columns left of
// 0 as right of it, a row with a shift sy < 0 is the row of -sy in reverse order. Such a row is
// mirrored if the window has both rows; all other rows are computed.
struct MirroredRows {
  explicit MirroredRows(const Problem& q)
      : first_sy(q.window.sy.first), rows(static_cast<int>(q.out_rows())) {
    if (q.window.sx.first != -q.window.sx.last || first_sy >= 0 || q.window.sy.last <= 0) return;
    const Index lowest = std::max(first_sy, -q.window.sy.last);
    before = static_cast<int>(lowest - first_sy);
    mirrored = static_cast<int>(-lowest);
  }

  // The number of computed rows, and the output row of computed row i.
  constexpr int computed() const { return rows - mirrored; }
  constexpr int row(int i) const { return i < before ? i : i + mirrored; }
  constexpr Index sy(int i) const { return first_sy + row(i); }
  // The row that holds the reverse of computed row i, or -1.
  constexpr int mirror(int i) const {
    const Index of = -sy(i);
    return of < 0 && of >= -mirrored ? static_cast<int>(of - first_sy) : -1;
  }

  Index first_sy;
  int rows;
  int before = 0;    // rows that are computed before the mirrored rows
  int mirrored = 0;  // mirrored rows, which end at sy = -1
};

}  // namespace xcorr::autocorrelation
