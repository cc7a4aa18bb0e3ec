// The factor of each shift of templates in frames (template_problem.hpp), and the launches before the
// sums of products:
//
//   survey_kernel    unit templates, sums of parts of the frames (template_survey.hpp)
//   factors_kernel   ncc and zncc: 1 / the norm of each window of a frame, once for all templates
//
// Sums, means and norms are float64. The sums of a window are made of additions alone: a thread has
// neighbouring windows, which share all elements but the first and the last few.
//
//   window j of a run of n   [ elements j to n - 1 | what all windows share | the next j elements ]
//
// So an outlier leaves no error in windows that do not hold it, and an infinity no trace. Columns
// first: a thread has the windows of n rows of one column, and puts their sums into shared memory;
// then rows. Factors undo the power of two by which the values of a frame were multiplied.
#pragma once

#include <algorithm>
#include <cmath>

#include "algorithms/device/template_survey.hpp"

namespace xcorr::device {

// Of a block: its columns are one round for templates of up to 129 columns, its runs always.
inline constexpr int kFactorsThreads = static_cast<int>(small_if_emulated(256, 64));
// Neighbouring windows of a thread along a row.
inline constexpr int kWindowRun = 16;
inline constexpr int kFactorCols = static_cast<int>(small_if_emulated(128, 32));
// Rows of windows of a block: as many as its shared memory has room for.
inline constexpr int kTallFactors = 16, kFlatFactors = 2;

struct alignas(16) RunSums {
  double values, squares;
  __device__ __forceinline__ void add(const RunSums& of) {
    values += of.values;
    squares += of.squares;
  }
};

// One of both sums.
struct OneSum {
  double value;
  __device__ __forceinline__ void add(const OneSum& of) { value += of.value; }
};

// window(j) = the sum of sums_of(load(i)) for i from j to j + length - 1. Elements from `length` on come from
// beyond(i). kAtOnce loads come before the additions that wait for them, and a caller that has windows in
// shared memory leaves registers for that: with all windows in registers the compiler put each load before its
// own addition, so that a thread had one load on its way.
template <int kRun, int kAtOnce, typename Window, typename Load, typename Beyond, typename SumsOf>
__device__ __forceinline__ void sums_of_windows(Window window, int length, Load load, Beyond beyond,
                                                SumsOf sums_of) {
  static_assert(kRun % kAtOnce == 0);
  using Sum = decltype(sums_of(load(0)));
  decltype(load(0)) of[kAtOnce];
  if (length < kRun) {
#pragma unroll
    for (int j = 0; j < kRun; ++j) window(j) = Sum{};
#pragma unroll 1
    for (int i = 0; i < length; ++i) {
#pragma unroll
      for (int from = 0; from < kRun; from += kAtOnce) {
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k) of[k] = beyond(i + from + k);
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k) window(from + k).add(sums_of(of[k]));
      }
    }
    return;
  }
  Sum run{};
#pragma unroll
  for (int from = kRun - kAtOnce; from >= 0; from -= kAtOnce) {
#pragma unroll
    for (int k = kAtOnce - 1; k >= 0; --k) of[k] = load(from + k);
#pragma unroll
    for (int k = kAtOnce - 1; k >= 0; --k) {
      run.add(sums_of(of[k]));
      window(from + k) = run;
    }
  }
  Sum shared{};
  int i = kRun;
#pragma unroll 1
  for (; i + kAtOnce <= length; i += kAtOnce) {
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) of[k] = load(i + k);
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) shared.add(sums_of(of[k]));
  }
  if (i < length) {
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) of[k] = beyond(i + k);
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      if (i + k < length) shared.add(sums_of(of[k]));
    }
  }
#pragma unroll
  for (int from = 0; from < kRun; from += kAtOnce) {
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      if (from + k + 1 < kRun) of[k] = beyond(length + from + k);
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      window(from + k).add(shared);
      if (from + k + 1 < kRun) shared.add(sums_of(of[k]));
    }
  }
}

// The factor of a window with an infinity or a NaN.
__device__ __forceinline__ float no_factor() { return std::bit_cast<float>(0x7fc00000u); }

// The factor of a window about its mean (ncc: about 0): 0 where it is constant up to rounding, NaN
// where it has an infinity or a NaN. Sums are about the mean of the frame, `unscaled` is 1 / its scale.
__device__ __forceinline__ float factor_of_window(const TemplateProblem& q, const RunSums& sums,
                                                  double terms, double share, double unscaled) {
  double squares = sums.squares;
  if (!(squares - squares == 0)) return no_factor();
  double deviation = 0;
  if (q.is_centred) {
    // The deviation of the mean serves as the largest one: where the rule applies all are alike.
    deviation = sums.values * share;
    squares -= sums.values * deviation;
  }
  if (is_rounding(squares, deviation, terms) || squares < 0x1p-1000) return 0.0f;
  return static_cast<float>(inverse_square_root(squares) * unscaled);
}

// Shared memory of a block of kRows rows of windows.
struct FactorTile {
  static int cols(const Problem& q) { return kFactorCols + static_cast<int>(q.left.cols) - 1; }
  static int pitch(int cols) { return cols | 1; }  // so that rows lie in banks of their own
  static std::size_t bytes(const Problem& q, int rows) {
    return sizeof(FrameFacts) + sizeof(RunSums) * static_cast<std::size_t>(rows) *
                                    static_cast<std::size_t>(pitch(cols(q)));
  }
};

// Sums in two arrays, where rows of doubles lie in different banks.
struct PlacedSums {
  double *values, *squares;
  __device__ __forceinline__ void operator=(const RunSums& of) const {
    *values = of.values;
    *squares = of.squares;
  }
  __device__ __forceinline__ void add(const RunSums& of) const {
    *values += of.values;
    *squares += of.squares;
  }
};

// A block has kRows x kFactorCols windows. grid: columns, rows (in a stride), frames (in a stride).
template <int kRows>
__global__ void __launch_bounds__(kFactorsThreads, 4)
    factors_kernel(TemplateProblem q, TemplateMemory memory, const float* right) {
  constexpr int kTasks = kRows * (kFactorCols / kWindowRun);
  static_assert(2 * kTasks <= kFactorsThreads);
  wait_for_previous();
  auto* const of_frame = dynamic_shared<FrameFacts>();
  const int thread = static_cast<int>(threadIdx.x);
  const int cols = kFactorCols + q.left_cols - 1, pitch = cols | 1;
  auto* const values = reinterpret_cast<double*>(of_frame + 1);
  double* const squares = values + kRows * pitch;
  const double terms = static_cast<double>(q.left_size()), share = 1 / terms;
  const int col = static_cast<int>(blockIdx.x) * kFactorCols;
#pragma unroll 1
  for (int frame = static_cast<int>(blockIdx.z); frame < q.rights;
       frame += static_cast<int>(gridDim.z)) {
    block::barrier();
    if (thread < warp::kSize) {
      const FrameFacts facts = facts_of(memory, frame);
      if (thread == 0) {
        of_frame[0] = facts;
        if (blockIdx.x == 0 && blockIdx.y == 0) memory.facts[frame] = facts;
      }
    }
    block::barrier();
    const double mean = q.is_centred ? of_frame[0].mean : 0.0;
    const double unscaled = 1 / static_cast<double>(of_frame[0].scale);
    const float* const from = right + frame * q.right_size();
#pragma unroll 1
    for (int row = static_cast<int>(blockIdx.y) * kRows; row < q.out_rows;
         row += static_cast<int>(gridDim.y) * kRows) {
      block::barrier();  // the sums of the rows before have been read
#pragma unroll 1
      for (int x = thread; x < cols; x += kFactorsThreads) {
        const int at_x = q.first_sx + col + x, at_y = q.first_sy + row;
        // Windows of the problem have no elements beyond the last row and column. Any stand for these.
        const int own_x = at_x < q.right_cols ? at_x : q.right_cols - 1;
        const int last = q.right_rows - 1 - at_y;
        const float* const column = from + static_cast<Index>(at_y) * q.right_cols + own_x;
        sums_of_windows<kRows, (kRows < 8 ? kRows : 8)>(
            [&](int j) { return PlacedSums{values + j * pitch + x, squares + j * pitch + x}; },
            q.left_rows, [&](int i) { return column[i * q.right_cols]; },
            [&](int i) { return column[(i < last ? i : last) * q.right_cols]; },
            [&](float of) {
              const double value = static_cast<double>(of) - mean;
              return RunSums{value, value * value};
            });
      }
      block::barrier();
      // Half of the warps have the sums of the values, the other half those of the squares: both
      // together would be too many registers.
      OneSum windows[kWindowRun];
      const int task = thread % kTasks, y = task % kRows, x = task / kRows * kWindowRun;
      double* const of_row = (thread < kTasks ? values : squares) + y * pitch + x;
      if (thread < 2 * kTasks) {
        const auto in_row = [&](int i) { return of_row[i]; };
        sums_of_windows<kWindowRun, 4>([&](int j) -> OneSum& { return windows[j]; }, q.left_cols,
                                       in_row, in_row, [](double of) { return OneSum{of}; });
      }
      block::barrier();  // the sums of the columns have been read
      if (thread < 2 * kTasks) {
#pragma unroll
        for (int j = 0; j < kWindowRun; ++j) of_row[j] = windows[j].value;
      }
      block::barrier();
      // By neighbouring threads for neighbouring places: a run of each lane would be a sector each.
      float* const to =
          memory.factors + frame * q.out_size() + static_cast<Index>(row) * q.out_cols + col;
#pragma unroll 2
      for (int i = thread; i < kRows * kFactorCols; i += kFactorsThreads) {
        const int of_y = i / kFactorCols, of_x = i % kFactorCols;
        if (row + of_y >= q.out_rows || col + of_x >= q.out_cols) continue;
        const RunSums window = {values[of_y * pitch + of_x], squares[of_y * pitch + of_x]};
        to[of_y * q.out_cols + of_x] = factor_of_window(q, window, terms, share, unscaled);
      }
    }
  }
}

// The launches of both kernels, as a problem needs them.
class TemplateFactors {
 public:
  TemplateFactors() = default;
  TemplateFactors(const Problem& q, const TemplateMemory& memory)
      : q_(q), memory_(memory), has_units_(q.fields.score.kind != ScoreKind::product) {
    if (!q_.is_ratio) return;
    rows_ = rows_of(q);
    shared_bytes_ = FactorTile::bytes(q, rows_);
    grid_ = dim3(static_cast<unsigned>(ceil_div<Index>(q.out_cols(), kFactorCols)),
                 grid_extent(ceil_div<Index>(q.out_rows(), rows_)), grid_extent(q.rights));
  }

  // Yes, or why the shared memory of a block is too small.
  static Support supports(const Problem& q) {
    if (!is_normalised(q.fields.score.kind) || rows_of(q) > 0) return yes();
    return no("templates of " + std::to_string(q.left.cols) +
              " columns: sums of their windows do not fit the shared memory of a block");
  }

  template <typename Launches>
  void enqueue(Launches& launches, void* stream, const float* left, const float* right) const {
    if (!has_units_) return;
    const int frames = q_.is_ratio ? q_.rights * memory_.parts : 0;
    launches.run(survey_kernel, dim3(static_cast<unsigned>(q_.lefts + frames)),
                 dim3(kSurveyThreads), 0, stream, q_, memory_, left, right);
    if (!q_.is_ratio) return;
    launches.run(
        rows_ == kTallFactors ? factors_kernel<kTallFactors> : factors_kernel<kFlatFactors>, grid_,
        dim3(kFactorsThreads), shared_bytes_, stream, q_, memory_, right);
  }

 private:
  static int rows_of(const Problem& q) {
    for (const int rows : {kTallFactors, kFlatFactors}) {
      if (fits_shared(FactorTile::bytes(q, rows))) return rows;
    }
    return 0;
  }

  TemplateProblem q_;
  TemplateMemory memory_;
  bool has_units_ = false;
  int rows_ = 0;
  std::size_t shared_bytes_ = 0;
  dim3 grid_;
};

}  // namespace xcorr::device
