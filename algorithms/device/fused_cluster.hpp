// Thread-block clusters (compute capability 9.0) in a few names: a block's rank, the barrier, and
// the shared memory of the other blocks. Elsewhere they compile to nothing that may run; under the
// host emulation a cluster is one block whose z counts the ranks.
#pragma once

#include "algorithms/device/cuda.hpp"

namespace xcorr {
namespace cluster {

#ifdef XCORR_EMULATE
inline constexpr bool kAvailable = true;
inline int rank() { return static_cast<int>(threadIdx.z); }
inline unsigned number() { return blockIdx.x; }
inline void barrier() { block::barrier(); }
// Dynamic shared memory of this block, `bytes` of it.
template <typename T>
T* shared(std::size_t bytes) {
  return reinterpret_cast<T*>(dynamic_shared<char>() + threadIdx.z * bytes);
}
template <typename T>
T* peer(T* mine, int rank_of, std::size_t bytes) {
  const auto back = static_cast<std::ptrdiff_t>(bytes) * (rank_of - rank());
  return reinterpret_cast<T*>(reinterpret_cast<char*>(mine) + back);
}
inline bool supported() { return true; }
template <typename Kernel>
int resident(Kernel, unsigned, dim3, std::size_t) {
  return 3;
}
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), unsigned clusters, unsigned size, dim3 block,
            std::size_t bytes, void* stream, Arguments&&... arguments) {
  xcorr::launch(kernel, dim3(clusters), dim3(block.x, block.y, size), bytes * size, stream,
                std::forward<Arguments>(arguments)...);
}
#else

// Whether the code that is being compiled may use clusters.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
inline constexpr bool kAvailable = true;
#else
inline constexpr bool kAvailable = false;
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
__device__ __forceinline__ int rank() { return static_cast<int>(__clusterRelativeBlockRank()); }
__device__ __forceinline__ unsigned number() { return blockIdx.x / __clusterSizeInBlocks(); }
// All threads of the cluster; what they wrote to any shared memory of it is there.
__device__ __forceinline__ void barrier() {
  __cluster_barrier_arrive();
  __cluster_barrier_wait();
}
// Where another block has what this one has at `mine`.
template <typename T>
__device__ __forceinline__ T* peer(T* mine, int rank_of, std::size_t) {
  return static_cast<T*>(__cluster_map_shared_rank(mine, static_cast<unsigned>(rank_of)));
}
#else
__device__ __forceinline__ int rank() { return 0; }
__device__ __forceinline__ unsigned number() { return 0; }
__device__ __forceinline__ void barrier() {}
template <typename T>
__device__ __forceinline__ T* peer(T* mine, int, std::size_t) {
  return mine;
}
#endif
template <typename T>
__device__ __forceinline__ T* shared(std::size_t) {
  return dynamic_shared<T>();
}

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
#endif

}  // namespace cluster
}  // namespace xcorr
