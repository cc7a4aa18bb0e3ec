// The host side of scores and detections of templates along one signal: what is supported, the
// workspace, and the launches of a call. score_kernel writes a surface and above_kernel lists the
// scores above a fixed threshold, each in one launch. `above:8mad` takes the kernels of survey.hpp,
// which names them in order.
#pragma once

#include <limits>
#include <memory>

#include "algorithms/blocks/overlap_geometry.hpp"
#include "algorithms/blocks/peaks.hpp"
#include "algorithms/blocks/plan.hpp"
#include "algorithms/blocks/workspace.hpp"
#include "algorithms/time_series/detection/count.hpp"
#include "algorithms/time_series/detection/factors.hpp"
#include "algorithms/time_series/detection/finish.hpp"
#include "algorithms/time_series/detection/threshold.hpp"
#include "harness/variant.hpp"

namespace xcorr::time_series {

// The list of candidates holds kLeastList + 2 x the capacity of the result, of which at most
// kMostList counts.
inline constexpr Index kLeastList = small_if_emulated(Index{1} << 16, 100);
inline constexpr Index kMostList = small_if_emulated(Index{1} << 22, 64);

// What a score requires of the products.
inline Question question_of(ScoreKind score) {
  Question asked = {};
  asked.normalised = is_normalised(score);
  asked.centred = score == ScoreKind::zncc;
  asked.limit = asked.normalised ? 1.0f : std::numeric_limits<float>::infinity();
  return asked;
}

// The histograms of the brackets of a precision class: bins, and bins per unit of the score.
struct BracketBins {
  int count;
  float per_unit;
};

// `Main` computes the products of all tiles. The survey, and finish_kernel where brackets fail, use
// WarpEngine instead. A block of `Main` and of finish_kernel has kWarps warps, or with kWarps 0 the
// parameter warps_per_block; a block of the survey has SeriesTuning::kSurveyThreads threads.
template <typename Maths, int kShifts, BracketBins kBins,
          typename Main = WarpEngine<Maths, kShifts / kColumns>, int kWarps = 0>
class DetectionPlan final : public DevicePlan<float> {
 public:
  explicit DetectionPlan(const PlanRequest& request)
      : DevicePlan(request.problem), shapes_(request) {
    Workspace workspace(request.workspace);
    fill_memory(request, workspace, memory_);
    const Problem& q = problem_;
    const Result& result = q.fields.result;
    asked_ = question_of(q.fields.score.kind);
    asked_.deviations = result.threshold;
    asked_.per_bin = kBins.per_unit;
    asked_.surveyed = is_surveyed(q);
    asked_.capacity = static_cast<unsigned long long>(result.capacity);
    const int tiles = shapes_.warps.tiles();
    survey_ = survey(q, shapes_);
    survey_.blocks = static_cast<int>(blocks(survey_kernel<Maths, kTiles>, survey_.warps,
                                             survey_.bytes(q.left.cols), survey_.tiles));
    finish_blocks_ = static_cast<unsigned>(std::min<Index>(
        resident_blocks(reinterpret_cast<const void*>(finish_kernel<Maths, kTiles>),
                        shapes_.warps.threads(), bytes(shapes_.warps, kFinishWords)),
        static_cast<Index>(tiles) * groups_));
    // Two tiles per block, and at least as many blocks as are resident. With more than 8 tiles for
    // each of these the resident blocks alone: each block computes the sums of parts.
    const auto factor_blocks = [&]<int kThreads>(FactorMemory<kThreads>*, auto kernel,
                                                 std::size_t shared_bytes) {
      const Index tiles_of_all = ceil_div(shapes_.factors(), FactorMemory<kThreads>::kTile);
      const Index resident =
          resident_blocks(reinterpret_cast<const void*>(kernel), kThreads, shared_bytes);
      const Index some = tiles_of_all <= 8 * resident ? ceil_div<Index>(tiles_of_all, 2) : 0;
      return static_cast<unsigned>(std::min(tiles_of_all, std::max(some, resident)));
    };
    factor_blocks_ =
        survey_.factors > 0
            ? factor_blocks(static_cast<FactorMemory<SeriesTuning::kSurveyThreads>*>(nullptr),
                            survey_kernel<Maths, kTiles>, survey_.bytes(q.left.cols))
            : factor_blocks(static_cast<FactorMemory<SeriesTuning::kFactorThreads>*>(nullptr),
                            factors_kernel<float>,
                            FactorMemory<SeriesTuning::kFactorThreads>::bytes(q.left.cols));
    const auto main_blocks = [&](auto kernel, int words) {
      return blocks(kernel, shapes_.main, bytes(shapes_.main, words), shapes_.main.tiles());
    };
    if (result.kind != ResultKind::above) {
      main_blocks_ = main_blocks(score_kernel<Main>, 0);
    } else if (result.of_deviations) {
      main_blocks_ = main_blocks(count_kernel<Main>, count_words(shapes_.main));
    } else {
      main_blocks_ = main_blocks(above_kernel<Main>, 0);
    }
  }

  static Support supports(const PlanRequest& request) {
    const Problem& q = request.problem;
    if (!matrix::supported()) return no("tensor cores with tf32 need compute capability 8.0");
    if (const Support is = supports_series(q); !is) return is;
    if (const Support fit = steps_fit(q); !fit) return fit;
    if (ceil_div<Index>(q.lefts, kGroup) > kGridLimitYZ) return no("more than 2^20 templates");
    if (const Support is = Main::supports(q); !is) return is;
    const Shapes shapes(request);
    const bool deviations = is_above_deviations(q);
    if (const Support fit =
            shared_fits("a part of the signal, the templates of its products, and counts",
                        bytes(shapes.main, deviations ? count_words(shapes.main) : 0));
        !fit) {
      return fit;
    }
    if (!deviations) {
      return shared_fits("sums of windows",
                         FactorMemory<SeriesTuning::kFactorThreads>::bytes(q.left.cols));
    }
    return shared_fits(
        "a panel of the templates and of the signal, and counts",
        std::max({bytes(shapes.warps, kFinishWords), survey(q, shapes).bytes(q.left.cols),
                  FactorMemory<SeriesTuning::kFactorThreads>::bytes(q.left.cols)}));
  }
  static std::size_t workspace_bytes(const PlanRequest& request) {
    Workspace workspace(nullptr);
    Memory memory;
    fill_memory(request, workspace, memory);
    return workspace.bytes();
  }

 private:
  static constexpr int kTiles = kShifts / kColumns;
  using Warps = WarpEngine<Maths, kTiles>;

  struct Shapes {
    explicit Shapes(const PlanRequest& request)
        : warps(Warps::shape(request.problem, threads(request))),
          main(Main::shape(request.problem, threads(request))) {}
    static int threads(const PlanRequest& request) {
      return (kWarps > 0 ? kWarps : request.params.get_int("warps_per_block")) * warp::kSize;
    }
    // Factors of all tiles of shifts: the larger of the two engines' numbers.
    int factors() const { return static_cast<int>(std::max(warps.shifts(), main.shifts())); }
    typename Warps::Shape warps;
    typename Main::Shape main;
  };

  // Dynamic shared memory of a kernel that has `words` in addition to those of its products.
  template <typename Shape>
  static std::size_t bytes(const Shape& shape, int words) {
    return static_cast<std::size_t>(shape.words + words) * sizeof(std::uint32_t);
  }
  static int count_words(const typename Main::Shape& shape) {
    return CountMemory<Main>::words(shape.threads());
  }
  // The number of blocks is set later.
  static SurveyShape survey(const Problem& q, const Shapes& shapes) {
    const WarpShape warps = Warps::shape(q, SeriesTuning::kSurveyThreads);
    const int tiles = warps.tiles();
    const bool makes_factors = is_surveyed(q) && q.left.cols <= kMostOwnLength;
    return {
        warps,
        std::min(tiles, std::max(tiles / SeriesTuning::kSurveyShare, SeriesTuning::kLeastSurvey)),
        1, makes_factors ? shapes.factors() : 0};
  }
  // Blocks per group of templates that are on the device at once, at most `most`.
  template <typename Kernel, typename Shape>
  unsigned blocks(Kernel kernel, const Shape& shape, std::size_t shared_bytes, Index most) const {
    const Index resident =
        resident_blocks(reinterpret_cast<const void*>(kernel), shape.threads(), shared_bytes);
    return static_cast<unsigned>(std::clamp<Index>(resident / groups_, 1, most));
  }
  static bool is_above_deviations(const Problem& q) {
    return q.fields.result.kind == ResultKind::above && q.fields.result.of_deviations;
  }
  static bool is_surveyed(const Problem& q) {
    // Indices of histograms have 32 bits.
    const Index bins = ceil_div<Index>(q.lefts, kGroup) * kGroup * 3 * kBins.count;
    return is_above_deviations(q) && is_normalised(q.fields.score.kind) &&
           q.out_cols() >= SeriesTuning::kSurveyedShifts && bins < Index{1} << 31;
  }

  static void fill_memory(const PlanRequest& request, Workspace& workspace, Memory& memory) {
    const Problem& q = request.problem;
    const Index padded = ceil_div<Index>(q.lefts, kGroup) * kGroup;
    const bool surveyed = is_surveyed(q), deviations = is_above_deviations(q);
    set_chunks(memory, q.right.cols);
    memory.bins = kBins.count;
    memory.templates = workspace.take<float>(q.left_elements());
    memory.units = workspace.take<float>(q.lefts);
    memory.factors = workspace.take<float>(Shapes(request).factors());
    memory.means = workspace.take<float>(q.right.rows * memory.chunks);
    memory.centres = workspace.take<float>(surveyed ? q.lefts : 0);
    memory.brackets = workspace.take<Bracket>(surveyed ? padded : 0);
    memory.selections = workspace.take<Selection>(deviations ? padded : 0);
    memory.thresholds = workspace.take<Threshold>(deviations ? padded : 0);
    const Index list =
        std::min(q.out_elements(), kLeastList + 2 * std::min(q.fields.result.capacity, kMostList));
    memory.candidate_list = static_cast<std::uint32_t>(surveyed ? list : 0);
    memory.candidates = workspace.take<Detection>(memory.candidate_list);
    memory.state = workspace.take<State>(1);
    const std::size_t cleared = workspace.bytes() - sizeof(State);
    memory.spread = workspace.take<unsigned long long>(surveyed ? padded : 0);
    memory.survey = workspace.take<std::uint32_t>(surveyed ? padded * Survey::kBins : 0);
    memory.counts = workspace.take<Counts>(surveyed ? padded : 0);
    memory.histogram = workspace.take<std::uint32_t>(surveyed ? padded * 3 * kBins.count : 0);
    memory.digits = workspace.take<std::uint32_t>(deviations ? padded * 2 * kDigits : 0);
    memory.cleared =
        static_cast<std::uint32_t>((workspace.bytes() - cleared) / sizeof(std::uint32_t));
  }

  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    const Problem& q = problem_;
    const bool above = q.fields.result.kind == ResultKind::above;
    Question asked = asked_;
    asked.header = above ? static_cast<AboveHeader*>(call.out) : nullptr;
    const auto stream = call.stream;
    launches_.begin(call);
    const auto preparing =
        static_cast<unsigned>(series_.templates + series_.channels * memory_.parts);
    launches_.run(prepare_kernel<float>, dim3(preparing), dim3(SeriesTuning::kPrepareThreads), 0,
                  stream, series_, asked, memory_, arrays.left, arrays.right);
    if (survey_.factors == 0) {
      launches_.run(factors_kernel<float>, dim3(factor_blocks_), dim3(SeriesTuning::kFactorThreads),
                    FactorMemory<SeriesTuning::kFactorThreads>::bytes(q.left.cols), stream, series_,
                    asked, memory_, shapes_.factors(), arrays.right);
    }
    const Products products{series_, asked, memory_, arrays.right};
    const auto over_all = [&](auto kernel, int words, auto... arguments) {
      launches_.run(kernel, dim3(main_blocks_, static_cast<unsigned>(groups_)),
                    dim3(static_cast<unsigned>(shapes_.main.threads())), bytes(shapes_.main, words),
                    stream, products, shapes_.main, arguments...);
    };
    if (!above) {
      over_all(score_kernel<Main>, 0, arrays.out);
      return;
    }
    if (!q.fields.result.of_deviations) {
      over_all(above_kernel<Main>, 0, least_float(q.fields.result.threshold));
      return;
    }
    if (asked.surveyed) {
      const unsigned making = survey_.factors > 0 ? factor_blocks_ : 0;
      launches_.run(
          survey_kernel<Maths, kTiles>,
          dim3(static_cast<unsigned>(survey_.blocks) + making, static_cast<unsigned>(groups_)),
          dim3(SeriesTuning::kSurveyThreads), survey_.bytes(q.left.cols), stream, products,
          survey_);
      const dim3 templates(static_cast<unsigned>(series_.templates));
      launches_.run(brackets_kernel<kShifts>, templates, dim3(warp::kSize), 0, stream, asked,
                    memory_);
      over_all(count_kernel<Main>, count_words(shapes_.main));
      launches_.run(threshold_kernel<kBins.count>, templates, dim3(SeriesTuning::kThresholdThreads),
                    0, stream, series_, asked, memory_);
    }
    finishes_.begin(call);
    finishes_.run(finish_kernel<Maths, kTiles>, finish_blocks_,
                  static_cast<unsigned>(shapes_.warps.threads()),
                  bytes(shapes_.warps, kFinishWords), stream, products, shapes_.warps);
  }

  const Series series_{SeriesShape(problem_)};
  const int groups_ = ceil_div(series_.templates, kGroup);
  const Shapes shapes_;
  Memory memory_ = {};
  Question asked_ = {};
  SurveyShape survey_ = {};
  unsigned main_blocks_ = 1;  // per group of templates
  unsigned factor_blocks_ = 1, finish_blocks_ = 1;
  DependentLaunches launches_;
  GridLaunches finishes_;  // blocks of finish_kernel wait for each other
};

}  // namespace xcorr::time_series
