// The kernels of template_fft: spectra of templates, then everything else of a tile of a frame.
#pragma once

#include <type_traits>

#include "algorithms/device/peak_search.hpp"
#include "algorithms/fused_fft/block_tile.hpp"
#include "algorithms/fused_fft/problem.hpp"
#include "algorithms/fused_fft/surface_rows.hpp"
#include "algorithms/fused_fft/template_fft/frame_factors.hpp"
#include "algorithms/fused_fft/template_fft/frame_rows.hpp"

namespace xcorr::fused_fft {

template <int kN>
inline constexpr int kTemplateWarps = kN == 192 ? 24 : BlockTile<kN>::warps;
// Of a block that transforms a template: fewer, so that no register is spilled. 25 units of columns take
// two rounds either way.
template <int kN>
inline constexpr int kSpectraWarps = kN == 192 ? 16 : BlockTile<kN>::warps;
// Blocks that an SM is to hold.
constexpr int template_blocks(int n) { return n <= 64 ? 6 : n <= 128 ? 2 : 1; }

// The base is the problem of one template in one tile of a frame.
struct TemplateFftArguments : FusedProblem {
  TemplateProblem q;
  TemplateMemory memory;
  const float* frames;
  float* surfaces;       // [pairs][out_rows][out_cols]
  Complex* spectra;      // of templates
  PartTop* tops;         // [pairs][tiles]; null where surfaces are asked for
  std::uint32_t* ready;  // FrameStrips::ready; null without factors
  Divider of_groups, of_tiles, of_tiles_across;
  int tiles;            // of a frame
  int group;            // templates that a block takes for one tile
  std::uint32_t items;  // groups of templates, of tiles, of frames
};
// Where a tile meets several templates: its spectrum waits in the workspace, from where the lane reads it
// that has stored it.
struct ManyTemplates : TemplateFftArguments {
  Complex* own;  // of each block
};

template <int kN>
struct TemplateShared {
  using T = BlockTile<kN>;
  static constexpr std::size_t tile = kN, tops = tile + T::elements;  // in complex values
  static constexpr std::size_t bytes = sizeof(Complex) * tops + sizeof(float) * kN;
};

// Opaque, so that no address is made ready before the passes: registers are short.
__device__ __forceinline__ WarpPlace template_place(int warps) {
  const int thread = opaque(static_cast<int>(threadIdx.x));
  return {thread / 32, warps, thread % 32};
}

// What a block works on: in shared memory, not in registers, of which the passes take all.
struct TileItem {
  FrameScale scale;
  int frame, tile, row, col;  // the tile's number in its frame, its first output
  int first_template;
};

// The median of what the lanes of a warp have, for all of them.
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

// What values become before a tile is transformed, by all lanes of a warp: times a power of two, and less a pivot. That
// is the median of 32 medians of three: its distance from the mean costs digits, and no outlier moves it. Where it is no
// number, the tile has one that is none, and is lost.
template <int kN>
__device__ __forceinline__ FrameScale scale_of_tile(const TemplateFftArguments& a,
                                                    const TileItem& item) {
  const TemplateProblem& q = a.q;
  const float scale = q.is_ratio ? a.memory.facts[item.frame].scale : 1.0f;
  if (!q.is_centred) return {scale, 0.0f};
  constexpr int kDown = 8, kAcross = 4, kOfLane = 3;
  const int row = q.first_sy + item.row, col = q.first_sx + item.col;
  const int rows = q.right_rows - row < kN ? q.right_rows - row : kN;
  const int cols = q.right_cols - col < kN ? q.right_cols - col : kN;
  const int y = row + rows * (2 * (warp::lane() / kAcross) + 1) / (2 * kDown);
  const float* const from = a.frames + item.frame * q.right_size() + y * q.right_cols + col;
  float of[kOfLane];
#pragma unroll
  for (int k = 0; k < kOfLane; ++k) {
    const int number = warp::lane() % kAcross * kOfLane + k;
    of[k] = from[cols * (2 * number + 1) / (2 * kAcross * kOfLane)];
  }
  return {scale, -median_of_lanes(median_of(of[0], of[1], of[2])) * scale};
}

// Spectra of `lefts` templates by as many blocks or fewer, `of_templates`; the blocks behind them store the facts of
// frames. What comes next starts beside them (frame_factors.hpp).
template <int kN>
__global__ void __launch_bounds__(32 * kSpectraWarps<kN>, template_blocks(kN))
    template_spectra_kernel(FusedProblem a, Complex* spectra, int lefts, int of_templates,
                            TemplateMemory memory, std::uint32_t* ready, int frames) {
  using T = BlockTile<kN>;
  constexpr int kThreads = 32 * kSpectraWarps<kN>;
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
    const BlockTransform<kN> tile(in_tile, twiddles, template_place(kSpectraWarps<kN>));
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

// Scores of the outputs in a tile, to the surface; the first largest of them too.
template <int kN>
__device__ __forceinline__ void write_scores(const TemplateFftArguments& a,
                                             const TileSurface<kN>& s, WarpPlace my, int pair,
                                             const TileItem& item) {
  const TemplateProblem& q = a.q;
  const int frame = item.frame, row = item.row, col = item.col;
  const int rows = s.rows < q.out_rows - row ? s.rows : q.out_rows - row;
  const int cols = s.cols < q.out_cols - col ? s.cols : q.out_cols - col;
  float* const to = a.surfaces + pair * q.out_size();
  const float* const factors = a.memory.factors + (q.is_ratio ? frame * q.out_size() : 0);
  PartTop top = no_top();
  // The factors of six rows, all that a warp has of 129, come before the stores, behind which the compiler would leave
  // each of them.
  constexpr int kRows = 6, kOfLane = ceil_div(kN, 32);
#pragma unroll 1
  for (int y0 = my.warp; y0 < rows; y0 += kRows * my.warps) {
    float factor[kRows][kOfLane] = {};
    if (q.is_ratio) {
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const int y = y0 + i * my.warps, first = (row + y) * q.out_cols + col;
#pragma unroll
        for (int k = 0; k < kOfLane; ++k) {
          const int x = my.lane + 32 * k;
          if (y < rows && x < cols) factor[i][k] = factors[first + x];
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int y = y0 + i * my.warps, first = (row + y) * q.out_cols + col;
      if (y >= rows) break;
      const float* const from = s.row(y);
#pragma unroll
      for (int k = 0; k < kOfLane; ++k) {
        const int x = my.lane + 32 * k;
        if (x >= cols) break;
        const float sum = from[x];
        const float score = q.is_ratio ? clamped(sum * factor[i][k]) : sum;
        to[first + x] = score;
        top.see(score, first + x);
      }
    }
  }
  if (a.tops == nullptr) return;
  top = top_of_threads(top, 32 * kTemplateWarps<kN>);
  if (threadIdx.x == 0) a.tops[static_cast<Index>(pair) * a.tiles + item.tile] = top;
}

template <int kN, typename Arguments>
__global__ void __launch_bounds__(32 * kTemplateWarps<kN>, template_blocks(kN))
    template_tiles_kernel(Arguments a) {
  constexpr bool kMany = std::is_same_v<Arguments, ManyTemplates>;
  using T = BlockTile<kN>;
  using L = typename T::L;
  XCORR_SHARED(TileItem, of_block, 1);
  Complex* const twiddles = dynamic_shared<Complex>();
  Complex* const in_tile = twiddles + TemplateShared<kN>::tile;
  auto* const tops = reinterpret_cast<float*>(twiddles + TemplateShared<kN>::tops);
  for (int i = static_cast<int>(threadIdx.x); i < kN; i += 32 * kTemplateWarps<kN>) {
    twiddles[i] = a.roots[i];
  }
  const TemplateProblem& q = a.q;
  // Of one template only scores need the launch before, of factors; without factors that is the one of spectra.
  if (kMany || !q.is_ratio) wait_for_previous();
#pragma unroll 1
  for (std::uint32_t item = blockIdx.x; item < a.items; item += gridDim.x) {
    const WarpPlace my = template_place(kTemplateWarps<kN>);
    TileItem& mine = of_block[0];
    if (my.warp == 0) {
      std::uint32_t rest = item;
      TileItem next{};
      const std::uint32_t group = a.of_groups.split(rest);  // of tiles; rest: of templates
      next.first_template = static_cast<int>(rest) * a.group;
      rest = group;
      next.frame = static_cast<int>(a.of_tiles.split(rest));
      next.tile = static_cast<int>(rest);
      next.row = static_cast<int>(a.of_tiles_across.split(rest)) * a.rows.count;
      next.col = static_cast<int>(rest) * a.cols.count;
      next.scale = scale_of_tile<kN>(a, next);
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
      FrameRows<kN>(in_tile, twiddles, my)
          .forward({a.frames + mine.frame * q.right_size() + at, q.right_cols, rows_of_tile(),
                    kN < cols ? kN : cols, mine.scale});
    }
    block::barrier();
    const BlockTransform<kN> tile(in_tile, twiddles, my);
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
      SurfaceRows<kN>(in_tile, twiddles, my).inverse(a.rows, a.cols, tops);
      block::barrier();
      const TileSurface<kN> surface{&in_tile->re, a.rows.first, a.cols.first, a.rows.count,
                                    a.cols.count};
      if constexpr (!kMany) wait_for_previous();
      write_scores<kN>(a, surface, my, pair, mine);
      block::barrier();
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
          block::barrier();     // before warp 0 overwrites what this was read from
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
      // In n-to-m there is one template.
      const Complex* const with =
          a.spectra +
          static_cast<Index>(q.rights_back > 0 ? 0 : q.left_of(mine.frame)) * T::spectrum;
      tile.template columns<true, true>(rows_of_tile(),
                                        [&](auto& v, int at, int, int) { multiply(v, with + at); });
      finish(mine.frame);
    }
  }
  if (blockIdx.x == 0 && a.ready != nullptr) {
    wait_for_previous();  // a block without an item has not; factors have looked at the counters
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < q.rights; i += 32 * kTemplateWarps<kN>) {
      a.ready[i] = 0;
    }
  }
}

}  // namespace xcorr::fused_fft
