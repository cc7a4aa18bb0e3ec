// How the blocks of one kernel wait for each other's results. The device must hold all of them at
// once: GridLaunches of launch.hpp sees to that.
//
// Either a barrier of the whole grid, or none: an element of 16 bytes is waited for by whoever
// reads it, until it is no longer the pattern that means "not yet written"; the reader puts the
// pattern back for the next launch. The second way saves the two trips to the L2 cache that a
// barrier takes after the data, and costs a store for each element; each has one reader.
#pragma once

#include <cstdint>

#include "algorithms/device/cuda.hpp"

namespace xcorr {

// Two counters in global memory, zero before the first launch, serve two barriers of every launch:
// arrive(0), wait(0), arrive(1), wait(1), each by all threads of all blocks. A counter is set back
// to zero when nobody can be waiting for it.
struct GridBarrier {
  // Numbers from one counter to the next: they lie in different sectors of the L2 cache.
  static constexpr int kPitch = 64;
  static constexpr std::size_t kBytes = 2 * kPitch * sizeof(unsigned);

  // What the block has written is seen by every block after its wait().
  __device__ __forceinline__ void arrive([[maybe_unused]] int number) const {
    block::barrier();
#ifndef XCORR_EMULATE
    if (threadIdx.x != 0) return;
    // The second counter: every block that waited for it has ended with the launch before.
    if (number == 0 && blockIdx.x == 0) counters[kPitch] = 0;
    unsigned* const counter = counters + number * kPitch;
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
#endif
  }
  __device__ __forceinline__ void wait([[maybe_unused]] int number) const {
#ifndef XCORR_EMULATE
    if (threadIdx.x == 0) {
      unsigned* const counter = counters + number * kPitch;
      unsigned arrived;
      do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                     : "=r"(arrived)
                     : "l"(counter)
                     : "memory");
      } while (arrived < blocks);
      // The first counter: every block has left it, or it would not have arrived at the second.
      if (number == 1 && blockIdx.x == 0) counters[0] = 0;
    }
#endif
    block::barrier();
  }

  unsigned* counters;
  unsigned blocks;
};

// A block in parts that work on their own, each of 2^log_threads threads, whole warps: fewer blocks
// at a barrier than a multiprocessor needs for its work. At most 8 parts.
struct BlockPart {
  __device__ __forceinline__ explicit BlockPart(int log_threads)
      : index(static_cast<int>(threadIdx.x >> log_threads)),
        thread(static_cast<int>(threadIdx.x) - (index << log_threads)),
        threads(1 << log_threads),
        number(static_cast<std::uint32_t>(index) * gridDim.x + blockIdx.x),
        count((blockDim.x >> log_threads) * gridDim.x) {}

  // All threads of the part.
  __device__ __forceinline__ void barrier() const { barrier_of(threads); }
  // The `group` threads, a power of two and at least 64 or within a warp, of which this is one.
  // Groups of different sizes, or at different phases, may be at such barriers at once, so each
  // group has a number of its own: 1 to 8 have 64 threads, 9 to 12 128, 13 and 14 256, 15 all 512.
  __device__ __forceinline__ void barrier_of(int group) const {
    if (group <= warp::kSize) return warp::barrier();
#ifdef XCORR_EMULATE
    emulation::group_barrier(group, emulation::Site::current());
#else
    const int number = 17 - 1024 / group + static_cast<int>(threadIdx.x) / group;
    asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(group) : "memory");
#endif
  }

  int index, thread, threads;   // in the block; in the part
  std::uint32_t number, count;  // of all parts of the grid; neighbours are in different blocks
};

// Four numbers that one block writes and another waits for: no arithmetic makes the pattern of an
// element that is missing (a NaN made by an operation has other bits). Each of the four is looked
// at, so nothing depends on their order or on 16 bytes being one access.
struct alignas(16) Element {
  float x, y, z, w;
};

__device__ __forceinline__ bool is_missing([[maybe_unused]] const Element& e) {
#ifdef XCORR_EMULATE
  return false;  // blocks run one after the other
#else
  constexpr unsigned kMissing = 0xffffffffu;
  return __float_as_uint(e.x) == kMissing || __float_as_uint(e.y) == kMissing ||
         __float_as_uint(e.z) == kMissing || __float_as_uint(e.w) == kMissing;
#endif
}
__device__ __forceinline__ void make_missing(Element* to) {
  auto* const words = reinterpret_cast<std::uint64_t*>(to);
  words[0] = words[1] = ~std::uint64_t{0};
}
// Loads and stores past the first-level cache.
__device__ __forceinline__ Element load_shared(const Element* from) {
#ifdef XCORR_EMULATE
  return *from;
#else
  Element e;
  asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(e.x), "=f"(e.y), "=f"(e.z), "=f"(e.w)
               : "l"(from)
               : "memory");
  return e;
#endif
}
__device__ __forceinline__ void store_shared(Element* to, const Element& e) {
#ifdef XCORR_EMULATE
  *to = e;
#else
  asm volatile("st.relaxed.gpu.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(e.x), "f"(e.y),
               "f"(e.z), "f"(e.w)
               : "memory");
#endif
}

// f() until what it has loaded is there: f says whether something is missing.
template <bool kFlow, typename F>
__device__ __forceinline__ void until_there(F f) {
  if constexpr (kFlow) {
    while (f()) {
    }
  } else {
    f();
  }
}
template <bool kFlow>
__device__ __forceinline__ Element load_element(const Element* from) {
  if constexpr (kFlow) return load_shared(from);
  return *from;
}
template <bool kFlow>
__device__ __forceinline__ void store_element(Element* to, const Element& e) {
  if constexpr (kFlow) {
    store_shared(to, e);
  } else {
    *to = e;
  }
}

static __global__ void make_all_missing(Element* to, std::uint32_t count) {
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += gridDim.x * blockDim.x) {
    make_missing(to + i);
  }
}

}  // namespace xcorr
