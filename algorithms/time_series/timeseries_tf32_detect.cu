// A matched filter on tensor cores in tf32: scores of templates along a signal, and the list of
// scores above a threshold, without a surface in memory. Derived from timeseries_tf32 with the same
// products: scores are computed from the sums while they are in registers.
//
// The mean of each template is removed, and the template is divided by its norm, once per call. The
// factor of a shift is 1 / the norm of its window, in float32 where that is precise enough, else in
// float64 (detection/factors.hpp). A line near each tile of shifts is subtracted from the signal
// before it is rounded to tf32 (detection/products.hpp). The threshold of `above:8mad` comes from
// one pass over the products and a survey of every 32nd tile (detection/survey.hpp). Where the
// survey fails, it comes from further passes (detection/finish.hpp).
//
// Limits: compute capability 8.0; templates of up to 200,000 samples. A score whose window has an
// infinity or a NaN is NaN. A window counts as constant where the differences between its samples
// are below 2^-20 of their difference from other samples of the tile.
#include "algorithms/time_series/detection/tf32_plan.hpp"
#include "harness/variant.hpp"

namespace xcorr::time_series {
namespace {

using Detection = DetectionPlan<Tf32Products, kTf32Shifts, kTf32Bins>;

XCORR_VARIANT({
    .summary = "Matched filter on tensor cores, tf32: scores and detections, no surface in memory",
    .parent = "timeseries_tf32",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .precisions = {Precision::tf32},
    .forms = {Form::n_to_m},
    .axes = {{"warps_per_block", {"4", "8"}}},
    .scores = {ScoreKind::product, ScoreKind::ncc, ScoreKind::zncc},
    .results = {ResultKind::surface, ResultKind::above},
    .supports = Detection::supports,
    .workspace_bytes = Detection::workspace_bytes,
    .plan = make_plan<Detection>,
});

}  // namespace
}  // namespace xcorr::time_series
