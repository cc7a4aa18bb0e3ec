// Cuts a workspace into arrays. The same calls count its bytes for workspace_bytes() and hand it out to plan(), so that
// the two cannot differ.
#pragma once

#include <cstddef>

#include "harness/variant.hpp"

namespace xcorr::device {

class Workspace {
 public:
  // Of null memory the arrays are null, and only their bytes count.
  explicit Workspace(void* memory) : memory_(static_cast<char*>(memory)) {}

  // The next `count` elements, from a multiple of 256 bytes on.
  template <typename T>
  T* take(Index count) {
    const std::size_t first = (bytes_ + 255) / 256 * 256;
    bytes_ = first + static_cast<std::size_t>(count) * sizeof(T);
    return memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + first);
  }
  // Up to the end of the last array.
  std::size_t bytes() const { return bytes_; }

 private:
  char* memory_;
  std::size_t bytes_ = 0;
};

}  // namespace xcorr::device
