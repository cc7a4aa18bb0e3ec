// timeseries_tf32_detect of float32 grade, with the products of timeseries_3xtf32 and finer bins in
// the histograms of brackets. Parameters and limits: those of timeseries_tf32_detect.
#include "algorithms/time_series/detection/plan.hpp"
#include "algorithms/time_series/three_tf32.hpp"
#include "harness/variant.hpp"

namespace xcorr::time_series {
namespace {

constexpr int kShifts = static_cast<int>(small_if_emulated(64, 16));
constexpr BracketBins kBins = {1 << 15, static_cast<float>(small_if_emulated(1 << 22, 1 << 16))};
using Detection = DetectionPlan<ThreeTf32, kShifts, kBins>;

XCORR_VARIANT({
    .summary = "timeseries_tf32_detect of float32 grade: three products of operands split in two",
    .parent = "timeseries_tf32_detect",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .precisions = {Precision::three_tf32},
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
