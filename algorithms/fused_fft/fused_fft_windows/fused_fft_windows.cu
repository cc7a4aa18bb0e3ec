// Peaks and surfaces of correlations by a transform of 64 x 64 in the registers of two warps:
// windows of image velocimetry of up to 32 x 32 with boundary zero, and of 64 x 64 with boundary
// circular. Derived from fused_fft_warp_peak: each warp does the same, with a quarter of the
// frequencies at a time. Beyond the paper.
//
// A transform of 64 x 64 takes 32 KB, too much for the registers of a warp, and passes through the
// shared memory of a block cost more than sums of products do. But the even and the odd frequencies
// of each axis are transforms of half the length of the same inputs, turned (kernel.hpp). So a warp
// computes two of four kinds of frequencies, of 32 x 32 values each, one after the other; the
// transforms need no barrier of the block. Rows and columns of padding are neither loaded, nor
// transformed, nor stored.
//
// - The two warps of a pair meet three times: to exchange half of their last rows, when the outputs
//   are in shared memory (there all warps of the block meet), and before the next pair overwrites
//   the outputs. With windows of 64 x 64 they also exchange sums of the inputs. One warp fits the
//   peak while the other one searches a second peak.
// - Means are removed before anything is rounded: of windows with zero padding twice, in registers;
//   of windows of 64 x 64 once. What then remains of a mean is in the zero frequency of the
//   spectrum, which is set to 0.
// - A separate kernel computes covariances of whole windows of 32 x 32 at all shifts, which is what
//   velocimetry needs. It has no conditions on rows, columns and shifts, so fewer instructions are
//   fetched.
//
// Limits: a left that many rights share is transformed with each of them. Windows of 64 x 64 are
// loaded once for each kind of frequencies, from the L1 cache. Registers on sm_90: 128 with zero
// padding, 168 with 64 x 64, no spills; 16 and 12 warps per SM.
#include "algorithms/blocks/plan.hpp"
#include "algorithms/fused_fft/fused_fft_windows/kernel.hpp"
#include "harness/variant.hpp"

namespace xcorr::fused_fft {
namespace {

constexpr int kN = 64;

class WindowPlan final : public DevicePlan<float> {
 public:
  explicit WindowPlan(const PlanRequest& request) : DevicePlan(request.problem) {
    const Problem& q = request.problem;
    const bool folds = q.fields.boundary == Boundary::circular;
    const bool covariance = q.fields.score.kind == ScoreKind::covariance;
    static_cast<PairInputs&>(a_) = PairInputs(q, folds ? kN : kN / 2, kN);
    a_.columns = WindowColumns(a_.cols);
    kernel_ = kernel_of(folds, covariance, a_.whole && are_all(a_.rows) && are_all(a_.cols));
    // As many pairs per block as fit its shared memory, at least one.
    constexpr std::size_t kBytes = sizeof(Complex) * WindowShared::elements;
    int pairs = folds ? WindowTuning<true>::pairs : WindowTuning<false>::pairs;
    while (pairs > 1 && static_cast<std::size_t>(pairs) * kBytes > shared_limit()) pairs /= 2;
    threads_ = static_cast<unsigned>(pairs * kPairThreads);
    shared_bytes_ = static_cast<std::size_t>(pairs) * kBytes;
    const Index resident = resident_blocks(reinterpret_cast<const void*>(kernel_),
                                           static_cast<int>(threads_), shared_bytes_);
    blocks_ = static_cast<unsigned>(std::min(resident, ceil_div<Index>(q.pairs(), pairs)));
  }

  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    a_.set(call, problem_, arrays);
    launches_.begin(call);
    launches_.run(kernel_, dim3(blocks_), dim3(threads_), shared_bytes_, call.stream, a_);
  }

 private:
  static bool are_all(Range shifts) {
    return shifts.first == kAllShifts.first && shifts.count == kAllShifts.count;
  }
  static auto kernel_of(bool folds, bool covariance, bool whole) -> void (*)(WindowArguments) {
    if (folds) {
      return covariance ? window_kernel<true, true, false> : window_kernel<true, false, false>;
    }
    // For products a kernel for whole windows had more values than registers.
    if (!covariance) return window_kernel<false, false, false>;
    return whole ? window_kernel<false, true, true> : window_kernel<false, true, false>;
  }

  DependentLaunches launches_;
  WindowArguments a_{};
  void (*kernel_)(WindowArguments) = nullptr;
  unsigned blocks_ = 0, threads_ = 0;
  std::size_t shared_bytes_ = 0;
};

Support supports(const PlanRequest& request) {
  const Problem& q = request.problem;
  if (const Support fit = results_fit(q); !fit) return fit;
  if (q.fields.boundary == Boundary::circular) {
    if (q.right != Shape{kN, kN}) return no("boundary circular: matrices are not 64 x 64");
    return indices_fit(q);
  }
  const Index longest = std::max({q.left.rows, q.left.cols, q.right.rows, q.right.cols});
  if (longest > kN / 2) return no("boundary zero: a side of a matrix is longer than 32");
  return indices_fit(q);
}

XCORR_VARIANT({
    .summary = "FFT correlation of a pair in two warps, results peak and surface: windows of up to "
               "32 x 32 with zero padding, of 64 x 64 with boundary circular",
    .parent = "fused_fft_warp_peak",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::fft,
    .boundaries = {Boundary::zero, Boundary::circular},
    .scores = {ScoreKind::product, ScoreKind::covariance},
    .results = {ResultKind::surface, ResultKind::peak},
    .views = {Views::dense, Views::windows},
    .supports = supports,
    .plan = make_plan<WindowPlan>,
});

}  // namespace
}  // namespace xcorr::fused_fft
