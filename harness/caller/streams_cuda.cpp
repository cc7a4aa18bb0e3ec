#include <cuda_runtime.h>

#include <array>

#include "harness/caller/streams.hpp"
#include "harness/device/cuda_owned.hpp"

namespace xcorr {
namespace {

cudaStream_t of(void* stream) { return static_cast<cudaStream_t>(stream); }

// It does not wait for the default stream.
CudaStream make_stream() {
  cudaStream_t stream{};
  require_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  return CudaStream(stream);
}

CudaEvent make_order() {
  cudaEvent_t event{};
  require_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "event");
  return CudaEvent(event);
}

bool has_cooperative_kernel(cudaGraph_t graph) {
  for (cudaGraphNode_t node : nodes_of(graph)) {
    cudaGraphNodeType type{};
    require_cuda(cudaGraphNodeGetType(node, &type), "node of a graph");
    if (type != cudaGraphNodeTypeKernel) continue;
    cudaLaunchAttributeValue value{};
    require_cuda(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeCooperative, &value),
                 "node of a graph");
    if (value.cooperative != 0) return true;
  }
  return false;
}

class Cuda final : public CallerStreams {
 public:
  explicit Cuda(int index) : index_(index), order_(make_order()) {
    for (CudaStream& stream : own_) stream = make_stream();
  }

  int enter() override {
    int before = index_;
    require_cuda(cudaGetDevice(&before), "device");
    if (before != index_) require_cuda(cudaSetDevice(index_), "device");
    return before;
  }
  void leave(int before) override {
    if (before != index_) cudaSetDevice(before);
  }

  Enqueued record(const std::function<void(void*)>& compute) override {
    Enqueued found = recorded(compute);
    if (found.support) return found;
    // A library may allocate with its first call, which cannot be recorded.
    compute(own_[1].get());
    wait(own_[1].get());
    return recorded(compute);
  }

  bool captures(void* stream) override {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    require_cuda(cudaStreamIsCapturing(of(stream), &status), "stream");
    return status != cudaStreamCaptureStatusNone;
  }
  void* own(bool captured) override { return own_[captured ? 1 : 0].get(); }
  void follow(void* stream, void* before) override {
    require_cuda(cudaEventRecord(order_.get(), of(before)), "event");
    require_cuda(cudaStreamWaitEvent(of(stream), order_.get(), 0), "event");
  }
  void pack(const Packing& packing, const void* from, void* to, void* stream) override {
    pack_on_cuda(packing, from, to, stream);
  }

  void wait(void* stream) override { require_cuda(cudaStreamSynchronize(of(stream)), "device"); }
  void wait_for_all() override { require_cuda(cudaDeviceSynchronize(), "device"); }

 private:
  Enqueued recorded(const std::function<void(void*)>& compute) {
    const cudaStream_t stream = own_[1].get();
    // Threads of the caller may allocate meanwhile.
    require_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "recording");
    Enqueued found;
    try {
      compute(stream);
    } catch (const std::exception& error) {
      found.support = no(error.what());
    }
    cudaGraph_t nodes{};
    const cudaError_t ended = cudaStreamEndCapture(stream, &nodes);
    const CudaGraph graph(nodes);
    if (found.support && ended != cudaSuccess) found.support = no(cudaGetErrorString(ended));
    if (!found.support) {
      cudaGetLastError();  // clears the error, or the check of the next launch would report it
      return found;
    }
    found.cooperative = has_cooperative_kernel(graph.get());
    return found;
  }

  int index_;
  CudaEvent order_;
  std::array<CudaStream, 2> own_;  // of calls, and of recorded calls
};

}  // namespace

std::unique_ptr<CallerStreams> make_cuda_caller_streams(int index) {
  return std::make_unique<Cuda>(index);
}

}  // namespace xcorr
