// The vocabulary of CUDA kernels: this header (threads, warps, blocks, shared memory), launch.hpp
// (launches and queries of the host), memory.hpp (ordered atomics, loads past the L1 cache,
// asynchronous copies), texture.hpp (matrices that are read through the texture units) and, for
// tensor cores, matrix.hpp. README.md says how a kernel is written in it.
//
// Under nvcc every name is the intrinsic. With XCORR_EMULATE defined (only in tests: the path of
// tests/emulation/vocabulary.hpp) the same names work under a host compiler, with one fiber per
// thread. Then a kernel is tested on every shape, under AddressSanitizer and with its barriers
// checked, on a machine without a GPU (docs/design.md, Emulation).
#pragma once

#include <cstddef>
#include <cstdint>

#include "algorithms/device/launch.hpp"

#ifndef XCORR_EMULATE

// Static shared memory: XCORR_SHARED(float, tile, 32 * 33); declares the array `tile`.
#define XCORR_SHARED(T, name, count) __shared__ T name[count]

namespace xcorr::device {

// Limit of gridDim.y and gridDim.z: a kernel processes further items in a loop with stride gridDim.
inline constexpr std::int64_t kGridLimitYZ = 65535;

// A limit that only large problems reach. Under the emulation it is `small`, so that small problems
// reach it.
constexpr std::int64_t small_if_emulated(std::int64_t limit, std::int64_t /*small*/) {
  return limit;
}

// The block's dynamic shared memory, aligned to 16 bytes.
template <typename T>
__device__ __forceinline__ T* dynamic_shared() {
  extern __shared__ __align__(16) unsigned char xcorr_dynamic_shared[];
  return reinterpret_cast<T*>(xcorr_dynamic_shared);
}

// Adds, and returns the previous value; the order of the additions is unspecified.
template <typename T>
__device__ __forceinline__ T atomic_add(T* address, T value) {
  return atomicAdd(address, value);
}

// opaque(x) is x, but the compiler can neither assume that it is constant nor compute it again.
// This keeps a loop in one piece: the compiler would move a loop-invariant condition out of the
// loop and create two loops. If the condition differs between lanes, the lanes of a warp would then
// no longer run together.
__device__ __forceinline__ int opaque(int value) {
  asm volatile("" : "+r"(value));
  return value;
}
__device__ __forceinline__ std::int64_t opaque(std::int64_t value) {
  asm volatile("" : "+l"(value));
  return value;
}
template <typename T>
__device__ __forceinline__ T* opaque(T* address) {
  asm volatile("" : "+l"(address));
  return address;
}
// condition ? yes : no without a branch, for the same reason.
__device__ __forceinline__ float select(bool condition, float yes, float no) {
  float result;
  asm("{.reg .pred p; setp.ne.u32 p, %3, 0; selp.f32 %0, %1, %2, p;}"
      : "=f"(result)
      : "f"(yes), "f"(no), "r"(static_cast<unsigned>(condition)));
  return result;
}
__device__ __forceinline__ double select(bool condition, double yes, double no) {
  double result;
  asm("{.reg .pred p; setp.ne.u32 p, %3, 0; selp.f64 %0, %1, %2, p;}"
      : "=d"(result)
      : "d"(yes), "d"(no), "r"(static_cast<unsigned>(condition)));
  return result;
}

// 1 / sqrt(value) of a normal number, with a relative error of 2^-38: the hardware approximation,
// which computes the upper half of a double, and one step of Newton's method.
__device__ __forceinline__ double inverse_root(double value) {
  double root;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(root) : "d"(value));
  const double rest = fma(-value * root, root, 1.0);
  return fma(0.5 * root, rest, root);
}

namespace block {

// All threads of the block must call it, and none may have ended before.
__device__ __forceinline__ void barrier() { __syncthreads(); }

// The same for only `threads` threads, in whole warps. Groups that may be at such a barrier at the
// same time use different numbers, 1 to 15.
__device__ __forceinline__ void barrier(int number, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

// A barrier at which some warps only signal (arrive) and other warps wait.
// Barrier `number` counts `threads` threads, whole warps, of arrive() and wait() together. arrive()
// returns at once. wait() returns when all of them have arrived; the caller then sees what they
// wrote before. Other barriers have other numbers.
__device__ __forceinline__ void arrive(int number, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(number), "r"(threads) : "memory");
}
__device__ __forceinline__ void wait(int number, int threads) { barrier(number, threads); }

}  // namespace block

// The 32 threads of a warp. All of them must take part in every call. T has 4 or 8 bytes.
namespace warp {

inline constexpr int kSize = 32;
inline constexpr unsigned kAll = 0xffffffffu;

__device__ __forceinline__ int lane() {
  int result;
  asm("mov.u32 %0, %%laneid;" : "=r"(result));
  return result;
}
__device__ __forceinline__ void barrier() { __syncwarp(kAll); }

// The value of lane `source` modulo 32.
template <typename T>
__device__ __forceinline__ T shuffle(T value, int source) {
  return __shfl_sync(kAll, value, source);
}
// The value of lane `lane() + by`; the lane's value if that is beyond the warp.
template <typename T>
__device__ __forceinline__ T shuffle_down(T value, int by) {
  return __shfl_down_sync(kAll, value, by);
}
// The value of lane `lane() - by`; the lane's value if that is below the warp.
template <typename T>
__device__ __forceinline__ T shuffle_up(T value, int by) {
  return __shfl_up_sync(kAll, value, by);
}
// The value of lane `lane() ^ mask`.
template <typename T>
__device__ __forceinline__ T shuffle_xor(T value, int mask) {
  return __shfl_xor_sync(kAll, value, mask);
}
// Whether the predicate holds in any lane.
__device__ __forceinline__ bool any(bool predicate) { return __any_sync(kAll, predicate) != 0; }
// Bit i is the predicate of lane i.
__device__ __forceinline__ std::uint32_t votes(bool predicate) {
  return __ballot_sync(kAll, predicate);
}
// The largest value of all lanes, for all of them.
__device__ __forceinline__ std::uint32_t largest(std::uint32_t value) {
#if __CUDA_ARCH__ >= 800
  return __reduce_max_sync(kAll, value);
#else
  for (int by = kSize / 2; by > 0; by /= 2) {
    const std::uint32_t other = shuffle_xor(value, by);
    value = other > value ? other : value;
  }
  return value;
#endif
}

}  // namespace warp
}  // namespace xcorr::device

#endif  // XCORR_EMULATE

namespace xcorr::device {
namespace warp {

// The value of lane `lane() + by` modulo 32: a buffer of a warp moved by `by` (paper section
// 4.1.1).
template <typename T>
__device__ __forceinline__ T rotate(T value, int by) {
  return shuffle(value, lane() + by);
}

// The sum over all lanes, with the same bits in each lane.
template <typename T>
__device__ __forceinline__ T reduce_add(T value) {
#pragma unroll
  for (int offset = kSize / 2; offset > 0; offset /= 2) value += shuffle_xor(value, offset);
  return value;
}

// The sum over lanes 0 to `lane`, which is lane().
template <typename T>
__device__ __forceinline__ T scan_add(T value, int lane) {
#pragma unroll
  for (int by = 1; by < kSize; by *= 2) {
    const T other = shuffle_up(value, by);
    value += lane >= by ? other : 0;
  }
  return value;
}

}  // namespace warp

// row[x], or 0 if x is not in [0, count).
template <typename T>
__device__ __forceinline__ T load_or_zero(const T* row, int x, int count) {
  return static_cast<unsigned>(x) < static_cast<unsigned>(count) ? row[x] : T(0);
}

// matrix[y][x] of a dense rows x cols matrix, or 0 outside.
template <typename T>
__device__ __forceinline__ T load_or_zero(const T* matrix, int y, int x, int rows, int cols) {
  const bool inside = static_cast<unsigned>(y) < static_cast<unsigned>(rows) &&
                      static_cast<unsigned>(x) < static_cast<unsigned>(cols);
  return inside ? matrix[static_cast<std::int64_t>(y) * cols + x] : T(0);
}

template <typename T>
__host__ __device__ constexpr T ceil_div(T a, T b) {
  return (a + b - 1) / b;
}

}  // namespace xcorr::device
