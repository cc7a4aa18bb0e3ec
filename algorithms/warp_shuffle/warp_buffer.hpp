// Warp-wise buffers of 64 items that move by one (paper section 4.1.1). An item is a column of a
// left row; lane t reads item t. Each lane holds two registers: `bottom` has items 0..31, `top`
// items 32..63, and one step costs two shuffles and a select for every buffer. After 32 steps the
// top has become the bottom, and 32 new items are loaded into the top at once.
//
// Here lane t computes shift sx + t, so its item is column c - sx - t: items are numbered against
// the columns, and a step to the next c moves each value to the next higher lane. Lane 0 gets its
// value from lane 31 of the top.
//
// The buffer may also stay where it is: after k steps lane t has what lane t - k of the bottom
// began with, or, where there is none, lane t + 32 - k of the top. The same two shuffles and
// select, but with k known to the compiler nothing is computed for them, and a step does not wait
// for the shuffles of the one before; the price is that all 32 steps are written out.
#pragma once

#include "algorithms/device/cuda.hpp"

namespace xcorr::warp_shuffle {

// kCount buffers in registers: every index is a constant once loops are unrolled.
template <typename T, int kCount>
struct RegisterBuffers {
  T bottom[kCount], top[kCount];

  __device__ __forceinline__ void set_bottom(int i, T value) { bottom[i] = value; }
  __device__ __forceinline__ void set_top(int i, T value) { top[i] = value; }

  __device__ __forceinline__ T item(int i) const { return bottom[i]; }
  __device__ __forceinline__ void move(int lane) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const T from = select(lane == warp::kSize - 1, top[i], bottom[i]);
      bottom[i] = warp::shuffle(from, lane - 1);
      top[i] = warp::shuffle_up(top[i], 1);
    }
  }

  // What item(i) were after `steps` moves, 1 to 31, of a buffer that has not moved.
  static constexpr bool kMayStay = true;
  __device__ __forceinline__ T item_after(int i, int steps, int lane) const {
    const T low = warp::shuffle_up(bottom[i], steps);
    const T high = warp::shuffle_down(top[i], warp::kSize - steps);
    return select(lane >= steps, low, high);
  }
  // In place of 32 moves.
  __device__ __forceinline__ void next() {
#pragma unroll
    for (int i = 0; i < kCount; ++i) bottom[i] = top[i];
  }
};

// The same in one array that moves with every step and whose half is chosen at run time: the
// ablation of thesis section 3.5.4. Registers cannot be indexed, so the array lies in local memory,
// and every step loads and stores it. The halves are longer than needed: a compiler would keep an
// array of few elements in registers, behind selects.
template <typename T, int kCount>
struct LocalMemoryBuffers {
  static constexpr int kHalf = 16;
  static_assert(kCount <= kHalf);
  T halves[2 * kHalf];

  __device__ __forceinline__ T item(int i) const { return halves[i]; }
  __device__ __forceinline__ void set_bottom(int i, T value) { halves[i] = value; }
  __device__ __forceinline__ void set_top(int i, T value) { halves[kHalf + i] = value; }

  static constexpr bool kMayStay = false;
  __device__ __forceinline__ void move(int lane) {
    const int half = opaque(lane == warp::kSize - 1 ? kHalf : 0);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      halves[i] = warp::shuffle(halves[half + i], lane - 1);
      halves[kHalf + i] = warp::shuffle_up(halves[kHalf + i], 1);
    }
  }
};

}  // namespace xcorr::warp_shuffle
