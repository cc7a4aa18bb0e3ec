// Device code of autocorr_cuda_tile: what a block copies of a tile and what a thread adds.
//
// A thread walks down the rows of its 8 left columns. For each row it reads 8 left pixels and 16 right
// ones. It keeps the right pixels of the last 4 rows in registers, which are those of its 4 sy: 256
// products for 6 accesses of 16 bytes.
//
// In shared memory the right rows have their even vectors of 4 pixels in one half and the odd ones in
// the other. The threads of neighbouring octets then read neighbouring vectors, of other banks.
#pragma once

#include "algorithms/autocorrelation/line_sums.hpp"
#include "algorithms/autocorrelation/tile_tasks.hpp"
#include "algorithms/device/memory.hpp"

namespace xcorr::autocorrelation {

// Tile of a task, by its panel and its place among the tiles of the panel.
struct TilePlace {
  Index pair;
  int group, chunk, panel, row_tile;

  __device__ __forceinline__ TilePlace(const TileTasks& q, Index tile)
      : pair(tile / q.tiles_of_pair), group(0), chunk(0) {
    Index rest = tile - pair * q.tiles_of_pair;
    for (; rest >= q.tiles_of_group(group); ++group) rest -= q.tiles_of_group(group);
    const int row_tiles = q.row_tiles_of(group);
    panel = static_cast<int>(rest / row_tiles);
    row_tile = static_cast<int>(rest - static_cast<Index>(panel) * row_tiles);
    for (; panel >= q.panels_of(chunk); ++chunk) panel -= q.panels_of(chunk);
  }
  // Goes to the next tile, and says whether that is one of another task.
  __device__ __forceinline__ bool advance(const TileTasks& q) {
    if (++row_tile < q.row_tiles_of(group)) return false;
    row_tile = 0;
    if (++panel < q.panels_of(chunk)) return false;
    panel = 0;
    if (++chunk < q.chunks) return true;
    chunk = 0;
    if (++group < q.groups) return true;
    group = 0;
    ++pair;
    return true;
  }
  __device__ __forceinline__ int y(const TileTasks& q) const {
    return q.first_y(group) + row_tile * q.tile_rows;
  }
};

// Starts to copy the left and right pixels of a tile; zeros where the image ends.
__device__ __forceinline__ void copy_tile(const TileTasks& q, const TilePlace& place,
                                          const float* __restrict__ padded, float* buffer) {
  const int team = static_cast<int>(threadIdx.x) / warp::kSize;
  const int lane = static_cast<int>(threadIdx.x) % warp::kSize;
  const int teams = static_cast<int>(blockDim.x) / warp::kSize;
  const float* const image = padded + place.pair * q.rows * q.pitch;
  const int y = place.y(q), x = q.first_x(place.chunk) + place.panel * q.left_pitch;
  for (int i = team; i < q.tile_rows; i += teams) {
    const bool inside = y + i < q.rows;
    const float* const from = image + (inside ? static_cast<Index>(y + i) * q.pitch : 0);
    float* const to = buffer + i * q.left_pitch;
    for (int at = 4 * lane; at < q.left_pitch; at += 4 * warp::kSize) {
      const bool exists = inside && x + at < q.pitch;
      async_copy::copy<4>(to + at, exists ? from + x + at : image, exists);
    }
  }
  const int right_y = y + q.sy_of(place.group), right_x = x + q.sx_of(place.chunk);
  const int right_rows = q.tile_rows + kRowsOfShifts - 1;
  const int vectors = 2 * (q.across + q.octets);
  float* const rights = buffer + q.tile_rows * q.left_pitch;
  for (int i = team; i < right_rows; i += teams) {
    const bool inside = static_cast<unsigned>(right_y + i) < static_cast<unsigned>(q.rows);
    const float* const from = image + (inside ? static_cast<Index>(right_y + i) * q.pitch : 0);
    float* const to = rights + i * 2 * q.half;
    for (int n = lane; n < vectors; n += warp::kSize) {
      const int at = right_x + 4 * n;
      const bool exists =
          inside && static_cast<unsigned>(at) < static_cast<unsigned>(q.pitch);
      async_copy::copy<4>(to + (n % 2) * q.half + n / 2 * 4, exists ? from + at : image, exists);
    }
  }
}

// 16 neighbouring pixels of a right row.
__device__ __forceinline__ void load_right(float* values, const float* even, const float* odd) {
  load_fours<4>(values, even);
  load_fours<4>(values + 4, odd);
  load_fours<4>(values + 8, even + 4);
  load_fours<4>(values + 12, odd + 4);
}

using TileSums = float[kRowsOfShifts][kOctet];
using RightRows = float[kRowsOfShifts][2 * kOctet];

// The products of one left row. right[kFirst] holds the right row of the smallest sy, the next ones
// follow in turns, and the last one is read here.
template <int kFirst>
__device__ __forceinline__ void add_row(TileSums& sums, RightRows& right, const float* left,
                                        const float* even, const float* odd) {
  load_right(right[(kFirst + kRowsOfShifts - 1) % kRowsOfShifts], even, odd);
  float l[kOctet];
  load_fours<kOctet>(l, left);
#pragma unroll
  for (int s = 0; s < kRowsOfShifts; ++s) {
#pragma unroll
    for (int j = 0; j < kOctet; ++j) {
#pragma unroll
      for (int i = 0; i < kOctet; ++i) {
        sums[s][i] += l[j] * right[(kFirst + s) % kRowsOfShifts][i + j];
      }
    }
  }
}

// The products of `rows` left rows, a multiple of 4.
__device__ __forceinline__ void add_rows(const TileTasks& q, TileSums& sums, const float* left,
                                         const float* even, int rows) {
  const int left_pitch = q.left_pitch, pitch = 2 * q.half;
  const float* odd = even + q.half;
  RightRows right;
#pragma unroll
  for (int s = 0; s + 1 < kRowsOfShifts; ++s) {
    load_right(right[s], even, odd);
    even += pitch;
    odd += pitch;
  }
#pragma unroll 1
  for (; rows > 0; rows -= kRowsOfShifts) {
    add_row<0>(sums, right, left, even, odd);
    add_row<1>(sums, right, left + left_pitch, even + pitch, odd + pitch);
    add_row<2>(sums, right, left + 2 * left_pitch, even + 2 * pitch, odd + 2 * pitch);
    add_row<3>(sums, right, left + 3 * left_pitch, even + 3 * pitch, odd + 3 * pitch);
    left += 4 * left_pitch;
    even += 4 * pitch;
    odd += 4 * pitch;
  }
}

// Adds what the threads of a block have for the same shifts, and writes it, or adds it, to `values`.
// The sums of the threads are zero afterwards.
__device__ __forceinline__ void give_tile_sums(const TileTasks& q, TileSums& sums, bool adds,
                                               float* shared, float* __restrict__ values) {
  const int thread = static_cast<int>(threadIdx.x);
  const int part = thread / q.octets, octet = thread - part * q.octets;
  const int parts = q.across * q.down, shifts = q.shifts();
#pragma unroll
  for (int s = 0; s < kRowsOfShifts; ++s) {
    block::barrier();
    if (part < parts) {
#pragma unroll
      for (int i = 0; i < kOctet; ++i) {
        shared[part * shifts + octet * kOctet + i] = sums[s][i];
        sums[s][i] = 0;
      }
    }
    block::barrier();
    for (int col = thread; col < shifts; col += static_cast<int>(blockDim.x)) {
      float sum = 0;
      for (int n = 0; n < parts; ++n) sum += shared[n * shifts + col];
      float* const value = values + s * shifts + col;
      *value = adds ? *value + sum : sum;
    }
  }
}

}  // namespace xcorr::autocorrelation
