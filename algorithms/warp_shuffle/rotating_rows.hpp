// The steps of the warp-shuffle kernels as the paper has them (section 4.1.1). In every step the
// buffers of the left rows (warp_buffer.hpp) rotate by one item, and a warp takes 32 steps for each
// 32 right columns, even if fewer columns are left: steps beyond them multiply by zeros.
//
// warp_tile.hpp has the project's steps: up to 16 FMAs a step its buffers stay in place, and its
// loops end after the last column.
#pragma once

#include "algorithms/blocks/overlap_geometry.hpp"
#include "algorithms/warp_shuffle/warp_buffer.hpp"

namespace xcorr::warp_shuffle {

// Which right rows exist. Rows that all exist are loaded without a condition on the row.
enum class RightRows { all, some };

// Sums of kOverlaps vertically adjacent outputs of one pair for 32 neighbouring shifts, one per
// lane.
template <typename T, int kOverlaps>
class RotatingRows {
 public:
  // Adds the products of the kRows left rows from y on, which exist, to overlaps kFirst ..
  // kLast - 1. `sy` is the shift of overlap 0. kUnrolled steps are unrolled; it divides 32.
  template <int kRows, int kFirst, int kLast, int kUnrolled, RightRows kRightRows = RightRows::all>
  __device__ __forceinline__ void add(const PairGroup<T>& pairs, const WarpColumns& at, int y,
                                      int sy) {
    static_assert(0 <= kFirst && kFirst < kLast && kLast <= kOverlaps);
    static_assert(warp::kSize % kUnrolled == 0);
    constexpr int kRights = kLast - kFirst + kRows - 1;
    const int lane = warp::lane(), first_right = y + sy + kFirst;
    RegisterBuffers<T, kRows> left;
    load<kRows>(pairs.lefts, y, at.begin - at.sx - opaque(lane),
                [&](int i, T value) { left.set_bottom(i, value); });
#pragma unroll 1
    for (int x = at.begin; x < at.end; x += warp::kSize) {
      T right[kRights];
      load<kRights, kRightRows>(pairs.rights, first_right, x + opaque(lane),
                                [&](int k, T value) { right[k] = value; });
      load<kRows>(pairs.lefts, y, x - at.sx + warp::kSize - opaque(lane),
                  [&](int i, T value) { left.set_top(i, value); });
#pragma unroll 1
      for (int first = 0; first < warp::kSize; first += kUnrolled) {
#pragma unroll
        for (int i = 0; i < kUnrolled; ++i) {
          multiply<kRows, kFirst, kLast>(left, right, first + i);
          left.move(lane);
        }
      }
    }
  }

  // Writes the outputs that exist: `rows` rows from output row `row` on.
  __device__ __forceinline__ void write(const DeviceProblem& q, const PairGroup<T>& pairs,
                                        const WarpColumns& at, int row, int rows, T* out) const {
    const int lane = opaque(warp::lane());
    if (lane >= at.lanes) return;
    out += pairs.first_pair * q.out_size + static_cast<Index>(row) * q.out_cols + at.out + lane;
#pragma unroll
    for (int o = 0; o < kOverlaps; ++o) {
      if (o < rows) *out = sums_[o];
      out += q.out_cols;
    }
  }

 private:
  // Calls use(k, value) for column x of rows y .. y + kRows - 1. The value is 0 if the matrix has
  // no such column or, with RightRows::some, no such row.
  template <int kRows, RightRows kExist = RightRows::all, typename Use>
  static __device__ __forceinline__ void load(const MatrixRun<T>& matrix, int y, int x,
                                              const Use& use) {
    const T* element = matrix.first + (static_cast<Index>(y) * matrix.cols + x);
    const bool inside = static_cast<unsigned>(x) < static_cast<unsigned>(matrix.cols);
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      const bool exists = inside && (kExist == RightRows::all || y + k < matrix.rows);
      use(k, exists ? *element : T(0));
      element += matrix.cols;
    }
  }

  // Left row i of overlap o meets right row i + o; right[0] is the one of left row 0 and kFirst.
  template <int kRows, int kFirst, int kLast>
  __device__ __forceinline__ void multiply(const RegisterBuffers<T, kRows>& left,
                                           const T (&right)[kLast - kFirst + kRows - 1], int step) {
#pragma unroll
    for (int k = 0; k < kLast - kFirst + kRows - 1; ++k) {
      const T value = warp::shuffle(right[k], step);
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const int o = kFirst + k - i;
        if (o >= kFirst && o < kLast) sums_[o] += left.item(i) * value;
      }
    }
  }

  T sums_[kOverlaps] = {};
};

}  // namespace xcorr::warp_shuffle
