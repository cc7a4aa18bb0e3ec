// What is done to templates and signal before the products, in two kernels:
//
//   prepare_kernel  templates without their mean, divided by their norm; the mean of each chunk of
//                   the signal; cleared counts
//   factors_kernel  for each shift 1 / the norm of the signal's window
//
// Sums are float64, about a pivot near the data. The sums of windows are made of additions alone: a
// thread has 16 neighbouring shifts, whose windows share all samples but the first and last few.
//
//   window of shift j   [ samples j to 15 | what all 16 windows share | the next j samples ]
//
// What they share is added up from sums of 16 samples. Nothing is subtracted, so that a large sample
// leaves no error in windows that do not hold it, and an infinity or a NaN no trace.
#pragma once

#include <cmath>

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

// The sum over the threads of a block of kPrepareThreads, for all threads.
__device__ __forceinline__ double sum_of_block(double value) {
  XCORR_SHARED(double, of_warp, kChunksOfBlock);
  value = warp::reduce_add(value);
  block::barrier();  // others may still read the sums before
  if (warp::lane() == 0) of_warp[threadIdx.x / warp::kSize] = value;
  block::barrier();
  double sum = 0;
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
    return static_cast<double>(rows.row(static_cast<int>(i / q.length))[i % q.length]);
  };
  const auto first = asked.centred ? from(0) : 0.0;
  double mean = 0, factor = 1;
  if (asked.centred) {
    double sum = 0;
    for (Index i = threadIdx.x; i < size; i += kPrepareThreads) sum += from(i) - first;
    mean = sum_of_block(sum) / static_cast<double>(size);
  }
  if (asked.normalised) {
    double squares = 0;
    for (Index i = threadIdx.x; i < size; i += kPrepareThreads) {
      const double value = from(i) - first - mean;
      squares += value * value;
    }
    squares = sum_of_block(squares);
    factor = squares == 0 ? 0 : 1 / std::sqrt(squares);
  }
  double sum = 0;
  for (Index i = threadIdx.x; i < size; i += kPrepareThreads) {
    const double value = (from(i) - first - mean) * factor;
    to[i] = static_cast<float>(value);
    sum += asked.centred ? value * static_cast<double>(i % q.length) : value;
  }
  sum = sum_of_block(sum);
  if (threadIdx.x == 0) *unit = static_cast<float>(sum);
}

// Each warp has a chunk. An infinity or a NaN is no part of a mean.
template <typename T>
__device__ __forceinline__ void mean_of_chunks(const Series& q, const Memory& memory, int channel,
                                               int part, const T* samples) {
  const int chunk = part * kChunksOfBlock + static_cast<int>(threadIdx.x) / warp::kSize;
  double sum = 0, count = 0;
#pragma unroll 8
  for (int i = warp::lane(); i < kChunk; i += warp::kSize) {
    const Index at = static_cast<Index>(chunk) * kChunk + i;
    const float value = at < q.pitch ? samples[at] : not_a_number();
    sum += is_finite(value) ? static_cast<double>(value) : 0.0;
    count += is_finite(value) ? 1.0 : 0.0;
  }
  const double chunk_sum = warp::reduce_add(sum), chunk_count = warp::reduce_add(count);
  if (warp::lane() == 0 && chunk < memory.chunks) {
    memory.means[channel * memory.chunks + chunk] =
        static_cast<float>(chunk_count > 0 ? chunk_sum / chunk_count : 0.0);
  }
  const double block_sum = sum_of_block(sum), block_count = sum_of_block(count);
  if (threadIdx.x == 0) memory.totals[channel * memory.parts + part] = {block_sum, block_count};
}

// The first blocks have a template each, the others a part of the signal.
template <typename T>
__global__ void __launch_bounds__(kPrepareThreads)
    prepare_kernel(Series q, Question asked, Memory memory, const T* left, const T* right) {
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
  } else {
    const int i = block - q.templates;
    const int channel = i / memory.parts;
    mean_of_chunks(q, memory, channel, i % memory.parts,
                   right + static_cast<Index>(channel) * q.pitch);
  }
}

// A number near the samples [first, first + count) of all channels: the mean of the chunks that
// they lie in.
__device__ __forceinline__ float pivot_of(const Series& q, const Memory& memory, int first,
                                          int count) {
  const int end = smaller(first + count, q.pitch), from = first / kChunk;
  const int to = smaller((end - 1) / kChunk, memory.chunks - 1);
  float sum = 0;
  for (int channel = 0; channel < q.channels; ++channel) {
    for (int chunk = from; chunk <= to; ++chunk)
      sum += memory.means[channel * memory.chunks + chunk];
  }
  const int terms = q.channels * (to - from + 1);
  return terms > 0 ? sum / static_cast<float>(terms) : 0.0f;
}

// A line near a part of the signal, the same for all channels.
struct Line {
  float start, slope;  // at the first sample of the part, and from a sample to the next
  // What is left of sample i of the part. The start goes first: the difference of two numbers that
  // are near each other is exact, and what follows is small.
  __device__ __forceinline__ float without(float value, int i) const {
    return std::fma(-slope, static_cast<float>(i), value - start);
  }
};

// Of the samples [first, first + count), from the mean of their chunks, and the slope from the chunks
// around them.
__device__ __forceinline__ Line line_of(const Series& q, const Memory& memory, int first,
                                        int count) {
  const int end = smaller(first + count, q.pitch), from = first / kChunk;
  const int to = smaller((end - 1) / kChunk, memory.chunks - 1);
  const int before = from > 0 ? from - 1 : 0, after = smaller(to + 1, memory.chunks - 1);
  if (after <= before) return {pivot_of(q, memory, first, count), 0.0f};
  float rise = 0;
  for (int channel = 0; channel < q.channels; ++channel) {
    const float* const means = memory.means + channel * memory.chunks;
    rise += means[after] - means[before];
  }
  const float slope =
      rise / (static_cast<float>(q.channels * kChunk) * static_cast<float>(after - before));
  const float middle = 0.5f * static_cast<float>((from + to + 1) * kChunk);
  return {std::fma(static_cast<float>(first) - middle, slope, pivot_of(q, memory, first, count)),
          slope};
}

inline constexpr int kRun = 16;  // shifts of a thread
inline constexpr int kFactorThreads = static_cast<int>(small_if_emulated(128, 32));
inline constexpr int kFactorTile = kRun * kFactorThreads;

struct WindowSums {
  double values, squares;
  __device__ __forceinline__ void add(double value) {
    values += value;
    squares += value * value;
  }
  __device__ __forceinline__ void add(const WindowSums& of) {
    values += of.values;
    squares += of.squares;
  }
};

// 1 / sqrt(value) to about 2^-23, of numbers that float32 does not hold, too.
__device__ __forceinline__ float inverse_root(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const int exponent = static_cast<int>(bits >> 52) - 1023;
  const int odd = exponent & 1, half = (exponent - odd) / 2;
  const auto power = [](int of) {
    return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + of) << 52);
  };
  const double small = std::bit_cast<double>((bits & 0xfffffffffffffu) |
                                             static_cast<std::uint64_t>(1023 + odd) << 52);
  return static_cast<float>(1.0f / std::sqrt(static_cast<float>(small)) * power(-half));
}

// The factor of a shift: 0 where the window is constant up to rounding (docs/design.md, Fields of a
// problem), NaN where it has an infinity or a NaN. `mean` is that of the whole signal. The rule asks
// for the largest deviation from it. Where it applies, all samples of the window are almost equal,
// and the deviation of their mean serves. `share` is 1 / `terms`.
__device__ __forceinline__ float factor_of(const WindowSums& sums, double terms, double share,
                                           double pivot, double mean, const Question& asked) {
  if (!(sums.squares - sums.squares == 0)) return not_a_number();
  if (!asked.normalised) return 1;
  if (!asked.centred) return sums.squares < 0x1p-1000 ? 0.0f : inverse_root(sums.squares);
  const double window_mean = sums.values * share;
  const double squares = sums.squares - sums.values * window_mean;
  const double step = 8 * 0x1p-24 * (window_mean + pivot - mean);
  // Less than 2^-44 of the squares about the pivot is rounding of these sums.
  const double rounding = sums.squares * 0x1p-44;
  const bool constant = squares <= step * step * terms || squares <= rounding;
  return constant || squares < 0x1p-1000 ? 0.0f : inverse_root(squares);
}

// A block has tiles of kFactorTile shifts. Factors beyond the last shift, up to `factors`, are NaN.
// Dynamic shared memory: sums of 16 samples, WindowSums[(kFactorTile + length) / 16].
template <typename T>
__device__ __forceinline__ void make_factors(const Series& q, const Question& asked,
                                             const Memory& memory, int factors,
                                             const Rows<T>& right) {
  // All that a tile needs lies in shared memory at once where templates are short.
  constexpr int kMore = static_cast<int>(small_if_emulated(512, 64)) + 2 * kRun;
  constexpr int kStaged = kFactorTile + kMore;
  // A thread's samples begin in a bank of their own.
  const auto place = [](int i) { return i + i / kRun; };
  XCORR_SHARED(float, staged, kStaged + kStaged / kRun);
  XCORR_SHARED(Total, of_warp, kFactorThreads / warp::kSize);
  auto* const sums = dynamic_shared<WindowSums>();
  const int thread = static_cast<int>(threadIdx.x);
  double mean = 0;
  if (asked.centred) {
    Total total = {};
    for (int i = thread; i < q.channels * memory.parts; i += kFactorThreads) {
      total.sum += memory.totals[i].sum;
      total.count += memory.totals[i].count;
    }
    total.sum = warp::reduce_add(total.sum);
    total.count = warp::reduce_add(total.count);
    if (warp::lane() == 0) of_warp[thread / warp::kSize] = total;
    block::barrier();
    Total all = {};
    for (int i = 0; i < kFactorThreads / warp::kSize; ++i) {
      all.sum += of_warp[i].sum;
      all.count += of_warp[i].count;
    }
    mean = all.count > 0 ? all.sum / all.count : 0.0;
  }
  const double terms = static_cast<double>(q.channels) * q.length, share = 1 / terms;
  const int runs = q.length / kRun, rest = q.length % kRun;
  const bool once = (runs + 2) * kRun <= kMore;
  const int staged_count = kFactorTile + (once ? runs + 2 : 2) * kRun;
#pragma unroll 1
  for (Index tile = blockIdx.x; tile * kFactorTile < factors; tile += gridDim.x) {
    const int shift = static_cast<int>(tile) * kFactorTile;
    const auto pivot = static_cast<double>(
        asked.centred ? pivot_of(q, memory, q.first + shift, kFactorTile + q.length) : 0.0f);
    WindowSums windows[kRun] = {};
#pragma unroll 1
    for (int channel = 0; channel < q.channels; ++channel) {
      const T* const samples = right.row(channel);
      const auto stage = [&](int from) {
        block::barrier();
        if (once && from > 0) return;
#pragma unroll 8
        for (int i = thread; i < staged_count; i += kFactorThreads) {
          staged[place(i)] = load_or_zero(samples, q.first + shift + from + i, q.pitch);
        }
        block::barrier();
      };
      // Sample i of the thread, of those from `from` on.
      const auto sample = [&](int from, int i) {
        return static_cast<double>(staged[place((once ? from : 0) + thread * kRun + i)]) - pivot;
      };
      if (runs == 0) {
        stage(0);
#pragma unroll
        for (int j = 0; j < kRun; ++j) {
          for (int i = 0; i < rest; ++i) windows[j].add(sample(0, j + i));
        }
        continue;
      }
#pragma unroll 1
      for (int from = 0; from < kFactorTile + runs * kRun; from += kFactorTile) {
        stage(from);
        const int number = from / kRun + thread;
        WindowSums run = {};
        if (from == 0) {
#pragma unroll
          for (int j = kRun - 1; j >= 0; --j) {
            run.add(sample(0, j));
            windows[j].add(run);
          }
        } else if (number < kFactorTile / kRun + runs) {
#pragma unroll
          for (int j = 0; j < kRun; ++j) run.add(sample(from, j));
        }
        if (number < kFactorTile / kRun + runs) sums[number] = run;
      }
      stage(runs * kRun);
      WindowSums shared = {};
      for (int i = 1; i < runs; ++i) shared.add(sums[thread + i]);
      for (int i = 0; i < rest; ++i) shared.add(sample(runs * kRun, i));
#pragma unroll
      for (int j = 0; j < kRun; ++j) {
        windows[j].add(shared);
        shared.add(sample(runs * kRun, rest + j));
      }
    }
    struct alignas(16) Four {
      float of[4];
    };
    std::uint32_t not_scores = 0;
#pragma unroll
    for (int j = 0; j < kRun; j += 4) {
      Four four;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int at = shift + thread * kRun + j + i;
        four.of[i] = at < q.shifts ? factor_of(windows[j + i], terms, share, pivot, mean, asked)
                                   : not_a_number();
        not_scores += at < q.shifts && !(four.of[i] == four.of[i]);
      }
      const int at = shift + thread * kRun + j;
      if (at < factors) *reinterpret_cast<Four*>(memory.factors + at) = four;
    }
    if (not_scores > 0) atomic_add(&memory.state->not_scores, not_scores);
  }
}

template <typename T>
__global__ void __launch_bounds__(kFactorThreads, 3)
    factors_kernel(Series q, Question asked, Memory memory, int factors, const T* right) {
  make_factors(q, asked, memory, factors, Rows<T>{right, q.pitch});
}

}  // namespace xcorr::time_series
