// Turns CUDA's error codes into exceptions.
#pragma once

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#include "harness/problem/error.hpp"

namespace xcorr {

// The name differs from check_cuda of algorithms/device, since both are functions of namespace
// xcorr.
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
