// Direct correlation with register tiles whose result is a peak, or another result that is not a
// surface. Derived from tiled_direct: a block has a rectangle of tiles of shifts for 1, 8 or 32
// pairs. tiled_direct writes it to global memory; here the block finishes each pair in shared
// memory, with one warp per pair, or with all warps if it has one pair (epilogue.hpp). Beyond the
// paper.
//
// If the surface of a pair is one rectangle, its record is written at once. A surface of several
// rectangles is not written either:
//
// - Neighbouring rectangles share two rows, or four columns, which both compute. Each output
//   belongs to one rectangle that has all its neighbours and decides whether it is a local maximum
//   (rectangles.hpp).
// - peak: a rectangle stores the record of its first local maximum, and as many of the following
//   maxima as ensure that one is outside the 5 x 5 outputs around the peak of the pair: mostly one
//   or two, at most ten, in 112 bytes. Then one warp per pair selects the peak and the second peak
//   (combine.hpp).
// - peaks:k: a rectangle stores its k first local maxima with their records, which are merged.
// - sum: a rectangle stores a sum. above: each rectangle lists its outputs. Nothing is shared.
//
// Shared rows and columns cost FMAs: 8 % for rectangles of 32 x 256 shifts, 34 % for 16 x 16 (32
// pairs per warp). Where surfaces are small, the point whose rectangle holds a whole surface is the
// fastest. For covariance a first kernel stores the matrices without their means.
//
// Parameters: as in tiled_direct. Limits: those of tiled_direct. peak:upsample is refused, because
// it needs the surface; above with a threshold of deviations, because its medians need all outputs
// before the first can be listed; peaks:k with k > 32 where a surface spans several blocks, because
// the lists would be as large as the surface. Not measured yet (docs/notebook/2026-11-peaks.md).
#include <array>

#include "algorithms/blocks/workspace.hpp"
#include "algorithms/tiled/panels.hpp"
#include "algorithms/tiled/tiled_direct_peak/centre.hpp"
#include "algorithms/tiled/tiled_direct_peak/combine.hpp"
#include "algorithms/tiled/tiled_direct_peak/epilogue.hpp"
#include "algorithms/tiled/tiled_direct_peak/rectangles.hpp"
#include "algorithms/tiled/tiled_direct_peak/tuning.hpp"
#include "harness/variant.hpp"

namespace xcorr::tiled {
namespace {

struct PeakArguments {
  Rectangles rectangles;
  ResultRequest request;
  char* lists;  // in the workspace; null where the surface of a pair is one rectangle
  Index list_bytes;
  int scratch_at;  // offset of the scratch of BlockTeam in shared memory
};

template <int kRows, int kCols>
__global__ void __launch_bounds__(kTileThreads, PeakTuning::kBlocks)
    tiled_direct_peak_kernel(DeviceProblem q, Tiling t, PeakArguments a,
                             const float* __restrict__ left, const float* __restrict__ right,
                             float* __restrict__ out) {
  float* const shared = dynamic_shared<float>();
  const TileBlock block(t, blockIdx.x);
  const LanePairs pairs(q, t.pairs, block.group);
  const int row = centre_out(block.row, t.rows_count, t.rows_centre);
  const int col = centre_out(static_cast<int>(block.shift), t.cols_count, t.cols_centre);
  // Rectangles begin earlier by the rows and columns that they share with previous ones.
  Tiling sharing = t;
  sharing.sy_base -= row * a.rectangles.shared_rows;
  sharing.sx_base -= col * a.rectangles.shared_cols;
  const TilePosition<kRows, kCols> at(q, sharing, pairs, block, shared);

  RegisterTile<kRows, kCols> tile;
  add_panels(tile, q, t, pairs, at, left, right, shared);
  if (a.request.kind == ResultKind::surface) {
    write_tiles(q, t, pairs, at, tile, shared, out);
  } else {
    auto* const scratch =
        reinterpret_cast<TeamScratch*>(reinterpret_cast<char*>(shared) + a.scratch_at);
    finish_tiles(q, t, a.rectangles, pairs, at, row, col, tile, shared, scratch, a.request, a.lists,
                 a.list_bytes);
  }
}

using Kernel = void (*)(DeviceProblem, Tiling, PeakArguments, const float*, const float*, float*);
template <int kRows, int kCols>
TileKernel<Kernel> make_kernel(const char* name) {
  return {name, {kRows, kCols, PeakTuning::kBlocks}, tiled_direct_peak_kernel<kRows, kCols>};
}
const std::array<TileKernel<Kernel>, 2> kKernels = {make_kernel<4, 8>("4x8"),
                                                    make_kernel<8, 4>("8x4")};

bool is_centred(const Problem& q) { return q.fields.score.kind == ScoreKind::covariance; }
struct DirectPeakMemory {
  DirectPeakMemory(const Problem& q, const RectanglePlan& tiles, Workspace workspace)
      : lefts(workspace.take<float>(is_centred(q) ? q.left_elements() : 0)),
        rights(workspace.take<float>(is_centred(q) ? q.right_elements() : 0)),
        lists(workspace.take<char>(static_cast<Index>(tiles.list_bytes()) * q.pairs() *
                                   tiles.rectangles.count)),
        bytes(workspace.bytes()) {}
  float *lefts, *rights;  // without their means
  char* lists;
  std::size_t bytes;
};

class DirectPeakPlan final : public DevicePlan<float> {
 public:
  explicit DirectPeakPlan(const PlanRequest& request)
      : DevicePlan(request.problem),
        kernel_(kernel_of(kKernels, request)),
        tiles_(request, kernel_.shape, shared_limit()),
        memory_(problem_, tiles_, Workspace(request.workspace)) {
    a_.rectangles = tiles_.rectangles;
    a_.request = ResultRequest(problem_);
    a_.list_bytes = static_cast<Index>(tiles_.list_bytes());
    a_.scratch_at = static_cast<int>(tiles_.scratch_at);
    if (tiles_.is_combined()) a_.lists = memory_.lists;
  }

  static std::size_t workspace_bytes(const PlanRequest& request) {
    const RectanglePlan tiles(request, kernel_of(kKernels, request).shape, shared_limit());
    return DirectPeakMemory(request.problem, tiles, Workspace(nullptr)).bytes;
  }

 private:
  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    const Problem& q = problem_;
    const float *left = arrays.left, *right = arrays.right;
    if (is_centred(q)) {
      call.phase("build");
      const Index matrices = q.lefts + q.rights;
      launch(centre_kernel, dim3(static_cast<unsigned>(std::min<Index>(matrices, kGridLimitYZ))),
             dim3(PeakTuning::kCentreWarps * warp::kSize), 0, call.stream, left, right,
             memory_.lefts, memory_.rights, q.lefts, q.left.size(), matrices, q.right.size());
      left = memory_.lefts;
      right = memory_.rights;
      call.phase("rest");
    }
    a_.request.out = call.out;
    if (a_.request.kind == ResultKind::above) {
      clear(call.out, sizeof(AboveHeader), call.stream);
    }
    launch(kernel_.kernel, dim3(static_cast<unsigned>(tiles_.blocks)), dim3(kTileThreads),
           tiles_.shared_bytes, call.stream, DeviceProblem(q), tiles_.t, a_, left, right,
           arrays.out);
    if (!tiles_.is_combined()) return;
    const CombineArguments combine{
        a_.request, a_.rectangles, q.pairs(),        static_cast<int>(q.out_cols()),
        a_.lists,   a_.list_bytes, DeviceProblem(q), left,
        right};
    launch(combine_kernel,
           dim3(static_cast<unsigned>(ceil_div<Index>(q.pairs(), PeakTuning::kCombineWarps))),
           dim3(PeakTuning::kCombineWarps * warp::kSize), 0, call.stream, combine);
  }

  TileKernel<Kernel> kernel_;
  RectanglePlan tiles_;
  DirectPeakMemory memory_;
  PeakArguments a_{};
};

XCORR_VARIANT({
    .summary = "tiled_direct whose result is a peak: surfaces are not written",
    .parent = "tiled_direct",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .axes = {{"overlap_tile", {"4x8", "8x4"}, true},
             {"pairs_per_warp", {"1", "8", "32"}},
             {"warps_across", {"1", "4", "8"}}},
    .scores = {ScoreKind::product, ScoreKind::covariance},
    .results = {ResultKind::surface, ResultKind::peak, ResultKind::peaks, ResultKind::above,
                ResultKind::sum},
    .supports =
        [](const PlanRequest& request) {
          if (const Support fit = one_sum_fits(request); !fit) return fit;
          return RectanglePlan::supports(request, kernel_of(kKernels, request).shape);
        },
    .workspace_bytes = DirectPeakPlan::workspace_bytes,
    .plan = make_plan<DirectPeakPlan>,
});

}  // namespace
}  // namespace xcorr::tiled
