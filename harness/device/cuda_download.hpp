// Copies device memory to the host at the rate of the bus. Copies to memory that is not pinned are several times slower.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>

#include "harness/device/cuda_owned.hpp"

namespace xcorr {

// All threads of the host empty one pinned buffer while the next part arrives in the other one.
class CudaDownload {
 public:
  explicit CudaDownload(cudaStream_t stream) : stream_(stream) {}

  // Returns when `count` elements have arrived. `from` may still be computed in the stream.
  template <typename T>
  void operator()(T* to, const T* from, Index count) {
    copy(reinterpret_cast<char*>(to), reinterpret_cast<const char*>(from),
         count * static_cast<Index>(sizeof(T)));
  }

 private:
  static constexpr Index kPart = Index{16} << 20;   // bytes
  static constexpr Index kPiece = Index{64} << 10;  // of a part, for a thread

  void copy(char* to, const char* from, Index bytes) {
    if (buffers_[0].count() == 0) {
      for (PinnedArray<char>& buffer : buffers_) buffer = PinnedArray<char>(kPart);
      for (CudaEvent& event : arrived_) event = make_event();
    }
    const auto part = [&](Index first) { return std::min(kPart, bytes - first); };
    const auto begin = [&](Index first, std::size_t turn) {
      require_cuda(
          cudaMemcpyAsync(buffers_[turn].get(), from + first, static_cast<std::size_t>(part(first)),
                          cudaMemcpyDeviceToHost, stream_),
          "copy to the host");
      require_cuda(cudaEventRecord(arrived_[turn].get(), stream_), "copy to the host");
    };
    if (bytes > 0) begin(0, 0);
    std::size_t turn = 0;
    for (Index first = 0; first < bytes; first += kPart, turn = 1 - turn) {
      if (first + kPart < bytes) begin(first + kPart, 1 - turn);
      require_cuda(cudaEventSynchronize(arrived_[turn].get()), "copy to the host");
      const Index size = part(first);
      const char* const buffer = buffers_[turn].get();
#pragma omp parallel for
      for (Index at = 0; at < size; at += kPiece) {
        std::memcpy(to + first + at, buffer + at,
                    static_cast<std::size_t>(std::min(kPiece, size - at)));
      }
    }
  }

  cudaStream_t stream_;
  std::array<PinnedArray<char>, 2> buffers_;
  std::array<CudaEvent, 2> arrived_;
};

}  // namespace xcorr
