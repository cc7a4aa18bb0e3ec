// The kernel of template_direct: each thread has the sums of a tile of shifts in registers.
#pragma once

#include "algorithms/blocks/template_factors.hpp"
#include "algorithms/template_matching/tuning.hpp"

namespace xcorr::template_matching {

inline constexpr int kTileCols = 4;  // shifts of a thread along x; columns of a template per step

struct alignas(16) FourValues {
  float at[4];
};
__device__ __forceinline__ FourValues load_four(const float* shared) {
  return *reinterpret_cast<const FourValues*>(shared);
}

// How the threads of a block share its shifts, and which part of a template is in shared memory at
// once. Made on the host and passed to the kernel by value.
struct DirectShape {
  int across, down;                       // tiles per block along x and y
  int slices;                             // slices of a panel's rows; each has separate threads
  int slice_rows;                         // rows per slice
  int panel_cols;                         // a multiple of 4
  int frame_rows, frame_pitch, frame_at;  // the part of the frame in shared memory; its offset
  Divider tiles, of_across, of_frame_pitch, of_panel_cols;
  Divider blocks_across, blocks_of_part, blocks_of_pair;
  Divider of_part_cols;
  int parts, part_rows, part_cols;  // parts of a template; each has separate blocks
};

struct DirectArguments {
  TemplateProblem q;
  DirectShape shape;
  TemplateMemory memory;
  const float *units, *right;  // templates that enter the products; frames
  float* out;                  // [pairs][out_rows][out_cols], or sums: [parts][pairs][...]
  Index items;                 // pairs * blocks
  bool has_facts;              // an earlier kernel has stored the facts of frames
  float largest;               // max absolute value of staged values; larger ones become 0
};

// The sums of kRows x 4 shifts. Each step multiplies a row of the frame by the last kRows rows of
// the template, of which one is new, so that each row is loaded once for all rows of shifts.
template <int kRows>
struct ShiftTile {
  float sums[kRows][kTileCols] = {};

  // Processes `steps` rows of the frame from `right` on, with as many rows of the template from
  // `left` on. The template rows before the first are taken as zeros.
  __device__ __forceinline__ void add(const float* left, int left_pitch, const float* right,
                                      int right_pitch, int steps) {
    FourValues rows[kRows] = {};
#pragma unroll 1
    for (;;) {
      bool done = false;
      for_each_row([&](auto number) {
        if (done) return;
        constexpr int k = decltype(number)::value;
        rows[k] = load_four(left);
        const FourValues window[2] = {load_four(right), load_four(right + 4)};
        left += left_pitch;
        right += right_pitch;
#pragma unroll
        for (int dx = 0; dx < 4; ++dx) {
#pragma unroll
          for (int i = 0; i < kRows; ++i) {
#pragma unroll
            for (int j = 0; j < kTileCols; ++j) {
              sums[i][j] +=
                  rows[(k - i + kRows) % kRows].at[dx] * window[(dx + j) / 4].at[(dx + j) % 4];
            }
          }
        }
        done = --steps == 0;
      });
      if (done) return;
    }
  }

 private:
  template <typename F>
  static __device__ __forceinline__ void for_each_row(F f) {
    [&]<int... k>(std::integer_sequence<int, k...>) {
      (f(std::integral_constant<int, k>{}), ...);
    }(std::make_integer_sequence<int, kRows>{});
  }
};

// The scale of the part of a frame that a block reads, computed by all lanes of a warp.
__device__ __forceinline__ FrameScale scale_of_block(const DirectArguments& a, int frame,
                                                     int area) {
  if (a.memory.units == nullptr) return {1.0f, 0.0f};  // product
  const Areas& areas = a.memory.areas;
  const AreaPivot pivot = areas.pivots[static_cast<Index>(frame) * areas.count + area];
  if (!a.q.is_ratio) return {1.0f, -pivot.pivot};
  return scale_of_area(pivot, a.has_facts ? a.memory.facts[frame] : facts_of(a.memory, frame));
}

// A block processes items `first`, `first` + `stride` and so on.
template <int kRows>
__device__ __forceinline__ void add_direct_items(const DirectArguments& a, Index first,
                                                 Index stride) {
  const TemplateProblem& q = a.q;
  const DirectShape& s = a.shape;
  float* const left = dynamic_shared<float>();
  float* const right = left + s.frame_at;
  XCORR_SHARED(FrameScale, of_block, 1);
  const int thread = static_cast<int>(threadIdx.x);
  auto within = static_cast<std::uint32_t>(thread);
  const int slice = static_cast<int>(s.tiles.split(within));
  const int tile_y = static_cast<int>(s.of_across.split(within)), tile_x = static_cast<int>(within);
  const int block_rows = s.down * kRows, block_cols = s.across * kTileCols;
  const int slice_steps = s.slice_rows + kRows - 1;
#pragma unroll 1
  for (Index item = first; item < a.items; item += stride) {
    auto block = static_cast<std::uint32_t>(item);
    const int pair = static_cast<int>(s.blocks_of_pair.split(block));
    const int part = static_cast<int>(s.blocks_of_part.split(block));
    const auto area = static_cast<int>(block);
    const int row = static_cast<int>(s.blocks_across.split(block)) * block_rows;
    const int col = static_cast<int>(block) * block_cols;
    const int number = q.right_of(pair);
    const float* const unit = a.units + q.left_of(pair) * q.left_size();
    const float* const frame = a.right + number * q.right_size();
    auto part_col = static_cast<std::uint32_t>(part);
    const int part_begin = static_cast<int>(s.of_part_cols.split(part_col)) * s.part_rows;
    const int part_end =
        part_begin + s.part_rows < q.left_rows ? part_begin + s.part_rows : q.left_rows;
    const int begin_x = static_cast<int>(part_col) * s.part_cols;
    const int end_x = begin_x + s.part_cols < q.left_cols ? begin_x + s.part_cols : q.left_cols;
    block::barrier();  // the scale of the previous item has been read
    if (thread < warp::kSize) {
      // All parts of a template use the same pivot, since only the whole template adds up to 0.
      const FrameScale near = scale_of_block(a, number, area);
      if (thread == 0) of_block[0] = near;
    }
    block::barrier();
    const FrameScale scale = of_block[0];
    ShiftTile<kRows> tile;
#pragma unroll 1
    for (int y0 = part_begin; y0 < part_end; y0 += s.slices * s.slice_rows) {
#pragma unroll 1
      for (int x0 = begin_x; x0 < end_x; x0 += s.panel_cols) {
        block::barrier();
        // Each slice ends with rows of zeros.
#pragma unroll 2
        for (int i = thread; i < s.slices * slice_steps * s.panel_cols;
             i += TemplateTuning::kDirectThreads) {
          auto at = static_cast<std::uint32_t>(i);
          const int staged = static_cast<int>(s.of_panel_cols.split(at));
          const int of_slice = staged / slice_steps, y = staged - of_slice * slice_steps;
          const int from_y = y0 + of_slice * s.slice_rows + y, from_x = x0 + static_cast<int>(at);
          const bool exists = y < s.slice_rows && from_y < part_end && from_x < end_x;
          left[i] = exists ? unit[from_y * q.left_cols + from_x] : 0.0f;
        }
        const int first_y = q.first_sy + row + y0, first_x = q.first_sx + col + x0;
        // All loads come before the stores, in the last round too: for a remainder loop the
        // compiler would load and store values one by one.
        constexpr int kAtOnce = static_cast<int>(small_if_emulated(8, 2));
        const int of_frame = s.frame_rows * s.frame_pitch;
#pragma unroll 1
        for (int begin = thread; begin < of_frame;
             begin += kAtOnce * TemplateTuning::kDirectThreads) {
          float values[kAtOnce];
          unsigned found = 0;
#pragma unroll
          for (int k = 0; k < kAtOnce; ++k) {
            auto at = static_cast<std::uint32_t>(begin + k * TemplateTuning::kDirectThreads);
            const int y = first_y + static_cast<int>(s.of_frame_pitch.split(at));
            const int x = first_x + static_cast<int>(at);
            const bool exists = y < q.right_rows && x < q.right_cols;
            found |= static_cast<unsigned>(exists) << k;
            values[k] = frame[exists ? static_cast<Index>(y) * q.right_cols + x : 0];
          }
#pragma unroll
          for (int k = 0; k < kAtOnce; ++k) {
            const int i = begin + k * TemplateTuning::kDirectThreads;
            const float scaled = scale.of(values[k]);
            const bool counts = (found >> k & 1) != 0 && !(fabsf(scaled) > a.largest);
            if (i < of_frame) right[i] = counts ? scaled : 0.0f;
          }
        }
        block::barrier();
        if (slice >= s.slices) continue;
        const float* of_left = left + slice * slice_steps * s.panel_cols;
        const float* of_right =
            right + (slice * s.slice_rows + tile_y * kRows) * s.frame_pitch + tile_x * kTileCols;
#pragma unroll 1
        for (int x = 0; x < s.panel_cols; x += 4) {
          tile.add(of_left + x, s.panel_cols, of_right + x, s.frame_pitch, slice_steps);
        }
      }
    }
    // The slices are added one after the other, so that sums have a fixed order.
#pragma unroll 1
    for (int turn = 0; turn < s.slices; ++turn) {
      block::barrier();
      if (slice != turn) continue;
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        float* const to = left + (tile_y * kRows + i) * block_cols + tile_x * kTileCols;
#pragma unroll
        for (int j = 0; j < kTileCols; ++j) to[j] = tile.sums[i][j] + (turn > 0 ? to[j] : 0.0f);
      }
    }
    block::barrier();
    const Index surface = (static_cast<Index>(part) * q.pairs + pair) * q.out_size();
    const bool scored = q.is_ratio && s.parts == 1;
    const float* const factors = a.memory.factors + (scored ? number * q.out_size() : 0);
    const int end_row = q.out_rows - row < block_rows ? q.out_rows - row : block_rows;
    const int end_col = q.out_cols - col < block_cols ? q.out_cols - col : block_cols;
    // The factors of several outputs are loaded before the stores; the compiler would not move a
    // load before a store.
    constexpr int kWarps = TemplateTuning::kDirectThreads / warp::kSize, kStoredRows = 4;
    constexpr int kOfLane = TemplateTuning::kMostAcross * kTileCols / warp::kSize;
#pragma unroll 1
    for (int y0 = thread / warp::kSize; y0 < end_row; y0 += kStoredRows * kWarps) {
      float factor[kStoredRows][kOfLane] = {};
      const auto each_output = [&](auto use) {
#pragma unroll
        for (int i = 0; i < kStoredRows; ++i) {
          const int y = y0 + i * kWarps;
#pragma unroll
          for (int k = 0; k < kOfLane; ++k) {
            const int x = thread % warp::kSize + k * warp::kSize;
            if (y >= end_row || x >= end_col) continue;
            use(y, x, static_cast<Index>(row + y) * q.out_cols + col + x, factor[i][k]);
          }
        }
      };
      if (scored) each_output([&](int, int, Index at, float& of) { of = factors[at]; });
      bool is_short = false;  // float32 has too few digits for an output
      each_output([&](int y, int x, Index at, float of) {
        const float sum = left[y * block_cols + x];
        a.out[surface + at] = scored ? clamped(sum * of) : sum;
        is_short |= of < 0;
      });
      if (!is_short) continue;
#pragma unroll 1
      for (int y = y0; y < y0 + kStoredRows * kWarps && y < end_row; y += kWarps) {
#pragma unroll 1
        for (int x = thread % warp::kSize; x < end_col; x += warp::kSize) {
          const Index at = static_cast<Index>(row + y) * q.out_cols + col + x;
          if (!(factors[at] < 0)) continue;
          const Index first =
              static_cast<Index>(q.first_sy + row + y) * q.right_cols + q.first_sx + col + x;
          a.out[surface + at] = score_by_definition(q, unit, frame + first);
        }
      }
    }
  }
}

// Writes sums of parts, or scores.
template <int kRows>
__global__ void __launch_bounds__(TemplateTuning::kDirectThreads, TemplateTuning::kDirectBlocks)
    direct_kernel(DirectArguments a) {
  wait_for_previous();
  add_direct_items<kRows>(a, blockIdx.x, gridDim.x);
}

}  // namespace xcorr::template_matching
