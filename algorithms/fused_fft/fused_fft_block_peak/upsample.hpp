// peak:upsample=u of a surface that lies in the tile. The surface is taken as one period of a
// periodic function. Its Fourier series is evaluated at multiples of 1 / u in a region of 1.5
// pixels around the peak (Guizar-Sicairos et al. 2008):
//
//   sum over y, x of  D(y - peak_y - dy)  out[y][x]  D(x - peak_x - dx),
//
// with D the Dirichlet kernel. That is a product of three matrices. The outer two depend on the
// distance from the peak alone, so the plan stores tables of them. A block computes 32 columns of
// points at a time: first over all columns of the surface, for each of its rows, then over all rows
// of the surface.
#pragma once

#include <cmath>

#include "algorithms/blocks/peaks.hpp"
#include "algorithms/fused_fft/roots.hpp"
#include "algorithms/fused_fft/surface_rows.hpp"

namespace xcorr::fused_fft {

// Made on the host and passed to kernels by value.
struct Upsample {
  Upsample() = default;
  explicit Upsample(const Problem& q)
      : factor(q.fields.result.upsample),
        points((3 * factor + 1) / 2),
        pitch(ceil_div(points, kTogether) * kTogether) {}

  static constexpr int kTogether = 32;  // points along x
  int factor = 1;
  int points = 0, pitch = 0;          // points along an axis; pitch of a table
  const float* of_rows = nullptr;     // [distance along y][pitch]
  const float* of_columns = nullptr;  // [distance along x][pitch]

  // The amount that point i adds to the shift of the peak along an axis of `length` outputs.
  __device__ __forceinline__ float offset(int i, int length) const {
    if (length == 1) return 0.0f;
    return static_cast<float>(static_cast<double>(i - points / 2) / factor);
  }
};

inline bool is_upsampled(const Problem& q) {
  return q.fields.result.kind == ResultKind::peak &&
         q.fields.result.sub_pixel == SubPixel::upsample;
}

// Number of floats of the table of an axis of `length` outputs, rounded up to whole pieces.
inline Index table_size(const Upsample& up, Index length) {
  constexpr Index kPiece = sizeof(RootPiece) / sizeof(float);
  return ceil_div(length * up.pitch, kPiece) * kPiece;
}
// Weight, at a point, of the output that lies `distance` after the peak.
inline double weight_of(const Upsample& up, Index length, Index distance, Index point) {
  constexpr double kPi = 3.14159265358979323846;
  // Distance of the output from the point in units of 1 / factor; an integer, so without rounding.
  const Index steps = distance * up.factor - (point - up.points / 2);
  if (steps % (length * up.factor) == 0) return 1;
  if (steps % up.factor == 0) return 0;
  const double x = static_cast<double>(steps) / up.factor, n = static_cast<double>(length);
  const double weight = std::sin(kPi * x) / (n * std::sin(kPi * x / n));
  // For an even length the coefficient of the highest frequency is split between both signs.
  return length % 2 == 0 ? weight * std::cos(kPi * x / n) : weight;
}
inline void store_weights(const Upsample& up, Index length, float* to, void* stream) {
  RootPiece piece{};
  for (Index e = 0; e < table_size(up, length); ++e) {
    const Index distance = e / up.pitch, point = e % up.pitch;
    const bool exists = distance < length && point < up.points;
    const auto weight = exists ? static_cast<float>(weight_of(up, length, distance, point)) : 0.0f;
    Complex& two = piece.w[e / 2 % 256];
    (e % 2 ? two.im : two.re) = weight;
    if (e % 512 == 511) {
      launch(store_roots, dim3(1), dim3(128), 0, stream, piece,
             reinterpret_cast<Complex*>(to + e - 511));
    }
  }
}

// Four consecutive weights of a table.
struct alignas(16) FourWeights {
  float of[4];
};

// Sets the sub-pixel shifts of a record, by all threads of the block, which have met since the tile
// was complete. When it returns, no thread reads the tile any more. `along` has room for rows x
// kTogether floats.
template <int kN>
__device__ __forceinline__ void interpolate_peak(const TileSurface<kN>& s, const Upsample& up,
                                                 int peak_y, int peak_x, const BlockTeam& team,
                                                 float* along, Peak* to) {
  constexpr int kTogether = Upsample::kTogether, kRows = 4;
  const int lane = team.lane;
  // Distances start with that of the first row or column from the peak, modulo the length.
  const int first_y = peak_y > 0 ? s.rows - peak_y : 0;
  const int first_x = peak_x > 0 ? s.cols - peak_x : 0;
  PeakPlace best = no_place();
#pragma unroll 1
  for (int first = 0; first < up.pitch; first += kTogether) {
#pragma unroll 1
    for (int y = kRows * team.warp; y < s.rows; y += kRows * team.warps) {
      const float* row[kRows];
      float sum[kRows] = {};
#pragma unroll
      for (int k = 0; k < kRows; ++k) row[k] = s.row(y + k < s.rows ? y + k : y);
      int distance = first_x;
#pragma unroll 1
      for (int x = 0; x < s.cols; ++x) {
        const float weight = up.of_columns[distance * up.pitch + first + lane];
#pragma unroll
        for (int k = 0; k < kRows; ++k) sum[k] += weight * row[k][x];
        distance = distance + 1 < s.cols ? distance + 1 : 0;
      }
#pragma unroll
      for (int k = 0; k < kRows; ++k) {
        if (y + k < s.rows) along[(y + k) * kTogether + lane] = sum[k];
      }
    }
    block::barrier();
#pragma unroll 1
    for (int i = 4 * team.warp; i < up.points; i += 4 * team.warps) {
      float sum[4] = {};
      int distance = first_y;
#pragma unroll 1
      for (int y = 0; y < s.rows; ++y) {
        const auto weights =
            *reinterpret_cast<const FourWeights*>(up.of_rows + distance * up.pitch + i);
        const float value = along[y * kTogether + lane];
#pragma unroll
        for (int k = 0; k < 4; ++k) sum[k] += weights.of[k] * value;
        distance = distance + 1 < s.rows ? distance + 1 : 0;
      }
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        if (i + k >= up.points || first + lane >= up.points) continue;
        best = first_of(best, place_of(sum[k], (i + k) * up.points + first + lane));
      }
    }
    block::barrier();  // the next points overwrite these
  }
  best = team.first_of_all(first_of_lanes(best), 0);
  if (team.warp == 0 && lane == 0 && best.at != kNowhere) {
    to->sub_sy = up.offset(best.at / up.points, s.rows);
    to->sub_sx = up.offset(best.at % up.points, s.cols);
  }
}

}  // namespace xcorr::fused_fft
