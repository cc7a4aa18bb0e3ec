// timeseries_tf32_detect with warpgroup products: all scores come from the products of
// timeseries_tf32_wgmma, spread over 8 shifts. The survey, and the passes that replace a failed
// survey, use products of warps as before, because a survey is too small for the large tiles of
// warpgroups.
//
// Limits: those of timeseries_tf32_wgmma; for scores and thresholds those of
// timeseries_tf32_detect.
#include "algorithms/time_series/detection/tf32_plan.hpp"
#include "algorithms/time_series/detection/warpgroup.hpp"
#include "harness/variant.hpp"

XCORR_NEEDS_TARGET(sm_90a);

namespace xcorr::time_series {
namespace {

using Detection =
    DetectionPlan<Tf32Products, kTf32Shifts, kTf32Bins, WarpgroupEngine<WgmmaTf32, 8>, 4>;

XCORR_VARIANT({
    .summary = "timeseries_tf32_detect with warpgroup products",
    .parent = "timeseries_tf32_detect",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .precisions = {Precision::tf32},
    .forms = {Form::n_to_m},
    .scores = {ScoreKind::product, ScoreKind::ncc, ScoreKind::zncc},
    .results = {ResultKind::surface, ResultKind::above},
    .supports = Detection::supports,
    .workspace_bytes = Detection::workspace_bytes,
    .plan = make_plan<Detection>,
});

}  // namespace
}  // namespace xcorr::time_series
