// Template matching by transforms in the shared memory of one block, overlap-save: a frame is cut
// into tiles as long as the transform, and each tile gives the outputs that do not wrap. Derived
// from fused_fft_block. Beyond the papers. One of them states that the mean of each window rules
// out transforms; but the mean cancels, since the elements of a template without its mean add up to
// 0 (template_problem.hpp).
//
// - A kernel makes the factors of all shifts of a frame, 1 / the norm of the window, once for all
//   templates, in float64 from sums of strips of the frame (frame_statistics.hpp). It runs beside
//   the kernel that makes the templates' spectra (frame_factors.hpp).
// - A block processes one tile. It subtracts a pivot, the median of some of the tile's values, so
//   that an offset costs no digits. Transform, products, inverse transforms, scores and the first
//   largest score happen in shared memory. The spectra of several templates come from the L2 cache.
// - For the result peak the surface stays in the workspace. The largest output of each tile decides
//   which few tiles the search for the second peak must read (tile_search.hpp).
//
// A tile of n x n gives (n - template + 1)^2 outputs. An SM holds 6, 2 or 1 tiles of 64, 128
// or 192.
//
// Limits: a template has at most 3/4 of the rows and columns of a tile. An infinity, a NaN or a
// very large value spoils the outputs of its tile.
#include <algorithm>
#include <string>

#include "algorithms/blocks/plan.hpp"
#include "algorithms/blocks/points.hpp"
#include "algorithms/fused_fft/lengths.hpp"
#include "algorithms/fused_fft/roots.hpp"
#include "algorithms/fused_fft/template_fft/kernel.hpp"
#include "algorithms/fused_fft/template_fft/tile_search.hpp"
#include "harness/variant.hpp"

namespace xcorr::fused_fft {
namespace {

using Tiles = PointAxis<Values<64, 128, 192>>;
// Kernels: spectra of templates; tiles with one template; tiles with several templates.
using SpectraKernel = void (*)(FusedProblem, Complex*, int, int, TemplateMemory, std::uint32_t*,
                               int);
using OneKernel = void (*)(TemplateFftArguments);
using ManyKernel = void (*)(ManyTemplates);
const bool kSpectra = add_kernels<Tiles>(
    XCORR_ID, [](auto n) -> SpectraKernel { return template_spectra_kernel<n>; });
const bool kOne = add_kernels<Tiles>(
    XCORR_ID, [](auto n) -> OneKernel { return template_tiles_kernel<n, TemplateFftArguments>; });
const bool kMany = add_kernels<Tiles>(
    XCORR_ID, [](auto n) -> ManyKernel { return template_tiles_kernel<n, ManyTemplates>; });
template <typename Kernel>
Kernel kernel_of(const PlanRequest& request) {
  return find_kernel<Kernel>(XCORR_ID, {request.params.get_int("tile")});
}

// Launch parameters of one transform length.
struct TileFacts {
  unsigned threads, spectra_threads;
  std::size_t shared_bytes;
  Index spectrum;
  void (*store_roots)(Complex*, void*);
};
TileFacts facts_of(const PlanRequest& request) {
  return Lengths<64, 128, 192>::with(request.params.get_int("tile"), [](auto length) {
    constexpr int kN = decltype(length)::n;
    return TileFacts{TemplateTuning<kN>::threads, TemplateTuning<kN>::spectra_threads,
                     TemplateShared<kN>::bytes, BlockTile<kN>::spectrum,
                     store_root_tables<Length<kN>, Length<kN>>};
  });
}

// Largest number of blocks for spectra, and of blocks for frame facts, in one launch.
constexpr int kMostBlocks = static_cast<int>(small_if_emulated(65536, 3));

bool is_peak(const Problem& q) { return q.fields.result.kind == ResultKind::peak; }
bool has_many(const Problem& q) { return q.form == Form::n_to_m && q.lefts > 1; }

// How a frame is cut into the smallest number of tiles of n x n, with outputs spread as evenly as
// possible.
struct TemplateTiles {
  TemplateTiles(const Problem& q, int n)
      : down(ceil_div(q.out_rows(), n - q.left.rows + 1)),
        across(ceil_div(q.out_cols(), n - q.left.cols + 1)),
        rows(ceil_div(q.out_rows(), down)),
        cols(ceil_div(q.out_cols(), across)),
        all(down * across * q.rights) {}
  Index down, across;
  Index rows, cols;  // outputs per tile
  Index all;
};

// The number of groups into which the templates of a tile are divided, so that the last round of
// blocks is short. Each group costs one more transform of the tile.
Index groups_of(Index tiles, Index templates, Index blocks) {
  Index best = 1;
  double least = 0;
  for (Index groups = 1; groups <= templates; ++groups) {
    const auto rounds = static_cast<double>(ceil_div(tiles * groups, blocks));
    const double cost = rounds * static_cast<double>(1 + ceil_div(templates, groups));
    if (groups == 1 || cost < least) best = groups, least = cost;
  }
  return best;
}

// The workspace of a point. Constructed on a null workspace it gives the size in bytes.
struct TemplateFftMemory {
  TemplateFftMemory(const PlanRequest& request, Index blocks, Workspace workspace) {
    const Problem& q = request.problem;
    const TemplateTiles tiles(q, request.params.get_int("tile"));
    const Index spectrum = facts_of(request).spectrum;
    roots = workspace.take<Complex>(4 * kRootTable);
    strips = FrameStrips(q);
    of_templates = template_memory(q, workspace, strips.parts(q));
    if (is_normalised(q.fields.score.kind)) {
      strips.sums = workspace.take<RunSums>(q.rights * strips.count * q.right.cols);
      strips.pivots = workspace.take<float>(q.rights);
      strips.ready = workspace.take<std::uint32_t>(q.rights);
    }
    spectra = workspace.take<Complex>(q.lefts * spectrum);
    if (has_many(q)) own = workspace.take<Complex>(blocks * spectrum);
    if (is_peak(q)) {
      search = TileSearchPlan(q, tiles.rows, tiles.cols, tiles.down, tiles.across, workspace);
    }
    bytes = workspace.bytes();
  }
  Complex *roots = nullptr, *spectra = nullptr, *own = nullptr;
  TemplateMemory of_templates;
  FrameStrips strips;
  TileSearchPlan search;
  std::size_t bytes = 0;
};

Index blocks_of(const PlanRequest& request) {
  const Problem& q = request.problem;
  const TemplateTiles tiles(q, request.params.get_int("tile"));
  const TileFacts facts = facts_of(request);
  const auto* const kernel = has_many(q)
                                 ? reinterpret_cast<const void*>(kernel_of<ManyKernel>(request))
                                 : reinterpret_cast<const void*>(kernel_of<OneKernel>(request));
  const Index resident =
      resident_blocks(kernel, static_cast<int>(facts.threads), facts.shared_bytes);
  const Index groups = has_many(q) ? groups_of(tiles.all, q.lefts, resident) : 1;
  return std::min(resident, tiles.all * groups);
}

class TemplateFftPlan final : public DevicePlan<float> {
 public:
  explicit TemplateFftPlan(const PlanRequest& request)
      : DevicePlan(request.problem),
        facts_(facts_of(request)),
        spectra_(kernel_of<SpectraKernel>(request)),
        one_(kernel_of<OneKernel>(request)),
        many_(kernel_of<ManyKernel>(request)),
        blocks_(blocks_of(request)),
        memory_(request, blocks_, Workspace(request.workspace)) {
    const Problem& q = request.problem;
    const int n = request.params.get_int("tile");
    const TemplateTiles tiles(q, n);
    facts_.store_roots(memory_.roots, request.stream);
    Problem tile = q;  // the problem of one template in one tile
    tile.right = {n, n};
    tile.window.sy = {0, tiles.rows - 1};
    tile.window.sx = {0, tiles.cols - 1};
    static_cast<FusedProblem&>(a_) = FusedProblem(tile, n, n, memory_.roots);
    // Outputs of a tile begin at its first row and column; the result is not rotated.
    a_.turn_y = a_.turn_x = a_.rows.first = a_.cols.first = 0;
    a_.q = TemplateProblem(q);
    a_.memory = memory_.of_templates;
    a_.spectra = memory_.spectra;
    a_.ready = memory_.strips.ready;
    if (a_.ready != nullptr) clear_counts(request.stream);
    a_.own = memory_.own;
    a_.tiles = static_cast<int>(tiles.down * tiles.across);
    a_.tops = is_peak(q) ? memory_.search.tops() : nullptr;
    const Index groups = has_many(q) ? groups_of(tiles.all, q.lefts, blocks_) : 1;
    a_.group = static_cast<int>(ceil_div(q.lefts, groups));
    a_.of_groups = Divider(groups);
    a_.of_tiles = Divider(a_.tiles);
    a_.of_tiles_across = Divider(tiles.across);
    a_.items = static_cast<std::uint32_t>(tiles.all * groups);
  }

 private:
  void clear_counts(void* stream) {
    clear(a_.ready, static_cast<std::size_t>(problem_.rights) * sizeof(std::uint32_t), stream);
  }

  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    launches_.begin(call);
    // A call that failed between its launches leaves counters that are not 0.
    if (a_.ready != nullptr && !counts_are_back_) clear_counts(call.stream);
    counts_are_back_ = false;
    a_.left = a_.memory.units != nullptr ? a_.memory.units : arrays.left;
    a_.frames = arrays.right;
    a_.surfaces = is_peak(problem_) ? memory_.search.surfaces() : arrays.out;
    const dim3 threads(facts_.threads);
    const TemplateProblem& q = a_.q;
    call.phase("build");
    if (a_.memory.units != nullptr) {
      const int parts = q.is_ratio ? q.rights * a_.memory.parts : 0;
      launches_.run(frame_statistics_kernel, dim3(static_cast<unsigned>(q.lefts + parts)),
                    dim3(kStatisticsThreads), 0, call.stream, q, a_.memory, memory_.strips,
                    arrays.left, arrays.right);
    }
    call.phase("forward");
    const int of_templates = std::min(q.lefts, kMostBlocks);
    const int of_frames = q.is_ratio ? std::min(q.rights, kMostBlocks) : 0;
    launches_.run(spectra_, dim3(static_cast<unsigned>(of_templates + of_frames)),
                  dim3(facts_.spectra_threads), facts_.shared_bytes, call.stream, a_, a_.spectra,
                  q.lefts, of_templates, a_.memory, a_.ready, q.rights);
    if (q.is_ratio) {
      const dim3 windows(static_cast<unsigned>(ceil_div(q.out_cols, kFactorCols)),
                         grid_extent(ceil_div(q.out_rows, kStripRows)), grid_extent(q.rights));
      launches_.run(frame_factors_kernel, windows, dim3(kFactorsThreads),
                    factors_shared_bytes(problem_), call.stream, q, a_.memory, memory_.strips,
                    arrays.right);
    }
    call.phase("inverse");
    const dim3 blocks(static_cast<unsigned>(blocks_));
    if (has_many(problem_)) {
      launches_.run(many_, blocks, threads, facts_.shared_bytes, call.stream, a_);
    } else {
      launches_.run(one_, blocks, threads, facts_.shared_bytes, call.stream, a_);
    }
    counts_are_back_ = true;
    call.phase("rest");
    if (is_peak(problem_)) memory_.search.enqueue(launches_, call.stream, call.out);
  }

  DependentLaunches launches_;
  TileFacts facts_;
  SpectraKernel spectra_;
  OneKernel one_;
  ManyKernel many_;
  Index blocks_;
  TemplateFftMemory memory_;
  ManyTemplates a_{};
  bool counts_are_back_ = true;  // the counters are 0
};

Support supports(const PlanRequest& request) {
  const Problem& q = request.problem;
  if (const Support fit = templates_fit(q); !fit) return fit;
  if (is_peak(q)) {
    if (const Support fit = PeakSearchPlan::supports(q); !fit) return fit;
  }
  const int n = request.params.get_int("tile");
  if (4 * std::max(q.left.rows, q.left.cols) > 3 * n) {
    return no("tile=" + std::to_string(n) + ": a template of more than 3/4 of its rows or columns");
  }
  if (TemplateTiles(q, n).all * q.lefts > kIndexLimit) return no("more than 2^31 - 1 tiles");
  const std::size_t bytes = std::max(facts_of(request).shared_bytes, factors_shared_bytes(q));
  return shared_fits("tile=" + std::to_string(n), bytes, true);
}

XCORR_VARIANT({
    .summary = "Templates in frames by transforms of tiles in one block, with scores in one pass",
    .parent = "fused_fft_block",
    .source = "beyond the papers",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::fft,
    .axes = {Tiles::axis("tile")},
    .scores = {ScoreKind::product, ScoreKind::covariance, ScoreKind::ncc, ScoreKind::zncc},
    .results = {ResultKind::surface, ResultKind::peak},
    .supports = supports,
    .workspace_bytes =
        [](const PlanRequest& request) {
          return TemplateFftMemory(request, blocks_of(request), Workspace(nullptr)).bytes;
        },
    .plan = make_plan<TemplateFftPlan>,
});

}  // namespace
}  // namespace xcorr::fused_fft
