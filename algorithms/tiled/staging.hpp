// Stages rectangles of several matrices in shared memory, with zeros outside the matrices.
#pragma once

#include "algorithms/tiled/tiling.hpp"

namespace xcorr::tiled {

// Address and size of the matrices. Rows outside [first_row, end_row) are treated as zero.
struct StageSource {
  const float* matrix;
  Index size;
  int cols, first_row = 0, end_row = 0;
  bool aligned = false;  // all rows begin at multiples of 16 bytes
};

// The matrices of a group of pairs.
struct PanelSources {
  StageSource lefts, rights;
};
__device__ __forceinline__ PanelSources panel_sources(const DeviceProblem& q, const Tiling& t,
                                                      const LanePairs& pairs, const float* left,
                                                      const float* right) {
  return {{left + pairs.left_first * q.left_size, q.left_size, q.left_cols, 0, 0, t.left_aligned},
          {right + pairs.right_first * q.right_size, q.right_size, q.right_cols, 0, q.right_rows,
           t.right_aligned}};
}

// The target of rows x (kChunk * chunks) elements of several matrices, from (row, col) on. Matrix m
// is stored at shared + m * stride. `col` is a multiple of kChunk.
struct StageTarget {
  float* shared;
  int stride, pitch, matrices, row, rows, col, chunks;
};

// The threads of a block take chunks in turn, each with four loads in flight. Elements outside the
// matrices are 0.
__device__ __forceinline__ void stage(const StageSource& source, const StageTarget& to, int thread,
                                      int threads) {
  constexpr int kFlight = 4;
  const auto chunks = static_cast<unsigned>(to.chunks);
  int y = static_cast<int>(static_cast<unsigned>(thread) / chunks), x = thread - y * to.chunks;
  const int dy = static_cast<int>(static_cast<unsigned>(threads) / chunks);
  const int dx = threads - dy * to.chunks;
  int m = 0;
  const auto wrap = [&] {
    while (y >= to.rows) y -= to.rows, ++m;
  };
  wrap();
  while (m < to.matrices) {
    Chunk chunk[kFlight];
    int at[kFlight];
#pragma unroll
    for (int k = 0; k < kFlight; ++k) {
      const bool exists = m < to.matrices;
      at[k] = exists ? m * to.stride + y * to.pitch + x * kChunk : -1;
      chunk[k] = {};
      const int row = to.row + y, col = to.col + x * kChunk;
      if (exists && row >= source.first_row && row < source.end_row) {
        const float* const line =
            source.matrix + m * source.size + static_cast<Index>(row) * source.cols;
        if (source.aligned) {
          if (static_cast<unsigned>(col) < static_cast<unsigned>(source.cols)) {
            chunk[k] = load_chunk(line + col);
          }
        } else {
#pragma unroll
          for (int i = 0; i < kChunk; ++i) {
            chunk[k].at[i] = load_or_zero(line, col + i, source.cols);
          }
        }
      }
      x += dx;
      y += dy;
      if (x >= to.chunks) x -= to.chunks, ++y;
      wrap();
    }
#pragma unroll
    for (int k = 0; k < kFlight; ++k) {
      if (at[k] >= 0) *reinterpret_cast<Chunk*>(to.shared + at[k]) = chunk[k];
    }
  }
}

}  // namespace xcorr::tiled
