// Template matching by sums of products; the kernel that makes the sums also computes the score.
// Derived from tiled_direct, for templates that lie in their frame at every shift. Beyond the
// papers.
//
// A thread keeps the sums of 4 x 4 or 8 x 4 neighbouring shifts in registers. In each step it loads
// 4 columns of one new row of the template, and the 8 values of a row of the frame with which they
// are multiplied, from shared memory.
//
// - A separate kernel subtracts the mean of a template and divides it by its norm, so that the mean
//   of a window cancels. A score needs the products and a factor per shift, which is computed once
//   per frame for all templates (blocks/template_factors.hpp).
// - A block subtracts a pivot from the frame (README.md, Digits). If a window is far from the
//   pivot, its score is computed again by its definition in float64.
// - A block has as many tiles as the window needs, at most 256. If there are fewer, the threads
//   share slices of the template's rows, whose sums are added in shared memory. If there are few
//   blocks, each has a part of the template, and a second kernel adds the parts (parts.hpp).
// - The result peak: the surface stays in the workspace, and all blocks search it together
//   (blocks/peak_search.hpp).
//
// overlap_tile is the shifts of a thread, sy x sx: 4x4 and 8x4 have 21 and 43 FMAs per access of 16
// bytes. row_parts is the number of parts of the template's rows, each with separate blocks. If
// there is more than one, columns are divided too, until there are 264 blocks.
// Limits: with product and covariance an infinity or a NaN may reach outputs whose windows do not
// contain it. With ncc a point is refused if float32 sums of numbers of one sign would lose too
// many digits (most_terms_of_ncc).
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "algorithms/blocks/peak_search.hpp"
#include "algorithms/blocks/plan.hpp"
#include "algorithms/blocks/points.hpp"
#include "algorithms/device/launch.hpp"
#include "algorithms/template_matching/template_direct/parts.hpp"
#include "harness/variant.hpp"

namespace xcorr::template_matching {
namespace {

struct TileKernel {
  const char* name;
  int rows;
  void (*kernel)(DirectArguments);
  void (*of_parts)(DirectArguments, WindowParts, int);
};
constexpr std::array<TileKernel, 2> kKernels = {
    {{"4x4", 4, direct_kernel<4>, parts_kernel<4>}, {"8x4", 8, direct_kernel<8>, parts_kernel<8>}}};
const TileKernel& kernel_of(const PlanRequest& request) {
  return *std::find_if(kKernels.begin(), kKernels.end(), [&](const TileKernel& one) {
    return one.name == request.params.get("overlap_tile");
  });
}

// How a point divides a problem; shared_bytes is 0 if even the smallest panel does not fit.
struct DirectLayout {
  explicit DirectLayout(const PlanRequest& request) {
    const Problem& q = request.problem;
    const int rows = kernel_of(request).rows;
    const auto tiles_across = static_cast<int>(ceil_div<Index>(q.out_cols(), kTileCols));
    const auto tiles_down = static_cast<int>(ceil_div<Index>(q.out_rows(), rows));
    shape.across = std::min(tiles_across, TemplateTuning::kMostAcross);
    shape.down = std::min(tiles_down, TemplateTuning::kDirectThreads / shape.across);
    const int tiles = shape.across * shape.down;
    int row_parts =
        std::min<int>(request.params.get_int("row_parts"), static_cast<int>(q.left.rows));
    shape.part_rows = static_cast<int>(ceil_div<Index>(q.left.rows, row_parts));
    row_parts = static_cast<int>(ceil_div<Index>(q.left.rows, shape.part_rows));
    blocks_across = ceil_div(q.out_cols(), Index{shape.across} * kTileCols);
    const Index of_part = blocks_across * ceil_div(q.out_rows(), Index{shape.down} * rows);
    const auto wanted =
        row_parts > 1 ? ceil_div(TemplateTuning::kWantedBlocks, of_part * row_parts * q.pairs())
                      : Index{1};
    const Index col_parts = std::clamp(
        wanted, Index{1}, std::max<Index>(q.left.cols / TemplateTuning::kLeastPartCols, 1));
    shape.part_cols = static_cast<int>(ceil_div<Index>(q.left.cols, col_parts * 4) * 4);
    shape.of_part_cols = Divider(ceil_div<Index>(q.left.cols, shape.part_cols));
    shape.parts = row_parts * static_cast<int>(ceil_div<Index>(q.left.cols, shape.part_cols));
    // A slice takes kRows - 1 more steps than it has rows.
    constexpr int kLeastSliceRows = 4;
    shape.slices =
        std::clamp(shape.part_rows / kLeastSliceRows, 1, TemplateTuning::kDirectThreads / tiles);
    const int most_cols = std::min(TemplateTuning::kMostPanel, shape.part_cols);
    const int most_rows =
        std::max(1, std::min(shape.part_rows, TemplateTuning::kMostPanel) / shape.slices);
    for (const std::size_t most :
         {std::min(TemplateTuning::kWantedShared, shared_limit()), shared_limit()}) {
      for (int slice_rows = most_rows; slice_rows > 0 && shared_bytes == 0; slice_rows /= 2) {
        for (int cols = most_cols; cols >= 4 && shared_bytes == 0; cols = cols / 8 * 4) {
          // Prefer fewer rows to fewer columns.
          if (cols < std::min(most_cols, 16) && slice_rows > 1) break;
          const std::size_t need = bytes(rows, slice_rows, cols);
          if (need <= most) shared_bytes = need;
        }
      }
      if (shared_bytes > 0) break;
    }
    areas = Areas(q, Index{shape.down} * rows, Index{shape.across} * kTileCols);
    const Index of_pair = of_part * shape.parts;
    items = of_pair * q.pairs();
    shape.tiles = Divider(tiles);
    shape.of_across = Divider(shape.across);
    shape.blocks_across = Divider(blocks_across);
    shape.blocks_of_part = Divider(of_part);
    shape.blocks_of_pair = Divider(of_pair);
  }

  std::size_t bytes(int rows, int slice_rows, int cols) {
    const int template_rows = shape.slices * (slice_rows + rows - 1);
    shape.slice_rows = slice_rows;
    shape.panel_cols = cols;
    shape.frame_rows = shape.slices * slice_rows + shape.down * rows - 1;
    shape.frame_pitch = cols + shape.across * kTileCols;
    shape.frame_at = template_rows * cols;
    shape.of_frame_pitch = Divider(shape.frame_pitch);
    shape.of_panel_cols = Divider(cols);
    // The outputs use the same memory at the end.
    const int floats = std::max(shape.frame_at + shape.frame_rows * shape.frame_pitch,
                                shape.down * rows * shape.across * kTileCols);
    return static_cast<std::size_t>(floats) * sizeof(float);
  }

  // Number of terms added one after the other for an output: the products of a thread, the sums of
  // the slices, and those of the parts.
  Index terms(const Problem& q) const {
    const int panels = ceil_div(shape.part_rows, shape.slices * shape.slice_rows);
    const int rows = std::min(panels * shape.slice_rows, shape.part_rows);
    const Index cols = std::min<Index>(shape.part_cols, q.left.cols);
    return rows * cols + shape.slices + shape.parts;
  }

  DirectShape shape{};
  Areas areas;  // areas of shifts, one per block
  Index blocks_across = 0, items = 0;
  std::size_t shared_bytes = 0;
};

// The workspace of a point. Constructed on a null workspace it gives the size in bytes.
struct DirectMemory {
  DirectMemory(const PlanRequest& request, const DirectLayout& layout, Workspace workspace)
      : of_templates(template_memory(request.problem, workspace, layout.areas)) {
    const Problem& q = request.problem;
    const int parts = layout.shape.parts;
    if (asks_peak(q)) search = PeakSearchPlan(q, 0, workspace);
    if (parts > 1) sums = workspace.take<float>(parts * q.out_elements());
    if (has_window_parts(q, parts)) {
      windows.part_rows = static_cast<int>(ceil_div(
          q.left.rows, std::max<Index>(q.left.rows / TemplateTuning::kLeastWindowRows, 1)));
      windows.parts = static_cast<int>(ceil_div<Index>(q.left.rows, windows.part_rows));
      windows.sums = workspace.take<RunSums>(windows.parts * q.rights * q.out_size());
      const Index across = ceil_div<Index>(q.out_cols(), kFactorCols);
      const Index down = ceil_div<Index>(q.out_rows(), kTallFactors);
      windows.of_across = Divider(across);
      windows.of_down = Divider(down);
      windows.of_parts = Divider(windows.parts);
      windows.pivots = workspace.take<float>(across * down * q.rights);
      windows.terms = WindowTerms(q);
      windows.blocks = static_cast<int>(across * down * windows.parts * q.rights);
    }
    bytes = workspace.bytes();
  }
  static bool has_window_parts(const Problem& q, int parts) {
    return parts > 1 && is_normalised(q.fields.score.kind) &&
           fits_shared(FactorTile::bytes(q, kTallFactors));
  }
  TemplateMemory of_templates;
  PeakSearchPlan search;
  float* sums = nullptr;
  WindowParts windows{};
  std::size_t bytes = 0;
};

class TemplateDirectPlan final : public DevicePlan<float> {
 public:
  explicit TemplateDirectPlan(const PlanRequest& request)
      : DevicePlan(request.problem),
        layout_(request),
        memory_(request, layout_, Workspace(request.workspace)),
        factors_(request.problem, memory_.of_templates),
        kernel_(kernel_of(request)) {
    a_.q = TemplateProblem(request.problem);
    a_.shape = layout_.shape;
    a_.memory = memory_.of_templates;
    a_.items = layout_.items;
    a_.has_facts = memory_.windows.parts == 0;
    a_.largest = a_.q.is_ratio ? kLargestScaled : std::numeric_limits<float>::infinity();
  }

 private:
  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    launches_.begin(call);
    const bool peak = asks_peak(problem_), parts = a_.shape.parts > 1;
    const WindowParts& windows = memory_.windows;
    float* const out = peak ? memory_.search.surfaces() : arrays.out;
    a_.units = a_.memory.units != nullptr ? a_.memory.units : arrays.left;
    a_.right = arrays.right;
    a_.out = parts ? memory_.sums : out;
    const auto blocks = [](Index count) {
      return static_cast<unsigned>(std::min(count, TemplateTuning::kMostBlocks));
    };
    call.phase("build");
    if (windows.parts == 0) {
      factors_.enqueue(launches_, call.stream, arrays.left, arrays.right);
      call.phase("rest");
      launches_.run(kernel_.kernel, dim3(blocks(layout_.items)),
                    dim3(TemplateTuning::kDirectThreads), layout_.shared_bytes, call.stream, a_);
    } else {
      launches_.run(statistics_kernel, dim3(statistics_blocks(a_.q, a_.memory)),
                    dim3(kStatisticsThreads), 0, call.stream, a_.q, a_.memory, arrays.left,
                    arrays.right);
      call.phase("rest");
      const unsigned of_windows = blocks(windows.blocks);
      const std::size_t shared =
          std::max(layout_.shared_bytes, FactorTile::bytes(problem_, kTallFactors));
      launches_.run(kernel_.of_parts, dim3(of_windows + blocks(layout_.items)),
                    dim3(TemplateTuning::kDirectThreads), shared, call.stream, a_, windows,
                    static_cast<int>(of_windows));
    }
    if (parts) {
      const Index joining =
          ceil_div<Index>(problem_.out_elements(), TemplateTuning::kDirectThreads);
      launches_.run(join_parts_kernel, dim3(blocks(joining)), dim3(TemplateTuning::kDirectThreads),
                    0, call.stream, a_, windows, memory_.sums, a_.shape.parts, out);
    }
    if (peak) memory_.search.enqueue(launches_, call.stream, call.out);
  }

  DependentLaunches launches_;
  DirectLayout layout_;
  DirectMemory memory_;
  TemplateFactors factors_;
  DirectArguments a_{};
  const TileKernel& kernel_;
};

// Max number of terms that may be added one after the other for an output of ncc, whose products
// may all have the same sign. Then all additions round in one direction, and a sum of n terms loses
// up to n / 4 roundoffs. The check allows 0.8 sqrt(K) + 12 for K products (docs/design.md, Checks).
double most_terms_of_ncc(const Problem& q) {
  return 4 * (0.8 * std::sqrt(static_cast<double>(q.left.size())) + 12);
}

Support supports(const PlanRequest& request) {
  const Problem& q = request.problem;
  if (const Support fit = templates_fit(q); !fit) return fit;
  if (const Support fit = PeakSearchPlan::supports(q); !fit) return fit;
  if (const Support fit = TemplateFactors::supports(q); !fit) return fit;
  if (request.params.get_int("row_parts") > std::max<Index>(q.left.rows / 4, 1)) {
    return no("row_parts: less than 4 rows of the template in each");
  }
  const DirectLayout layout(request);
  if (layout.items > kIndexLimit) return no("more than 2^31 - 1 blocks");
  if (layout.shared_bytes == 0) return no("a step of a block does not fit its shared memory");
  const bool is_ncc = q.fields.score.kind == ScoreKind::ncc;
  if (is_ncc && static_cast<double>(layout.terms(q)) > most_terms_of_ncc(q)) {
    return no(
        "row_parts: float32 sums of ncc would be so long that they lose digits; use more parts");
  }
  return yes();
}

XCORR_VARIANT({
    .summary = "Templates in frames by register tiles, with the score where the sums are",
    .parent = "tiled_direct",
    .source = "beyond the papers",
    .backend = Backend::cuda,
    .axes = {{"overlap_tile", {"4x4", "8x4"}, true}, {"row_parts", {"1", "4", "16"}}},
    .scores = {ScoreKind::product, ScoreKind::covariance, ScoreKind::ncc, ScoreKind::zncc},
    .results = {ResultKind::surface, ResultKind::peak},
    .supports = supports,
    .workspace_bytes =
        [](const PlanRequest& request) {
          return DirectMemory(request, DirectLayout(request), Workspace(nullptr)).bytes;
        },
    .plan = make_plan<TemplateDirectPlan>,
});

}  // namespace
}  // namespace xcorr::template_matching
