// `above:8mad` in about one pass over the products. The threshold of a template is its median plus 8
// median absolute deviations of all its scores, which are known only when all products are.
//
//   survey_kernel    of every 32nd tile: a rough distribution of each template's scores
//   brackets_kernel  from it, about where median and deviation lie, and a bound of the threshold
//   count_kernel     all products: counts of scores below the rough median and within the rough
//                    deviation, histograms of the few scores near these three borders, and a list of
//                    the scores that may be above the threshold
//   threshold_kernel median and deviation from counts and histograms; all scores have been counted
//   finish_kernel    the listed scores that are at least the threshold
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

// Rows of a group lie in different banks.
inline constexpr int kSurveyPitch = Survey::kBins + 1;

template <typename Maths, int kTiles>
__global__ void __launch_bounds__(kMostWarps * 32, (kResidentBlocks<Maths, kTiles>))
    survey_kernel(Products p, int tiles) {
  XCORR_SHARED(std::uint32_t, bins, kGroup* kSurveyPitch);
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  for (int i = thread; i < kGroup * kSurveyPitch; i += threads) bins[i] = 0;
  block::barrier();
  each_tile<Maths, kTiles>(
      p, tiles,
      [&](int i) { return static_cast<int>(static_cast<Index>(i) * p.cut.tiles / tiles); },
      [&](Sums<kTiles>& sums, const float* factors, int first, int) {
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
            const double count = below[half];
            atomic_add(&p.memory.spread[first + sums.row(half)], count * count);
          }
        }
      });
  block::barrier();
  std::uint32_t* const to =
      p.memory.survey + static_cast<Index>(first_template(p.cut)) * Survey::kBins;
  for (int i = thread; i < kGroup * Survey::kBins; i += threads) {
    const std::uint32_t count = bins[i / Survey::kBins * kSurveyPitch + i % Survey::kBins];
    if (count > 0) atomic_add(&to[i], count);
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
  XCORR_SHARED(std::uint32_t, before, Survey::kBins + 1);
  const int lane = warp::lane(), row = static_cast<int>(blockIdx.x);
  const std::uint32_t* const bins = memory.survey + static_cast<Index>(row) * Survey::kBins;
  constexpr int kOfLane = (Survey::kBins + warp::kSize - 1) / warp::kSize;
  std::uint32_t sum = 0;
  for (int i = 0; i < kOfLane; ++i) {
    const int bin = lane * kOfLane + i;
    sum += bin < Survey::kBins ? bins[bin] : 0;
  }
  std::uint32_t up_to = sum;
  for (int by = 1; by < warp::kSize; by *= 2) {
    const std::uint32_t other = warp::shuffle_up(up_to, by);
    up_to += lane >= by ? other : 0;
  }
  std::uint32_t here = up_to - sum;
  for (int i = 0; i < kOfLane; ++i) {
    const int bin = lane * kOfLane + i;
    if (bin > Survey::kBins) continue;
    before[bin] = here;
    here += bin < Survey::kBins ? bins[bin] : 0;
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
  const auto squares = static_cast<float>(memory.spread[row]) / warps;
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

// Three words for each template of a group, as in Counts.
inline constexpr std::size_t kCountBytes = 3 * kGroup * sizeof(std::uint32_t);

template <typename Engine>
__global__ void __launch_bounds__(Engine::kMostThreads, Engine::kBlocks)
    count_kernel(Products p, typename Engine::Shape shape) {
  if (is_unknown(p.memory)) return;
  XCORR_SHARED(std::uint32_t, of_group, kCountBytes / sizeof(std::uint32_t));
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  for (int i = thread; i < 3 * kGroup; i += threads) of_group[i] = 0;
  block::barrier();
  Engine::each(p, shape, [&](auto& sums, const float* factors, int first, int shift) {
    const int bins = p.memory.bins;
    std::uint32_t* const histograms = p.memory.histogram + bins / 2;  // their middles
    bool any = false;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first + opaque(sums.row(half));
      const float none = not_a_number();
      Bracket bracket = {none, none, none, none, none, none};
      if (row < p.q.templates) bracket = p.memory.brackets[row];
      std::uint32_t below = 0, within = 0, zeros = 0;
      float farthest = -2;
      each_sum_of(sums, half, factors, [&](int, float sum, float factor) {
        // The distance from the rough median, and how much larger it is than the rough deviation.
        const float distance = std::fma(sum, factor, -bracket.median);
        const float beyond = std::fabs(distance) - bracket.deviation;
        // The bit of the sign; it is 0 of a NaN.
        below += bits_of(distance) >> 31;
        within += bits_of(beyond) >> 31;
        farthest = fmaxf(farthest, distance);
        const bool at_median = std::fabs(distance) < bracket.near_median;
        if (!at_median && !(std::fabs(beyond) < bracket.near_deviation)) return;
        // Where a part of a signal is missing, many scores are 0, and all would be added to one bin.
        if (distance == -bracket.median) {
          ++zeros;
          return;
        }
        const float place = (at_median ? distance : beyond) * p.asked.per_bin;
        const int histogram = at_median ? 0 : distance > 0 ? 1 : 2;
        atomic_add(histograms + (row * 3 + histogram) * bins + static_cast<int>(std::floor(place)),
                   1u);
      });
      const std::uint32_t counts[3] = {below, within, zeros};
#pragma unroll
      for (int i = 0; i < 3; ++i) {
        if (counts[i] > 0) atomic_add(&of_group[sums.row(half) * 3 + i], counts[i]);
      }
      // A score may be rounded in another way than its distance.
      any |= farthest + bracket.median >= bracket.cut - 0x1p-20f;
    }
    if (warp::any(any)) {
      float least[2];
      for (int half = 0; half < 2; ++half) {
        const int row = first + sums.row(half);
        least[half] = row < p.q.templates ? p.memory.brackets[row].cut : not_a_number();
      }
      list_scores(sums, factors, p.asked.limit, least, first, p.q.first + shift,
                  &p.memory.state->candidates, p.memory.candidate_list, p.memory.candidates);
    }
  });
  block::barrier();
  auto* const to = reinterpret_cast<std::uint32_t*>(p.memory.counts + first_template(p.cut));
  for (int i = thread; i < 3 * kGroup; i += threads) {
    if (of_group[i] > 0) atomic_add(to + i, of_group[i]);
  }
}

inline constexpr int kThresholdThreads = static_cast<int>(small_if_emulated(1024, 64));

// The sum over the threads of a block of kThresholdThreads, for all of them, and what comes before
// this thread.
struct Sum {
  Index all, before;
};
__device__ __forceinline__ Sum sum_of_threads(std::int32_t mine) {
  constexpr int kWarps = kThresholdThreads / warp::kSize;
  XCORR_SHARED(std::int32_t, of_warp, kWarps);
  const int thread = static_cast<int>(threadIdx.x);
  std::int32_t up_to = mine;
  for (int by = 1; by < warp::kSize; by *= 2) {
    const std::int32_t other = warp::shuffle_up(up_to, by);
    up_to += warp::lane() >= by ? other : 0;
  }
  block::barrier();  // the sums before may still be read
  if (warp::lane() == warp::kSize - 1) of_warp[thread / warp::kSize] = up_to;
  block::barrier();
  Sum sum = {0, up_to - mine};
  for (int i = 0; i < kWarps; ++i) {
    sum.all += of_warp[i];
    sum.before += i < thread / warp::kSize ? of_warp[i] : 0;
  }
  return sum;
}

// The bins that hold two ranks; -1 where none does.
struct Bins {
  int of[2];
};
// Bin i has count(i) scores, and `before_middle` scores come before bin `bins` / 2.
template <typename Count>
__device__ __forceinline__ Bins bins_of_ranks(int bins, Index before_middle,
                                              const Index (&ranks)[2], const Count& count) {
  XCORR_SHARED(int, found, 2);
  const int thread = static_cast<int>(threadIdx.x);
  const int of_thread = bins / kThresholdThreads;
  std::int32_t sum = 0;
#pragma unroll 4
  for (int i = 0; i < of_thread; ++i) sum += count(thread * of_thread + i);
  const Index before = sum_of_threads(sum).before;
  const Index half = sum_of_threads(thread < kThresholdThreads / 2 ? sum : 0).all;
  if (thread < 2) found[thread] = -1;
  block::barrier();
  for (int k = 0; k < 2; ++k) {
    Index here = before_middle - half + before;
    if (!(here <= ranks[k] && ranks[k] < here + sum)) continue;
    int i = thread * of_thread;
    while ((here += count(i)) <= ranks[k]) ++i;
    found[k] = i;
  }
  block::barrier();
  return {{found[0], found[1]}};
}

// A block for each template. A bracket has kBins bins.
template <int kBins>
__global__ void __launch_bounds__(kThresholdThreads, 1)
    threshold_kernel(Series q, Question asked, Memory memory) {
  if (is_unknown(memory)) return;
  constexpr int bins = kBins, half = kBins / 2;
  const int row = static_cast<int>(blockIdx.x);
  const Bracket bracket = memory.brackets[row];
  const Counts counts = memory.counts[row];
  const std::uint32_t* const histogram = memory.histogram + static_cast<Index>(row) * 3 * bins;
  // Scores of 0 lie in this bin of this histogram.
  const bool zero_at_median = std::fabs(bracket.median) < bracket.near_median;
  const float zero =
      zero_at_median ? -bracket.median : std::fabs(bracket.median) - bracket.deviation;
  const int zero_histogram = zero_at_median ? 0 : -bracket.median > 0 ? 1 : 2;
  const int zero_bin = half + static_cast<int>(std::floor(zero * bracket.per_bin));
  const auto count = [&](int which, int bin) -> std::int32_t {
    if (bin < 0 || bin >= bins) return 0;
    const bool zeros = which == zero_histogram && bin == zero_bin;
    return static_cast<std::int32_t>(histogram[which * bins + bin] + (zeros ? counts.zeros : 0));
  };
  const Index scores = static_cast<Index>(q.shifts) - memory.state->not_scores;
  const Index ranks[2] = {(scores - 1) / 2, scores / 2};
  bool good = scores > 0;

  const Bins at = bins_of_ranks(bins, counts.below, ranks, [&](int i) { return count(0, i); });
  // In bins, from the rough median.
  const int moved = (at.of[0] + at.of[1]) / 2 - half, size = moved < 0 ? -moved : moved;
  // Bin i of the deviations has the scores above the median that are `moved` bins farther from the
  // rough one, and those below it that are nearer.
  const int side = moved < 0 ? 2 : 1;
  std::int32_t nearer = 0;
  for (int i = static_cast<int>(threadIdx.x); i < size; i += kThresholdThreads) {
    nearer += count(side, half + i) - count(3 - side, half - 1 - i);
  }
  const Bins far = bins_of_ranks(bins, counts.within + sum_of_threads(nearer).all, ranks,
                                 [&](int i) { return count(1, i + moved) + count(2, i - moved); });
  for (int k = 0; k < 2; ++k) {
    // Beyond a bracket the histograms are empty.
    const auto holds = [&](int bin, int margin, float near) {
      const int from_middle = bin < half ? half - bin : bin - half;
      return bin >= 0 && from_middle + margin + 1 < static_cast<int>(near * bracket.per_bin);
    };
    good &=
        holds(at.of[k], 0, bracket.near_median) && holds(far.of[k], size, bracket.near_deviation);
  }
  if (threadIdx.x != 0) return;
  if (!good) {
    memory.state->unknown = 1;
    return;
  }
  // The middle of two bins.
  const auto middle = [&](float from, const Bins& of) {
    return from + (0.5 * (of.of[0] + of.of[1] + 1) - half) / static_cast<double>(bracket.per_bin);
  };
  memory.thresholds[row] = {
      float_from(middle(bracket.median, at) + asked.deviations * middle(bracket.deviation, far))};
}

}  // namespace xcorr::time_series
