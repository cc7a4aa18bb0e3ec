// timeseries_tf32_wgmma of float32 grade, with the three products of timeseries_3xtf32. The
// products of 16 samples start from zero, and ordinary additions add them to the sums. This takes
// twice the registers for the sums, so that a product has 64 columns in place of 128.
//
// Parameters and limits: those of timeseries_tf32_wgmma; an infinity becomes a NaN.
#include <bit>

#include "algorithms/time_series/warpgroup_plan.hpp"
#include "harness/variant.hpp"

XCORR_NEEDS_TARGET(sm_90a);

namespace xcorr::time_series {
namespace {

struct WgmmaThreeTf32 {
  static constexpr int kStep = 8, kPart = 4, kColumns = 64, kMostTileShifts = 4096;
  static constexpr int kAtOnce = 2, kParts = 2;
  static constexpr bool kFromZero = true;

  template <typename Sample>
  __device__ static __forceinline__ void words(const Sample& sample, int i,
                                               std::uint32_t (&of)[kParts]) {
    const float value = sample(i);
    of[0] = matrix::to_tf32(value);
    of[1] = matrix::to_tf32(value - std::bit_cast<float>(of[0]));
  }
  template <bool kAdd>
  __device__ static __forceinline__ void add(float (&d)[kColumns / 2],
                                             const std::uint32_t (&a)[kParts][4],
                                             const std::uint32_t* b, int part_words,
                                             int rows_apart) {
    const auto big = warpgroup::right_matrix(b, rows_apart, 8 * kPartBytes),
               small = warpgroup::right_matrix(b + part_words, rows_apart, 8 * kPartBytes);
    warpgroup::add_product_tf32<kAdd>(d, a[1], big);
    warpgroup::add_product_tf32<true>(d, a[0], small);
    warpgroup::add_product_tf32<true>(d, a[0], big);
  }
};

XCORR_VARIANT({
    .summary = "timeseries_tf32_wgmma of float32 grade: three products of operands split in two",
    .parent = "timeseries_tf32_wgmma",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .precisions = {Precision::three_tf32},
    .forms = {Form::n_to_m},
    .axes = {Spread::axis("spread")},
    .supports = supports_by_warpgroups<WgmmaThreeTf32>,
    .plan = plan_by_warpgroups<WgmmaThreeTf32>,
});

}  // namespace
}  // namespace xcorr::time_series
