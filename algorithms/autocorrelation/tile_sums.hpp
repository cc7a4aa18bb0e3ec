// Device code of autocorr_cuda_tile: copies of a tile, the sums of a thread and those of a block.
//
// A thread sums the products of 4 sy x 8 sx, an octet of neighbouring sx, over its 8 left columns.
// It walks down their rows. Left row y needs the right rows y + sy to y + sy + 3, so the right pixels
// of 4 rows stay in registers, and each step reads 8 left and 16 right pixels of one more row. A task
// with a single sy keeps one row.
//
// In shared memory the even vectors of 4 pixels of a right row are in one half and the odd vectors
// in the other. The threads of neighbouring octets then read neighbouring vectors in different
// banks.
#pragma once

#include "algorithms/autocorrelation/line_sums.hpp"
#include "algorithms/autocorrelation/tile_tasks.hpp"
#include "algorithms/device/memory.hpp"

namespace xcorr::autocorrelation {

// The first left row and column of a tile, and its task.
struct TilePlace {
  Index pair;
  int group, chunk, y, x;

  // The position of step `number`.
  __device__ __forceinline__ TilePlace(const TileTasks& q, Index number)
      : pair(number / q.steps_of_pair), group(0), chunk(0) {
    Index rest = number - pair * q.steps_of_pair;
    for (; rest >= q.steps_of_group(group); ++group) rest -= q.steps_of_group(group);
    const int of_panel = q.steps_of_panel(group);
    auto panel = static_cast<int>(rest / of_panel);
    y = q.first_y(group) +
        static_cast<int>(rest - static_cast<Index>(panel) * of_panel) * q.rows_of_step(group);
    for (; panel >= q.panels_of(chunk); ++chunk) panel -= q.panels_of(chunk);
    x = q.first_x(chunk) + panel * q.left_pitch;
  }
  // The number of steps of the tile that begins here, at most `most`.
  __device__ __forceinline__ int steps(const TileTasks& q, int most) const {
    const int rest = q.end_y(group) - y;
    const int fit = q.steps_of(group, rest < q.tile_rows ? rest : q.tile_rows);
    return fit < most ? fit : most;
  }
  // Advances by `rows` rows, and returns whether the new position is in another task.
  __device__ __forceinline__ bool advance(const TileTasks& q, int rows) {
    y += rows;
    if (y < q.end_y(group)) return false;
    y = q.first_y(group);
    x += q.left_pitch;
    if (x < q.end_x(chunk)) return false;
    if (++chunk == q.chunks) {
      chunk = 0;
      if (++group == q.groups) {
        group = 0;
        ++pair;
      }
      y = q.first_y(group);
    }
    x = q.first_x(chunk);
    return true;
  }
};

// Starts the copies of `rows` rows of an image from row y and column x on. x is a multiple of 4.
// Each team copies vectors of one row; beyond the image it writes zeros. Vector n of a row is
// stored at to(n), the same vector of the next row to_pitch floats further.
template <typename To>
__device__ __forceinline__ void copy_rows(const TileTasks& q, const CopyTeams& teams,
                                          const float* image, int y, int x, int rows, const To& to,
                                          int to_pitch) {
  std::uint32_t first = threadIdx.x;
  const auto team = static_cast<int>(teams.threads.split(first));
  if (team >= teams.count) return;
  const bool all_rows = y >= 0 && y + rows <= q.rows;
  const int step = teams.count * q.pitch, to_step = teams.count * to_pitch;
  for (auto n = static_cast<int>(first); n < teams.vectors;
       n += static_cast<int>(teams.threads.by)) {
    const int column = x + 4 * n;
    const bool inside = static_cast<unsigned>(column) < static_cast<unsigned>(q.pitch);
    Index at = static_cast<Index>(y + team) * q.pitch + column;
    float* target = to(n) + team * to_pitch;
    if (all_rows && inside) {
      const float* from = image + at;
#pragma unroll 4
      for (int i = team; i < rows; i += teams.count, from += step, target += to_step) {
        async_copy::copy<4>(target, from, true);
      }
    } else {
      for (int i = team; i < rows; i += teams.count, at += step, target += to_step) {
        const bool exists = inside && static_cast<unsigned>(y + i) < static_cast<unsigned>(q.rows);
        async_copy::copy<4>(target, exists ? image + at : image, exists);
      }
    }
  }
}

// Starts the copies of the left and right pixels of a tile of `rows` rows.
__device__ __forceinline__ void copy_tile(const TileTasks& q, const TilePlace& place, int rows,
                                          const float* __restrict__ padded, float* buffer) {
  const float* const image = padded + place.pair * q.padded_size();
  copy_rows(
      q, q.left_teams, image, place.y, place.x, rows, [&](int n) { return buffer + 4 * n; },
      q.left_pitch);
  float* const rights = buffer + q.tile_rows * q.left_pitch;
  copy_rows(
      q, q.right_teams, image, place.y + q.sy_of(place.group), place.x + q.sx_of(place.chunk),
      rows + kRowsOfShifts - 1, [&](int n) { return rights + n % 2 * q.half + n / 2 * 4; },
      2 * q.half);
}

// Loads the kColumns + kOctet neighbouring right pixels that a thread with kColumns left pixels needs.
// Their vectors alternate between the two halves of a row.
__device__ __forceinline__ void load_right(float* values, const float* first, const float* second) {
#pragma unroll
  for (int i = 0; i < kColumns + kOctet; i += 8) {
    load_fours<4>(values + i, first + i / 2);
    load_fours<4>(values + i + 4, second + i / 2);
  }
}

using TileSums = float[kRowsOfShifts][kOctet];
template <int kCount>
using RightRows = float[kCount][kColumns + kOctet];

// Adds the products of one left row for kCount sy. right[kFirst] holds the right row of the
// smallest sy, the next rows follow cyclically, and the last row is read here.
template <int kFirst, int kCount>
__device__ __forceinline__ void add_row(TileSums& sums, RightRows<kCount>& right, const float* left,
                                        const float* first, const float* second) {
  load_right(right[(kFirst + kCount - 1) % kCount], first, second);
  float l[kColumns];
  load_fours<kColumns>(l, left);
#pragma unroll
  for (int s = 0; s < kCount; ++s) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
#pragma unroll
      for (int i = 0; i < kOctet; ++i) {
        sums[s][i] += l[j] * right[(kFirst + s) % kCount][i + j];
      }
    }
  }
}

// Adds the products of `rows` left rows, a multiple of 4, for kCount sy. `first` and `second` are
// the addresses in the two halves of the thread's first two vectors of the first right row.
template <int kCount>
__device__ __forceinline__ void add_rows(const TileTasks& q, TileSums& sums, const float* left,
                                         const float* first, const float* second, int rows) {
  const int left_pitch = q.left_pitch, pitch = 2 * q.half;
  RightRows<kCount> right;
#pragma unroll
  for (int s = 0; s + 1 < kCount; ++s) {
    load_right(right[s], first, second);
    first += pitch;
    second += pitch;
  }
#pragma unroll 1
  for (; rows > 0; rows -= 4) {
    const auto add = [&](auto n) {
      add_row<decltype(n)::value % kCount, kCount>(sums, right, left, first, second);
      left += left_pitch;
      first += pitch;
      second += pitch;
    };
    add(std::integral_constant<int, 0>{});
    add(std::integral_constant<int, 1>{});
    add(std::integral_constant<int, 2>{});
    add(std::integral_constant<int, 3>{});
  }
}

// Adds the sums of the threads of a block for the same shifts, and writes or adds the result to
// `values`. Then sets the sums of the threads to zero.
__device__ __forceinline__ void give_tile_sums(const TileTasks& q, TileSums& sums, bool adds,
                                               float* shared, float* __restrict__ values) {
  const int thread = static_cast<int>(threadIdx.x);
  const int part = thread / q.octets, octet = thread - part * q.octets;
  const int parts = q.across * q.down, shifts = q.shifts();
#pragma unroll
  for (int s = 0; s < kRowsOfShifts; ++s) {
    block::barrier();
    if (part < parts) {
      Four* const mine = reinterpret_cast<Four*>(shared + part * shifts + octet * kOctet);
#pragma unroll
      for (int i = 0; i < kOctet; i += 4) {
        mine[i / 4] = {{sums[s][i], sums[s][i + 1], sums[s][i + 2], sums[s][i + 3]}};
      }
#pragma unroll
      for (int i = 0; i < kOctet; ++i) sums[s][i] = 0;
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
