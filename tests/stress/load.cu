#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/stress/load.hpp"

namespace xcorr::stress {
namespace {

void require(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}
void require(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(std::string(what) + ": cuBLAS error " + std::to_string(status));
}

constexpr unsigned kThreads = 256, kMeetings = 20;

// counters[0]: blocks that came to a meeting; counters[1]: blocks that went through all of them.
__global__ void meet(unsigned* counters) {
  extern __shared__ unsigned occupied[];
  occupied[threadIdx.x] = threadIdx.x;
  for (unsigned meeting = 1; meeting <= kMeetings; ++meeting) {
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      atomicAdd(counters, 1u);
      while (*static_cast<volatile unsigned*>(counters) < meeting * gridDim.x) {
      }
      __threadfence();
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(counters + 1, occupied[kThreads - 1] == kThreads - 1);
}

struct Stream {
  Stream() {
    int lowest = 0, highest = 0;
    require(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "priorities");
    require(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, highest), "stream");
  }
  ~Stream() { cudaStreamDestroy(stream); }
  Stream(const Stream&) = delete;
  // A load that sat in a blocking wait all the time would hold a lock of the driver that opening a
  // session needs: seen with two processes, no session was opened for 30 seconds.
  void wait(const char* what) const {
    cudaError_t status = cudaErrorNotReady;
    while ((status = cudaStreamQuery(stream)) == cudaErrorNotReady) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    require(status, what);
  }
  cudaStream_t stream = nullptr;
};

// Host memory that a copy does not wait for.
template <typename T>
struct PinnedArray {
  explicit PinnedArray(std::size_t count) {
    require(cudaMallocHost(reinterpret_cast<void**>(&data), count * sizeof(T)), "pinned memory");
  }
  ~PinnedArray() { cudaFreeHost(data); }
  PinnedArray(const PinnedArray&) = delete;
  T* data = nullptr;
};

template <typename T>
struct Array {
  explicit Array(std::size_t count) {
    require(cudaMalloc(reinterpret_cast<void**>(&data), count * sizeof(T)), "memory of the load");
  }
  ~Array() { cudaFree(data); }
  Array(const Array&) = delete;
  T* data = nullptr;
};

}  // namespace

std::int64_t cooperative_load(int device, const Beat& beat) {
  require(cudaSetDevice(device), "device");
  int processors = 0, most_shared = 0;
  require(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
          "multiprocessors");
  require(cudaDeviceGetAttribute(&most_shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
          "shared memory");
  require(cudaFuncSetAttribute(reinterpret_cast<const void*>(meet),
                               cudaFuncAttributeMaxDynamicSharedMemorySize, most_shared),
          "shared memory");
  const Stream own;
  const Array<unsigned> counters(2);
  const PinnedArray<unsigned> pinned(2);
  std::int64_t launches = 0;
  while (beat("cooperative kernel")) {
    // One block to a multiprocessor that fills it, two, and as many as there is room for.
    const std::size_t shares[] = {static_cast<std::size_t>(most_shared),
                                  static_cast<std::size_t>(most_shared) / 2 - 1024,
                                  kThreads * sizeof(unsigned)};
    const std::size_t shared = shares[launches % 3];
    int of_processor = 0;
    require(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_processor, meet, kThreads, shared),
            "occupancy");
    const unsigned blocks = static_cast<unsigned>(processors * of_processor);
    require(cudaMemsetAsync(counters.data, 0, 2 * sizeof(unsigned), own.stream), "clear");
    unsigned* argument = counters.data;
    void* arguments[] = {&argument};
    require(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(meet), dim3(blocks),
                                        dim3(kThreads), arguments, shared, own.stream),
            "cooperative launch");
    require(cudaMemcpyAsync(pinned.data, counters.data, 2 * sizeof(unsigned),
                            cudaMemcpyDeviceToHost, own.stream),
            "counters");
    own.wait("cooperative kernel");
    const unsigned* const seen = pinned.data;
    if (seen[0] != kMeetings * blocks || seen[1] != blocks) {
      throw std::runtime_error("cooperative kernel: " + std::to_string(seen[1]) + " of " +
                               std::to_string(blocks) + " blocks went through");
    }
    ++launches;
  }
  return launches;
}

std::int64_t product_load(int device, const Beat& beat) {
  constexpr int kSide = 2048, kBatch = 10;
  require(cudaSetDevice(device), "device");
  const Stream own;
  const std::vector<float> ones(std::size_t{kSide} * kSide, 1.0f);
  const Array<float> a(ones.size()), b(ones.size()), c(ones.size());
  for (float* data : {a.data, b.data}) {
    require(cudaMemcpy(data, ones.data(), ones.size() * sizeof(float), cudaMemcpyHostToDevice),
            "upload");
  }
  cublasHandle_t handle = nullptr;
  require(cublasCreate(&handle), "cuBLAS");
  require(cublasSetStream(handle, own.stream), "cuBLAS");
  const PinnedArray<float> row(kSide);
  std::int64_t products = 0;
  while (beat("matrix products")) {
    const float one = 1.0f, zero = 0.0f;
    for (int i = 0; i < kBatch; ++i) {
      require(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, kSide, kSide, kSide, &one, a.data,
                          kSide, b.data, kSide, &zero, c.data, kSide),
              "matrix product");
    }
    const std::size_t at = static_cast<std::size_t>(products % kSide) * kSide;
    require(cudaMemcpyAsync(row.data, c.data + at, kSide * sizeof(float), cudaMemcpyDeviceToHost,
                            own.stream),
            "download");
    own.wait("matrix products");
    for (int i = 0; i < kSide; ++i) {
      const float value = row.data[i];
      if (value != static_cast<float>(kSide)) {
        throw std::runtime_error("matrix product: a value is " + std::to_string(value) +
                                 ", expected " + std::to_string(kSide));
      }
    }
    products += kBatch;
  }
  cublasDestroy(handle);
  return products;
}

}  // namespace xcorr::stress
