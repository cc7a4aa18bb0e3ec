// Time series on tensor cores in tf32: the method of the TF32 paper (README.md of this folder) for
// any number of templates, samples and shifts. A warp computes 16 templates x N shifts as products
// of two small matrices: 16 templates x 8 samples, and 8 samples x 8 shifts. It is known which lane
// holds which element of such a matrix in which register. Therefore each lane reads its elements of
// the second matrix from the signal in shared memory, and the matrix of shifted signals is never
// stored (see warp_products.hpp). Inputs are rounded to tf32 once, when they are staged. Sums are
// float32. The last group of 16 templates and the last step of 8 samples are padded with zeros.
//
// Parameters:
//   shifts_per_warp  N. High values load less for a product, but leave fewer warps on an SM. The
//                    TF32 paper uses 96
//   instruction      mma (mma.sync m16n8k8): 16 templates x 8 samples x 16 shifts take 2
//                    tensor-core instructions of 8 samples and 8 shifts. wmma (wmma.mma m16n16k8),
//                    as in the TF32 paper: the same takes 4 instructions of 4 samples and 8 shifts
//   fragments        keep: a tile (8 samples x 8 shifts) stays in registers for all steps that need
//                    it. load: every step loads all its tiles, as in the TF32 paper
//   warps_per_block  warps that share the templates and the signal
// Limits: compute capability 8.0 or higher. An infinity or a NaN may also reach outputs up to 7
// shifts away from those whose sums contain it.
// Measured (H200, 16 templates x 256 samples, 4.32 million shifts, N = 128, mma, keep, 4 warps):
// 172 us a call. The tensor cores alone need 120 us at the rate that mma.sync reaches on Hopper, 62
// % of the dense one (docs/notebook/2026-11-time-series-tensor-cores.md).
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
