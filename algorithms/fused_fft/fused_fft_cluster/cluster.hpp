// How kernels of clusters (memory.hpp) are launched, and how many clusters a device holds.
#pragma once

#include "algorithms/device/memory.hpp"

namespace xcorr::fused_fft {
namespace cluster_launch {

inline bool supported() {
  int major = 0;
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, current_device()),
             "compute capability");
  return major >= 9;
}

// The configuration of a launch.
struct Configuration {
  Configuration(unsigned clusters, unsigned size, dim3 block, std::size_t bytes) {
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = size;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    launch.gridDim = dim3(clusters * size);
    launch.blockDim = block;
    launch.dynamicSmemBytes = bytes;
    launch.attrs = &attribute;
    launch.numAttrs = 1;
  }
  Configuration(const Configuration&) = delete;

  cudaLaunchAttribute attribute{};
  cudaLaunchConfig_t launch{};
};

// Clusters that the device holds at once; zero where its groups of multiprocessors are too small.
// Allows the kernel what it needs, which a plan does once and not every launch.
template <typename Kernel>
int resident(Kernel kernel, unsigned size, dim3 block, std::size_t bytes) {
  const auto* function = reinterpret_cast<const void*>(kernel);
  allow_shared(function, bytes);
  constexpr unsigned kPortable = 8;
  if (size > kPortable) {
    check_cuda(cudaFuncSetAttribute(function, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
               "cluster of more than 8 blocks");
  }
  const Configuration configuration(1, size, block, bytes);
  int clusters = 0;
  check_cuda(cudaOccupancyMaxActiveClusters(&clusters, kernel, &configuration.launch),
             "occupancy of clusters");
  return clusters;
}

// kernel in `clusters` clusters of `size` blocks of `block`, each with `bytes` of shared memory;
// resident() has been asked before.
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), unsigned clusters, unsigned size, dim3 block,
            std::size_t bytes, void* stream, Arguments&&... arguments) {
  Configuration configuration(clusters, size, block, bytes);
  configuration.launch.stream = static_cast<cudaStream_t>(stream);
  check_cuda(cudaLaunchKernelEx(&configuration.launch, kernel,
                                static_cast<Parameters>(std::forward<Arguments>(arguments))...),
             "cluster launch");
}
}  // namespace cluster_launch
}  // namespace xcorr::fused_fft
