// A CUDA runtime without a device: it notes what it is asked for, and answers what a test wants. It
// has what launch.hpp and texture.hpp of algorithms/device/ use, for a host compiler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#define __device__
#define __forceinline__ inline
#define CUDART_VERSION 12030

enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1 };
enum cudaDeviceAttr {
  cudaDevAttrComputeCapabilityMajor,
  cudaDevAttrMaxSharedMemoryPerBlockOptin,
  cudaDevAttrMpsEnabled,
  cudaDevAttrMultiProcessorCount,
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive };
enum cudaLaunchAttributeID {
  cudaLaunchAttributeCooperative,
  cudaLaunchAttributeProgrammaticStreamSerialization,
  cudaLaunchAttributeClusterDimension,
};
inline constexpr unsigned cudaEventDisableTiming = 2, cudaStreamNonBlocking = 1;
using cudaStream_t = struct FakeStream*;
using cudaEvent_t = struct FakeEvent*;
struct dim3 {
  dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  unsigned x, y, z;
};
struct cudaLaunchAttributeValue {
  int cooperative, programmaticStreamSerializationAllowed;
  dim3 clusterDim;
};
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  cudaLaunchAttributeValue val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned numAttrs;
};

enum cudaResourceType { cudaResourceTypeLinear, cudaResourceTypePitch2D };
enum cudaTextureAddressMode {
  cudaAddressModeWrap,
  cudaAddressModeClamp,
  cudaAddressModeBorder = 3
};
enum cudaTextureFilterMode { cudaFilterModePoint, cudaFilterModeLinear };
enum cudaTextureReadMode { cudaReadModeElementType, cudaReadModeNormalizedFloat };
enum cudaMemcpyKind { cudaMemcpyDeviceToDevice = 3 };
using cudaTextureObject_t = unsigned long long;
struct cudaChannelFormatDesc {
  std::size_t bytes;
};
struct cudaResourceDesc {
  cudaResourceType resType;
  struct {
    struct {
      void* devPtr;
      cudaChannelFormatDesc desc;
      std::size_t width, height, pitchInBytes;
    } pitch2D;
  } res;
};
struct cudaTextureDesc {
  cudaTextureAddressMode addressMode[3];
  cudaTextureFilterMode filterMode;
  cudaTextureReadMode readMode;
  int normalizedCoords;
};
struct cudaResourceViewDesc;
struct FakeTexture {
  cudaResourceDesc resource;
  cudaTextureDesc reading;
};
struct FakeCopy {
  void* to;
  std::size_t to_pitch;
  const void* from;
  std::size_t from_pitch, row_bytes, rows;
  cudaStream_t stream;
};

// The state of the fake and what it was asked for.
struct FakeCuda {
  int device = 0, capability = 9, mps = 0;
  bool knows_mps = true, capturing = false;
  cudaError_t last = cudaSuccess;
  // "ordinary", "dependent", "cooperative", "cluster 8", "limit 65536", "wait"
  std::vector<std::string> asked;
  std::map<std::pair<const void*, int>, std::size_t> limits;
  // As CUDA, each device numbers its textures from 1.
  std::map<std::pair<int, cudaTextureObject_t>, FakeTexture> textures;
  std::vector<FakeCopy> copies;

  static FakeCuda& state() {
    static FakeCuda fake;
    return fake;
  }
  cudaError_t answer(cudaError_t status) {
    if (status != cudaSuccess) last = status;
    return status;
  }
  // As CUDA: more shared memory than the kernel's limit on the device is refused.
  cudaError_t launched(const std::string& kind, const void* kernel, std::size_t shared) {
    const auto limit = limits.find({kernel, device});
    if (shared > (limit == limits.end() ? 48 * 1024 : limit->second)) {
      return answer(cudaErrorInvalidValue);
    }
    asked.push_back(kind);
    return cudaSuccess;
  }
};

inline const char* cudaGetErrorString(cudaError_t) { return "invalid argument"; }
inline const char* cudaGetErrorName(cudaError_t) { return "cudaErrorInvalidValue"; }
inline cudaError_t cudaGetLastError() { return std::exchange(FakeCuda::state().last, cudaSuccess); }
inline cudaError_t cudaGetDevice(int* device) {
  *device = FakeCuda::state().device;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) {
  FakeCuda& fake = FakeCuda::state();
  if (which == cudaDevAttrMpsEnabled && !fake.knows_mps) return fake.answer(cudaErrorInvalidValue);
  *value = which == cudaDevAttrMpsEnabled               ? fake.mps
           : which == cudaDevAttrComputeCapabilityMajor ? fake.capability
                                                        : 227 * 1024;
  return cudaSuccess;
}
// As CUDA: the limit becomes what is asked for, also less than it was.
inline cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute, int bytes) {
  FakeCuda& fake = FakeCuda::state();
  fake.limits[{kernel, fake.device}] = static_cast<std::size_t>(bytes);
  fake.asked.push_back("limit " + std::to_string(bytes));
  return cudaSuccess;
}
inline cudaError_t cudaLaunchKernel(const void* kernel, dim3, dim3, void**, std::size_t shared,
                                    cudaStream_t) {
  return FakeCuda::state().launched("ordinary", kernel, shared);
}
template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&...) {
  std::string kinds;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttribute& set = config->attrs[i];
    kinds += i > 0 ? " " : "";
    kinds += set.id == cudaLaunchAttributeCooperative ? "cooperative"
             : set.id == cudaLaunchAttributeClusterDimension
                 ? "cluster " + std::to_string(set.val.clusterDim.x)
                 : "dependent";
  }
  return FakeCuda::state().launched(kinds, reinterpret_cast<const void*>(kernel),
                                    config->dynamicSmemBytes);
}
inline cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status =
      FakeCuda::state().capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(1);
  return cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = reinterpret_cast<cudaStream_t>(2);
  return cudaSuccess;
}
inline cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int,
                                                                 std::size_t) {
  *blocks = 2;
  return cudaSuccess;
}
inline cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned = 0) {
  FakeCuda::state().asked.push_back("wait");
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void*, int, std::size_t, cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaSetDevice(int device) {
  FakeCuda::state().device = device;
  return cudaSuccess;
}
template <typename T>
cudaChannelFormatDesc cudaCreateChannelDesc() {
  return {sizeof(T)};
}
// As CUDA: memory that starts at no multiple of 512 bytes is refused.
inline cudaError_t cudaCreateTextureObject(cudaTextureObject_t* texture,
                                           const cudaResourceDesc* resource,
                                           const cudaTextureDesc* reading,
                                           const cudaResourceViewDesc*) {
  FakeCuda& fake = FakeCuda::state();
  if (reinterpret_cast<std::uintptr_t>(resource->res.pitch2D.devPtr) % 512 != 0) {
    return fake.answer(cudaErrorInvalidValue);
  }
  *texture = 1;
  while (fake.textures.count({fake.device, *texture}) != 0) ++*texture;
  fake.textures[{fake.device, *texture}] = {*resource, *reading};
  return cudaSuccess;
}
inline cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texture) {
  FakeCuda& fake = FakeCuda::state();
  return fake.answer(fake.textures.erase({fake.device, texture}) == 1 ? cudaSuccess
                                                                      : cudaErrorInvalidValue);
}
inline cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                                     std::size_t from_pitch, std::size_t row_bytes,
                                     std::size_t rows, cudaMemcpyKind, cudaStream_t stream) {
  FakeCuda::state().copies.push_back({to, to_pitch, from, from_pitch, row_bytes, rows, stream});
  return cudaSuccess;
}
template <typename T>
T tex2D(cudaTextureObject_t, float x, float y) {
  return 1000 * y + x;
}
