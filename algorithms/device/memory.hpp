// The vocabulary's memory accesses: their order between blocks, the caches that they use, and
// asynchronous copies. Under nvcc every name is one instruction; the emulation has separate code
// (tests/emulation/vocabulary.hpp).
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "algorithms/device/cuda.hpp"

#ifndef XCORR_EMULATE

#include <cuda_pipeline_primitives.h>

namespace xcorr::device {

// Order between blocks of one kernel. Writes of a block before a barrier and add_release() are
// visible to another block once its load_acquire() has returned the sum and it has passed a
// barrier. libcu++ (cuda::atomic_ref) generates other instructions for both: generic addresses, and
// a returned sum.
__device__ __forceinline__ void add_release(std::uint32_t* counter, std::uint32_t value) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(counter), "r"(value) : "memory");
}
__device__ __forceinline__ std::uint32_t load_acquire(const std::uint32_t* counter) {
  std::uint32_t value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(counter) : "memory");
  return value;
}

// Called between two reads of memory that another block writes: the thread sleeps for kNanoseconds,
// or with 0 continues at once.
template <unsigned kNanoseconds>
__device__ __forceinline__ void back_off() {
  if constexpr (kNanoseconds > 0) __nanosleep(kNanoseconds);
}

// The register, or the vector of registers, for one access of 4, 8 or 16 bytes. For two doubles (a
// T with `using Scalar = double`) it is a vector of doubles: any other type costs instructions.
template <typename T>
concept OfDoubles = std::is_same_v<typename T::Scalar, double>;
template <typename T>
using AccessOf = std::conditional_t<
    sizeof(T) == 4, float,
    std::conditional_t<sizeof(T) == 8, float2, std::conditional_t<OfDoubles<T>, double2, float4>>>;

// 16 bytes, as other blocks see them now: each of the four words is one that was written.
template <typename T>
__device__ __forceinline__ T load_relaxed(const T* from) {
  static_assert(sizeof(T) == 16);
  float4 v;
  asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(from)
               : "memory");
  return __builtin_bit_cast(T, v);
}
template <typename T>
__device__ __forceinline__ void store_relaxed(T* to, const T& value) {
  const auto v = __builtin_bit_cast(float4, value);
  asm volatile("st.relaxed.gpu.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(v.x), "f"(v.y),
               "f"(v.z), "f"(v.w)
               : "memory");
}

// Accesses that bypass the L1 cache, which does not see writes of other SMs.
template <typename T>
__device__ __forceinline__ T load_past_l1(const T* from) {
  using Access = AccessOf<T>;
  return __builtin_bit_cast(T, __ldcg(reinterpret_cast<const Access*>(from)));
}
template <typename T>
__device__ __forceinline__ void store_past_l1(T* to, const T& value) {
  using Access = AccessOf<T>;
  __stcg(reinterpret_cast<Access*>(to), __builtin_bit_cast(Access, value));
}

// A store whose cache line is evicted first, for results that are not read again.
template <typename T>
__device__ __forceinline__ void store_last(T* to, const T& value) {
  using Access = AccessOf<T>;
  __stcs(reinterpret_cast<Access*>(to), __builtin_bit_cast(Access, value));
}

// A store to global memory through a pointer whose address space the compiler cannot determine.
__device__ __forceinline__ void store_global(float* to, float value) {
  asm volatile("st.global.f32 [%0], %1;" ::"l"(to), "f"(value) : "memory");
}

__device__ __forceinline__ std::uint32_t bits_of(float value) { return __float_as_uint(value); }

// Copies from global to shared memory that run while the thread continues (cp.async, compute
// capability 8.0 and up; plain copies for lower ones).
namespace async_copy {

inline bool supported() { return compute_capability_major() >= 8; }

// Copies kFloats (1 or 4, aligned) floats, or stores as many zeros. Sizes are constants: a run-time
// size would become a switch over all sizes.
template <int kFloats>
__device__ __forceinline__ void copy(float* shared, const float* global, bool exists) {
  constexpr std::size_t kBytes = kFloats * sizeof(float);
  if (exists) {
    __pipeline_memcpy_async(shared, global, kBytes);
  } else {
    __pipeline_memcpy_async(shared, global, kBytes, kBytes);  // reads nothing
  }
}
// The copies of the thread since the last commit become a group; wait() waits for all groups.
__device__ __forceinline__ void commit() { __pipeline_commit(); }
__device__ __forceinline__ void wait() { __pipeline_wait_prior(0); }

}  // namespace async_copy

// Blocks that can access each other's shared memory (compute capability 9.0; for lower ones these
// names compile to nothing that may run). Not emulated.
namespace cluster {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
inline constexpr bool kAvailable = true;
#else
inline constexpr bool kAvailable = false;
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
// The index of the block in its cluster, and of the cluster in the grid.
__device__ __forceinline__ int rank() { return static_cast<int>(__clusterRelativeBlockRank()); }
__device__ __forceinline__ unsigned number() { return blockIdx.x / __clusterSizeInBlocks(); }
// Called by all threads of the cluster; afterwards their writes to any shared memory of the cluster
// are visible.
__device__ __forceinline__ void barrier() {
  __cluster_barrier_arrive();
  __cluster_barrier_wait();
}
// The address in the shared memory of another block that corresponds to `mine`.
template <typename T>
__device__ __forceinline__ T* peer(T* mine, int rank_of) {
  return static_cast<T*>(__cluster_map_shared_rank(mine, static_cast<unsigned>(rank_of)));
}
#else
__device__ __forceinline__ int rank() { return 0; }
__device__ __forceinline__ unsigned number() { return 0; }
__device__ __forceinline__ void barrier() {}
template <typename T>
__device__ __forceinline__ T* peer(T* mine, int) {
  return mine;
}
#endif

}  // namespace cluster
}  // namespace xcorr::device

#endif  // XCORR_EMULATE
