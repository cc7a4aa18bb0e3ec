#include "harness/device/cuda_check.hpp"
#include "harness/device/device_kernels.hpp"

namespace xcorr {
namespace {

__global__ void spin(long long nanoseconds) {
  long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
}

__global__ void empty() {}

}  // namespace

void launch_spin(long long nanoseconds, cudaStream_t stream) {
  spin<<<1, 1, 0, stream>>>(nanoseconds);
  require_cuda(cudaGetLastError(), "spin kernel");
}

void launch_empty(cudaStream_t stream) {
  empty<<<1, 1, 0, stream>>>();
  require_cuda(cudaGetLastError(), "empty kernel");
}

}  // namespace xcorr
