// The second peak of a surface of which many rows must be searched. Smooth surfaces, which have few
// local maxima, are such. A lane walks down a column and reads each row once together with its
// neighbours. If few rows must be searched, second_of_row() of peaks.hpp is faster.
#pragma once

#include "algorithms/blocks/peaks.hpp"

namespace xcorr::fused_fft {

// The largest local maximum in rows [begin, end), begin < end, of the columns of a lane, that lies
// outside the 5 x 5 around the peak and exceeds `least`; NaN if there is none. Only numbers above
// -infinity are found. The elements before and after a row in memory are read too, and not used.
template <typename Surface>
__device__ __forceinline__ float second_of_rows(const Surface& s, int begin, int end, int lane,
                                                int peak_y, int peak_x, float least) {
  struct Three {
    float left, middle, right;
    __device__ __forceinline__ float largest() const { return fmaxf(middle, fmaxf(left, right)); }
  };
  const float lowest = is_number(least) ? least : -HUGE_VALF;
  float best = lowest;
#pragma unroll 1
  for (int from = 0; from < s.cols; from += warp::kSize) {
    // A lane beyond the last column reads the last column again.
    const int x = from + lane < s.cols ? from + lane : s.cols - 1;
    const bool has_left = x > 0, has_right = x + 1 < s.cols;
    const bool near_x = x - peak_x <= 2 && peak_x - x <= 2;
    const auto load = [&](int y) {
      const float* const at = s.row(y) + x;
      return Three{has_left ? at[-1] : no_number(), at[0], has_right ? at[1] : no_number()};
    };
    float above = begin > 0 ? load(begin - 1).largest() : no_number();
    Three here = load(begin);
#pragma unroll 4
    for (int y = begin; y < end; ++y) {
      const bool last = y + 1 == s.rows;
      const Three next = load(last ? y : y + 1);
      const float before = fmaxf(above, here.left);
      const float after = fmaxf(last ? no_number() : next.largest(), here.right);
      const float value = here.middle;
      const bool around = near_x && static_cast<unsigned>(y - peak_y + 2) <= 4;
      if (value > best && !(before >= value) && !(after > value) && !around) best = value;
      above = here.largest();
      here = next;
    }
  }
  return best > lowest ? best : no_number();
}

}  // namespace xcorr::fused_fft
