// The vocabulary's barrier for those who take turns: some of its threads only say that they have come,
// and others wait. A word of its own beside block::barrier of cuda.hpp.
#pragma once

#include "algorithms/device/cuda.hpp"

#ifndef XCORR_EMULATE

namespace xcorr::device {
namespace block {

// At a barrier of `threads` threads, whole warps, those of arrive() go on, and those of wait() go on
// when all have come: they see what the others did before. Barriers of cuda.hpp have other numbers.
__device__ __forceinline__ void arrive(int number, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(number), "r"(threads) : "memory");
}
__device__ __forceinline__ void wait(int number, int threads) { barrier(number, threads); }

}  // namespace block
}  // namespace xcorr::device

#endif  // XCORR_EMULATE
