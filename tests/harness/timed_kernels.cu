#include <cooperative_groups.h>

#include "algorithms/device/launch.hpp"
#include "tests/harness/timed_kernels.hpp"

namespace xcorr {
namespace {

constexpr int kThreads = 256;

__device__ void spin_for(long long nanoseconds) {
  long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
}

__global__ void dependent_spin(long long nanoseconds) {
  wait_for_previous();
  spin_for(nanoseconds);
}

__global__ void cooperative_spin(long long nanoseconds) {
  cooperative_groups::this_grid().sync();
  if (threadIdx.x == 0) spin_for(nanoseconds);
  cooperative_groups::this_grid().sync();
}

__global__ void cycles_spin(long long cycles) {
  const long long start = clock64();
  while (clock64() - start < cycles) {
  }
}

}  // namespace

void launch_dependent_spin(long long nanoseconds, cudaStream_t stream) {
  launch({.dependent = compute_capability_major() >= 9}, dependent_spin, dim3(1), dim3(1), 0,
         stream, nanoseconds);
}

void launch_cooperative_spin(long long nanoseconds, cudaStream_t stream) {
  static const auto blocks = static_cast<unsigned>(
      resident_blocks(reinterpret_cast<const void*>(cooperative_spin), kThreads, 0));
  launch({.cooperative = true}, cooperative_spin, dim3(blocks), dim3(kThreads), 0, stream,
         nanoseconds);
}

void launch_cycles(long long cycles, cudaStream_t stream) {
  launch(cycles_spin, dim3(1), dim3(1), 0, stream, cycles);
}

}  // namespace xcorr
