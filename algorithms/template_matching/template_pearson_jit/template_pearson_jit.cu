// template_pearson_tiled, compiled at run time for the sizes of the problem, as in the
// sliding-window paper (Problem-Specific Kernel Compilation): the sizes of template, frame, window,
// tiles (of up to four shapes) and areas of shifts are constants (tile_sums.hpp). Only the kernels
// that sum tiles are compiled; the others are those of template_pearson_tiled.
//
// The first plan of a problem compiles, which takes about half a second, and stores the machine
// code on disk (kernel_cache.hpp). Later plans, also of other processes, load it. Rows have both
// times, compile_us and load_us, and the registers of the kernel of numerators.
//
// Parameters: those of template_pearson_tiled, with fewer values, since each point is compiled.
// Limits: those of template_pearson_tiled; CUDA 12.8 and NVRTC. XCORR_CACHE_DIR names the folder of
// the cache.
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "algorithms/template_matching/template_pearson_jit/kernel_cache.hpp"
#include "algorithms/template_matching/template_pearson_jit/run_time_compiler.hpp"
#include "algorithms/template_matching/template_pearson_jit/sizes.hpp"
#include "harness/compilation.hpp"
#include "harness/variant.hpp"

namespace xcorr::template_matching {
namespace {

#if CUDART_VERSION >= 12080

// The kernels of a program, loaded on the current device.
class RunTimeKernels {
 public:
  using Kernel = void (*)(RunTimeArguments);

  RunTimeKernels(const Problem& q, const PearsonShape& s) {
    using Clock = std::chrono::steady_clock;
    const auto us_since = [](Clock::time_point begin) {
      return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
    };
    const RunTimeCompiler& compiler = RunTimeCompiler::instance();
    const int capability = 10 * compute_capability_major() +
                           device_attribute(cudaDevAttrComputeCapabilityMinor, "capability");
    const std::string program = run_time_program(q, s);
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
    for (std::size_t i = 0; i < kRunTimeKernels.size(); ++i) {
      cudaKernel_t kernel{};
      check_cuda(cudaLibraryGetKernel(&kernel, library_.get(), kRunTimeKernels[i]),
                 kRunTimeKernels[i]);
      kernels_[i] = reinterpret_cast<Kernel>(kernel);
    }
    made_.load_us = us_since(begin);
    cudaFuncAttributes attributes{};
    check_cuda(cudaFuncGetAttributes(&attributes,
                                     reinterpret_cast<const void*>(kernels_[kRunTimeNumerators])),
               "registers");
    made_.registers = attributes.numRegs;
  }
  Kernel of(RunTimePass pass) const { return kernels_[pass]; }
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
  std::array<Kernel, kRunTimeKernels.size()> kernels_{};
  Compilation made_;
};

// Launches the kernels that were compiled for the problem.
class RunTimeSums {
 public:
  RunTimeSums(const PlanRequest& request, const PearsonMemory& memory)
      : kernels_(request.problem, pearson_shape(request)) {
    const Problem& q = request.problem;
    own_.rights_of_left = static_cast<int>(q.pairs() / q.lefts);
    own_.rights_back = static_cast<int>(device::rights_back(q));
    own_.partial = memory.partial;
    own_.means = is_normalised(q.fields.score.kind) ? memory.means : nullptr;
    static_assert(sizeof(RunTimeScale) == sizeof(FrameScale));
    own_.scales = reinterpret_cast<const RunTimeScale*>(memory.scales);
  }
  Compilation made() const { return kernels_.made(); }

  template <Pass kPass>
  void launch(DependentLaunches& launches, const PearsonArguments& a, dim3 grid, void* stream) {
    constexpr RunTimePass kOwn = kPass == Pass::averages       ? kRunTimeAverages
                                 : kPass == Pass::denominators ? kRunTimeDenominators
                                                               : kRunTimeNumerators;
    own_.units = a.units;
    own_.right = a.right;
    own_.count = kPass == Pass::numerators ? a.q.pairs : a.q.rights;
    launches.run(kernels_.of(kOwn), grid, dim3(pearson_threads(a.shape)),
                 run_time_shared_bytes(a.shape), stream, own_);
  }

 private:
  RunTimeKernels kernels_;
  RunTimeArguments own_{};
};

class PearsonJitPlan final : public PearsonPlan<false, RunTimeSums>, public CompiledAtRunTime {
 public:
  using PearsonPlan::PearsonPlan;
  Compilation compilation() const override { return sums().made(); }
};

Support supports(const PlanRequest& request) {
  if (const Support is = pearson_supports(request); !is) return is;
  const Problem& q = request.problem;
  if (q.right.size() > std::numeric_limits<int>::max() / 2)
    return no("frames beyond 2^30 elements");
  if (const std::string& problem = RunTimeCompiler::instance().problem(); !problem.empty()) {
    return no(problem);
  }
  return yes();
}
std::unique_ptr<Plan> plan_of(const PlanRequest& request) {
  return std::make_unique<PearsonJitPlan>(request);
}

#else

Support supports(const PlanRequest&) {
  return no("kernels compiled at run time need CUDA 12.8; build with that or a newer one");
}
std::unique_ptr<Plan> plan_of(const PlanRequest&) { return nullptr; }

#endif

XCORR_VARIANT({
    .summary = "template_pearson_tiled, compiled at run time for the sizes of the problem",
    .parent = "template_pearson_tiled",
    .source = "paper of the sliding window, Problem-Specific Kernel Compilation",
    .backend = Backend::cuda,
    .axes = {{"template_tile", {"4x4", "8x4", "8x8", "16x2", "16x4", "16x8", "16x10", "16x16"}},
             {"shifts_per_block", {"128", "512"}}},
    .scores = {ScoreKind::product, ScoreKind::zncc},
    .results = {ResultKind::surface, ResultKind::peak},
    .emulated = false,
    .supports = supports,
    .workspace_bytes = pearson_workspace_bytes,
    .plan = plan_of,
});

}  // namespace
}  // namespace xcorr::template_matching
