// Stands in for the CUDA runtime on a machine without a GPU: executes nothing, describes
// a fixed H200, and prints what is enqueued, in order. record_calls is linked with it ahead of the
// real libraries.
//
// What only prepares (memory, streams, events, plans) is not printed; handles are the smallest free
// numbers and addresses begin anew when nothing is allocated, so that equal calls print equal text.
// Device memory does not exist: a host that touches it faults. A function that is not here reaches
// the real library, which fails without a GPU.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "stand_in.hpp"

namespace {

using namespace stand_in;

constexpr int kProcessors = 132;
constexpr std::size_t kSharedOfBlock = 232448, kSharedOfProcessor = 233472, kSharedReserved = 1024;
constexpr std::size_t kWithoutAsking = 48 * 1024;

struct Kernel {
  std::string name;
  int registers = 0;
  std::size_t shared = 0;               // static
  std::vector<std::size_t> parameters;  // bytes of each
  // What cudaFuncSetAttribute said: it decides how a launch runs and is printed with it.
  std::size_t allowed = kWithoutAsking;
  std::map<int, int> attributes;
};

struct State {
  std::map<const void*, Kernel> kernels;
  std::map<std::string, Kernel> table;  // what the compiler says of them, by mangled name
  std::map<const void*, std::string> variables;
  std::map<std::uint64_t, std::size_t> memory;
  std::uint64_t next = kFirstAddress;
  Numbers streams, events, graphs, executables, libraries;
  std::map<cudaLibrary_t, std::string> sources;  // of what was compiled while the program runs
  std::set<cudaStream_t> capturing;
  cudaError_t last = cudaSuccess;
  struct Configuration {
    dim3 grid, block;
    std::size_t shared;
    cudaStream_t stream;
  };
  std::vector<Configuration> pushed;
};

// Used before main by the registration of kernels and never destroyed.
State& state() {
  static State* const all = [] {
    auto* made = new State;
    const char* path = std::getenv("XCORR_KERNELS");
    std::ifstream file(path ? path : "");
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      Kernel kernel;
      words >> kernel.name >> kernel.registers >> kernel.shared;
      for (std::size_t bytes; words >> bytes;) kernel.parameters.push_back(bytes);
      made->table[kernel.name] = kernel;
    }
    return made;
  }();
  return *all;
}

[[noreturn]] void give_up(const std::string& cause) {
  std::fprintf(
      stderr,
      "error: cuda_stand_in: %s; teach it (experiments/compare/equivalence/cuda_stand_in.cpp)\n",
      cause.c_str());
  std::exit(3);
}

cudaError_t fails(cudaError_t status) { return state().last = status; }

Kernel& kernel_of(const void* function) {
  const auto found = state().kernels.find(function);
  if (found == state().kernels.end()) give_up("a kernel that was never registered");
  return found->second;
}

int resident_blocks(const Kernel& kernel, int threads, std::size_t dynamic) {
  const int warps = (threads + 31) / 32;
  const int registers_of_warp = std::max(1, (kernel.registers + 7) / 8) * 8 * 32;
  const int by_registers = 65536 / 4 / registers_of_warp * 4 / warps;
  const std::size_t shared = (kernel.shared + dynamic + kSharedReserved + 127) / 128 * 128;
  const int by_shared = static_cast<int>(kSharedOfProcessor / shared);
  return std::min({by_registers, by_shared, 64 / warps, 32});
}

cudaError_t launch(const void* function, dim3 grid, dim3 block, void** arguments,
                   std::size_t shared, cudaStream_t stream, const std::string& attributes) {
  const Kernel& kernel = kernel_of(function);
  if (shared > kernel.allowed) {
    std::printf("refused %s: shared %zu of %zu\n", kernel.name.c_str(), shared, kernel.allowed);
    return fails(cudaErrorInvalidValue);
  }
  std::printf("launch %s grid %u,%u,%u block %u,%u,%u shared %zu stream %llu%s",
              kernel.name.c_str(), grid.x, grid.y, grid.z, block.x, block.y, block.z, shared,
              static_cast<unsigned long long>(number(stream)), attributes.c_str());
  for (const auto& [attribute, value] : kernel.attributes)
    std::printf(" function:%d=%d", attribute, value);
  std::printf(" (");
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    std::printf(i ? " " : "");
    for (std::size_t byte = 0; byte < kernel.parameters[i]; ++byte) {
      std::printf("%02x", static_cast<unsigned char*>(arguments[i])[byte]);
    }
  }
  std::printf(")\n");
  return cudaSuccess;
}

std::string described(const cudaLaunchAttribute& attribute) {
  char text[96];
  switch (attribute.id) {
    case cudaLaunchAttributeCooperative:
      std::snprintf(text, sizeof text, " cooperative:%d", attribute.val.cooperative);
      break;
    case cudaLaunchAttributeProgrammaticStreamSerialization:
      std::snprintf(text, sizeof text, " overlapping:%d",
                    attribute.val.programmaticStreamSerializationAllowed);
      break;
    case cudaLaunchAttributeClusterDimension:
      std::snprintf(text, sizeof text, " cluster:%u,%u,%u", attribute.val.clusterDim.x,
                    attribute.val.clusterDim.y, attribute.val.clusterDim.z);
      break;
    default: {
      std::int64_t first = 0;
      std::memcpy(&first, &attribute.val, sizeof first);
      std::snprintf(text, sizeof text, " attribute%d:%lld", static_cast<int>(attribute.id),
                    static_cast<long long>(first));
    }
  }
  return text;
}

}  // namespace

extern "C" {

// Kernels.
void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
// Tables that kernels read (cuFFTDx has some), and one variable that a host reads: whether kernels were compiled for the
// device, which they were (algorithms/device/matrix.hpp). A host that wrote one would call what is not here.
void __cudaRegisterVar(void**, char* variable, char*, const char* name, int, std::size_t, int,
                       int) {
  state().variables[variable] = name;
}
cudaError_t cudaMemcpyFromSymbol(void* to, const void* variable, std::size_t bytes, std::size_t,
                                 cudaMemcpyKind) {
  const std::string& name = state().variables[variable];
  if (name.find("compiled") == std::string::npos || bytes != sizeof(int)) {
    give_up("reading the variable " + name);
  }
  const int is_compiled = 1;
  std::memcpy(to, &is_compiled, bytes);
  return cudaSuccess;
}
void __cudaRegisterFunction(void**, const char* function, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  const auto known = state().table.find(name);
  Kernel kernel;
  if (known != state().table.end()) kernel = known->second;
  kernel.name = name;
  state().kernels[function] = kernel;
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared,
                                     cudaStream_t stream) {
  state().pushed.push_back({grid, block, shared, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream) {
  const State::Configuration top = state().pushed.back();
  state().pushed.pop_back();
  *grid = top.grid;
  *block = top.block;
  *shared = top.shared;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               std::size_t shared, cudaStream_t stream) {
  return launch(reinterpret_cast<const void*>(kernel), grid, block, arguments, shared, stream, "");
}
cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                             std::size_t shared, cudaStream_t stream) {
  return launch(function, grid, block, arguments, shared, stream, "");
}
cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block,
                                        void** arguments, std::size_t shared, cudaStream_t stream) {
  return launch(function, grid, block, arguments, shared, stream, " cooperative:1");
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** arguments) {
  std::string attributes;
  for (unsigned i = 0; i < config->numAttrs; ++i) attributes += described(config->attrs[i]);
  return launch(function, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes,
                config->stream, attributes);
}
cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  Kernel& kernel = kernel_of(function);
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) {
    kernel.attributes[attribute] = value;
  } else if (kernel.shared + static_cast<std::size_t>(value) > kSharedOfBlock) {
    return fails(cudaErrorInvalidValue);
  } else {
    kernel.allowed = static_cast<std::size_t>(value);
  }
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  const Kernel& kernel = kernel_of(function);
  *attributes = {};
  attributes->numRegs = kernel.registers;
  attributes->sharedSizeBytes = kernel.shared;
  attributes->maxThreadsPerBlock = 1024;
  attributes->maxDynamicSharedSizeBytes = static_cast<int>(kernel.allowed);
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                          int threads, std::size_t shared) {
  *blocks = resident_blocks(kernel_of(function), threads, shared);
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks,
                                                                   const void* function,
                                                                   int threads, std::size_t shared,
                                                                   unsigned) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared);
}
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* function,
                                           const cudaLaunchConfig_t* config) {
  unsigned size = 1;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = config->attrs[i];
    if (attribute.id == cudaLaunchAttributeClusterDimension) {
      size = attribute.val.clusterDim.x * attribute.val.clusterDim.y * attribute.val.clusterDim.z;
    }
  }
  const int threads =
      static_cast<int>(config->blockDim.x * config->blockDim.y * config->blockDim.z);
  *clusters = kProcessors / static_cast<int>(size) *
              resident_blocks(kernel_of(function), threads, config->dynamicSmemBytes);
  return cudaSuccess;
}

#if CUDART_VERSION >= 12080
// Libraries of kernels that were compiled while the program runs. The code is its source (NVRTC stands in too), so a
// kernel is called what it is made of.
cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption*, void**,
                                unsigned, cudaLibraryOption*, void**, unsigned) {
  *library = state().libraries.take<cudaLibrary_t>();
  state().sources[*library] = static_cast<const char*>(code);
  return cudaSuccess;
}
cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  state().libraries.give(library);
  return cudaSuccess;
}
cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  if (kParametersAtRunTime.empty()) give_up("parameters of kernels that are compiled at run time");
  const std::string& source = state().sources[library];
  char called[128];
  std::snprintf(called, sizeof called, "%s:%016llx", name,
                static_cast<unsigned long long>(hash(source.data(), source.size())));
  Kernel made;
  made.name = called;
  made.registers = 64;  // as most have; what a plan makes of it is the same for equal sources
  made.parameters = kParametersAtRunTime;
  // An address for each, which is never that of a kernel of the program.
  static std::set<std::string> names;
  const void* const at = &*names.insert(called).first;
  state().kernels.emplace(at, made);
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(at));
  return cudaSuccess;
}
#endif

// The device.
cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaGetLastError() { return std::exchange(state().last, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return state().last; }
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return *free = *total = std::size_t{140} << 30, cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  static const std::map<int, int> known = {
      {cudaDevAttrComputeCapabilityMajor, 9},
      {cudaDevAttrComputeCapabilityMinor, 0},
      {cudaDevAttrMultiProcessorCount, kProcessors},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, static_cast<int>(kSharedOfBlock)},
      {cudaDevAttrMaxSharedMemoryPerBlock, static_cast<int>(kWithoutAsking)},
      {cudaDevAttrMaxSharedMemoryPerMultiprocessor, static_cast<int>(kSharedOfProcessor)},
      {cudaDevAttrReservedSharedMemoryPerBlock, static_cast<int>(kSharedReserved)},
      {cudaDevAttrMaxThreadsPerMultiProcessor, 2048},
      {cudaDevAttrMaxThreadsPerBlock, 1024},
      {cudaDevAttrMaxRegistersPerBlock, 65536},
      {cudaDevAttrWarpSize, 32},
      {cudaDevAttrL2CacheSize, 60 << 20},
      {cudaDevAttrCooperativeLaunch, 1},
      {cudaDevAttrComputePreemptionSupported, 1},
#if CUDART_VERSION >= 12030
      {cudaDevAttrMpsEnabled, 0},
#endif
  };
  const auto found = known.find(attribute);
  if (found == known.end()) give_up("device attribute " + std::to_string(attribute));
  return *value = found->second, cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp*, int) {
  give_up("cudaGetDeviceProperties in a variant");
}

// Memory.
cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  State& s = state();
  if (s.memory.empty()) s.next = kFirstAddress;
  *pointer = reinterpret_cast<void*>(s.next);
  s.memory[s.next] = bytes;
  s.next += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return cudaSuccess;
}
cudaError_t cudaFree(void* pointer) {
  state().memory.erase(number(pointer));
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  std::printf("copy %zu bytes %s -> %s stream %llu\n", bytes, place(from, bytes).c_str(),
              place(to, 0).c_str(), static_cast<unsigned long long>(number(stream)));
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                              std::size_t from_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind, cudaStream_t stream) {
  if (!on_device(to) || !on_device(from)) give_up("a copy of rows to or from the host");
  std::printf("copy %zu x %zu bytes %s/%zu -> %s/%zu stream %llu\n", height, width,
              place(from, 0).c_str(), from_pitch, place(to, 0).c_str(), to_pitch,
              static_cast<unsigned long long>(number(stream)));
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  std::printf("set %zu bytes %s to %d stream %llu\n", bytes, place(to, 0).c_str(), value,
              static_cast<unsigned long long>(number(stream)));
  return cudaSuccess;
}

// Streams, events, graphs.
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return *stream = state().streams.take<cudaStream_t>(), cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, 0); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return state().streams.give(stream), cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  std::printf("wait for stream %llu\n", static_cast<unsigned long long>(number(stream)));
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  std::printf("stream %llu waits for event %llu\n", static_cast<unsigned long long>(number(stream)),
              static_cast<unsigned long long>(number(event)));
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status =
      state().capturing.count(stream) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  state().capturing.insert(stream);
  std::printf("capture stream %llu {\n", static_cast<unsigned long long>(number(stream)));
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  state().capturing.erase(stream);
  *graph = state().graphs.take<cudaGraph_t>();
  std::printf("}\n");
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return state().graphs.give(graph), cudaSuccess; }
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t, unsigned long long) {
  return *executable = state().executables.take<cudaGraphExec_t>(), cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return state().executables.give(executable), cudaSuccess;
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t, cudaGraph_t, cudaGraphExecUpdateResultInfo*) {
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  std::printf("graph %llu stream %llu\n", static_cast<unsigned long long>(number(executable)),
              static_cast<unsigned long long>(number(stream)));
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return *event = state().events.take<cudaEvent_t>(), cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) { return state().events.give(event), cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  std::printf("event %llu stream %llu\n", static_cast<unsigned long long>(number(event)),
              static_cast<unsigned long long>(number(stream)));
  return cudaSuccess;
}

}  // extern "C"
