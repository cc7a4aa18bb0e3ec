// The sums over tiles of template_pearson_tiled, for a problem whose sizes are constants. Two
// variants have them: template_pearson_jit, where the compiler chooses how far loops are unrolled,
// and template_pearson_jit_unrolled (XCORR_TILE_LOOP). This text is compiled twice: by the build, so that tests can run it, and at run time by NVRTC, with the
// sizes of one problem (sizes.hpp). XCORR_RUN_TIME_TEXT keeps the text for NVRTC, so no line in it
// may begin with #. It takes a few functions from CUDA, which stand in front of it (prelude.hpp).
//
// Constants that a problem sets: kLeftRows, kLeftCols (template), kRightRows, kRightCols (frame),
// kOutRows, kOutCols, kFirstSy, kFirstSx (window), kTileRows, kTileCols (tile of the template),
// kDown, kAcross (area of shifts of a block, one thread per shift), kThreads, kByArea (whether a
// launch has one area of shifts, or all).
//
// A template has up to four shapes of tiles: those of the middle, of the right end, of the bottom
// end, and of the corner. Each shape has separate loops with constant lengths, and a block runs
// those of its tile.
#pragma once

#include "algorithms/template_matching/run_time/prelude.hpp"

// clang-format off
XCORR_RUN_TIME_TEXT(kTileSumsText,

namespace xcorr::template_matching {

// As Pass of pearson_passes.hpp.
enum RunTimePass { kRunTimeAverages, kRunTimeDenominators, kRunTimeNumerators };

// As FrameScale (algorithms/blocks/template_problem.hpp).
struct alignas(8) RunTimeScale {
  float scale;
  float offset;
};

struct RunTimeArguments {
  const float* units;  // templates that enter the products
  const float* right;   // frames
  const RunTimeScale* scales;  // [frames][areas of shifts]; null for product
  const float* means;   // [frames][shifts]; null for product
  void* partial;        // [frames or pairs][tiles][shifts]: double for averages, else float
  int count;            // frames or pairs
  // Pair p has left p / rights_of_left and right p - left * rights_back.
  int rights_of_left, rights_back;
  int area;  // of the launch, with kByArea
};

template <int kPass>
struct RunTimeSum {
  using type = float;
};
template <>
struct RunTimeSum<kRunTimeAverages> {
  using type = double;
};

// The sum of a tile of kRows x kCols from (tile_y, tile_x) on, for the shift of the thread, which
// is at (row, col) of the area of the block. All threads of a block call it.
template <typename C, int kPass, int kRows, int kCols>
XCORR_DEVICE typename RunTimeSum<kPass>::type sum_of_tile(const RunTimeArguments& a, int item, int tile_y, int tile_x,
                                                     int row, int col, long long shift) {
  constexpr int kTiles = (C::kLeftRows + C::kTileRows - 1) / C::kTileRows *
                         ((C::kLeftCols + C::kTileCols - 1) / C::kTileCols);
  constexpr int kAreas = (C::kOutRows + C::kDown - 1) / C::kDown *
                         ((C::kOutCols + C::kAcross - 1) / C::kAcross);
  constexpr int kPitch = kCols + C::kAcross - 1;
  constexpr int kStaged = (kRows + C::kDown - 1) * kPitch;
  constexpr int kStagedWords = (kStaged + 3) / 4 * 4;
  float* const frame_part = dynamic_floats();
  float* const of_template = frame_part + kStagedWords;
  const int thread = thread_number();
  const int left = kPass == kRunTimeNumerators ? item / a.rights_of_left : 0;
  const int frame = kPass == kRunTimeNumerators ? item - left * a.rights_back : item;
  const int area = C::kByArea ? a.area : block_number() / kTiles;
  const RunTimeScale of_area =
      a.scales != nullptr ? a.scales[frame * kAreas + area] : RunTimeScale{1, 0};
  const float* const from = a.right + static_cast<long long>(frame) * C::kRightRows * C::kRightCols;
  for (int i = thread; i < kStaged; i += C::kThreads) {
    const int y = C::kFirstSy + row + tile_y + i / kPitch;
    const int x = C::kFirstSx + col + tile_x + i % kPitch;
    const bool exists = y < C::kRightRows && x < C::kRightCols;
    const float value = from[exists ? y * C::kRightCols + x : 0];
    frame_part[i] = exists ? multiply_add(value, of_area.scale, of_area.offset) : 0.0f;
  }
  if (kPass == kRunTimeNumerators) {
    const float* const unit = a.units + static_cast<long long>(left) * C::kLeftRows * C::kLeftCols;
    for (int i = thread; i < kRows * kCols; i += C::kThreads) {
      of_template[i] = unit[(tile_y + i / kCols) * C::kLeftCols + tile_x + i % kCols];
    }
  }
  meet_in_block();
  constexpr long long kShifts = static_cast<long long>(C::kOutRows) * C::kOutCols;
  const bool has_mean = kPass != kRunTimeAverages && a.means != nullptr && shift >= 0;
  const float mean = has_mean ? a.means[frame * kShifts + shift] : 0.0f;
  typename RunTimeSum<kPass>::type sum = 0;
  const float* const of_frame = frame_part + thread / C::kAcross * kPitch + thread % C::kAcross;
  if (thread < C::kDown * C::kAcross) {
    XCORR_TILE_LOOP
    for (int y = 0; y < kRows; ++y) {
      XCORR_TILE_LOOP
      for (int x = 0; x < kCols; ++x) {
        const float value = of_frame[y * kPitch + x];
        if (kPass == kRunTimeAverages) sum += static_cast<double>(value);
        if (kPass == kRunTimeDenominators) sum += (value - mean) * (value - mean);
        if (kPass == kRunTimeNumerators) sum += of_template[y * kCols + x] * (value - mean);
      }
    }
  }
  meet_in_block();
  return sum;
}

// grid: tiles of areas (with kByArea of one), frames or pairs (in a stride).
template <typename C, int kPass>
XCORR_DEVICE void tile_sums(const RunTimeArguments& a) {
  constexpr int kTilesDown = (C::kLeftRows + C::kTileRows - 1) / C::kTileRows;
  constexpr int kTilesAcross = (C::kLeftCols + C::kTileCols - 1) / C::kTileCols;
  constexpr int kTiles = kTilesDown * kTilesAcross;
  constexpr int kAreasAcross = (C::kOutCols + C::kAcross - 1) / C::kAcross;
  constexpr int kLastRows = C::kLeftRows - (kTilesDown - 1) * C::kTileRows;
  constexpr int kLastCols = C::kLeftCols - (kTilesAcross - 1) * C::kTileCols;
  constexpr long long kShifts = static_cast<long long>(C::kOutRows) * C::kOutCols;
  wait_for_launch_before();
  const int tile = block_number() % kTiles;
  const int area = C::kByArea ? a.area : block_number() / kTiles;
  const int tile_y = tile / kTilesAcross * C::kTileRows;
  const int tile_x = tile % kTilesAcross * C::kTileCols;
  const int row = area / kAreasAcross * C::kDown;
  const int col = area % kAreasAcross * C::kAcross;
  const int thread = thread_number();
  const int my_row = row + thread / C::kAcross;
  const int my_col = col + thread % C::kAcross;
  const bool works = thread < C::kDown * C::kAcross && my_row < C::kOutRows && my_col < C::kOutCols;
  const long long shift = static_cast<long long>(my_row) * C::kOutCols + my_col;
  const bool is_low = tile_y / C::kTileRows < kTilesDown - 1;
  const bool is_left = tile_x / C::kTileCols < kTilesAcross - 1;
  for (int item = second_block_number(); item < a.count; item += second_blocks()) {
    typename RunTimeSum<kPass>::type sum = 0;
    if (is_low && is_left) {
      sum = sum_of_tile<C, kPass, C::kTileRows, C::kTileCols>(a, item, tile_y, tile_x, row, col, works ? shift : -1);
    } else if (is_low) {
      sum = sum_of_tile<C, kPass, C::kTileRows, kLastCols>(a, item, tile_y, tile_x, row, col, works ? shift : -1);
    } else if (is_left) {
      sum = sum_of_tile<C, kPass, kLastRows, C::kTileCols>(a, item, tile_y, tile_x, row, col, works ? shift : -1);
    } else {
      sum = sum_of_tile<C, kPass, kLastRows, kLastCols>(a, item, tile_y, tile_x, row, col, works ? shift : -1);
    }
    if (!works) continue;
    auto* const partial = static_cast<typename RunTimeSum<kPass>::type*>(a.partial);
    partial[(static_cast<long long>(item) * kTiles + tile) * kShifts + shift] = sum;
  }
}

}  // namespace xcorr::template_matching
)
// clang-format on
