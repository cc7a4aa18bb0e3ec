// Stages rectangles of several matrices in shared memory, with zeros outside the matrices.
#pragma once

#include "algorithms/tiled/chunks.hpp"

namespace xcorr::tiled {

// Address and size of the matrices. Rows outside [first_row, end_row) are treated as zero.
struct StageSource {
  const float* matrix;
  Index size;
  int cols, first_row = 0, end_row = 0;
  bool aligned = false;  // all rows begin at multiples of 16 bytes
};

// Stages rows x (kChunk * chunks) elements of several matrices, from (row, col) on, zero outside.
// The threads of a block take chunks in turn, each with kFlight loads in flight. `col` is a
// multiple of kChunk; matrix m is stored at shared + m * stride.
template <int kFlight>
class Stage {
 public:
  struct Target {
    float* shared;
    int stride, pitch, matrices, row, rows, col, chunks;
  };

  // divide(n) returns n / chunks.
  template <typename Divide>
  __device__ __forceinline__ Stage(const StageSource& source, const Target& target, int thread,
                                   int threads, const Divide& divide)
      : source_(source), to_(target) {
    y_ = static_cast<int>(divide(static_cast<unsigned>(thread)));
    x_ = thread - y_ * to_.chunks;
    dy_ = static_cast<int>(divide(static_cast<unsigned>(threads)));
    dx_ = threads - dy_ * to_.chunks;
    wrap();
  }

  __device__ __forceinline__ bool more() const { return m_ < to_.matrices; }
  __device__ __forceinline__ void load() {
#pragma unroll
    for (int k = 0; k < kFlight; ++k) {
      const bool exists = more();
      at_[k] = exists ? m_ * to_.stride + y_ * to_.pitch + x_ * kChunk : -1;
      chunk_[k] = {};
      const int row = to_.row + y_, col = to_.col + x_ * kChunk;
      if (exists && row >= source_.first_row && row < source_.end_row) {
        const float* const line =
            source_.matrix + m_ * source_.size + static_cast<Index>(row) * source_.cols;
        if (source_.aligned) {
          if (static_cast<unsigned>(col) < static_cast<unsigned>(source_.cols)) {
            chunk_[k] = load_chunk(line + col);
          }
        } else {
#pragma unroll
          for (int i = 0; i < kChunk; ++i) {
            chunk_[k].at[i] = load_or_zero(line, col + i, source_.cols);
          }
        }
      }
      x_ += dx_;
      y_ += dy_;
      if (x_ >= to_.chunks) x_ -= to_.chunks, ++y_;
      wrap();
    }
  }
  __device__ __forceinline__ void store() const {
#pragma unroll
    for (int k = 0; k < kFlight; ++k) {
      if (at_[k] >= 0) *reinterpret_cast<Chunk*>(to_.shared + at_[k]) = chunk_[k];
    }
  }

 private:
  __device__ __forceinline__ void wrap() {
    while (y_ >= to_.rows) y_ -= to_.rows, ++m_;
  }

  StageSource source_;
  Target to_;
  int x_, y_, dx_, dy_, m_ = 0;  // position of the thread's next chunk
  Chunk chunk_[kFlight];
  int at_[kFlight];
};

}  // namespace xcorr::tiled
