// The third kernel of `above:8mad` (survey.hpp): counts of all scores relative to the brackets of
// their templates, histograms of the scores near a border, and a list of the scores that may be
// above the threshold.
//
// A few percent of the scores enter histograms. A branch for these would be taken at most scores of
// a warp, because one of its 32 lanes is enough. Therefore a lane appends them to its queue in
// shared memory with a predicated store. After the scores of a template all lanes empty their
// queues, several entries at a time, since an entry takes many cycles but few instructions.
#pragma once

#include "algorithms/time_series/detection/survey.hpp"

namespace xcorr::time_series {

// Shared memory of count_kernel, after that of its engine.
template <typename Engine>
struct CountMemory {
  static constexpr int kCounts = 3;  // words per template of a group, as in Counts
  static constexpr int kPlaces = Engine::kSumsOfHalf;  // entries of the queue of a lane
  // Entries that are emptied together.
  static constexpr int kAtOnce = static_cast<int>(small_if_emulated(4, 2));
  static_assert(kPlaces % kAtOnce == 0);
  static constexpr int kBracketWords = sizeof(Bracket) / sizeof(float);

  static int words(int threads) { return kGroup * (kCounts + kBracketWords) + threads * kPlaces; }
  // The counts of a group, its brackets, and the start of this thread's queue. Entries of a queue
  // are warp::kSize words apart.
  __device__ explicit CountMemory(int words)
      : counts(dynamic_shared<std::uint32_t>() + words),
        brackets(reinterpret_cast<Bracket*>(counts + kGroup * kCounts)),
        queue(dynamic_shared<float>() + words + kGroup * (kCounts + kBracketWords) +
              opaque(static_cast<int>(threadIdx.x)) / warp::kSize * (warp::kSize * kPlaces) +
              opaque(warp::lane())) {}
  static constexpr int kNext = warp::kSize;
  std::uint32_t* counts;
  Bracket* brackets;
  float* queue;
};

template <typename Engine>
__global__ void __launch_bounds__(Engine::kMostThreads, Engine::kBlocks)
    count_kernel(Products p, typename Engine::Shape shape) {
  using Shared = CountMemory<Engine>;
  wait_for_previous();
  if (is_unknown(p.memory)) return;
  const Shared shared(shape.words);
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int group = static_cast<int>(blockIdx.y) * kGroup;
  for (int i = thread; i < kGroup * Shared::kCounts; i += threads) shared.counts[i] = 0;
  for (int i = thread; i < kGroup; i += threads) {
    const float none = not_a_number();
    Bracket bracket = {none, none, none, none, none, none};
    if (group + i < p.q.templates) bracket = p.memory.brackets[group + i];
    shared.brackets[i] = bracket;
  }
  block::barrier();
  Engine::each(p, shape, [&](auto& sums, const auto& factors, int first, int shift) {
    const Shared shared(shape.words);  // again, so that the products have the registers
    bool any = false;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = sums.row(half);
      const Bracket bracket = shared.brackets[row];
      std::uint32_t below = 0, within = 0;
      float farthest = -2;
      float* end = shared.queue;
      each_sum_of(sums, half, factors, [&](int, float sum, float factor) {
        // The distance from the estimated median, and its excess over the estimated deviation.
        const float distance = std::fma(sum, factor, -bracket.median);
        const float beyond = std::fabs(distance) - bracket.deviation;
        // The sign bit, which is 0 for a NaN.
        below += bits_of(distance) >> 31;
        within += bits_of(beyond) >> 31;
        farthest = fmaxf(farthest, distance);
        const bool noted = (std::fabs(distance) < bracket.near_median) |
                           (std::fabs(beyond) < bracket.near_deviation);
        if (noted) {
          *end = distance;
          end += Shared::kNext;
        }
      });
      atomic_add(&shared.counts[row * Shared::kCounts], below);
      atomic_add(&shared.counts[row * Shared::kCounts + 1], within);
      // A score may be rounded differently from its distance.
      any |= farthest + bracket.median >= shared.brackets[opaque(row)].cut - 0x1p-20f;
      const int bins = p.memory.bins;
      std::uint32_t* const histograms =
          p.memory.histogram + ((first + row) * 3 * bins + bins / 2);  // centres of the histograms
#pragma unroll 1
      for (const float* at = shared.queue; at < end; at += Shared::kAtOnce * Shared::kNext) {
        float distances[Shared::kAtOnce];
        int places[Shared::kAtOnce];
#pragma unroll
        for (int k = 0; k < Shared::kAtOnce; ++k) distances[k] = at[k * Shared::kNext];
        // Results for entries after the end are not used.
#pragma unroll
        for (int k = 0; k < Shared::kAtOnce; ++k) {
          const float size = std::fabs(distances[k]);
          const bool at_median = size < bracket.near_median;
          const float offset = at_median ? distances[k] : size - bracket.deviation;
          const int histogram = at_median ? 0 : distances[k] > 0 ? bins : 2 * bins;
          places[k] = opaque(histogram + static_cast<int>(std::floor(offset * p.asked.per_bin)));
        }
#pragma unroll
        for (int k = 0; k < Shared::kAtOnce; ++k) {
          const bool exists = at + k * Shared::kNext < end;
          // Where a part of a signal is missing, many scores are 0. They would all be added to one
          // bin.
          const bool is_zero = distances[k] == -bracket.median;
          if (exists && !is_zero) atomic_add(histograms + places[k], 1u);
          if (exists && is_zero) atomic_add(&shared.counts[row * Shared::kCounts + 2], 1u);
        }
      }
    }
    if (warp::any(any)) {
      float least[2];
      for (int half = 0; half < 2; ++half) least[half] = shared.brackets[sums.row(half)].cut;
      list_scores(sums, factors, p.asked.limit, least, first, p.q.first + shift,
                  &p.memory.state->candidates, p.memory.candidate_list, p.memory.candidates);
    }
  });
  block::barrier();
  auto* const to = reinterpret_cast<std::uint32_t*>(p.memory.counts + group);
  for (int i = thread; i < kGroup * Shared::kCounts; i += threads) {
    if (shared.counts[i] > 0) atomic_add(to + i, shared.counts[i]);
  }
}

}  // namespace xcorr::time_series
