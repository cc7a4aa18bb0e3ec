// Rules of the results that are no surfaces, for host and device: local maxima, the order of peaks,
// fits between outputs, flags, medians (docs/design.md, Fields of a problem; records in
// harness/problem/results.hpp). Host and device scan in different ways and decide by these
// functions alone.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "harness/problem/inputs.hpp"
#include "harness/problem/problem.hpp"
#include "harness/problem/results.hpp"

namespace xcorr::reduce {

// The outputs of one pair.
template <typename T>
struct Surface {
  const T* data;
  Index rows, cols;
  Index first_sy, first_sx;  // shift of the output at (0, 0)

  XCORR_HD Index size() const { return rows * cols; }
};

template <typename T>
XCORR_HD Surface<T> surface_of(const Geometry& problem, const T* all, Index pair) {
  return {all + pair * problem.out_size(), problem.out_rows(), problem.out_cols(),
          problem.window.sy.first, problem.window.sx.first};
}

// An output that may be a peak; `at` is its index in the surface, or -1.
struct Candidate {
  double value = 0;
  Index at = -1;
};

// The order of peaks: the larger value first, of equal values the one with the smallest (sy, sx).
XCORR_HD inline bool comes_before(const Candidate& a, const Candidate& b) {
  if (a.at < 0 || b.at < 0) return a.at >= 0 && b.at < 0;
  return a.value > b.value || (a.value == b.value && a.at < b.at);
}

// Without <cmath>, whose functions differ on host and device.
XCORR_HD inline bool is_nan(double v) { return v != v; }
XCORR_HD inline bool is_finite(double v) { return v - v == 0; }

// See harness/problem/results.hpp. A neighbour that is NaN does not count.
template <typename T>
XCORR_HD bool is_local_maximum(const Surface<T>& s, Index at) {
  const T value = s.data[at];
  if (is_nan(value)) return false;
  // Most outputs lose against the one above or below, which needs no division.
  if (at >= s.cols && s.data[at - s.cols] >= value) return false;
  if (at + s.cols < s.size() && s.data[at + s.cols] > value) return false;
  const Index row = at / s.cols, col = at % s.cols;
  for (Index y = row > 0 ? row - 1 : 0; y <= row + 1 && y < s.rows; ++y) {
    for (Index x = col > 0 ? col - 1 : 0; x <= col + 1 && x < s.cols; ++x) {
      const Index other = y * s.cols + x;
      const T neighbour = s.data[other];
      if (neighbour > value || (neighbour == value && other < at)) return false;
    }
  }
  return true;
}

// above:t:c:d: whether no output that comes before this one in the order of peaks is closer than
// `distance`. The distance of two outputs is the larger of the differences of their rows and of
// their columns.
template <typename T>
XCORR_HD bool is_first_within(const Surface<T>& s, Index at, Index distance) {
  if (distance < 2) return true;
  if (!is_local_maximum(s, at)) return false;  // most outputs end here
  const T value = s.data[at];
  const Index row = at / s.cols, col = at % s.cols, reach = distance - 1;
  const Index first_row = row > reach ? row - reach : 0, first_col = col > reach ? col - reach : 0;
  for (Index y = first_row; y <= row + reach && y < s.rows; ++y) {
    for (Index x = first_col; x <= col + reach && x < s.cols; ++x) {
      const Index other = y * s.cols + x;
      const T neighbour = s.data[other];
      if (neighbour > value || (neighbour == value && other < at)) return false;
    }
  }
  return true;
}

// Which outputs a scan considers.
struct AnyNumber {
  template <typename T>
  XCORR_HD bool operator()(const Surface<T>& s, Index at) const {
    return !is_nan(s.data[at]);
  }
};
// Peak::second: local maxima outside the 5 x 5 outputs around the peak.
struct FarMaximum {
  Index peak;
  template <typename T>
  XCORR_HD bool operator()(const Surface<T>& s, Index at) const {
    if (!is_local_maximum(s, at)) return false;
    const Index dy = at / s.cols - peak / s.cols, dx = at % s.cols - peak % s.cols;
    return dy < -2 || dy > 2 || dx < -2 || dx > 2;
  }
};
// peaks:k: local maxima after `previous` in the order of peaks.
struct NextMaximum {
  Candidate previous;  // none: all
  template <typename T>
  XCORR_HD bool operator()(const Surface<T>& s, Index at) const {
    const Candidate here{static_cast<double>(s.data[at]), at};
    if (previous.at >= 0 && !comes_before(previous, here)) return false;
    return is_local_maximum(s, at);
  }
};

// Position in (-0.5, 0.5] of the maximum of the parabola through (-1, before), (0, middle) and (1,
// after), where the middle is larger than `before` and at least `after`. Two equal outputs are half
// a pixel, and so are two that rounding made unequal, whichever is the peak.
XCORR_HD inline double parabola(double before, double middle, double after) {
  const double sides = (middle - before) + (middle - after);
  return 0.5 * ((middle - before) - (middle - after)) / sides;
}

// The same through the logarithms, exact for a Gaussian; through the values where one is not
// positive.
XCORR_HD inline double gaussian(double before, double middle, double after) {
  if (!(before > 0 && after > 0)) return parabola(before, middle, after);
  return parabola(log(before), log(middle), log(after));
}

// The fit along one axis, whose neighbours are `step` outputs apart. Adds flags.
template <typename T>
XCORR_HD float fit_axis(const Surface<T>& s, Index at, Index position, Index length, Index step,
                        SubPixel sub_pixel, std::uint32_t& flags) {
  const double middle = s.data[at];
  const bool has_before = position > 0, has_after = position + 1 < length;
  const double before = has_before ? static_cast<double>(s.data[at - step]) : middle;
  const double after = has_after ? static_cast<double>(s.data[at + step]) : middle;
  if ((has_before && before == middle) || (has_after && after == middle)) flags |= kPeakOnPlateau;
  if (!has_before || !has_after) {
    flags |= kPeakAtBorder;
    return 0;
  }
  if (!(before < middle && after <= middle)) return 0;  // NaN
  if (!is_finite(before) || !is_finite(middle) || !is_finite(after)) return 0;
  if (sub_pixel == SubPixel::upsample) return 0;  // set by the interpolation
  if (after == middle) {                          // the centre of the plateau
    Index equal = 2;
    while (position + equal < length && s.data[at + equal * step] == s.data[at]) ++equal;
    return 0.5f * static_cast<float>(equal - 1);
  }
  const double fit = sub_pixel == SubPixel::gaussian ? gaussian(before, middle, after)
                                                     : parabola(before, middle, after);
  return is_finite(fit) ? static_cast<float>(fit) : 0.0f;
}

// The record of the output at `best`; second is NaN. With upsample the fit is 0.
template <typename T>
XCORR_HD Peak make_peak(const Surface<T>& s, const Candidate& best, SubPixel sub_pixel,
                        bool all_finite) {
  Peak peak{};
  peak.second = NAN;
  peak.flags = all_finite ? 0u : std::uint32_t{kPeakNotFinite};
  if (best.at < 0) {
    peak.value = NAN;
    peak.sy = static_cast<std::int32_t>(s.first_sy);
    peak.sx = static_cast<std::int32_t>(s.first_sx);
    return peak;
  }
  const Index row = best.at / s.cols, col = best.at % s.cols;
  peak.value = static_cast<float>(best.value);
  peak.sy = static_cast<std::int32_t>(s.first_sy + row);
  peak.sx = static_cast<std::int32_t>(s.first_sx + col);
  peak.sub_sy = fit_axis(s, best.at, row, s.rows, s.cols, sub_pixel, peak.flags);
  peak.sub_sx = fit_axis(s, best.at, col, s.cols, Index{1}, sub_pixel, peak.flags);
  return peak;
}

template <typename T>
XCORR_HD Detection make_detection(const Surface<T>& s, Index pair, Index at) {
  return {static_cast<std::int32_t>(pair), static_cast<std::int32_t>(s.first_sy + at / s.cols),
          static_cast<std::int32_t>(s.first_sx + at % s.cols), static_cast<float>(s.data[at])};
}

// peak:upsample=u: the surface is one period, interpolated by its Fourier series at multiples of 1
// / u within 1.5 pixels around the peak (Guizar-Sicairos et al. 2008). An axis of one output has no
// fit.
struct Upsampling {
  int factor;
  XCORR_HD Index points() const { return (3 * Index{factor} + 1) / 2; }  // along an axis
  // What point i adds to the shift of the peak, in pixels.
  XCORR_HD double offset(Index i) const {
    return static_cast<double>(i - points() / 2) / static_cast<double>(factor);
  }
  // What the interpolated point `at` of points() x points() adds to the shift of a peak.
  template <typename T>
  XCORR_HD void place(const Surface<T>& s, Index at, Peak& peak) const {
    peak.sub_sy = s.rows > 1 ? static_cast<float>(offset(at / points())) : 0.0f;
    peak.sub_sx = s.cols > 1 ? static_cast<float>(offset(at % points())) : 0.0f;
  }
  // Weight for point i of the output that lies `distance` after the peak on an axis of `length`
  // outputs: the Dirichlet kernel, whose period is the length.
  XCORR_HD double weight(Index distance, Index length, Index i) const {
    constexpr double kPi = 3.14159265358979323846;
    // (distance - offset), in units of 1 / factor, without rounding.
    const Index steps = distance * factor - (i - points() / 2);
    if (steps % (length * factor) == 0) return 1.0;
    if (steps % factor == 0) return 0.0;
    const double x = static_cast<double>(steps) / static_cast<double>(factor);
    const double n = static_cast<double>(length);
    const double turn = sin(kPi * x / n);
    const double kernel = sin(kPi * x) / (n * turn);
    // For an even length the highest frequency has one coefficient, half of it on either side.
    return length % 2 ? kernel : kernel * cos(kPi * x / n);
  }
};

// The bits of a number as an unsigned integer in the order of numbers. Not for NaN. Both zeros are
// equal.
XCORR_HD inline std::uint32_t ordered(float value) {
  value += 0.0f;
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits >> 31 ? ~bits : bits | (std::uint32_t{1} << 31);
}
XCORR_HD inline std::uint64_t ordered(double value) {
  value += 0.0;
  std::uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits >> 63 ? ~bits : bits | (std::uint64_t{1} << 63);
}
XCORR_HD inline float from_ordered(std::uint32_t key) {
  const std::uint32_t bits = key >> 31 ? key & ~(std::uint32_t{1} << 31) : ~key;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
XCORR_HD inline double from_ordered(std::uint64_t key) {
  const std::uint64_t bits = key >> 63 ? key & ~(std::uint64_t{1} << 63) : ~key;
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// The number at a rank, found 8 bits at a time from the highest: a histogram of this digit over all
// numbers with the bits found so far, then one step.
constexpr int kDigit = 8, kDigits = 1 << kDigit;
template <typename Key>
struct Selection {
  Key found = 0;                                           // the higher bits
  int shift = static_cast<int>(sizeof(Key)) * 8 - kDigit;  // of the digit that is sought
  std::uint64_t rank = 0;                                  // among the numbers with these bits
  std::uint64_t equal = 0;  // after the last step: how often the number occurs

  XCORR_HD bool done() const { return shift < 0; }
  XCORR_HD bool matches(Key key) const {
    const int above = shift + kDigit;
    return above >= static_cast<int>(sizeof(Key)) * 8 || key >> above == found >> above;
  }
  XCORR_HD int digit(Key key) const { return static_cast<int>(key >> shift & (kDigits - 1)); }
  template <typename Count>
  XCORR_HD void step(const Count* histogram) {
    int digit = 0;
    while (digit + 1 < kDigits && rank >= histogram[digit]) rank -= histogram[digit++];
    found |= static_cast<Key>(digit) << shift;
    equal = histogram[digit];
    shift -= kDigit;
  }
};

// The mean of the two middle numbers, or the middle one twice. NaN counts as no number.
XCORR_HD inline double middle(double lower, double upper) {
  return lower == upper ? lower : 0.5 * (lower + upper);
}

// The deviation from the median, rounded to the type of outputs: rounding keeps the order, so the
// median of these is the rounded median.
template <typename T>
XCORR_HD T deviation(T value, double median) {
  return static_cast<T>(fabs(static_cast<double>(value) - median));
}

// Sums run in this many lanes, lane i over the outputs i, i + kLanes, ..., which are then added in
// pairs: one order for host and device.
constexpr int kLanes = 256;

}  // namespace xcorr::reduce
