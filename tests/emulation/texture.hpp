// The names of algorithms/device/texture.hpp for a host compiler; meanings are documented there. A
// texture is an object of the heap, so that the sanitizers find one that is used after its end or
// is never destroyed. The names are in vocabulary.hpp's namespace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "tests/emulation/emulation.hpp"

namespace xcorr::device {

struct TextureObject {
  const float* memory;
  std::int64_t rows, cols;
  std::size_t pitch;  // in elements
};
using Texture = const TextureObject*;

// Refuses what some GPU of CUDA 12 refuses.
inline Texture create_texture(float* memory, std::int64_t rows, std::int64_t cols,
                              std::size_t pitch_bytes) {
  constexpr std::int64_t kMost = 65000;
  if (rows < 1 || cols < 1 || rows > kMost || cols > kMost) {
    emulation::fail("texture: 1 to 65000 rows and columns are allowed");
  }
  if (reinterpret_cast<std::uintptr_t>(memory) % 512 != 0) {
    emulation::fail("texture: the memory does not start at a multiple of 512 bytes");
  }
  if (pitch_bytes % 32 != 0 || pitch_bytes < static_cast<std::size_t>(cols) * sizeof(float)) {
    emulation::fail("texture: the pitch is no multiple of 32 bytes, or less than a row");
  }
  return new TextureObject{memory, rows, cols, pitch_bytes / sizeof(float)};
}
inline void destroy_texture(Texture texture, int /*device*/) { delete texture; }

inline void copy_to_pitched(float* memory, std::size_t pitch_bytes, const float* matrix,
                            std::int64_t rows, std::int64_t cols, void* /*stream*/) {
  const std::size_t pitch = pitch_bytes / sizeof(float);
  for (std::int64_t y = 0; y < rows; ++y) {
    std::memcpy(memory + static_cast<std::size_t>(y) * pitch, matrix + y * cols,
                static_cast<std::size_t>(cols) * sizeof(float));
  }
}

inline float texel(Texture texture, int y, int x) {
  if (y < 0 || x < 0 || y >= texture->rows || x >= texture->cols) {
    emulation::fail(("texture: element (" + std::to_string(y) + ", " + std::to_string(x) + ") of " +
                     std::to_string(texture->rows) + " x " + std::to_string(texture->cols))
                        .c_str());
  }
  return texture
      ->memory[static_cast<std::size_t>(y) * texture->pitch + static_cast<std::size_t>(x)];
}

}  // namespace xcorr::device
