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

// In host memory that the device reads and writes.
struct GateFlags {
  volatile unsigned opened = 0;  // the last gate that the host has opened
  volatile unsigned let_go = 0;  // the last gate whose time was over
};
// Holds the stream until flags->opened is at least `gate`, for at most `nanoseconds`.
void launch_hold(GateFlags* flags, unsigned gate, long long nanoseconds, cudaStream_t stream);

struct ClockStamp {
  unsigned long long cycles, nanoseconds;  // of the SM and of the device's global timer
};
// Launches as many blocks as there are SMs. Each writes the stamp of its SM.
void launch_stamps(ClockStamp* stamps, int sms, cudaStream_t stream);

// The maximal rates of the device, from which floors are computed (docs/glossary.md, ceiling): copy,
// fill, shuffles, and stores and loads of shared memory in bytes/s, FP32 FMA and matrix products in
// FP32 and TF32 in FLOP/s, an empty launch on a stream and by graph replay in us. Takes 12 GiB of device memory.
nlohmann::json measure_ceilings(Device& device);

}  // namespace xcorr
