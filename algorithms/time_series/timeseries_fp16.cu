// timeseries_tf32 with half-precision products: a step has 16 samples in place of 8 at the same
// instruction rate. Inputs are rounded to half when they are staged; sums are float32. A word of a
// right fragment has two neighbouring samples and may begin at an odd sample, so that shared memory
// holds a pair of every sample and the next. A tile is one word per lane; the samples 8 further are
// the word of the next tile.
//
// Exact where every input has at most 11 significant bits in the range of half, 2^-24 to 65504, as
// samples of many digitizers do. Larger inputs become infinite, smaller inputs 0;
// timeseries_fp16_scaled supports these.
//
// Parameters: those of timeseries_tf32. Limits: compute capability 8.0; inputs as stated above; an
// infinity or a NaN may reach outputs up to 15 shifts away from those whose windows contain it.
#include "algorithms/time_series/warp_plan.hpp"
#include "harness/variant.hpp"

namespace xcorr::time_series {
namespace {

class Fp16 {
 public:
  static constexpr int kStep = 16, kTileColumns = 8, kNew = 2, kExtra = 1, kRegisters = 6;
  struct Tile {
    std::uint32_t b;
  };

  static std::size_t words(int panel, int shifts) {
    return static_cast<std::size_t>(panel / 2 * kGroup + panel + shifts);
  }
  __device__ Fp16(std::uint32_t* shared, int panel, int /*shifts*/)
      : templates_(shared), signal_(shared + panel / 2 * kGroup) {}

  __device__ __forceinline__ void stage_templates(const TemplatePart& part, int steps,
                                                  const Copier& copier) const {
    for (int row = copier.warp; row < kGroup; row += copier.warps) {
#pragma unroll 4
      for (int i = warp::lane(); i < steps * kStep / 2; i += warp::kSize) {
        templates_[fragment_place(row, i)] =
            matrix::to_halves(part(row, 2 * i), part(row, 2 * i + 1));
      }
    }
  }
  __device__ __forceinline__ void stage_signal(const SignalPart& part, int samples,
                                               const Copier& copier) const {
#pragma unroll 4
    for (int i = copier.thread; i < samples; i += copier.threads) {
      signal_[i] = matrix::to_halves(part(i), part(i + 1));
    }
  }

  template <int kTiles>
  __device__ __forceinline__ void correlate(Sums<kTiles>& sums, int from, int steps) const {
    add_keeping_tiles(*this, sums, from, steps);
  }

  __device__ __forceinline__ Words left(int step) const { return fragment(templates_, step); }
  __device__ __forceinline__ Tile tile(int at) const {
    const auto lane = static_cast<unsigned>(warp::lane());
    return {signal_[at + static_cast<int>(lane / 4 + lane % 4 * 2)]};
  }
  template <int kTiles>
  __device__ __forceinline__ void add(Sums<kTiles>& sums, const Words& left,
                                      const Tile* tiles) const {
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
      matrix::add_product_half(sums.d[j], left.of, tiles[j].b, tiles[j + 1].b);
    }
  }

 private:
  std::uint32_t* templates_;
  std::uint32_t* signal_;
};

using Shifts = PointAxis<Values<32, 64, 96, 128, 256>, Values<32, 96, 128, 256>>;

XCORR_VARIANT({
    .summary = "timeseries_tf32 in half precision: exact for samples of at most 11 bits",
    .parent = "timeseries_tf32",
    .source = "the TF32 paper, section 2.2, without its scaling",
    .backend = Backend::cuda,
    .precisions = {Precision::fp16},
    .forms = {Form::n_to_m},
    .axes = {Shifts::axis("shifts_per_warp"), {"warps_per_block", {"4", "8"}}},
    .supports = supports_by_warps<products_by_shifts<Fp16, Shifts>>,
    .plan = plan_by_warps<products_by_shifts<Fp16, Shifts>>,
});

}  // namespace
}  // namespace xcorr::time_series
