// Ablation of timeseries_tf32 with instruction wmma and fragments load: both operands are loaded by
// load_matrix_sync (wmma.load), the documented way, which the TF32 paper avoids. The instruction
// requires rows that are a multiple of 16 bytes apart and a first element at a multiple of 32
// bytes. The rows of the matrix of shifted signals are one sample apart. Therefore shared memory
// holds eight copies of the signal, each shifted by one more sample. A tile of 8 x 16 begins at
// column k0 + s0, a multiple of 8.
//
// Parameters and limits: those of timeseries_tf32; with 256 shifts and 8 warps, 115 KiB of shared
// memory.
#include "algorithms/time_series/warp_plan.hpp"
#include "harness/variant.hpp"

namespace xcorr::time_series {
namespace {

class LoadedMatrices {
 public:
  static constexpr int kStep = 8, kRegisters = 6;
  static constexpr int kRows = 8;       // rows of a right matrix
  static constexpr int kAlignment = 8;  // alignment of wmma.load, in words

  static std::size_t words(int panel, int shifts) {
    return static_cast<std::size_t>(kAlignment + kGroup * left_pitch(panel) +
                                    kRows * right_pitch(panel + shifts));
  }
  __device__ LoadedMatrices(std::uint32_t* shared, int panel, int shifts)
      : templates_(shared + misaligned(shared)),
        signals_(templates_ + kGroup * left_pitch(panel)),
        left_pitch_(left_pitch(panel)),
        right_pitch_(right_pitch(panel + shifts)) {}

  __device__ __forceinline__ void stage_templates(const TemplatePart& part, int steps,
                                                  const Copier& copier) const {
    for (int row = copier.warp; row < kGroup; row += copier.warps) {
#pragma unroll 4
      for (int i = warp::lane(); i < steps * kStep; i += warp::kSize) {
        templates_[row * left_pitch_ + i] = matrix::to_tf32(part(row, i));
      }
    }
  }
  __device__ __forceinline__ void stage_signal(const SignalPart& part, int samples,
                                               const Copier& copier) const {
#pragma unroll 1
    for (int i = copier.thread; i < samples; i += copier.threads) {
      const std::uint32_t word = matrix::to_tf32(part(i));
#pragma unroll
      for (int row = 0; row < kRows; ++row) {
        if (i >= row) signals_[row * right_pitch_ + i - row] = word;
      }
    }
  }

  template <int kTiles>
  __device__ __forceinline__ void correlate(Sums<kTiles>& sums, int from, int steps) const {
#pragma unroll 2
    for (int step = 0; step < steps; ++step) {
      std::uint32_t a[4];
      matrix::load_left(a, templates_ + step * kStep, left_pitch_);
#pragma unroll
      for (int j = 0; j < kTiles; j += 2) {
        std::uint32_t b[4];
        matrix::load_right(b, signals_ + from + step * kStep + j * kColumns, right_pitch_);
        matrix::add_product_16_columns(sums.d[j], sums.d[j + 1], a, b);
      }
    }
  }

 private:
  // Lanes of a fragment read 32 different banks.
  __host__ __device__ static constexpr int left_pitch(int panel) {
    return ceil_div(panel, warp::kSize) * warp::kSize + 4;
  }
  __host__ __device__ static constexpr int right_pitch(int samples) {
    return ceil_div(samples, warp::kSize) * warp::kSize + 8;
  }
  // Words to the next multiple of 32 bytes: dynamic shared memory is aligned to 16 bytes.
  __device__ static __forceinline__ int misaligned(const std::uint32_t* shared) {
    const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(shared) / sizeof(std::uint32_t);
    return static_cast<int>((kAlignment - at % kAlignment) % kAlignment);
  }

  std::uint32_t *templates_, *signals_;
  int left_pitch_, right_pitch_;
};

using Shifts = PointAxis<Values<16, 32, 64, 96, 128, 256>, Values<32, 96, 128, 256>>;

XCORR_VARIANT({
    .summary = "Ablation: timeseries_tf32 whose fragments come through load_matrix_sync",
    .parent = "timeseries_tf32",
    .source = "the TF32 paper, section 2.2, which argues against it",
    .backend = Backend::cuda,
    .precisions = {Precision::tf32},
    .forms = {Form::n_to_m},
    .axes = {Shifts::axis("shifts_per_warp"), {"warps_per_block", {"4", "8"}}},
    .supports = supports_by_warps<products_by_shifts<LoadedMatrices, Shifts>>,
    .plan = plan_by_warps<products_by_shifts<LoadedMatrices, Shifts>>,
});

}  // namespace
}  // namespace xcorr::time_series
