// template_pearson_jit as the sliding-window paper describes its kernels (Problem-Specific Kernel
// Compilation, Shift Area Tiling, Current Performance). A step from template_pearson_jit:
//
//   - The loops over the elements of a tile are unrolled as a whole, in a separate copy for each of
//     up to four shapes of tiles. template_pearson_jit leaves that to the compiler.
//   - The reductions are compiled for the problem too, and their loops over tiles are unrolled
//     (add_tiles.hpp). A separate element-wise kernel divides (fractions.hpp).
//   - Any even size from 4x4 to 16x16 is a main tile, and 16x2, the paper's best for one patient.
//   - launches=per_192_shifts has the paper's several kernel calls: a launch has the shifts of one
//     area, at most 192, one thread per shift.
//
// Differences from the paper that remain:
//
//   - The paper tries every size of a tile, odd ones too. A grid of 169 sizes would be compiled for
//     hours.
//   - The loop over tiles is unrolled as a whole up to 256 tiles, which the paper's best tiles have
//     at most. Beyond that it is unrolled in groups of 256.
//   - The paper does not say how shifts are divided among launches, nor whether reductions are
//     launched as often. Here a launch has as many whole rows of the window as fit, and both
//     kernels of a pass are launched for each area.
//   - Averages are summed in float64, all passes read the frame less a pivot, and the template's
//     part is computed in every call, as in template_pearson_tiled.
//   - Where values lie in shared memory is a choice of this project: the paper does not say it.
//     Multiplications of 24 bits, which the paper chooses on old GPUs, are left out.
//
// Parameters: template_tile, rows x columns of a main tile. launches: one for all shifts, where a
// block has at most shifts_per_block shifts as in template_pearson_jit; or one for each 192 shifts.
// A smaller tile gives more blocks and more sums to add up. Several launches are the paper's way, not
// an advantage: each of them waits for the one before it.
//
// Compiling takes about three seconds for a point (README.md); kernel_cache.hpp keeps the code.
// Limits: those of template_pearson_jit, but no product, since the paper has scores alone; 1024
// launches in each pass.
#include <memory>

#include "algorithms/template_matching/run_time/run_time_plan.hpp"
#include "algorithms/template_matching/template_pearson_jit_unrolled/passes.hpp"
#include "harness/variant.hpp"

namespace xcorr::template_matching {
namespace {

#if CUDART_VERSION >= 12080

struct UnrolledKernels : RunTimeKernels {
  explicit UnrolledKernels(const PlanRequest& request)
      : RunTimeKernels(unrolled_program(request), unrolled_kernels(), kRunTimeNumerators) {}
};

std::unique_ptr<Plan> plan_of(const PlanRequest& request) {
  return std::make_unique<RunTimePlan<UnrolledPasses<UnrolledKernels>>>(request);
}

#else

std::unique_ptr<Plan> plan_of(const PlanRequest&) { return nullptr; }

#endif

Support supports(const PlanRequest& request) {
  if (const Support is = run_time_supports(request); !is) return is;
  return launches_fit(request);
}

XCORR_VARIANT({
    .summary = "template_pearson_jit with all loops unrolled, also those of the reductions",
    .parent = "template_pearson_jit",
    .source = "paper of the sliding window, Problem-Specific Kernel Compilation",
    .backend = Backend::cuda,
    .axes = {{"template_tile",
              {"4x4",   "4x6",   "4x8",   "4x10",  "4x12",  "4x14",  "4x16",  "6x4",   "6x6",
               "6x8",   "6x10",  "6x12",  "6x14",  "6x16",  "8x4",   "8x6",   "8x8",   "8x10",
               "8x12",  "8x14",  "8x16",  "10x4",  "10x6",  "10x8",  "10x10", "10x12", "10x14",
               "10x16", "12x4",  "12x6",  "12x8",  "12x10", "12x12", "12x14", "12x16", "14x4",
               "14x6",  "14x8",  "14x10", "14x12", "14x14", "14x16", "16x2",  "16x4",  "16x6",
               "16x8",  "16x10", "16x12", "16x14", "16x16"}},
             {"launches", {"one", "per_192_shifts"}},
             {"shifts_per_block", {"128", "192", "512"}}},
    .drops = {{"launches", "per_192_shifts", "shifts_per_block"}},
    .scores = {ScoreKind::zncc},
    .results = {ResultKind::surface, ResultKind::peak},
    .emulated = false,
    .supports = supports,
    .workspace_bytes = pearson_workspace_bytes,
    .plan = plan_of,
});

}  // namespace
}  // namespace xcorr::template_matching
