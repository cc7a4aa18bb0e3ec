// How the blocks of one kernel wait for each other's results. The device must hold all blocks at
// once, which GridLaunches in launch.hpp ensures.
//
// One way is a barrier of the whole grid. In the other one the reader of an element of 16 bytes
// waits until the element no longer has the pattern that means "not yet written", and then stores
// the pattern again for the next launch. That saves the two trips to the L2 cache that a barrier
// takes after the data, and costs a store for each element. Each element has one reader.
#pragma once

#include <cstdint>

#include "algorithms/device/cuda.hpp"
#include "algorithms/device/memory.hpp"

namespace xcorr::fused_fft {

// Two counters in global memory, zero before the first launch, serve two barriers of every launch:
// arrive(0), wait(0), arrive(1), wait(1), each called by all threads of all blocks. A counter is
// reset to zero when no block can be waiting for it.
struct GridBarrier {
  // Distance of the two counters, in elements. It puts them into different sectors of the L2.
  static constexpr int kPitch = 64;
  static constexpr std::size_t kBytes = 2 * kPitch * sizeof(unsigned);

  // After its wait() every block sees what this block has written before arrive().
  __device__ __forceinline__ void arrive(int number) const {
    block::barrier();
    if (threadIdx.x != 0) return;
    // Resets the second counter: all blocks that waited for it ended with the previous launch.
    if (number == 0 && blockIdx.x == 0) counters[kPitch] = 0;
    add_release(counters + number * kPitch, 1);
  }
  __device__ __forceinline__ void wait(int number) const {
    if (threadIdx.x == 0) {
      while (load_acquire(counters + number * kPitch) < blocks) back_off<0>();
      // Resets the first counter: all blocks have left its wait(), since they have arrived at the
      // second.
      if (number == 1 && blockIdx.x == 0) counters[0] = 0;
    }
    block::barrier();
  }

  std::uint32_t* counters;
  unsigned blocks;
};

// A group has 2^log_threads threads of a block, a multiple of 32, and works independently. One
// large block with groups does the work of several small blocks, so fewer blocks wait at a barrier
// of the grid. A block has at most 8 groups.
struct BlockGroup {
  __device__ __forceinline__ explicit BlockGroup(int log_threads)
      : index(static_cast<int>(threadIdx.x >> log_threads)),
        thread(static_cast<int>(threadIdx.x) - (index << log_threads)),
        threads(1 << log_threads),
        number(static_cast<std::uint32_t>(index) * gridDim.x + blockIdx.x),
        count((blockDim.x >> log_threads) * gridDim.x) {}

  // Synchronises all threads of the group.
  __device__ __forceinline__ void barrier() const { barrier_of(threads); }
  // Synchronises the `size` threads, a power of two and at least 64 or within a warp, to which this
  // thread belongs. Threads may be at barriers of different sizes, or in different phases, at the
  // same time, so each barrier has its number: 1 to 8 have 64 threads, 9 to 12 128, 13 and 14 256,
  // and 15 all 512.
  __device__ __forceinline__ void barrier_of(int size) const {
    if (size <= warp::kSize) return warp::barrier();
    block::barrier(17 - 1024 / size + static_cast<int>(threadIdx.x) / size, size);
  }

  int index, thread, threads;   // in the block; in the group
  std::uint32_t number, count;  // in the grid; consecutive groups are in different blocks
};

// Four numbers that one block writes and another block waits for. An element is missing as long as
// any of the four has the bit pattern kMissing. No arithmetic produces this pattern: a NaN that an
// operation makes has other bits. All four are tested, so the 16 bytes need not be written in one
// access.
struct alignas(16) Element {
  float x, y, z, w;
};

__device__ __forceinline__ bool is_missing(const Element& e) {
  constexpr std::uint32_t kMissing = 0xffffffffu;
  return bits_of(e.x) == kMissing || bits_of(e.y) == kMissing || bits_of(e.z) == kMissing ||
         bits_of(e.w) == kMissing;
}
__device__ __forceinline__ void make_missing(Element* to) {
  auto* const words = reinterpret_cast<std::uint64_t*>(to);
  words[0] = words[1] = ~std::uint64_t{0};
}

// Calls f(), which loads elements, until it returns that none is missing.
template <bool kFlow, typename F>
__device__ __forceinline__ void until_there(F f) {
  if constexpr (kFlow) {
    while (f()) back_off<0>();
  } else {
    f();
  }
}
template <bool kFlow>
__device__ __forceinline__ Element load_element(const Element* from) {
  if constexpr (kFlow) return load_relaxed(from);
  return *from;
}
template <bool kFlow>
__device__ __forceinline__ void store_element(Element* to, const Element& e) {
  if constexpr (kFlow) {
    store_relaxed(to, e);
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

}  // namespace xcorr::fused_fft
