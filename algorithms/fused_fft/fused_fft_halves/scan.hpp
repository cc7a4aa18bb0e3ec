// The peak of a surface whose rows' largest outputs are known. All warps of a block search it, and
// each reads few rows. ../row_results.hpp has the other results.
#pragma once

#include "algorithms/blocks/peaks.hpp"
#include "algorithms/device/cuda.hpp"
#include "algorithms/fused_fft/fused_fft_halves/tile.hpp"
#include "algorithms/fused_fft/row_results.hpp"

namespace xcorr::fused_fft {

// The outputs of a small window, dense.
struct SmallSurface {
  const float* data;
  int rows, cols;
  __device__ __forceinline__ const float* row(int y) const { return data + y * cols; }
};
// All outputs. Of the two real rows of a complex row the first lies in the tile, where the complex
// row was, and the second in the workspace.
template <int kN>
struct WholeSurface {
  const Complex *tile, *other;
  int rows, cols;
  __device__ __forceinline__ const float* row(int y) const {
    using T = HalvesTile<kN>;
    const int above = y / (2 * T::second), rest = y - above * (2 * T::second);
    const bool is_first = rest < T::second;
    const int pair = above * T::second + (is_first ? rest : rest - T::second);
    const Complex* const in_tile = tile + pair * T::pitch;
    const Complex* const in_other = other + pair * T::half;
    return reinterpret_cast<const float*>(is_first ? in_tile : in_other);
  }
};

// What the warps of a block exchange about a surface.
template <int kN>
struct SurfaceFacts {
  static constexpr int kMostWarps = 32;
  float of_rows[kN];  // the largest output of each row
  float seconds[kMostWarps];
  int not_finite[kMostWarps];
  std::uint32_t pair, spare;
  TeamScratch team;
};

// The largest of the outputs that a lane has seen, and whether all were finite, in two instructions
// per output.
struct Seen {
  float largest = no_number();
  float zero = 0.0f;  // NaN once an output was NaN or infinite
  __device__ __forceinline__ void see(float value) {
    largest = fmaxf(largest, value);
    zero += 0.0f * value;
  }
  __device__ __forceinline__ void see(float value, bool exists) {
    largest = fmaxf(largest, exists ? value : no_number());
    zero += exists ? 0.0f * value : 0.0f;
  }
};

// The largest local maximum of row y outside the 5 x 5 around the peak that exceeds `least`;
// `least` if there is none. All lanes of a warp get it.
template <typename Surface>
__device__ __forceinline__ float second_in_row(const Surface& s, int y, int lane, int peak_y,
                                               int peak_x, float least) {
  const float* const row = s.row(y);
#pragma unroll 1
  for (int x = lane; x < s.cols; x += warp::kSize) {
    const float value = row[x];
    if (!(value > least) || is_around(y, x, peak_y, peak_x)) continue;
    if (is_local_maximum(s, y, x, value)) least = value;
  }
  warp::barrier();
  return largest_of_lanes(least);
}

// Writes the record of a surface, by all threads of the block, which have met a barrier since
// of_rows and not_finite were written.
template <int kN, typename Surface>
__device__ __forceinline__ void find_peak(const Surface& s, const ResultRequest& request,
                                          SurfaceFacts<kN>& facts, Peak* to) {
  // Opaque to the compiler, so that it computes nothing before the passes, which use all registers.
  const int thread = opaque(static_cast<int>(threadIdx.x));
  const int lane = thread % warp::kSize, warp = thread / warp::kSize;
  const int warps = static_cast<int>(blockDim.x) / warp::kSize;
  PeakPlace peak{-HUGE_VALF, kNowhere};
#pragma unroll 1
  for (int y = lane; y < s.rows; y += warp::kSize) {
    peak = first_of(peak, place_of(facts.of_rows[y], y));
  }
  peak = first_of_lanes(peak);
  const bool exists = peak.at != kNowhere;
  const int peak_y = exists ? peak.at : 0;
  int peak_x = kNowhere;
  {
    const float* const row = s.row(peak_y);
#pragma unroll 1
    for (int x = s.cols - 1 - lane; x >= 0; x -= warp::kSize) {
      if (row[x] == peak.value) peak_x = x;
    }
    warp::barrier();
    peak_x = exists ? first_of_lanes(PeakPlace{0.0f, peak_x}).at : 0;
  }
  // A warp searches its rows in the order of their largest outputs, as long as these exceed what
  // was found.
  float second = -HUGE_VALF;
  const int mine = warp + warps * lane;
  float of_mine = exists && mine < s.rows ? facts.of_rows[mine] : no_number();
  while (warp::any(of_mine > second)) {
    const PeakPlace next = first_of_lanes(place_of(of_mine, mine));
    second = second_in_row(s, next.at, lane, peak_y, peak_x, second);
    if (mine == next.at) of_mine = no_number();
  }
  if (lane == 0) facts.seconds[warp] = second;
  const bool not_finite = warp::any(facts.not_finite[lane < warps ? lane : 0] != 0);
  block::barrier();
  if (warp != 0) return;
  second = largest_of_lanes(facts.seconds[lane < warps ? lane : 0]);
  if (lane != 0) return;
  if (exists) peak.value = s.row(peak_y)[peak_x];
  store_record(to, peak_record(s, request, request.sub_pixel, peak, peak_y, peak_x,
                               second > -HUGE_VALF ? second : no_number(), !not_finite));
}

// Writes the result sum, above or peaks, by all threads, as find_peak().
template <int kN, typename Surface>
__device__ __forceinline__ void find_rows_result(const Surface& s, const ResultRequest& request,
                                                 SurfaceFacts<kN>& facts, Index pair) {
  const int thread = opaque(static_cast<int>(threadIdx.x));  // as above
  const int lane = thread % warp::kSize, warp = thread / warp::kSize;
  const int warps = static_cast<int>(blockDim.x) / warp::kSize;
  const bool not_finite = warp::any(facts.not_finite[lane < warps ? lane : 0] != 0);
  const int y = warp + warps * lane;
  write_result(s, BlockTeam{lane, warp, warps, &facts.team}, y,
               y < s.rows ? facts.of_rows[y] : no_number(), !not_finite, 1.0f, request, pair);
}

}  // namespace xcorr::fused_fft
