// The kernels of template_fft: one makes the spectra of the templates, the other one correlates a
// tile of a frame with its templates and writes the scores.
#pragma once

#include <type_traits>

#include "algorithms/blocks/peak_search.hpp"
#include "algorithms/blocks/template_problem.hpp"
#include "algorithms/fused_fft/block_tile.hpp"
#include "algorithms/fused_fft/problem.hpp"
#include "algorithms/fused_fft/surface_rows.hpp"
#include "algorithms/fused_fft/template_fft/frame_factors.hpp"

namespace xcorr::fused_fft {

// Launch shape of a length: threads of a block that correlates a tile, and of one that transforms a
// template; resident blocks per SM that the launch bounds ask for. With 24 warps at length 192 the
// transforms of templates would spill registers; 25 units of columns take two rounds with 16 warps
// as with 24.
template <int kN>
struct TemplateTuning {
  static constexpr int warps = kN == 192 ? 24 : BlockTile<kN>::warps, threads = 32 * warps;
  static constexpr int spectra_warps = kN == 192 ? 16 : warps, spectra_threads = 32 * spectra_warps;
  static constexpr int blocks = kN <= 64 ? 6 : kN <= 128 ? 2 : 1;
};

// The base is the problem of one template in one tile of a frame.
struct TemplateFftArguments : FusedProblem {
  TemplateProblem q;
  TemplateMemory memory;
  const float* frames;
  float* surfaces;       // [pairs][out_rows][out_cols]
  Complex* spectra;      // [lefts][BlockTile::spectrum]
  PartTop* tops;         // [pairs][tiles]; null if surfaces are the result
  std::uint32_t* ready;  // FrameStrips::ready; null without factors
  Divider of_groups, of_tiles, of_tiles_across;
  int tiles;            // tiles per frame
  int group;            // max templates per item
  std::uint32_t items;  // rights * tiles * groups of templates
};
// For several templates per tile: the block stores the spectrum of the tile in the workspace. Each
// lane later reads the values that it stored itself.
struct ManyTemplates : TemplateFftArguments {
  Complex* own;  // [blocks][BlockTile::spectrum]
};

template <int kN>
struct TemplateShared {
  using T = BlockTile<kN>;
  static constexpr std::size_t tile = kN;  // in complex values
  static constexpr std::size_t bytes = sizeof(Complex) * (tile + T::elements);
};

// A part of a frame, no larger than the tile. Values are scaled and shifted by the pivot.
struct FramePart {
  static constexpr bool kMayBeHalf = false;

  __device__ __forceinline__ Index below(int count) const { return Index{count} * pitch; }
  __device__ __forceinline__ float value(float stored) const { return scale.of(stored); }

  const float* data;
  int pitch, rows, cols;
  FrameScale scale;
};

// Opaque to the compiler, so that it computes no address before the passes: that would take
// registers which the passes need.
__device__ __forceinline__ WarpPlace template_place(int warps) {
  const int thread = opaque(static_cast<int>(threadIdx.x));
  return {thread / 32, warps, thread % 32};
}

// The work item of a block. It lies in shared memory, because the passes use all registers.
struct TileItem {
  FrameScale scale;
  int frame, tile, row, col;  // `tile` counts within the frame; first output
  int first_template;
  bool wide;  // FrameFacts::wide
};

// The median of `value` over the lanes of a warp, returned to all lanes.
__device__ __forceinline__ float median_of_lanes(float value) {
#pragma unroll
  for (int sorted = 2; sorted <= warp::kSize; sorted *= 2) {  // Batcher's bitonic sort
#pragma unroll
    for (int by = sorted / 2; by > 0; by /= 2) {
      const float other = warp::shuffle_xor(value, by);
      const bool takes_less = ((warp::lane() & sorted) == 0) == ((warp::lane() & by) == 0);
      value = takes_less ? fminf(value, other) : fmaxf(value, other);
    }
  }
  return warp::shuffle(value, warp::kSize / 2);
}

// The largest finite absolute value of a tile, computed by all lanes of a warp.
template <int kN>
__device__ __forceinline__ float largest_of_tile(const TemplateFftArguments& a, const float* from,
                                                 int rows, int cols) {
  float largest = 0;
#pragma unroll 1
  for (int y = 0; y < rows; ++y) {
#pragma unroll 1
    for (int x = warp::lane(); x < cols; x += warp::kSize) {
      const float value = from[y * a.q.right_cols + x];
      largest = fmaxf(largest, value - value == 0 ? fabsf(value) : 0.0f);
    }
  }
#pragma unroll
  for (int by = warp::kSize / 2; by > 0; by /= 2) {
    largest = fmaxf(largest, warp::shuffle_xor(largest, by));
  }
  return largest;
}

// The scale (a power of two) and the pivot that a tile's values get before the transform, computed
// by all lanes of a warp. All tiles of a frame have the same scale, unless the frame is wide. The
// pivot is the median of 32 medians of three values: outliers do not move it, but its distance from
// the mean costs digits. If the pivot is not finite, the tile contains such a value, and its
// outputs are lost anyway.
template <int kN>
__device__ __forceinline__ FrameScale scale_of_tile(const TemplateFftArguments& a,
                                                    const TileItem& item) {
  const TemplateProblem& q = a.q;
  const int row = q.first_sy + item.row, col = q.first_sx + item.col;
  const int rows = q.right_rows - row < kN ? q.right_rows - row : kN;
  const int cols = q.right_cols - col < kN ? q.right_cols - col : kN;
  const float* const frame = a.frames + item.frame * q.right_size();
  float scale = 1;
  if (q.is_ratio) {
    const FrameFacts facts = a.memory.facts[item.frame];
    scale = facts.scale;
    if (facts.wide != 0) {
      scale = scale_of(largest_of_tile<kN>(a, frame + (row * q.right_cols + col), rows, cols));
    }
  }
  if (!q.is_centred) return {scale, 0.0f};
  constexpr int kDown = 8, kAcross = 4, kOfLane = 3;
  const int y = row + rows * (2 * (warp::lane() / kAcross) + 1) / (2 * kDown);
  const float* const from = frame + (y * q.right_cols + col);
  float of[kOfLane];
#pragma unroll
  for (int k = 0; k < kOfLane; ++k) {
    const int number = warp::lane() % kAcross * kOfLane + k;
    of[k] = from[cols * (2 * number + 1) / (2 * kAcross * kOfLane)];
  }
  return {scale, -median_of_lanes(median_of(of[0], of[1], of[2])) * scale};
}

// The factor of an output of a wide frame, from the root that stored_factor() stored, for the scale
// of the tile. If the tile contains values that are much larger than the window, the factor can
// exceed float32. Then it is the largest float32 number, since an infinity times a sum of 0 would
// be NaN.
__device__ __forceinline__ float factor_of_wide(float root, float scale) {
  constexpr float kLargest = 0x1.fffffep127f;
  const float factor = root * inverse_of_power(scale) * root;
  return factor > kLargest ? kLargest : factor;
}

// The first `of_templates` blocks compute the spectra of `lefts` templates; the remaining blocks
// store the facts of frames. The next kernel runs beside this one (frame_factors.hpp).
template <int kN>
__global__ void __launch_bounds__(TemplateTuning<kN>::spectra_threads, TemplateTuning<kN>::blocks)
    template_spectra_kernel(FusedProblem a, Complex* spectra, int lefts, int of_templates,
                            TemplateMemory memory, std::uint32_t* ready, int frames) {
  using T = BlockTile<kN>;
  constexpr int kThreads = TemplateTuning<kN>::spectra_threads;
  Complex* const twiddles = dynamic_shared<Complex>();
  for (int i = static_cast<int>(threadIdx.x); i < kN; i += kThreads) twiddles[i] = a.roots[i];
  let_next_start();
  wait_for_previous();
  const int number = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x);
  if (number >= of_templates) {
#pragma unroll 1
    for (int frame = number - of_templates; frame < frames; frame += blocks - of_templates) {
      store_facts(memory, ready, frame, kThreads);
    }
    return;
  }
  block::barrier();
  Complex* const in_tile = twiddles + TemplateShared<kN>::tile;
#pragma unroll 1
  for (int left = number; left < lefts; left += of_templates) {
    const BlockTransform<kN> tile(in_tile, twiddles,
                                  template_place(TemplateTuning<kN>::spectra_warps));
    tile.forward_rows(a.left_of(left));
    block::barrier();
    Complex* const to = spectra + static_cast<Index>(left) * T::spectrum;
    tile.template columns<true, false>(a.left_rows, [&](auto& v, int at, int k1, int kx) {
      a.template as_left<typename T::L>(v, k1, kx, kN);
#pragma unroll
      for (int i = 0; i < T::second; i += 2) {
        *reinterpret_cast<SpectrumPair*>(to + at + 32 * i) = {v[i], v[i + 1]};
      }
    });
    block::barrier();
  }
}

// The factors of the outputs of a lane in row y (even) and in row y + second (odd).
template <int kN>
struct LaneFactors {
  float even[BlockTile<kN>::first], odd[BlockTile<kN>::first];
};

// Calls f(s), s a compile-time constant, for the outputs t + second * s of a row, from the last s
// to the first. Calls come in groups of four, and a warp skips groups beyond the last column.
// Within a group f may be called for columns that do not exist.
template <int kN, typename F>
__device__ __forceinline__ void each_output_back(int cols, F f) {
  using T = BlockTile<kN>;
  constexpr int kAtOnce = 4, kGroups = T::first / kAtOnce;
  static_assert(T::first % kAtOnce == 0);
  for_each_constant<kGroups>([&](auto back) {
    constexpr int kGroup = kGroups - 1 - decltype(back)::value;
    if (T::second * kAtOnce * kGroup >= cols) return;
    for_each_constant<kAtOnce>([&](auto i) {
      f(std::integral_constant<int, kAtOnce * kGroup + kAtOnce - 1 - decltype(i)::value>{});
    });
  });
}

// The first largest output that a lane has seen.
struct LaneTop {
  PeakPlace most = no_place();
  float zero = 0;  // NaN after an infinity or a NaN
};

// Computes scores from rows of the circular result, in the registers of the last transform, and
// writes them to the surface. kWaits: the factors come from a launch that this kernel has not yet
// waited for.
template <int kN, bool kWaits>
__device__ __forceinline__ LaneTop write_scores(const TemplateFftArguments& a,
                                                const SurfaceRows<kN>& tile, int pair,
                                                const TileItem& item) {
  constexpr int kFirst = BlockTile<kN>::first, kSecond = BlockTile<kN>::second;
  const TemplateProblem& q = a.q;
  const auto least = [](int x, int y) { return x < y ? x : y; };
  const int rows = least(a.rows.count, q.out_rows - item.row);
  const int cols = least(a.cols.count, q.out_cols - item.col);
  float* const surface = a.surfaces + pair * q.out_size();
  const float* const factors = a.memory.factors + (q.is_ratio ? item.frame * q.out_size() : 0);
  const auto place = [&](int y, int x) { return (item.row + y) * q.out_cols + item.col + x; };
  LaneTop top;
  tile.each(
      {0, rows},
      [&](int y, int t) {
        if constexpr (kWaits) wait_for_previous();
        LaneFactors<kN> of_lane{};
        if (!q.is_ratio) return of_lane;
        const float* const even = factors + place(y, t);
        const float* const odd = even + kSecond * q.out_cols;
        // A row beyond the last one has no outputs.
        const int of_even = y < rows ? cols - t : 0, of_odd = y + kSecond < rows ? cols - t : 0;
        each_output_back<kN>(cols, [&](auto index) {
          constexpr int s = decltype(index)::value;
          if (kSecond * s < of_even) of_lane.even[s] = even[kSecond * s];
          if (kSecond * s < of_odd) of_lane.odd[s] = odd[kSecond * s];
        });
        if (item.wide) {
#pragma unroll
          for (int s = 0; s < kFirst; ++s) {
            of_lane.even[s] = factor_of_wide(of_lane.even[s], item.scale.scale);
            of_lane.odd[s] = factor_of_wide(of_lane.odd[s], item.scale.scale);
          }
        }
        return of_lane;
      },
      [&](int y, int t, const Complex(&v)[kFirst], const LaneFactors<kN>& factor) {
        PeakPlace most = no_place();
        const auto write_row = [&](int row, float Complex::* part, const float (&of_row)[kFirst]) {
          const int first = place(row, t), left = row < rows ? cols - t : 0;
          float* const to = surface + first;
          each_output_back<kN>(cols, [&](auto index) {
            constexpr int s = decltype(index)::value;
            const bool exists = kSecond * s < left;
            const float sum = v[s].*part;
            const float score = q.is_ratio ? clamped(sum * of_row[s]) : sum;
            if (exists) to[kSecond * s] = score;
            top.zero = exists ? fmaf(0.0f, score, top.zero) : top.zero;
            // The loop goes backwards: the first of equal scores wins.
            const bool is_first = exists && score >= most.value;
            most = {is_first ? score : most.value, is_first ? first + kSecond * s : most.at};
          });
        };
        write_row(y + kSecond, &Complex::im, factor.odd);
        write_row(y, &Complex::re, factor.even);
        top.most = first_of(top.most, most);
      });
  return top;
}

template <int kN, typename Arguments>
__global__ void __launch_bounds__(TemplateTuning<kN>::threads, TemplateTuning<kN>::blocks)
    template_tiles_kernel(Arguments a) {
  constexpr bool kMany = std::is_same_v<Arguments, ManyTemplates>;
  using T = BlockTile<kN>;
  using L = typename T::L;
  XCORR_SHARED(TileItem, of_block, 1);
  XCORR_SHARED(PartTop, tops, TemplateTuning<kN>::warps);
  Complex* const twiddles = dynamic_shared<Complex>();
  Complex* const in_tile = twiddles + TemplateShared<kN>::tile;
  for (int i = static_cast<int>(threadIdx.x); i < kN; i += TemplateTuning<kN>::threads) {
    twiddles[i] = a.roots[i];
  }
  const TemplateProblem& q = a.q;
  // With one template, only the epilogue needs the previous launch, that of the factors, and waits
  // for it there. Without factors the previous launch is that of the spectra, which is waited for
  // here.
  if (kMany || !q.is_ratio) wait_for_previous();
#pragma unroll 1
  for (std::uint32_t item = blockIdx.x; item < a.items; item += gridDim.x) {
    const WarpPlace my = template_place(TemplateTuning<kN>::warps);
    TileItem& mine = of_block[0];
    if (my.warp == 0) {
      std::uint32_t rest = item;
      TileItem next{};
      // The quotient; `rest` becomes the group of templates.
      const std::uint32_t group = a.of_groups.split(rest);
      next.first_template = static_cast<int>(rest) * a.group;
      rest = group;
      next.frame = static_cast<int>(a.of_tiles.split(rest));
      next.tile = static_cast<int>(rest);
      next.row = static_cast<int>(a.of_tiles_across.split(rest)) * a.rows.count;
      next.col = static_cast<int>(rest) * a.cols.count;
      next.scale = scale_of_tile<kN>(a, next);
      next.wide = q.is_ratio && a.memory.facts[next.frame].wide != 0;
      if (my.lane == 0) mine = next;
    }
    block::barrier();
    const auto rows_of_tile = [&] {
      const int rows = q.right_rows - q.first_sy - mine.row;
      return kN < rows ? kN : rows;
    };
    {
      const int cols = q.right_cols - q.first_sx - mine.col;
      const Index at =
          static_cast<Index>(q.first_sy + mine.row) * q.right_cols + q.first_sx + mine.col;
      BlockTransform<kN>(in_tile, twiddles, my)
          .forward_rows(FramePart{a.frames + mine.frame * q.right_size() + at, q.right_cols,
                                  rows_of_tile(), kN < cols ? kN : cols, mine.scale});
    }
    block::barrier();
    // The units of columns go to the warps in reverse order, because warp 0 has more work
    // elsewhere.
    const BlockTransform<kN> tile(in_tile, twiddles, {my.warps - 1 - my.warp, my.warps, my.lane});
    const auto multiply = [](auto& v, const Complex* with) {
#pragma unroll
      for (int i = 0; i < L::second; i += 2) {
        const auto pair = *reinterpret_cast<const SpectrumPair*>(with + 32 * i);
        v[i] = v[i] * pair.a;
        v[i + 1] = v[i + 1] * pair.b;
      }
      transform<L::second, Direction::inverse>(v);
    };
    const auto finish = [&](int pair) {
      block::barrier();
      const LaneTop of_lane =
          write_scores<kN, !kMany>(a, SurfaceRows<kN>(in_tile, twiddles, my), pair, mine);
      if (a.tops != nullptr) {
        const PartTop top =
            top_of_lanes({of_lane.most.value, of_lane.most.at, of_lane.zero != 0 ? 1u : 0u, 0});
        if (my.lane == 0) tops[my.warp] = top;
      }
      block::barrier();
      // Warp 0 reduces the tops of all warps while the other warps continue.
      if (a.tops != nullptr && my.warp == 0) {
        // A warp without rows has not waited in the epilogue.
        if constexpr (!kMany) wait_for_previous();
        const PartTop top = top_of_lanes(my.lane < my.warps ? tops[my.lane] : no_top());
        if (my.lane == 0) a.tops[static_cast<Index>(pair) * a.tiles + mine.tile] = top;
      }
    };
    if constexpr (kMany) {
      Complex* const own = a.own + static_cast<Index>(blockIdx.x) * T::spectrum;
      tile.template columns<true, false>(rows_of_tile(), [&](auto& v, int at, int, int) {
#pragma unroll
        for (int i = 0; i < L::second; i += 2) {
          *reinterpret_cast<SpectrumPair*>(own + at + 32 * i) = {v[i], v[i + 1]};
        }
      });
      block::barrier();
#pragma unroll 1
      for (int i = 0; i < a.group; ++i) {
        const int left = mine.first_template + i;
        if (left >= q.lefts) {  // the same for all threads
          block::barrier();     // before warp 0 overwrites the item
          break;
        }
        const Complex* const with = a.spectra + static_cast<Index>(left) * T::spectrum;
        tile.template columns<false, true>(rows_of_tile(), [&](auto& v, int at, int, int) {
#pragma unroll
          for (int i = 0; i < L::second; i += 2) {
            const auto pair = *reinterpret_cast<const SpectrumPair*>(own + at + 32 * i);
            v[i] = pair.a, v[i + 1] = pair.b;
          }
          multiply(v, with + at);
        });
        finish((mine.first_template + i) * q.rights + mine.frame);
      }
    } else {
      // n-to-m gets here only with one template.
      const Complex* const with =
          a.spectra +
          static_cast<Index>(q.rights_back > 0 ? 0 : q.left_of(mine.frame)) * T::spectrum;
      tile.template columns<true, true>(rows_of_tile(),
                                        [&](auto& v, int at, int, int) { multiply(v, with + at); });
      finish(mine.frame);
    }
  }
  if (blockIdx.x == 0 && a.ready != nullptr) {
    wait_for_previous();  // for a block without items; factors no longer read the counters
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < q.rights; i += TemplateTuning<kN>::threads) {
      a.ready[i] = 0;
    }
  }
}

}  // namespace xcorr::fused_fft
