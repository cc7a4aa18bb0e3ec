// Records, and the data that the kernels of detection pass to each other: of the preparation, and of
// the kernels of `above:8mad` for each template (survey.hpp).
#pragma once

#include <bit>
#include <cstdint>

#include "algorithms/blocks/records.hpp"
#include "algorithms/time_series/warp_products.hpp"

namespace xcorr::time_series {

// The coarse histogram of the distances of scores from Memory::centres: 16 bins for each power of
// two down to 2^-12, for both signs. Without the centre all ncc scores of a signal with a large
// mean would fall into two or three bins.
struct Survey {
  static constexpr int kPowers = 12, kOfPower = 16;
  static constexpr int kLowest = (127 - kPowers) * kOfPower;  // leading bits of 2^-12
  static constexpr int kHalf = kPowers * kOfPower + 1;        // bins of a sign, up to that of 1
  static constexpr int kBins = 2 * kHalf;

  // The bin of a distance. Distances beyond 1 are in the outermost bins.
  __device__ static __forceinline__ int bin(float score) {
    const int leading = static_cast<int>((bits_of(score) & 0x7fffffffu) >> 19);
    const int size = leading < kLowest ? 0 : leading - kLowest;
    const int bounded = size < kHalf ? size : kHalf - 1;
    return score < 0 ? kHalf - 1 - bounded : kHalf + bounded;
  }
  // The lower edge of a bin; the upper edge of the last bin for kBins.
  __device__ static __forceinline__ float edge(int bin) {
    const int size = bin < kHalf ? kHalf - bin : bin - kHalf;
    const float value =
        size == 0 ? 0.0f : std::bit_cast<float>(static_cast<std::uint32_t>(size + kLowest) << 19);
    return bin < kHalf ? -value : value;
  }
};

// The intervals that should contain the median and the median absolute deviation of a template,
// from the coarse histogram. NaN where nothing is known.
struct Bracket {
  float median, deviation;            // centres of the two intervals
  float near_median, near_deviation;  // half widths of the two intervals
  float per_bin;                      // bins per unit of the score
  float cut;                          // lower bound of the threshold
};

// Counts over all scores of a template that are numbers.
struct Counts {
  std::uint32_t below;   // scores below `median`
  std::uint32_t within;  // scores whose distance from `median` is less than `deviation`
  std::uint32_t zeros;   // scores of 0 that lie in a bracket
};

// The values at the two middle ranks, found 8 bits at a time from the highest bits on.
struct Selection {
  std::uint32_t found[2], rank[2];
  double median;  // valid once it is known
};
inline constexpr int kDigits = 256;

struct Threshold {
  float least;  // the smallest float that is at least the threshold; NaN where no score is a number
};

struct State {
  std::uint32_t unknown;     // nonzero: a bracket does not contain its value
  std::uint32_t candidates;  // number found, which may exceed the capacity of the list
  std::uint32_t not_scores;  // shifts whose window has an infinity or a NaN
  std::uint32_t arrived;     // blocks at barriers of the grid
};

// Filled on the host, passed to kernels by value. Arrays over templates have `padded` elements, a
// multiple of the group.
struct Memory {
  float* templates;  // [templates][channels][length], prepared
  float* units;      // [templates]: sums of products with ones; for zncc, with 0, 1, 2 and so on
  float* centres;    // [templates]: near the middle of the scores, for the survey; for zncc 0
  float* factors;    // [shifts of all tiles]
  float* means;      // [channels][chunks], see mean_of_chunks
  State* state;
  std::uint32_t* survey;       // [padded][Survey::kBins]
  unsigned long long* spread;  // [padded]: sum of squares of scores below the centre of a warp
  Counts* counts;              // [padded]
  std::uint32_t* histogram;    // [padded][3][bins]: about the median, above it, below it
  std::uint32_t* digits;       // [padded][2][kDigits]
  Bracket* brackets;           // [padded]
  Selection* selections;       // [padded]
  Threshold* thresholds;       // [padded]
  Detection* candidates;
  int chunk_log2;                // of the samples of a chunk
  int chunks, parts;             // per channel
  int bins;                      // per bracket
  std::uint32_t candidate_list;  // capacity
  std::uint32_t cleared;         // words from `state` on that each call clears
};

// Chooses the chunks of a signal: powers of two, so that a kernel divides by a shift.
inline void set_chunks(Memory& memory, Index samples) {
  Index chunk = SeriesTuning::kChunk;
  while (chunk > warp::kSize && chunk * SeriesTuning::kLeastChunks > samples) chunk /= 2;
  memory.chunk_log2 = std::countr_zero(static_cast<std::uint64_t>(chunk));
  memory.chunks = static_cast<int>(ceil_div(samples, chunk));
  memory.parts = ceil_div(memory.chunks, SeriesTuning::kChunksOfBlock);
}

// What the problem requires of the products.
struct Question {
  bool centred;         // zncc
  bool normalised;      // ncc, zncc: a line is subtracted from the signal
  float limit;          // largest possible score
  double deviations;    // of `above:8mad`
  float per_bin;        // bins per unit of the score
  bool surveyed;        // thresholds come from brackets, if these are valid
  AboveHeader* header;  // null for surfaces
  unsigned long long capacity;
};

__device__ __forceinline__ float not_a_number() { return std::bit_cast<float>(0x7fc00000u); }

// The smallest float that is at least `value`.
__device__ __forceinline__ float float_from(double value) {
  const auto nearest = static_cast<float>(value);
  if (!(static_cast<double>(nearest) < value)) return nearest;
  if (nearest == 0) return std::bit_cast<float>(1u);
  const std::uint32_t bits = bits_of(nearest);
  return std::bit_cast<float>(nearest > 0 ? bits + 1 : bits - 1);
}

}  // namespace xcorr::time_series
