// A thread's tile of kRows x kCols neighbouring shifts, whose sums stay in registers. Both matrices
// are read from shared memory, 16 bytes at a time.
#pragma once

#include "algorithms/tiled/chunks.hpp"

namespace xcorr::tiled {

// The sums of kRows x kCols shifts over one strip of kChunk left columns. sums[i][j] belongs to the
// shift (first sy + i, first sx + j). Each step adds the products of two rows: the current right row
// and the left row that was read i steps earlier. Left column dx of the chunk meets column dx + j of
// the right row's span.
template <int kRows, int kCols>
class RegisterTile {
  static_assert(kRows == 4 || kRows == 8);

 public:
  static constexpr int kReach = kCols + kChunk - 1;  // columns of the span that are used

  // Called after the last row. Does nothing here; BlockedTile adds its totals (blocked_sums.hpp).
  __device__ __forceinline__ void finish() {}

  // Walks `steps` >= 1 right rows, the same number for all lanes of a warp. In each step the left
  // row at `left` becomes the newest left row, and `right` is the right row. Left rows before `left`
  // count as zero, unless `preload` is set: then `left` points to the kRows - 1 rows before the first
  // newest one. Only products with kLow <= dx + j < kHigh are added; all others have a factor 0.
  template <int kLow, int kHigh>
  __device__ __forceinline__ void add(const float* left, int left_step, const float* right,
                                      int right_step, int steps, bool preload) {
    Walk<kLow, kHigh> walk;
    walk.left = left;
    walk.right = right;
    walk.left_step = left_step;
    walk.right_step = right_step;
    walk.steps = steps;
    if (preload) {
#pragma unroll
      for (int k = 0; k < kRows - 1; ++k, walk.left += left_step) {
        walk.rows[k] = load_chunk(walk.left);
      }
    } else {
      if (walk_row<0>(walk)) return;
      if (walk_row<1>(walk)) return;
      if (walk_row<2>(walk)) return;
      if constexpr (kRows == 8) {
        if (walk_row<3>(walk)) return;
        if (walk_row<4>(walk)) return;
        if (walk_row<5>(walk)) return;
        if (walk_row<6>(walk)) return;
      }
    }
    // Written out, because the compiler does not unroll a loop with an exit in the middle.
#pragma unroll 1
    for (;;) {
      if (walk_row<kRows - 1>(walk)) return;
      if (walk_row<kRows>(walk)) return;
      if (walk_row<kRows + 1>(walk)) return;
      if (walk_row<kRows + 2>(walk)) return;
      if constexpr (kRows == 8) {
        if (walk_row<kRows + 3>(walk)) return;
        if (walk_row<kRows + 4>(walk)) return;
        if (walk_row<kRows + 5>(walk)) return;
        if (walk_row<kRows + 6>(walk)) return;
      }
    }
  }

  float sums[kRows][kCols] = {};

 private:
  // The last kRows left rows; row k is in rows[k % kRows].
  template <int kLow, int kHigh>
  struct Walk {
    const float *left, *right;
    int left_step, right_step, steps;
    Chunk rows[kRows];
  };

  // Computes row kNumber; rows before row 0 are zero. Returns true after the last step.
  template <int kNumber, int kLow, int kHigh>
  __device__ __forceinline__ bool walk_row(Walk<kLow, kHigh>& walk) {
    Chunk window[(kReach + kChunk - 1) / kChunk];
    walk.rows[kNumber % kRows] = load_chunk(walk.left);
#pragma unroll
    for (int v = 0; v * kChunk < kReach; ++v) {
      if (v * kChunk >= kHigh || (v + 1) * kChunk <= kLow) continue;
      window[v] = load_chunk(walk.right + v * kChunk);
    }
    walk.left += walk.left_step;
    walk.right += walk.right_step;
#pragma unroll
    for (int dx = 0; dx < kChunk; ++dx) {
#pragma unroll
      for (int i = 0; i < kRows && i <= kNumber; ++i) {
#pragma unroll
        for (int j = 0; j < kCols; ++j) {
          const int c = dx + j;
          if (c < kLow || c >= kHigh) continue;
          sums[i][j] += walk.rows[(kNumber - i) % kRows].at[dx] * window[c / kChunk].at[c % kChunk];
        }
      }
    }
    return --walk.steps == 0;
  }
};

}  // namespace xcorr::tiled
