// Time series by the warpgroup products of Hopper's tensor cores: what the variants share. mma.sync,
// which warp_products.hpp uses, reaches about 62 % of their rate. Beyond the paper.
//
// A product has 64 rows and N columns. Its left matrix holds templates, each of which is spread over
// E shifts (parameter `spread`), so that a product takes 64 / E templates. With shift = E u + v, the
// outputs of these templates are a product of 64 x K by K x U matrices, K = T + E - 1:
//   left[E i + v][k] = template[i][k - v], 0 outside the template: the same for every u
//   right[k][u] = signal[E u + k]: columns that begin E samples apart and overlap
// So (T + E - 1) / T of the useful products are made, and neither matrix is stored. A small E does
// least, but wastes rows where there are fewer than 64 / E templates.
//
// The left matrix is an operand in registers. The templates lie in shared memory with E zeros before
// them, and a lane loads the words of its rows, which begin v words earlier. The right matrix is an
// operand in shared memory, in parts of 16 bytes: a few rows of a column, 8 columns side by side.
// What column u + 1 has in rows k is what column u has in rows k + E. So shared memory holds
// each sample once: part c of the parts of E samples is a plane, in which column u has place u, and
// the rows that are E i further have place u + i.
//
// A block has two warpgroups, a tile of shifts and 16 templates. A task of a warpgroup is the
// products of 64 / E templates with E N shifts. A panel is as many columns of the left matrix as fit
// in shared memory. Where one panel holds all, a warpgroup keeps it for the next task.
//
// A variant is a class Maths, which says what the words of both operands and the product are:
//   kStep               samples of a product's depth
//   kPart               samples of the signal in 16 bytes
//   kColumns            N
//   kMostTileShifts     shifts of a block, at least E N
//   kAtOnce             steps whose products run while the words of the next are loaded
//   kFromZero           those products start from zero, and ordinary additions add them to the sums
//   kParts              words that stand for the same samples: 2 where inputs are split in two
//   signal_words, template_words, add
#pragma once

#include <algorithm>

#include "algorithms/device/matrix.hpp"
#include "algorithms/device/memory.hpp"
#include "algorithms/time_series/series_shape.hpp"

namespace xcorr::time_series {

inline constexpr int kWarpgroup = 128, kWarpgroups = 2;
inline constexpr int kProductRows = 64;
inline constexpr int kBlockTemplates = 16;
inline constexpr int kPartBytes = 16, kPartWords = 4;
// Columns of the left matrix in shared memory, at most.
inline constexpr int kMostColumns = static_cast<int>(small_if_emulated(576, 96));

// Shifts of a block.
template <typename Maths, int kSpread>
inline constexpr int kTileShifts = std::max(
    kSpread * Maths::kColumns, static_cast<int>(small_if_emulated(Maths::kMostTileShifts, 2048)));

// Lengths of the operands in shared memory. Made on the host, given to the kernel by value.
struct WarpgroupLayout {
  int templates, length, pitch, first, shifts;  // as in SeriesShape
  int steps, panel_steps;                       // of K, and of a panel
  int samples;                                  // of the signal that a block needs
  int plane;                                    // parts of a plane
  int signal_words, panel_words;                // of a block, and of a warpgroup

  std::size_t bytes() const {
    return sizeof(std::uint32_t) *
           static_cast<std::size_t>(signal_words + kWarpgroups * panel_words);
  }
};

template <typename Maths, int kSpread>
WarpgroupLayout warpgroup_layout(const SeriesShape& q) {
  constexpr int kPlanes = kSpread / Maths::kPart;
  WarpgroupLayout l = {};
  l.templates = static_cast<int>(q.templates);
  l.length = static_cast<int>(q.length);
  l.pitch = static_cast<int>(q.pitch);
  l.first = static_cast<int>(q.first);
  l.shifts = static_cast<int>(q.shifts);
  l.steps = ceil_div(l.length + kSpread - 1, Maths::kStep);
  l.panel_steps = std::min(l.steps, kMostColumns / Maths::kStep);
  l.samples = kTileShifts<Maths, kSpread> - kSpread + l.steps * Maths::kStep;
  // Eight neighbouring parts of the signal lie in different banks.
  l.plane = ceil_div(l.samples, kSpread * 8) * 8 + 8 / std::min(kPlanes, 8);
  l.signal_words = Maths::kParts * kPlanes * l.plane * kPartWords;
  l.panel_words = Maths::kParts * kProductRows / kSpread * (l.panel_steps * Maths::kStep + kSpread);
  return l;
}

template <typename Maths, int kSpread>
__global__ void __launch_bounds__(kWarpgroups* kWarpgroup, 2)
    warpgroup_kernel(WarpgroupLayout q, const float* __restrict__ left,
                     const float* __restrict__ right, float* __restrict__ out) {
  constexpr int kTemplates = kProductRows / kSpread;  // of a product
  constexpr int kTaskShifts = kSpread * Maths::kColumns;
  constexpr int kPlanes = kSpread / Maths::kPart;
  constexpr int kSums = Maths::kColumns / 2;
  constexpr int kAtOnce = Maths::kAtOnce, kParts = Maths::kParts;
  using Left = std::uint32_t[kParts][4];  // of a lane, for a step

  const int thread = static_cast<int>(threadIdx.x) % kWarpgroup;
  const int warpgroup = static_cast<int>(threadIdx.x) / kWarpgroup;
  auto* const signal = dynamic_shared<std::uint32_t>();
  const int signal_part_words = q.signal_words / kParts;
  const int block_shift = static_cast<int>(blockIdx.x) * kTileShifts<Maths, kSpread>;
  // Where column 0 of the block has part p, in words.
  const auto place = [&](int p) { return (p % kPlanes * q.plane + p / kPlanes) * kPartWords; };
  {
    constexpr int kOfWord = Maths::kPart / kPartWords;
    const auto sample = [&](int i) {
      return load_or_zero(right, q.first + block_shift + i, q.pitch);
    };
#pragma unroll 8
    for (int i = static_cast<int>(threadIdx.x); i * kOfWord < q.samples;
         i += kWarpgroups * kWarpgroup) {
      std::uint32_t of[kParts];
      Maths::signal_words(sample, i * kOfWord, of);
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        signal[part * signal_part_words + place(i / kPartWords) + i % kPartWords] = of[part];
      }
    }
  }
  warpgroup::publish_shared();
  block::barrier();

  const auto wait_for_warpgroup = [&] {
    if (warpgroup == 0) {
      block::barrier(1, kWarpgroup);
    } else {
      block::barrier(2, kWarpgroup);
    }
  };
  std::uint32_t* const panel = signal + q.signal_words + warpgroup * q.panel_words;
  const int row_words = q.panel_steps * Maths::kStep + kSpread;
  const int panel_part_words = kTemplates * row_words;
  // Of the lane: the first of its two rows, the other is 8 below, and where they have column 0.
  const int lane = thread % warp::kSize, row = thread / warp::kSize * 16 + lane / 4;
  const auto first_word = [&](int of) {
    return of / kSpread * row_words + kSpread - of % kSpread + lane % 4 * (Maths::kStep / 8);
  };
  const int first_words[2] = {first_word(row), first_word(row + 8)};

  const int first_group = static_cast<int>(blockIdx.y) * (kBlockTemplates / kTemplates);
  const int groups =
      std::min(kBlockTemplates / kTemplates, ceil_div(q.templates, kTemplates) - first_group);
  const int along = std::min(kTileShifts<Maths, kSpread> / kTaskShifts,
                             ceil_div(q.shifts - block_shift, kTaskShifts));
  int kept = -1;  // the template that the panel begins with, where it is the only panel
#pragma unroll 1
  for (int task = warpgroup; task < groups * along; task += kWarpgroups) {
    const int first = (first_group + task % groups) * kTemplates;
    const int task_shift = task / groups * kTaskShifts;  // in the block
    float sums[kSums], fresh[kSums];
#pragma unroll
    for (int i = 0; i < kSums; ++i) sums[i] = fresh[i] = 0.0f;

#pragma unroll 1
    for (int begin = 0; begin < q.steps; begin += q.panel_steps) {
      if (first != kept) {
        // Nobody of the warpgroup reads the panel before any more.
        wait_for_warpgroup();
#pragma unroll 1
        for (int i = 0; i < kTemplates; ++i) {
          const int length = first + i < q.templates ? q.length : 0;
          const float* const of = left + static_cast<Index>(first + i) * q.length;
          const auto sample = [&](int at) { return load_or_zero(of, at, length); };
#pragma unroll 4
          for (int at = thread; at < row_words; at += kWarpgroup) {
            std::uint32_t words[kParts];
            Maths::template_words(sample, begin * Maths::kStep - kSpread + at, words);
#pragma unroll
            for (int part = 0; part < kParts; ++part) {
              panel[part * panel_part_words + i * row_words + at] = words[part];
            }
          }
        }
        if (q.panel_steps == q.steps) kept = first;
        wait_for_warpgroup();
      }

      Left a[2][kAtOnce];
      const auto load = [&](Left(&of)[kAtOnce], int step, int count) {
#pragma unroll
        for (int s = 0; s < count; ++s) {
#pragma unroll
          for (int i = 0; i < kParts * 4; ++i) {
            of[s][i / 4][i % 4] = panel[i / 4 * panel_part_words + first_words[i % 2] +
                                        (step + s) * Maths::kStep + i % 4 / 2 * (Maths::kStep / 2)];
          }
        }
      };
      const auto multiply = [&](const Left(&of)[kAtOnce], int step, int count) {
        warpgroup::fence();
#pragma unroll
        for (int s = 0; s < count; ++s) {
          const std::uint32_t* const b =
              signal + place(task_shift / Maths::kPart + (begin + step + s) * 2);
          const int rows_apart = (kPlanes == 1 ? 1 : q.plane) * kPartBytes;
          if constexpr (Maths::kFromZero) {
            if (s == 0) {
              Maths::template add<false>(fresh, of[s], b, signal_part_words, rows_apart);
            } else {
              Maths::template add<true>(fresh, of[s], b, signal_part_words, rows_apart);
            }
          } else {
            Maths::template add<true>(sums, of[s], b, signal_part_words, rows_apart);
          }
        }
        warpgroup::commit();
      };
      const auto finish = [&] {
        warpgroup::wait<0>();
        if constexpr (Maths::kFromZero) {
#pragma unroll
          for (int i = 0; i < kSums; ++i) sums[i] += fresh[i];
        }
      };
      // Products run while the words of the next ones are loaded.
      const int steps = std::min(q.panel_steps, q.steps - begin);
      const int last = steps - kAtOnce;  // where a whole group may begin
      int step = 0;
      if (step <= last) load(a[0], step, kAtOnce);
#pragma unroll 1
      for (; step + kAtOnce <= last; step += 2 * kAtOnce) {
        multiply(a[0], step, kAtOnce);
        load(a[1], step + kAtOnce, kAtOnce);
        finish();
        multiply(a[1], step + kAtOnce, kAtOnce);
        if (step + 2 * kAtOnce <= last) load(a[0], step + 2 * kAtOnce, kAtOnce);
        finish();
      }
      if (step <= last) {
        multiply(a[0], step, kAtOnce);
        finish();
        step += kAtOnce;
      }
#pragma unroll 1
      for (; step < steps; ++step) {
        load(a[0], step, 1);
        multiply(a[0], step, 1);
        finish();
      }
    }

    // From an opaque number, so that nothing of it is computed before the products and kept in
    // registers that the sums need.
    const int store_lane = opaque(lane), column = store_lane % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int of = thread / warp::kSize * 16 + half * 8 + store_lane / 4;
      if (first + of / kSpread >= q.templates) continue;
      const int shift = block_shift + task_shift + column * kSpread + of % kSpread;
      const int rest = q.shifts - shift;
      float* const to = out + (static_cast<Index>(first + of / kSpread) * q.shifts + shift);
#pragma unroll
      for (int j = 0; j < Maths::kColumns / 8; ++j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int at = (8 * j + e) * kSpread;
          if (at < rest) store_last(to + at, sums[4 * j + 2 * half + e]);
        }
      }
    }
  }
}

}  // namespace xcorr::time_series
