// Records of the results that are no surfaces (docs/design.md, Fields of a problem), as compute
// writes them. Sizes are fixed: a file or another language can read them.
//
//   result=peak        Peak[pairs]
//   result=peaks:k     Peak[pairs][k], the largest first; missing ones have a value of NaN
//   result=above:t:c, above:t:c:d
//                      AboveHeader, then Detection[min(c, outputs)], of which `count` are written, in
//                      any order
//   result=sum         double[pairs]
//
// A local maximum is an output that is at least as large as each of its up to eight neighbours in
// the window, and larger than those of them that come before it in the order of (sy, sx).
#pragma once

#include <cstdint>

namespace xcorr {

enum PeakFlags : std::uint32_t {
  kPeakAtBorder = 1,  // a neighbour along an axis is outside the window: no fit along this axis
  kPeakOnPlateau =
      2,  // a neighbour along an axis has the same value: the fit is the plateau's centre
  kPeakNotFinite = 4,  // an output of the pair is NaN or infinite; NaN is never the largest
};

// The largest output of a pair. Of equal ones it is the one with the smallest (sy, sx).
struct Peak {
  float value;
  std::int32_t sy, sx;  // its shift
  // What the fit adds to the shift, in pixels; 0 where there is no fit. Equal outputs after the peak
  // along an axis are a plateau, whose centre is the fit: of two equal outputs half a pixel.
  // peak:upsample=u takes the surface as periodic, and so fits at the border too.
  float sub_sy, sub_sx;
  // The largest local maximum outside the 5 x 5 outputs around the peak; NaN if there is none. In
  // peaks:k it is NaN.
  float second;
  std::uint32_t flags;
  std::uint32_t spare;  // 0
};
static_assert(sizeof(Peak) == 32);

struct AboveHeader {
  // Outputs that are at least the threshold, of above:t:c:d those to be listed. More than the capacity
  // is an error of the request, and only `capacity` of them are written then.
  std::uint64_t count;
  std::uint64_t spare;  // 0
};
static_assert(sizeof(AboveHeader) == 16);

struct Detection {
  std::int32_t pair, sy, sx;
  float value;
};
static_assert(sizeof(Detection) == 16);

}  // namespace xcorr
