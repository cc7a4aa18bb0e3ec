// timeseries_tf32 of float32 grade. Both operands are split: `big` is the input rounded to tf32,
// `small` is the remainder rounded to tf32. Of the four products of parts, small times small is
// left out. The others are added, the products with a small part first, so that three tensor-core
// products give one product of 21 bits. Beyond the paper.
//
// Tensor cores do not round their sums to nearest, and errors of one direction add up over many
// steps. Therefore the products of a step start from zero, and ordinary additions add them to the
// sums.
//
// Parameters: those of timeseries_tf32; a tile takes twice the registers. Limits: compute
// capability 8.0; an infinity becomes a NaN; an infinity or a NaN may reach outputs up to 7 shifts
// away from those whose windows hold it.
#include "algorithms/time_series/three_tf32.hpp"
#include "algorithms/time_series/warp_plan.hpp"
#include "harness/variant.hpp"

namespace xcorr::time_series {
namespace {

using Shifts = PointAxis<Values<32, 64, 96, 128>, Values<32, 64, 96>>;

XCORR_VARIANT({
    .summary = "timeseries_tf32 of float32 grade: three products of operands split in two",
    .parent = "timeseries_tf32",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .precisions = {Precision::three_tf32},
    .forms = {Form::n_to_m},
    .axes = {Shifts::axis("shifts_per_warp"), {"warps_per_block", {"4", "8"}}},
    .supports = supports_by_warps<products_by_shifts<ThreeTf32, Shifts>>,
    .plan = plan_by_warps<products_by_shifts<ThreeTf32, Shifts>>,
});

}  // namespace
}  // namespace xcorr::time_series
