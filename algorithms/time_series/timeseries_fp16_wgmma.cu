// timeseries_tf32_wgmma with half-precision products, whose depth is 16 samples in place of 8 at
// the same instruction rate. Inputs are rounded to half when they are staged; sums are float32. A
// lane's word of the left matrix has two neighbouring samples and may begin at an odd sample, so
// that shared memory holds a pair of every sample of a template and the next. With a spread of 8
// the signal needs no planes: the parts of a column are the next columns.
//
// Exact for the inputs of timeseries_fp16; larger inputs become infinite, smaller inputs 0.
// Parameters and limits: those of timeseries_tf32_wgmma, with spread + 15 shifts.
#include "algorithms/time_series/warpgroup_plan.hpp"
#include "harness/variant.hpp"

XCORR_NEEDS_TARGET(sm_90a);

namespace xcorr::time_series {
namespace {

struct WgmmaFp16 {
  static constexpr int kStep = 16, kPart = 8, kColumns = 128, kMostTileShifts = 8192;
  static constexpr int kAtOnce = 4, kParts = 1;
  static constexpr bool kFromZero = false;

  template <typename Sample>
  __device__ static __forceinline__ void words(const Sample& sample, int i,
                                               std::uint32_t (&of)[kParts]) {
    of[0] = matrix::to_halves(sample(i), sample(i + 1));
  }
  template <bool kAdd>
  __device__ static __forceinline__ void add(float (&d)[kColumns / 2],
                                             const std::uint32_t (&a)[kParts][4],
                                             const std::uint32_t* b, int /*part_words*/,
                                             int rows_apart) {
    warpgroup::add_product_half<kAdd>(d, a[0],
                                      warpgroup::right_matrix(b, rows_apart, 8 * kPartBytes));
  }
};

XCORR_VARIANT({
    .summary = "timeseries_tf32_wgmma in half precision: exact for samples of at most 11 bits",
    .parent = "timeseries_tf32_wgmma",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .precisions = {Precision::fp16},
    .forms = {Form::n_to_m},
    .axes = {Spread::axis("spread")},
    .supports = supports_by_warpgroups<WgmmaFp16>,
    .plan = plan_by_warpgroups<WgmmaFp16>,
});

}  // namespace
}  // namespace xcorr::time_series
