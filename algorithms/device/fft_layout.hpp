// The data movement around a batched 2D transform: zero padding of the inputs, and the definition's
// layout (shifts of the window in order) of its circular output. Shared by the cuFFT pipelines.
//
// A transform is rows x cols real elements and rows x (cols / 2 + 1) complex ones. Lefts and rights
// of a chunk of pairs lie in slots: first left_slots matrices, then right_slots. Rights and pairs
// come in runs of consecutive matrices (the rights of one left matrix), so that one rectangle of
// lefts and rights of any form is a chunk; slots beyond its valid part are zero on the way in,
// skipped on the way out.
#pragma once

#include "algorithms/device/cuda.hpp"
#include "harness/variant.hpp"

namespace xcorr {

// What stays the same from chunk to chunk.
struct FftGeometry {
  Index rows, cols;             // of a transform
  Index real_pitch, real_size;  // reals from row to row and from slot to slot
  Index spectrum;               // complex elements from slot to slot
  Shape left, right;            // of the inputs
  Index left_slots, right_slots;
  Index right_run, right_pitch;  // right slots of a run; right matrices from run to run
  Index pair_slots;
  Index pair_run, pair_pitch;  // likewise for pairs and their outputs
  Shifts sy, sx;               // the window

  __host__ __device__ Index input_slots() const { return left_slots + right_slots; }
};

// What differs: the first matrices and the first output of a chunk, and how much of it is valid.
// Also read by callbacks that are compiled at run time: eight-byte members only.
template <typename T>
struct FftChunk {
  const T* left;
  const T* right;
  T* out;
  Index lefts;
  Index right_runs, rights;  // runs, and rights in each
  Index pair_runs, pairs;
};

constexpr Index kLayoutRows = 8;  // rows of a thread block, one warp each

// real[slot][y][x] = the matrix of that slot, zero outside it. A warp writes a row.
template <typename T>
__global__ void __launch_bounds__(32 * kLayoutRows)
    pad_rows(FftGeometry g, FftChunk<T> chunk, T* real) {
  const Index row = blockIdx.x * kLayoutRows + threadIdx.y;
  const Index slot = row / g.rows, y = row % g.rows;
  if (slot >= g.input_slots()) return;
  const T* from = chunk.left;
  Index cols = 0;
  if (slot < g.left_slots) {
    if (slot < chunk.lefts && y < g.left.rows) {
      cols = g.left.cols;
      from = chunk.left + (slot * g.left.rows + y) * cols;
    }
  } else {
    const Index run = (slot - g.left_slots) / g.right_run,
                item = (slot - g.left_slots) % g.right_run;
    if (run < chunk.right_runs && item < chunk.rights && y < g.right.rows) {
      cols = g.right.cols;
      from = chunk.right + ((run * g.right_pitch + item) * g.right.rows + y) * cols;
    }
  }
  T* to = real + slot * g.real_size + y * g.real_pitch;
#pragma unroll 4
  for (Index x = threadIdx.x; x < g.cols; x += 32) to[x] = x < cols ? from[x] : T{0};
}

// out[pair][sy][sx] = scale * real[slot][sy mod rows][sx mod cols] over the window. A warp writes a
// row; outputs are not read again, so they leave the caches to the transforms.
template <typename T>
__global__ void __launch_bounds__(32 * kLayoutRows)
    crop_rows(FftGeometry g, FftChunk<T> chunk, const T* real, T scale) {
  const Index row = blockIdx.x * kLayoutRows + threadIdx.y;
  const Index slot = row / g.sy.count(), y = row % g.sy.count();
  const Index run = slot / g.pair_run, item = slot % g.pair_run;
  if (run >= chunk.pair_runs || item >= chunk.pairs) return;
  const Index sy = g.sy.first + y;
  const T* from = real + slot * g.real_size + (sy < 0 ? sy + g.rows : sy) * g.real_pitch;
  T* to = chunk.out + ((run * g.pair_pitch + item) * g.sy.count() + y) * g.sx.count();
#pragma unroll 4
  for (Index x = threadIdx.x; x < g.sx.count(); x += 32) {
    const Index sx = g.sx.first + x;
    __stcs(to + x, scale * from[sx < 0 ? sx + g.cols : sx]);
  }
}

inline unsigned layout_blocks(Index rows) {
  return static_cast<unsigned>(ceil_div(rows, kLayoutRows));
}

template <typename T>
void pad(const FftGeometry& g, const FftChunk<T>& chunk, T* real, void* stream) {
  launch(pad_rows<T>, dim3(layout_blocks(g.input_slots() * g.rows)), dim3(32, kLayoutRows), 0,
         stream, g, chunk, real);
}

template <typename T>
void crop(const FftGeometry& g, const FftChunk<T>& chunk, const T* real, T scale, void* stream) {
  launch(crop_rows<T>, dim3(layout_blocks(g.pair_slots * g.sy.count())), dim3(32, kLayoutRows), 0,
         stream, g, chunk, real, scale);
}

}  // namespace xcorr
