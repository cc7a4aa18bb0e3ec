// Sums of a tile in two levels, for long sums of products of one sign. A float32 sum of K such
// products may lose K u / 2 of its value, with u = 2^-24, and does lose as much once half a unit in
// its last place is above the spread of the products. With a mean of 1e4 and a spread of 1 that
// begins near 10,000 products.
//
// Here a sum of at most B products is added to a second one, the total, and begins anew. What the
// total has lost by that addition becomes the start of the next sum (Kahan), so that the totals
// together lose 2 u, whatever K is. The bound for products of one sign is (B / 2 + 2) u. B is at most
// kChunk * (2 * kBlockRows - 1) = 252: a walk is cut into pieces of kBlockRows rows, and pieces
// that are shorter gather until they have as many. Errors that have either sign add up to less:
// about 0.3 u sqrt(B / 3) = 3 u. An infinite sum becomes NaN.
//
// A tile of 4 x 8 shifts has its 32 totals in registers: 128 without spills for compute capability
// 8.0 and 9.0, as many as the two blocks of an SM that the plain tile has. They are touched once for
// at least kBlockRows steps, with 96 additions beside at least 4096 FMAs.
#pragma once

#include "algorithms/tiled/register_tile.hpp"

namespace xcorr::tiled {

template <int kRows, int kCols>
class BlockedTile : public RegisterTile<kRows, kCols> {
 public:
  static constexpr int kBlockRows = 32;  // right rows of a piece
  static_assert(kBlockRows >= kRows);

  // After `steps` <= kBlockRows right rows.
  __device__ __forceinline__ void walked(int steps) {
    pending_ += steps;
    if (pending_ < kBlockRows) return;
    pending_ = 0;
    fold();
  }
  // Leaves the results in `sums`.
  __device__ __forceinline__ void finish() {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < kCols; ++j) this->sums[i][j] += totals_[i][j];
    }
  }

 private:
  __device__ __forceinline__ void fold() {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < kCols; ++j) {
        const float total = totals_[i][j] + this->sums[i][j];
        this->sums[i][j] -= total - totals_[i][j];
        totals_[i][j] = total;
      }
    }
  }

  float totals_[kRows][kCols] = {};
  int pending_ = 0;
};

}  // namespace xcorr::tiled
