// Time series on tensor cores in tf32, the idea of "Cross-correlation with TensorFloat-32" on
// any number of templates, samples and shifts. A warp computes 16 templates x N shifts as products
// of 16 x 8 by 8 x 8 matrices. Lanes fill the fragments of the right matrix from the signal in
// shared memory by their register mapping, so the matrix of shifted signals is never made
// (warp_products.hpp says how). Inputs are float32 and are rounded to tf32 once, when they are
// copied to shared memory. Sums are float32.
//
// Templates are taken in groups of 16 and samples in steps of 8. Zeros stand for what is missing.
//
// Forms: n-to-m with one right matrix, each shift with the template inside the signal; tf32.
// Parameters, compile-time:
//   shifts_per_warp  16 to 256  N. More: fewer loads for a product and fewer warps on an SM. The
//                               paper uses 96
//   instruction      mma        mma.sync m16n8k8: 2 tensor-core instructions for 16 x 8 x 16 shifts
//                    wmma       wmma.mma m16n16k8, as in the paper: 4 of half the depth
//   fragments        keep       a tile of the signal stays in registers for all steps that need it
//                    load       every step loads all its tiles, as in the paper
// Parameters, run-time:
//   warps_per_block  4, 8       warps that share the templates and the signal
// Limits: compute capability 8.0; an infinity or a NaN may reach outputs whose windows do not hold
// it, up to 7 shifts away.
#include "algorithms/time_series/tf32.hpp"
#include "algorithms/time_series/warp_plan.hpp"
#include "harness/variant.hpp"

namespace xcorr::time_series {
namespace {

using Shifts = PointAxis<Values<16, 32, 64, 96, 128, 256>, Values<32, 96, 128, 256>>;

WarpProducts products_of(const Params& params) {
  return choose_shifts<Shifts>(params.get_int("shifts_per_warp"), [&](auto shifts) {
    const bool wide = params.get("instruction") == "wmma", keep = params.get("fragments") == "keep";
    if (wide) {
      return keep ? warp_products<Tf32<Instruction::wmma, true>, shifts>()
                  : warp_products<Tf32<Instruction::wmma, false>, shifts>();
    }
    return keep ? warp_products<Tf32<Instruction::mma, true>, shifts>()
                : warp_products<Tf32<Instruction::mma, false>, shifts>();
  });
}

XCORR_VARIANT({
    .summary = "Tensor cores, tf32: templates times a matrix of shifted signals that is never made",
    .parent = "overlap_wise",
    .source = "the TF32 paper, section 2.2",
    .backend = Backend::cuda,
    .precisions = {Precision::tf32},
    .forms = {Form::n_to_m},
    .axes = {Shifts::axis("shifts_per_warp"),
             {"instruction", {"mma", "wmma"}, true},
             {"fragments", {"keep", "load"}, true},
             {"warps_per_block", {"4", "8"}}},
    .supports = supports_by_warps<products_of>,
    .plan = plan_by_warps<products_of>,
});

}  // namespace
}  // namespace xcorr::time_series
