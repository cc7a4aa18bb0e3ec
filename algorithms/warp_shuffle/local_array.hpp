// The left buffers of multi_matrix_both as the thesis writes them (sections 3.5.1 and 3.5.4): local
// arrays that rotate by one item in every step. A lane passes an item of the bottom to the next
// lane. Lane 31 passes an item of the top, so that both halves are one ring of 64 items.
//
// The thesis changes one expression of this rotation, the one that chooses between bottom and top.
// With one form the compiler addresses the arrays by a run-time index. Registers have no addresses,
// so that the arrays lie in local memory. With the other form all indices are constants, and the
// arrays are registers. Here `Passed`, which the variant supplies, is that expression. All else is
// the same code for both.
#pragma once

#include "algorithms/device/cuda.hpp"

namespace xcorr::warp_shuffle {

// kCount buffers, for WarpTile. Passed::item(items, first, i) is item i of the half that begins at
// `first`, which is 0 (bottom) or kLocalHalf (top).
//
// The halves are longer than any count: nvcc 13 keeps an array of 10 items in registers and makes
// selects of its run-time indices, and the pair would not differ. With 16 items it does not. Items
// that are never used cost neither registers nor loads.
inline constexpr int kLocalHalf = 16;

template <typename T, int kCount, typename Passed>
struct LocalArrayBuffers {
  static_assert(kCount <= kLocalHalf);
  T items[2 * kLocalHalf];
  // Opaque: the compiler would derive constant indices from the two values. It is set once for a
  // row: the thesis's instructions (Figure 3.19) reuse one base address in all steps too.
  int first = opaque(warp::lane() == warp::kSize - 1 ? kLocalHalf : 0);

  __device__ __forceinline__ T item(int i) const { return items[i]; }
  __device__ __forceinline__ void set_bottom(int i, T value) { items[i] = value; }
  __device__ __forceinline__ void set_top(int i, T value) { items[kLocalHalf + i] = value; }

  static constexpr bool kMayStay = false;
  __device__ __forceinline__ void move(int lane) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      items[i] = warp::shuffle(Passed::item(items, first, i), lane - 1);
      items[kLocalHalf + i] = warp::shuffle_up(items[kLocalHalf + i], 1);
    }
  }
};

}  // namespace xcorr::warp_shuffle
