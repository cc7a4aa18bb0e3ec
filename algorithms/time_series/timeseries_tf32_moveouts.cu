// A matched filter on tensor cores in tf32 whose templates have moveouts: right matrix k is the
// signal with the offsets of template k, one per channel. No two templates share a signal, so that
// 16 templates do not form a matrix. Derived from timeseries_tf32_detect, with its templates,
// factors of shifts and lines; here one template is spread over 16 shifts.
//
// With shift = 16 u + v, the scores of a template are a product of 16 x K by K x U matrices, K = T
// + 15:
//   left[v][k] = template[k - v], 0 outside the template: the same for every u
//   right[k][u] = signal[16 u + k]: columns that begin 16 samples apart and overlap
// The number of products is (T + 15) / T times the useful number, and neither matrix is stored. In
// a step of 16 rows k, lane 4 g + t loads rows 4 t to 4 t + 3 of column g with one access of 16
// bytes: two of them are its rows of a first product, two of a second product. The left matrix has
// its columns in the same order.
//
// Problem: n-to-mn with m = 1; dense matrices, or rows with an offset each. Limits: compute
// capability 8.0; 65535 pairs; a factor of 4 bytes per output in the workspace; otherwise those of
// timeseries_tf32_detect. Conformance passed on an H200 on 2026-11-23.
#include "algorithms/blocks/overlap_geometry.hpp"
#include "algorithms/blocks/plan.hpp"
#include "algorithms/time_series/detection/plan.hpp"
#include "harness/variant.hpp"

namespace xcorr::time_series {
namespace {

constexpr int kSpread = 16;  // shifts over which a template is spread
constexpr int kThreads = SeriesTuning::kMoveoutThreads;
constexpr int kTiles = static_cast<int>(small_if_emulated(8, 1));
constexpr int kWarpColumns = kTiles * kColumns,
              kBlockColumns = kThreads / warp::kSize * kWarpColumns;
constexpr int kBlockShifts = kSpread * kBlockColumns;
constexpr int kPanelRows = SeriesTuning::kMostPanel;  // rows k of a panel, a multiple of 16

// The memory of one pair. Arrays over pairs start at the elements of this pair.
__device__ __forceinline__ Memory memory_of(const Memory& memory, const Series& q, int pair,
                                            int factors) {
  Memory own = memory;
  own.templates += static_cast<Index>(pair) * q.channels * q.length;
  own.units += pair;
  own.factors += static_cast<Index>(pair) * factors;
  own.means += static_cast<Index>(pair) * q.channels * memory.chunks;
  return own;
}

// The rows of all matrices of a side.
struct Side {
  const float* first;
  const Index* offsets;  // null: dense
  Index pitch;           // of dense rows
  __device__ __forceinline__ Rows<float> of(int matrix, int channels) const {
    const Index row = static_cast<Index>(matrix) * channels;
    return offsets ? Rows<float>{first, 0, offsets + row} : Rows<float>{first + row * pitch, pitch};
  }
};

// grid: the template and the parts of the signal (x), pairs (y).
__global__ void __launch_bounds__(SeriesTuning::kPrepareThreads, SeriesTuning::kMoveoutBlocks)
    prepare_pairs_kernel(Series q, Question asked, Memory memory, Side left, Side right) {
  wait_for_previous();
  const int pair = static_cast<int>(blockIdx.y);
  const Memory own = memory_of(memory, q, pair, 0);
  if (blockIdx.x == 0) {
    prepare_template(q, asked, left.of(pair, q.channels), own.templates, own.units);
    return;
  }
  const int i = static_cast<int>(blockIdx.x) - 1, channel = i / memory.parts;
  mean_of_chunks(q, own, channel, i % memory.parts, right.of(pair, q.channels).row(channel));
}

// grid: tiles in a stride (x), pairs (y).
__global__ void __launch_bounds__(SeriesTuning::kFactorThreads, SeriesTuning::kMoveoutBlocks)
    pair_factors_kernel(Series q, Question asked, Memory memory, int factors, Side right) {
  wait_for_previous();
  const int pair = static_cast<int>(blockIdx.y);
  make_factors<SeriesTuning::kFactorThreads>(
      q, asked, memory_of(memory, q, pair, factors), factors, right.of(pair, q.channels),
      static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x));
}

// Dynamic shared memory: the words of a panel of the template, with 16 words before them, and the
// words of the signal that its products need.
constexpr int kTemplateWords = kSpread + kPanelRows;
constexpr int kSignalWords = kBlockShifts + kPanelRows;

// grid: tiles of shifts (x), pairs (y).
__global__ void __launch_bounds__(kThreads, SeriesTuning::kMoveoutBlocks)
    moveouts_kernel(Series q, Question asked, Memory memory, int factors, Side right,
                    float* __restrict__ out) {
  wait_for_previous();
  auto* const words = dynamic_shared<std::uint32_t>();
  std::uint32_t* const signal = words + kTemplateWords;
  const int pair = static_cast<int>(blockIdx.y), thread = static_cast<int>(threadIdx.x);
  const int block_shift = static_cast<int>(blockIdx.x) * kBlockShifts;
  const int warp_column = thread / warp::kSize * kWarpColumns;
  const Memory own = memory_of(memory, q, pair, factors);
  const Line line = line_of_tile(q, asked, own, block_shift, kBlockShifts);
  const float start = start_of(asked, own, line, 0);
  Sums<kTiles> sums;
#pragma unroll
  for (int j = 0; j < kTiles; ++j) {
#pragma unroll
    for (int i = 0; i < 4; ++i) sums.d[j][i] = start;
  }
  const int rows = ceil_div(q.length + kSpread - 1, kSpread) * kSpread;  // K
  const int lane = warp::lane(), g = lane / 4, t = lane % 4;
#pragma unroll 1
  for (int channel = 0; channel < q.channels; ++channel) {
    const float* const of_template = own.templates + static_cast<Index>(channel) * q.length;
    const LevelledPart samples{right.of(pair, q.channels).row(channel), q.first + block_shift,
                               q.pitch, 0, line};
#pragma unroll 1
    for (int begin = 0; begin < rows; begin += kPanelRows) {
      const int panel = smaller(kPanelRows, rows - begin);
      block::barrier();
      for (int i = thread; i < kSpread + panel; i += kThreads) {
        words[i] = matrix::to_tf32(load_or_zero(of_template, begin - kSpread + i, q.length));
      }
#pragma unroll 4
      for (int i = thread; i < kBlockShifts + panel; i += kThreads) {
        signal[i] = matrix::to_tf32(samples(begin + i));
      }
      block::barrier();
      const std::uint32_t* const mine = words + kSpread + 4 * t - g;
      const auto* const columns =
          reinterpret_cast<const Words*>(signal + (warp_column + g) * kSpread + 4 * t);
#pragma unroll 2
      for (int k = 0; k < panel; k += kSpread) {
        std::uint32_t left[2][4];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const std::uint32_t* const from = mine + k + 2 * i;
          left[i][0] = from[0];
          left[i][1] = from[-8];
          left[i][2] = from[1];
          left[i][3] = from[-7];
        }
#pragma unroll
        for (int j = 0; j < kTiles; ++j) {
          const Words b = columns[(j * kColumns * kSpread + k) / 4];
          matrix::add_product_tf32(sums.d[j], left[0], b.of[0], b.of[1]);
          matrix::add_product_tf32(sums.d[j], left[1], b.of[2], b.of[3]);
        }
      }
    }
  }
  float* const to = out + static_cast<Index>(pair) * q.shifts;
  const int first = block_shift + (warp_column + 2 * t) * kSpread + g;
  const auto shift_of = [&](int j, int i) {
    return first + (j * kColumns + i % 2) * kSpread + i / 2 * 8;
  };
  const bool wide = line.is_wide();
  // All loads come before the first store: otherwise the compiler places loads after stores.
  // Factors extend to the end of the tile.
#pragma unroll
  for (int j = 0; j < kTiles; ++j) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float factor = own.factors[shift_of(j, i)];
      const float sum = wide ? without_scale(sums.d[j][i], factor) : sums.d[j][i];
      sums.d[j][i] = score_of(sum, factor, asked.limit);
    }
  }
#pragma unroll
  for (int j = 0; j < kTiles; ++j) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (shift_of(j, i) < q.shifts) store_last(to + shift_of(j, i), sums.d[j][i]);
    }
  }
}

struct MoveoutMemory {
  MoveoutMemory(const PlanRequest& request, Workspace workspace) {
    const Problem& q = request.problem;
    tiles = static_cast<int>(ceil_div<Index>(q.out_cols(), kBlockShifts));
    set_chunks(memory, q.right.cols);
    memory.templates = workspace.take<float>(q.left_elements());
    memory.units = workspace.take<float>(q.lefts);
    memory.factors = workspace.take<float>(q.lefts * tiles * kBlockShifts);
    memory.means = workspace.take<float>(q.lefts * q.right.rows * memory.chunks);
    memory.state = workspace.take<State>(1);  // make_factors() counts in it; not read
    bytes = workspace.bytes();
  }
  Memory memory = {};
  int tiles;
  std::size_t bytes;
};

class MoveoutPlan final : public DevicePlan<float> {
 public:
  explicit MoveoutPlan(const PlanRequest& request)
      : DevicePlan(request.problem),
        made_(request, Workspace(request.workspace)),
        asked_(question_of(request.problem.fields.score.kind)) {}

 private:
  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    const Side left{arrays.left, call.left_view.offsets, problem_.left.cols};
    const Side right{arrays.right, call.right_view.offsets, problem_.right.cols};
    const Memory& memory = made_.memory;
    const auto pairs = static_cast<unsigned>(series_.templates);
    const int factors = made_.tiles * kBlockShifts;
    launches_.begin(call);
    launches_.run(prepare_pairs_kernel,
                  dim3(static_cast<unsigned>(1 + series_.channels * memory.parts), pairs),
                  dim3(SeriesTuning::kPrepareThreads), 0, call.stream, series_, asked_, memory,
                  left, right);
    launches_.run(
        pair_factors_kernel,
        dim3(static_cast<unsigned>(std::min(
                 ceil_div(factors, FactorMemory<SeriesTuning::kFactorThreads>::kTile), 2048)),
             pairs),
        dim3(SeriesTuning::kFactorThreads),
        FactorMemory<SeriesTuning::kFactorThreads>::bytes(problem_.left.cols), call.stream, series_,
        asked_, memory, factors, right);
    launches_.run(moveouts_kernel, dim3(static_cast<unsigned>(made_.tiles), pairs), dim3(kThreads),
                  (kTemplateWords + kSignalWords) * sizeof(std::uint32_t), call.stream, series_,
                  asked_, memory, factors, right, arrays.out);
  }

  const Series series_{SeriesShape(problem_)};
  MoveoutMemory made_;
  Question asked_;
  DependentLaunches launches_;
};

Support supports(const PlanRequest& request) {
  const Problem& q = request.problem;
  if (!matrix::supported()) return no("tensor cores with tf32 need compute capability 8.0");
  if (q.lefts != q.rights) {
    return no("moveouts: " + std::to_string(q.rights) + " right matrices of " +
              std::to_string(q.lefts) + " templates, not one of each");
  }
  Problem one = q;  // the signal of one template
  one.lefts = one.rights = 1;
  if (const Support is = supports_series(one); !is) return is;
  if (const Support fit = steps_fit(q); !fit) return fit;
  if (q.lefts > kGridLimitYZ) return no("more than 65535 pairs");
  return shared_fits("sums of windows",
                     FactorMemory<SeriesTuning::kFactorThreads>::bytes(q.left.cols));
}

XCORR_VARIANT({
    .summary =
        "Matched filter with moveouts on tensor cores, tf32: a template spread over 16 shifts",
    .parent = "timeseries_tf32_detect",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .precisions = {Precision::tf32},
    .forms = {Form::n_to_mn},
    .scores = {ScoreKind::product, ScoreKind::ncc, ScoreKind::zncc},
    .views = {Views::dense, Views::channels},
    .supports = supports,
    .workspace_bytes =
        [](const PlanRequest& request) { return MoveoutMemory(request, Workspace(nullptr)).bytes; },
    .plan = make_plan<MoveoutPlan>,
});

}  // namespace
}  // namespace xcorr::time_series
