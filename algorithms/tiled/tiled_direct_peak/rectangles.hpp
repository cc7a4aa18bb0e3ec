// The division of a pair's surface into rectangles of shifts, one per block, and the data that a
// block leaves in the workspace for each. Whether an output is a local maximum depends on its eight
// neighbours. Therefore neighbouring rectangles share two rows, or four columns (a multiple of 16
// bytes), which both compute. Each output belongs to one rectangle, which has all its neighbours.
#pragma once

#include "algorithms/blocks/peaks.hpp"
#include "algorithms/tiled/tile_plan.hpp"

namespace xcorr::tiled {

// A range of rows and columns.
struct Part {
  int first_row, end_row, first_col, end_col;
};

// Set on the host, passed to the kernels by value.
struct Rectangles {
  int count;                     // per pair
  int shared_rows, shared_cols;  // with each neighbour; 0 where results need no neighbours
  int listed;                    // records per rectangle, for peaks:k
};

// The sorted local maxima of a rectangle for the result peak: as many as the second peak can need.
// The largest may be the peak of the pair and has a record. A shorter list ends with kNowhere;
// `first` is NaN without a maximum.
//
// The second peak of a pair is the largest local maximum outside the 5 x 5 outputs around its peak.
// Local maxima are not neighbours, so that the 5 x 5 outputs hold at most 8 besides the peak: one
// of ten is outside.
inline constexpr int kMostListed = 10;
struct alignas(16) RectangleMaxima {
  Peak first;
  PeakPlace more[kMostListed - 1];  // positions in the whole surface
};

// Bits of `spare` in a record of a rectangle: along this axis a plateau may continue beyond the
// rectangle, so that its centre is not known yet.
enum OpenPlateau : std::uint32_t { kOpenDown = 1, kOpenAcross = 2 };

// Max k of peaks:k for surfaces of several rectangles, whose lists have k records each.
inline constexpr int kMostPeaks = 32;

// A tiling whose rectangles share the rows and columns that the result needs.
struct RectanglePlan : TilePlan {
  RectanglePlan(const PlanRequest& request, const TileShape& tile_, std::size_t shared_limit)
      : TilePlan(request, tile_, Panels::one, shared_limit) {
    const ResultKind kind = q.fields.result.kind;
    if (kind == ResultKind::peak || kind == ResultKind::peaks) {
      share(q.window.sy, block_rows, 2, t.sy_base, t.rows_count, t.rows_centre,
            rectangles.shared_rows);
      share(q.window.sx, block_cols, kChunk, t.sx_base, t.cols_count, t.cols_centre,
            rectangles.shared_cols);
      const Index shifts = static_cast<Index>(t.rows_count) * t.cols_count;
      blocks = t.pairs.count * shifts;
      t.shifts = Divider(shifts);
      t.cols = Divider(t.cols_count);
      t.groups_last = blocks <= kManyBlocks;
    }
    const Index count = static_cast<Index>(t.rows_count) * t.cols_count;
    rectangles.count = static_cast<int>(std::min(count, kIndexLimit));  // more need too many blocks
    rectangles.listed = q.fields.result.count;
    // Outputs, then the scratch of BlockTeam.
    const std::size_t outputs =
        (kTileThreads * tile.rows * tile.cols + (std::size_t{1} << pairs_log)) * sizeof(float);
    scratch_at = ceil_div<std::size_t>(outputs, 16) * 16;
    shared_bytes = std::max(shared_bytes, scratch_at + sizeof(TeamScratch));
  }

  static Support supports(const PlanRequest& request, const TileShape& tile) {
    const Problem& q = request.problem;
    if (const Support fit = results_fit(q); !fit) return fit;
    if (const Support fit = TilePlan::supports(request, tile, Panels::one); !fit) return fit;
    const RectanglePlan plan(request, tile, kSharedWithoutAsking);
    if (plan.narrow) {
      return no("warps_across=" + request.params.get("warps_across") +
                ": blocks have too few columns of shifts for what neighbours share");
    }
    if (plan.blocks > kIndexLimit) return no("more than 2^31 - 1 blocks");
    if (plan.rectangles.count == 1 || q.fields.result.kind == ResultKind::surface) return yes();
    if (q.out_size() > kIndexLimit) return no("more than 2^31 - 1 outputs of a pair");
    if (q.fields.result.kind == ResultKind::peaks && q.fields.result.count > kMostPeaks) {
      return no("peaks of more than " + std::to_string(kMostPeaks) +
                " where a surface spans several blocks: take a variant that writes surfaces");
    }
    return yes();
  }

  // Whether combine_kernel computes the results from the lists in the workspace.
  bool is_combined() const {
    const ResultKind kind = q.fields.result.kind;
    return rectangles.count > 1 && kind != ResultKind::surface && kind != ResultKind::above;
  }
  // Bytes of a rectangle's list.
  std::size_t list_bytes() const {
    if (!is_combined()) return 0;
    switch (q.fields.result.kind) {
      case ResultKind::peak:
        return sizeof(RectangleMaxima);
      case ResultKind::peaks:
        return sizeof(Peak) * static_cast<std::size_t>(rectangles.listed);
      default:
        return sizeof(double);
    }
  }

  Rectangles rectangles = {};
  std::size_t scratch_at = 0;
  bool narrow = false;

 private:
  void share(const Shifts& s, int block, int width, int base, int& count, int& centre,
             int& shared) {
    if (count == 1) return;
    const int step = block - width;
    narrow |= step <= 0;
    if (narrow) return;
    shared = width;
    count = 1 + static_cast<int>(ceil_div<Index>(s.last + 1 - base - block, step));
    centre = std::min(static_cast<int>(static_cast<Index>(centre) * block / step), count - 1);
  }
};

}  // namespace xcorr::tiled
