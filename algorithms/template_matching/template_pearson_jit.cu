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
#include <memory>

#include "algorithms/template_matching/run_time/run_time_plan.hpp"
#include "algorithms/template_matching/run_time/sizes.hpp"
#include "harness/variant.hpp"

namespace xcorr::template_matching {
namespace {

#if CUDART_VERSION >= 12080

// Launches kernels that were compiled for the problem, and those of template_pearson_tiled that
// add up tiles.
class RunTimePasses {
 public:
  RunTimePasses(const PlanRequest& request, const PearsonMemory& memory)
      : kernels_(run_time_program(request.problem, pearson_shape(request)),
                 {kRunTimeKernels.begin(), kRunTimeKernels.end()}, kRunTimeNumerators),
        own_(run_time_arguments(request.problem, memory)) {}
  Compilation made() const { return kernels_.made(); }

  template <Pass kPass>
  void run(DependentLaunches& launches, const PearsonArguments& a, void* stream) {
    own_.units = a.units;
    own_.right = a.right;
    own_.count = items_of<kPass>(a.q);
    launches.run(kernels_.of<RunTimeArguments>(kRunTimePass<kPass>), sums_grid<kPass>(a),
                 dim3(pearson_threads(a.shape)), run_time_shared_bytes(a.shape), stream, own_);
    launch_add_tiles<kPass>(launches, a, stream);
  }

 private:
  RunTimeKernels kernels_;
  RunTimeArguments own_;
};

std::unique_ptr<Plan> plan_of(const PlanRequest& request) {
  return std::make_unique<RunTimePlan<RunTimePasses>>(request);
}

#else

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
    .supports = run_time_supports,
    .workspace_bytes = pearson_workspace_bytes,
    .plan = plan_of,
});

}  // namespace
}  // namespace xcorr::template_matching
