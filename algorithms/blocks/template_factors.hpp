// The factor of each shift of templates in frames (template_problem.hpp), and the launches before
// the sums of products:
//
//   statistics_kernel  unit templates, ranges of parts of the frames (template_statistics.hpp)
//   factors_kernel     ncc and zncc: 1 / the norm of each window of a frame, once for all templates
//
// Sums, means and norms are float64, relative to a number near the windows of a block
// (window_pivot). The sums of a window are computed with additions only. A thread has neighbouring
// windows, which share all elements but the first and the last few:
//
//   window j of a run of n   [ elements j to n - 1 | common elements | the next j elements ]
//
// Therefore an outlier or an infinity leaves no error in windows that do not contain it. Columns
// come first: a thread sums the windows of n rows of one column and stores the sums in shared
// memory; then rows follow. Factors include the inverse of the power of two by which the values of
// a frame are multiplied. Where float64 sums lose digits, or float32 sums of products would, the
// factor is kByDefinition, and the kernel of the sums calls score_by_definition().
#pragma once

#include <algorithm>
#include <cmath>

#include "algorithms/blocks/template_statistics.hpp"

namespace xcorr::device {

// Threads per block: one round for the columns of templates of up to 129 columns, and always one
// for the runs.
inline constexpr int kFactorsThreads = static_cast<int>(small_if_emulated(256, 64));
// Neighbouring windows per thread along a row.
inline constexpr int kWindowRun = 16;
inline constexpr int kFactorCols = static_cast<int>(small_if_emulated(128, 32));
// Rows of windows per block: as many as shared memory allows.
inline constexpr int kTallFactors = 16, kFlatFactors = 2;

struct alignas(16) RunSums {
  double values, squares;
  __device__ __forceinline__ void add(const RunSums& of) {
    values += of.values;
    squares += of.squares;
  }
};

// Limit for the squared distance between the mean of a window and the pivot of its area, relative
// to the squared deviation: a sum of n products loses about half a roundoff per deviation, and the
// check allows 0.8 sqrt(n) + 12 (docs/design.md, Checks).
inline constexpr double kFarSquares = 64 * 64;

// A single sum.
struct OneSum {
  double value;
  __device__ __forceinline__ void add(const OneSum& of) { value += of.value; }
};

// Computes window(j) = the sum of sums_of(load(i)) for i from j to j + length - 1. Elements from
// `length` on come from beyond(i). kAtOnce loads come before the additions that use them, if the
// caller leaves registers for them: with all windows in registers each load waited for its addition.
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

// The factor of a window whose score score_by_definition() must compute.
inline constexpr float kByDefinition = -1;

// Constants of the windows of a problem, set on the host.
struct WindowTerms {
  WindowTerms() = default;
  explicit WindowTerms(const Problem& q)
      : terms(static_cast<double>(q.left.size())),
        share(1 / terms),
        rounding(0x1p-53 * static_cast<double>(q.left.rows + q.left.cols)) {}
  double terms = 1, share = 1;
  double rounding = 0;  // relative error of sums of squares: the number of successive additions
};

// The pivot of the sums of windows in rows x cols elements from (row, col) on, by all lanes of a
// warp: a value near which most elements are, or 0. A pivot far from a window would hide that it is
// constant.
__device__ __forceinline__ float window_pivot(const TemplateProblem& q, const float* frame, int row,
                                              int col, int rows, int cols) {
  if (!q.is_centred) return 0.0f;
  const float value = sample_of(q, frame, row, col, rows, cols);
  float pivot = 0;
#pragma unroll 1
  for (const int lane : {5, 14, 26}) {
    const float candidate = warp::shuffle(value, lane);
    const int near = fabsf(value - candidate) <= 0x1p-6f * fabsf(candidate) ? 1 : 0;
    if (warp::reduce_add(near) > warp::kSize * 5 / 8) pivot = candidate;
  }
  return pivot;
}

// Mean and squares of a window from its sums relative to `pivot`.
struct WindowSquares {
  double mean, squares;  // squares about the mean (ncc: about 0)
  double limit;          // max squares of a constant
  bool doubtful;  // cancellation against the squares about the pivot may have removed their digits
  bool constant;

  __device__ __forceinline__ WindowSquares(const TemplateProblem& q, const WindowTerms& w,
                                           const RunSums& sums, double pivot)
      : mean(0), squares(sums.squares) {
    if (q.is_centred) {
      const double deviation = sums.values * w.share;
      squares -= sums.values * deviation;
      mean = pivot + deviation;
    }
    limit = constant_limit(mean, w.terms);
    const bool few = squares <= 0x1p-26 * sums.squares;
    // Up to four times the limit 0 is right. For ncc, `few` is true only if all values are zero.
    const bool surely = squares + w.rounding * sums.squares <= 2 * limit;
    doubtful = few && !surely;
    constant = few ? surely : squares <= limit + 0x1p-1000;
  }
};

// Calls use(value, index) for all elements of a window.
template <typename Use>
__device__ __forceinline__ void each_in_window(const TemplateProblem& q, const float* at, Use use) {
#pragma unroll 1
  for (int y = 0; y < q.left_rows; ++y) {
    const float* const row = at + static_cast<Index>(y) * q.right_cols;
#pragma unroll 2
    for (int x = 0; x < q.left_cols; ++x) use(row[x], y * q.left_cols + x);
  }
}

// The score of a window in float64, by one thread. `unit` and `at` point to the first elements of
// the unit template and of the window.
__device__ __forceinline__ float score_by_definition(const TemplateProblem& q, const float* unit,
                                                     const float* at) {
  const double terms = static_cast<double>(q.left_size());
  double mean = 0, squares = 0, products = 0;
  float largest = 0;
  if (q.is_centred) {
    each_in_window(q, at, [&](float value, int) { mean += static_cast<double>(value); });
    mean /= terms;
  }
  each_in_window(q, at, [&](float value, int i) {
    const double away = static_cast<double>(value) - mean;
    squares += away * away;
    products += static_cast<double>(unit[i]) * away;
    largest = fmaxf(largest, fabsf(value));
  });
  const double limit = q.is_centred ? constant_limit(static_cast<double>(largest), terms) : 0.0;
  if (squares <= limit) return 0.0f;
  return clamped(static_cast<float>(products * inverse_square_root(squares)));
}

// The factor of a window that is not constant, from its squares about the mean (ncc: about 0). It
// is kByDefinition if the window is too far from the pivot of its area for float32 sums of products,
// or its values do not fit the scale.
__device__ __forceinline__ float factor_of_squares(const WindowTerms& w, double mean,
                                                   double squares, const AreaPivot& area,
                                                   const FrameFacts& facts) {
  const float scale = scale_of_area(area, facts).scale;
  const double away = mean - static_cast<double>(area.pivot);
  const double wide_scale = facts.wide == 0 ? 1.0 : static_cast<double>(scale);
  const double scaled = squares * wide_scale * wide_scale;
  const bool is_far = away * away * w.terms > kFarSquares * squares;
  const bool fits = facts.wide == 0 || (scaled > 0x1p-120 && scaled < 0x1p160);
  if (is_far || !fits) return kByDefinition;
  return static_cast<float>(inverse_square_root(squares) *
                            static_cast<double>(inverse_of_power(scale)));
}

// The factor of a window: 0 if it is constant up to rounding, NaN if it has an infinity or a NaN,
// kByDefinition if the sums relative to `pivot` are not precise enough, else factor_of_squares().
__device__ __forceinline__ float factor_of_window(const TemplateProblem& q, const WindowTerms& w,
                                                  const RunSums& sums, double pivot,
                                                  const AreaPivot& area, const FrameFacts& facts) {
  if (!(sums.squares - sums.squares == 0)) return no_factor();
  const WindowSquares window(q, w, sums, pivot);
  if (window.constant) return 0.0f;
  if (window.doubtful) return kByDefinition;
  return factor_of_squares(w, window.mean, window.squares, area, facts);
}

// Shared data of the threads of a block, in addition to the sums.
struct alignas(16) FactorBlock {
  FrameFacts facts;
  float pivot;
};

// Shared memory of a block with kRows rows of windows.
struct FactorTile {
  static int cols(const Problem& q) { return kFactorCols + static_cast<int>(q.left.cols) - 1; }
  static int pitch(int cols) { return cols | 1; }  // odd, so that rows begin in different banks
  static std::size_t bytes(const Problem& q, int rows) {
    return sizeof(FactorBlock) + sizeof(RunSums) * static_cast<std::size_t>(rows) *
                                     static_cast<std::size_t>(pitch(cols(q)));
  }
};

// Sums in two arrays, whose rows of doubles lie in different banks.
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

// A block has kRows x kFactorCols windows. grid: columns (x), rows in a stride (y), frames in a
// stride (z).
template <int kRows>
__global__ void __launch_bounds__(kFactorsThreads, 4)
    factors_kernel(TemplateProblem q, TemplateMemory memory, WindowTerms terms,
                   const float* right) {
  constexpr int kTasks = kRows * (kFactorCols / kWindowRun);
  static_assert(2 * kTasks <= kFactorsThreads);
  wait_for_previous();
  auto* const of_block = dynamic_shared<FactorBlock>();
  const int thread = static_cast<int>(threadIdx.x);
  const int cols = kFactorCols + q.left_cols - 1, pitch = cols | 1;
  auto* const values = reinterpret_cast<double*>(of_block + 1);
  double* const squares = values + kRows * pitch;
  const int col = static_cast<int>(blockIdx.x) * kFactorCols;
#pragma unroll 1
  for (int frame = static_cast<int>(blockIdx.z); frame < q.rights;
       frame += static_cast<int>(gridDim.z)) {
    const float* const from = right + frame * q.right_size();
    block::barrier();
    if (thread < warp::kSize) {
      const FrameFacts facts = facts_of(memory, frame);
      if (thread == 0) {
        of_block[0].facts = facts;
        if (blockIdx.x == 0 && blockIdx.y == 0) memory.facts[frame] = facts;
      }
    }
#pragma unroll 1
    for (int row = static_cast<int>(blockIdx.y) * kRows; row < q.out_rows;
         row += static_cast<int>(gridDim.y) * kRows) {
      if (thread / warp::kSize == 1) {
        const float near = window_pivot(q, from, q.first_sy + row, q.first_sx + col,
                                        kRows + q.left_rows - 1, cols);
        if (thread == warp::kSize) of_block[0].pivot = near;
      }
      block::barrier();  // also: the sums of the previous rows have been read
      const auto about = static_cast<double>(of_block[0].pivot);
#pragma unroll 1
      for (int x = thread; x < cols; x += kFactorsThreads) {
        const int at_x = q.first_sx + col + x, at_y = q.first_sy + row;
        // Windows of the problem have no elements beyond the last row and column. Any element can
        // replace these.
        const int own_x = at_x < q.right_cols ? at_x : q.right_cols - 1;
        const int last = q.right_rows - 1 - at_y;
        const float* const column = from + static_cast<Index>(at_y) * q.right_cols + own_x;
        sums_of_windows<kRows, (kRows < 8 ? kRows : 8)>(
            [&](int j) { return PlacedSums{values + j * pitch + x, squares + j * pitch + x}; },
            q.left_rows, [&](int i) { return column[i * q.right_cols]; },
            [&](int i) { return column[(i < last ? i : last) * q.right_cols]; },
            [&](float of) {
              const double value = static_cast<double>(of) - about;
              return RunSums{value, value * value};
            });
      }
      block::barrier();
      // Half of the warps sum the values, the other half the squares: both together would need too
      // many registers.
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
      // Neighbouring threads write neighbouring factors: if each lane wrote a run, each would write
      // a different sector. The values are read again, for lack of registers.
      const FactorBlock own = of_block[0];
      const AreaPivot* const areas =
          memory.areas.pivots + static_cast<Index>(frame) * memory.areas.count;
#pragma unroll 1
      for (int i = thread; i < kRows * kFactorCols; i += kFactorsThreads) {
        const int of_y = i / kFactorCols, of_x = i % kFactorCols;
        if (row + of_y >= q.out_rows || col + of_x >= q.out_cols) continue;
        const RunSums window = {values[of_y * pitch + of_x], squares[of_y * pitch + of_x]};
        const AreaPivot area = areas[opaque(memory.areas.of(row + of_y, col + of_x))];
        memory.factors[frame * q.out_size() + static_cast<Index>(row + of_y) * q.out_cols + col +
                       of_x] =
            factor_of_window(q, terms, window, static_cast<double>(own.pivot), area, own.facts);
      }
      block::barrier();  // before the pivot changes to that of the next rows
    }
  }
}

// The launches of both kernels for a problem.
class TemplateFactors {
 public:
  TemplateFactors() = default;
  TemplateFactors(const Problem& q, const TemplateMemory& memory)
      : q_(q), memory_(memory), terms_(q), has_units_(q.fields.score.kind != ScoreKind::product) {
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
    launches.run(statistics_kernel, dim3(statistics_blocks(q_, memory_)), dim3(kStatisticsThreads),
                 0, stream, q_, memory_, left, right);
    if (!q_.is_ratio) return;
    launches.run(
        rows_ == kTallFactors ? factors_kernel<kTallFactors> : factors_kernel<kFlatFactors>, grid_,
        dim3(kFactorsThreads), shared_bytes_, stream, q_, memory_, terms_, right);
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
  WindowTerms terms_;
  bool has_units_ = false;
  int rows_ = 0;
  std::size_t shared_bytes_ = 0;
  dim3 grid_;
};

}  // namespace xcorr::device
