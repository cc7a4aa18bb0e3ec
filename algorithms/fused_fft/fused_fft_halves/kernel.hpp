// The kernels of fused_fft_halves: a block processes matrices or pairs one after the other, both
// halves of each (tile.hpp). At the end the outputs lie where the block can search them.
#pragma once

#include "algorithms/blocks/divide.hpp"
#include "algorithms/blocks/peaks.hpp"
#include "algorithms/device/launch.hpp"
#include "algorithms/device/memory.hpp"
#include "algorithms/fused_fft/fused_fft_halves/scan.hpp"
#include "algorithms/fused_fft/fused_fft_halves/tile.hpp"
#include "algorithms/fused_fft/problem.hpp"

namespace xcorr::fused_fft {

struct HalvesArguments : FusedProblem {
  Complex* spectra;            // in the workspace: [lefts], then [rights]
  Complex* others;             // with large windows: [blocks][row_pairs][half]
  std::uint32_t items, lefts;  // number of pairs, of lefts
  Divider rights_of_left;
  std::uint32_t rights_back;
  Divider left_pairs, right_pairs, out_pairs;  // complex rows with data; with outputs
  ResultRequest request;
};

template <int kN>
constexpr std::size_t halves_shared_bytes(std::size_t small_outputs) {
  return sizeof(Complex) * (HalfTransform<kN>::table_elements + HalvesTile<kN>::elements) +
         sizeof(SurfaceFacts<kN>) + sizeof(float) * small_outputs;
}

// kKept: number of values, of each 16 of a column, that are computed; 16 if the window is not
// small.
template <int kN, Work kWork, int kKept>
__global__ void __launch_bounds__(HalvesTuning<kN>::threads(kWork), 1)
    halves_kernel(HalvesArguments a) {
  using T = HalvesTile<kN>;
  using Half = HalfTransform<kN>;
  constexpr bool kForward = kWork != Work::pairs;
  constexpr bool kSmall = kKept < 16;
  Complex* const tables = dynamic_shared<Complex>();
  Complex* const tile = tables + Half::table_elements;
  auto* const facts = reinterpret_cast<SurfaceFacts<kN>*>(tile + T::elements);
  float* const outputs = reinterpret_cast<float*>(facts + 1);
  Half::store_tables(tables, a.roots + 2 * kRootTable, a.roots + 3 * kRootTable);
  wait_for_previous();
  if constexpr (kWork == Work::spectra) {
    clear_header(a.request);
    let_next_start();
  }
  block::barrier();

  const auto forward = [&](const Half& half, const Source& from, const Divider& pairs) {
    half.load(from, static_cast<int>(pairs.by));
    block::barrier();
    half.finish(pairs);
    block::barrier();
    half.split(from.rows);
    block::barrier();
  };

  if constexpr (kWork == Work::spectra) {
    // A block computes one half of one matrix.
    const std::uint32_t item = blockIdx.x / 2;
    const int odd = static_cast<int>(blockIdx.x % 2);
    const bool is_left = item < a.lefts;
    const Half half(tile, tables, odd);
    forward(half, is_left ? a.left_of(item) : a.right_of(item - a.lefts),
            is_left ? a.left_pairs : a.right_pairs);
    Complex* const to = a.spectra + static_cast<Index>(item) * T::spectrum;
    half.template middle<true, false>([&](auto& v, int task, int tasks, int k1, int kx) {
      if (is_left) {
        const Complex of_column = a.roots[2 * kRootTable + kx * a.turn_x % kN];
#pragma unroll
        for (int i = 0; i < T::second; ++i) {
          const Complex phase = of_column * a.roots[3 * kRootTable + (k1 + 16 * i) * a.turn_y % kN];
          v[i] = conj(v[i] * Complex{a.scale * phase.re, a.scale * phase.im});
        }
      }
      auto* const pairs = reinterpret_cast<SpectrumPair*>(to + odd * (T::even_columns * kN)) + task;
#pragma unroll
      for (int i = 0; i < T::second; i += 2) pairs[i / 2 * tasks] = {v[i], v[i + 1]};
    });
  } else {
    Complex* const other = a.others + static_cast<Index>(blockIdx.x) * (T::row_pairs * T::half);
#pragma unroll 1
    for (std::uint32_t p = blockIdx.x; p < a.items; p += gridDim.x) {
      // Kept in shared memory until the end, because the passes use all registers.
      if (threadIdx.x == 0) facts->pair = p;
      const std::uint32_t l = a.rights_of_left.quotient(p), r = p - l * a.rights_back;
#pragma unroll 1
      for (int odd = 0; odd < 2; ++odd) {
        const Half half(tile, tables, opaque(odd));
        if constexpr (kForward) forward(half, a.right_of(r), a.right_pairs);
        const Index begin = odd * (T::even_columns * kN);
        const Complex* const left = a.spectra + static_cast<Index>(l) * T::spectrum + begin;
        const Complex* const right =
            a.spectra + static_cast<Index>(a.lefts + r) * T::spectrum + begin;
        half.template middle<kForward, true>([&](auto& v, int task, int tasks, int, int) {
          const auto* const of_left = reinterpret_cast<const SpectrumPair*>(left) + task;
#pragma unroll
          for (int i = 0; i < T::second; i += 2) {
            if constexpr (kWork == Work::pairs) {
              const SpectrumPair w =
                  reinterpret_cast<const SpectrumPair*>(right)[i / 2 * tasks + task];
              v[i] = w.a, v[i + 1] = w.b;
            }
            const SpectrumPair w = of_left[i / 2 * tasks];
            v[i] = v[i] * w.a;
            v[i + 1] = v[i + 1] * w.b;
          }
        });
        block::barrier();
        half.template join<kKept>();
        block::barrier();
        half.start(a.out_pairs);
        block::barrier();
        float zero = 0.0f;  // NaN once an output was NaN or infinite
        half.store(static_cast<int>(a.out_pairs.by), [&](int row, int t, auto& v, bool live) {
          const int y = T::row_of(row);
          const int rows = live ? a.rows.count : 0;
          const bool one = y < rows, both = y + T::second < rows;
          Seen first, second;  // the two real rows
          if constexpr (kSmall) {
            float* const to = outputs + y * a.cols.count + t;
            float* const next = to + T::second * a.cols.count;
            const int cols = one ? a.cols.count : 0;
            const int next_cols = both ? a.cols.count : 0;
#pragma unroll
            for (int s = 0; s < T::across; ++s) {
              const int x = t + 16 * s;
              if (odd == 0) {
                if (x < cols) to[16 * s] = v[s].re;
                if (x < next_cols) next[16 * s] = v[s].im;
                continue;
              }
              if (x < cols) {
                v[s].re += to[16 * s];
                to[16 * s] = v[s].re;
                first.see(v[s].re);
              }
              if (x < next_cols) {
                v[s].im += next[16 * s];
                next[16 * s] = v[s].im;
                second.see(v[s].im);
              }
            }
          } else {
            Complex* const of_row = other + row * T::half + t;
            if (odd == 0) {
              if (!live) return;
#pragma unroll
              for (int s = 0; s < T::across; ++s) of_row[16 * s] = v[s];
              return;
            }
            Complex even[T::across];
#pragma unroll
            for (int s = 0; s < T::across; ++s) {
              even[s] = live ? of_row[16 * s] : Complex{0.0f, 0.0f};
            }
            // All lanes of a row must have read it before one writes to it.
            warp::barrier();
            if (live) {
              float* const to = reinterpret_cast<float*>(tile + row * T::pitch) + t;
              float* const next = reinterpret_cast<float*>(other + row * T::half) + t;
#pragma unroll
              for (int s = 0; s < T::across; ++s) {
                const Complex low = even[s] + v[s], high = even[s] - v[s];
                to[16 * s] = low.re;
                to[16 * s + T::half] = high.re;
                next[16 * s] = low.im;
                next[16 * s + T::half] = high.im;
                if (a.rows.count == kN && a.cols.count == kN) {
                  first.see(low.re);
                  first.see(high.re);
                  second.see(low.im);
                  second.see(high.im);
                } else {
                  const bool near = t + 16 * s < a.cols.count;
                  const bool far = t + 16 * s + T::half < a.cols.count;
                  first.see(low.re, one && near);
                  first.see(high.re, one && far);
                  second.see(low.im, both && near);
                  second.see(high.im, both && far);
                }
              }
            }
          }
          if (odd == 0) return;
          zero += first.zero + second.zero;
          const float of_first = largest_of_lanes<16>(first.largest);
          const float of_second = largest_of_lanes<16>(second.largest);
          if (t == 0 && one) facts->of_rows[y] = of_first;
          if (t == 0 && both) facts->of_rows[y + T::second] = of_second;
        });
        if (odd == 1) {
          const bool not_finite = warp::any(!(zero == 0.0f));
          if (threadIdx.x % warp::kSize == 0) {
            facts->not_finite[threadIdx.x / warp::kSize] = not_finite ? 1 : 0;
          }
        }
        block::barrier();
      }
      p = facts->pair;
      const auto finish = [&](const auto& surface) {
        if (a.request.kind == ResultKind::peak) {
          find_peak(surface, a.request, *facts, a.request.peaks_of(p));
        } else if (a.request.kind != ResultKind::surface) {
          find_rows_result(surface, a.request, *facts, p);
        } else {
          float* const out = a.out_of(p);
          const int thread = opaque(static_cast<int>(threadIdx.x)), lane = thread % warp::kSize;
#pragma unroll 1
          for (int y = thread / warp::kSize; y < surface.rows;
               y += static_cast<int>(blockDim.x) / warp::kSize) {
            const float* const from = surface.row(y);
            for (int x = lane; x < surface.cols; x += warp::kSize) {
              store_last(out + y * surface.cols + x, from[x]);
            }
          }
        }
        // The next pair's rows overwrite the outputs of a large window.
        if (!kSmall || a.request.kind == ResultKind::surface) block::barrier();
      };
      if constexpr (kSmall) {
        finish(SmallSurface{outputs, a.rows.count, a.cols.count});
      } else {
        finish(WholeSurface<kN>{tile, other, a.rows.count, a.cols.count});
      }
    }
  }
}

}  // namespace xcorr::fused_fft
