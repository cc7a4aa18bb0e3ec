// The core of the warp-shuffle family. A warp computes a tile of kLeftMats x kRightMats pairs of
// matrices and kOverlaps vertically adjacent outputs for 32 neighbouring shifts, one per lane, and
// takes kLeftRows left rows at a time (paper sections 4.1 to 4.3).
//
// In a step to the next right column each left row moves by one in its buffer of 64 items (two
// shuffles), and each right row is broadcast from the lane that loaded it (one shuffle). Then all
// products of the tile are added: left row i of overlap o times right row i + o. README.md has the
// ratios of FMAs to shuffles.
//
// Elements outside a matrix are zero in the buffers. Therefore edges, incomplete tiles and missing
// matrices need no conditions in the steps. Only outputs that exist are written.
#pragma once

#include "algorithms/blocks/overlap_geometry.hpp"
#include "algorithms/blocks/row_distribution.hpp"
#include "algorithms/warp_shuffle/warp_buffer.hpp"
#include "algorithms/warp_shuffle/warp_plan.hpp"

namespace xcorr::warp_shuffle {

// Blocks of kMostWarpsPerBlock warps per SM: as many as its registers allow, with those of the
// tile's sums, buffers and addresses and 36 others. For __launch_bounds__: without it the compiler
// assumes more blocks and spills registers.
__host__ __device__ constexpr int blocks_of_an_sm(int left_mats, int right_mats, int overlaps,
                                                  int left_rows) {
  const int registers = left_mats * right_mats * overlaps + 2 * left_mats * left_rows +
                        right_mats * (overlaps + left_rows - 1) + 4 * (left_mats + right_mats) + 36;
  const int blocks = 65536 / (kMostWarpsPerBlock * warp::kSize) / registers;
  return blocks > 1 ? blocks : 1;
}

template <typename T, int kLeftMats, int kRightMats, int kOverlaps, int kLeftRows,
          template <typename, int> class Buffers = RegisterBuffers>
class WarpTile {
 public:
  // Computes the outputs of the warp's task, a group of kOverlaps rows, for its pairs and columns.
  __device__ static __forceinline__ void compute(const DeviceProblem& q, const WarpTiles& tiles,
                                                 const T* left, const T* right, T* out) {
    const int task = tiles.task();
    if (!tiles.exists(task)) return;
    const OverlapGroup group(q, task * kOverlaps, kOverlaps);
    tiles.for_each<kLeftMats, kRightMats>(
        q, left, right, [&](const PairGroup<T>& pairs, const WarpColumns& columns) {
          WarpTile tile;
          tile.add(pairs, columns, group.sy, group.begin, group.end);
          tile.write(q, pairs, columns, group.out, group.count, out);
        });
  }
  // The same for a task that is a stripe of rows.
  __device__ static __forceinline__ void compute_stripe(const DeviceProblem& q,
                                                        const WarpTiles& tiles,
                                                        const RowDistribution& rows, const T* left,
                                                        const T* right, T* out) {
    const int task = tiles.task();
    if (!tiles.exists(task)) return;
    const Stripe stripe = rows.stripe(task);
    if (stripe.first == stripe.end) return;  // an unused task
    tiles.for_each<kLeftMats, kRightMats>(
        q, left, right, [&](const PairGroup<T>& pairs, const WarpColumns& columns) {
          WarpTile tile;
          tile.add(pairs, columns, q.first_sy + stripe.row, stripe.first, stripe.end);
          // The sums are added if the overlap has several stripes.
          if (stripe.whole) {
            tile.write(q, pairs, columns, stripe.row, 1, out);
          } else {
            tile.template write<true>(q, pairs, columns, stripe.row, 1, out);
          }
        });
  }
  // The same for a task that is a stripe of the left rows of a group of kOverlaps output rows
  // (GroupStripes).
  template <typename Stripes>
  __device__ static __forceinline__ void compute_group_stripe(const DeviceProblem& q,
                                                              const WarpTiles& tiles,
                                                              const Stripes& stripes, const T* left,
                                                              const T* right, T* out) {
    const int task = tiles.task();
    if (!tiles.exists(task)) return;
    const auto stripe = stripes.stripe(task);
    const OverlapGroup group(q, stripe.group * kOverlaps, kOverlaps);
    const int begin = group.begin + stripe.skipped, last = begin + stripe.rows;
    const int end = last < group.end ? last : group.end;
    if (begin >= end) return;  // an unused task
    tiles.for_each<kLeftMats, kRightMats>(
        q, left, right, [&](const PairGroup<T>& pairs, const WarpColumns& columns) {
          WarpTile tile;
          tile.add(pairs, columns, group.sy, begin, end);
          if (stripe.whole) {
            tile.write(q, pairs, columns, group.out, group.count, out);
          } else {
            tile.template write<true>(q, pairs, columns, group.out, group.count, out);
          }
        });
  }

 private:
  // Adds the products of left rows [begin, end) to the sums; `sy` is the shift of the first
  // overlap.
  __device__ __forceinline__ void add(const PairGroup<T>& pairs, const WarpColumns& at, int sy,
                                      int begin, int end) {
    const int lane = warp::lane();
    for (int y = begin; y < end; y += kLeftRows) {
      Buffers<T, kLeftMats * kLeftRows> left;
      pairs.lefts.template load<kLeftMats, kLeftRows>(
          y, at.begin - at.sx - opaque(lane), end,
          [&](int i, int k, T value) { left.set_bottom(i * kLeftRows + k, value); });
#pragma unroll 1
      for (int x = at.begin; x < at.end; x += warp::kSize) {
        T right[kRightMats][kRightRows];
        pairs.rights.template load<kRightMats, kRightRows>(
            y + sy, x + opaque(lane), pairs.rights.rows,
            [&](int j, int k, T value) { right[j][k] = value; });
        pairs.lefts.template load<kLeftMats, kLeftRows>(
            y, x - at.sx + warp::kSize - opaque(lane), end,
            [&](int i, int k, T value) { left.set_top(i * kLeftRows + k, value); });
        const int steps = at.end - x < warp::kSize ? at.end - x : warp::kSize;
        // Steps beyond `steps` multiply by zeros.
        if constexpr (kStays) {
#pragma unroll
          for (int first = 0; first < warp::kSize; first += kUnrolled) {
            if (first > 0 && first >= steps) break;
#pragma unroll
            for (int i = 0; i < kUnrolled; ++i) {
              const int step = first + i;
              multiply(right, step, [&](int k) {
                return step > 0 ? left.item_after(k, step, lane) : left.item(k);
              });
            }
          }
          left.next();
        } else {
#pragma unroll 1
          for (int step = 0; step < steps; step += kUnrolled) {
#pragma unroll
            for (int i = 0; i < kUnrolled; ++i) {
              multiply(right, step + i, [&](int k) { return left.item(k); });
              left.move(lane);
            }
          }
        }
      }
    }
  }

  // Writes the sums of outputs that exist; with `kAdd` adds them to the stored values.
  template <bool kAdd = false>
  __device__ __forceinline__ void write(const DeviceProblem& q, const PairGroup<T>& pairs,
                                        const WarpColumns& at, int row, int rows, T* out) const {
    const int lane = opaque(warp::lane());
    if (lane >= at.lanes) return;
    out += pairs.first_pair * q.out_size + static_cast<Index>(row) * q.out_cols + at.out + lane;
    // Opaque: otherwise the offsets of all outputs would stay in registers during all tasks.
    const Index size = static_cast<Index>(opaque(q.out_rows)) * q.out_cols;
#pragma unroll
    for (int i = 0; i < kLeftMats; ++i) {
      T* pair = out;
#pragma unroll
      for (int j = 0; j < kRightMats; ++j) {
        T* element = pair;
#pragma unroll
        for (int o = 0; o < kOverlaps; ++o) {
          if (i < pairs.lefts.count && j < pairs.rights.count && o < rows) {
            if constexpr (kAdd) {
              atomic_add(element, sums_[i][j][o]);
            } else {
              *element = sums_[i][j][o];
            }
          }
          element += q.out_cols;
        }
        pair += size;
      }
      out += q.rights_per_left * size;
    }
  }

  static constexpr int kRightRows = kOverlaps + kLeftRows - 1;
  static constexpr int kFmas = kLeftMats * kRightMats * kOverlaps * kLeftRows;
  // Unrolled steps: enough shuffles in flight for an SM with one warp, and little waste on the last
  // columns. The 32 steps of a large tile do not fit the instruction cache: there the buffers move.
  static constexpr int kUnrolled = 4;
  static constexpr bool kStays = Buffers<T, 1>::kMayStay && kFmas <= 16;

  template <typename Item>
  __device__ __forceinline__ void multiply(const T (&right)[kRightMats][kRightRows], int step,
                                           const Item& item) {
    T items[kLeftMats * kLeftRows];
#pragma unroll
    for (int i = 0; i < kLeftMats * kLeftRows; ++i) items[i] = item(i);
#pragma unroll
    for (int j = 0; j < kRightMats; ++j) {
#pragma unroll
      for (int k = 0; k < kRightRows; ++k) {
        const T value = warp::shuffle(right[j][k], step);
#pragma unroll
        for (int i = 0; i < kLeftMats * kLeftRows; ++i) {
          const int o = k - i % kLeftRows;
          if (o >= 0 && o < kOverlaps) sums_[i / kLeftRows][j][o] += items[i] * value;
        }
      }
    }
  }

  T sums_[kLeftMats][kRightMats][kOverlaps] = {};
};

}  // namespace xcorr::warp_shuffle
