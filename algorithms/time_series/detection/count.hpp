// The third kernel of `above:8mad` (survey.hpp): counts of all scores by the brackets of their
// templates, histograms of those near a border, and a list of those that may be above the threshold.
//
// A count costs an instruction, and a few scores of a hundred go to histograms. Were these few added where
// they are found, most of a warp's scores would take the way of that branch, since a warp takes it for any
// of its 32 lanes. So a lane only notes them in a queue of its own in shared memory, by a store that
// depends on a predicate, and all lanes empty their queues when the scores of a template have been seen.
#pragma once

#include "algorithms/time_series/detection/survey.hpp"

namespace xcorr::time_series {

// Shared memory of count_kernel behind that of its engine.
template <typename Engine>
struct CountMemory {
  static constexpr int kCounts = 3;  // words for each template of a group, as in Counts
  // Scores of the first template that may stay in a queue while those of the second one are noted.
  static constexpr int kPending = static_cast<int>(small_if_emulated(8, 3));
  static constexpr int kPlaces = Engine::kSumsOfHalf + kPending;  // of the queue of a lane
  static constexpr int kBracketWords = sizeof(Bracket) / sizeof(float);

  static int words(int threads) { return kGroup * (kCounts + kBracketWords) + threads * kPlaces; }
  // The counts of a group, its brackets, and where the queue of the thread begins, in bytes of dynamic
  // shared memory. Places of a queue are a warp apart.
  __device__ explicit CountMemory(int words)
      : counts(dynamic_shared<std::uint32_t>() + words),
        brackets(reinterpret_cast<Bracket*>(counts + kGroup * kCounts)),
        queue((words + kGroup * (kCounts + kBracketWords) +
               opaque(static_cast<int>(threadIdx.x)) / warp::kSize * (warp::kSize * kPlaces) +
               opaque(warp::lane())) *
              static_cast<int>(sizeof(float))) {}
  static constexpr int kNext = warp::kSize * sizeof(float);
  __device__ static __forceinline__ float& at(int place) {
    return *reinterpret_cast<float*>(dynamic_shared<unsigned char>() + place);
  }
  std::uint32_t* counts;
  Bracket* brackets;
  int queue;
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
    const Shared shared(shape.words);  // again: kept over the products, it would take registers
    // Adds what the queue has up to `end`, up to `second` of the first template of the lane.
    const auto empty_queue = [&](int end, int second) {
      const int bins = p.memory.bins;
      std::uint32_t* const histograms = p.memory.histogram + bins / 2;  // their middles
#pragma unroll 1
      for (int at = shared.queue; at < end; at += Shared::kNext) {
        const float distance = Shared::at(at);
        const int row = sums.row(at < second ? 0 : 1);
        const Bracket& bracket = shared.brackets[row];
        // Where a part of a signal is missing, many scores are 0, and all would be added to one bin.
        if (distance == -bracket.median) {
          atomic_add(&shared.counts[row * Shared::kCounts + 2], 1u);
          continue;
        }
        const bool at_median = std::fabs(distance) < bracket.near_median;
        const float beyond = std::fabs(distance) - bracket.deviation;
        const float bin = std::floor((at_median ? distance : beyond) * p.asked.per_bin);
        const int histogram = (first + row) * 3 + (at_median ? 0 : distance > 0 ? 1 : 2);
        atomic_add(histograms + (histogram * bins + static_cast<int>(bin)), 1u);
      }
    };
    int end = shared.queue, second = end;
    bool any = false;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = sums.row(half);
      const Bracket bracket = shared.brackets[row];
      std::uint32_t below = 0, within = 0;
      float farthest = -2;
      each_sum_of(sums, half, factors, [&](int, float sum, float factor) {
        // The distance from the rough median, and how much larger it is than the rough deviation.
        const float distance = std::fma(sum, factor, -bracket.median);
        const float beyond = std::fabs(distance) - bracket.deviation;
        // The bit of the sign; it is 0 of a NaN.
        below += bits_of(distance) >> 31;
        within += bits_of(beyond) >> 31;
        farthest = fmaxf(farthest, distance);
        const bool noted = (std::fabs(distance) < bracket.near_median) |
                           (std::fabs(beyond) < bracket.near_deviation);
        if (noted) {
          Shared::at(end) = distance;
          end += Shared::kNext;
        }
      });
      atomic_add(&shared.counts[row * Shared::kCounts], below);
      atomic_add(&shared.counts[row * Shared::kCounts + 1], within);
      // A score may be rounded in another way than its distance.
      any |= farthest + bracket.median >= shared.brackets[opaque(row)].cut - 0x1p-20f;
      if (half > 0) continue;
      second = end;
      if (warp::any(end > shared.queue + Shared::kPending * Shared::kNext)) {
        empty_queue(end, second);
        end = second = shared.queue;
      }
    }
    empty_queue(end, second);
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
