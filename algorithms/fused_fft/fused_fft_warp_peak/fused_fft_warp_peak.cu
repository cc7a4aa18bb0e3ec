// Peaks of correlations of up to 32 x 32 by transforms in the registers of a warp: derived from
// fused_fft_warp, which keeps one left for many rights and writes surfaces. Beyond the paper.
//
// Sixteen thousand pairs (n-to-mn with as many lefts as rights) are 131 MB, and a record is 32
// bytes: for a kernel at the rate of memory a pair may take a few hundred cycles of an SM. So a
// warp processes a whole pair, with both matrices in one complex transform (kernel.hpp). Sides with
// different norms are scaled by a power of two first (../pair_scale.hpp).
//
// - There are three exchanges between lanes, through the shared memory of the warp, without a
//   barrier of the block.
// - The result is real, so only half of the products are made, and 32 lanes share the inverse
//   transforms of 16 columns.
// - Windows of a frame (image velocimetry) are read from the frame. Means are removed in registers.
// - The outputs lie in the shared memory of the warp in the order of the window, from which the
//   warp makes the record (epilogue.hpp). Only the outputs in the record are scaled.
//
// Limits: only transforms of 32; circular 16 x 16 uses them too, with its right matrix repeated.
// The score phase is circular at 32 x 32 only. A left that many rights share is transformed with
// each of them. above with a threshold of deviations is refused, since its medians need all outputs
// before one can be listed. For above a clear sets the count to 0 before the kernel, so that its
// calls do not overlap. Registers on sm_90: 95, no spills; 20 warps per SM.
#include "algorithms/blocks/plan.hpp"
#include "algorithms/fused_fft/fused_fft_warp_peak/kernel.hpp"
#include "algorithms/fused_fft/fused_fft_warp_peak/tuning.hpp"
#include "algorithms/fused_fft/lengths.hpp"
#include "harness/variant.hpp"

namespace xcorr::fused_fft {
namespace {

using Squares = Lengths<32>;
constexpr int kN = 32;

class PairPlan final : public DevicePlan<float> {
 public:
  explicit PairPlan(const PlanRequest& request) : DevicePlan(request.problem) {
    const Problem& q = request.problem;
    const bool has_phase = q.fields.score.kind == ScoreKind::phase;
    static_cast<PairInputs&>(a_) = PairInputs(q, kN, kN);
    if (has_phase) a_.phase = PhaseWeights(q, kN * kN, 4);
    if (has_phase) a_.scale = 1;
    a_.window = {a_.turn_y, a_.turn_x, a_.rows, a_.cols, 0};
    for (int x = 0; x < a_.cols.count; ++x) {
      a_.window.columns |= std::uint32_t{1} << (a_.cols.first + x + kN - a_.turn_x) % kN;
    }
    kernel_ = has_phase                                      ? pair_kernel<PairScore::phase>
              : q.fields.score.kind == ScoreKind::covariance ? pair_kernel<PairScore::covariance>
              : q.fields.boundary == Boundary::zero ? pair_kernel<PairScore::padded_product>
                                                    : pair_kernel<PairScore::product>;
    const Index resident = resident_blocks(reinterpret_cast<const void*>(kernel_),
                                           32 * PairTuning::kWarps, kSharedBytes);
    blocks_ =
        static_cast<unsigned>(std::min(resident, ceil_div<Index>(q.pairs(), PairTuning::kWarps)));
  }

  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    a_.set(call, problem_, arrays);
    launches_.begin(call);
    const dim3 threads(32 * PairTuning::kWarps);
    if (a_.request.kind != ResultKind::above) {
      launches_.run(kernel_, dim3(blocks_), threads, kSharedBytes, call.stream, a_);
      return;
    }
    // No earlier kernel of the call could set the count to 0. The kernel must not start before the
    // clear has ended.
    clear(call.out, sizeof(AboveHeader), call.stream);
    launch(kernel_, dim3(blocks_), threads, kSharedBytes, call.stream, a_);
    launches_.launched();
  }

 private:
  static constexpr std::size_t kSharedBytes =
      sizeof(Complex) * PairTuning::kWarps * PairTile::elements;

  DependentLaunches launches_;
  PairArguments a_{};
  void (*kernel_)(PairArguments) = nullptr;
  unsigned blocks_ = 0;
};

Support supports(const PlanRequest& request) {
  const Problem& q = request.problem;
  if (const Support fit = results_fit(q); !fit) return fit;
  if (q.fields.boundary == Boundary::zero) return Squares::supports(q);
  const bool wraps = q.right == Shape{kN / 2, kN / 2} && q.fields.score.kind != ScoreKind::phase;
  if (q.right != Shape{kN, kN} && !wraps) {
    return no("boundary circular: matrices are not 32 x 32, or, but for phase, 16 x 16");
  }
  return indices_fit(q);
}

XCORR_VARIANT({
    .summary =
        "FFT correlation of a pair in one warp whose result is a peak: both matrices at once",
    .parent = "fused_fft_warp",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::fft,
    .boundaries = {Boundary::zero, Boundary::circular},
    .scores = {ScoreKind::product, ScoreKind::covariance, ScoreKind::phase},
    .results = {ResultKind::surface, ResultKind::peak, ResultKind::peaks, ResultKind::above,
                ResultKind::sum},
    .views = {Views::dense, Views::windows},
    .supports = supports,
    .plan = make_plan<PairPlan>,
});

}  // namespace
}  // namespace xcorr::fused_fft
