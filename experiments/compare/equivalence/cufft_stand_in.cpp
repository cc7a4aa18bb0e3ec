// Stands in for cuFFT and for NVRTC, which variants open by name: prints what transforms are made
// of, because that is part of what they do. The work area is a bound of any real one; compiled code
// is its source.
#include <cuda_runtime_api.h>
#include <cufft.h>
#include <cufftXt.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "stand_in.hpp"

namespace {

using namespace stand_in;

Numbers& transforms() {
  static auto* const all = new Numbers;
  return *all;
}

}  // namespace

extern "C" {

// cuFFT: a plan's arguments are part of what its transforms do. The work area is a bound of any
// real one.
cufftResult cufftCreate(cufftHandle* plan) {
  *plan = static_cast<int>(number(transforms().take<void*>()));
  return CUFFT_SUCCESS;
}
cufftResult cufftDestroy(cufftHandle plan) {
  transforms().give(reinterpret_cast<void*>(static_cast<std::uint64_t>(plan)));
  return CUFFT_SUCCESS;
}
cufftResult cufftGetVersion(int* version) { return *version = CUFFT_VERSION, CUFFT_SUCCESS; }
cufftResult cufftSetAutoAllocation(cufftHandle plan, int automatic) {
  std::printf("transform %d allocates:%d\n", plan, automatic);
  return CUFFT_SUCCESS;
}
cufftResult cufftMakePlanMany64(cufftHandle plan, int rank, long long* n, long long* in,
                                long long in_stride, long long in_next, long long* out,
                                long long out_stride, long long out_next, cufftType type,
                                long long batch, std::size_t* work) {
  std::printf("transform %d type %d batch %lld strides %lld,%lld,%lld,%lld", plan,
              static_cast<int>(type), batch, in_stride, in_next, out_stride, out_next);
  std::size_t elements = static_cast<std::size_t>(batch);
  for (int axis = 0; axis < rank; ++axis) {
    std::printf(" axis %lld,%lld,%lld", n[axis], in ? in[axis] : 0, out ? out[axis] : 0);
    elements *= static_cast<std::size_t>(n[axis]);
  }
  std::printf("\n");
  *work = elements * 16;
  return CUFFT_SUCCESS;
}
cufftResult cufftMakePlanMany(cufftHandle plan, int rank, int* n, int* in, int in_stride,
                              int in_next, int* out, int out_stride, int out_next, cufftType type,
                              int batch, std::size_t* work) {
  std::vector<long long> wide[3];
  const int* narrow[3] = {n, in, out};
  for (int i = 0; i < 3; ++i) {
    if (narrow[i]) wide[i].assign(narrow[i], narrow[i] + rank);
  }
  std::printf("32 bits: ");
  return cufftMakePlanMany64(plan, rank, wide[0].data(), in ? wide[1].data() : nullptr, in_stride,
                             in_next, out ? wide[2].data() : nullptr, out_stride, out_next, type,
                             batch, work);
}
cufftResult cufftPlanMany(cufftHandle* plan, int rank, int* n, int* in, int in_stride, int in_next,
                          int* out, int out_stride, int out_next, cufftType type, int batch) {
  std::size_t work = 0;
  cufftCreate(plan);
  return cufftMakePlanMany(*plan, rank, n, in, in_stride, in_next, out, out_stride, out_next, type,
                           batch, &work);
}
cufftResult cufftSetWorkArea(cufftHandle plan, void* area) {
  std::printf("transform %d works at %s\n", plan, place(area, 0).c_str());
  return CUFFT_SUCCESS;
}
cufftResult cufftSetStream(cufftHandle plan, cudaStream_t stream) {
  std::printf("transform %d stream %llu\n", plan, static_cast<unsigned long long>(number(stream)));
  return CUFFT_SUCCESS;
}
cufftResult cufftXtSetJITCallback(cufftHandle plan, const char* symbol, const void* code,
                                  std::size_t bytes, cufftXtCallbackType type, void** info) {
  std::printf("transform %d callback %s type %d %s info %s\n", plan, symbol, static_cast<int>(type),
              place(code, bytes).c_str(), info ? place(*info, 0).c_str() : "");
  return CUFFT_SUCCESS;
}
#define TRANSFORM(NAME, FROM, TO, ...)                                             \
  cufftResult NAME(cufftHandle plan, FROM* from, TO* to __VA_ARGS__) {             \
    std::printf(#NAME " %d %s -> %s direction %d\n", plan, place(from, 0).c_str(), \
                place(to, 0).c_str(), TRANSFORM_DIRECTION);                        \
    return CUFFT_SUCCESS;                                                          \
  }
#define TRANSFORM_DIRECTION 0
TRANSFORM(cufftExecR2C, cufftReal, cufftComplex)
TRANSFORM(cufftExecC2R, cufftComplex, cufftReal)
TRANSFORM(cufftExecD2Z, cufftDoubleReal, cufftDoubleComplex)
TRANSFORM(cufftExecZ2D, cufftDoubleComplex, cufftDoubleReal)
#undef TRANSFORM_DIRECTION
#define TRANSFORM_DIRECTION direction
TRANSFORM(cufftExecC2C, cufftComplex, cufftComplex, , int direction)
TRANSFORM(cufftExecZ2Z, cufftDoubleComplex, cufftDoubleComplex, , int direction)

// NVRTC, which variants open by name: the source is the code.
struct Program {
  std::string source;
};
int nvrtcCreateProgram(Program** program, const char* source, const char*, int, const char* const*,
                       const char* const*) {
  return *program = new Program{source}, 0;
}
int nvrtcCompileProgram(Program* program, int count, const char* const* options) {
  for (int i = 0; i < count; ++i) program->source += std::string("\n") + options[i];
  return 0;
}
int nvrtcGetLTOIRSize(Program* program, std::size_t* bytes) {
  return *bytes = program->source.size(), 0;
}
int nvrtcGetLTOIR(Program* program, char* code) {
  std::copy(program->source.begin(), program->source.end(), code);
  return 0;
}
int nvrtcVersion(int* major, int* minor) { return *major = 13, *minor = 0; }
// With the 0 at its end: who loads it is told no size.
int nvrtcGetCUBINSize(Program* program, std::size_t* bytes) {
  return *bytes = program->source.size() + 1, 0;
}
int nvrtcGetCUBIN(Program* program, char* code) {
  std::memcpy(code, program->source.c_str(), program->source.size() + 1);
  return 0;
}
int nvrtcGetProgramLogSize(Program*, std::size_t* bytes) { return *bytes = 0, 0; }
int nvrtcGetProgramLog(Program*, char*) { return 0; }
int nvrtcDestroyProgram(Program** program) {
  delete *program;
  return 0;
}

void* dlopen(const char* name, int flags) {
  static const auto real =
      reinterpret_cast<void* (*)(const char*, int)>(dlsym(RTLD_NEXT, "dlopen"));
  if (name && (std::strstr(name, "libnvrtc") || std::strstr(name, "libnvJitLink"))) {
    Dl_info self;
    dladdr(reinterpret_cast<void*>(&nvrtcGetLTOIR), &self);
    return real(self.dli_fname, flags);
  }
  return real(name, flags);
}

}  // extern "C"
