// Pearson's correlation of templates in frames, as the sliding-window paper makes it (Adaptable Sliding
// Window Operations with CUDA): a template is divided into tiles, a block has one tile
// and an area of shifts, and a thread one shift. Derived from overlap_wise, which has one thread for all
// of a shift.
//
// The passes are the paper's, in its order: averages of the frame's windows; denominators, from the
// frame less these averages; numerators. Each is a kernel that adds up the elements of every tile and
// one that adds up the tiles; the last one makes the fraction too. Averages and denominators are made
// once a frame, whatever the number of templates. The template's own part is made by a kernel before
// them; the paper makes it once a session.
//
// What is not the paper's: averages are added up in float64, and all passes see the frame less its mean,
// so that an offset costs no digits. Tiles are not compiled for a problem. Areas of shifts make one
// launch of what took the paper several.
//
// Forms: all four; shifts at which the frame (right) contains the template (left); scores product and
// zncc; results surface and peak; fp32.
// Parameters, run-time:
//   template_tile     rows x columns of a tile; those at the right and bottom end are smaller
//   shifts_per_block  most threads of a block: rows of up to 32 neighbouring shifts
// Limits: the sums of all tiles take at most 4 GiB.
#include "algorithms/template_matching/pearson_plan.hpp"
#include "harness/variant.hpp"

namespace xcorr::template_matching {
namespace {

XCORR_VARIANT({
    .summary = "Pearson's correlation in passes over tiles of the template, a thread a shift",
    .parent = "overlap_wise",
    .source = "paper of the sliding window, Tiled Template",
    .backend = Backend::cuda,
    .axes = {{"template_tile", {"4x4", "8x4", "8x8", "16x2", "16x4", "16x8", "16x10", "16x16"}},
             {"shifts_per_block", {"64", "128", "192", "256", "512", "1024"}}},
    .scores = {ScoreKind::product, ScoreKind::zncc},
    .results = {ResultKind::surface, ResultKind::peak},
    .supports = pearson_supports,
    .workspace_bytes =
        [](const PlanRequest& request) { return PearsonMemory(request, Workspace(nullptr)).bytes; },
    .plan = [](const PlanRequest& request) -> std::unique_ptr<Plan> {
      return std::make_unique<PearsonPlan<false>>(request);
    },
});

}  // namespace
}  // namespace xcorr::template_matching
