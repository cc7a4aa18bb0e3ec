// The last kernel of `above:8mad` (survey.hpp). It keeps the listed candidates that reach their
// threshold. Where thresholds are unknown or the list was too short, it makes further passes over
// all products. All its blocks are on the device at once and wait for each other.
#pragma once

#include "algorithms/blocks/float_order.hpp"
#include "algorithms/device/memory.hpp"
#include "algorithms/time_series/detection/survey.hpp"

namespace xcorr::time_series {

// A barrier of all blocks: after meet(), all blocks see what any block wrote before it.
class GridMeeting {
 public:
  __device__ explicit GridMeeting(std::uint32_t* arrived) : arrived_(arrived) {}
  __device__ __forceinline__ void meet() {
    block::barrier();
    wanted_ += gridDim.x;
    if (threadIdx.x == 0) {
      add_release(arrived_, 1);
      while (load_acquire(arrived_) < wanted_) back_off<50>();
    }
    block::barrier();
  }

 private:
  std::uint32_t* arrived_;
  std::uint32_t wanted_ = 0;
};

// Calls use(sums, factors, first template, first shift) for each warp with shifts, for all groups.
// All threads call after(first template) when the block has finished its tiles of a group.
template <typename Maths, int kTiles, typename Use, typename After>
__device__ __forceinline__ void each_tile_of_groups(const Products& p, const Cut& of_group,
                                                    const Use& use, const After& after) {
  constexpr int kShifts = kTiles * kColumns;
  const int block_shifts = static_cast<int>(blockDim.x) / warp::kSize * kShifts;
  const int groups = ceil_div(p.q.templates, kGroup);
  const Maths maths(dynamic_shared<std::uint32_t>(), of_group.panel, block_shifts);
#pragma unroll 1
  for (int group = 0; group < groups; ++group) {
    Cut cut = of_group;
    cut.first_group = group;  // blockIdx.y is 0
    // The first block rotates from group to group, so that all blocks get tiles also where a group
    // has few.
    const int turn =
        static_cast<int>((static_cast<Index>(group) * cut.tiles + blockIdx.x) % gridDim.x);
    bool first = true;
#pragma unroll 1
    for (int tile = turn; tile < cut.tiles; tile += static_cast<int>(gridDim.x)) {
      Sums<kTiles> sums;
      const bool wide = add_tile(maths, p, cut, tile, first, sums);
      first = false;
      const int shift =
          tile * block_shifts + opaque(static_cast<int>(threadIdx.x)) / warp::kSize * kShifts;
      use_sums(p, sums, wide, group * kGroup, shift, use);
    }
    after(group * kGroup);
  }
}

// Finds the next digit of the two middle values of each template from the counts of digits, and
// clears the counts. One warp per template.
__device__ __forceinline__ void select_digits(const Products& p, int shift, bool of_deviations) {
  const int lane = warp::lane(), warps = static_cast<int>(blockDim.x) / warp::kSize;
  const int warp = static_cast<int>(threadIdx.x) / warp::kSize;
  constexpr int kOfLane = kDigits / warp::kSize;
  for (int row = static_cast<int>(blockIdx.x) * warps + warp; row < p.q.templates;
       row += static_cast<int>(gridDim.x) * warps) {
    Selection& selection = p.memory.selections[row];
    for (int k = 0; k < 2; ++k) {
      std::uint32_t* const counts =
          p.memory.digits + (static_cast<Index>(row) * 2 + k) * kDigits + lane * kOfLane;
      std::uint32_t mine[kOfLane], sum = 0;
      for (int i = 0; i < kOfLane; ++i) {
        mine[i] = counts[i];
        sum += mine[i];
        counts[i] = 0;
      }
      const std::uint32_t all = warp::reduce_add(sum);
      const std::uint32_t up_to = warp::scan_add(sum, lane);
      const bool begins = shift == 24;
      const std::uint32_t middle = k == 0 ? (all > 0 ? all - 1 : 0) / 2 : all / 2;
      const std::uint32_t rank = begins ? middle : selection.rank[k];
      const std::uint32_t found = begins ? 0 : selection.found[k];
      warp::barrier();  // all lanes have read what one of them overwrites
      std::uint32_t before = up_to - sum;
      for (int i = 0; i < kOfLane; ++i) {
        if (before <= rank && rank < before + mine[i]) {
          selection.found[k] = found | static_cast<std::uint32_t>(lane * kOfLane + i) << shift;
          selection.rank[k] = rank - before;
        }
        before += mine[i];
      }
      warp::barrier();
      if (begins && all == 0 && lane == 0) {  // no score is a number
        selection.found[k] = order_of(not_a_number());
        selection.rank[k] = 0;
      }
    }
    warp::barrier();
    if (shift != 0 || lane != 0) continue;
    const double lower = value_of_order(selection.found[0]),
                 upper = value_of_order(selection.found[1]);
    const double middle = lower == upper ? lower : 0.5 * (lower + upper);
    if (of_deviations) {
      p.memory.thresholds[row] = {float_from(selection.median + p.asked.deviations * middle)};
    } else {
      selection.median = middle;
    }
  }
}

// Shared memory of finish_kernel after that of the products: counts of the digits of two values per
// template.
inline constexpr int kDigitsPitch = kDigits + 1, kFinishWords = kGroup * 2 * kDigitsPitch;

// Finds the thresholds of all templates. A median is the mean of the two middle values. A deviation
// is rounded to float32.
template <typename Maths, int kTiles>
__device__ __forceinline__ void find_thresholds(const Products& p, const WarpShape& shape,
                                                GridMeeting& grid) {
  constexpr int kPitch = kDigitsPitch;
  std::uint32_t* const digits = dynamic_shared<std::uint32_t>() + shape.words;
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  for (int i = thread; i < kGroup * 2 * kPitch; i += threads) digits[i] = 0;
  block::barrier();
#pragma unroll 1
  for (int pass = 0; pass < 8; ++pass) {
    const bool of_deviations = pass >= 4;
    const int shift = 24 - pass % 4 * 8;
    each_tile_of_groups<Maths, kTiles>(
        p, shape.cut,
        [&](Sums<kTiles>& sums, const GlobalFactors& factors, int first, int) {
          std::uint32_t found[2][2];
          double median[2];
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int row = first + opaque(sums.row(half));
            const bool exists = row < p.q.templates && pass > 0;
            const Selection* const selection = p.memory.selections + row;
            median[half] = exists ? selection->median : 0;
            for (int k = 0; k < 2; ++k) found[half][k] = exists ? selection->found[k] : 0;
          }
          each_sum(sums, factors, [&](int half, int, float sum, float factor) {
            const float score = score_of(sum, factor, p.asked.limit);
            const float value =
                of_deviations ? static_cast<float>(std::fabs(score - median[half])) : score;
            if (!(value == value)) return;
            const std::uint32_t key = order_of(value);
#pragma unroll
            for (int k = 0; k < 2; ++k) {
              if (shift < 24 && key >> (shift + 8) != found[half][k] >> (shift + 8)) continue;
              atomic_add(&digits[(sums.row(half) * 2 + k) * kPitch + (key >> shift) % kDigits], 1u);
            }
          });
        },
        [&](int first) {
          block::barrier();
          std::uint32_t* const to = p.memory.digits + static_cast<Index>(first) * 2 * kDigits;
          for (int i = thread; i < kGroup * 2 * kDigits; i += threads) {
            std::uint32_t& count = digits[i / kDigits * kPitch + i % kDigits];
            if (count > 0) atomic_add(&to[i], count);
            count = 0;
          }
          block::barrier();
        });
    grid.meet();
    select_digits(p, shift, of_deviations);
    grid.meet();
  }
}

template <typename Maths, int kTiles>
__global__ void __launch_bounds__(SeriesTuning::kMostWarps * 32, 1)
    finish_kernel(Products p, WarpShape shape) {
  wait_for_previous();
  AboveHeader* const header = p.asked.header;
  const std::uint32_t candidates = p.memory.state->candidates;
  const bool unknown = !p.asked.surveyed || is_unknown(p.memory);
  if (!unknown && candidates <= p.memory.candidate_list) {
    for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < candidates;
         i += gridDim.x * blockDim.x) {
      const Detection candidate = p.memory.candidates[i];
      if (!(candidate.value >= p.memory.thresholds[candidate.pair].least)) continue;
      const unsigned long long slot = atomic_add(counter_of(header), 1ull);
      if (slot < p.asked.capacity) detections_of(header)[slot] = candidate;
    }
    return;
  }
  GridMeeting grid(&p.memory.state->arrived);
  if (unknown) find_thresholds<Maths, kTiles>(p, shape, grid);
  each_tile_of_groups<Maths, kTiles>(
      p, shape.cut,
      [&](Sums<kTiles>& sums, const GlobalFactors& factors, int first, int shift) {
        float least[2];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int row = first + opaque(sums.row(half));
          least[half] = row < p.q.templates ? p.memory.thresholds[row].least : not_a_number();
        }
        list_scores(sums, factors, p.asked.limit, least, first, p.q.first + shift,
                    counter_of(header), p.asked.capacity, detections_of(header));
      },
      [](int) {});
}

}  // namespace xcorr::time_series
