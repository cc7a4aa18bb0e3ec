// Which problems the CPU variants of the family take, how a surface is divided into tiles, which
// correlations its scores need, and the rule for constants.
#pragma once

#include <algorithm>
#include <array>

#include "algorithms/template_matching/cpu_planes.hpp"
#include "harness/variant.hpp"

namespace xcorr::template_matching {

// How a surface is divided into tiles. If a shift is not inside `valid`, there is one tile.
struct TileGrid {
  bool inside;               // the template lies in the right matrix at every shift
  Index out_rows, out_cols;  // outputs per tile; the last tiles have fewer
  Index down, across;        // tiles
  Index rows, cols;          // elements of the right matrix that a tile reads
  Index tiles() const { return down * across; }
};

inline bool is_inside(const Problem& q) {
  return q.fields.boundary == Boundary::zero && q.window.sy.first >= 0 &&
         q.window.sy.last <= q.right.rows - q.left.rows && q.window.sx.first >= 0 &&
         q.window.sx.last <= q.right.cols - q.left.cols;
}

inline TileGrid make_grid(const Problem& q, Index out_rows, Index out_cols) {
  if (!is_inside(q)) {
    return {false, q.out_rows(), q.out_cols(), 1, 1, q.right.rows, q.right.cols};
  }
  out_rows = std::min(out_rows, q.out_rows());
  out_cols = std::min(out_cols, q.out_cols());
  return {true,
          out_rows,
          out_cols,
          (q.out_rows() + out_rows - 1) / out_rows,
          (q.out_cols() + out_cols - 1) / out_cols,
          out_rows + q.left.rows - 1,
          out_cols + q.left.cols - 1};
}

// A tile: its outputs, and the part of the right matrix that they need.
struct Tile {
  Part outputs, input;
};

inline Tile tile_of(const Problem& q, const TileGrid& grid, Index number) {
  const Index y = number / grid.across * grid.out_rows;
  const Index x = number % grid.across * grid.out_cols;
  const Index rows = std::min(grid.out_rows, q.out_rows() - y);
  const Index cols = std::min(grid.out_cols, q.out_cols() - x);
  if (!grid.inside) return {{y, x, rows, cols}, {0, 0, q.right.rows, q.right.cols}};
  return {{y, x, rows, cols},
          {q.window.sy.first + y, q.window.sx.first + x, rows + q.left.rows - 1,
           cols + q.left.cols - 1}};
}

// Whether the family's CPU variants take a problem, and if not, why. `everywhere`: they take
// covariance at any shift.
inline Support takes(const PlanRequest& request, bool everywhere) {
  const Problem& q = request.problem;
  Problem plain = q;
  plain.fields = {};
  if (is_normalised(q.fields.score.kind) && plain.is_time_series()) {
    return no("templates along signals: the family time_series takes them");
  }
  if (is_inside(q) || (everywhere && q.fields.score.kind == ScoreKind::covariance)) return yes();
  return no("window: the left matrix is a template inside the right one at every shift; use valid");
}

// The correlations of a problem; each is of a left plane with a right plane.
enum Sum { kProducts, kLeftSum, kLeftSquares, kRightSum, kRightSquares, kCount, kSums };
struct Term {
  bool wanted;
  Plane left, right;
};
inline std::array<Term, kSums> terms_of(Masks masks) {
  const bool left = masks_left(masks), right = masks_right(masks);
  return {{{true, kValues, kValues},
           {right, kValues, kValid},
           {right, kSquares, kValid},
           {left, kValid, kValues},
           {left, kValid, kSquares},
           {left && right, kValid, kValid}}};
}

// The constant rule of docs/design.md for squares of `n` elements: up to this limit the score is 0.
inline double constant_limit(double largest_pixel, double n) {
  const double deviation = 8 * 0x1p-24 * largest_pixel;
  return deviation * deviation * n;
}

}  // namespace xcorr::template_matching
