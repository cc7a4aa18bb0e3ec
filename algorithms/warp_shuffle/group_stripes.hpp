// Stripes of rows of groups of vertically adjacent overlaps. Group k has the s overlaps of output
// rows k s .. k s + s - 1. Its left rows are those that any of its overlaps has. They are cut into
// stripes of a multiple of s rows, so that rows are counted in units of s.
//
// In units the groups are like the single overlaps of a smaller problem: over the full window their
// heights rise by one unit a group, stay constant, and fall by one unit a group. RowDistribution
// distributes the rows of this smaller problem. A window that starts at a shift that is no multiple
// of s makes the first and last units of some groups incomplete, as does a height that is none. A
// group at the end that has fewer than s outputs may need fewer units: its last stripes are empty.
#pragma once

#include <algorithm>

#include "algorithms/blocks/row_distribution.hpp"

namespace xcorr::warp_shuffle {

// Left rows of a group, from `skipped` rows behind its first one on, at most `rows`. Both are 0 for
// an unused task.
struct GroupStripe {
  int group = 0;
  int skipped = 0;
  int rows = 0;
  bool whole = false;  // no other task has rows of this group
};

class GroupStripes {
 public:
  // `rows_per_task` is rounded up to a multiple of `overlaps`.
  GroupStripes(const Problem& q, int overlaps, RowDistribution::Kind kind, Index rows_per_task)
      : GroupStripes(of_groups(q, overlaps), overlaps, kind,
                     ceil_div<Index>(rows_per_task, overlaps), 0) {}

  Index tasks() const { return units_.tasks(); }
  bool splits() const { return units_.splits(); }
  Support fits() const { return units_.fits(); }

  // The stripe of a task, 0 .. tasks() - 1.
  __host__ __device__ __forceinline__ GroupStripe stripe(int task) const {
    const Stripe units = units_.stripe(task);
    const int up = units.row + first_sy_, begin = up < 0 ? -up : 0;
    return {units.row, (units.first - begin) * overlaps_, (units.end - units.first) * overlaps_,
            units.whole};
  }

 private:
  GroupStripes(const Problem& groups, int overlaps, RowDistribution::Kind kind, Index units, int)
      : overlaps_(overlaps),
        first_sy_(static_cast<int>(groups.window.sy.first)),
        units_(groups, kind, units) {}

  // The smaller problem. With `skipped` shifts before the window, the left rows of group k are
  //
  //   min(skipped + s (k + 1), left rows, right rows + s - 1, left rows + right rows - 1 - skipped - s k)
  //
  // Rounded up to units, and with j = k + ceil(skipped / s), they are min(j + 1, tallest, shifts - j).
  static Problem of_groups(const Problem& q, int overlaps) {
    const Index s = overlaps, skipped = q.window.sy.first + q.left.rows - 1;
    const Index before = ceil_div(skipped, s);
    const Index shifts = ceil_div(q.left.rows + q.right.rows - 1 - skipped, s) + before;
    const Index tallest = std::min(
        {ceil_div(q.left.rows, s), ceil_div(q.right.rows + s - 1, s), ceil_div<Index>(shifts, 2)});
    Problem groups = q;
    groups.left.rows = tallest;
    groups.right.rows = shifts - tallest + 1;
    groups.window.sy.first = before - (tallest - 1);
    groups.window.sy.last = groups.window.sy.first + ceil_div(q.out_rows(), s) - 1;
    return groups;
  }

  int overlaps_;
  int first_sy_;  // shift of the first group in the smaller problem
  RowDistribution units_;
};

}  // namespace xcorr::warp_shuffle
