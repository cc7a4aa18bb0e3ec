// Kernels of known length for the tests of the clock on a GPU, launched in the ways of variants.
#pragma once

#include <cuda_runtime.h>

namespace xcorr {

// Each keeps the device busy for `nanoseconds` of its global timer.
// A dependent launch: it may start while the launch before it drains, and waits for its end.
void launch_dependent_spin(long long nanoseconds, cudaStream_t stream);
// A cooperative launch that fills every SM. Its blocks wait for each other.
void launch_cooperative_spin(long long nanoseconds, cudaStream_t stream);
// Keeps one thread busy for `cycles` of its SM.
void launch_cycles(long long cycles, cudaStream_t stream);

}  // namespace xcorr
