// Host side of the passes of Pearson's correlation over tiles of a template (pearson_passes.hpp).
#pragma once

#include <algorithm>
#include <string>

#include "algorithms/blocks/peak_search.hpp"
#include "algorithms/blocks/plan.hpp"
#include "algorithms/template_matching/pearson_passes.hpp"

namespace xcorr::template_matching {

// Whether each area of shifts has launches of its own, of at most kShiftsPerLaunch shifts: then an
// area has as many whole rows of the window as fit, and the launches are few.
inline constexpr Index kShiftsPerLaunch = 192;
inline bool launches_by_area(const PlanRequest& request) {
  return request.params.has("launches") && request.params.get("launches") != "one";
}

inline PearsonShape pearson_shape(const PlanRequest& request) {
  const Problem& q = request.problem;
  const std::string tile = request.params.get("template_tile");
  const std::size_t cross = tile.find('x');
  PearsonShape s{};
  s.tile_rows = std::min<int>(std::stoi(tile.substr(0, cross)), static_cast<int>(q.left.rows));
  s.tile_cols = std::min<int>(std::stoi(tile.substr(cross + 1)), static_cast<int>(q.left.cols));
  const Index tiles_across = ceil_div<Index>(q.left.cols, s.tile_cols);
  s.tiles = static_cast<int>(tiles_across * ceil_div<Index>(q.left.rows, s.tile_rows));
  constexpr Index kMostAcross = 32;
  const bool by_area = launches_by_area(request);
  const Index threads =
      by_area ? kShiftsPerLaunch : Index{request.params.get_int("shifts_per_block")};
  s.across = static_cast<int>(std::min(q.out_cols(), by_area ? threads : kMostAcross));
  s.down = static_cast<int>(std::min(q.out_rows(), threads / s.across));
  const Index areas_across = ceil_div<Index>(q.out_cols(), s.across);
  const Index areas = areas_across * ceil_div<Index>(q.out_rows(), s.down);
  s.items = static_cast<int>(std::min(areas * s.tiles, kIndexLimit));
  s.of_across = Divider(s.across);
  s.of_tiles = Divider(s.tiles);
  s.of_tiles_across = Divider(tiles_across);
  s.of_areas_across = Divider(areas_across);
  s.of_staged_cols = Divider(s.tile_cols + s.across - 1);
  return s;
}

inline std::size_t pearson_shared_bytes(const PearsonShape& s) {
  const int frame = (s.tile_rows + s.down - 1) * (s.tile_cols + s.across - 1);
  return sizeof(float) * static_cast<std::size_t>(frame + s.tile_rows * s.tile_cols);
}

// The workspace. Constructed on a null workspace it gives the size in bytes.
struct PearsonMemory {
  PearsonMemory(const PlanRequest& request, Workspace workspace)
      : of_templates(template_memory(request.problem, workspace, areas_of(request))) {
    const Problem& q = request.problem;
    if (is_normalised(q.fields.score.kind)) {
      scales = workspace.take<FrameScale>(q.rights * of_templates.areas.count);
      means = workspace.take<float>(q.rights * q.out_size());
      norms = workspace.take<float>(q.rights * q.out_size());
    }
    partial = workspace.take<char>(partial_bytes(request));
    if (asks_peak(q)) search = PeakSearchPlan(q, 0, workspace);
    bytes = workspace.bytes();
  }
  static Areas areas_of(const PlanRequest& request) {
    const PearsonShape s = pearson_shape(request);
    return {request.problem, s.down, s.across};
  }
  // Bytes of the partial sums of the pass that needs the most.
  static Index partial_bytes(const PlanRequest& request) {
    const Problem& q = request.problem;
    const Index sums = pearson_shape(request).tiles * q.out_size();
    const bool ratio = is_normalised(q.fields.score.kind);
    return sums * std::max<Index>(q.pairs() * Index{sizeof(float)},
                                  ratio ? q.rights * Index{sizeof(RunSums)} : 0);
  }
  TemplateMemory of_templates;
  PeakSearchPlan search;
  FrameScale* scales = nullptr;
  float *means = nullptr, *norms = nullptr;
  char* partial = nullptr;
  std::size_t bytes = 0;
};

inline std::size_t pearson_workspace_bytes(const PlanRequest& request) {
  return PearsonMemory(request, Workspace(nullptr)).bytes;
}

// Enqueues the kernels that the passes of scores depend on.
template <typename Launches>
void enqueue_statistics(Launches& launches, void* stream, const PearsonArguments& a,
                        const float* left, const float* right) {
  launches.run(statistics_kernel, dim3(statistics_blocks(a.q, a.memory)), dim3(kStatisticsThreads),
               0, stream, a.q, a.memory, left, right);
  const int parts = std::min(ceil_div(a.memory.areas.count, TemplateTuning::kScaleThreads),
                             TemplateTuning::kMostScaleBlocks);
  launches.run(area_scales_kernel, dim3(static_cast<unsigned>(parts), grid_extent(a.q.rights)),
               dim3(TemplateTuning::kScaleThreads), 0, stream, a.q, a.memory, a.scales);
}

// The threads of a block of a kernel that sums tiles.
inline unsigned pearson_threads(const PearsonShape& s) {
  return static_cast<unsigned>(ceil_div(s.across * s.down, warp::kSize) * warp::kSize);
}

// The frames or pairs of a pass.
template <Pass kPass>
int items_of(const TemplateProblem& q) {
  return kPass == Pass::numerators ? q.pairs : q.rights;
}
// The grid of the kernel of a pass that sums tiles, in one launch.
template <Pass kPass>
dim3 sums_grid(const PearsonArguments& a) {
  return dim3(static_cast<unsigned>(a.shape.items), grid_extent(items_of<kPass>(a.q)));
}

// Launches add_tiles_kernel of a pass.
template <Pass kPass>
void launch_add_tiles(DependentLaunches& launches, const PearsonArguments& a, void* stream) {
  const Index outputs = Index{a.q.out_rows} * a.q.out_cols;
  const Index blocks =
      std::min(ceil_div<Index>(items_of<kPass>(a.q) * outputs, TemplateTuning::kAddThreads),
               TemplateTuning::kMostAddBlocks);
  launches.run(add_tiles_kernel<kPass>, dim3(static_cast<unsigned>(blocks)),
               dim3(TemplateTuning::kAddThreads), 0, stream, a);
}

// Launches both kernels of a pass.
struct TilePasses {
  TilePasses(const PlanRequest& /*request*/, const PearsonMemory& /*memory*/) {}
  template <Pass kPass>
  void run(DependentLaunches& launches, const PearsonArguments& a, void* stream) {
    launches.run(tile_sums_kernel<kPass>, sums_grid<kPass>(a), dim3(pearson_threads(a.shape)),
                 pearson_shared_bytes(a.shape), stream, a);
    launch_add_tiles<kPass>(launches, a, stream);
  }
};

// kCentred: the numerator does not subtract the mean of the window, since it cancels, and one pass
// computes all that denominators need. `Passes` launches the kernels of a pass.
template <bool kCentred, typename Passes = TilePasses>
class PearsonPlan : public DevicePlan<float> {
 public:
  explicit PearsonPlan(const PlanRequest& request)
      : DevicePlan(request.problem),
        memory_(request, Workspace(request.workspace)),
        passes_(request, memory_) {
    a_.q = TemplateProblem(request.problem);
    a_.shape = pearson_shape(request);
    a_.memory = memory_.of_templates;
    a_.partial = memory_.partial;
    a_.scales = memory_.scales;
    a_.means = memory_.means;
    a_.norms = memory_.norms;
    a_.less_mean = !kCentred && a_.q.is_ratio;
  }

 protected:
  const Passes& passes() const { return passes_; }

 private:
  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    launches_.begin(call);
    a_.units = a_.memory.units != nullptr ? a_.memory.units : arrays.left;
    a_.right = arrays.right;
    a_.out = asks_peak(problem_) ? memory_.search.surfaces() : arrays.out;
    if (a_.q.is_ratio) {
      call.phase("build");
      enqueue_statistics(launches_, call.stream, a_, arrays.left, arrays.right);
      call.phase("forward");  // averages of frames; with kCentred denominators too
      if constexpr (kCentred) {
        run<Pass::both>(call.stream);
      } else {
        run<Pass::averages>(call.stream);
        call.phase("inverse");  // denominators of frames
        run<Pass::denominators>(call.stream);
      }
    }
    call.phase("hadamard");  // numerators and fractions
    run<Pass::numerators>(call.stream);
    call.phase("rest");
    if (asks_peak(problem_)) memory_.search.enqueue(launches_, call.stream, call.out);
  }

  template <Pass kPass>
  void run(void* stream) {
    passes_.template run<kPass>(launches_, a_, stream);
  }

  DependentLaunches launches_;
  PearsonMemory memory_;
  Passes passes_;
  PearsonArguments a_{};
};

inline Support pearson_supports(const PlanRequest& request) {
  const Problem& q = request.problem;
  if (const Support fit = templates_fit(q); !fit) return fit;
  if (const Support fit = PeakSearchPlan::supports(q); !fit) return fit;
  const PearsonShape s = pearson_shape(request);
  if (s.items >= kIndexLimit) return no("more than 2^31 - 2 tiles of all areas of shifts");
  constexpr Index kMostBytes = Index{1} << 32;
  if (const Index bytes = PearsonMemory::partial_bytes(request); bytes > kMostBytes) {
    return no("sums of all tiles take " + std::to_string(bytes) +
              " bytes, and 4 GiB are the limit: take larger tiles");
  }
  return shared_fits("a tile with its area of shifts", pearson_shared_bytes(s));
}

}  // namespace xcorr::template_matching
