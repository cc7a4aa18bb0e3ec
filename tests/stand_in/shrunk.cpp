#include "tests/stand_in/shrunk.hpp"

#include <errno.h>

#include <algorithm>
#include <cstring>

namespace xcorr::stand_in {
namespace {

constexpr Index kMostLength = 9, kMostShifts = 10;

// The lengths of one axis.
struct Axis {
  Index left, right;
};

Axis shrunk(Axis of) {
  const Index more = std::clamp(of.right - of.left, -kMostShifts, kMostShifts);
  const Index shorter = std::min({of.left, of.right, kMostLength});
  return more < 0 ? Axis{shorter - more, shorter} : Axis{shorter, shorter + more};
}

Shifts full(Axis of, Boundary boundary) {
  if (boundary == Boundary::circular) return {-(of.left / 2), (of.left + 1) / 2 - 1};
  return {1 - of.left, of.right - 1};
}
Shifts valid(Axis of) {
  return {std::min<Index>(0, of.right - of.left), std::max<Index>(0, of.right - of.left)};
}

// The part of an explicit range that the shrunk axis has. One that lies where one matrix contains the other stays there.
Shifts shrunk(Shifts range, Axis from, Axis to, Boundary boundary) {
  const Shifts inside = valid(from);
  const bool is_valid =
      boundary == Boundary::zero && inside.has(range.first) && inside.has(range.last);
  const Shifts all = is_valid ? valid(to) : full(to, boundary);
  return {std::clamp(range.first, all.first, all.last),
          std::clamp(range.last, all.first, all.last)};
}

}  // namespace

bool shrinks() { return std::strcmp(program_invocation_short_name, "xcorr-bench") == 0; }

Problem shrunk(const Problem& q) {
  if (q.fields.views != Views::dense) return q;
  const Axis rows{q.left.rows, q.right.rows}, cols{q.left.cols, q.right.cols};
  const Axis few_rows = shrunk(rows), few_cols = shrunk(cols);
  Window window = q.window;
  if (window.kind == Window::Kind::explicit_ranges) {
    window.sy = shrunk(window.sy, rows, few_rows, q.fields.boundary);
    window.sx = shrunk(window.sx, cols, few_cols, q.fields.boundary);
  }
  const Index lefts = std::min<Index>(q.lefts, 2);
  const Index rights = q.form == Form::n_to_mn ? lefts * std::min<Index>(q.rights / q.lefts, 2)
                                               : std::min<Index>(q.rights, 3);
  return make_problem(q.form, {few_rows.left, few_cols.left}, {few_rows.right, few_cols.right},
                      lefts, rights, to_string(window), q.fields);
}

}  // namespace xcorr::stand_in
