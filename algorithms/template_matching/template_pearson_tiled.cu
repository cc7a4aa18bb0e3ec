// Pearson's correlation of templates in frames, as in the sliding-window paper (Adaptable Sliding
// Window Operations with CUDA): a template is divided into tiles, a block has one tile and an area
// of shifts, and a thread has one shift. Derived from overlap_wise, where one thread computes a
// whole shift.
//
// The passes are the paper's, in its order (pearson_passes.hpp). Averages and denominators are
// computed once per frame, for all templates. A kernel before them computes the template's part;
// the paper does that once per session.
//
// Differences from the paper: averages are summed in float64, and all passes read the frame less
// a pivot of the area, so that an offset costs no digits. Tiles are not compiled for a problem. One
// launch covers all areas of shifts; the paper needs several launches.
//
// template_tile is the rows x columns of a tile; those at the right and bottom end are smaller.
// shifts_per_block is the max threads of a block: rows of up to 32 neighbouring shifts. Limits: the
// sums of all tiles take at most 4 GiB.
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
    .workspace_bytes = pearson_workspace_bytes,
    .plan = make_plan<PearsonPlan<false>>,
});

}  // namespace
}  // namespace xcorr::template_matching
