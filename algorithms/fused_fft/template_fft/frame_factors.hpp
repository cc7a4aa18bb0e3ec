// Factors of the windows of frames, as factors_kernel (template_factors.hpp) makes them, from the
// sums of strips that frame_statistics_kernel stored (frame_statistics.hpp). The kernel runs beside
// that of the templates' spectra, in which one block transforms a template and all other SMs are
// idle. Launches overlap as follows:
//
//   launch      waits for the previous launch        lets the next launch start
//   statistics  at its beginning                     after that: work before the call has ended
//   spectra     at its beginning                     before that
//   factors     in the last block, before it stores  in the last block after that: all spectra are
//                                                    stored; in the other blocks at the beginning
//   tiles       with one template and factors:       -
//               before it reads the factors;
//               otherwise at its beginning
//
// If the blocks of factors waited for the previous launch, they would wait for the spectra, which
// take longer than a round of these blocks. So they poll the counters of frames for sums of strips
// and for facts (FrameStrips::ready), which the tiles kernel resets to 0. This cannot deadlock: the
// blocks of a kernel start only after every block of the previous kernel has started.
#pragma once

#include "algorithms/device/cuda.hpp"
#include "algorithms/fused_fft/template_fft/frame_statistics.hpp"
#include "algorithms/fused_fft/template_fft/window_sums.hpp"

namespace xcorr::fused_fft {

// The sum of squares of a window about its mean (ncc: about 0), in two passes over its elements; 0
// if the window is constant.
__device__ __forceinline__ double exact_squares(const float* at, int rows, int cols, int pitch,
                                                bool is_centred) {
  const auto each = [&](auto use) {
#pragma unroll 1
    for (int y = 0; y < rows; ++y) {
      const float* const row = at + static_cast<Index>(y) * pitch;
#pragma unroll 4
      for (int x = 0; x < cols; ++x) use(static_cast<double>(row[x]));
    }
  };
  const double terms = static_cast<double>(rows) * cols;
  double mean = 0, squares = 0, largest = 0;
  if (is_centred) {
    each([&](double value) { mean += value; });
    mean /= terms;
  }
  each([&](double value) {
    squares += (value - mean) * (value - mean);
    largest = fmax(largest, fabs(value));
  });
  const bool constant = is_centred && squares <= constant_limit(largest, terms);
  return constant ? 0.0 : squares;
}

// What is stored for a window with this sum of squares: 1 / (its norm times the scale of the
// frame). For a wide frame, whose tiles have different scales, the root of 1 / its norm instead,
// which float32 holds for every norm (kernel.hpp, factor_of_wide).
__device__ __forceinline__ float stored_factor(double squares, const FrameFacts& facts) {
  if (facts.wide != 0) return static_cast<float>(inverse_square_root(std::sqrt(squares)));
  return static_cast<float>(inverse_root(squares) *
                            static_cast<double>(inverse_of_power(facts.scale)));
}

// The factor of a window without a branch, so that the factors of several windows overlap in a
// thread. A window with an infinity or a NaN gets NaN. Sets `again` if the sums do not decide the
// factor.
__device__ __forceinline__ float factor_at_once(const TemplateProblem& q, const WindowTerms& w,
                                                const RunSums& sums, double pivot, double unscaled,
                                                bool& again) {
  const WindowSquares window(q, w, sums, pivot);
  again |= window.doubtful;
  const auto factor = static_cast<float>(inverse_root(window.squares) * unscaled);
  return select(window.constant, 0.0f, factor);
}

// The factor of a window that factor_at_once() left undecided. `at` is the window's first element.
__device__ __forceinline__ float factor_again(const TemplateProblem& q, const WindowTerms& w,
                                              const RunSums& sums, double pivot,
                                              const FrameFacts& facts, const float* at) {
  if (!(sums.squares - sums.squares == 0)) return no_factor();
  const WindowSquares window(q, w, sums, pivot);
  double squares = window.constant ? 0.0 : window.squares;
  if (window.doubtful) {
    squares = exact_squares(at, q.left_rows, q.left_cols, q.right_cols, q.is_centred);
  }
  return squares < 0x1p-1000 ? 0.0f : stored_factor(squares, facts);
}

// Layout of the sums of a block in shared memory: [rows][pitch] sums of columns, then
// [rows][group_pitch] sums of groups of kWindowRun columns. The pitches are odd, so that rows start
// at different banks.
struct BlockSums {
  static constexpr int runs = kFactorCols / kWindowRun;

  __host__ __device__ explicit BlockSums(int template_cols)
      : cols(kFactorCols + template_cols - 1),
        pitch(cols | 1),
        others(template_cols < 2 * kWindowRun ? 0 : template_cols / kWindowRun - 1),
        group_pitch((runs + others) | 1) {}

  __host__ __device__ int size() const { return kStripRows * (pitch + group_pitch); }
  __device__ __forceinline__ RunSums* row(RunSums* all, int y) const { return all + y * pitch; }
  __device__ __forceinline__ RunSums* groups_of_row(RunSums* all, int y) const {
    return all + kStripRows * pitch + y * group_pitch;
  }

  int cols, pitch;
  int others;  // groups at which no run begins, but which windows of the last runs contain
  int group_pitch;
};
inline std::size_t factors_shared_bytes(const Problem& q) {
  if (!is_normalised(q.fields.score.kind)) return 0;
  return sizeof(RunSums) *
         static_cast<std::size_t>(BlockSums(static_cast<int>(q.left.cols)).size());
}
// The first sum of values (kind 0) or of squares (kind 1); they alternate.
__device__ __forceinline__ double* sums_of_kind(RunSums* sums, int kind) {
  return &sums->values + kind;
}

__device__ __forceinline__ bool is_last_block() {
  return blockIdx.x + 1 == gridDim.x && blockIdx.y + 1 == gridDim.y && blockIdx.z + 1 == gridDim.z;
}

// A block computes kStripRows x kFactorCols windows. grid: columns, rows (in a stride), frames (in
// a stride).
static __global__ void __launch_bounds__(kFactorsThreads, 4)
    frame_factors_kernel(TemplateProblem q, TemplateMemory memory, FrameStrips strips,
                         const float* right) {
  static_assert(2 * kStripRows * (kFactorCols / kWindowRun) == kFactorsThreads);
  const int thread = static_cast<int>(threadIdx.x);
  const BlockSums places(q.left_cols);
  auto* const shared = dynamic_shared<RunSums>();
  const int col = static_cast<int>(blockIdx.x) * kFactorCols;
  if (!is_last_block()) let_next_start();
#pragma unroll 1
  for (int frame = static_cast<int>(blockIdx.z); frame < q.rights;
       frame += static_cast<int>(gridDim.z)) {
    if (thread == 0) strips.wait_for_sums(frame, memory.parts);
    block::barrier();
    const auto pivot = static_cast<double>(strips.pivots[frame]);
    const float* const from = right + frame * q.right_size();
    const RunSums* const sums = strips.of_frame(frame, q.right_cols);
#pragma unroll 1
    for (int row = static_cast<int>(blockIdx.y) * kStripRows; row < q.out_rows;
         row += static_cast<int>(gridDim.y) * kStripRows) {
      block::barrier();  // the sums of the previous rows have been read
#pragma unroll 1
      for (int x = thread; x < places.cols; x += kFactorsThreads) {
        const int at_x = q.first_sx + col + x, at_y = q.first_sy + row;
        // No window that is stored has elements beyond the last row and column; loads there are
        // clamped to it.
        const int own_x = at_x < q.right_cols ? at_x : q.right_cols - 1;
        const int last = q.right_rows - 1 - at_y;
        const float* const column = from + (at_y * q.right_cols + own_x);
        const RunSums* const strip = sums + (strips.at(at_y) * q.right_cols + own_x);
        RunSums* const to = shared + x;
        const auto add_up = [&](auto load) {
          sums_of_column(
              q.left_rows, load,
              [&](float of) {
                const double value = static_cast<double>(of) - pivot;
                return RunSums{value, value * value};
              },
              [&](int s) { return strip[s * q.right_cols]; },
              [&](int j, const RunSums& of) { to[j * places.pitch] = of; });
        };
        if (q.left_rows + kStripRows - 1 <= last) {
          add_up([&](int y) { return column[y * q.right_cols]; });
        } else {
          add_up([&](int y) { return column[(y < last ? y : last) * q.right_cols]; });
        }
      }
      block::barrier();
      // Of two neighbouring threads one has the sums of values and the other one those of squares.
      double windows[kWindowRun];
      const int kind = thread % 2, y = thread / 2 % kStripRows, run = thread / (2 * kStripRows);
      double* const of_row = sums_of_kind(places.row(shared, y) + run * kWindowRun, kind);
      double* const of_groups = sums_of_kind(places.groups_of_row(shared, y) + run, kind);
      of_groups[0] = begin_run(windows, of_row);
#pragma unroll 1
      for (int i = thread; i < 2 * kStripRows * places.others; i += kFactorsThreads) {
        const int of_y = i / 2 % kStripRows;  // this and `kind` are the same in all iterations
        const int number = i / (2 * kStripRows) + BlockSums::runs;
        double not_of_a_run[kWindowRun];
        *sums_of_kind(places.groups_of_row(shared, of_y) + number, kind) = begin_run(
            not_of_a_run, sums_of_kind(places.row(shared, of_y) + number * kWindowRun, kind));
      }
      block::barrier();
      finish_run(windows, q.left_cols, of_row, of_groups);
      block::barrier();  // the sums of the columns have been read
#pragma unroll
      for (int j = 0; j < kWindowRun; ++j) of_row[2 * j] = windows[j];
      if (thread == 0) strips.wait_for_facts(frame, memory.parts);
      block::barrier();
      if (is_last_block()) {
        wait_for_previous();  // only this block stays resident until the spectra are done
        let_next_start();
      }
      const FrameFacts facts = memory.facts[frame];
      const auto unscaled = static_cast<double>(inverse_of_power(facts.scale));  // a power of two
      // Neighbouring threads store neighbouring factors. If a lane stored a whole run, each lane
      // would write a different sector.
      constexpr int kRowsAtOnce = kFactorsThreads / kFactorCols;
      static_assert(kRowsAtOnce * kFactorCols == kFactorsThreads);
      const int own_x = thread % kFactorCols, first_y = thread / kFactorCols;
      const int rows = q.out_rows - row < kStripRows ? q.out_rows - row : kStripRows;
      const int end_y = col + own_x < q.out_cols ? rows : 0;
      float* to = memory.factors + frame * q.out_size() +
                  static_cast<Index>(row + first_y) * q.out_cols + col + own_x;
      const RunSums* at = places.row(shared, first_y) + own_x;
      bool again = facts.wide != 0;
#pragma unroll 4
      for (int own_y = first_y; own_y < kStripRows; own_y += kRowsAtOnce) {
        const float factor = factor_at_once(q, strips.windows, *at, pivot, unscaled, again);
        if (own_y < end_y) *to = factor;
        at += kRowsAtOnce * places.pitch;
        to += kRowsAtOnce * q.out_cols;
      }
      if (!again) continue;
#pragma unroll 1
      for (int own_y = first_y; own_y < end_y; own_y += kRowsAtOnce) {
        const RunSums window_sums = places.row(shared, own_y)[own_x];
        const Index first =
            static_cast<Index>(q.first_sy + row + own_y) * q.right_cols + q.first_sx + col + own_x;
        const float factor =
            factor_again(q, strips.windows, window_sums, pivot, facts, from + first);
        memory.factors[frame * q.out_size() + static_cast<Index>(row + own_y) * q.out_cols + col +
                       own_x] = factor;
      }
    }
  }
}

}  // namespace xcorr::fused_fft
