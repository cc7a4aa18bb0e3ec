// Owners of CUDA objects, which release the object when they are destroyed. They move and do not
// copy.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <memory>
#include <type_traits>
#include <vector>

#include "harness/device/cuda_check.hpp"
#include "harness/problem/problem.hpp"

namespace xcorr {

template <auto release>
struct CudaRelease {
  template <typename T>
  void operator()(T* object) const {
    release(object);
  }
};
template <typename Handle, auto release>
using CudaOwned = std::unique_ptr<std::remove_pointer_t<Handle>, CudaRelease<release>>;

using CudaStream = CudaOwned<cudaStream_t, cudaStreamDestroy>;
using CudaEvent = CudaOwned<cudaEvent_t, cudaEventDestroy>;
using CudaGraph = CudaOwned<cudaGraph_t, cudaGraphDestroy>;
using CudaGraphExec = CudaOwned<cudaGraphExec_t, cudaGraphExecDestroy>;

inline std::vector<cudaGraphNode_t> nodes_of(cudaGraph_t graph) {
  std::size_t count = 0;
  require_cuda(cudaGraphGetNodes(graph, nullptr, &count), "graph");
  std::vector<cudaGraphNode_t> nodes(count);
  if (count > 0) require_cuda(cudaGraphGetNodes(graph, nodes.data(), &count), "graph");
  return nodes;
}

inline CudaEvent make_event() {
  cudaEvent_t event{};
  require_cuda(cudaEventCreate(&event), "event");
  return CudaEvent(event);
}

// Comes after both events.
inline double elapsed(const CudaEvent& start, const CudaEvent& end) {  // in seconds
  float milliseconds = 0;
  require_cuda(cudaEventElapsedTime(&milliseconds, start.get(), end.get()), "event");
  return milliseconds * 1e-3;
}

// `count` elements of device memory.
template <typename T>
class DeviceArray {
 public:
  DeviceArray() = default;
  explicit DeviceArray(Index count) : count_(count) {
    void* memory = nullptr;
    require_cuda(cudaMalloc(&memory, std::max<std::size_t>(bytes(), 1)), "memory of the harness");
    memory_.reset(static_cast<T*>(memory));
  }
  T* get() const { return memory_.get(); }
  bool empty() const { return !memory_; }
  std::size_t bytes() const { return static_cast<std::size_t>(count_) * sizeof(T); }

 private:
  CudaOwned<T*, cudaFree> memory_;
  Index count_ = 0;
};

// `count` elements of host memory that the device copies to at the full rate of the bus.
template <typename T>
class PinnedArray {
 public:
  PinnedArray() = default;
  explicit PinnedArray(Index count) : count_(count) {
    void* memory = nullptr;
    const std::size_t bytes = std::max<std::size_t>(static_cast<std::size_t>(count) * sizeof(T), 1);
    require_cuda(cudaMallocHost(&memory, bytes), "pinned memory of the harness");
    memory_.reset(static_cast<T*>(memory));
  }
  T* get() const { return memory_.get(); }
  Index count() const { return count_; }

 private:
  CudaOwned<T*, cudaFreeHost> memory_;
  Index count_ = 0;
};

}  // namespace xcorr
