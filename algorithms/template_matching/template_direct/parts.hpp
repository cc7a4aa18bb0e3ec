// Where a window has few shifts, a template is divided into parts, so that there are blocks for all SMs.
// The norms of windows are sums, too, and are divided alike:
//
//   parts_kernel       some blocks: products of a part of the template; others: sums of a part of the
//                      rows of all windows, once a frame. Neither waits for the other
//   join_parts_kernel  adds up both, and makes scores
#pragma once

#include "algorithms/template_matching/template_direct/kernel.hpp"

namespace xcorr::template_matching {

// How blocks share the sums of windows. Made on the host, given to the kernels by value.
struct WindowParts {
  RunSums* sums;         // [parts][rights][out_rows][out_cols]
  int parts, part_rows;  // of the rows of a window; no parts: factors are in TemplateMemory
  Divider of_parts, of_across, of_down;
  int blocks;  // of all frames
};

// Neighbouring windows of a thread along a row: there are few.
inline constexpr int kShortRun = 8;

// Columns first, as factors_kernel (algorithms/device/template_factors.hpp), of a part of the rows of
// kTallFactors x kFactorCols windows. The first blocks of a frame leave its facts.
__device__ __forceinline__ void add_window_part(const TemplateProblem& q,
                                                const TemplateMemory& memory, const WindowParts& w,
                                                const float* right, int item) {
  constexpr int kRows = kTallFactors;
  auto* const of_frame = dynamic_shared<FrameFacts>();
  auto* const sums = reinterpret_cast<RunSums*>(of_frame + 1);
  const int thread = static_cast<int>(threadIdx.x);
  auto across = static_cast<std::uint32_t>(item);
  auto down = w.of_across.split(across), of_rows = w.of_down.split(down);
  const auto frame = static_cast<int>(w.of_parts.split(of_rows));
  const int col = static_cast<int>(across) * kFactorCols, row = static_cast<int>(down) * kRows;
  const auto part = static_cast<int>(of_rows);
  const int begin = part * w.part_rows;
  const int rows = q.left_rows - begin < w.part_rows ? q.left_rows - begin : w.part_rows;
  block::barrier();  // what the item before left has been read
  if (thread < warp::kSize) {
    const FrameFacts facts = facts_of(memory, frame);
    if (thread == 0) {
      of_frame[0] = facts;
      if (part == 0 && row == 0 && col == 0) memory.facts[frame] = facts;
    }
  }
  block::barrier();
  const double mean = q.is_centred ? of_frame[0].mean : 0.0;
  const float* const from = right + frame * q.right_size();
  const int windows_across = q.out_cols - col < kFactorCols ? q.out_cols - col : kFactorCols;
  const int cols = windows_across + q.left_cols - 1;
  const int pitch = (kFactorCols + q.left_cols - 1) | 1;
#pragma unroll 1
  for (int x = thread; x < pitch; x += kDirectThreads) {
    // Windows beyond the last column are made of any elements.
    const int own_x = q.first_sx + col + (x < cols ? x : cols - 1);
    const int at_y = q.first_sy + row + begin, last = q.right_rows - 1 - at_y;
    const float* const column = from + static_cast<Index>(at_y) * q.right_cols + own_x;
    sums_of_windows<kRows, 8>([&](int j) -> RunSums& { return sums[j * pitch + x]; }, rows,
                              [&](int i) { return column[i * q.right_cols]; },
                              [&](int i) { return column[(i < last ? i : last) * q.right_cols]; },
                              [&](float of) {
                                const double value = static_cast<double>(of) - mean;
                                return RunSums{value, value * value};
                              });
  }
  block::barrier();
  const int runs = ceil_div(windows_across, kShortRun);
#pragma unroll 1
  for (int task = thread; task < kRows * runs; task += kDirectThreads) {
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

// The first blocks have windows, which take longer.
template <int kRows>
__global__ void __launch_bounds__(kDirectThreads, 2)
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

// A thread an output. The parts are added in their order.
static __global__ void __launch_bounds__(kDirectThreads)
    join_parts_kernel(TemplateProblem q, TemplateMemory memory, WindowParts windows,
                      const float* sums, int parts, float* out) {
  wait_for_previous();
  const Index all = q.pairs * q.out_size(), of_frames = q.rights * q.out_size();
  const auto terms = static_cast<double>(q.left_size());
#pragma unroll 1
  for (Index i = static_cast<Index>(blockIdx.x) * kDirectThreads + threadIdx.x; i < all;
       i += static_cast<Index>(gridDim.x) * kDirectThreads) {
    const auto pair = static_cast<int>(i / q.out_size());
    const int frame = q.right_of(pair);
    const Index at = frame * q.out_size() + (i - pair * q.out_size());
    RunSums window = {0, 0};
#pragma unroll 4
    for (int part = 0; part < windows.parts; ++part) {
      window.add(windows.sums[part * of_frames + at]);
    }
    float sum = 0;
#pragma unroll 8
    for (int part = 0; part < parts; ++part) sum += sums[part * all + i];
    if (q.is_ratio) {
      const float factor =
          windows.parts > 0 ? factor_of_window(q, window, terms, 1 / terms,
                                               1 / static_cast<double>(memory.facts[frame].scale))
                            : memory.factors[at];
      sum = clamped(sum * factor);
    }
    out[i] = sum;
  }
}

}  // namespace xcorr::template_matching
