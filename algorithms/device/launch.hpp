// One launch, with an attribute or without: the half of the vocabulary (cuda.hpp, which includes
// this page) that talks to the CUDA runtime. The emulation has its own.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "algorithms/device/launch_state.hpp"

namespace xcorr {

// Throws std::runtime_error "<what>: <CUDA's words> (<CUDA's name>)".
inline void check_cuda(cudaError_t status, const char* what) {
  if (status != cudaSuccess) {
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status) + " (" +
                             cudaGetErrorName(status) + ")");
  }
}

inline int current_device() {
  int device = 0;
  check_cuda(cudaGetDevice(&device), "device");
  return device;
}

// Allows the kernel at least `bytes` of dynamic shared memory on the current device; never takes
// away what it was allowed before. CUDA is asked once a size that is larger than all before: it
// costs a launch of a few microseconds a good part of its time.
inline void allow_shared(const void* kernel, std::size_t bytes) {
  static SharedLimits limits;  // of the process, as CUDA's own
  if (bytes <= kSharedWithoutAsking) return;
  limits.raise(kernel, current_device(), bytes, [&] {
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(bytes)),
               "dynamic shared memory");
  });
}

// kernel<<<grid, block, shared_bytes, stream>>>(args...); a launch that CUDA refuses throws.
// Dynamic shared memory beyond the default 48 KiB is asked for here.
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
            void* stream, Arguments&&... arguments) {
  allow_shared(reinterpret_cast<const void*>(kernel), shared_bytes);
#ifdef __CUDACC__
  // clang-format off
  kernel<<<grid, block, shared_bytes, static_cast<cudaStream_t>(stream)>>>(
      static_cast<Parameters>(std::forward<Arguments>(arguments))...);
  // clang-format on
#else  // a runtime that only notes what it is asked for: tests/cpp/fake_cuda
  (static_cast<void>(arguments), ...);
  cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block, nullptr, shared_bytes,
                   static_cast<cudaStream_t>(stream));
#endif
  check_cuda(cudaGetLastError(), "kernel launch");
}

// The same with an attribute.
template <typename... Parameters, typename... Arguments>
void launch_with(cudaLaunchAttribute attribute, void (*kernel)(Parameters...), dim3 grid,
                 dim3 block, std::size_t shared_bytes, void* stream, Arguments&&... arguments) {
  allow_shared(reinterpret_cast<const void*>(kernel), shared_bytes);
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = static_cast<cudaStream_t>(stream);
  config.attrs = &attribute;
  config.numAttrs = 1;
  check_cuda(cudaLaunchKernelEx(&config, kernel,
                                static_cast<Parameters>(std::forward<Arguments>(arguments))...),
             "kernel launch");
}

// Blocks of a kernel that the current device holds at once, one for each multiprocessor at least.
inline std::int64_t blocks_at_once(const void* kernel, int threads, std::size_t shared_bytes) {
  int processors = 0, blocks = 0;
  check_cuda(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, current_device()),
             "multiprocessors");
  allow_shared(kernel, shared_bytes);
  check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared_bytes),
             "occupancy");
  return static_cast<std::int64_t>(processors) * std::max(blocks, 1);
}

// Whether other processes may share the device at the same time (MPS). Where the toolkit or the
// driver cannot say, they may.
inline bool shared_with_processes([[maybe_unused]] int device) {
#if CUDART_VERSION >= 12030
  int shared = 0;
  const cudaError_t status = cudaDeviceGetAttribute(&shared, cudaDevAttrMpsEnabled, device);
  if (status == cudaErrorInvalidValue) {  // a driver that is older than the attribute
    cudaGetLastError();                   // or the next launch would be blamed for it
    return true;
  }
  check_cuda(status, "MPS");
  return shared != 0;
#else
  return true;
#endif
}

}  // namespace xcorr
