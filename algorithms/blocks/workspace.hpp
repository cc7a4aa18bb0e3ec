// Divides a workspace into arrays. The same calls count its bytes for workspace_bytes() and assign
// the memory in plan(), so that the two cannot differ.
#pragma once

#include <cstddef>

#include "harness/variant.hpp"

namespace xcorr::device {

class Workspace {
 public:
  // With null memory the arrays are null, and only their bytes are counted.
  explicit Workspace(void* memory) : memory_(static_cast<char*>(memory)) {}

  // Returns the next `count` elements, at a multiple of 256 bytes.
  template <typename T>
  T* take(Index count) {
    const std::size_t first = (bytes_ + 255) / 256 * 256;
    bytes_ = first + static_cast<std::size_t>(count) * sizeof(T);
    return memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + first);
  }
  // The bytes up to the end of the last array.
  std::size_t bytes() const { return bytes_; }

 private:
  char* memory_;
  std::size_t bytes_ = 0;
};

}  // namespace xcorr::device
