// The problem of the family in 64 bits, for the host and for libraries: n templates of C channels x
// T samples slide along one signal of C channels:
//
//   out[i][s] = sum over c and t of template[i][c][t] * signal[c][first + s + t].
//
// It is form n-to-m with one right matrix, rows as channels, and a window inside `valid`.
#pragma once

#include <algorithm>
#include <limits>
#include <string>

#include "harness/problem/problem.hpp"
#include "harness/variant.hpp"

namespace xcorr::time_series {

struct SeriesShape {
  explicit SeriesShape(const Problem& q)
      : templates(q.lefts),
        channels(q.left.rows),
        length(q.left.cols),
        pitch(q.right.cols),
        first(q.window.sx.first),
        shifts(q.window.sx.count()) {}

  // Samples of a channel that are used, from `first` on.
  Index samples() const { return shifts + length - 1; }

  Index templates;
  Index channels;
  Index length;  // of a template, in samples
  Index pitch;   // samples between channels of the signal
  Index first;   // the sample at which output 0 begins
  Index shifts;  // outputs per template
};

// SeriesShape in 32 bits, passed to kernels by value: left [templates][channels][length], right
// [channels][pitch], out [templates][shifts].
struct Series {
  explicit Series(const SeriesShape& of)
      : templates(static_cast<int>(of.templates)),
        channels(static_cast<int>(of.channels)),
        length(static_cast<int>(of.length)),
        pitch(static_cast<int>(of.pitch)),
        first(static_cast<int>(of.first)),
        shifts(static_cast<int>(of.shifts)) {}
  int templates, channels, length, pitch, first, shifts;
};

// The signal's Hankel matrix has one row per shift: the samples of all channels under a template.
// The number of rows of a part of at most `bytes`.
inline Index hankel_rows(const SeriesShape& s, Index bytes, Index scalar_bytes) {
  return std::clamp<Index>(bytes / (s.channels * s.length * scalar_bytes), 1, s.shifts);
}

// Yes, or why a problem of form n-to-m does not belong to the family.
inline Support supports_series(const Problem& q) {
  if (q.rights != 1) {
    return no("time series: " + std::to_string(q.rights) + " right matrices, not one signal");
  }
  if (q.left.rows != q.right.rows) {
    return no("time series: rows are channels, and there are " + std::to_string(q.left.rows) +
              " left and " + std::to_string(q.right.rows) + " right ones");
  }
  if (q.left.rows > Problem::kMostChannels) {
    return no("time series: " + std::to_string(q.left.rows) + " channels, and there may be " +
              std::to_string(Problem::kMostChannels));
  }
  const Shifts x = q.window.sx;
  if (q.window.sy != Shifts{0, 0} || x.first < 0 || x.last > q.right.cols - q.left.cols) {
    return no("time series: templates leave the signal in this window; try window valid");
  }
  return yes();
}

// The same for a product of the Hankel matrix by a BLAS, whose sizes have 32 bits.
inline Support supports_blas(const Problem& q) {
  if (const Support series = supports_series(q); !series) return series;
  const SeriesShape s(q);
  if (std::max({s.templates, s.channels * s.length, s.shifts}) <= std::numeric_limits<int>::max()) {
    return yes();
  }
  return no("more than 2^31 - 1 templates, samples of a template, or outputs of one");
}

}  // namespace xcorr::time_series
