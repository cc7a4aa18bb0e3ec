// The fourth kernel of `above:8mad` (survey.hpp): thresholds from counts and histograms.
#pragma once

#include "algorithms/time_series/detection/survey.hpp"

namespace xcorr::time_series {

// Sums over a block: of `mine` over the threads before this one and over the first half of the
// threads, and of `other` over all threads. Each sum of a kernel has its own shared memory
// (kNumber), so that no barrier is needed before the next sum.
struct ThreadSums {
  std::int32_t before, half, others;
};
template <int kNumber>
__device__ __forceinline__ ThreadSums sums_of_threads(std::int32_t mine, std::int32_t other) {
  constexpr int kWarps = SeriesTuning::kThresholdThreads / warp::kSize;
  static_assert(kWarps <= warp::kSize && kWarps % 2 == 0);
  XCORR_SHARED(std::int32_t, of_warp, 2 * kWarps);
  const int lane = warp::lane(), warp = static_cast<int>(threadIdx.x) / warp::kSize;
  const std::int32_t of_lane = warp::scan_add(mine, lane), all = warp::reduce_add(other);
  if (lane == warp::kSize - 1) {
    of_warp[2 * warp] = of_lane;
    of_warp[2 * warp + 1] = all;
  }
  block::barrier();
  const std::int32_t warps = warp::scan_add(lane < kWarps ? of_warp[2 * lane] : 0, lane);
  const std::int32_t warps_before = warp::shuffle(warps, warp - 1);
  return {of_lane - mine + (warp > 0 ? warps_before : 0), warp::shuffle(warps, kWarps / 2 - 1),
          warp::reduce_add(lane < kWarps ? of_warp[2 * lane + 1] : 0)};
}

// The bins that contain two ranks; -1 where no bin does.
struct Bins {
  int of[2];
};
// A thread has the counts of kOfThread bins from threadIdx.x * kOfThread on. The number of scores
// before bin kBins / 2 is `before_middle` plus the sum of `more` over all threads.
template <int kNumber, int kOfThread>
__device__ __forceinline__ Bins bins_of_ranks(const std::int32_t (&counts)[kOfThread],
                                              Index before_middle, std::int32_t more,
                                              const Index (&ranks)[2]) {
  XCORR_SHARED(int, found, 2);
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < 2) found[thread] = -1;
  std::int32_t sum = 0;
#pragma unroll
  for (int i = 0; i < kOfThread; ++i) sum += counts[i];
  const ThreadSums sums = sums_of_threads<kNumber>(sum, more);
  Index here = before_middle + sums.others - sums.half + sums.before;
#pragma unroll
  for (int i = 0; i < kOfThread; ++i) {
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      if (here <= ranks[k] && ranks[k] < here + counts[i]) found[k] = thread * kOfThread + i;
    }
    here += counts[i];
  }
  block::barrier();
  return {{found[0], found[1]}};
}

// One block per template. A bracket has kBins bins.
template <int kBins>
__global__ void __launch_bounds__(SeriesTuning::kThresholdThreads, 1)
    threshold_kernel(Series q, Question asked, Memory memory) {
  // Histograms that are read at unaligned addresses are staged in shared memory if they are small.
  constexpr bool kStaged = kBins <= 4096;
  constexpr int half = kBins / 2, kOfThread = kBins / SeriesTuning::kThresholdThreads;
  struct alignas(16) Four {
    std::uint32_t of[4];
  };
  XCORR_SHARED(Four, staged, kStaged ? 2 * kBins / 4 : 1);
  wait_for_previous();
  let_next_start();
  const int row = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  const Bracket bracket = memory.brackets[row];
  const Counts counts = memory.counts[row];
  const Index scores = static_cast<Index>(q.shifts) - memory.state->not_scores;
  const std::uint32_t* const histogram = memory.histogram + static_cast<Index>(row) * 3 * kBins;
  const auto fours = [&](int which) {
    return reinterpret_cast<const Four*>(histogram + which * kBins);
  };
  std::int32_t of_median[kOfThread];
#pragma unroll
  for (int i = 0; i < kOfThread; i += 4) {
    const Four four = fours(0)[(thread * kOfThread + i) / 4];
#pragma unroll
    for (int k = 0; k < 4; ++k) of_median[i + k] = static_cast<std::int32_t>(four.of[k]);
  }
  if constexpr (kStaged) {
#pragma unroll 2
    for (int i = thread; i < 2 * kBins / 4; i += SeriesTuning::kThresholdThreads) {
      staged[i] = fours(1)[i];
    }
  }
  // Without this bracket nothing was counted. `memory.state->unknown` cannot be tested here: another
  // block may set it between the reads of two threads, of which then one would miss the barrier.
  if (!(bracket.median == bracket.median)) return;
  // Histogram and bin of the scores of 0.
  const bool zero_at_median = std::fabs(bracket.median) < bracket.near_median;
  const float zero =
      zero_at_median ? -bracket.median : std::fabs(bracket.median) - bracket.deviation;
  const int zero_histogram = zero_at_median ? 0 : -bracket.median > 0 ? 1 : 2;
  const int zero_bin = half + static_cast<int>(std::floor(zero * bracket.per_bin));
  const auto zeros = [&](int which, int bin) -> std::int32_t {
    return which == zero_histogram && bin == zero_bin ? static_cast<std::int32_t>(counts.zeros) : 0;
  };
  // Count of a bin of histogram 1 or 2.
  const auto count = [&](int which, int bin) -> std::int32_t {
    if (bin < 0 || bin >= kBins) return 0;
    const int at = which * kBins + bin;
    const std::uint32_t found =
        kStaged ? reinterpret_cast<const std::uint32_t*>(staged)[at - kBins] : histogram[at];
    return static_cast<std::int32_t>(found) + zeros(which, bin);
  };
  const Index ranks[2] = {(scores - 1) / 2, scores / 2};
  bool good = scores > 0;

#pragma unroll
  for (int i = 0; i < kOfThread; ++i) of_median[i] += zeros(0, thread * kOfThread + i);
  const Bins at = bins_of_ranks<0>(of_median, counts.below, 0, ranks);
  // Distance of the median from the estimated median, in bins.
  const int moved = (at.of[0] + at.of[1]) / 2 - half, size = moved < 0 ? -moved : moved;
  // Bin i of the deviations counts the scores above the median whose distance from the estimated
  // median is `moved` bins larger, and those below it whose distance is `moved` bins smaller.
  const int side = moved < 0 ? 2 : 1;
  std::int32_t nearer = 0, of_deviation[kOfThread];
  for (int i = thread; i < size; i += SeriesTuning::kThresholdThreads) {
    nearer += count(side, half + i) - count(3 - side, half - 1 - i);
  }
#pragma unroll
  for (int i = 0; i < kOfThread; ++i) {
    const int bin = thread * kOfThread + i;
    of_deviation[i] = count(1, bin + moved) + count(2, bin - moved);
  }
  const Bins far = bins_of_ranks<1>(of_deviation, counts.within, nearer, ranks);
  if (thread != 0) return;
  for (int k = 0; k < 2; ++k) {
    // Outside a bracket the histograms are empty.
    const auto holds = [&](int bin, int margin, float near) {
      const int from_middle = bin < half ? half - bin : bin - half;
      return bin >= 0 && from_middle + margin + 1 < static_cast<int>(near * bracket.per_bin);
    };
    good &=
        holds(at.of[k], 0, bracket.near_median) && holds(far.of[k], size, bracket.near_deviation);
  }
  if (!good) {
    memory.state->unknown = 1;
    return;
  }
  // The mean of the centres of two bins.
  const auto middle = [&](float from, const Bins& of) {
    return from + (0.5 * (of.of[0] + of.of[1] + 1) - half) / static_cast<double>(bracket.per_bin);
  };
  memory.thresholds[row] = {
      float_from(middle(bracket.median, at) + asked.deviations * middle(bracket.deviation, far))};
}

}  // namespace xcorr::time_series
