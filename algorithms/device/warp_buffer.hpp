// Warp-wise buffers of 64 items that move by one (paper section 4.1.1). An item is a column of a
// left row; lane t reads item t. Each lane holds two registers: `bottom` has items 0..31, `top`
// items 32..63, and one step costs two shuffles and a select for every buffer. After 32 steps the
// top has become the bottom, and 32 new items are loaded into the top at once.
//
// Here lane t computes shift sx + t, so its item is column c - sx - t: items are numbered against
// the columns, and a step to the next c moves each value to the next higher lane. Lane 0 gets its
// value from lane 31 of the top.
#pragma once

#include "algorithms/device/cuda.hpp"

namespace xcorr {

// kCount buffers in registers: every index is a constant once loops are unrolled.
template <typename T, int kCount>
struct RegisterBuffers {
  T bottom[kCount], top[kCount];

  __device__ __forceinline__ T item(int i) const { return bottom[i]; }
  __device__ __forceinline__ void set_bottom(int i, T value) { bottom[i] = value; }
  __device__ __forceinline__ void set_top(int i, T value) { top[i] = value; }

  __device__ __forceinline__ void move(int lane) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const T from = select(lane == warp::kSize - 1, top[i], bottom[i]);
      bottom[i] = warp::shuffle(from, lane - 1);
      top[i] = warp::shuffle_up(top[i], 1);
    }
  }
};

// The same in one array whose half is chosen at run time: the ablation of thesis section 3.5.4. No
// register can be indexed so: the array lies in local memory, and every step loads and stores it.
// The halves are longer than they need be, since compilers have learned to keep an array of few
// elements in registers behind chains of selects.
template <typename T, int kCount>
struct LocalMemoryBuffers {
  static constexpr int kHalf = 16;
  static_assert(kCount <= kHalf);
  T halves[2 * kHalf];

  __device__ __forceinline__ T item(int i) const { return halves[i]; }
  __device__ __forceinline__ void set_bottom(int i, T value) { halves[i] = value; }
  __device__ __forceinline__ void set_top(int i, T value) { halves[kHalf + i] = value; }

  __device__ __forceinline__ void move(int lane) {
    const int half = opaque(lane == warp::kSize - 1 ? kHalf : 0);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      halves[i] = warp::shuffle(halves[half + i], lane - 1);
      halves[kHalf + i] = warp::shuffle_up(halves[kHalf + i], 1);
    }
  }
};

}  // namespace xcorr
