// Lists of problems, walks over outputs and over what meets at a shift, and sums by the definition.
#pragma once

#include <string>
#include <vector>

#include "harness/problem/problem.hpp"

namespace xcorr {

using Texts = std::vector<std::string>;

// Each id with each of the fields behind it. The problems of an id lie one behind the other.
inline std::vector<Problem> problems_of(const Texts& ids, const Texts& fields = {""}) {
  std::vector<Problem> problems;
  for (const std::string& id : ids) {
    for (const std::string& of_id : fields) problems.push_back(parse_problem(id + of_id));
  }
  return problems;
}

// Calls use(sy, sx) for every shift of the window, in the order of a surface.
template <typename Use>
void each_shift(const Problem& q, const Use& use) {
  for (Index sy = q.window.sy.first; sy <= q.window.sy.last; ++sy) {
    for (Index sx = q.window.sx.first; sx <= q.window.sx.last; ++sx) use(sy, sx);
  }
}

// Calls use(i, pair, sy, sx) for output i of a surface.
template <typename Use>
void each_output(const Problem& q, const Use& use) {
  Index i = 0;
  for (Index p = 0; p < q.pairs(); ++p) {
    each_shift(q, [&](Index sy, Index sx) { use(i++, q.pair(p), sy, sx); });
  }
}

// Calls use(l, r) with the indices of the elements of a left and a right matrix that meet at a shift.
template <typename Use>
void each_meeting(const Problem& q, Index sy, Index sx, const Use& use) {
  const bool wraps = q.fields.boundary == Boundary::circular;
  for (Index y = 0; y < q.left.rows; ++y) {
    const Index v = wraps ? wrapped(y, sy, q.right.rows) : y + sy;
    if (v < 0 || v >= q.right.rows) continue;
    for (Index x = 0; x < q.left.cols; ++x) {
      const Index u = wraps ? wrapped(x, sx, q.right.cols) : x + sx;
      if (u >= 0 && u < q.right.cols) use(y * q.left.cols + x, v * q.right.cols + u);
    }
  }
}

// A sum of products by the definition, of one left and one right matrix, row by row.
template <typename Sum = double, typename T>
Sum product_sum(const Problem& q, const T* left, const T* right, Index sy, Index sx) {
  Sum sum = 0;
  each_meeting(q, sy, sx, [&](Index l, Index r) {
    sum += static_cast<Sum>(left[l]) * static_cast<Sum>(right[r]);
  });
  return sum;
}

}  // namespace xcorr
