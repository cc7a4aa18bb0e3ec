// Copies from global to shared memory that run while the thread goes on (cp.async, compute
// capability 8.0 and up), with zeros for what lies outside a matrix, and the staging of panels with
// them. Below 8.0 and under the host emulation the same names are plain copies.
#pragma once

#include "algorithms/device/cuda.hpp"

#ifndef XCORR_EMULATE
#include <cuda_pipeline_primitives.h>
#endif

namespace xcorr::tiled {
namespace async_copy {

#ifdef XCORR_EMULATE

inline bool supported() { return true; }
template <int kFloats>
void copy(float* shared, const float* global, bool exists) {
  for (int i = 0; i < kFloats; ++i) shared[i] = exists ? global[i] : 0.0f;
}
inline void wait() {}
inline void commit() {}

#else

inline bool supported() {
  int device = 0, major = 0;
  check_cuda(cudaGetDevice(&device), "device");
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
             "compute capability");
  return major >= 8;
}

// kFloats (1 or 4, aligned) floats, or as many zeros. The sizes are constants: a size that is known
// at run time only would become a switch over all of them.
template <int kFloats>
__device__ __forceinline__ void copy(float* shared, const float* global, bool exists) {
  constexpr std::size_t kBytes = kFloats * sizeof(float);
  if (exists) {
    __pipeline_memcpy_async(shared, global, kBytes);
  } else {
    __pipeline_memcpy_async(shared, global, kBytes, kBytes);  // reads nothing
  }
}
// The copies of the thread since the last commit become a group; wait() is for all groups.
__device__ __forceinline__ void commit() { __pipeline_commit(); }
__device__ __forceinline__ void wait() { __pipeline_wait_prior(0); }

#endif

}  // namespace async_copy
}  // namespace xcorr::tiled
