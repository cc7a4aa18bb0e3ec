// Textures: matrices of float32 that kernels read through the texture units. A part of the
// vocabulary. Under the emulation the first part of this header is in tests/emulation/texture.hpp.
//
//   OwnTexture texture(memory, rows, cols);      // in the plan
//   texture.load(matrix, stream);                // in each call: copies the matrix
//   launch(kernel, ..., texture.get());          // the kernel takes a Texture by value
//   const float value = texel(texture, y, x);    // in the kernel
//
// A texture is two-dimensional and lies in pitched linear memory, which can be a part of the
// workspace. CUDA also binds textures to arrays of a layout of its own. Only CUDA allocates those,
// and a variant owns no memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "algorithms/device/launch.hpp"

namespace xcorr::device {

// What every GPU of CUDA 12 takes for a texture in pitched memory; newer ones take more columns.
inline constexpr std::int64_t kTextureRows = 65000, kTextureCols = 65000;
// The memory of a texture starts at a multiple of these bytes, and so does each of its rows, as
// rows of cudaMallocPitch do. GPUs ask for it at the start, and for 32 bytes at rows.
inline constexpr std::size_t kTextureAlignment = 512;

#ifndef XCORR_EMULATE

using Texture = cudaTextureObject_t;

// Throws std::runtime_error with CUDA's reason where the GPU refuses the texture.
inline Texture create_texture(float* memory, std::int64_t rows, std::int64_t cols,
                              std::size_t pitch_bytes) {
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypePitch2D;
  resource.res.pitch2D.devPtr = memory;
  resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
  resource.res.pitch2D.width = static_cast<std::size_t>(cols);
  resource.res.pitch2D.height = static_cast<std::size_t>(rows);
  resource.res.pitch2D.pitchInBytes = pitch_bytes;
  cudaTextureDesc reading{};
  reading.addressMode[0] = reading.addressMode[1] = cudaAddressModeBorder;
  reading.filterMode = cudaFilterModePoint;
  reading.readMode = cudaReadModeElementType;
  reading.normalizedCoords = 0;
  Texture texture = 0;
  check_cuda(cudaCreateTextureObject(&texture, &resource, &reading, nullptr), "texture");
  return texture;
}
// `device` is the one that was current at the creation. The number of a texture belongs to its
// device: on another one it may be that of another plan's texture.
inline void destroy_texture(Texture texture, int device) {
  int current = device;
  cudaGetDevice(&current);
  if (current != device) cudaSetDevice(device);
  cudaDestroyTextureObject(texture);
  if (current != device) cudaSetDevice(current);
}

// Copies a dense matrix into rows at a pitch, in the order of the stream.
inline void copy_to_pitched(float* memory, std::size_t pitch_bytes, const float* matrix,
                            std::int64_t rows, std::int64_t cols, void* stream) {
  const std::size_t row_bytes = static_cast<std::size_t>(cols) * sizeof(float);
  check_cuda(cudaMemcpy2DAsync(memory, pitch_bytes, matrix, row_bytes, row_bytes,
                               static_cast<std::size_t>(rows), cudaMemcpyDeviceToDevice,
                               static_cast<cudaStream_t>(stream)),
             "copy to a texture");
}

// Element (y, x), which must exist: a GPU gives 0 for another one, the emulation a Fault. The
// hardware takes coordinates in float32, which holds all of a texture exactly.
__device__ __forceinline__ float texel(Texture texture, int y, int x) {
  return tex2D<float>(texture, static_cast<float>(x), static_cast<float>(y));
}

#endif  // XCORR_EMULATE

// A texture of a plan, in memory of the workspace.
class OwnTexture {
 public:
  // The bytes of memory for a texture. The memory may start anywhere.
  static std::size_t bytes(std::int64_t rows, std::int64_t cols) {
    return static_cast<std::size_t>(rows) * pitch_bytes(cols) + kTextureAlignment - 1;
  }

  OwnTexture(void* memory, std::int64_t rows, std::int64_t cols)
      : memory_(aligned(memory)),
        rows_(rows),
        cols_(cols),
        device_(current_device()),
        texture_(create_texture(memory_, rows, cols, pitch_bytes(cols))) {}
  ~OwnTexture() { destroy_texture(texture_, device_); }
  OwnTexture(const OwnTexture&) = delete;
  OwnTexture& operator=(const OwnTexture&) = delete;

  // Copies a dense rows x cols matrix into the texture, in the order of the stream. Kernels that
  // are launched later in this stream read it.
  void load(const float* matrix, void* stream) {
    copy_to_pitched(memory_, pitch_bytes(cols_), matrix, rows_, cols_, stream);
  }
  // Valid until the plan is destroyed.
  Texture get() const { return texture_; }

 private:
  static constexpr std::size_t rounded_up(std::size_t bytes) {
    return (bytes + kTextureAlignment - 1) / kTextureAlignment * kTextureAlignment;
  }
  static std::size_t pitch_bytes(std::int64_t cols) {
    return rounded_up(static_cast<std::size_t>(cols) * sizeof(float));
  }
  static float* aligned(void* memory) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    return reinterpret_cast<float*>(static_cast<char*>(memory) + (rounded_up(address) - address));
  }

  float* memory_;
  std::int64_t rows_, cols_;
  int device_;
  Texture texture_;
};

}  // namespace xcorr::device
