// Correlation by transforms in the registers of warps, for small matrices: derived from
// fused_fft_block, in which the lanes of a warp share every row and every column. Beyond the paper.
//
// Here a lane has a whole row, then a whole column. A warp transforms two padded tiles of 32 x 32,
// or four of 16 x 16, with one exchange in each direction through a part of shared memory that
// belongs to the warp (kernel.hpp). There are no tables of roots.
//
// - A block keeps the spectrum of one left in shared memory. Its first warp computes it while the
//   other warps transform their first rights. This takes the only barrier of the block.
// - Rows of the next rights are loaded before the rows of the current ones are transformed.
// - The warp makes results dense in its shared memory, with the alignment that they have in global
//   memory, and stores them with 16 bytes per lane.
// - For n-to-m, rights are transformed again for each left: a forward transform, of which half is
//   zeros, is a quarter of the work, and one launch is cheaper than two.
//
// A block has the number of warps, at most 8 or 10, with which all pairs are on the device at once.
//
// Limits: square transforms of at most 32. A lane with 64 values has 90 KB of instructions and
// waits for them a quarter of the time, so fused_fft_block is faster for longer transforms.
// What limits it (H200): the pipe of shared accesses is half busy; a right of 16 x 16 is 1,250
// instructions of a warp. Registers on sm_90: 94 and 127, no spills; 16 warps per SM.
#include "algorithms/blocks/plan.hpp"
#include "algorithms/fused_fft/fused_fft_warp/kernel.hpp"
#include "algorithms/fused_fft/fused_fft_warp/tuning.hpp"
#include "algorithms/fused_fft/lengths.hpp"
#include "algorithms/fused_fft/roots.hpp"
#include "harness/variant.hpp"

namespace xcorr::fused_fft {
namespace {

using Squares = Lengths<16, 32>;

template <int kN>
class LaneRowsPlan final : public DevicePlan<float> {
  using T = LaneTile<kN>;

 public:
  explicit LaneRowsPlan(const PlanRequest& request) : DevicePlan(request.problem) {
    const Problem& q = request.problem;
    auto* const roots = static_cast<Complex*>(request.workspace);
    store_root_tables<Length<kN>, Length<kN>>(roots, request.stream);
    static_cast<FusedProblem&>(a_) = FusedProblem(q, kN, kN, roots);
    const Index m = q.pairs() / q.lefts;
    a_.rights_of_left = static_cast<std::uint32_t>(m);
    a_.rights_back = q.form == Form::n_to_m ? static_cast<std::uint32_t>(m) : 0;
    quads_ = q.left.cols % 4 == 0 && q.right.cols % 4 == 0;
    a_.small = std::max({q.left.rows, q.left.cols, q.right.rows, q.right.cols}) <= kN / 2;
    const Index processors =
        resident_blocks(reinterpret_cast<const void*>(warp_kernel<kN>),
                        32 * WarpTuning::most_warps(kN), shared_bytes(WarpTuning::most_warps(kN)));
    // As many blocks as the device holds at once, each with as few warps as that needs.
    const Index chunks = std::clamp<Index>(processors / q.lefts, 1, m);
    const Index chunk = ceil_div(m, chunks);
    a_.chunk = static_cast<std::uint32_t>(chunk);
    a_.chunks = static_cast<std::uint32_t>(ceil_div<Index>(m, chunk));
    warps_ = static_cast<unsigned>(
        std::min<Index>(WarpTuning::most_warps(kN), ceil_div<Index>(chunk, T::tiles) + 1));
    blocks_ = static_cast<unsigned>(q.lefts * a_.chunks);
  }

  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    a_.set(arrays);
    a_.quads = quads_ && reinterpret_cast<std::uintptr_t>(a_.left) % sizeof(Quad) == 0 &&
               reinterpret_cast<std::uintptr_t>(a_.right) % sizeof(Quad) == 0;
    launches_.begin(call);
    launches_.run(warp_kernel<kN>, dim3(blocks_), dim3(32 * warps_), shared_bytes(warps_),
                  call.stream, a_);
  }

  static std::size_t shared_bytes(unsigned warps) {
    return sizeof(Complex) * (T::spectrum + warps * T::tiles * T::elements);
  }

 private:
  DependentLaunches launches_;
  WarpArguments a_{};
  bool quads_ = false;
  unsigned warps_ = 0, blocks_ = 0;
};

Support supports(const PlanRequest& request) {
  const Problem& q = request.problem;
  if (const Support fit = Squares::supports(q); !fit) return fit;
  const std::size_t bytes = Squares::with(Squares::square(q), [](auto length) {
    constexpr int kN = decltype(length)::n;
    return LaneRowsPlan<kN>::shared_bytes(WarpTuning::most_warps(kN));
  });
  return shared_fits("the tiles of a block", bytes);
}
XCORR_VARIANT({
    .summary = "FFT correlation in the registers of a warp: a lane holds a row or a column",
    .parent = "fused_fft_block",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::fft,
    .supports = supports,
    .workspace_bytes = [](const PlanRequest&) -> std::size_t { return kRootBytes; },
    .plan = Squares::plan<LaneRowsPlan>,
});

}  // namespace
}  // namespace xcorr::fused_fft
