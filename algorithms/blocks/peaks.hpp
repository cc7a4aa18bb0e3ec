// Results other than surfaces, from a surface that a warp or a block can read: the peak (the
// largest output); the second peak (the largest local maximum outside the 5 x 5 outputs around the
// peak); the fit between outputs; and lists of the outputs above a threshold. The rules are those
// of harness/reduce/reduce_rules.hpp, in 32 bits; tests/emulation/test_peaks.cpp compares the two.
//
// A surface has `rows` and `cols` of the window, and row(y), a pointer to the outputs of row y. NaN
// marks missing values. fmaxf ignores it, and a comparison with it is false. is_local_maximum()
// tests !(neighbour > value), so that a missing neighbour has no effect.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "algorithms/blocks/records.hpp"
#include "algorithms/device/cuda.hpp"
#include "harness/variant.hpp"

namespace xcorr::device {

__device__ __forceinline__ float no_number() { return std::bit_cast<float>(0x7fc00000u); }
__device__ __forceinline__ bool is_number(float value) { return value == value; }

// A candidate for the peak: an output, or a row with the value of its largest output. `at` is the
// index of the output or row in the order of (sy, sx); kNowhere if there is none.
inline constexpr int kNowhere = 0x7fffffff;
struct PeakPlace {
  float value;
  int at;
};
__device__ __forceinline__ PeakPlace no_place() { return {-HUGE_VALF, kNowhere}; }
__device__ __forceinline__ PeakPlace place_of(float value, int at) {
  return is_number(value) ? PeakPlace{value, at} : no_place();
}
// The candidate with the larger value; of equal values the one with the smaller `at`.
__device__ __forceinline__ PeakPlace first_of(PeakPlace a, PeakPlace b) {
  return b.value > a.value || (b.value == a.value && b.at < a.at) ? b : a;
}
// The first candidate of kLanes consecutive lanes, for all these lanes.
template <int kLanes = warp::kSize>
__device__ __forceinline__ PeakPlace first_of_lanes(PeakPlace mine) {
#pragma unroll
  for (int by = kLanes / 2; by > 0; by /= 2) {
    mine = first_of(mine, {warp::shuffle_xor(mine.value, by), warp::shuffle_xor(mine.at, by)});
  }
  return mine;
}
template <int kLanes = warp::kSize>
__device__ __forceinline__ float largest_of_lanes(float mine) {
#pragma unroll
  for (int by = kLanes / 2; by > 0; by /= 2) mine = fmaxf(mine, warp::shuffle_xor(mine, by));
  return mine;
}

// A team of one warp for a surface.
struct WarpTeam {
  int lane;
  static constexpr int warp = 0, warps = 1;
  __device__ __forceinline__ PeakPlace first_of_all(PeakPlace of_warp, int) const {
    return of_warp;
  }
  __device__ __forceinline__ double sum_of_all(double of_warp) const { return of_warp; }
  __device__ __forceinline__ void meet() const { warp::barrier(); }
};

// Shared memory of a team of all warps of a block, at most 32.
struct TeamScratch {
  PeakPlace places[2][warp::kSize];
  double sums[warp::kSize];
};
struct BlockTeam {
  int lane, warp, warps;
  TeamScratch* scratch;

  // The first candidate of all warps, for all threads; `turn` must have another parity than in the
  // previous call.
  __device__ __forceinline__ PeakPlace first_of_all(PeakPlace of_warp, int turn) const {
    PeakPlace* const places = scratch->places[turn % 2];
    if (lane == 0) places[warp] = of_warp;
    block::barrier();
    return first_of_lanes(lane < warps ? places[lane] : no_place());
  }
  // The sum, for the lanes of warp 0. At most one call between two calls of meet().
  __device__ __forceinline__ double sum_of_all(double of_warp) const {
    if (lane == 0) scratch->sums[warp] = of_warp;
    block::barrier();
    if (warp != 0) return of_warp;
    return warp::reduce_add(lane < warps ? scratch->sums[lane] : 0.0);
  }
  __device__ __forceinline__ void meet() const { block::barrier(); }
};

// Whether output (y, x), whose value is a number, is at least as large as its neighbours in the
// window and larger than the neighbours before it.
template <typename Surface>
__device__ __forceinline__ bool is_local_maximum(const Surface& s, int y, int x, float value) {
  const bool left = x > 0, right = x + 1 < s.cols;
  const auto largest_of_row = [&](int of, bool exists) {
    if (!exists) return no_number();
    const float* const at = s.row(of) + x;
    return fmaxf(at[0], fmaxf(left ? at[-1] : no_number(), right ? at[1] : no_number()));
  };
  const float* const here = s.row(y) + x;
  const float before = fmaxf(largest_of_row(y - 1, y > 0), left ? here[-1] : no_number());
  const float after = fmaxf(largest_of_row(y + 1, y + 1 < s.rows), right ? here[1] : no_number());
  return !(before >= value) && !(after > value);
}

// Whether an output comes after another one in the order of peaks.
__device__ __forceinline__ bool comes_after(PeakPlace here, PeakPlace previous) {
  return here.value < previous.value || (here.value == previous.value && here.at > previous.at);
}
// A candidate that comes before all outputs.
__device__ __forceinline__ PeakPlace before_all() { return {HUGE_VALF, -1}; }

// Whether output (y, x) is among the 5 x 5 around the peak.
__device__ __forceinline__ bool is_around(int y, int x, int peak_y, int peak_x) {
  return y - peak_y <= 2 && peak_y - y <= 2 && x - peak_x <= 2 && peak_x - x <= 2;
}

// The largest local maximum of row y outside the 5 x 5 outputs around the peak that is larger than
// `least`; NaN if there is none. A lane searches every kLanes-th column, from column `lane` on. All
// lanes of the warp call it together; a lane without a row passes y >= s.rows.
template <int kLanes = warp::kSize, typename Surface>
__device__ __forceinline__ float second_of_row(const Surface& s, int y, int lane, int peak_y,
                                               int peak_x, float least) {
  float best = least;
  bool found = false;
#pragma unroll 1
  for (int x = lane; x < s.cols; x += kLanes) {
    if (y >= s.rows || is_around(y, x, peak_y, peak_x)) continue;
    const float value = s.row(y)[x];
    if (!is_number(value) || value <= best || !is_local_maximum(s, y, x, value)) continue;
    best = value;
    found = true;
  }
  return found ? best : no_number();
}

// The number of equal outputs of a plateau along an axis, from its first output at (y, x) on. It is
// at least two: the next output is known to be equal.
template <typename Surface>
__device__ __forceinline__ int plateau_length(const Surface& s, int y, int x, bool is_y,
                                              float value) {
  const int behind = is_y ? s.rows - y : s.cols - x;
  int equal = 2;
#pragma unroll 1
  while (equal < behind && (is_y ? s.row(y + equal)[x] : s.row(y)[x + equal]) == value) ++equal;
  return equal;
}

// Position of the maximum of the parabola through three neighbouring values, in pixels (steps of a
// shift) from the middle value. The first value is smaller than the middle value, and the last is
// not larger. In float32 the five rounding errors move it by less than 2^-22 pixels (2.5 x 2^-24 in
// total).
template <typename T>
__device__ __forceinline__ T parabola_top(T before, T middle, T after) {
  const T sides = (middle - before) + (middle - after);
  return T(0.5) * ((middle - before) - (middle - after)) / sides;
}
// The same through the logarithms of the values, in double: in float32 the differences of
// logarithms lose too many digits.
__device__ __forceinline__ float gaussian_top(float before, float middle, float after) {
  if (!(before > 0 && after > 0)) return parabola_top(before, middle, after);
  const auto log_of = [](float value) { return log(static_cast<double>(value)); };
  return static_cast<float>(parabola_top(log_of(before), log_of(middle), log_of(after)));
}

// The fit along one axis (a distance from the shift) and its flags. A neighbour outside the window
// does not exist. With upsample the fit is 0 and is set by the interpolation. For two equal outputs
// the fit is half a pixel; centre_of_plateau() has the fit of longer plateaus.
struct AxisFit {
  float sub;
  std::uint32_t flags;
};
__device__ __forceinline__ AxisFit fit_along(float before, float middle, float after,
                                             bool has_before, bool has_after, SubPixel sub_pixel) {
  AxisFit fit{0.0f, 0};
  if ((has_before && before == middle) || (has_after && after == middle)) {
    fit.flags |= kPeakOnPlateau;
  }
  if (!has_before || !has_after) {
    fit.flags |= kPeakAtBorder;
    return fit;
  }
  if (!(before < middle && after <= middle) || sub_pixel == SubPixel::upsample) return fit;
  const float top = sub_pixel == SubPixel::gaussian ? gaussian_top(before, middle, after)
                                                    : parabola_top(before, middle, after);
  // With an infinity among the three values `top` is NaN, and there is no fit.
  if (top - top == 0) fit.sub = top;
  return fit;
}

// Whether the fit must be replaced by the centre of a plateau. `after` is the next output.
__device__ __forceinline__ bool is_on_plateau(const AxisFit& fit, float middle, float after) {
  return fit.sub != 0 && after == middle;
}
// The distance from the first output of a plateau of `equal` outputs to its centre.
__device__ __forceinline__ float centre_of_plateau(int equal) {
  return 0.5f * static_cast<float>(equal - 1);
}

// The smallest float that is at least `value`.
inline float least_float(double value) {
  const auto nearest = static_cast<float>(value);
  return static_cast<double>(nearest) < value
             ? std::nextafter(nearest, std::numeric_limits<float>::infinity())
             : nearest;
}

// The parameters of a problem that kernels need to write its records. Set on the host, passed to
// kernels by value.
struct ResultRequest {
  ResultRequest() = default;
  explicit ResultRequest(const Problem& q)
      : kind(q.fields.result.kind),
        sub_pixel(q.fields.result.sub_pixel),
        first_sy(static_cast<int>(q.window.sy.first)),
        first_sx(static_cast<int>(q.window.sx.first)),
        count(q.fields.result.count),
        least(least_float(q.fields.result.threshold)),
        capacity(static_cast<unsigned long long>(q.fields.result.capacity)) {}

  // The records of pair p: one, or for peaks:k `count`.
  __device__ __forceinline__ Peak* peaks_of(Index p) const {
    return static_cast<Peak*>(out) + (kind == ResultKind::peaks ? p * count : p);
  }
  __device__ __forceinline__ double* sum_of(Index p) const { return static_cast<double*>(out) + p; }
  __device__ __forceinline__ AboveHeader* header() const { return static_cast<AboveHeader*>(out); }

  ResultKind kind = ResultKind::surface;
  SubPixel sub_pixel = SubPixel::parabola;
  int first_sy = 0, first_sx = 0;  // shift of output (0, 0)
  int count = 0;                   // k of peaks:k
  float least = 0;                 // threshold of above
  unsigned long long capacity = 0;
  void* out = nullptr;  // the records of a call
};

// Whether this header can write the records of a problem. It has no medians and cannot interpolate
// to 1/u pixel (peak:upsample=u); a variant that can interpolate passes `interpolates`.
inline Support results_fit(const Problem& q, bool interpolates = false) {
  const Result& result = q.fields.result;
  if (!interpolates && result.kind == ResultKind::peak && result.sub_pixel == SubPixel::upsample) {
    return no("peak:upsample: take a variant that writes surfaces");
  }
  if (result.kind == ResultKind::above && result.of_deviations) {
    return no(
        "above with a threshold of deviations needs the medians of all outputs first: take a "
        "variant that writes surfaces");
  }
  return yes();
}

// The record of the peak at (y, x), by one thread; peak.at is kNowhere if no output is a number.
template <typename Surface>
__device__ __forceinline__ Peak peak_record(const Surface& s, const ResultRequest& request,
                                            SubPixel sub_pixel, PeakPlace peak, int y, int x,
                                            float second, bool all_finite) {
  Peak record{};
  record.second = second;
  record.flags = all_finite ? 0u : std::uint32_t{kPeakNotFinite};
  record.sy = request.first_sy;
  record.sx = request.first_sx;
  if (peak.at == kNowhere) {
    record.value = no_number();
    return record;
  }
  record.value = peak.value;
  record.sy += y;
  record.sx += x;
  // The loop is not unrolled, so that both axes share the long code of a division.
#pragma unroll 1
  for (int axis = 0; axis < 2; ++axis) {
    const bool is_y = axis == 0;
    const int place = is_y ? y : x;
    const bool has_before = place > 0, has_after = place + 1 < (is_y ? s.rows : s.cols);
    const float before = has_before ? s.row(is_y ? y - 1 : y)[is_y ? x : x - 1] : 0.0f;
    const float after = has_after ? s.row(is_y ? y + 1 : y)[is_y ? x : x + 1] : 0.0f;
    AxisFit fit = fit_along(before, peak.value, after, has_before, has_after, sub_pixel);
    if (is_on_plateau(fit, peak.value, after)) {
      fit.sub = centre_of_plateau(plateau_length(s, y, x, is_y, peak.value));
    }
    (is_y ? record.sub_sy : record.sub_sx) = fit.sub;
    record.flags |= fit.flags;
  }
  return record;
}

// For the result above: sets the count to 0. Called by one kernel before the kernel that lists.
__device__ __forceinline__ void clear_header(const ResultRequest& request) {
  if (request.kind != ResultKind::above || blockIdx.x + blockIdx.y + blockIdx.z != 0) return;
  if (threadIdx.x == 0) store_record(request.header(), AboveHeader{0, 0});
}

// Lists the outputs of columns [begin, end) of row y that are at least the threshold, by all lanes
// of a warp. Outputs are `scale` times the values of the surface. The count also includes outputs
// beyond the capacity, which the caller gets as an error. There is one atomic addition per warp.
template <typename Surface>
__device__ __forceinline__ void list_row(const Surface& s, int y, int begin, int end, int lane,
                                         float scale, const ResultRequest& request, Index pair) {
  const float* const row = s.row(y);
  int mine = 0;
#pragma unroll 1
  for (int x = begin + lane; x < end; x += warp::kSize) mine += scale * row[x] >= request.least;
  if (!warp::any(mine > 0)) return;
  const int up_to = warp::scan_add(mine, lane);
  unsigned long long* const count = counter_of(request.header());
  unsigned long long slot = 0;
  if (lane == warp::kSize - 1) slot = atomic_add(count, static_cast<unsigned long long>(up_to));
  slot = warp::shuffle(slot, warp::kSize - 1) + static_cast<unsigned long long>(up_to - mine);
  if (mine == 0) return;
  Detection* const detections = detections_of(request.header());
#pragma unroll 1
  for (int x = begin + lane; x < end; x += warp::kSize) {
    const float value = scale * row[x];
    if (!(value >= request.least)) continue;
    if (slot < request.capacity) {
      store_record(detections + slot, Detection{static_cast<std::int32_t>(pair),
                                                request.first_sy + y, request.first_sx + x, value});
    }
    ++slot;
  }
}

}  // namespace xcorr::device
