// Buffers of 64 items per warp that move by one item (paper section 4.1.1). An item is a column of
// a left row; lane t reads item t. Each lane holds two registers: `bottom` has items 0..31, `top`
// items 32..63. A step costs two shuffles and a select per buffer. After 32 steps the top has
// become the bottom, and 32 new items are loaded into the top at once.
//
// Here lane t computes shift sx + t, so that its item is column c - sx - t. Items are numbered
// against the columns: a step to the next c moves each value to the next higher lane. Lane 0 gets
// its value from lane 31 of the top.
//
// A buffer can also stay in place. After k steps lane t reads the initial value of lane t - k of
// the bottom or, if t < k, of lane t + 32 - k of the top. This takes the same two shuffles and
// select. With k known to the compiler no index is computed, and a step does not wait for the
// shuffles of the previous step. The cost is that all 32 steps are unrolled.
#pragma once

#include "algorithms/device/cuda.hpp"

namespace xcorr::warp_shuffle {

// kCount buffers in registers: all indices are constants after unrolling.
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

  // The value that item(i) would have after `steps` moves, 1 to 31. The buffer has not moved.
  static constexpr bool kMayStay = true;
  __device__ __forceinline__ T item_after(int i, int steps, int lane) const {
    const T low = warp::shuffle_up(bottom[i], steps);
    const T high = warp::shuffle_down(top[i], warp::kSize - steps);
    return select(lane >= steps, low, high);
  }
  // Replaces 32 moves.
  __device__ __forceinline__ void next() {
#pragma unroll
    for (int i = 0; i < kCount; ++i) bottom[i] = top[i];
  }
};

// The same in one array, which moves with every step and whose half is selected at run time: the
// ablation of thesis section 3.5.4. Registers cannot be indexed, so that the array is in local
// memory, and every step loads and stores it. The halves are longer than needed: a compiler would
// keep a small array in registers and use selects.
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
