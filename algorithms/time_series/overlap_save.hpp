// Overlap-save: a long signal is cut into segments that overlap by a template. The circular
// correlation of a segment of N samples with a template of T samples is right at its first N - T +
// 1 shifts. The other shifts wrap around and are not used. Therefore segment k begins at sample k
// (N - T + 1).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>

#include "algorithms/time_series/series_shape.hpp"

namespace xcorr::time_series {

struct Segments {
  // If a segment has at least 8 * `aligned` outputs, their number is rounded down to a multiple of
  // `aligned`, so that the outputs of all segments begin at multiples of it.
  Segments(const SeriesShape& s, Index segment_points, Index aligned = 1)
      : points(segment_points), valid(points - s.length + 1) {
    if (valid >= 8 * aligned) valid -= valid % aligned;
    count = (s.shifts + valid - 1) / valid;
  }

  // The outputs of segment k that exist.
  Index outputs(const SeriesShape& s, Index k) const {
    return std::min(valid, s.shifts - k * valid);
  }

  Index points;  // N
  Index valid;   // outputs of a segment per template
  Index count;
};

// The power of two with the least work per output. The work of a transform is in proportion to
// log2(N), that of its product and copies to `extra`. The segment is not longer than the signal
// needs.
inline Index best_segment(const SeriesShape& s, double extra, Index longest) {
  const auto power = [](Index n) {
    return static_cast<Index>(std::bit_ceil(static_cast<std::uint64_t>(n)));
  };
  const Index enough = power(s.samples());
  Index best = power(s.length);
  double least = 0;
  for (Index n = best; n <= std::max(best, std::min(longest, enough)); n *= 2) {
    const double work =
        static_cast<double>(n) * (std::log2(n) + extra) / static_cast<double>(n - s.length + 1);
    if (least != 0 && work >= least) continue;
    least = work;
    best = n;
  }
  return best;
}

inline Support segment_fits(const SeriesShape& s, Index points) {
  if (points >= s.length) return yes();
  return no("segment=" + std::to_string(points) + ": shorter than templates of " +
            std::to_string(s.length) + " samples");
}

}  // namespace xcorr::time_series
