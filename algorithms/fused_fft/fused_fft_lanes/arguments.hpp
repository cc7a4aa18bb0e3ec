// Arguments of the kernels of fused_fft_lanes, and how the kernels begin.
#pragma once

#include "algorithms/device/launch.hpp"
#include "algorithms/fused_fft/fused_fft_lanes/transforms.hpp"
#include "algorithms/fused_fft/problem.hpp"
#include "algorithms/fused_fft/roots.hpp"

namespace xcorr::fused_fft {

// Pointers are those of the first left, right and output of a chunk.
struct LanesArguments : FusedProblem {
  Complex *left_images, *right_images, *pair_images;
  Index image;  // complex elements per image
  int ny, nx;
  std::uint32_t lefts, rights, groups;  // groups: blocks per image
  std::uint32_t chunks, chunk;          // chunks of rights per left, max rights per chunk
  int columns_of_block;
  Index of_left;  // outputs from one left to the next
  // n-to-m: counters (of tasks taken, and per batch of tasks over columns and over rows that are
  // done); numbers of batches, of list entries per kind and batch, of column tasks and row tasks
  // per batch; lag of the row tasks in entries; batches in the ring; log2 of a batch's lefts and
  // rights; batches along rights and lefts.
  std::uint32_t *counters, *columns_done, *rows_done, all_counters;
  std::uint32_t batches, of_batch, column_tasks, row_tasks, lag, ring;
  std::uint32_t log_lefts, log_rights, batches_across, batches_down;
};

template <typename T>
__device__ __forceinline__ void table_of(Complex* to, const LanesArguments& a, int axis) {
  T::store_twiddles(to, a.roots + (2 + axis) * kRootTable, static_cast<int>(threadIdx.x),
                    static_cast<int>(blockDim.x));
}

// The beginning of kernels with one table: load the table of an axis, then wait for the previous
// launch.
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
