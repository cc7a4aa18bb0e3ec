// Records of the results that are no surfaces (docs/design.md, Fields of a problem), as compute
// writes them. Sizes are fixed, so that a file or another language can read them.
//
//   result=peak        Peak[pairs]
//   result=peaks:k     Peak[pairs][k], the largest first; missing ones have a value of NaN
//   result=above:t:c, above:t:c:d
//                      AboveHeader, then Detection[min(c, outputs)], of which `count` are written
//                      in
//                      any order
//   result=sum         double[pairs]
//
// A local maximum is an output that is at least as large as each of its up to eight neighbours in
// the window, and larger than those before it in the order of (sy, sx).
#pragma once

#include <cstdint>

namespace xcorr {

enum PeakFlags : std::uint32_t {
  kPeakAtBorder = 1,   // a neighbour along an axis is outside the window: no fit along it
  kPeakOnPlateau = 2,  // a neighbour along an axis is equal: the fit is the plateau's centre
  kPeakNotFinite = 4,  // an output of the pair is NaN or infinite; NaN is never the largest
};

// The largest output of a pair; of equal ones that with the smallest (sy, sx).
struct Peak {
  float value;
  std::int32_t sy, sx;  // its shift
  // What the fit adds to the shift, in pixels; 0 without a fit. Equal outputs after the peak along
  // an axis are a plateau, whose centre is the fit: half a pixel for two outputs. peak:upsample=u
  // takes the surface as periodic, and so fits at the border too.
  float sub_sy, sub_sx;
  // The largest local maximum outside the 5 x 5 outputs around the peak; NaN if there is none, and
  // in peaks:k.
  float second;
  std::uint32_t flags;
  std::uint32_t spare;  // 0
};
static_assert(sizeof(Peak) == 32);

struct AboveHeader {
  // Outputs to be listed: of at least the threshold, and for above:t:c:d far enough from larger
  // ones. Only `capacity` of them are written; more are an error of the request.
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
