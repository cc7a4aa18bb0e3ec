// Correlation by the transform theorem with everything between input and output in one block's
// shared memory: a step from cufft, whose five kernels carry every spectrum through global memory.
// Beyond the paper. Inputs are read once and padded on the way, outputs are written once, in the
// definition's layout; the Hermitian half of one real matrix is what a tile holds
// (fused_fft_tile.hpp), so up to 192 x 192 fit a block of 227 KB.
//
// - A block keeps the spectrum of its left for all the rights that it takes, or reads it from the
//   workspace, where a first kernel put it. For n-to-m that kernel transforms every matrix once and
//   the second is product and inverse only. Spectra lie in the order of the lanes that made them
//   and will use them, 16 bytes a lane.
// - A row, and a column, belong to one warp from their first pass to their last
//   (fused_fft_block.hpp), so a right costs two barriers of the block, not eight, and the warps of
//   a block drift apart: some compute while others move data.
// - The second kernel starts while the first one runs and has its twiddles when that ends; the
// first
//   one starts while the call before it ends (launch.hpp).
// - Only rows with data are transformed; matrices that fill at most half of their padding, as equal
//   shapes do, have first passes of half the inputs.
// - The window never wraps around: the left's spectrum carries phases that rotate the result.
// - Twiddles are a table, correctly rounded from double. No plan beyond it.
//
// Forms: all four, any shape and window; fp32. Parameter, run time:
//   left_spectrum  shared: beside the tile of the block; one launch, and the left is transformed
//                  once a block: for few pairs. workspace: two launches, but half the shared
//                  memory, so more blocks an SM: for many.
// Compile time: the length, 32, 48, 64, 96, 128 or 192, the shortest that both axes allow.
//
// Limits: square transforms (fused_fft_lanes has lengths for each axis); a tile, with
// left_spectrum=shared a spectrum as well, in the shared memory of a block: shared ends at 128.
//
// Registers on sm_90: 48 at 64 (eight blocks an SM), 72 from 96 on; the kernels that have a left
// and transform rights keep the number of the pair on the stack at 128 and 192, 16 bytes a thread.
// What bounds it: the pipe of shared and global accesses, 65 to 85 % busy, then issue, 60 %.
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
class FusedPlan final : public Plan {
 public:
  explicit FusedPlan(const PlanRequest& request) {
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

  void compute(const Call& call) override {
    for (Arguments* a : {&a_, &spectra_}) {
      a->left = call.lefts<float>();
      a->right = call.rights<float>();
      a->out = call.outs<float>();
    }
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
  Arguments a_{}, spectra_{};
  void (*kernel_)(Arguments) = nullptr;
  std::size_t shared_ = 0;
  unsigned blocks_ = 0;
};

// f(std::integral_constant of the length).
template <typename F>
auto with_length(const PlanRequest& request, F f) {
  return Squares::with(Squares::square(request.problem), [&](auto length) {
    return f(std::integral_constant<int, decltype(length)::n>{});
  });
}

Support supports(const PlanRequest& request) {
  const Problem& q = request.problem;
  if (const Support fit = Squares::supports(q); !fit) return fit;
  const std::size_t bytes = with_length(
      request, [&](auto n) { return shared_bytes<decltype(n)::value>(shares_left(request)); });
  if (bytes > shared_limit()) {
    return no("transforms of " + std::to_string(Squares::square(q)) + " need " +
              std::to_string(bytes) + " bytes of shared memory, a block has " +
              std::to_string(shared_limit()));
  }
  return yes();
}

std::size_t workspace_bytes(const PlanRequest& request) {
  if (shares_left(request)) return kRootBytes;
  const Problem& q = request.problem;
  const Index spectra = q.lefts + (q.form == Form::n_to_m ? q.rights : 0);
  return kRootBytes + with_length(request, [&](auto n) {
           return static_cast<std::size_t>(spectra) * sizeof(Complex) *
                  BlockTile<decltype(n)::value>::spectrum;
         });
}

std::unique_ptr<Plan> plan(const PlanRequest& request) {
  return with_length(request, [&](auto n) -> std::unique_ptr<Plan> {
    return std::make_unique<FusedPlan<decltype(n)::value>>(request);
  });
}

XCORR_VARIANT({
    .summary = "Transform theorem in one kernel: padding, transforms and product in shared memory",
    .parent = "cufft",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::fft,
    .axes = {{"left_spectrum", {"shared", "workspace"}}},
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .plan = plan,
});

}  // namespace
}  // namespace xcorr::fused_fft
