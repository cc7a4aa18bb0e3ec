// The constants that a kernel is compiled with at run time (algorithms/template_matching/run_time), as a type.
#pragma once

#include "algorithms/template_matching/run_time/sizes.hpp"

namespace xcorr::template_matching {

template <int kLeftRows_, int kLeftCols_, int kRightRows_, int kRightCols_, int kTileRows_,
          int kTileCols_, int kDown_, int kAcross_, int kFirstSy_ = 0, int kFirstSx_ = 0>
struct Sizes {
  static constexpr int kLeftRows = kLeftRows_, kLeftCols = kLeftCols_, kRightRows = kRightRows_,
                       kRightCols = kRightCols_, kTileRows = kTileRows_, kTileCols = kTileCols_,
                       kDown = kDown_, kAcross = kAcross_, kFirstSy = kFirstSy_,
                       kFirstSx = kFirstSx_, kOutRows = kRightRows - kLeftRows + 1 - kFirstSy,
                       kOutCols = kRightCols - kLeftCols + 1 - kFirstSx,
                       kThreads = ceil_div(kDown * kAcross, 32) * 32;
  static constexpr bool kByArea = false;
};

// With a launch for each area of shifts. Few tiles are unrolled, so that small problems have several groups of them.
template <typename Base>
struct ByArea : Base {
  static constexpr bool kByArea = true;
  static constexpr int kAddThreads = Base::kThreads, kMostUnrolled = 4;
};

}  // namespace xcorr::template_matching
