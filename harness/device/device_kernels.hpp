// Kernels of the harness that measure the device itself.
#pragma once

#include <cuda_runtime.h>

#include <nlohmann/json_fwd.hpp>

#include "harness/device/device.hpp"

namespace xcorr {

// Keeps one thread busy for `nanoseconds` of the device's global timer.
void launch_spin(long long nanoseconds, cudaStream_t stream);
// Launches a kernel that does nothing.
void launch_empty(cudaStream_t stream);

// The maximal rates of the device, from which floors are computed (docs/glossary.md, ceiling): copy,
// fill, shuffles, and stores and loads of shared memory in bytes/s, FP32 FMA and matrix products in
// FP32 and TF32 in FLOP/s, an empty launch on a stream and by graph replay in us. Takes 12 GiB of device memory.
nlohmann::json measure_ceilings(Device& device);

}  // namespace xcorr
