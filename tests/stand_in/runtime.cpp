// What the host side of the CUDA variants asks of the runtime before a plan exists. The answers are those of
// an H100.
#include <cuda_runtime_api.h>

extern "C" {

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; }

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int /*device*/) {
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
      *value = 9;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = 0;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = 227 * 1024;
      return cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
      *value = 132;
      return cudaSuccess;
#if CUDART_VERSION >= 12030
    case cudaDevAttrMpsEnabled:
      *value = 0;
      return cudaSuccess;
#endif
    default:
      return cudaErrorInvalidValue;
  }
}

cudaError_t cudaFuncSetAttribute(const void* /*function*/, cudaFuncAttribute /*attribute*/,
                                 int /*value*/) {
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* /*function*/,
                                           const cudaLaunchConfig_t* /*config*/) {
  *clusters = 16;
  return cudaSuccess;
}

// A flag of the target that kernels were compiled for (algorithms/device/matrix.hpp).
cudaError_t cudaMemcpyFromSymbol(void* to, const void* /*symbol*/, size_t count, size_t /*offset*/,
                                 cudaMemcpyKind /*kind*/) {
  if (count != sizeof(int)) return cudaErrorInvalidValue;
  *static_cast<int*>(to) = 1;
  return cudaSuccess;
}
}
