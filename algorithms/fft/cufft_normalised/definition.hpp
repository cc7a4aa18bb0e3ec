// Scores for which sums from transforms are not accurate enough (scores.hpp), by their definition
// in float64.
//
//   definition_kernel  one warp per note, which has neighbouring shifts
#pragma once

#include "algorithms/fft/cufft_normalised/scores.hpp"

namespace xcorr::fft {

// The score of one shift by its definition, in two passes, computed by a warp.
template <bool kCentred>
__device__ __forceinline__ double by_definition(const ScoreArguments& a, Pair own, int sy, int sx) {
  const MaskedMatrix left(a.of, own.left), right(a.of, own.right);
  // Values are scaled, so that their squares neither overflow nor underflow. The pivots of their
  // planes are not subtracted, since an outlier may move a pivot far from this overlap.
  const double l_scale = a.facts[own.left].scale, r_scale = a.facts[own.right].scale;
  const OverlapRectangle of = a.in_left(sy, sx);
  const auto each = [&](const auto& use) {
    for (int i = warp::lane(); i < of.area(); i += warp::kSize) {
      const int y = of.y.first + i / of.x.count, x = of.x.first + i % of.x.count;
      const Index l = y * left.cols + x, r = (y + sy) * right.cols + x + sx;
      if (left.is_valid(l) && right.is_valid(r)) {
        use(left.values[l] * l_scale, right.values[r] * r_scale);
      }
    }
  };
  double n = 0, left_sum = 0, right_sum = 0, left_most = 0, right_most = 0;
  each([&](double l, double r) {
    n += 1;
    left_sum += l;
    right_sum += r;
    left_most = fabs(l) > left_most ? fabs(l) : left_most;
    right_most = fabs(r) > right_most ? fabs(r) : right_most;
  });
  n = warp::reduce_add(n);
  const double left_mean = kCentred ? warp::reduce_add(left_sum) / n : 0;
  const double right_mean = kCentred ? warp::reduce_add(right_sum) / n : 0;
  left_most = largest_of_lanes(left_most);
  right_most = largest_of_lanes(right_most);
  double products = 0, left_squares = 0, right_squares = 0;
  each([&](double l, double r) {
    products += (l - left_mean) * (r - right_mean);
    left_squares += (l - left_mean) * (l - left_mean);
    right_squares += (r - right_mean) * (r - right_mean);
  });
  products = warp::reduce_add(products);
  left_squares = warp::reduce_add(left_squares);
  right_squares = warp::reduce_add(right_squares);
  const auto is_constant = [n](double squares, double most) {
    const double step = 8 * 0x1p-24 * most;
    return squares <= step * step * n;
  };
  if (is_constant(left_squares, left_most) || is_constant(right_squares, right_most)) return 0;
  const double score = products / (sqrt(left_squares) * sqrt(right_squares));
  return score > 1 ? 1 : score < -1 ? -1 : score;
}

// A warp processes the 32 shifts of a note, for a group of pairs. `tiles`: blocks of the scores
// kernel along x. grid: notes, in a stride.
template <bool kCentred>
__global__ void __launch_bounds__(kScoreThreads, 2)
    definition_kernel(ScoreArguments a, std::uint32_t tiles) {
  const Index count = *a.uncertain, warps = static_cast<Index>(tiles) * kScoreWarps;
  for (Index i = static_cast<Index>(blockIdx.x) * kScoreWarps + threadIdx.x / warp::kSize;
       i < count; i += static_cast<Index>(gridDim.x) * kScoreWarps) {
    const Index note = a.notes[i], of_group = note / warps, group = of_group / 4;
    const auto at = static_cast<std::uint32_t>(note - of_group * warps);
    const auto which = static_cast<std::uint32_t>(of_group % 4);
    ShiftNumbers numbers(a, at / kScoreWarps, at % kScoreWarps);
    numbers.move(a, which);
    const auto [row, col, exists] = numbers;
    for (int k = 0; k < a.of_thread && group * a.of_thread + k < a.pairs.count; ++k) {
      const Index pair = group * a.of_thread + k;
      float* const out = a.outputs(pair) + (row * a.out_cols + col);
      const float value = exists ? *out : 0.0f;
      const int unsure = value != value;
      const Pair own = a.pairs.matrices(pair);
      for (int lane = 0; lane < warp::kSize; ++lane) {
        if (!warp::shuffle(unsure, lane)) continue;
        const double score = by_definition<kCentred>(a, own, a.first_sy + warp::shuffle(row, lane),
                                                     a.first_sx + warp::shuffle(col, lane));
        if (warp::lane() == lane) *out = static_cast<float>(score);
      }
    }
  }
}

}  // namespace xcorr::fft
