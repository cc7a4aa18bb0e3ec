// `above:8mad` in about one pass over the products. The threshold of a template is the median plus
// 8 median absolute deviations of all its scores. It is known only after all products.
//
//   survey_kernel     every 32nd tile: a coarse histogram of each template's scores
//   brackets_kernel   from it, intervals for the median and the deviation, and a lower bound of the
//                     threshold
//   count_kernel      all products: counts of scores below the estimated median and within the
//                     estimated deviation, histograms of the few scores near these three borders,
//                     and a list of the scores above the lower bound (count.hpp)
//   threshold_kernel  median and deviation of all scores, from counts and histograms
//                     (threshold.hpp)
//   finish_kernel     the listed scores that are at least the threshold (finish.hpp)
//
// A histogram of all scores would cost more than the products: 69 million additions to shared
// memory. A count costs one instruction.
//
// threshold_kernel sees from the counts whether the brackets contain the middle ranks. If those of
// any template do not, finish_kernel finds the thresholds of all templates with further passes over
// the products, 8 bits of the middle values per pass, and then lists. The same happens from the
// start with few shifts, and for `product`, whose scores have no fixed range. If only the list is
// too short, one further pass lists.
#pragma once

#include <bit>

#include "algorithms/time_series/detection/factors.hpp"
#include "algorithms/time_series/detection/products.hpp"

namespace xcorr::time_series {

// Whether the brackets are known to be invalid. The kernel that finds out has ended.
__device__ __forceinline__ bool is_unknown(const Memory& memory) {
  return memory.state->unknown != 0;
}

// For templates of up to kMostOwnLength samples the survey computes the factors of its tiles
// itself. Meanwhile other blocks of its kernel compute the factors of all tiles, which are not read
// before the scores are counted.
inline constexpr int kMostOwnLength = FactorMemory<SeriesTuning::kSurveyThreads>::kMore - 2 * kRun;

// Launch parameters of survey_kernel besides Products. Set on the host.
struct SurveyShape {
  WarpShape warps;
  int tiles, blocks;  // tiles to survey, and blocks that survey; further blocks compute factors
  int factors;        // of all tiles; 0 where they exist already

  // Bins, with rows in different banks; per template the sum of squares and the centre.
  static constexpr int kPitch = Survey::kBins + 1;
  static constexpr int kBinWords = kGroup * (kPitch + 2);
  // The samples that a tile needs, sums of 16 of them, and the tile's factors.
  static constexpr int samples(int tile_shifts) {
    return ceil_div(tile_shifts + kMostOwnLength, 2 * kRun) * 2 * kRun;
  }
  static constexpr int own_words(int tile_shifts) {
    const int count = samples(tile_shifts);
    return sample_place(count) + 2 * count / kRun + tile_shifts;
  }
  std::size_t bytes(Index length) const {
    const int own = factors > 0 ? own_words(warps.tile_shifts) : warps.tile_shifts;
    const std::size_t words = static_cast<std::size_t>(warps.words + kBinWords + own);
    return std::max(words * sizeof(std::uint32_t),
                    factors > 0 ? FactorMemory<SeriesTuning::kSurveyThreads>::bytes(length) : 0);
  }
};

// Computes the factors of the tile that begins with `shift` and stores them at `to`, by all threads
// of a block. They may differ from those of make_factors() by rounding, because the pivot differs. A
// tile has kOfThread shifts per thread, or fewer shifts than threads. `samples` has the words of
// SurveyShape::own_words() without those of the factors.
template <int kOfThread>
__device__ __forceinline__ void make_own_factors(const Products& p, int shift, int tile_shifts,
                                                 float* samples, float* to) {
  using Sums = WindowSums<float>;
  const Series& q = p.q;
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int count = tile_shifts + q.length;
  auto* const runs =
      reinterpret_cast<Sums*>(samples + sample_place(SurveyShape::samples(tile_shifts)));
  const bool centred = p.asked.centred;
  const float pivot = PivotPart(q, p.memory, q.first + shift, count, centred).pivot();
  Sums windows[kOfThread] = {};
#pragma unroll 1
  for (int channel = 0; channel < q.channels; ++channel) {
    const float* const of_channel = p.right + static_cast<Index>(channel) * q.pitch;
    block::barrier();  // the previous samples may still be read
#pragma unroll 4
    for (int i = thread; i < count; i += threads) {
      samples[sample_place(i)] = load_or_zero(of_channel, q.first + shift + i, q.pitch) - pivot;
    }
    block::barrier();
    for (int run = thread; run < count / kRun; run += threads) {
      Sums sums = {};
#pragma unroll
      for (int i = 0; i < kRun; ++i) sums.add(samples[run * (kRun + 1) + i]);
      runs[run] = sums;
    }
    block::barrier();
    // `head` and `tail` fit all shifts of a thread, since their distances are multiples of 16.
    if (thread >= tile_shifts) continue;
    const int end = thread + q.length, head = smaller(ceil_div(thread, kRun) * kRun, end);
    const int last = end / kRun * kRun, tail = last > head ? last : head;
    const auto add_samples = [&](int from, int to) {
#pragma unroll 1
      for (int i = from; i < to; ++i) {
#pragma unroll
        for (int j = 0; j < kOfThread; ++j) {
          windows[j].add(samples[sample_place(i) + j * sample_place(threads)]);
        }
      }
    };
    add_samples(thread, head);
#pragma unroll 1
    for (int run = head / kRun; run < tail / kRun; ++run) {
#pragma unroll
      for (int j = 0; j < kOfThread; ++j) windows[j].add(runs[run + j * (threads / kRun)]);
    }
    add_samples(tail, end);
  }
  const QuickFactors quick(q, p.asked, pivot);
#pragma unroll 1
  for (int j = 0; j < kOfThread && thread < tile_shifts; ++j) {
    const int at = thread + j * threads;
    float factor = not_a_number();
    if (shift + at < q.shifts) {
      Sums window = windows[0];
#pragma unroll
      for (int k = 1; k < kOfThread; ++k) window = j == k ? windows[k] : window;
      factor = quick.of(window);
      if (factor == kUnknownFactor) {
        const auto channel_of = [&](int channel) {
          return [of_channel = p.right + static_cast<Index>(channel) * q.pitch,
                  first = q.first + shift + at, &q](int i) {
            return static_cast<double>(load_or_zero(of_channel, first + i, q.pitch));
          };
        };
        factor = exact_factor(q, p.asked, channel_of, 0);
      }
    }
    to[at] = factor;
  }
  block::barrier();
}

template <typename Maths, int kTiles>
__global__ void __launch_bounds__(SeriesTuning::kSurveyThreads, SeriesTuning::kSurveyBlocks)
    survey_kernel(Products p, SurveyShape shape) {
  wait_for_previous();
  // What is surveyed is long, so that its chunks have this length. A constant takes no register.
  static_assert(SeriesTuning::kSurveyedShifts >= SeriesTuning::kLeastChunks * SeriesTuning::kChunk);
  p.memory.chunk_log2 = std::countr_zero(static_cast<unsigned>(SeriesTuning::kChunk));
  const int block = static_cast<int>(blockIdx.x) - shape.blocks;
  if (block >= 0) {
    if (blockIdx.y > 0) return;
    make_factors<SeriesTuning::kSurveyThreads>(p.q, p.asked, p.memory, shape.factors,
                                               Rows<float>{p.right, p.q.pitch}, block,
                                               static_cast<int>(gridDim.x) - shape.blocks);
    return;
  }
  constexpr int kPitch = SurveyShape::kPitch;
  const WarpShape& warps = shape.warps;
  std::uint32_t* const bins = dynamic_shared<std::uint32_t>() + warps.words;
  std::uint32_t* const spread = bins + kGroup * kPitch;
  auto* const own_factors = reinterpret_cast<float*>(bins + SurveyShape::kBinWords);
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  auto* const own_centres = reinterpret_cast<float*>(spread + kGroup);
  for (int i = thread; i < kGroup * (kPitch + 1); i += threads) bins[i] = 0;
  if (thread < kGroup) {
    const Index of = first_template(warps.cut) + thread;
    own_centres[thread] = of < p.q.templates ? p.memory.centres[of] : 0.0f;
  }
  block::barrier();
  const Maths maths(dynamic_shared<std::uint32_t>(), warps.cut.panel, warps.tile_shifts);
  const auto tile_of = [&](int i) {
    return static_cast<int>(static_cast<Index>(i) * warps.cut.tiles / shape.tiles);
  };
#pragma unroll 1
  for (int i = static_cast<int>(blockIdx.x); i < shape.tiles; i += shape.blocks) {
    const bool is_first = i == static_cast<int>(blockIdx.x);
    if (shape.factors > 0) {
      make_own_factors<ceil_div(kTiles * kColumns, warp::kSize)>(
          p, tile_of(i) * warps.tile_shifts, warps.tile_shifts, own_factors + warps.tile_shifts,
          own_factors);
    } else {
      block::barrier();  // the factors of the previous tile may still be read
      for (int of = thread; of < warps.tile_shifts; of += threads) {
        own_factors[of] = p.memory.factors[tile_of(i) * warps.tile_shifts + of];
      }
    }
    Sums<kTiles> sums;
    // Contains barriers. The scores of a wide tile are wrong here, which can mislead the survey but
    // not the result.
    add_tile(maths, p, warps.cut, tile_of(i), is_first, sums);
    const int of_warp = opaque(static_cast<int>(threadIdx.x)) / warp::kSize * kTiles * kColumns;
    if (tile_of(opaque(i)) * warps.tile_shifts + of_warp >= p.q.shifts) continue;
    int below[2] = {};
    const float centres[2] = {own_centres[sums.row(0)], own_centres[sums.row(1)]};
    each_sum(
        sums, GlobalFactors{own_factors + of_warp}, [&](int half, int, float sum, float factor) {
          const float distance = std::fma(sum, factor, -centres[half]);
          below[half] += distance < 0;
          std::uint32_t* const bin = bins + opaque(sums.row(half) * kPitch + Survey::bin(distance));
          if (distance == distance) atomic_add(bin, 1u);
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
  }
  block::barrier();
  const Index group = first_template(warps.cut);
#pragma unroll 1
  for (int row = thread / warp::kSize; row < kGroup; row += threads / warp::kSize) {
    std::uint32_t* const to = p.memory.survey + (group + row) * Survey::kBins;
#pragma unroll 4
    for (int bin = warp::lane(); bin < Survey::kBins; bin += warp::kSize) {
      const std::uint32_t count = bins[row * kPitch + bin];
      if (count > 0) atomic_add(to + bin, count);
    }
  }
  for (int i = thread; i < kGroup; i += threads) {
    atomic_add(&p.memory.spread[group + i], static_cast<unsigned long long>(spread[i]));
  }
}

// The histogram of a template in the survey, for a warp.
struct Distribution {
  const std::uint32_t* before;  // scores before each bin, and before the end of the last bin
  // The number of scores below `value`. Scores are taken as evenly spread within a bin.
  __device__ __forceinline__ float below(float value) const {
    if (!(value > Survey::edge(0))) return 0;
    if (!(value < Survey::edge(Survey::kBins))) return static_cast<float>(before[Survey::kBins]);
    const int bin = Survey::bin(value);
    const float from = Survey::edge(bin), to = Survey::edge(bin + 1);
    return static_cast<float>(before[bin]) +
           static_cast<float>(before[bin + 1] - before[bin]) * ((value - from) / (to - from));
  }
  // The smallest value in [low, high] with count(value) >= `wanted`; count() is increasing.
  template <typename Count>
  __device__ __forceinline__ static float find(float low, float high, float wanted,
                                               const Count& count) {
    for (int round = 0; round < 4; ++round) {
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

// One warp per template. kShifts is the number of shifts of a warp in the survey.
template <int kShifts>
__global__ void __launch_bounds__(warp::kSize) brackets_kernel(Question asked, Memory memory) {
  wait_for_previous();
  let_next_start();
  XCORR_SHARED(std::uint32_t, before, Survey::kBins + 1);
  static_assert(Survey::kBins % warp::kSize != 0);  // a lane writes the entry after the last bin
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
  std::uint32_t here = warp::scan_add(sum, lane) - sum;
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
  // The counts of independent scores vary by sqrt(scores) / 2 around the middle. The variance of the
  // counts of warps shows how much more those of neighbouring shifts vary.
  const float share = of.below(0) / scores;
  const float warps = scores / static_cast<float>(kShifts);
  const float mean = of.below(0) / warps;
  const auto squares = static_cast<float>(spread) / warps;
  const float independent = static_cast<float>(kShifts) * share * (1 - share);
  const float more = warps < 8 ? 4.0f : fmaxf((squares - mean * mean) / independent, 1.0f);
  const float varies = 4 * std::sqrt(more * scores) / 2;
  // Scores per unit, at the borders.
  const float step = deviation / 8;
  const float at_median = within(step) / (2 * step);
  const float at_deviation = (within(deviation + step) - within(deviation - step)) / (2 * step);
  Bracket bracket;
  bracket.median = memory.centres[row] + median;
  bracket.deviation = deviation;
  bracket.near_median = varies / at_median + deviation * 0x1p-9f;
  bracket.near_deviation = varies / at_deviation + bracket.near_median;
  bracket.per_bin = asked.per_bin;
  const float deviations = static_cast<float>(asked.deviations);
  bracket.cut = bracket.median - bracket.near_median + deviations * deviation -
                std::fabs(deviations) * bracket.near_deviation;
  // Both brackets fit into a histogram and do not overlap.
  const auto half = static_cast<float>(memory.bins / 2 - 2);
  const bool good = bracket.near_deviation * asked.per_bin < half &&
                    deviation - bracket.near_deviation > bracket.near_median;
  if (lane != 0) return;
  if (!good) {  // also where a value is NaN
    bracket = {not_a_number(), not_a_number(), 0, 0, 0, not_a_number()};
    memory.state->unknown = 1;
  }
  memory.brackets[row] = bracket;
}

}  // namespace xcorr::time_series
