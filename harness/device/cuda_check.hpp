#pragma once

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#include "harness/problem/error.hpp"

namespace xcorr {

// Throws where a call of CUDA failed. The name differs from check_cuda of algorithms/device, which
// is in the same namespace.
inline void require_cuda(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  const std::string text = std::string(what) + ": " + cudaGetErrorString(code);
  if (code == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // not sticky: the next call is unharmed
    throw OutOfMemory(text);
  }
  throw std::runtime_error(text);
}

}  // namespace xcorr
