// The kernels of a program that is compiled at run time: from the cache on disk, or from NVRTC.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "algorithms/device/cuda.hpp"
#include "algorithms/template_matching/run_time/kernel_cache.hpp"
#include "algorithms/template_matching/run_time/run_time_compiler.hpp"
#include "harness/compilation.hpp"

#if CUDART_VERSION >= 12080

namespace xcorr::template_matching {

// The kernels of a program, loaded on the current device.
class RunTimeKernels {
 public:
  // `names`: the kernels. `main`: the number of the one that does most of the work.
  RunTimeKernels(const std::string& program, const std::vector<const char*>& names,
                 std::size_t main) {
    using Clock = std::chrono::steady_clock;
    const auto us_since = [](Clock::time_point begin) {
      return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
    };
    const RunTimeCompiler& compiler = RunTimeCompiler::instance();
    const int capability = 10 * compute_capability_major() +
                           device_attribute(cudaDevAttrComputeCapabilityMinor, "capability");
    const std::string key = kernel_key(compiler.version(), capability, program);
    const KernelCache cache(KernelCache::usual_folder());
    Clock::time_point begin = Clock::now();
    say_once(cache.untrusted(key));
    std::optional<KernelCache::Entry> code = cache.find(key);
    // What was found is intact, but may be unusable after a change of the driver.
    if (!code || load(code->code) != cudaSuccess) {
      begin = Clock::now();
      code = {compiler.compile(program, capability, nullptr), 0};
      code->compile_us = us_since(begin);
      cache.keep(key, *code);
      begin = Clock::now();
      check_cuda(load(code->code), "kernels compiled at run time");
    }
    made_.compile_us = code->compile_us;
    for (const char* const name : names) {
      kernels_.emplace_back();
      check_cuda(cudaLibraryGetKernel(&kernels_.back(), library_.get(), name), name);
    }
    made_.load_us = us_since(begin);
    cudaFuncAttributes attributes{};
    check_cuda(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernels_.at(main))),
               "registers");
    made_.registers = attributes.numRegs;
  }

  template <typename Arguments>
  auto of(std::size_t number) const {
    return reinterpret_cast<void (*)(Arguments)>(kernels_.at(number));
  }
  Compilation made() const { return made_; }

 private:
  struct Unload {
    void operator()(cudaLibrary_t library) const { cudaLibraryUnload(library); }
  };

  cudaError_t load(const std::vector<char>& code) {
    cudaLibrary_t library{};
    const cudaError_t status =
        cudaLibraryLoadData(&library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
    if (status == cudaSuccess) library_.reset(library);
    cudaGetLastError();  // otherwise the next launch would report the error
    return status;
  }

  std::unique_ptr<std::remove_pointer_t<cudaLibrary_t>, Unload> library_;
  std::vector<cudaKernel_t> kernels_;
  Compilation made_;
};

}  // namespace xcorr::template_matching

#endif
