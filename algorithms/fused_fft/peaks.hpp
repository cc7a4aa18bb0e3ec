// The result `peak`, from a surface that a warp or a block holds: where the peak (the largest output)
// is; the second peak, which is the largest local maximum outside the 5 x 5 outputs around the peak;
// the fit between outputs; and the record of all this. The rules are those of
// harness/reduce_rules.hpp, in 32 bits; tests/emulation/test_peaks.cpp compares the two.
//
// A surface is a type with
//   int rows, cols;                                       of the window
//   const float* row(int y) const;                        its outputs of row y, 0 <= y < rows
// NaN stands for "no number" wherever a value may be missing. fmaxf ignores it, and a comparison with
// it is false. So is_local_maximum() asks !(neighbour > value): a missing neighbour changes nothing.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "algorithms/device/cuda.hpp"
#include "harness/variant.hpp"

namespace xcorr::fused_fft {

// As in harness/results.hpp.
enum PeakFlag : std::uint32_t {
  kBorder = 1,
  kPlateau = 2,
  kNotFinite = 4,
};
struct alignas(16) PeakRecord {
  float value;
  std::int32_t sy, sx;
  float sub_sy, sub_sx;
  float second;
  std::uint32_t flags, spare;
};
static_assert(sizeof(PeakRecord) == 32);

__device__ __forceinline__ float no_number() { return std::bit_cast<float>(0x7fc00000u); }
__device__ __forceinline__ bool is_number(float value) { return value == value; }

// What may be the peak: an output, or a row with the value of its largest output. `at` says which
// output or row, counted in the order of (sy, sx); kNowhere where there is none.
inline constexpr int kNowhere = 0x7fffffff;
struct PeakPlace {
  float value;
  int at;
};
__device__ __forceinline__ PeakPlace place_of(float value, int at) {
  return is_number(value) ? PeakPlace{value, at} : PeakPlace{-HUGE_VALF, kNowhere};
}
// The one with the larger value; of equal values the one with the smaller `at`.
__device__ __forceinline__ PeakPlace first_of(PeakPlace a, PeakPlace b) {
  return b.value > a.value || (b.value == a.value && b.at < a.at) ? b : a;
}
// The first of the places of kLanes consecutive lanes; all of these lanes get it.
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

// Whether output (y, x), whose value is a number, is at least as large as its neighbours in the
// window and larger than those of them that come before it.
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

// Whether output (y, x) is among the 5 x 5 around the peak.
__device__ __forceinline__ bool is_around(int y, int x, int peak_y, int peak_x) {
  return y - peak_y <= 2 && peak_y - y <= 2 && x - peak_x <= 2 && peak_x - x <= 2;
}

// The largest local maximum of row y that lies outside the 5 x 5 around the peak and is larger than
// `least`; NaN if there is none. A lane looks only at every kLanes-th column, from column `lane` on.
// All lanes of the warp call it together, a lane that has no row with y >= s.rows.
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

// Position of the maximum of the parabola through three neighbouring values, the middle one the
// largest: in pixels (steps of a shift) from the middle one. In float32 its five roundings move it by
// less than 2^-22 pixels (2.5 x 2^-24 in all).
template <typename T>
__device__ __forceinline__ T parabola_top(T before, T middle, T after) {
  const T sides = (middle - before) + (middle - after);
  return T(0.5) * ((middle - before) - (middle - after)) / sides;
}
// The same through the logarithms of the values, in double: differences of logarithms lose too many
// digits in float32.
__device__ __forceinline__ float gaussian_top(float before, float middle, float after) {
  if (!(before > 0 && after > 0)) return parabola_top(before, middle, after);
  const auto log_of = [](float value) { return log(static_cast<double>(value)); };
  return static_cast<float>(parabola_top(log_of(before), log_of(middle), log_of(after)));
}

// What the fit along one axis adds to the shift, and its flags. A neighbour outside the window does
// not exist.
struct AxisFit {
  float sub;
  std::uint32_t flags;
};
__device__ __forceinline__ AxisFit fit_along(float before, float middle, float after,
                                             bool has_before, bool has_after, bool gaussian) {
  AxisFit fit{0.0f, 0};
  if ((has_before && before == middle) || (has_after && after == middle)) fit.flags |= kPlateau;
  if (!has_before || !has_after) {
    fit.flags |= kBorder;
    return fit;
  }
  if (!(before < middle && after < middle)) return fit;
  const float top =
      gaussian ? gaussian_top(before, middle, after) : parabola_top(before, middle, after);
  // With an infinity among the three values `top` is NaN, and there is no fit.
  if (top - top == 0) fit.sub = top;
  return fit;
}

// What kernels need to know of a problem to write the records of its peaks.
struct PeakRequest {
  int first_sy, first_sx;  // shift of output (0, 0)
  bool gaussian;

  PeakRequest() = default;
  explicit PeakRequest(const Problem& q)
      : first_sy(static_cast<int>(q.window.sy.first)),
        first_sx(static_cast<int>(q.window.sx.first)),
        gaussian(q.fields.result.sub_pixel == SubPixel::gaussian) {}
};
// Whether this header can write the records that a problem asks for. It cannot interpolate to 1/u
// pixel (peak:upsample=u), which needs the whole surface, in double.
inline Support peaks_fit(const Problem& q) {
  const bool interpolated =
      q.fields.result.kind == ResultKind::peak && q.fields.result.sub_pixel == SubPixel::upsample;
  return interpolated ? no("peak:upsample: take a variant that writes surfaces") : yes();
}

// The record of the peak at (y, x), by one thread; peak.at is kNowhere where no output is a number.
template <typename Surface>
__device__ __forceinline__ PeakRecord peak_record(const Surface& s, const PeakRequest& request,
                                                  PeakPlace peak, int y, int x, float second,
                                                  bool all_finite) {
  PeakRecord record{};
  record.second = second;
  record.flags = all_finite ? 0u : std::uint32_t{kNotFinite};
  record.sy = request.first_sy;
  record.sx = request.first_sx;
  if (peak.at == kNowhere) {
    record.value = no_number();
    return record;
  }
  record.value = peak.value;
  record.sy += y;
  record.sx += x;
  // A loop that is not unrolled, so that the long code of a division is there once for both axes.
#pragma unroll 1
  for (int axis = 0; axis < 2; ++axis) {
    const bool is_y = axis == 0;
    const int place = is_y ? y : x;
    const bool has_before = place > 0, has_after = place + 1 < (is_y ? s.rows : s.cols);
    const float before = has_before ? s.row(is_y ? y - 1 : y)[is_y ? x : x - 1] : 0.0f;
    const float after = has_after ? s.row(is_y ? y + 1 : y)[is_y ? x : x + 1] : 0.0f;
    const AxisFit fit =
        fit_along(before, peak.value, after, has_before, has_after, request.gaussian);
    (is_y ? record.sub_sy : record.sub_sx) = fit.sub;
    record.flags |= fit.flags;
  }
  return record;
}

}  // namespace xcorr::fused_fft
