// Factors of the windows of frames, as factors_kernel (template_factors.hpp) makes them, of what the survey has added
// up (frame_survey.hpp), and beside the spectra of templates: a template is transformed by one block, which leaves all
// other SMs idle.
//
//   launch               waits for the one before        lets the next one start
//   survey               at its beginning                then
//   spectra              at its beginning                then: the survey has ended, so all of it is there
//   factors              before it stores                then: spectra and facts of frames are there
//   tiles, of templates  of one: before it reads factors -
//                        of several: at its beginning
#pragma once

#include "algorithms/device/approximations.hpp"
#include "algorithms/fused_fft/template_fft/frame_survey.hpp"
#include "algorithms/fused_fft/template_fft/window_sums.hpp"

namespace xcorr::fused_fft {

// What factor_of_window (template_factors.hpp) gives, of sums about a number of which the mean of the frame is `mean`
// away, without a branch: a thread has several on their way.
__device__ __forceinline__ float factor_at_once(const TemplateProblem& q, const RunSums& sums,
                                                double terms, double share, double mean,
                                                double unscaled) {
  double squares = sums.squares, from_mean = 0;
  if (q.is_centred) {
    const double deviation = sums.values * share;
    from_mean = deviation - mean;
    squares -= sums.values * deviation;
  }
  const auto factor = static_cast<float>(inverse_root(squares) * unscaled);
  const bool is_finite = sums.squares - sums.squares == 0;
  const bool is_constant = is_rounding(squares, from_mean, terms) || squares < 0x1p-1000;
  return select(is_finite, select(is_constant, 0.0f, factor), no_factor());
}

// The sums of a block in shared memory, first of values and then of squares: [rows][pitch] of columns, and behind
// them [rows][group_pitch] of groups of kWindowRun of these. Odd pitches put rows into different banks.
struct BlockSums {
  static constexpr int runs = kFactorCols / kWindowRun;

  __host__ __device__ explicit BlockSums(int template_cols)
      : cols(kFactorCols + template_cols - 1),
        pitch(cols | 1),
        others(template_cols < 2 * kWindowRun ? 0 : template_cols / kWindowRun - 1),
        group_pitch((runs + others) | 1) {}

  __host__ __device__ int size() const { return kStripRows * (pitch + group_pitch); }
  __device__ __forceinline__ double* row(double* all, int kind, int y) const {
    return all + kind * size() + y * pitch;
  }
  __device__ __forceinline__ double* groups_of_row(double* all, int kind, int y) const {
    return all + kind * size() + kStripRows * pitch + y * group_pitch;
  }

  int cols, pitch;
  int others;  // groups of which none begins a run, but which windows of the last runs have
  int group_pitch;
};
inline std::size_t factors_shared_bytes(const Problem& q) {
  if (!is_normalised(q.fields.score.kind)) return 0;
  return 2 * sizeof(double) *
         static_cast<std::size_t>(BlockSums(static_cast<int>(q.left.cols)).size());
}

// A block has kStripRows x kFactorCols windows. grid: columns, rows (in a stride), frames (in a stride).
static __global__ void __launch_bounds__(kFactorsThreads, 4)
    frame_factors_kernel(TemplateProblem q, TemplateMemory memory, FrameStrips strips,
                         const float* right) {
  constexpr int kTasks = kStripRows * (kFactorCols / kWindowRun);
  static_assert(2 * kTasks == kFactorsThreads);
  const int thread = static_cast<int>(threadIdx.x);
  const BlockSums places(q.left_cols);
  auto* const shared = dynamic_shared<double>();
  const int col = static_cast<int>(blockIdx.x) * kFactorCols;
#pragma unroll 1
  for (int frame = static_cast<int>(blockIdx.z); frame < q.rights;
       frame += static_cast<int>(gridDim.z)) {
    const auto pivot = static_cast<double>(strips.pivots[frame]);
    const float* const from = right + frame * q.right_size();
    const double* const sums = strips.of_frame(frame, q.right_cols);
#pragma unroll 1
    for (int row = static_cast<int>(blockIdx.y) * kStripRows; row < q.out_rows;
         row += static_cast<int>(gridDim.y) * kStripRows) {
      block::barrier();  // the sums of the rows before have been read
#pragma unroll 1
      for (int x = thread; x < places.cols; x += kFactorsThreads) {
        const int at_x = q.first_sx + col + x, at_y = q.first_sy + row;
        // Windows of the problem have no elements beyond the last row and column. Any stand for these.
        const int own_x = at_x < q.right_cols ? at_x : q.right_cols - 1;
        const int last = q.right_rows - 1 - at_y;
        const float* const column = from + static_cast<Index>(at_y) * q.right_cols + own_x;
        const double* const strip =
            sums + static_cast<Index>(2 * strips.at(at_y)) * q.right_cols + own_x;
        double* const values = places.row(shared, 0, 0) + x;
        double* const squares = places.row(shared, 1, 0) + x;
        const auto add_up = [&](auto load) {
          sums_of_column(
              q.left_rows, load,
              [&](float of) {
                const double value = static_cast<double>(of) - pivot;
                return RunSums{value, value * value};
              },
              [&](int s) {
                const double* const of = strip + 2 * s * q.right_cols;
                return RunSums{of[0], of[q.right_cols]};
              },
              [&](int j, const RunSums& of) {
                values[j * places.pitch] = of.values;
                squares[j * places.pitch] = of.squares;
              });
        };
        if (q.left_rows + kStripRows - 1 <= last) {
          add_up([&](int y) { return column[y * q.right_cols]; });
        } else {
          add_up([&](int y) { return column[(y < last ? y : last) * q.right_cols]; });
        }
      }
      block::barrier();
      // Half of the threads have the sums of the values, the other half those of the squares.
      double windows[kWindowRun];
      const int kind = thread / kTasks, y = thread % kStripRows, run = thread % kTasks / kStripRows;
      double* const of_row = places.row(shared, kind, y) + run * kWindowRun;
      double* const of_groups = places.groups_of_row(shared, kind, y) + run;
      of_groups[0] = begin_run(windows, of_row);
#pragma unroll 1
      for (int i = thread; i < 2 * kStripRows * places.others; i += kFactorsThreads) {
        const int of_y = i % kStripRows, of_kind = i / kStripRows % 2;
        const int number = i / (2 * kStripRows) + BlockSums::runs;
        const double* const from_row = places.row(shared, of_kind, of_y) + number * kWindowRun;
        double not_of_a_run[kWindowRun];
        places.groups_of_row(shared, of_kind, of_y)[number] = begin_run(not_of_a_run, from_row);
      }
      block::barrier();
      finish_run(windows, q.left_cols, of_row, of_groups);
      block::barrier();  // the sums of the columns have been read
#pragma unroll
      for (int j = 0; j < kWindowRun; ++j) of_row[j] = windows[j];
      block::barrier();
      wait_for_previous();
      let_next_start();
      const FrameFacts facts = memory.facts[frame];
      const double mean = facts.mean - pivot;
      const auto unscaled = static_cast<double>(1 / facts.scale);  // a power of two
      // By neighbouring threads for neighbouring places: a run of each lane would be a sector each.
      constexpr int kRowsAtOnce = kFactorsThreads / kFactorCols;
      static_assert(kRowsAtOnce * kFactorCols == kFactorsThreads);
      const int own_x = thread % kFactorCols, first_y = thread / kFactorCols;
      const int rows = q.out_rows - row < kStripRows ? q.out_rows - row : kStripRows;
      const int end_y = col + own_x < q.out_cols ? rows : 0;
      float* const to = memory.factors + frame * q.out_size() +
                        static_cast<Index>(row) * q.out_cols + col + own_x;
      const double* const own = places.row(shared, 0, 0) + own_x;
#pragma unroll 4
      for (int k = 0; k < kStripRows; k += kRowsAtOnce) {
        const int own_y = first_y + k;
        const double* const at = own + own_y * places.pitch;
        const float factor = factor_at_once(q, {at[0], at[places.size()]}, strips.terms,
                                            strips.share, mean, unscaled);
        if (own_y < end_y) to[own_y * q.out_cols] = factor;
      }
    }
  }
}

}  // namespace xcorr::fused_fft
