// A barrier of all blocks of a kernel, which the device must hold at once: the caller launches no
// more than resident_blocks() says. Two counters in global memory, zero before the first launch,
// serve two barriers of every launch: each is set back to zero when nobody can be waiting for it.
#pragma once

#include "algorithms/device/cuda.hpp"

namespace xcorr {

// Numbers of 32 bits from one counter to the next: they lie in different sectors of the L2 cache.
inline constexpr int kCounterPitch = 64;
inline constexpr std::size_t kCounterBytes = 2 * kCounterPitch * sizeof(unsigned);

// arrive(0), wait(0), arrive(1), wait(1), each by all threads of all blocks.
struct GridBarrier {
  unsigned* counters;
  unsigned blocks;

  // What the block has written is seen by every block after its wait().
  __device__ __forceinline__ void arrive([[maybe_unused]] int number) const {
    block::barrier();
#ifndef XCORR_EMULATE
    if (threadIdx.x != 0) return;
    unsigned* const counter = counters + number * kCounterPitch;
    // The second counter: every block that waited for it has ended with the launch before.
    if (number == 0 && blockIdx.x == 0) counters[kCounterPitch] = 0;
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
#endif
  }
  __device__ __forceinline__ void wait([[maybe_unused]] int number) const {
#ifndef XCORR_EMULATE
    if (threadIdx.x == 0) {
      unsigned* const counter = counters + number * kCounterPitch;
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
};

// A block in parts that work on their own, each of `threads` threads, whole warps: fewer blocks at
// the barrier above than a multiprocessor needs for its work. At most 15 parts.
struct BlockPart {
  int thread, threads;       // of the part
  std::uint32_t number, count;  // of this part, of all parts of the grid: neighbours in different blocks

  __device__ __forceinline__ static BlockPart of(int threads) {
    const int part = static_cast<int>(threadIdx.x) / threads;
    const std::uint32_t blocks = gridDim.x;
    return {static_cast<int>(threadIdx.x) - part * threads, threads,
            static_cast<std::uint32_t>(part) * blocks + blockIdx.x,
            blockDim.x / static_cast<std::uint32_t>(threads) * blocks};
  }
  __device__ __forceinline__ int index() const {
    return static_cast<int>(threadIdx.x) / threads;
  }
  // All threads of the part. Under the emulation a block is one part.
  __device__ __forceinline__ void barrier() const {
#ifdef XCORR_EMULATE
    block::barrier();
#else
    asm volatile("bar.sync %0, %1;" ::"r"(index() + 1), "r"(threads) : "memory");
#endif
  }
};

}  // namespace xcorr
