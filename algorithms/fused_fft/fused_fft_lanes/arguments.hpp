// What the kernels of fused_fft_lanes are given, and what they begin with.
#pragma once

#include "algorithms/device/launch.hpp"
#include "algorithms/fused_fft/fused_fft_lanes/transforms.hpp"
#include "algorithms/fused_fft/problem.hpp"
#include "algorithms/fused_fft/roots.hpp"

namespace xcorr::fused_fft {

// The first left, right and output are those of a chunk.
struct LanesArguments : FusedProblem {
  Complex *left_images, *right_images, *pair_images;
  Index image;  // complex elements of one
  int ny, nx;
  std::uint32_t lefts, rights, groups;  // groups: blocks of an image
  std::uint32_t chunks, chunk;          // blocks of a left's columns, rights of one
  int columns_of_block;
  Index of_left;  // outputs from a left's first to the next left's
  // n-to-m: counters (tasks taken; tasks over columns and over rows done, by batch), batches, tasks
  // of a batch and of both kinds, by how many rows are behind, batches of the ring, and powers of
  // two: a batch's lefts and rights.
  std::uint32_t *counters, *columns_done, *rows_done, all_counters;
  std::uint32_t batches, of_batch, column_tasks, row_tasks, lag, ring;
  std::uint32_t log_lefts, log_rights, batches_across, batches_down;
};

template <typename T>
constexpr int kBlocks = T::values > 16 ? 3 : 4;  // of an SM: 32 or 24 warps

template <typename T>
__device__ __forceinline__ void table_of(Complex* to, const LanesArguments& a, int axis) {
  T::store_twiddles(to, a.roots + (2 + axis) * kRootTable, static_cast<int>(threadIdx.x),
                    static_cast<int>(blockDim.x));
}

// What kernels with one table begin with: the table of an axis, then the end of the launch before.
enum class Ends { kernel, call };
template <typename L, Ends kEnds = Ends::kernel>
__device__ __forceinline__ Complex* begin_with_table(const LanesArguments& a, int axis) {
  Complex* const table = dynamic_shared<Complex>();
  table_of<L>(table, a, axis);
  block::barrier();
  wait_for_previous();
  if constexpr (kEnds == Ends::kernel) let_next_start();
  return table;
}

}  // namespace xcorr::fused_fft
