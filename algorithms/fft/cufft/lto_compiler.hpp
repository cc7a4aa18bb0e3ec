// Callbacks that cuFFT links into its kernels at run time (cufftXtSetJITCallback). NVRTC compiles
// CUDA C++ to LTO-IR, and cuFFT links it through nvJitLink while it plans. NVRTC is loaded at run
// time, so that the program also runs without it.
#pragma once

#include <cuda_runtime.h>
#include <cufft.h>
#include <dlfcn.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "harness/variant.hpp"

namespace xcorr::fft {

// CUDA 12.6 update 2.
constexpr int kFirstCufftWithLto = 11300;

class LtoCompiler {
 public:
  // One per process; `problem()` says why it cannot be used.
  static const LtoCompiler& instance() {
    static const LtoCompiler compiler;
    return compiler;
  }

  const std::string& problem() const { return problem_; }

  // Compiles `source` to LTO-IR for the current device. Define names in the text: macros would
  // affect NVRTC's headers.
  std::vector<char> compile(const std::string& source) const {
    if (!problem_.empty()) throw std::runtime_error(problem_);
    int device = 0, major = 0, minor = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    Program program = nullptr;
    if (create_(&program, source.c_str(), "callback.cu", 0, nullptr, nullptr) != 0) {
      throw std::runtime_error("nvrtcCreateProgram failed");
    }
    const std::string architecture = "-arch=compute_" + std::to_string(10 * major + minor);
    const char* options[] = {architecture.c_str(), "-std=c++17", "-dlto",
                             "--relocatable-device-code=true"};
    const bool ok = compile_(program, 4, options) == 0;
    std::size_t size = 0;
    std::vector<char> result;
    if (ok && ir_size_(program, &size) == 0) {
      result.resize(size);
      ir_(program, result.data());
    }
    std::string log;
    if (!ok && log_size_(program, &size) == 0) {
      log.resize(size);
      log_(program, log.data());
    }
    destroy_(&program);
    if (result.empty()) throw std::runtime_error("NVRTC: " + log);
    return result;
  }

 private:
  using Program = void*;

  LtoCompiler() {
    int version = 0;
    cufftGetVersion(&version);
    if (version < kFirstCufftWithLto) {
      problem_ = "callbacks compiled at run time need cuFFT " + std::to_string(kFirstCufftWithLto) +
                 " (CUDA 12.6 update 2), this is " + std::to_string(version);
      return;
    }
    const std::string major = std::to_string(CUDART_VERSION / 1000);
    void* nvrtc = open("libnvrtc.so." + major);
    // cuFFT opens nvJitLink itself. Opening it here gives a reason instead of a failing plan.
    if (!nvrtc || !open("libnvJitLink.so." + major)) {
      const char* cause = dlerror();
      problem_ = std::string(nvrtc ? "nvJitLink" : "NVRTC") + " cannot be loaded (" +
                 (cause ? cause : "not found") + ")";
      return;
    }
    create_ = symbol<decltype(create_)>(nvrtc, "nvrtcCreateProgram");
    compile_ = symbol<decltype(compile_)>(nvrtc, "nvrtcCompileProgram");
    ir_size_ = symbol<decltype(ir_size_)>(nvrtc, "nvrtcGetLTOIRSize");
    ir_ = symbol<decltype(ir_)>(nvrtc, "nvrtcGetLTOIR");
    log_size_ = symbol<decltype(log_size_)>(nvrtc, "nvrtcGetProgramLogSize");
    log_ = symbol<decltype(log_)>(nvrtc, "nvrtcGetProgramLog");
    destroy_ = symbol<decltype(destroy_)>(nvrtc, "nvrtcDestroyProgram");
  }

  // Searches as the loader does, then in the folder of the cuFFT that this process uses.
  static void* open(const std::string& name) {
    if (void* library = dlopen(name.c_str(), RTLD_NOW)) return library;
    Dl_info cufft;
    if (!dladdr(reinterpret_cast<void*>(&cufftGetVersion), &cufft)) return nullptr;
    const std::string path = cufft.dli_fname;
    const std::string folder = path.substr(0, path.rfind('/') + 1);
    return dlopen((folder + name).c_str(), RTLD_NOW);
  }

  template <typename F>
  F symbol(void* library, const char* name) {
    void* found = dlsym(library, name);
    if (!found) problem_ = std::string("NVRTC has no ") + name;
    return reinterpret_cast<F>(found);
  }

  std::string problem_;
  int (*create_)(Program*, const char*, const char*, int, const char* const*, const char* const*);
  int (*compile_)(Program, int, const char* const*);
  int (*ir_size_)(Program, std::size_t*);
  int (*ir_)(Program, char*);
  int (*log_size_)(Program, std::size_t*);
  int (*log_)(Program, char*);
  int (*destroy_)(Program*);
};

}  // namespace xcorr::fft
