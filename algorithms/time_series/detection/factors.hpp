// The factor of each shift: 1 / the norm of the signal's window, or for wide tiles what prepare.hpp
// says.
//
// The sums of windows are computed with additions only. A thread has 16 neighbouring shifts, whose
// windows share all samples but the first and last few:
//
//   window of shift j   [ samples j to 15 | samples of all 16 windows | the next j samples ]
//
// The shared part is added up from sums of 16 samples. Nothing is subtracted, so that a large
// sample, an infinity or a NaN affects only the windows that contain it.
//
// The sums are float32 relative to a pivot near the tile. Where float32 is not precise enough (the
// mean is far from the pivot, samples may be constant up to rounding, there is an infinity or a NaN,
// windows are shorter than 16 samples), the thread computes the sums of 8 windows again in float64.
// Where the pivot is too far even for float64, it computes each window in two passes.
#pragma once

#include <cmath>

#include "algorithms/blocks/inverse_root.hpp"
#include "algorithms/time_series/detection/prepare.hpp"

namespace xcorr::time_series {

inline constexpr int kRun = 16;  // shifts per thread

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

// The samples of different threads begin in different banks.
__host__ __device__ constexpr int sample_place(int i) {
  return i + static_cast<int>(static_cast<unsigned>(i) / kRun);
}

// Dynamic shared memory of blocks of kThreads threads that compute factors. A tile is the shifts of
// a block. With short templates all samples of a tile are staged at once.
template <int kThreads>
struct FactorMemory {
  static constexpr int kMore = static_cast<int>(small_if_emulated(512, 64)) + 2 * kRun;
  static constexpr int kTile = kRun * kThreads;
  // Per thread. Either all threads stage them or none does.
  static constexpr int kMostSamples = ceil_div(kTile + kMore, kThreads);
  // In words, even.
  static constexpr int kStagedWords = ceil_div(sample_place(kMostSamples * kThreads), 4) * 4;

  static constexpr int words(Index length) {
    return kStagedWords + 2 * static_cast<int>((kTile + length) / kRun);
  }
  static constexpr std::size_t bytes(Index length) {
    return static_cast<std::size_t>(words(length)) * sizeof(float);
  }
  __device__ explicit FactorMemory(float* words)
      : staged(words), sums(reinterpret_cast<WindowSums<float>*>(words + kStagedWords)) {}
  float* staged;
  WindowSums<float>* sums;  // of 16 samples
};

// 1 / sqrt(value) to about 2^-22, without a branch, far from underflow and overflow. The first guess
// is off by at most 3.5 %; three steps of Newton's method follow. A factor of a power of 4 changes
// only the exponent of the result.
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

// The factor of a window from its sum of squares, which may be outside the range of float32.
__device__ __forceinline__ float inverse_root(double value) {
  const double root = inverse_root_by(value, [](float small) { return inverse_root(small); });
  const bool wide = value >= kWideNorm * kWideNorm;
  return static_cast<float>(wide ? root * (-1 / static_cast<double>(kWideScale)) : root);
}

inline constexpr float kUnknownFactor = -1;

// The factor of a shift: 0 where the window is constant up to rounding (docs/design.md, Fields of a
// problem), NaN where it has an infinity or a NaN. It is kUnknownFactor where cancellation against
// the squares about the pivot may have removed digits. The rule of constants uses the mean in place
// of the largest sample: where it applies, they are almost equal. `share` is 1 / `terms`.
__device__ __forceinline__ float factor_of(const WindowSums<double>& sums, double terms,
                                           double share, double pivot, const Question& asked) {
  if (!(sums.squares - sums.squares == 0)) return not_a_number();
  if (!asked.normalised) return 1;
  if (!asked.centred) return sums.squares < 0x1p-1000 ? 0.0f : inverse_root(sums.squares);
  const double window_mean = sums.values * share;
  const double squares = sums.squares - sums.values * window_mean;
  const double step = 8 * 0x1p-24 * (window_mean + pivot), limit = step * step * terms;
  if (squares <= 0x1p-24 * sums.squares) {
    // The rounding error of these sums is less than 2^-44 of the squares about the pivot. Up to
    // four times the limit 0 is right.
    return squares + sums.squares * 0x1p-44 <= 2 * limit ? 0.0f : kUnknownFactor;
  }
  return squares <= limit || squares < 0x1p-1000 ? 0.0f : inverse_root(squares);
}

// The same in float32, and kUnknownFactor where float32 is not precise enough.
struct QuickFactors {
  bool centred, normalised;
  float share, pivot;     // 1 / terms; the pivot of the sums
  float least, constant;  // min sum of squares: absolute, and relative to the square of the mean
  // Squares of single samples stay far from underflow and overflow.
  __device__ __forceinline__ QuickFactors(const Series& q, const Question& asked, float pivot)
      : centred(asked.centred), normalised(asked.normalised), pivot(pivot) {
    const float terms = static_cast<float>(q.channels) * static_cast<float>(q.length);
    share = centred ? 1 / terms : 0.0f;
    least = 0x1p-100f * terms;
    constant = centred ? 8 * (8 * 0x1p-24f) * (8 * 0x1p-24f) * terms : 0.0f;
  }
  __device__ __forceinline__ float of(const WindowSums<float>& sums) const {
    const bool is_finite = sums.squares < 0x1p120f;
    const float window_mean = sums.values * share;
    const float squares = std::fma(-sums.values, window_mean, sums.squares);
    const float step = window_mean + pivot;
    const bool known = is_finite & (squares >= least) & (8 * squares >= sums.squares) &
                       (squares > constant * (step * step));
    const float root = normalised ? inverse_root(squares) : 1.0f;
    return (normalised ? known : is_finite) ? root : kUnknownFactor;
  }
};

// The factor of one window in float64, in two passes. channel_of(c)(i) is sample i of channel c.
template <typename ChannelOf>
__device__ __forceinline__ float exact_factor(const Series& q, const Question& asked,
                                              const ChannelOf& channel_of, int first) {
  const double terms = static_cast<double>(q.channels) * q.length;
  const auto each = [&](auto use) {
#pragma unroll 1
    for (int channel = 0; channel < q.channels; ++channel) {
      const auto sample = channel_of(channel);
#pragma unroll 1
      for (int i = 0; i < q.length; ++i) use(sample(first + i));
    }
  };
  double mean = 0, squares = 0, largest = 0;
  if (asked.centred) {
    each([&](double value) { mean += value; });
    mean /= terms;
  }
  each([&](double value) {
    squares += (value - mean) * (value - mean);
    largest = fmax(largest, fabs(value));
  });
  if (!(squares - squares == 0)) return not_a_number();
  if (!asked.normalised) return 1;
  const double step = asked.centred ? 8 * 0x1p-24 * largest : 0;
  return squares <= step * step * terms || squares < 0x1p-1000 ? 0.0f : inverse_root(squares);
}

inline constexpr int kExactRun = 8;

// Computes the factors of `count` neighbouring shifts, at most kExactRun, from float64 sums, and
// stores them at `to`. channel_of(c)(i) is sample i of channel c, counted from the first shift.
// Returns the number of factors that are NaN.
template <typename ChannelOf>
__device__ __forceinline__ std::uint32_t exact_factors(const Series& q, const Question& asked,
                                                       double pivot, int count,
                                                       const ChannelOf& channel_of, float* to) {
  std::uint32_t not_scores = 0;
  const auto put = [&](int j, float factor) {
    to[j] = factor;
    not_scores += !(factor == factor);
  };
  if (q.length < kExactRun) {
#pragma unroll 1
    for (int j = 0; j < smaller(count, kExactRun); ++j) {
      put(j, exact_factor(q, asked, channel_of, j));
    }
    return not_scores;
  }
  const double terms = static_cast<double>(q.channels) * q.length, share = 1 / terms;
  WindowSums<double> windows[kExactRun] = {};
#pragma unroll 1
  for (int channel = 0; channel < q.channels; ++channel) {
    const auto raw = channel_of(channel);
    const auto sample = [&](int i) { return raw(i) - pivot; };
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
    if (j < count) put(j, factor_of(windows[j], terms, share, pivot, asked));
  }
#pragma unroll 1
  for (int j = 0; j < smaller(count, kExactRun); ++j) {
    if (to[j] == kUnknownFactor) put(j, exact_factor(q, asked, channel_of, j));
  }
  return not_scores;
}

// Computes the factors of tiles `first_tile`, `first_tile` + `stride` and so on. Factors beyond the
// last shift, up to `factors`, are NaN. FactorMemory lies at the start of dynamic shared memory.
template <int kThreads, typename T>
__device__ __forceinline__ void make_factors(const Series& q, const Question& asked,
                                             const Memory& memory, int factors,
                                             const Rows<T>& right, int first_tile, int stride) {
  using Sums = WindowSums<float>;
  constexpr int kTile = FactorMemory<kThreads>::kTile;
  const int thread = static_cast<int>(threadIdx.x);
  const FactorMemory<kThreads> shared(dynamic_shared<float>());
  const int runs = q.length / kRun, rest = q.length % kRun;
  const bool once = (runs + 2) * kRun <= FactorMemory<kThreads>::kMore;
  const int of_thread = ceil_div(kTile + (once ? runs + 2 : 2) * kRun, kThreads);  // samples
  bool begun = false;
#pragma unroll 1
  for (Index tile = first_tile; tile * kTile < factors; tile += stride) {
    const int shift = static_cast<int>(tile) * kTile;
    // Loaded before the samples, so that the loads of the samples do not wait for it.
    const PivotPart part(q, memory, q.first + shift, kTile + q.length, asked.centred);
    float pivot = 0;
    Sums windows[kRun] = {};
#pragma unroll 1
    for (int channel = 0; channel < q.channels && runs > 0; ++channel) {
      const T* const samples = right.row(channel);
      // Stages the samples from `from` on that the shifts of the tile need.
      const auto stage = [&](int from) {
        if (begun) block::barrier();
        begun = true;
        if (once && from > 0) return;
        const int at = q.first + shift + from + thread;
        const bool inside = at - thread + of_thread * kThreads <= q.pitch;
        // All loads come before all stores: otherwise the compiler places each load after the
        // previous store.
        constexpr int kAtOnce = 7;
#pragma unroll 1
        for (int i = 0; i < of_thread; i += kAtOnce) {
          const int first = at + i * kThreads;
          float values[kAtOnce];
          if (inside) {
#pragma unroll
            for (int k = 0; k < kAtOnce; ++k) {
              values[k] = i + k < of_thread ? static_cast<float>(samples[first + k * kThreads]) : 0;
            }
          } else {
#pragma unroll
            for (int k = 0; k < kAtOnce; ++k) {
              values[k] = static_cast<float>(load_or_zero(samples, first + k * kThreads, q.pitch));
            }
          }
          if (channel == 0 && from == 0 && i == 0) pivot = part.pivot();
          float* const to = shared.staged + sample_place(thread) + i * sample_place(kThreads);
#pragma unroll
          for (int k = 0; k < kAtOnce; ++k) {
            if (i + k < of_thread) to[k * sample_place(kThreads)] = values[k] - pivot;
          }
        }
        block::barrier();
      };
      // Sample i of this thread, counted from `from`.
      const auto sample = [&](int from, int i) {
        return shared.staged[sample_place(once ? from : 0) + thread * (kRun + 1) + sample_place(i)];
      };
#pragma unroll 1
      for (int from = 0; from < kTile + runs * kRun; from += kTile) {
        stage(from);
        const int number = from / kRun + thread;
        if (number >= kThreads + runs) continue;
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
    if (runs == 0) pivot = part.pivot();
    struct alignas(16) Four {
      float of[4];
    };
    const QuickFactors quick(q, asked, pivot);
    const int first = shift + thread * kRun, known = q.shifts - first;
    float least[kRun / kExactRun];  // negative where a factor is unknown
#pragma unroll
    for (int j = 0; j < kRun; j += 4) {
      Four four;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float factor = runs > 0 ? quick.of(windows[j + i]) : kUnknownFactor;
        float& of_run = least[j / kExactRun];
        of_run = (j + i) % kExactRun == 0 ? factor : fminf(of_run, factor);
        four.of[i] = factor;
      }
      if (first + j < factors) *reinterpret_cast<Four*>(memory.factors + first + j) = four;
    }
#pragma unroll
    for (int part_of = 0; part_of < kRun / kExactRun; ++part_of) {
      const int from = part_of * kExactRun;
      if (!(least[part_of] < 0) || known <= from) continue;
      const int at = first + from;
      const auto channel_of = [&](int channel) {
        return [samples = right.row(channel), at = q.first + at, &q](int i) {
          return static_cast<double>(load_or_zero(samples, at + i, q.pitch));
        };
      };
      const std::uint32_t not_scores =
          exact_factors(q, asked, pivot, known - from, channel_of, memory.factors + at);
      if (not_scores > 0) atomic_add(&memory.state->not_scores, not_scores);
    }
#pragma unroll 1
    for (int j = known > 0 ? known : 0; j < kRun && first + j < factors; ++j) {
      memory.factors[first + j] = not_a_number();
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(SeriesTuning::kFactorThreads, SeriesTuning::kFactorBlocks)
    factors_kernel(Series q, Question asked, Memory memory, int factors, const T* right) {
  wait_for_previous();
  make_factors<SeriesTuning::kFactorThreads>(q, asked, memory, factors, Rows<T>{right, q.pitch},
                                             static_cast<int>(blockIdx.x),
                                             static_cast<int>(gridDim.x));
}

}  // namespace xcorr::time_series
