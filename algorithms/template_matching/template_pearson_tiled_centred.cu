// template_pearson_tiled with one pass fewer: the mean of a window cancels in the numerator, since
// the deviations of a template from its mean add up to 0. The frame is read less a pivot, a median
// of values of the area; any pivot gives the same numerator. One pass makes sums and sums of
// squares of the windows, in float64, from which denominators follow. Parameters and limits: those
// of template_pearson_tiled.
#include "algorithms/template_matching/pearson_plan.hpp"
#include "harness/variant.hpp"

namespace xcorr::template_matching {
namespace {

XCORR_VARIANT({
    .summary =
        "template_pearson_tiled without averages: the mean of a window cancels in the numerator",
    .parent = "template_pearson_tiled",
    .source = "paper of the sliding window, Tiled Template",
    .backend = Backend::cuda,
    .axes = {{"template_tile", {"4x4", "8x4", "8x8", "16x2", "16x4", "16x8", "16x10", "16x16"}},
             {"shifts_per_block", {"64", "128", "192", "256", "512", "1024"}}},
    .scores = {ScoreKind::product, ScoreKind::zncc},
    .results = {ResultKind::surface, ResultKind::peak},
    .supports = pearson_supports,
    .workspace_bytes = pearson_workspace_bytes,
    .plan = make_plan<PearsonPlan<true>>,
});

}  // namespace
}  // namespace xcorr::template_matching
