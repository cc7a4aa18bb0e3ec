// The reductions of the passes: the sums of all tiles are added up, for a problem whose sizes are
// constants. The text is compiled twice, as that of ../run_time/tile_sums.hpp, behind which it
// stands.
//
// Constants besides those of tile_sums.hpp: kAddThreads (of a block, one thread per shift), and
// kMostUnrolled, the max tiles whose loop is unrolled as a whole. More tiles are added in groups of
// so many, and the loop over groups is not unrolled: otherwise code and time of compilation would
// grow with the template without a limit.
#pragma once

#include "algorithms/template_matching/run_time/tile_sums.hpp"

// clang-format off
XCORR_RUN_TIME_TEXT(kAddTilesText,

namespace xcorr::template_matching {

struct RunTimeTotals {
  const void* partial;  // what tile_sums has stored
  float* totals;  // [frames or pairs][shifts]: means of windows, sums of squares, or numerators
  int count;  // frames or pairs
  int area;   // of the launch, with kByArea
};

// The sums of kMany tiles, in the order of the tiles, added to `sum`.
template <int kMany, typename Sum>
XCORR_DEVICE Sum with_tiles(Sum sum, const Sum* of_item, long long shifts) {
  XCORR_TILE_LOOP
  for (int tile = 0; tile < kMany; ++tile) sum += of_item[tile * shifts];
  return sum;
}

// grid: parts of the shifts (with kByArea of one area), frames or pairs (in a stride).
template <typename C, int kPass>
XCORR_DEVICE void add_tiles(const RunTimeTotals& a) {
  constexpr int kTiles = (C::kLeftRows + C::kTileRows - 1) / C::kTileRows *
                         ((C::kLeftCols + C::kTileCols - 1) / C::kTileCols);
  constexpr int kAreasAcross = (C::kOutCols + C::kAcross - 1) / C::kAcross;
  constexpr int kGroup = kTiles < C::kMostUnrolled ? kTiles : C::kMostUnrolled;
  constexpr long long kShifts = static_cast<long long>(C::kOutRows) * C::kOutCols;
  wait_for_launch_before();
  long long shift = static_cast<long long>(block_number()) * C::kAddThreads + thread_number();
  if (C::kByArea) {
    const int at = static_cast<int>(shift);
    const int row = a.area / kAreasAcross * C::kDown + at / C::kAcross;
    const int col = a.area % kAreasAcross * C::kAcross + at % C::kAcross;
    const bool exists = at < C::kDown * C::kAcross && row < C::kOutRows && col < C::kOutCols;
    shift = exists ? static_cast<long long>(row) * C::kOutCols + col : kShifts;
  }
  if (shift >= kShifts) return;
  using Sum = typename RunTimeSum<kPass>::type;
  for (int item = second_block_number(); item < a.count; item += second_blocks()) {
    const Sum* of_item = static_cast<const Sum*>(a.partial) + item * (kTiles * kShifts) + shift;
    Sum sum = 0;
    for (int group = 0; group < kTiles / kGroup; ++group) {
      sum = with_tiles<kGroup>(sum, of_item, kShifts);
      of_item += kGroup * kShifts;
    }
    sum = with_tiles<kTiles % kGroup>(sum, of_item, kShifts);
    constexpr double kTerms = static_cast<double>(C::kLeftRows) * C::kLeftCols;
    a.totals[item * kShifts + shift] = kPass == kRunTimeAverages ? static_cast<float>(sum / kTerms)
                                                                 : static_cast<float>(sum);
  }
}

}  // namespace xcorr::template_matching
)
// clang-format on
