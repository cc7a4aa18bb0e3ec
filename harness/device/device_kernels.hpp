// Kernels of the harness that measure the device itself.
#pragma once

#include <cuda_runtime.h>

namespace xcorr {

// Keeps one thread busy for `nanoseconds` of the device's global timer.
void launch_spin(long long nanoseconds, cudaStream_t stream);
// Launches a kernel that does nothing.
void launch_empty(cudaStream_t stream);

}  // namespace xcorr
