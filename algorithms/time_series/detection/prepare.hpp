// Preparation of templates and signal: each template minus its mean, divided by its norm; the mean
// of each chunk of the signal; cleared counts. Also the lines near parts of the signal, which are
// computed from these means.
#pragma once

#include <cmath>

#include "algorithms/blocks/lane_median.hpp"
#include "algorithms/time_series/detection/memory.hpp"

namespace xcorr::time_series {

// The rows of one matrix: channels are `pitch` apart, or each has an offset.
template <typename T>
struct Rows {
  const T* first;
  Index pitch;
  const Index* offsets = nullptr;
  __device__ __forceinline__ const T* row(int channel) const {
    return first + (offsets ? offsets[channel] : channel * pitch);
  }
};

__device__ __forceinline__ bool is_finite(float value) { return value - value == 0; }

// The sum of `value` over the threads of a block of kPrepareThreads, for all threads. Each sum of a
// kernel has its own shared memory (kNumber), so that no barrier is needed before the next sum.
template <int kNumber>
__device__ __forceinline__ double sum_of_block(double value) {
  XCORR_SHARED(double, of_warp, SeriesTuning::kChunksOfBlock);
  value = warp::reduce_add(value);
  if (warp::lane() == 0) of_warp[threadIdx.x / warp::kSize] = value;
  block::barrier();
  double sum = 0;
#pragma unroll
  for (int i = 0; i < SeriesTuning::kChunksOfBlock; ++i) sum += of_warp[i];
  return sum;
}

// Stores a template minus its mean, divided by its norm; 0 where the template is constant. The mean
// is computed relative to the first sample, so that a constant gives exactly 0. *unit is the sum of
// the products with a signal of ones; for zncc, where that sum is 0, with 0, 1, 2 and so on.
template <typename T>
__device__ __forceinline__ void prepare_template(const Series& q, const Question& asked,
                                                 const Rows<T>& rows, float* to, float* unit) {
  const Index size = static_cast<Index>(q.channels) * q.length;
  const auto from = [&](Index i) {
    if (q.channels == 1) return static_cast<double>(rows.row(0)[i]);
    return static_cast<double>(rows.row(static_cast<int>(i / q.length))[i % q.length]);
  };
  const auto first = asked.centred ? from(0) : 0.0;
  double mean = 0, factor = 1;
  if (asked.centred) {
    double sum = 0;
    for (Index i = threadIdx.x; i < size; i += SeriesTuning::kPrepareThreads)
      sum += from(i) - first;
    mean = sum_of_block<0>(sum) / static_cast<double>(size);
  }
  if (asked.normalised) {
    double squares = 0;
    for (Index i = threadIdx.x; i < size; i += SeriesTuning::kPrepareThreads) {
      const double value = from(i) - first - mean;
      squares += value * value;
    }
    squares = sum_of_block<1>(squares);
    // Where the rule of constants (docs/design.md, Fields of a problem) applies, all samples are
    // almost equal.
    const double step = asked.centred ? 8 * 0x1p-24 * (first + mean) : 0;
    factor = squares <= step * step * static_cast<double>(size) ? 0 : 1 / std::sqrt(squares);
  }
  double sum = 0;
  for (Index i = threadIdx.x; i < size; i += SeriesTuning::kPrepareThreads) {
    const double value = (from(i) - first - mean) * factor;
    to[i] = static_cast<float>(value);
    const Index at = q.channels == 1 ? i : i % q.length;
    sum += asked.centred ? value * static_cast<double>(at) : value;
  }
  sum = sum_of_block<2>(sum);
  if (threadIdx.x == 0) *unit = static_cast<float>(sum);
}

// The mean of a template's ncc scores at kChunksOfBlock evenly spaced shifts, one per warp: near the
// middle of all scores. A shift without a finite score counts as 0. Called by the threads that
// prepared the template.
__device__ __forceinline__ float centre_of_scores(const Series& q, const float* prepared,
                                                  const float* signal) {
  const int at = static_cast<int>(threadIdx.x) / warp::kSize;
  const auto first = q.first + static_cast<int>(static_cast<Index>(q.shifts - 1) * at /
                                                (SeriesTuning::kChunksOfBlock - 1));
  block::barrier();  // other threads have prepared what this one reads
  double products = 0, squares = 0;
#pragma unroll 1
  for (int channel = 0; channel < q.channels; ++channel) {
    const float* const samples = signal + static_cast<Index>(channel) * q.pitch;
    const float* const of_channel = prepared + static_cast<Index>(channel) * q.length;
#pragma unroll 2
    for (int i = warp::lane(); i < q.length; i += warp::kSize) {
      const auto value = static_cast<double>(load_or_zero(samples, first + i, q.pitch));
      products += value * static_cast<double>(of_channel[i]);
      squares += value * value;
    }
  }
  products = warp::reduce_add(products);
  squares = warp::reduce_add(squares);
  const double score = products / std::sqrt(squares);
  const bool counts = warp::lane() == 0 && std::fabs(score) <= 1;
  return static_cast<float>(sum_of_block<3>(counts ? score : 0.0) / SeriesTuning::kChunksOfBlock);
}

// Samples as large as nodata fills (the largest float32) overflow a sum, and 1 / the norm of their
// window underflows float32. A tile with a chunk of such samples is wide: its samples and its line
// are multiplied by kWideScale, which is exact. A window whose norm is at least kWideNorm occurs
// only in a wide tile, and its factor is -1 / (kWideScale x norm). take_back_scale() of
// products.hpp makes the sums fit their factors.
inline constexpr float kWideSample = 0x1p80f, kWideScale = 0x1p-64f;
inline constexpr double kWideNorm = 0x1p100;

// Computes the mean of one chunk per warp, without infinities and NaNs. The last bit of a mean says
// whether the chunk has a sample of at least kWideSample. Where outliers have moved the mean far
// from the means of the lanes, the median of the lanes' means is used.
template <typename T>
__device__ __forceinline__ void mean_of_chunks(const Series& q, const Memory& memory, int channel,
                                               int part, const T* samples) {
  constexpr int kOfLane = SeriesTuning::kChunk / warp::kSize, kAtOnce = kOfLane < 16 ? kOfLane : 16;
  const int of_block = static_cast<int>(threadIdx.x) / warp::kSize;
  const int chunk = part * SeriesTuning::kChunksOfBlock + of_block;
  const Index first = (static_cast<Index>(chunk) << memory.chunk_log2) + warp::lane();
  const Index end =
      smaller(static_cast<Index>(chunk + 1) << memory.chunk_log2, static_cast<Index>(q.pitch));
  double sums[2] = {};
  int count = 0;
  bool wide = false;
#pragma unroll
  for (int from = 0; from < kOfLane; from += kAtOnce) {
    float values[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const Index at = first + (from + i) * warp::kSize;
      values[i] = at < end ? samples[at] : not_a_number();
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const bool counts = is_finite(values[i]);
      sums[i % 2] += static_cast<double>(counts ? values[i] : 0.0f);
      wide |= counts && fabsf(values[i]) >= kWideSample;
      count += counts;
    }
  }
  const double sum = warp::reduce_add(sums[0] + sums[1]), terms = warp::reduce_add(count);
  const auto of_all = static_cast<float>(terms > 0 ? sum / terms : 0.0);
  const auto own = static_cast<float>((sums[0] + sums[1]) / count);  // NaN without samples
  const float middle = median_of_numbers(own), spread = median_of_numbers(fabsf(own - middle));
  const float mean = fabsf(of_all - middle) <= 16 * spread ? of_all : middle;
  const std::uint32_t last = warp::any(wide) ? 1 : 0;
  if (warp::lane() == 0 && chunk < memory.chunks) {
    memory.means[channel * memory.chunks + chunk] =
        std::bit_cast<float>((bits_of(mean) & ~1u) | last);
  }
}

// The first blocks prepare one template each, the other blocks a part of the signal.
template <typename T>
__global__ void __launch_bounds__(SeriesTuning::kPrepareThreads, SeriesTuning::kPrepareBlocks)
    prepare_kernel(Series q, Question asked, Memory memory, const T* left, const T* right) {
  wait_for_previous();
  const Index threads = static_cast<Index>(gridDim.x) * SeriesTuning::kPrepareThreads;
  auto* const words = reinterpret_cast<std::uint32_t*>(memory.state);
  for (Index i = static_cast<Index>(blockIdx.x) * SeriesTuning::kPrepareThreads + threadIdx.x;
       i < memory.cleared; i += threads) {
    words[i] = 0;
  }
  if (asked.header && blockIdx.x == 0 && threadIdx.x == 0) *asked.header = {0, 0};
  const int block = static_cast<int>(blockIdx.x);
  if (block < q.templates) {
    const Index at = static_cast<Index>(block) * q.channels * q.length;
    prepare_template(q, asked, Rows<T>{left + at, q.length}, memory.templates + at,
                     memory.units + block);
    if (!asked.surveyed) return;
    const float centre = asked.centred ? 0.0f : centre_of_scores(q, memory.templates + at, right);
    if (threadIdx.x == 0) memory.centres[block] = centre;
  } else {
    const int i = block - q.templates;
    const int channel = i / memory.parts;
    mean_of_chunks(q, memory, channel, i % memory.parts,
                   right + static_cast<Index>(channel) * q.pitch);
  }
}

// A number near the samples [first, first + count) of all channels: the mean of their chunks. All
// lanes of a warp compute it. The loads are in the constructor and their use is in pivot(), so that
// the loads can be in flight in between.
struct PivotPart {
  double sum = 0;  // float64: two means can overflow float32
  int terms = 0;
  __device__ __forceinline__ PivotPart(const Series& q, const Memory& memory, int first, int count,
                                       bool asked) {
    if (!asked) return;
    const int end = smaller(first + count, q.pitch), from = first >> memory.chunk_log2;
    const int to = smaller((end - 1) >> memory.chunk_log2, memory.chunks - 1);
#pragma unroll 1
    for (int channel = 0; channel < q.channels; ++channel) {
#pragma unroll 1
      for (int chunk = from + warp::lane(); chunk <= to; chunk += warp::kSize) {
        sum += static_cast<double>(memory.means[channel * memory.chunks + chunk]);
      }
    }
    terms = q.channels * (to - from + 1);
  }
  __device__ __forceinline__ float pivot() const {
    if (terms <= 0) return 0.0f;
    return static_cast<float>(warp::reduce_add(sum) / terms);
  }
};

// A line near a part of the signal, the same for all channels, times the scale of its tile.
struct Line {
  float start = 0, slope = 0;  // value at the first sample of the part, and rise per sample
  float scale = 1;             // kWideScale in a wide tile
  __device__ __forceinline__ bool is_wide() const { return scale != 1; }
  // Sample i of the part minus the line, times the scale. The start is subtracted first: the
  // difference of two near numbers is exact, and the following terms are small.
  __device__ __forceinline__ float without(float value, float i) const {
    return std::fma(-slope, i, std::fma(value, scale, -start));
  }
};

// The chunks whose means define the line near the samples [first, first + count): the chunks of
// these samples, [from, to], and one chunk before and after them, if it exists.
struct LineChunks {
  int from, to, before, after;
  __device__ __forceinline__ LineChunks(const Series& q, const Memory& memory, int first, int count)
      : from(first >> memory.chunk_log2),
        to(smaller((smaller(first + count, q.pitch) - 1) >> memory.chunk_log2, memory.chunks - 1)),
        before(from > 0 ? from - 1 : 0),
        after(smaller(to + 1, memory.chunks - 1)) {}
  // The max number of chunks for `count` samples. Short signals have at most 2 kLeastChunks.
  static constexpr int most(int count) {
    return (count - 1) / SeriesTuning::kChunk + 2 * SeriesTuning::kLeastChunks + 4;
  }
};

// The line near the samples from `first` on: its level is the mean of their chunks, its slope comes
// from the chunks around them, or is 0. mean(channel, i) is the mean of chunk before + i; a lane
// reads i = lane, lane + 32 and so on. All lanes of a warp call it.
// The last chunk of a signal may lack samples. What this moves is computed last, from numbers that
// take no registers before.
template <typename Mean>
__device__ __forceinline__ Line line_of_chunks(const Series& q, const Memory& memory,
                                               const LineChunks& chunks, int first, bool slope,
                                               const Mean& mean) {
  double sum = 0, rise = 0;
  std::uint32_t wide = 0;
#pragma unroll 1
  for (int channel = 0; channel < q.channels; ++channel) {
#pragma unroll 1
    for (int chunk = chunks.before + warp::lane(); chunk <= chunks.after; chunk += warp::kSize) {
      const float of_chunk = mean(channel, chunk - chunks.before);
      const auto value = static_cast<double>(of_chunk);
      const bool inside = chunk >= chunks.from && chunk <= chunks.to;
      wide |= inside ? bits_of(of_chunk) & 1u : 0u;
      sum += inside ? value : 0.0;
      rise += chunk == chunks.after ? value : 0.0;
      rise -= chunk == chunks.before ? value : 0.0;
    }
  }
  const int terms = q.channels * (chunks.to - chunks.from + 1);
  const float scale = warp::any(wide != 0) ? kWideScale : 1.0f;
  const double scaled = warp::reduce_add(sum) * static_cast<double>(scale);
  const auto pivot = terms > 0 ? static_cast<float>(scaled / terms) : 0.0f;
  if (!slope || chunks.after <= chunks.before) return {pivot, 0.0f, scale};
  const auto samples = static_cast<float>(1 << memory.chunk_log2);
  const auto missing = static_cast<float>((memory.chunks << memory.chunk_log2) - q.pitch);
  const bool is_end = chunks.after == memory.chunks - 1, holds_end = chunks.to == memory.chunks - 1;
  // From the middle of chunk `before` to that of chunk `after`.
  const float length =
      static_cast<float>(chunks.after - chunks.before) * samples - (is_end ? 0.5f * missing : 0.0f);
  const auto by =
      static_cast<float>(warp::reduce_add(rise) * static_cast<double>(scale) /
                         (static_cast<double>(q.channels) * static_cast<double>(length)));
  // The mean of the middles of the chunks [from, to].
  const auto count = static_cast<float>(chunks.to - chunks.from + 1);
  const float middle = 0.5f * (static_cast<float>(chunks.from + chunks.to + 1) * samples -
                               (holds_end ? missing / count : 0.0f));
  return {std::fma(static_cast<float>(first) - middle, by, pivot), by, scale};
}

}  // namespace xcorr::time_series
