// `above:8mad` in about one pass over the products. The threshold of a template is its median plus 8
// median absolute deviations of all its scores, which are known only when all products are.
//
//   survey_kernel    of every 32nd tile: a rough distribution of each template's scores
//   brackets_kernel  from it, about where median and deviation lie, and a bound of the threshold
//   count_kernel     all products: counts of scores below the rough median and within the rough
//                    deviation, histograms of the few scores near these three borders, and a list of
//                    the scores that may be above the threshold (count.hpp)
//   threshold_kernel median and deviation from counts and histograms; all scores have been counted
//                    (threshold.hpp)
//   finish_kernel    the listed scores that are at least the threshold (finish.hpp)
//
// A histogram of all scores would cost more than the products: 69 million additions to shared
// memory. A count costs an instruction, and the histograms get a few scores of a hundred.
//
// Nothing is taken for granted: threshold_kernel sees from the counts whether the brackets hold the
// middle ranks. If they do not, for any template, finish_kernel finds the thresholds of all by
// further passes over the products, 8 bits of the middle numbers at a time, and then lists. It does
// so from the start where there are few shifts, and for `product`, whose scores have no fixed range.
// If only the list is too short, one further pass lists.
#pragma once

#include "algorithms/time_series/detection/products.hpp"

namespace xcorr::time_series {

// Whether the brackets are known not to serve. The kernel that found out has ended.
__device__ __forceinline__ bool is_unknown(const Memory& memory) {
  return memory.state->unknown != 0;
}

// Shared memory of survey_kernel behind that of the products: bins, whose rows lie in different banks,
// and the sum of squares of each template.
inline constexpr int kSurveyPitch = Survey::kBins + 1;
inline constexpr int kSurveyWords = kGroup * (kSurveyPitch + 1);

template <typename Maths, int kTiles>
__global__ void __launch_bounds__(kMostWarps * 32, (kResidentBlocks<Maths, kTiles>))
    survey_kernel(Products p, WarpShape shape, int tiles) {
  wait_for_previous();
  std::uint32_t* const bins = dynamic_shared<std::uint32_t>() + shape.words;
  std::uint32_t* const spread = bins + kGroup * kSurveyPitch;
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  for (int i = thread; i < kSurveyWords; i += threads) bins[i] = 0;
  block::barrier();
  each_tile<Maths, kTiles>(
      p, shape.cut, tiles,
      [&](int i) { return static_cast<int>(static_cast<Index>(i) * shape.cut.tiles / tiles); },
      [&](Sums<kTiles>& sums, const GlobalFactors& factors, int, int) {
        int below[2] = {};
        each_sum(sums, factors, [&](int half, int, float sum, float factor) {
          const float score = sum * factor;
          below[half] += score < 0;
          if (score == score) {
            atomic_add(&bins[sums.row(half) * kSurveyPitch + Survey::bin(score)], 1u);
          }
        });
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          below[half] += warp::shuffle_xor(below[half], 1);
          below[half] += warp::shuffle_xor(below[half], 2);
          if (warp::lane() % 4 == 0) {
            const auto count = static_cast<std::uint32_t>(below[half]);
            atomic_add(&spread[sums.row(half)], count * count);
          }
        }
      });
  block::barrier();
  const Index group = first_template(shape.cut);
  std::uint32_t* const to = p.memory.survey + group * Survey::kBins;
  for (int i = thread; i < kGroup * Survey::kBins; i += threads) {
    const std::uint32_t count = bins[i / Survey::kBins * kSurveyPitch + i % Survey::kBins];
    if (count > 0) atomic_add(&to[i], count);
  }
  for (int i = thread; i < kGroup; i += threads) {
    atomic_add(&p.memory.spread[group + i], static_cast<unsigned long long>(spread[i]));
  }
}

// The distribution of a template in the survey, for a warp.
struct Distribution {
  const std::uint32_t* before;  // of each bin, and of what follows the last
  // The number of scores below `value`; within a bin they count as evenly spread.
  __device__ __forceinline__ float below(float value) const {
    if (!(value > Survey::edge(0))) return 0;
    if (!(value < Survey::edge(Survey::kBins))) return static_cast<float>(before[Survey::kBins]);
    const int bin = Survey::bin(value);
    const float from = Survey::edge(bin), to = Survey::edge(bin + 1);
    return static_cast<float>(before[bin]) +
           static_cast<float>(before[bin + 1] - before[bin]) * ((value - from) / (to - from));
  }
  // The least value in [low, high] whose count(value) is at least `wanted`; count() grows.
  template <typename Count>
  __device__ __forceinline__ static float find(float low, float high, float wanted,
                                               const Count& count) {
    for (int round = 0; round < 5; ++round) {
      const float step = (high - low) / warp::kSize;
      const float mine = low + step * static_cast<float>(warp::lane() + 1);
      // Lanes whose count is too small come first.
      const int too_small = warp::reduce_add(count(mine) < wanted ? 1 : 0);
      low += step * static_cast<float>(smaller(too_small, warp::kSize - 1));
      high = low + step;
    }
    return high;
  }
};

// A warp for each template. kShifts are those of a warp in the survey.
template <int kShifts>
__global__ void __launch_bounds__(warp::kSize) brackets_kernel(Question asked, Memory memory) {
  wait_for_previous();
  let_next_start();
  XCORR_SHARED(std::uint32_t, before, Survey::kBins + 1);
  static_assert(Survey::kBins % warp::kSize != 0);  // a lane writes what follows the last bin
  const int lane = warp::lane(), row = static_cast<int>(blockIdx.x);
  const unsigned long long spread = memory.spread[row];
  const std::uint32_t* const bins = memory.survey + static_cast<Index>(row) * Survey::kBins;
  constexpr int kOfLane = (Survey::kBins + warp::kSize - 1) / warp::kSize;
  std::uint32_t mine[kOfLane], sum = 0;
#pragma unroll
  for (int i = 0; i < kOfLane; ++i) {
    const int bin = lane * kOfLane + i;
    mine[i] = bin < Survey::kBins ? bins[bin] : 0;
    sum += mine[i];
  }
  std::uint32_t up_to = sum;
#pragma unroll
  for (int by = 1; by < warp::kSize; by *= 2) {
    const std::uint32_t other = warp::shuffle_up(up_to, by);
    up_to += lane >= by ? other : 0;
  }
  std::uint32_t here = up_to - sum;
#pragma unroll
  for (int i = 0; i < kOfLane; ++i) {
    const int bin = lane * kOfLane + i;
    if (bin <= Survey::kBins) before[bin] = here;
    here += mine[i];
  }
  warp::barrier();
  const Distribution of{before};
  const auto scores = static_cast<float>(before[Survey::kBins]);
  const float most = Survey::edge(Survey::kBins);
  const float median =
      Distribution::find(-most, most, scores / 2, [&](float v) { return of.below(v); });
  const auto within = [&](float v) { return of.below(median + v) - of.below(median - v); };
  const float deviation = Distribution::find(0, 2 * most, scores / 2, within);
  // Counts of a sample of independent scores vary by sqrt(scores) / 2 about the middle. Those of
  // neighbours are not independent: what the counts of warps vary by says how much more it is.
  const float share = of.below(0) / scores;
  const float warps = scores / static_cast<float>(kShifts);
  const float mean = of.below(0) / warps;
  const auto squares = static_cast<float>(spread) / warps;
  const float independent = static_cast<float>(kShifts) * share * (1 - share);
  const float more = warps < 8 ? 4.0f : fmaxf((squares - mean * mean) / independent, 1.0f);
  const float varies = 4 * std::sqrt(more * scores) / 2;
  // Scores of a unit, at the borders.
  const float step = deviation / 8;
  const float at_median = within(step) / (2 * step);
  const float at_deviation = (within(deviation + step) - within(deviation - step)) / (2 * step);
  Bracket bracket;
  bracket.median = median;
  bracket.deviation = deviation;
  bracket.near_median = varies / at_median + deviation * 0x1p-9f;
  bracket.near_deviation = varies / at_deviation + bracket.near_median;
  bracket.per_bin = asked.per_bin;
  const float deviations = static_cast<float>(asked.deviations);
  bracket.cut = median - bracket.near_median + deviations * deviation -
                std::fabs(deviations) * bracket.near_deviation;
  // Both brackets fit into a histogram, and do not meet.
  const auto half = static_cast<float>(memory.bins / 2 - 2);
  const bool good = bracket.near_deviation * asked.per_bin < half &&
                    deviation - bracket.near_deviation > bracket.near_median;
  if (lane != 0) return;
  if (!good) {  // a NaN, too
    bracket = {not_a_number(), not_a_number(), 0, 0, 0, not_a_number()};
    memory.state->unknown = 1;
  }
  memory.brackets[row] = bracket;
}

}  // namespace xcorr::time_series
