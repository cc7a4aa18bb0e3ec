// The kernels before the sums of products of templates in frames (template_problem.hpp):
//
//   survey_kernel    a block a template: its deviations from the mean, divided by their norm, as
//                    float32 ("unit template"); other blocks: sums of parts of the frames
//   factors_kernel   ncc and zncc: 1 / the norm of each window of a frame, once for all templates
//
// Sums, means and norms are float64. The sums of a window are made of additions alone: a thread has
// neighbouring windows, which share all elements but the first and the last few.
//
//   window j of a run of n   [ elements j to n - 1 | what all windows share | the next j elements ]
//
// So an outlier leaves no error in windows that do not hold it, and an infinity no trace. Columns
// first: a thread has the windows of n rows of one column, and puts their sums into shared memory;
// then rows.
//
// The values of a frame are multiplied by a power of two before products are made of them, so that
// products of very large or small numbers stay in the range of float32, and the factors undo it.
#pragma once

#include <algorithm>
#include <cmath>

#include "algorithms/device/launch.hpp"
#include "algorithms/device/memory.hpp"
#include "algorithms/device/plan.hpp"
#include "algorithms/device/template_problem.hpp"

namespace xcorr::device {

inline constexpr int kSurveyThreads = static_cast<int>(small_if_emulated(512, 64));
// Twice as many where there are fewer blocks than SMs: a block then has its columns in one round.
inline constexpr int kFactorsThreads = static_cast<int>(small_if_emulated(128, 32));
inline constexpr Index kFewFactorBlocks = small_if_emulated(128, 4);
// Neighbouring windows of a thread along a row.
inline constexpr int kWindowRun = 16;
inline constexpr int kFactorCols = static_cast<int>(small_if_emulated(128, 32));
// Rows of windows of a block: as many as its shared memory has room for.
inline constexpr int kTallFactors = 16, kFlatFactors = 2;
// Elements of a frame that a block adds up, and the most blocks of a frame.
inline constexpr Index kSurveyPart = small_if_emulated(8192, 256);
inline constexpr Index kMostSurveyParts = small_if_emulated(512, 5);

// Of a part of a frame, without infinities and NaN.
struct alignas(16) SurveyPart {
  double sum, count;
  float largest;  // |value|
  float spare[3];
};
struct alignas(16) FrameFacts {
  double mean;
  float scale;  // a power of two
  float spare;
};
struct alignas(16) RunSums {
  double values, squares;
  __device__ __forceinline__ void add(const RunSums& of) {
    values += of.values;
    squares += of.squares;
  }
};

// Where things lie in the workspace.
struct TemplateMemory {
  float* units = nullptr;        // [lefts][left_rows][left_cols]
  float* factors = nullptr;      // [rights][out_rows][out_cols]
  FrameFacts* facts = nullptr;   // [rights]
  SurveyPart* survey = nullptr;  // [rights][parts]
  int parts = 0;
};

// Lays out a workspace in pieces of 256 bytes. Without memory it only counts.
class Pieces {
 public:
  explicit Pieces(void* base) : base_(static_cast<char*>(base)) {}
  template <typename T>
  T* take(Index count) {
    T* const here = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + bytes_);
    const auto size = static_cast<std::size_t>(count) * sizeof(T);
    bytes_ += (size + 255) / 256 * 256;
    return here;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  char* base_;
  std::size_t bytes_ = 0;
};

inline TemplateMemory template_memory(const Problem& q, Pieces& pieces) {
  const ScoreKind kind = q.fields.score.kind;
  TemplateMemory memory;
  memory.parts =
      static_cast<int>(std::min(ceil_div(q.right.size(), kSurveyPart), kMostSurveyParts));
  if (kind != ScoreKind::product) memory.units = pieces.take<float>(q.left_elements());
  if (!is_normalised(kind)) return memory;
  memory.factors = pieces.take<float>(q.rights * q.out_size());
  memory.facts = pieces.take<FrameFacts>(q.rights);
  memory.survey = pieces.take<SurveyPart>(q.rights * memory.parts);
  return memory;
}

// The sum over the threads of a block of `threads`, for all of them, in a fixed order.
__device__ __forceinline__ double sum_of_threads(double value, int threads) {
  XCORR_SHARED(double, of_warp, 32);
  value = warp::reduce_add(value);
  block::barrier();  // others may still read the sums before
  if (warp::lane() == 0) of_warp[threadIdx.x / warp::kSize] = value;
  block::barrier();
  double sum = 0;
  for (int i = 0; i < threads / warp::kSize; ++i) sum += of_warp[i];
  return sum;
}
__device__ __forceinline__ double largest_of_threads(double value, int threads) {
  XCORR_SHARED(double, of_warp, 32);
#pragma unroll
  for (int by = warp::kSize / 2; by > 0; by /= 2) value = fmax(value, warp::shuffle_xor(value, by));
  block::barrier();
  if (warp::lane() == 0) of_warp[threadIdx.x / warp::kSize] = value;
  block::barrier();
  double largest = of_warp[0];
  for (int i = 1; i < threads / warp::kSize; ++i) largest = fmax(largest, of_warp[i]);
  return largest;
}

// 1 / sqrt(value), rounded twice, of a number that float32 need not hold. A power of 4 times the
// value changes no bit but the exponent's.
__device__ __forceinline__ double inverse_square_root(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const int exponent = static_cast<int>(bits >> 52) - 1023;
  const int odd = exponent & 1, half = (exponent - odd) / 2;
  const auto power = [](int of) {
    return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + of) << 52);
  };
  const double small = std::bit_cast<double>((bits & 0xfffffffffffffu) |
                                             static_cast<std::uint64_t>(1023 + odd) << 52);
  return static_cast<double>(1.0f / std::sqrt(static_cast<float>(small))) * power(-half);
}

// Whether a sum of squares of `terms` elements about their mean is no more than what rounding leaves
// of a constant; `deviation` is the largest distance of an element from the mean of its matrix
// (docs/design.md, Fields of a problem).
__device__ __forceinline__ bool is_rounding(double squares, double deviation, double terms) {
  const double step = 8 * 0x1p-24 * deviation;
  return squares <= step * step * terms;
}

// A template: its deviations from the mean (ncc: from 0), divided by their norm (covariance: by 1).
__device__ __forceinline__ void make_unit(const TemplateProblem& q, const float* from, float* to) {
  const int size = static_cast<int>(q.left_size()), thread = static_cast<int>(threadIdx.x);
  // use(value, i) of each element of the thread, and of its first again where a round is not full: i is then
  // `size` or more. Eight loads come before what waits for them.
  const auto each = [&](auto use) {
    constexpr int kAtOnce = static_cast<int>(small_if_emulated(8, 2));
#pragma unroll 1
    for (int begin = thread; begin < size; begin += kAtOnce * kSurveyThreads) {
      float values[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int i = begin + k * kSurveyThreads;
        values[k] = from[i < size ? i : begin];
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        use(static_cast<double>(values[k]), begin + k * kSurveyThreads);
      }
    }
  };
  const auto sum = [&](auto of) {
    double own = 0;
    each([&](double value, int i) {
      const double more = of(value);
      own += i < size ? more : 0.0;
    });
    return sum_of_threads(own, kSurveyThreads);
  };
  double pivot = 0, rest = 0, factor = 1;
  if (q.is_centred) {
    pivot = sum([](double value) { return value; }) / size;
    rest = sum([&](double value) { return value - pivot; }) / size;
  }
  if (q.is_ratio) {
    double farthest = 0;
    const double squares = sum([&](double value) {
      const double away = (value - pivot) - rest;
      farthest = fmax(farthest, fabs(away));
      return away * away;
    });
    farthest = largest_of_threads(farthest, kSurveyThreads);
    factor = is_rounding(squares, farthest, size) ? 0.0 : 1 / std::sqrt(squares);
  }
  each([&](double value, int i) {
    const auto unit = static_cast<float>(((value - pivot) - rest) * factor);
    if (i < size) to[i] = unit;
  });
}

static __global__ void __launch_bounds__(kSurveyThreads)
    survey_kernel(TemplateProblem q, TemplateMemory memory, const float* left, const float* right) {
  wait_for_previous();
  let_next_start();
  const int block = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  if (block < q.lefts) {
    const Index at = block * q.left_size();
    make_unit(q, left + at, memory.units + at);
    return;
  }
  const int item = block - q.lefts, frame = item / memory.parts, part = item % memory.parts;
  const float* const from = right + frame * q.right_size();
  const int size = static_cast<int>(q.right_size());
  double sum = 0, count = 0, largest = 0;
#pragma unroll 4
  for (int i = part * kSurveyThreads + thread; i < size; i += memory.parts * kSurveyThreads) {
    const float value = from[i];
    const bool counts = value - value == 0;
    sum += counts ? static_cast<double>(value) : 0.0;
    count += counts ? 1.0 : 0.0;
    largest = fmax(largest, counts ? static_cast<double>(fabsf(value)) : 0.0);
  }
  sum = sum_of_threads(sum, kSurveyThreads);
  count = sum_of_threads(count, kSurveyThreads);
  largest = largest_of_threads(largest, kSurveyThreads);
  if (thread == 0) memory.survey[item] = {sum, count, static_cast<float>(largest), {}};
}

// Of a frame, by all lanes of a warp.
__device__ __forceinline__ FrameFacts facts_of(const TemplateMemory& memory, int frame) {
  double sum = 0, count = 0;
  float largest = 0;
  const SurveyPart* const parts = memory.survey + static_cast<Index>(frame) * memory.parts;
  // Eight loads at once, also where a lane has fewer parts: a rest would be a loop of single ones.
  constexpr int kAtOnce = 8;
#pragma unroll 1
  for (int begin = warp::lane(); begin < memory.parts; begin += kAtOnce * warp::kSize) {
    SurveyPart of[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int i = begin + k * warp::kSize;
      of[k] = parts[i < memory.parts ? i : begin];
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      // Without a branch, behind which the compiler would put the load.
      const bool exists = begin + k * warp::kSize < memory.parts;
      sum += exists ? of[k].sum : 0.0;
      count += exists ? of[k].count : 0.0;
      largest = fmaxf(largest, of[k].largest);
    }
  }
  sum = warp::reduce_add(sum);
  count = warp::reduce_add(count);
#pragma unroll
  for (int by = warp::kSize / 2; by > 0; by /= 2) {
    largest = fmaxf(largest, warp::shuffle_xor(largest, by));
  }
  // 2^-exponent of the largest value, so that it becomes a number from 1 to 2.
  int exponent = static_cast<int>(bits_of(largest) >> 23) - 127;
  exponent = exponent < -120 ? -120 : exponent > 120 ? 120 : exponent;
  const float scale =
      largest > 0 ? std::bit_cast<float>(static_cast<std::uint32_t>(127 - exponent) << 23) : 1.0f;
  return {count > 0 ? sum / count : 0.0, scale, 0.0f};
}

// window(j) = the sum of sums_of(load(i)) for i from j to j + length - 1. Elements from `length` on come from
// beyond(i). kAtOnce loads come before the additions that wait for them, and a caller that has windows in
// shared memory leaves registers for that: with all windows in registers the compiler put each load before its
// own addition, so that a thread had one load on its way.
template <int kRun, int kAtOnce, typename Window, typename Load, typename Beyond, typename SumsOf>
__device__ __forceinline__ void sums_of_windows(Window window, int length, Load load, Beyond beyond,
                                                SumsOf sums_of) {
  static_assert(kRun % kAtOnce == 0);
  decltype(load(0)) of[kAtOnce];
  if (length < kRun) {
#pragma unroll
    for (int j = 0; j < kRun; ++j) window(j) = {0, 0};
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
  RunSums run = {0, 0};
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
  RunSums shared = {0, 0};
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
// where it has an infinity or a NaN. Sums are about the mean of the frame.
__device__ __forceinline__ float factor_of_window(const TemplateProblem& q, const RunSums& sums,
                                                  double terms, double share, float scale) {
  double squares = sums.squares;
  if (!(squares - squares == 0)) return no_factor();
  double deviation = 0;
  if (q.is_centred) {
    // The deviation of the mean serves as the largest one: where the rule applies all are alike.
    deviation = sums.values * share;
    squares -= sums.values * deviation;
  }
  if (is_rounding(squares, deviation, terms) || squares < 0x1p-1000) return 0.0f;
  return static_cast<float>(inverse_square_root(squares) / static_cast<double>(scale));
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

// A block has kRows x kFactorCols windows. grid: columns, rows (in a stride), frames (in a stride).
template <int kRows>
__global__ void __launch_bounds__(2 * kFactorsThreads)
    factors_kernel(TemplateProblem q, TemplateMemory memory, const float* right) {
  wait_for_previous();
  auto* const of_frame = dynamic_shared<FrameFacts>();
  auto* const sums = reinterpret_cast<RunSums*>(of_frame + 1);
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int cols = kFactorCols + q.left_cols - 1, pitch = cols | 1;
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
    const float scale = of_frame[0].scale;
    const float* const from = right + frame * q.right_size();
#pragma unroll 1
    for (int row = static_cast<int>(blockIdx.y) * kRows; row < q.out_rows;
         row += static_cast<int>(gridDim.y) * kRows) {
      block::barrier();  // the sums of the rows before have been read
#pragma unroll 1
      for (int x = thread; x < cols; x += threads) {
        const int at_x = q.first_sx + col + x, at_y = q.first_sy + row;
        // Windows of the problem have no elements beyond the last row and column. Any stand for these.
        const int own_x = at_x < q.right_cols ? at_x : q.right_cols - 1;
        const int last = q.right_rows - 1 - at_y;
        const float* const column = from + static_cast<Index>(at_y) * q.right_cols + own_x;
        sums_of_windows < kRows,
            kRows<8 ? kRows : 8>(
                [&](int j) -> RunSums& { return sums[j * pitch + x]; }, q.left_rows,
                [&](int i) { return column[i * q.right_cols]; },
                [&](int i) { return column[(i < last ? i : last) * q.right_cols]; },
                [&](float of) {
                  const double value = static_cast<double>(of) - mean;
                  return RunSums{value, value * value};
                });
      }
      block::barrier();
      constexpr int kRuns = kFactorCols / kWindowRun;
#pragma unroll 1
      for (int task = thread; task < kRows * kRuns; task += threads) {
        const int y = task % kRows, x = task / kRows * kWindowRun;
        const RunSums* const of_row = sums + y * pitch + x;
        RunSums windows[kWindowRun];
        const auto in_row = [&](int i) { return of_row[i]; };
        sums_of_windows<kWindowRun, 4>([&](int j) -> RunSums& { return windows[j]; }, q.left_cols,
                                       in_row, in_row, [](const RunSums& of) { return of; });
        if (row + y >= q.out_rows) continue;
        float* const to = memory.factors + frame * q.out_size() +
                          static_cast<Index>(row + y) * q.out_cols + col + x;
#pragma unroll
        for (int j = 0; j < kWindowRun; ++j) {
          const float factor = factor_of_window(q, windows[j], terms, share, scale);
          if (col + x + j < q.out_cols) to[j] = factor;
        }
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
    const Index blocks = static_cast<Index>(grid_.x) * grid_.y * grid_.z;
    threads_ = kFactorsThreads * (blocks < kFewFactorBlocks ? 2 : 1);
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
        dim3(threads_), shared_bytes_, stream, q_, memory_, right);
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
  unsigned threads_ = kFactorsThreads;
  dim3 grid_;
};

// What values of a frame become, of a block that reads rows x cols elements from (row, col) on: less
// the median of 32 of them, where means are removed, which an outlier does not move. By all lanes of a
// warp.
__device__ __forceinline__ FrameScale scale_near(const TemplateProblem& q,
                                                 const TemplateMemory& memory, const float* frame,
                                                 int number, int row, int col, int rows, int cols) {
  const float scale = q.is_ratio ? memory.facts[number].scale : 1.0f;
  if (!q.is_centred) return {scale, 0.0f};
  const int lane = warp::lane();
  const int end_y = row + rows < q.right_rows ? row + rows : q.right_rows;
  const int end_x = col + cols < q.right_cols ? col + cols : q.right_cols;
  const int y = row + (end_y - row) * (2 * (lane / 4) + 1) / 16;
  const int x = col + (end_x - col) * (2 * (lane % 4) + 1) / 8;
  const float value = frame[static_cast<Index>(y) * q.right_cols + x] * scale;
  const bool counts = value - value == 0;
  int before = 0, count = 0;  // lanes with smaller values, lanes with numbers
#pragma unroll 4
  for (int other = 0; other < warp::kSize; ++other) {
    const float of_other = warp::shuffle(value, other);
    const bool other_counts = of_other - of_other == 0;
    count += other_counts;
    before += other_counts && (of_other < value || (of_other == value && other < lane));
  }
  // One lane has the median; without numbers none has.
  const float median = warp::reduce_add(counts && before == count / 2 ? value : 0.0f);
  return {scale, -median};
}

}  // namespace xcorr::device
