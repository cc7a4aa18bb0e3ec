// The sums of the simple CUDA program of the ISS paper (section 4.3, before its line kernel): a
// thread has one shift (X0, Y0) and sums over the pixels with two loops. Common code of
// autocorr_cuda_simple and autocorr_cuda_simple_texture, which differ in how a pixel is loaded.
#pragma once

#include "algorithms/blocks/plan.hpp"

namespace xcorr::autocorrelation {

// A block is 32 shifts sx wide and 4 shifts sy high.
inline constexpr int kSimpleWidth = warp::kSize, kSimpleHeight = 4;
inline constexpr int kSimpleThreads = kSimpleWidth * kSimpleHeight;
inline constexpr int kSimpleBlocksResident = 8;  // the compiler then uses 64 registers, no spills

inline dim3 simple_block() { return {kSimpleWidth, kSimpleHeight}; }
// Columns of shifts (x), rows of shifts in a stride (y), images in a stride (z).
inline dim3 simple_grid(const Problem& q) {
  return {static_cast<unsigned>(ceil_div<Index>(q.out_cols(), kSimpleWidth)),
          grid_extent(ceil_div<Index>(q.out_rows(), kSimpleHeight)), grid_extent(q.pairs())};
}

// Computes the outputs of the calling thread. line_at(image, y, x) gives a line of an image from
// pixel (y, x) on: line[i] loads pixel (y, x + i), and line.next() moves to pixel (y + 1, x). Only
// pixels of the image are loaded. Each line has a separate sum, as each column has in
// autocorr_simple.
template <typename LineAt>
__device__ __forceinline__ void sum_shifts(const Geometry& q, float* __restrict__ out,
                                           const LineAt& line_at) {
  const Index col = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (col >= q.out_cols()) return;
  const Index sx = q.window.sx.first + col;
  const Overlap x = overlap(q.left.cols, q.left.cols, sx);
  for (Index image = blockIdx.z; image < q.pairs(); image += gridDim.z) {
    for (Index row = static_cast<Index>(blockIdx.y) * blockDim.y + threadIdx.y; row < q.out_rows();
         row += static_cast<Index>(gridDim.y) * blockDim.y) {
      const Index sy = q.window.sy.first + row;
      const Overlap y = overlap(q.left.rows, q.left.rows, sy);
      auto left = line_at(image, y.first, x.first);
      auto right = line_at(image, y.first + sy, x.first + sx);
      float sum = 0;
      for (Index line = 0; line < y.count; ++line) {
        float of_line = 0;
        for (int i = 0; i < static_cast<int>(x.count); ++i) of_line += left[i] * right[i];
        sum += of_line;
        left.next();
        right.next();
      }
      out[(image * q.out_rows() + row) * q.out_cols() + col] = sum;
    }
  }
}

}  // namespace xcorr::autocorrelation
