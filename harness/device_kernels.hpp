// The harness's own kernels that are no reference: a spin of known length.
#pragma once

#include <cuda_runtime.h>

namespace xcorr {

// Keeps one thread busy for `nanoseconds` of the device's global timer.
void launch_spin(long long nanoseconds, cudaStream_t stream);
void launch_empty(cudaStream_t stream);

}  // namespace xcorr
