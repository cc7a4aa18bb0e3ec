// A computation of several launches replayed as one CUDA graph: the launches are recorded once, and
// a call costs the host one launch. Worth some 15 % where kernels take a few microseconds each.
#pragma once

#include <cuda_runtime.h>

#include <utility>

#include "algorithms/device/cuda.hpp"
#include "harness/variant.hpp"

namespace xcorr::fft {

class Replay {
 public:
  Replay() = default;
  ~Replay() {
    if (executable_) cudaGraphExecDestroy(executable_);
    if (stream_) cudaStreamDestroy(stream_);
  }
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  // Makes the graph with pointers that are not known yet, so that calls only have to update it:
  // part of a plan's time. `issue(call)` launches into call.stream.
  template <typename Issue>
  void prepare(Issue&& issue) {
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream of a graph");
    record({}, issue);
  }

  // Whether a call is replayed: not one whose phases are marked or which is itself being recorded.
  bool replays(const Call& call) const {
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    check_cuda(cudaStreamIsCapturing(static_cast<cudaStream_t>(call.stream), &capture),
               "cudaStreamIsCapturing");
    return stream_ && !call.marks && capture == cudaStreamCaptureStatusNone;
  }

  // The call as recorded; with other pointers than last time it is recorded again.
  template <typename Issue>
  void run(const Call& call, Issue&& issue) {
    if (call.left != recorded_.left || call.right != recorded_.right || call.out != recorded_.out) {
      record(call, issue);
    }
    check_cuda(cudaGraphLaunch(executable_, static_cast<cudaStream_t>(call.stream)),
               "cudaGraphLaunch");
  }

 private:
  template <typename Issue>
  void record(Call call, Issue&& issue) {
    call.stream = stream_;
    call.marks = nullptr;
    cudaGraph_t graph = nullptr;
    check_cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capture");
    try {
      issue(std::as_const(call));
    } catch (...) {
      cudaStreamEndCapture(stream_, &graph);
      if (graph) cudaGraphDestroy(graph);
      throw;
    }
    check_cuda(cudaStreamEndCapture(stream_, &graph), "capture");
    cudaGraphExecUpdateResultInfo difference;
    if (executable_ && cudaGraphExecUpdate(executable_, graph, &difference) != cudaSuccess) {
      cudaGetLastError();  // another shape of graph: not an error, made anew
      cudaGraphExecDestroy(executable_);
      executable_ = nullptr;
    }
    const cudaError_t made =
        executable_ ? cudaSuccess : cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    check_cuda(made, "cudaGraphInstantiate");
    recorded_ = call;
  }

  cudaStream_t stream_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
  Call recorded_;
};

}  // namespace xcorr::fft
