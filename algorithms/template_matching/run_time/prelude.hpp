// The functions that the kernels take from CUDA, for the build. kPreludeText has the same functions
// for NVRTC.
#pragma once

#include <cmath>

#include "algorithms/device/cuda.hpp"
#include "algorithms/device/launch.hpp"
#include "algorithms/template_matching/run_time/run_time_text.hpp"

namespace xcorr::template_matching {

__device__ __forceinline__ float* dynamic_floats() { return dynamic_shared<float>(); }
__device__ __forceinline__ int thread_number() { return static_cast<int>(threadIdx.x); }
__device__ __forceinline__ int block_number() { return static_cast<int>(blockIdx.x); }
__device__ __forceinline__ int second_block_number() { return static_cast<int>(blockIdx.y); }
__device__ __forceinline__ int second_blocks() { return static_cast<int>(gridDim.y); }
__device__ __forceinline__ void meet_in_block() { block::barrier(); }
__device__ __forceinline__ void wait_for_launch_before() { wait_for_previous(); }
__device__ __forceinline__ float multiply_add(float a, float b, float c) {
  return std::fma(a, b, c);
}

}  // namespace xcorr::template_matching
