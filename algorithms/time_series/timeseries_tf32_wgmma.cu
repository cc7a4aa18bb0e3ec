// Time series by warpgroup products in tf32. Derived from timeseries_tf32: templates are spread over
// neighbouring shifts, and the signal is read from shared memory as overlapping columns
// (warpgroup_products.hpp says how). Inputs are float32 and are rounded to tf32 once, when they are
// copied to shared memory. Sums are float32.
//
// Forms: n-to-m with one right matrix of one row, each shift with the template inside the signal;
// tf32.
// Parameters, compile-time:
//   spread  8, 16, 64  shifts that a template is spread over. A product takes 64 / spread templates
//                      and makes (T + spread - 1) / T of the useful work
// Limits: compute capability 9.0 and code for the target sm_90a, which the build makes where it makes
// code for sm_90; one channel; templates of at most 65536 samples. An infinity or a NaN may reach
// outputs up to spread + 7 shifts away from those whose windows hold it.
#include "algorithms/time_series/warpgroup_plan.hpp"
#include "harness/variant.hpp"

namespace xcorr::time_series {
namespace {

struct WgmmaTf32 {
  static constexpr int kStep = 8, kPart = 4, kColumns = 128, kMostTileShifts = 8192;
  static constexpr int kAtOnce = 4, kParts = 1;
  static constexpr bool kFromZero = false;

  template <typename Sample>
  __device__ static __forceinline__ void signal_words(const Sample& sample, int i,
                                                      std::uint32_t (&of)[kParts]) {
    of[0] = matrix::to_tf32(sample(i));
  }
  template <typename Sample>
  __device__ static __forceinline__ void template_words(const Sample& sample, int i,
                                                        std::uint32_t (&of)[kParts]) {
    of[0] = matrix::to_tf32(sample(i));
  }
  template <bool kAdd>
  __device__ static __forceinline__ void add(float (&d)[kColumns / 2],
                                             const std::uint32_t (&a)[kParts][4],
                                             const std::uint32_t* b, int /*part_words*/,
                                             int rows_apart) {
    warpgroup::add_product_tf32<kAdd>(d, a[0],
                                      warpgroup::right_matrix(b, rows_apart, 8 * kPartBytes));
  }
};

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
