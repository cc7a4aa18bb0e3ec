// Time series with warpgroup products in tf32. Derived from timeseries_tf32: templates are spread
// over neighbouring shifts, and the signal is read from shared memory as overlapping columns (see
// warpgroup_products.hpp). With parameter spread a product has 64 / spread templates and (T +
// spread - 1) / T times the useful work.
//
// Limits: compute capability 9.0 and code for the target sm_90a, which the build creates together
// with code for sm_90; templates of at most 65536 samples. An infinity or a NaN may reach outputs
// up to spread + 7 shifts away from those whose windows contain it.
#include "algorithms/time_series/warpgroup_plan.hpp"
#include "harness/variant.hpp"

XCORR_NEEDS_TARGET(sm_90a);

namespace xcorr::time_series {
namespace {

XCORR_VARIANT({
    .summary = "Warpgroup tensor cores, tf32: spread templates times overlapping columns",
    .parent = "timeseries_tf32",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .precisions = {Precision::tf32},
    .forms = {Form::n_to_m},
    .axes = {Spread::axis("spread")},
    .supports = supports_by_warpgroups<WgmmaTf32>,
    .plan = plan_by_warpgroups<WgmmaTf32>,
});

}  // namespace
}  // namespace xcorr::time_series
