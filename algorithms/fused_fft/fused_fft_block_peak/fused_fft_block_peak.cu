// Peaks of correlations by transforms in the shared memory of one block: derived from
// fused_fft_block, whose outputs go to global memory. Beyond the paper.
//
// A measurement of displacements keeps 32 bytes of a surface of tens of thousands of outputs. Here
// the last pass leaves the outputs in the tile, as float32 where their spectra were, and the block
// makes the record from them (epilogue.hpp):
//
// - The last pass also stores the largest output of each row. Every warp finds the peak from these
//   and one row.
// - The second peak is searched only in rows whose largest output exceeds the first candidate,
//   which is the largest local maximum of the row with the largest output away from the peak. If
//   that row has no local maximum, as on smooth surfaces, all warps walk down columns.
// - With boundary circular there is no padding: the transform is as long as the matrix.
// - With score phase each product is weighted as soon as it is computed; the floor of the weights
//   is in proportion to the norms of both matrices.
// - peaks:k, above and sum also read the outputs from the tile (../row_results.hpp). Lists read
//   only rows whose largest output is large enough.
// - peak:upsample=u is a product of three matrices, of which the surface is the middle one, in
//   float32 (upsample.hpp).
// - Windows of frames, and matrices whose means must be removed (covariance, phase), are first
//   copied to the workspace, dense and without their means (gather.hpp). fused_fft_warp_peak and
//   fused_fft_windows read windows from the frame, up to 32 x 32 and, circular, 64 x 64.
// - The workspace holds the spectra of all lefts, and for n-to-m those of all rights (as
//   fused_fft_block with left_spectrum=workspace).
//
// Forms: all four; any shape and window with boundary zero, squares with boundary circular; scores
// product, covariance and, circular, phase; views windows; results peak, peaks:k, above:t:c, sum
// and surface; fp32. No parameters. Compile time: the length, 32, 48, 64, 96, 128 or 192: with
// boundary zero the shortest that both axes allow, with boundary circular that of the matrices.
//
// Limits: those of fused_fft_block. above with a threshold of deviations is refused, since its
// medians need all outputs before one can be listed. peak:upsample=20 takes longer than the
// transforms.
//
// Registers on sm_90: 56 to 71 up to length 96, 80 at 192. No spills, except 4 bytes (n-to-m: 8)
// once per pair at length 192.
#include <type_traits>

#include "algorithms/blocks/plan.hpp"
#include "algorithms/fused_fft/fused_fft_block_peak/gather.hpp"
#include "algorithms/fused_fft/fused_fft_block_peak/kernel.hpp"
#include "algorithms/fused_fft/fused_fft_block_peak/tuning.hpp"
#include "algorithms/fused_fft/lengths.hpp"
#include "algorithms/fused_fft/roots.hpp"
#include "harness/variant.hpp"

namespace xcorr::fused_fft {
namespace {

using Squares = Lengths<32, 48, 64, 96, 128, 192>;

bool has_phase(const Problem& q) { return q.fields.score.kind == ScoreKind::phase; }

Index spectra_of(const Problem& q) { return q.lefts + (q.form == Form::n_to_m ? q.rights : 0); }

template <int kN>
struct PeakMemory {
  PeakMemory(const Problem& q, Workspace workspace)
      : roots(workspace.take<Complex>(4 * kRootTable)),
        spectra(workspace.take<Complex>(spectra_of(q) * BlockTile<kN>::spectrum)) {
    if (is_upsampled(q)) {
      upsample = Upsample(q);
      row_weights = workspace.take<float>(table_size(upsample, q.out_rows()));
      column_weights = workspace.take<float>(table_size(upsample, q.out_cols()));
      upsample.of_rows = row_weights;
      upsample.of_columns = column_weights;
    }
    gather = Gather(q, workspace);
    bytes = workspace.bytes();
  }
  Complex *roots, *spectra;
  Upsample upsample;
  float *row_weights = nullptr, *column_weights = nullptr;
  Gather gather;
  std::size_t bytes;
};

template <int kN>
class PeakPlan final : public DevicePlan<float> {
  using T = BlockTile<kN>;

 public:
  explicit PeakPlan(const PlanRequest& request) : DevicePlan(request.problem) {
    const Problem& q = request.problem;
    const bool n_to_m = q.form == Form::n_to_m;
    const PeakMemory<kN> memory(q, Workspace(request.workspace));
    store_root_tables<Length<kN>, Length<kN>>(memory.roots, request.stream);
    static_cast<FusedProblem&>(a_) = FusedProblem(q, kN, kN, memory.roots);
    a_.spectra = memory.spectra;
    a_.lefts = static_cast<std::uint32_t>(q.lefts);
    a_.items = static_cast<std::uint32_t>(q.pairs());
    a_.rights_of_left = Divider(q.pairs() / q.lefts);
    a_.rights_back = n_to_m ? static_cast<std::uint32_t>(q.rights) : 0;
    a_.request = ResultRequest(q);
    if (has_phase(q)) {
      // Moduli must not get small, and the weight contains all scales.
      a_.scale = 1;
      a_.phase = PhaseWeights(q, double{kN} * kN, 4);
    }
    a_.upsample = memory.upsample;
    if (is_upsampled(q)) {
      store_weights(a_.upsample, q.out_rows(), memory.row_weights, request.stream);
      store_weights(a_.upsample, q.out_cols(), memory.column_weights, request.stream);
    }
    gather_ = memory.gather;
    if (Gather::needed(q)) a_.phase.norms = gather_.norms;
    spectra_ = a_;
    spectra_.items = static_cast<std::uint32_t>(spectra_of(q));
    kernel_ = kernel_of(q);
    blocks_ = blocks_of(q);
  }

  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    Arrays<float> dense = arrays;
    launches_.begin(call);
    if (gather_.matrices > 0) {
      gather_.set(call, arrays);
      dense.left = gather_.left.to;
      dense.right = gather_.right.to;
      call.phase("build");
      launches_.run(gather_kernel, dim3(gather_.matrices), dim3(gather_.threads()), 0, call.stream,
                    gather_);
    }
    a_.set(dense);
    spectra_.set(dense);
    a_.request.out = spectra_.request.out = call.out;
    call.phase("forward");
    launches_.run(peak_kernel<kN, Work::spectra, false>, dim3(spectra_.items), dim3(kThreads),
                  PeakShared<kN>::bytes, call.stream, spectra_);
    call.phase("inverse");
    launches_.run(kernel_, dim3(blocks_), dim3(kThreads), PeakShared<kN>::bytes_of(problem_),
                  call.stream, a_);
  }

  static std::size_t workspace_bytes(const Problem& q) {
    return PeakMemory<kN>(q, Workspace(nullptr)).bytes;
  }

 private:
  using Kernel = void (*)(PeakArguments);
  static constexpr unsigned kThreads = 32 * BlockPeakTuning::kWarps<kN>;

  static Kernel kernel_of(const Problem& q) {
    if (q.form == Form::n_to_m) {
      return has_phase(q) ? peak_kernel<kN, Work::pairs, true>
                          : peak_kernel<kN, Work::pairs, false>;
    }
    return has_phase(q) ? peak_kernel<kN, Work::stored_left, true>
                        : peak_kernel<kN, Work::stored_left, false>;
  }
  static unsigned blocks_of(const Problem& q) {
    const Index resident = resident_blocks(reinterpret_cast<const void*>(kernel_of(q)), kThreads,
                                           PeakShared<kN>::bytes_of(q));
    return static_cast<unsigned>(std::min(resident, q.pairs()));
  }

  DependentLaunches launches_;
  Gather gather_;
  PeakArguments a_{}, spectra_{};
  Kernel kernel_ = nullptr;
  unsigned blocks_ = 0;
};

// Length of the problem's transforms; 0 if the variant has none that fits.
int length_of(const Problem& q) {
  if (q.fields.boundary == Boundary::zero) return Squares::square(q);
  const Index n = q.right.rows;
  const auto own = [&](auto length) { return n == decltype(length)::n && n == q.right.cols; };
  return Squares::with(static_cast<int>(n), own) ? static_cast<int>(n) : 0;
}

// Calls f(std::type_identity<plan of the length>).
template <typename F>
auto with_plan(const Problem& q, F f) {
  return Squares::with(length_of(q), [&](auto length) {
    return f(std::type_identity<PeakPlan<decltype(length)::n>>{});
  });
}

Support supports(const PlanRequest& request) {
  const Problem& q = request.problem;
  if (const Support fit = indices_fit(q); !fit) return fit;
  if (const Support fit = results_fit(q, true); !fit) return fit;
  if (length_of(q) == 0) {
    return no(q.fields.boundary == Boundary::zero
                  ? "a transform longer than 192"
                  : "boundary circular: matrices are not squares of 32, 48, 64, 96, 128 or 192");
  }
  const std::size_t bytes = Squares::with(
      length_of(q), [&](auto length) { return PeakShared<decltype(length)::n>::bytes_of(q); });
  // All sizes are checked against the device, since the emulation's limit may be lower than
  // shared_fits() assumes.
  if (bytes <= shared_limit()) return yes();
  return no("transforms of " + std::to_string(length_of(q)) + ": " + std::to_string(bytes) +
            " bytes of shared memory, and a block has " + std::to_string(shared_limit()));
}

std::size_t workspace_bytes(const PlanRequest& request) {
  return with_plan(request.problem, [&](auto type) {
    return decltype(type)::type::workspace_bytes(request.problem);
  });
}

std::unique_ptr<Plan> plan(const PlanRequest& request) {
  return with_plan(request.problem, [&](auto type) -> std::unique_ptr<Plan> {
    return std::make_unique<typename decltype(type)::type>(request);
  });
}

XCORR_VARIANT({
    .summary = "FFT correlation in one block whose result is a peak: the surface stays on the chip",
    .parent = "fused_fft_block",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::fft,
    .boundaries = {Boundary::zero, Boundary::circular},
    .scores = {ScoreKind::product, ScoreKind::covariance, ScoreKind::phase},
    .results = {ResultKind::surface, ResultKind::peak, ResultKind::peaks, ResultKind::above,
                ResultKind::sum},
    .views = {Views::dense, Views::windows},
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .plan = plan,
});

}  // namespace
}  // namespace xcorr::fused_fft
