// What tile_sums.hpp takes from CUDA: by these functions in the program, by kPreludeText where NVRTC
// compiles it, which has none of the program's headers.
#pragma once

#include <cmath>

#include "algorithms/device/cuda.hpp"
#include "algorithms/device/launch.hpp"

// The text as code, and as a string of that name.
#define XCORR_RUN_TIME_TEXT(name, ...)              \
  __VA_ARGS__                                       \
  namespace xcorr::template_matching::run_time {    \
  inline constexpr const char* name = #__VA_ARGS__; \
  }
#define XCORR_DEVICE __device__ __forceinline__

namespace xcorr::template_matching::run_time {

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

inline constexpr const char* kPreludeText = R"(
#define XCORR_DEVICE __device__ __forceinline__
namespace xcorr::template_matching::run_time {
extern __shared__ __align__(16) float xcorr_dynamic[];
XCORR_DEVICE float* dynamic_floats() { return xcorr_dynamic; }
XCORR_DEVICE int thread_number() { return static_cast<int>(threadIdx.x); }
XCORR_DEVICE int block_number() { return static_cast<int>(blockIdx.x); }
XCORR_DEVICE int second_block_number() { return static_cast<int>(blockIdx.y); }
XCORR_DEVICE int second_blocks() { return static_cast<int>(gridDim.y); }
XCORR_DEVICE void meet_in_block() { __syncthreads(); }
XCORR_DEVICE void wait_for_launch_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
XCORR_DEVICE float multiply_add(float a, float b, float c) { return __fmaf_rn(a, b, c); }
}  // namespace xcorr::template_matching::run_time
)";

}  // namespace xcorr::template_matching::run_time
