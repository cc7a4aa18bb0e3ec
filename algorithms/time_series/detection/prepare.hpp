// What is done to templates and signal before anything else: templates without their mean, divided by
// their norm; the mean of each chunk of the signal; cleared counts. And lines near parts of the signal,
// made of these means.
#pragma once

#include <cmath>

#include "algorithms/blocks/lane_median.hpp"
#include "algorithms/time_series/detection/memory.hpp"

namespace xcorr::time_series {

inline constexpr int kPrepareThreads = kChunksOfBlock * warp::kSize;

// The rows of one matrix: channels `pitch` apart, or with an offset each.
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

// The sums over the threads of a block of kPrepareThreads, for all threads. Each sum of a block has a
// number of its own, so that no barrier is needed before the next.
template <int kNumber>
__device__ __forceinline__ double sum_of_block(double value) {
  XCORR_SHARED(double, of_warp, kChunksOfBlock);
  value = warp::reduce_add(value);
  if (warp::lane() == 0) of_warp[threadIdx.x / warp::kSize] = value;
  block::barrier();
  double sum = 0;
#pragma unroll
  for (int i = 0; i < kChunksOfBlock; ++i) sum += of_warp[i];
  return sum;
}

// A template without its mean, divided by its norm; 0 where it is constant, as then nothing is left
// of it. The mean is taken about the first sample, so that a constant leaves exactly 0. *unit is what
// the template makes of a signal of ones, or, of zncc, which makes 0 of that, of 0, 1, 2 and so on.
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
    for (Index i = threadIdx.x; i < size; i += kPrepareThreads) sum += from(i) - first;
    mean = sum_of_block<0>(sum) / static_cast<double>(size);
  }
  if (asked.normalised) {
    double squares = 0;
    for (Index i = threadIdx.x; i < size; i += kPrepareThreads) {
      const double value = from(i) - first - mean;
      squares += value * value;
    }
    squares = sum_of_block<1>(squares);
    // Where the rule of constants applies (docs/design.md, Fields of a problem), all samples are almost equal.
    const double step = asked.centred ? 8 * 0x1p-24 * (first + mean) : 0;
    factor = squares <= step * step * static_cast<double>(size) ? 0 : 1 / std::sqrt(squares);
  }
  double sum = 0;
  for (Index i = threadIdx.x; i < size; i += kPrepareThreads) {
    const double value = (from(i) - first - mean) * factor;
    to[i] = static_cast<float>(value);
    const Index at = q.channels == 1 ? i : i % q.length;
    sum += asked.centred ? value * static_cast<double>(at) : value;
  }
  sum = sum_of_block<2>(sum);
  if (threadIdx.x == 0) *unit = static_cast<float>(sum);
}

// The mean of a template's scores ncc at kChunksOfBlock shifts that lie evenly in the signal, a warp each:
// near the middle of all, also where signal and template are far from 0. A shift without a finite score
// counts as 0. By the threads that have prepared the template.
__device__ __forceinline__ float centre_of_scores(const Series& q, const float* prepared,
                                                  const float* signal) {
  const int at = static_cast<int>(threadIdx.x) / warp::kSize;
  const auto first =
      q.first + static_cast<int>(static_cast<Index>(q.shifts - 1) * at / (kChunksOfBlock - 1));
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
  return static_cast<float>(sum_of_block<3>(counts ? score : 0.0) / kChunksOfBlock);
}

// Samples as large as nodata fills are (the largest float32) leave no room for a sum, tf32 rounds them to an
// infinity, and the norm of a window of theirs has a reciprocal that float32 does not hold. A tile with a
// chunk of such samples is wide: its samples are taken times kWideScale, which is exact, and so are its
// lines. The factor of a window whose norm is at least kWideNorm, which only a wide tile can have, is
// -1 / (kWideScale x norm). take_back_scale() of products.hpp makes the sums fit their factors again.
inline constexpr float kWideSample = 0x1p80f, kWideScale = 0x1p-64f;
inline constexpr double kWideNorm = 0x1p100;

// Each warp has a chunk. The last bit of a mean says whether the chunk has a sample of at least kWideSample: a
// mean only has to be near the samples. Where outliers have moved the mean of a chunk far from the means of its
// lanes, the median of these stands for it. An infinity or a NaN is no part of a mean.
template <typename T>
__device__ __forceinline__ void mean_of_chunks(const Series& q, const Memory& memory, int channel,
                                               int part, const T* samples) {
  constexpr int kOfLane = kChunk / warp::kSize, kAtOnce = kOfLane < 16 ? kOfLane : 16;
  const int of_block = static_cast<int>(threadIdx.x) / warp::kSize;
  const int chunk = part * kChunksOfBlock + of_block;
  const Index first = static_cast<Index>(chunk) * kChunk + warp::lane();
  double sums[2] = {};
  int count = 0;
  bool wide = false;
#pragma unroll
  for (int from = 0; from < kOfLane; from += kAtOnce) {
    float values[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const Index at = first + (from + i) * warp::kSize;
      values[i] = at < q.pitch ? samples[at] : not_a_number();
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

// The first blocks have a template each, the others a part of the signal.
template <typename T>
__global__ void __launch_bounds__(kPrepareThreads, 5)
    prepare_kernel(Series q, Question asked, Memory memory, const T* left, const T* right) {
  wait_for_previous();
  const Index threads = static_cast<Index>(gridDim.x) * kPrepareThreads;
  auto* const words = reinterpret_cast<std::uint32_t*>(memory.state);
  for (Index i = static_cast<Index>(blockIdx.x) * kPrepareThreads + threadIdx.x; i < memory.cleared;
       i += threads) {
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

// A number near the samples [first, first + count) of all channels: the mean of the chunks that
// they lie in. All lanes of a warp make it. What a lane reads is apart from what waits for it.
struct PivotPart {
  double sum = 0;  // of two means float32 may be too small
  int terms = 0;
  __device__ __forceinline__ PivotPart(const Series& q, const Memory& memory, int first, int count,
                                       bool asked) {
    if (!asked) return;
    const int end = smaller(first + count, q.pitch), from = first / kChunk;
    const int to = smaller((end - 1) / kChunk, memory.chunks - 1);
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
  float start = 0, slope = 0;  // at the first sample of the part, and from a sample to the next
  float scale = 1;             // kWideScale in a wide tile
  __device__ __forceinline__ bool is_wide() const { return scale != 1; }
  // What is left of sample i of the part, times the scale. The start goes first: the difference of two numbers
  // that are near each other is exact, and what follows is small.
  __device__ __forceinline__ float without(float value, float i) const {
    return std::fma(-slope, i, std::fma(value, scale, -start));
  }
};

// The chunks whose means say what line lies near the samples [first, first + count): those that the
// samples lie in, [from, to], and one before and one behind them, if they exist.
struct LineChunks {
  int from, to, before, after;
  __device__ __forceinline__ LineChunks(const Series& q, const Memory& memory, int first, int count)
      : from(first / kChunk),
        to(smaller((smaller(first + count, q.pitch) - 1) / kChunk, memory.chunks - 1)),
        before(from > 0 ? from - 1 : 0),
        after(smaller(to + 1, memory.chunks - 1)) {}
  // Of any samples so many.
  static constexpr int most(int count) { return (count - 1) / kChunk + 4; }
};

// The line from the mean of the chunks of samples that begin with `first`; `slope` from the chunks around
// them, or none. mean(channel, i) is that of chunk before + i; a lane asks for i = lane, lane + 32 and so on. All
// lanes of a warp call it.
template <typename Mean>
__device__ __forceinline__ Line line_of_chunks(const Series& q, const LineChunks& chunks, int first,
                                               bool slope, const Mean& mean) {
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
  const auto by = static_cast<float>(warp::reduce_add(rise) * static_cast<double>(scale) /
                                     (static_cast<double>(q.channels) * kChunk *
                                      static_cast<double>(chunks.after - chunks.before)));
  const float middle = 0.5f * static_cast<float>((chunks.from + chunks.to + 1) * kChunk);
  return {std::fma(static_cast<float>(first) - middle, by, pivot), by, scale};
}

}  // namespace xcorr::time_series
