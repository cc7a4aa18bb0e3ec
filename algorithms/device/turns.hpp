// A named barrier of a block at which some warps only signal (arrive) and other warps wait (wait).
// block::barrier of cuda.hpp makes every thread wait.
#pragma once

#include "algorithms/device/cuda.hpp"

#ifndef XCORR_EMULATE

namespace xcorr::device {
namespace block {

// Barrier `number` counts `threads` threads, whole warps, of arrive() and wait() together. arrive()
// returns at once. wait() returns when all of them have arrived; the caller then sees what they
// wrote before. Barriers of cuda.hpp have other numbers.
__device__ __forceinline__ void arrive(int number, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(number), "r"(threads) : "memory");
}
__device__ __forceinline__ void wait(int number, int threads) { barrier(number, threads); }

}  // namespace block
}  // namespace xcorr::device

#endif  // XCORR_EMULATE
