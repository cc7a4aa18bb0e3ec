// Arguments of the phases of fused_fft_grid: the problem, and where its images lie in the
// workspace.
#pragma once

#include "algorithms/blocks/divide.hpp"
#include "algorithms/blocks/short_transforms.hpp"
#include "algorithms/fused_fft/fused_fft_grid/exchange.hpp"

namespace xcorr::fused_fft {

// An element of an image is one frequency of two rows, 16 bytes. An image is stored in groups of
// kLayout columns; a group has all row pairs one after the other. So lanes along a row access half
// as many cache lines as sectors, and so do lanes along two columns.
inline constexpr int kLayout = 4;

struct GridArguments {
  // Offset of column k from column 0 of the same row pair.
  __device__ __forceinline__ std::uint32_t of_column(int k) const {
    const auto column = static_cast<std::uint32_t>(k);
    return (column / kLayout) * row_pairs * kLayout + column % kLayout;
  }

  const float *left, *right;
  float* out;
  const Complex* roots;  // two tables for x, then two for y
  Element* images;       // [lefts], [rights] from right_image, [pairs] from pair_image
  // Elements per image; first numbers of rights, of pairs.
  std::uint32_t image, right_image, pair_image;
  std::uint32_t left_copies, right_copies;  // copies of an image, with kFlow
  std::uint32_t right_copy_of_left;         // 1 if each left has its own copy of a right
  std::uint32_t row_pairs, m_y;             // per image; distance of the two rows of a pair
  int nx, ny;
  int left_rows, left_cols, right_rows, right_cols;
  int out_rows, out_cols, first_y, first_x;  // the window in the circular result
  bool short_rows, short_columns;            // all inputs have at most nx / 2 columns; ny / 2 rows
  float scale;
  std::uint32_t lefts, rights_of_left, rights_back;
  int log_columns;      // log2 of the columns per column task
  std::uint32_t chunk;  // max rights per column task
  Divider by_pairs_with_data, by_row_pairs, by_m, by_groups, by_lefts;
  std::uint32_t row_items, column_tasks, out_items;
  // Log2 of the threads per group; complex elements of shared memory per group, and per transform
  // over x and y.
  int log_threads, shared_of_group, stride_x, stride_y;
  GridBarrier barrier;
};

}  // namespace xcorr::fused_fft
