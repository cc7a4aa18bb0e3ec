// The factor of each shift: 1 / the norm of the signal's window.
//
// The sums of windows are made of additions alone: a thread has 16 neighbouring shifts, whose windows
// share all samples but the first and last few.
//
//   window of shift j   [ samples j to 15 | what all 16 windows share | the next j samples ]
//
// What they share is added up from sums of 16 samples. Nothing is subtracted, so that a large sample
// leaves no error in windows that do not hold it, and an infinity or a NaN no trace.
//
// Sums are float32 about a pivot near the tile. Where a window's mean is far from the pivot, where its
// samples may be constant up to rounding, where there is an infinity or a NaN, and where windows are
// shorter than 16 samples, float32 does not say enough, and the thread makes the sums of 8 windows again
// in float64.
#pragma once

#include <cmath>

#include "algorithms/time_series/detection/prepare.hpp"

namespace xcorr::time_series {

inline constexpr int kRun = 16;  // shifts of a thread
inline constexpr int kFactorThreads = static_cast<int>(small_if_emulated(128, 32));

template <typename T>
struct WindowSums {
  T values, squares;
  __device__ __forceinline__ void add(T value) {
    values += value;
    squares += value * value;
  }
  __device__ __forceinline__ void add(const WindowSums& of) {
    values += of.values;
    squares += of.squares;
  }
};

// A thread's samples begin in a bank of their own.
__host__ __device__ constexpr int sample_place(int i) {
  return i + static_cast<int>(static_cast<unsigned>(i) / kRun);
}

// Dynamic shared memory of blocks that make factors. A tile is the shifts of a block. All samples that it
// needs lie there at once where templates are short.
struct FactorMemory {
  static constexpr int kMore = static_cast<int>(small_if_emulated(512, 64)) + 2 * kRun;

  static constexpr int tile(int threads) { return kRun * threads; }
  // In words, all even.
  static constexpr int staged_words(int threads) {
    return ceil_div(sample_place(tile(threads) + kMore), 4) * 4;
  }
  static constexpr int words(Index length, int threads) {
    return staged_words(threads) + 2 + 2 * static_cast<int>((tile(threads) + length) / kRun);
  }
  static constexpr std::size_t bytes(Index length, int threads) {
    return static_cast<std::size_t>(words(length, threads)) * sizeof(float);
  }
  __device__ FactorMemory(float* words, int threads)
      : staged(words),
        mean(reinterpret_cast<double*>(words + staged_words(threads))),
        sums(reinterpret_cast<WindowSums<float>*>(mean + 1)) {}
  float* staged;
  double* mean;             // of the signal
  WindowSums<float>* sums;  // of 16 samples
};

// 1 / sqrt(value) to about 2^-22, of a number whose square root and its reciprocal are far from the
// smallest and the largest numbers. A guess from half the exponent, off by at most 3.5 %, and three steps
// of Newton's method: no branch, and a power of 4 times the value changes no bit but the exponent's.
__device__ __forceinline__ float inverse_root(float value) {
  const float half = 0.5f * value;
  float root = std::bit_cast<float>(0x5f3759dfu - (bits_of(value) >> 1));
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    const float square = root * root;
    root *= std::fma(-half, square, 1.5f);
  }
  return root;
}

// The same of numbers that float32 does not hold, too.
__device__ __forceinline__ float inverse_root(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const int exponent = static_cast<int>(bits >> 52) - 1023;
  const int odd = exponent & 1, half = (exponent - odd) / 2;
  const auto power = [](int of) {
    return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + of) << 52);
  };
  const double small = std::bit_cast<double>((bits & 0xfffffffffffffu) |
                                             static_cast<std::uint64_t>(1023 + odd) << 52);
  return static_cast<float>(inverse_root(static_cast<float>(small)) * power(-half));
}

// The factor of a shift: 0 where the window is constant up to rounding (docs/design.md, Fields of a
// problem), NaN where it has an infinity or a NaN. `mean` is that of the whole signal. The rule asks
// for the largest deviation from it. Where it applies, all samples of the window are almost equal,
// and the deviation of their mean serves. `share` is 1 / `terms`.
__device__ __forceinline__ float factor_of(const WindowSums<double>& sums, double terms,
                                           double share, double pivot, double mean,
                                           const Question& asked) {
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

inline constexpr float kUnknownFactor = -1;

// The same in float32, and kUnknownFactor where it does not say enough. `from_mean` is the pivot less
// the mean of the signal.
__device__ __forceinline__ float quick_factor_of(const WindowSums<float>& sums, float terms,
                                                 float share, float from_mean,
                                                 const Question& asked) {
  const float window_mean = asked.centred ? sums.values * share : 0.0f;
  const float squares = std::fma(-sums.values, window_mean, sums.squares);
  const float step = asked.centred ? 8 * 0x1p-24f * (window_mean + from_mean) : 0.0f;
  // Squares of single samples stay far from the smallest and the largest numbers.
  const bool is_finite = sums.squares < 0x1p120f;
  const bool known = is_finite && squares >= 0x1p-100f * terms && 8 * squares >= sums.squares &&
                     squares > 8 * step * step * terms;
  const float factor = known ? inverse_root(squares) : kUnknownFactor;
  return asked.normalised ? factor : is_finite ? 1.0f : kUnknownFactor;
}

// The factor of one window, from sums in float64. channel_of(c)(i) is sample i of channel c less the
// pivot.
template <typename ChannelOf>
__device__ __forceinline__ float exact_factor(const Series& q, const Question& asked, double pivot,
                                              double mean, const ChannelOf& channel_of, int first) {
  const double terms = static_cast<double>(q.channels) * q.length;
  WindowSums<double> window = {};
#pragma unroll 1
  for (int channel = 0; channel < q.channels; ++channel) {
    const auto sample = channel_of(channel);
#pragma unroll 1
    for (int i = 0; i < q.length; ++i) window.add(sample(first + i));
  }
  return factor_of(window, terms, 1 / terms, pivot, mean, asked);
}

inline constexpr int kExactRun = 8;

// Factors of `count` neighbouring shifts, at most kExactRun, from sums in float64, to `to`.
// channel_of(c)(i) is sample i of channel c less the pivot, counted from the first shift. The number of
// factors that are NaN.
template <typename ChannelOf>
__device__ __forceinline__ std::uint32_t exact_factors(const Series& q, const Question& asked,
                                                       double pivot, double mean, int count,
                                                       const ChannelOf& channel_of, float* to) {
  std::uint32_t not_scores = 0;
  const auto put = [&](int j, float factor) {
    to[j] = factor;
    not_scores += !(factor == factor);
  };
  if (q.length < kExactRun) {
#pragma unroll 1
    for (int j = 0; j < smaller(count, kExactRun); ++j) {
      put(j, exact_factor(q, asked, pivot, mean, channel_of, j));
    }
    return not_scores;
  }
  const double terms = static_cast<double>(q.channels) * q.length, share = 1 / terms;
  WindowSums<double> windows[kExactRun] = {};
#pragma unroll 1
  for (int channel = 0; channel < q.channels; ++channel) {
    const auto sample = channel_of(channel);
    WindowSums<double> run = {};
#pragma unroll
    for (int j = kExactRun - 1; j >= 0; --j) {
      run.add(sample(opaque(j)));
      windows[j].add(run);
    }
    WindowSums<double> shared = {};
#pragma unroll 2
    for (int i = kExactRun; i < q.length; ++i) shared.add(sample(i));
#pragma unroll
    for (int j = 0; j < kExactRun; ++j) {
      windows[j].add(shared);
      shared.add(sample(opaque(q.length) + j));
    }
  }
#pragma unroll
  for (int j = 0; j < kExactRun; ++j) {
    if (j < count) put(j, factor_of(windows[j], terms, share, pivot, mean, asked));
  }
  return not_scores;
}

// The mean of the finite samples of the signal, by all lanes of a warp.
__device__ __forceinline__ double mean_of_signal(const Series& q, const Memory& memory) {
  Total total = {};
#pragma unroll 4
  for (int i = warp::lane(); i < q.channels * memory.parts; i += warp::kSize) {
    total.add(memory.totals[i]);
  }
  const double sum = warp::reduce_add(total.sum), count = warp::reduce_add(total.count);
  return count > 0 ? sum / count : 0.0;
}

// The factors of tiles `first_tile`, `first_tile` + `stride` and so on. Those beyond the last shift, up to
// `factors`, are NaN. Dynamic shared memory from its start: FactorMemory.
template <typename T>
__device__ __forceinline__ void make_factors(const Series& q, const Question& asked,
                                             const Memory& memory, int factors,
                                             const Rows<T>& right, int first_tile, int stride) {
  using Sums = WindowSums<float>;
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int tile_shifts = FactorMemory::tile(threads);
  const FactorMemory shared(dynamic_shared<float>(), threads);
  if (asked.centred && thread < warp::kSize) {
    const double of_signal = mean_of_signal(q, memory);
    if (thread == 0) *shared.mean = of_signal;
  }
  if (q.length < kRun) block::barrier();  // else there are others before it is read
  const float terms = static_cast<float>(q.channels) * static_cast<float>(q.length);
  const float share = 1 / terms;
  const int runs = q.length / kRun, rest = q.length % kRun;
  const bool once = (runs + 2) * kRun <= FactorMemory::kMore;
  const int staged_count = tile_shifts + (once ? runs + 2 : 2) * kRun;
  bool begun = false;
#pragma unroll 1
  for (Index tile = first_tile; tile * tile_shifts < factors; tile += stride) {
    const int shift = static_cast<int>(tile) * tile_shifts;
    const float pivot =
        asked.centred ? pivot_of(q, memory, q.first + shift, tile_shifts + q.length) : 0.0f;
    Sums windows[kRun] = {};
#pragma unroll 1
    for (int channel = 0; channel < q.channels && runs > 0; ++channel) {
      const T* const samples = right.row(channel);
      // The samples from `from` on that belong to the tile's shifts.
      const auto stage = [&](int from) {
        if (begun) block::barrier();
        begun = true;
        if (once && from > 0) return;
        const int at = q.first + shift + from + thread;
        // Loads before stores: the compiler would leave each load behind the store before it.
        constexpr int kAtOnce = 7;
#pragma unroll 1
        for (int i = 0; i * threads < staged_count; i += kAtOnce) {
          float values[kAtOnce];
#pragma unroll
          for (int k = 0; k < kAtOnce; ++k) {
            const int of = at + (i + k) * threads;
            values[k] = samples[of < q.pitch ? of : q.pitch - 1];
          }
#pragma unroll
          for (int k = 0; k < kAtOnce; ++k) {
            const float value = at + (i + k) * threads < q.pitch ? values[k] : 0.0f;
            if ((i + k) * threads + thread < staged_count) {
              shared.staged[sample_place(thread) + (i + k) * sample_place(threads)] = value - pivot;
            }
          }
        }
        block::barrier();
      };
      // Sample i of the thread, of those from `from` on.
      const auto sample = [&](int from, int i) {
        return shared.staged[sample_place(once ? from : 0) + thread * (kRun + 1) + sample_place(i)];
      };
#pragma unroll 1
      for (int from = 0; from < tile_shifts + runs * kRun; from += tile_shifts) {
        stage(from);
        const int number = from / kRun + thread;
        if (number >= threads + runs) continue;
        Sums run = {};
#pragma unroll
        for (int j = kRun - 1; j >= 0; --j) {
          run.add(sample(from, j));
          if (from == 0) windows[j].add(run);
        }
        shared.sums[number] = run;
      }
      stage(runs * kRun);
      Sums common = {};
      for (int i = 1; i < runs; ++i) common.add(shared.sums[thread + i]);
      for (int i = 0; i < rest; ++i) common.add(sample(runs * kRun, i));
#pragma unroll
      for (int j = 0; j < kRun; ++j) {
        windows[j].add(common);
        common.add(sample(runs * kRun, rest + j));
      }
    }
    struct alignas(16) Four {
      float of[4];
    };
    const double of_signal = asked.centred ? *shared.mean : 0.0;
    const auto from_mean = static_cast<float>(pivot - of_signal);
    const int first = shift + thread * kRun, known = q.shifts - first;
    std::uint32_t unknown = 0;  // a bit for each kExactRun shifts
#pragma unroll
    for (int j = 0; j < kRun; j += 4) {
      Four four;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float quick = runs > 0
                                ? quick_factor_of(windows[j + i], terms, share, from_mean, asked)
                                : kUnknownFactor;
        four.of[i] = j + i < known ? quick : not_a_number();
        if (four.of[i] == kUnknownFactor) unknown |= 1u << j / kExactRun;
      }
      if (first + j < factors) *reinterpret_cast<Four*>(memory.factors + first + j) = four;
    }
#pragma unroll 1
    for (int part = 0; part < kRun / kExactRun; ++part) {
      if ((unknown >> part & 1) == 0) continue;
      const int at = first + part * kExactRun;
      const auto channel_of = [&](int channel) {
        return [samples = right.row(channel), at = q.first + at, &q, pivot](int i) {
          return static_cast<double>(load_or_zero(samples, at + i, q.pitch)) - pivot;
        };
      };
      const std::uint32_t not_scores =
          exact_factors(q, asked, pivot, of_signal, q.shifts - at, channel_of, memory.factors + at);
      if (not_scores > 0) atomic_add(&memory.state->not_scores, not_scores);
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(kFactorThreads, 5)
    factors_kernel(Series q, Question asked, Memory memory, int factors, const T* right) {
  wait_for_previous();
  make_factors(q, asked, memory, factors, Rows<T>{right, q.pitch}, static_cast<int>(blockIdx.x),
               static_cast<int>(gridDim.x));
}

}  // namespace xcorr::time_series
