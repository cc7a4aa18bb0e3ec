// Correlation by transforms with everything between input and output in the shared memory of one
// block: derived from cufft, whose five kernels write every spectrum to global memory and read it
// again. Beyond the paper.
//
// A block pads a real matrix while it reads it, transforms it in place, multiplies it by the
// conjugated spectrum of a left, transforms it back, and writes the outputs of the window. A padded
// matrix (a "tile") takes half the memory of a complex one (README.md of the folder above), so
// tiles of up to 192 x 192 fit the 227 KB of shared memory of a block.
//
// - The spectrum of a left serves all its rights. For n-to-m a first kernel transforms every matrix
//   once, and a second one does products and inverse transforms only. Stored spectra are in the
//   order of the lanes that made them and will use them, with 16 bytes per lane.
// - One warp processes a row or a column from its first pass to its last (block_tile.hpp), so a
//   right costs two barriers of the block. Between them some warps compute while others load or
//   store.
// - The second kernel starts while the first one runs, and the first one starts while the
//   previous call ends (DependentLaunches in launch.hpp).
// - The left's spectrum is multiplied by complex phases that rotate the circular result, so that
//   the window is one rectangle of it.
//
// left_spectrum  where the spectrum of a left lies
//                shared:    in shared memory, beside the tile. One launch, and every block
//                           transforms its left: for few pairs, up to length 128 on an H200.
//                workspace: in the workspace. Two launches, but half the shared memory, so more
//                           blocks on an SM: for many pairs.
//
// Limits: transforms are square, and kernels are compiled for each length.
// What limits it (H200): the pipe of shared and global accesses is 65 to 85 % busy, issue slots 56
// to 67 %. Registers on sm_90: 48 at length 64 (eight blocks per SM), 72 from 96 on. At 128 and 192
// the kernels that transform rights and multiply them by a left keep 16 bytes per thread on the
// stack.
#include "algorithms/blocks/plan.hpp"
#include "algorithms/fused_fft/fused_fft_block/kernel.hpp"
#include "algorithms/fused_fft/lengths.hpp"
#include "algorithms/fused_fft/roots.hpp"
#include "harness/variant.hpp"

namespace xcorr::fused_fft {
namespace {

using Squares = Lengths<32, 48, 64, 96, 128, 192>;

bool shares_left(const PlanRequest& request) {
  return request.params.get("left_spectrum") == "shared";
}

template <int kN>
class FusedPlan final : public DevicePlan<float> {
 public:
  explicit FusedPlan(const PlanRequest& request) : DevicePlan(request.problem) {
    const Problem& q = request.problem;
    const bool n_to_m = q.form == Form::n_to_m;
    auto* const roots = static_cast<Complex*>(request.workspace);
    store_root_tables<Length<kN>, Length<kN>>(roots, request.stream);
    static_cast<FusedProblem&>(a_) = FusedProblem(q, kN, kN, roots);
    a_.spectra = roots + 4 * kRootTable;
    a_.lefts = static_cast<std::uint32_t>(q.lefts);
    a_.items = static_cast<std::uint32_t>(q.pairs());
    const Index m = q.pairs() / q.lefts;
    a_.rights_of_left = Divider(m);
    a_.rights_back = n_to_m ? static_cast<std::uint32_t>(q.rights) : 0;
    shared_ = shared_bytes<kN>(shares_left(request));
    if (shares_left(request)) {
      kernel_ = fused_kernel<kN, Work::shared_left>;
      a_.chunk = static_cast<std::uint32_t>(
          ceil_div(m, std::clamp<Index>(blocks_of_device() / q.lefts, 1, m)));
      a_.chunks = static_cast<std::uint32_t>(ceil_div<Index>(m, a_.chunk));
      blocks_ = static_cast<unsigned>(q.lefts * a_.chunks);
      return;
    }
    spectra_ = a_;
    spectra_.items = static_cast<std::uint32_t>(q.lefts + (n_to_m ? q.rights : 0));
    kernel_ = n_to_m ? fused_kernel<kN, Work::pairs> : fused_kernel<kN, Work::stored_left>;
    blocks_ = static_cast<unsigned>(std::min(blocks_of_device(), q.pairs()));
  }

  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    a_.set(arrays);
    spectra_.set(arrays);
    launches_.begin(call);
    if (spectra_.items > 0) {
      call.phase("forward");
      launches_.run(fused_kernel<kN, Work::spectra>, dim3(spectra_.items), dim3(kThreads),
                    shared_bytes<kN>(false), call.stream, spectra_);
      call.phase("inverse");
    }
    launches_.run(kernel_, dim3(blocks_), dim3(kThreads), shared_, call.stream, a_);
  }

 private:
  static constexpr unsigned kThreads = 32 * BlockTile<kN>::warps;

  Index blocks_of_device() const {
    return resident_blocks(reinterpret_cast<const void*>(kernel_), kThreads, shared_);
  }

  DependentLaunches launches_;
  BlockArguments a_{}, spectra_{};
  void (*kernel_)(BlockArguments) = nullptr;
  std::size_t shared_ = 0;
  unsigned blocks_ = 0;
};

Support supports(const PlanRequest& request) {
  const Problem& q = request.problem;
  if (const Support fit = Squares::supports(q); !fit) return fit;
  const int n = Squares::square(q);
  const std::size_t bytes = Squares::with(
      n, [&](auto length) { return shared_bytes<decltype(length)::n>(shares_left(request)); });
  return shared_fits("transforms of " + std::to_string(n), bytes, true);
}

std::size_t workspace_bytes(const PlanRequest& request) {
  if (shares_left(request)) return kRootBytes;
  const Problem& q = request.problem;
  const Index spectra = q.lefts + (q.form == Form::n_to_m ? q.rights : 0);
  return kRootBytes + Squares::with(Squares::square(q), [&](auto length) {
           return static_cast<std::size_t>(spectra) * sizeof(Complex) *
                  BlockTile<decltype(length)::n>::spectrum;
         });
}

XCORR_VARIANT({
    .summary = "FFT correlation in one kernel: padding, transforms and product in shared memory",
    .parent = "cufft",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::fft,
    .axes = {{"left_spectrum", {"shared", "workspace"}}},
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .plan = Squares::plan<FusedPlan>,
});

}  // namespace
}  // namespace xcorr::fused_fft
