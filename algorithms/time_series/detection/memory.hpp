// What the kernels of detection give each other, and records.
//
// Preparation leaves templates, factors of shifts, and means of the signal. The kernels of
// `above:8mad` leave, for each template, a rough distribution of its scores, brackets that should
// hold the median and the median absolute deviation, counts of all scores by these brackets, and the
// threshold.
#pragma once

#include <cstdint>

#include "algorithms/blocks/records.hpp"
#include "algorithms/time_series/warp_products.hpp"

namespace xcorr::time_series {

// Samples of the signal that share a mean, and that a block of the preparation adds up.
inline constexpr int kChunk = static_cast<int>(small_if_emulated(1024, 64));
inline constexpr int kChunksOfBlock = 8;

// The rough distribution of the distances from a score near the middle (Memory::centres): 16 bins for
// each power of two down to 2^-12, of either sign. About 0 the scores ncc of a signal that is far from
// its own 0, which are all near 0.75 or so, would lie in two or three bins.
struct Survey {
  static constexpr int kPowers = 12, kOfPower = 16;
  static constexpr int kLowest = (127 - kPowers) * kOfPower;  // leading bits of 2^-12
  static constexpr int kHalf = kPowers * kOfPower + 1;        // bins of a sign, up to that of 1
  static constexpr int kBins = 2 * kHalf;

  // Of a distance. Those beyond 1 are in the outermost bins.
  __device__ static __forceinline__ int bin(float score) {
    const int leading = static_cast<int>((bits_of(score) & 0x7fffffffu) >> 19);
    const int size = leading < kLowest ? 0 : leading - kLowest;
    const int bounded = size < kHalf ? size : kHalf - 1;
    return score < 0 ? kHalf - 1 - bounded : kHalf + bounded;
  }
  // Where a bin begins; the end of the last one for kBins.
  __device__ static __forceinline__ float edge(int bin) {
    const int size = bin < kHalf ? kHalf - bin : bin - kHalf;
    const float value =
        size == 0 ? 0.0f : std::bit_cast<float>(static_cast<std::uint32_t>(size + kLowest) << 19);
    return bin < kHalf ? -value : value;
  }
};

// Where the median and the median absolute deviation of a template should lie, from the rough
// distribution. NaN where nothing is known.
struct Bracket {
  float median, deviation;            // about here
  float near_median, near_deviation;  // no farther than this
  float per_bin;                      // bins of a unit of the score
  float cut;                          // no threshold is below
};

// Of all scores of a template that are numbers.
struct Counts {
  std::uint32_t below;   // scores below `median`
  std::uint32_t within;  // scores whose distance from `median` is less than `deviation`
  std::uint32_t zeros;   // scores of 0 that lie in a bracket
};

// The numbers at the two middle ranks, found 8 bits at a time from the highest.
struct Selection {
  std::uint32_t found[2], rank[2];
  double median;  // once it is known
};
inline constexpr int kDigits = 256;

struct Threshold {
  float least;  // the smallest float of at least the threshold; NaN where no score is a number
};

struct State {
  std::uint32_t unknown;     // not 0: the brackets do not hold what they should
  std::uint32_t candidates;  // beyond the capacity of the list they are counted only
  std::uint32_t not_scores;  // shifts whose window has an infinity or a NaN
  std::uint32_t arrived;     // blocks at barriers of the grid
};

// Made on the host, given to kernels by value. Arrays of templates have `padded` elements, whole
// groups.
struct Memory {
  float* templates;  // [templates][channels][length], what is multiplied
  float* units;      // [templates]: what they make of ones; of zncc, of 0, 1, 2 and so on
  float* centres;    // [templates]: about the middle of the scores, for the survey; of zncc 0
  float* factors;    // [tiles of a block], of the sums of a shift
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
  int chunks, parts;             // of a channel
  int bins;                      // of a bracket
  std::uint32_t candidate_list;  // capacity
  std::uint32_t cleared;         // words from `state` on that each call sets to 0
};

// What is asked of the products.
struct Question {
  bool centred;         // zncc
  bool normalised;      // ncc, zncc: the signal is taken about pivots
  float limit;          // no score is larger
  double deviations;    // of `above:8mad`
  float per_bin;        // bins of a unit of the score
  bool surveyed;        // thresholds come from brackets, if they hold
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
