// Correlation by transforms in the shared memory of one block, for padded lengths whose matrices do
// not fit there: the block transforms the even frequencies along x first, then the odd ones.
// Derived from fused_fft_block, whose tiles end at 192. Beyond the paper.
//
// Between its input and its result a pair does not leave the SM; with a large window only half of
// its outputs do. Even and odd frequencies are transforms of half the length, whose results are
// added (tile.hpp). Each half needs the whole matrix, which is read once from memory and once from
// the L2 cache.
//
// - Small window: the last passes along columns compute 4 or 6 of every 16 rows, only rows of the
//   window are transformed back, and its outputs lie in shared memory beside the tile. The length
//   is that of the matrix plus the reach of the window: 288 for 256 and +-32.
// - Large window: the outputs of the even half are stored in the workspace, which stays in the L2
//   cache. In the end the first real row of a complex row lies in the tile, where the complex row
//   was, and the second one in the workspace.
// - The largest output of each row is found in registers, while outputs are computed. The search
//   for the second peak takes rows in the order of these and ends when none exceeds what it has
//   found (scan.hpp).
// - A first kernel makes the spectra of lefts (n-to-m: of all matrices), with two blocks for each.
//
// Length 64 is for small problems and tests; fused_fft_block is faster there.
//
// Limits: a block has 136, 170 or 210 KiB of shared memory for lengths of 256, 288 and 320, so an
// SM has one block. A pair takes one SM, so there should be at least as many pairs as SMs. In
// n-to-m every pair reads the stored spectra of both matrices.
// What limits it (H200, estimate, docs/notebook/2026-11-peaks.md): issue slots and the pipe of
// shared and global accesses, each about 24 us per pair of 256 x 256. Registers on sm_90: 96 at 64
// and 256, 80 with 704 threads at 288, 124 at 320. No spills, except 4 bytes once per pair at 288.
#include <algorithm>
#include <string>

#include "algorithms/blocks/peaks.hpp"
#include "algorithms/blocks/plan.hpp"
#include "algorithms/fused_fft/fused_fft_halves/kernel.hpp"
#include "algorithms/fused_fft/lengths.hpp"
#include "algorithms/fused_fft/roots.hpp"
#include "harness/variant.hpp"

namespace xcorr::fused_fft {
namespace {

using Squares = Lengths<64, 256, 288, 320>;

bool is_circular(const Problem& q) { return q.fields.boundary == Boundary::circular; }
int length_of(const Problem& q) {
  return is_circular(q) ? static_cast<int>(q.left.rows) : Squares::square(q);
}
template <typename F>
auto with_length(const Problem& q, F f) {
  return Squares::with(length_of(q), [&](auto length) {
    return f(std::integral_constant<int, decltype(length)::n>{});
  });
}

// Whether the window's outputs fit beside the tile.
template <int kN>
bool is_small(const Problem& q) {
  using T = HalvesTile<kN>;
  return q.out_rows() <= T::kept_rows && q.out_cols() <= T::half &&
         halves_shared_bytes<kN>(static_cast<std::size_t>(q.out_size())) <= shared_limit();
}

template <int kN>
class HalvesPlan final : public DevicePlan<float> {
  using T = HalvesTile<kN>;

 public:
  explicit HalvesPlan(const PlanRequest& request) : DevicePlan(request.problem) {
    const Problem& q = request.problem;
    const bool n_to_m = q.form == Form::n_to_m;
    auto* const roots = static_cast<Complex*>(request.workspace);
    store_root_tables<Length<kN>, Length<kN>>(roots, request.stream);
    static_cast<FusedProblem&>(a_) = FusedProblem(q, kN, kN, roots);
    // The rotation puts the first output of the window first.
    a_.turn_y = static_cast<int>((kN - q.window.sy.first) % kN);
    a_.turn_x = static_cast<int>((kN - q.window.sx.first) % kN);
    a_.rows.first = a_.cols.first = 0;
    a_.lefts = static_cast<std::uint32_t>(q.lefts);
    a_.items = static_cast<std::uint32_t>(q.pairs());
    a_.rights_of_left = Divider(q.pairs() / q.lefts);
    a_.rights_back = n_to_m ? static_cast<std::uint32_t>(q.rights) : 0;
    a_.left_pairs = Divider(T::pairs_of(a_.left_rows));
    a_.right_pairs = Divider(T::pairs_of(a_.right_rows));
    a_.out_pairs = Divider(T::pairs_of(a_.rows.count));
    a_.request = ResultRequest(q);
    a_.spectra = roots + 4 * kRootTable;
    spectra_ = static_cast<unsigned>(q.lefts + (n_to_m ? q.rights : 0));
    a_.others = a_.spectra + static_cast<Index>(spectra_) * T::spectrum;
    const bool small = is_small<kN>(q);
    shared_ = halves_shared_bytes<kN>(small ? static_cast<std::size_t>(q.out_size()) : 0);
    kernel_ = n_to_m  ? small ? halves_kernel<kN, Work::pairs, T::kept>
                              : halves_kernel<kN, Work::pairs, 16>
               : small ? halves_kernel<kN, Work::stored_left, T::kept>
                      : halves_kernel<kN, Work::stored_left, 16>;
    threads_ = HalvesTuning<kN>::threads(n_to_m ? Work::pairs : Work::stored_left);
    const Index most = resident_blocks(reinterpret_cast<const void*>(kernel_), threads_, shared_);
    blocks_ = static_cast<unsigned>(std::min({most, q.pairs(), kMostBlocks}));
  }
  static constexpr Index kMostBlocks = 256;  // blocks for whose outputs the workspace has memory

  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    a_.set(arrays);
    a_.request.out = call.out;
    launches_.begin(call);
    call.phase("forward");
    launches_.run(halves_kernel<kN, Work::spectra, 16>, dim3(2 * spectra_),
                  dim3(HalvesTuning<kN>::threads(Work::spectra)), halves_shared_bytes<kN>(0),
                  call.stream, a_);
    call.phase("inverse");
    launches_.run(kernel_, dim3(blocks_), dim3(static_cast<unsigned>(threads_)), shared_,
                  call.stream, a_);
  }

 private:
  DependentLaunches launches_;
  HalvesArguments a_{};
  void (*kernel_)(HalvesArguments) = nullptr;
  std::size_t shared_ = 0;
  int threads_ = 0;
  unsigned spectra_ = 0, blocks_ = 0;
};

Support supports(const PlanRequest& request) {
  const Problem& q = request.problem;
  if (const Support fit = results_fit(q); !fit) return fit;
  if (is_circular(q)) {
    const bool is_length = Squares::with(length_of(q), [&](auto length) {
      return decltype(length)::n == q.left.rows && q.left.rows == q.left.cols;
    });
    if (!is_length) return no("circular: squares of 64, 256, 288 and 320 rows only");
    if (const Support fit = indices_fit(q); !fit) return fit;
  } else if (const Support fit = Squares::supports(q); !fit) {
    return fit;
  }
  const std::size_t bytes =
      with_length(q, [](auto n) { return halves_shared_bytes<decltype(n)::value>(0); });
  return shared_fits("transforms of " + std::to_string(length_of(q)), bytes, true);
}

std::size_t workspace_bytes(const PlanRequest& request) {
  const Problem& q = request.problem;
  return with_length(q, [&](auto n) {
    constexpr int kN = decltype(n)::value;
    using T = HalvesTile<kN>;
    const Index spectra = q.lefts + (q.form == Form::n_to_m ? q.rights : 0);
    const Index others =
        is_small<kN>(q) ? 0 : std::min(q.pairs(), HalvesPlan<kN>::kMostBlocks) * T::row_pairs;
    return static_cast<std::size_t>(kRootBytes) +
           sizeof(Complex) * static_cast<std::size_t>(spectra * T::spectrum + others * T::half);
  });
}

XCORR_VARIANT({
    .summary = "FFT correlation in one kernel, one half of the frequencies after the other; peaks",
    .parent = "fused_fft_block",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::fft,
    .boundaries = {Boundary::zero, Boundary::circular},
    .results = {ResultKind::surface, ResultKind::peak, ResultKind::peaks, ResultKind::above,
                ResultKind::sum},
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .plan = [](const PlanRequest& request) -> std::unique_ptr<Plan> {
      return with_length(request.problem, [&](auto n) -> std::unique_ptr<Plan> {
        return std::make_unique<HalvesPlan<decltype(n)::value>>(request);
      });
    },
});

}  // namespace
}  // namespace xcorr::fused_fft
