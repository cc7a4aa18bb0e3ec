// What the variants share that mirror: which rows of a window other rows hold turned around.
#pragma once

#include <algorithm>

#include "harness/variant.hpp"

namespace xcorr::autocorrelation {

// One array against itself has out[-sy][-sx] = out[sy][sx]. Where the window has as many columns
// left of 0 as right of it, a row of a shift sy < 0 so holds the row of -sy in reverse order. Such a
// row is mirrored where the window has both, and the other rows are computed.
struct MirroredRows {
  explicit MirroredRows(const Problem& q)
      : first_sy(q.window.sy.first), rows(static_cast<int>(q.out_rows())) {
    if (q.window.sx.first != -q.window.sx.last || first_sy >= 0 || q.window.sy.last <= 0) return;
    const Index lowest = std::max(first_sy, -q.window.sy.last);
    before = static_cast<int>(lowest - first_sy);
    mirrored = static_cast<int>(-lowest);
  }

  // Rows that are computed, and which row of the output number i of them is.
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
  int before = 0;    // rows that are computed before the mirrored ones
  int mirrored = 0;  // rows, which end at sy = -1
};

}  // namespace xcorr::autocorrelation
