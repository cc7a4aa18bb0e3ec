// If a window has few shifts, a template is divided into parts, so that there are blocks for all
// SMs. The norms of windows are sums too, and are divided in the same way:
//
//   parts_kernel       some blocks compute products of a part of the template; the others sums of a
//                      part of the rows of all windows, once per frame. They do not wait for each
//                      other
//   join_parts_kernel  adds up the parts of both, and computes scores
#pragma once

#include "algorithms/template_matching/template_direct/kernel.hpp"

namespace xcorr::template_matching {

// How blocks share the sums of windows. Made on the host and passed to the kernels by value.
struct WindowParts {
  RunSums* sums;  // [parts][rights][out_rows][out_cols]
  float* pivots;  // [rights][down][across]: subtracted before summing
  WindowTerms terms;
  int parts, part_rows;  // parts of a window's rows; with 0 parts TemplateMemory has the factors
  Divider of_parts, of_across, of_down;
  int blocks;  // blocks over all frames

  // Index of the block of windows that contains an output.
  __device__ __forceinline__ Index place(int frame, int row, int col) const {
    return (static_cast<Index>(frame) * of_down.by + row / kTallFactors) * of_across.by +
           col / kFactorCols;
  }
};

// Windows of a thread along x; there are few windows.
inline constexpr int kShortRun = 8;

// Sums a part of the rows of kTallFactors x kFactorCols windows, columns first, as factors_kernel
// (algorithms/blocks/template_factors.hpp) does. The first item of a frame also stores its facts.
__device__ __forceinline__ void add_window_part(const TemplateProblem& q,
                                                const TemplateMemory& memory, const WindowParts& w,
                                                const float* right, int item) {
  constexpr int kRows = kTallFactors;
  auto* const of_block = dynamic_shared<FactorBlock>();
  auto* const sums = reinterpret_cast<RunSums*>(of_block + 1);
  const int thread = static_cast<int>(threadIdx.x);
  auto across = static_cast<std::uint32_t>(item);
  auto down = w.of_across.split(across), of_rows = w.of_down.split(down);
  const auto frame = static_cast<int>(w.of_parts.split(of_rows));
  const int col = static_cast<int>(across) * kFactorCols, row = static_cast<int>(down) * kRows;
  const auto part = static_cast<int>(of_rows);
  const int begin = part * w.part_rows;
  const int rows = q.left_rows - begin < w.part_rows ? q.left_rows - begin : w.part_rows;
  const float* const from = right + frame * q.right_size();
  block::barrier();  // the sums of the previous item have been read
  if (thread < warp::kSize) {
    // All parts of a window get the same pivot.
    const float pivot = window_pivot(q, from, q.first_sy + row, q.first_sx + col,
                                     kRows + q.left_rows - 1, kFactorCols + q.left_cols - 1);
    if (thread == 0) {
      of_block[0].pivot = pivot;
      if (part == 0) w.pivots[w.place(frame, row, col)] = pivot;
    }
    if (part == 0 && row == 0 && col == 0) {  // the same for all lanes
      const FrameFacts facts = facts_of(memory, frame);
      if (thread == 0) memory.facts[frame] = facts;
    }
  }
  block::barrier();
  const auto about = static_cast<double>(of_block[0].pivot);
  const int windows_across = q.out_cols - col < kFactorCols ? q.out_cols - col : kFactorCols;
  const int cols = windows_across + q.left_cols - 1;
  const int pitch = (kFactorCols + q.left_cols - 1) | 1;
#pragma unroll 1
  for (int x = thread; x < pitch; x += TemplateTuning::kDirectThreads) {
    // Windows beyond the last column are computed on arbitrary elements.
    const int own_x = q.first_sx + col + (x < cols ? x : cols - 1);
    const int at_y = q.first_sy + row + begin, last = q.right_rows - 1 - at_y;
    const float* const column = from + static_cast<Index>(at_y) * q.right_cols + own_x;
    sums_of_windows<kRows, 8>([&](int j) -> RunSums& { return sums[j * pitch + x]; }, rows,
                              [&](int i) { return column[i * q.right_cols]; },
                              [&](int i) { return column[(i < last ? i : last) * q.right_cols]; },
                              [&](float of) {
                                const double value = static_cast<double>(of) - about;
                                return RunSums{value, value * value};
                              });
  }
  block::barrier();
  const int runs = ceil_div(windows_across, kShortRun);
#pragma unroll 1
  for (int task = thread; task < kRows * runs; task += TemplateTuning::kDirectThreads) {
    const int y = task % kRows, x = task / kRows * kShortRun;
    const RunSums* const of_row = sums + y * pitch + x;
    RunSums windows[kShortRun];
    const auto in_row = [&](int i) { return of_row[i]; };
    sums_of_windows<kShortRun, 4>([&](int j) -> RunSums& { return windows[j]; }, q.left_cols,
                                  in_row, in_row, [](const RunSums& of) { return of; });
    if (row + y >= q.out_rows) continue;
    RunSums* const to = w.sums + (static_cast<Index>(part) * q.rights + frame) * q.out_size() +
                        static_cast<Index>(row + y) * q.out_cols + col + x;
#pragma unroll
    for (int j = 0; j < kShortRun; ++j) {
      if (x + j < windows_across) to[j] = windows[j];
    }
  }
}

// The first blocks process windows, which take longer.
template <int kRows>
__global__ void __launch_bounds__(TemplateTuning::kDirectThreads, TemplateTuning::kDirectBlocks)
    parts_kernel(DirectArguments a, WindowParts windows, int window_blocks) {
  wait_for_previous();
  const int block = static_cast<int>(blockIdx.x);
  if (block >= window_blocks) {
    add_direct_items<kRows>(a, block - window_blocks, gridDim.x - window_blocks);
    return;
  }
#pragma unroll 1
  for (int item = block; item < windows.blocks; item += window_blocks) {
    add_window_part(a.q, a.memory, windows, a.right, item);
  }
}

// One thread per output. The parts are added in order.
static __global__ void __launch_bounds__(TemplateTuning::kDirectThreads)
    join_parts_kernel(DirectArguments a, WindowParts windows, const float* sums, int parts,
                      float* out) {
  wait_for_previous();
  const TemplateProblem& q = a.q;
  const TemplateMemory& memory = a.memory;
  const Index all = q.pairs * q.out_size(), of_frames = q.rights * q.out_size();
#pragma unroll 1
  for (Index i = static_cast<Index>(blockIdx.x) * TemplateTuning::kDirectThreads + threadIdx.x;
       i < all; i += static_cast<Index>(gridDim.x) * TemplateTuning::kDirectThreads) {
    const auto pair = static_cast<int>(i / q.out_size());
    const int frame = q.right_of(pair);
    const Index output = i - pair * q.out_size(), at = frame * q.out_size() + output;
    RunSums window = {0, 0};
#pragma unroll 4
    for (int part = 0; part < windows.parts; ++part) {
      window.add(windows.sums[part * of_frames + at]);
    }
    float sum = 0;
#pragma unroll 8
    for (int part = 0; part < parts; ++part) sum += sums[part * all + i];
    if (q.is_ratio) {
      const int row = static_cast<int>(output / q.out_cols),
                col = static_cast<int>(output % q.out_cols);
      const float* const first =
          a.right + (frame * q.right_size() + static_cast<Index>(q.first_sy + row) * q.right_cols +
                     q.first_sx + col);
      float factor = 0;
      if (windows.parts > 0) {
        const auto pivot = static_cast<double>(windows.pivots[windows.place(frame, row, col)]);
        const Areas& areas = memory.areas;
        factor = factor_of_window(
            q, windows.terms, window, pivot,
            areas.pivots[static_cast<Index>(frame) * areas.count + areas.of(row, col)],
            memory.facts[frame]);
      } else {
        factor = memory.factors[at];
      }
      sum = factor < 0 ? score_by_definition(q, a.units + q.left_of(pair) * q.left_size(), first)
                       : clamped(sum * factor);
    }
    out[i] = sum;
  }
}

}  // namespace xcorr::template_matching
