// The score covariance: subtracts the mean of each matrix. The results are in the workspace.
#pragma once

#include "algorithms/blocks/peaks.hpp"
#include "algorithms/tiled/tiled_direct_peak/tuning.hpp"

namespace xcorr::tiled {

// Blocks take matrices in turn: lefts, then rights. Means are computed in double.
static __global__ void __launch_bounds__(PeakTuning::kCentreWarps* warp::kSize)
    centre_kernel(const float* __restrict__ left, const float* __restrict__ right,
                  float* __restrict__ centred_left, float* __restrict__ centred_right, Index lefts,
                  Index left_size, Index matrices, Index right_size) {
  XCORR_SHARED(TeamScratch, scratch, 1);
  XCORR_SHARED(double, mean, 1);
  const int thread = static_cast<int>(threadIdx.x);
  const BlockTeam team{thread % warp::kSize, thread / warp::kSize, PeakTuning::kCentreWarps,
                       &scratch[0]};
#pragma unroll 1
  for (Index m = blockIdx.x; m < matrices; m += gridDim.x) {
    const bool is_left = m < lefts;
    const Index size = is_left ? left_size : right_size;
    const float* const from = is_left ? left + m * size : right + (m - lefts) * size;
    float* const centred = is_left ? centred_left + m * size : centred_right + (m - lefts) * size;
    double sum = 0;
    for (Index i = thread; i < size; i += PeakTuning::kCentreWarps * warp::kSize) {
      sum += static_cast<double>(from[i]);
    }
    sum = team.sum_of_all(warp::reduce_add(sum));
    if (thread == 0) mean[0] = sum / static_cast<double>(size);
    block::barrier();
    for (Index i = thread; i < size; i += PeakTuning::kCentreWarps * warp::kSize) {
      centred[i] = static_cast<float>(static_cast<double>(from[i]) - mean[0]);
    }
    block::barrier();  // the next matrix has another mean
  }
}

}  // namespace xcorr::tiled
