// NVRTC, which compiles CUDA C++ at run time. It is loaded at run time, so that programs run
// without it; this header needs nothing of CUDA to compile.
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "algorithms/template_matching/run_time/library_build.hpp"

namespace xcorr::template_matching {

class RunTimeCompiler {
 public:
  // One per process; `problem()` says why it cannot be used.
  static const RunTimeCompiler& instance() {
    static const RunTimeCompiler compiler;
    return compiler;
  }
  const std::string& problem() const { return problem_; }
  // Such as "NVRTC 13.0 build 65be0d... -std=c++17". Another compiler or other options make other
  // code. Releases of 13.0 differ in the build.
  const std::string& version() const { return version_; }

  // Machine code of `source` for a compute capability, 90 for 9.0. The log has the number of
  // registers of each kernel.
  std::vector<char> compile(const std::string& source, int capability, std::string* log) const {
    if (!problem_.empty()) throw std::runtime_error(problem_);
    Program program = nullptr;
    if (create_(&program, source.c_str(), "xcorr.cu", 0, nullptr, nullptr) != 0) {
      throw std::runtime_error("nvrtcCreateProgram failed");
    }
    const std::string architecture = "-arch=sm_" + std::to_string(capability);
    std::vector<const char*> options = {architecture.c_str()};
    for (const char* const option : kOptions) options.push_back(option);
    const bool compiled = compile_(program, static_cast<int>(options.size()), options.data()) == 0;
    std::size_t size = 0;
    std::string messages;
    if (log_size_(program, &size) == 0 && size > 1) {
      messages.resize(size);
      log_(program, messages.data());
      messages.pop_back();  // the 0 at the end
    }
    std::vector<char> code;
    if (compiled && code_size_(program, &size) == 0) {
      code.resize(size);
      code_(program, code.data());
    }
    destroy_(&program);
    if (code.empty()) throw std::runtime_error("NVRTC: " + messages);
    if (log != nullptr) *log = messages;
    return code;
  }

 private:
  using Program = void*;
  static constexpr const char* kOptions[] = {"-std=c++17", "--ptxas-options=-v"};

  RunTimeCompiler() {
    void* const library = open();
    if (library == nullptr) {
      problem_ =
          "NVRTC cannot be loaded (no libnvrtc.so of CUDA 12 or 13); install it, a part of the "
          "CUDA Toolkit, or name its folder in LD_LIBRARY_PATH";
      return;
    }
    int (*asked)(int*, int*) = nullptr;
    find(library, "nvrtcVersion", asked);
    find(library, "nvrtcCreateProgram", create_);
    find(library, "nvrtcCompileProgram", compile_);
    find(library, "nvrtcGetCUBINSize", code_size_);
    find(library, "nvrtcGetCUBIN", code_);
    find(library, "nvrtcGetProgramLogSize", log_size_);
    find(library, "nvrtcGetProgramLog", log_);
    find(library, "nvrtcDestroyProgram", destroy_);
    int major = 0, minor = 0;
    if (problem_.empty() && asked(&major, &minor) == 0) {
      version_ = "NVRTC " + std::to_string(major) + "." + std::to_string(minor) + " " +
                 library_build(library);
      for (const char* const option : kOptions) version_ += std::string(" ") + option;
    }
  }

  // Opens the NVRTC that belongs to the CUDA runtime of this process, if it has one: by the
  // loader's search, then in the folder of the runtime.
  static void* open() {
    int version = 0;
    void* const asks_version = dlsym(RTLD_DEFAULT, "cudaRuntimeGetVersion");
    if (asks_version != nullptr) reinterpret_cast<int (*)(int*)>(asks_version)(&version);
    std::string folder;
    Dl_info runtime;
    if (asks_version != nullptr && dladdr(asks_version, &runtime) != 0) {
      folder = runtime.dli_fname;
      folder.resize(folder.rfind('/') + 1);
    }
    for (const int major : {13, 12}) {
      if (version > 0 && version / 1000 != major) continue;
      const std::string name = "libnvrtc.so." + std::to_string(major);
      if (void* const library = dlopen(name.c_str(), RTLD_NOW)) return library;
      if (folder.empty()) continue;
      if (void* const library = dlopen((folder + name).c_str(), RTLD_NOW)) return library;
    }
    return nullptr;
  }

  template <typename F>
  void find(void* library, const char* name, F& function) {
    void* const found = dlsym(library, name);
    if (found == nullptr) problem_ = std::string("NVRTC has no ") + name;
    function = reinterpret_cast<F>(found);
  }

  std::string problem_, version_;
  int (*create_)(Program*, const char*, const char*, int, const char* const*, const char* const*);
  int (*compile_)(Program, int, const char* const*);
  int (*code_size_)(Program, std::size_t*);
  int (*code_)(Program, char*);
  int (*log_size_)(Program, std::size_t*);
  int (*log_)(Program, char*);
  int (*destroy_)(Program*);
};

}  // namespace xcorr::template_matching
