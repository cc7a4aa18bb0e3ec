// Sums of a tile in two levels, for long sums of products of one sign. A float32 sum of K such
// products can lose K u / 2 of its value, with u = 2^-24. It does lose that much when half a unit
// in the last place of the sum exceeds the spread of the products. With a mean of 1e4 and a spread
// of 1 this begins near 10,000 products.
//
// Here a sum of at most B products is added to a second sum, the total, and then restarts. The
// rounding error of that addition becomes the start of the next sum (Kahan). Therefore the totals
// together lose 2 u, whatever K is. The bound for products of one sign is (B / 2 + 2) u. B is at
// most kChunk * (2 * kBlockRows - 1) = 380: a walk is cut into pieces of kBlockRows rows, and
// shorter pieces are collected until they have as many rows. Errors of either sign add up to less:
// about 0.3 u sqrt(B / 3) = 3.4 u. An infinite sum becomes NaN.
//
// A tile of 4 x 8 shifts keeps its 32 totals in registers: 128 registers without spills for compute
// capability 8.0 and 9.0, with two blocks per SM as for the plain tile. The totals are used once
// per at least kBlockRows steps, with 96 additions beside at least 6144 FMAs.
#pragma once

#include "algorithms/tiled/register_tile.hpp"

namespace xcorr::tiled {

template <int kRows, int kCols>
class BlockedTile : public RegisterTile<kRows, kCols> {
 public:
  static constexpr int kBlockRows = 48;  // right rows of a piece
  static_assert(kBlockRows >= kRows);

  // Called after `steps` <= kBlockRows right rows.
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
