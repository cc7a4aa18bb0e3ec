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

#include "algorithms/fused_fft/template_fft/frame_survey.hpp"

namespace xcorr::fused_fft {

// 1 / sqrt(value) of a number that float32 need not hold: the approximation of the hardware, and a step of Newton's
// method. A power of 4 times the value changes no bit but the exponent's.
__device__ __forceinline__ double inverse_root_by_newton(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const int exponent = static_cast<int>(bits >> 52) - 1023;
  const int odd = exponent & 1, half = (exponent - odd) / 2;
  const double small = std::bit_cast<double>((bits & 0xfffffffffffffu) |
                                             static_cast<std::uint64_t>(1023 + odd) << 52);
  const auto root = static_cast<double>(rsqrtf(static_cast<float>(small)));
  const double rest = std::fma(-small * root, root, 1.0);
  return std::fma(0.5 * root, rest, root) *
         std::bit_cast<double>(static_cast<std::uint64_t>(1023 - half) << 52);
}

// Of a block: sums of values and of squares.
inline std::size_t factors_shared_bytes(const Problem& q) {
  if (!is_normalised(q.fields.score.kind)) return 0;
  return sizeof(RunSums) * kStripRows *
         static_cast<std::size_t>(FactorTile::pitch(FactorTile::cols(q)));
}

// A block has kStripRows x kFactorCols windows. grid: columns, rows (in a stride), frames (in a stride).
static __global__ void __launch_bounds__(kFactorsThreads, 4)
    frame_factors_kernel(TemplateProblem q, TemplateMemory memory, FrameStrips strips,
                         const float* right) {
  constexpr int kTasks = kStripRows * (kFactorCols / kWindowRun);
  static_assert(2 * kTasks <= kFactorsThreads);
  const int thread = static_cast<int>(threadIdx.x);
  const int cols = kFactorCols + q.left_cols - 1, pitch = cols | 1;
  auto* const values = dynamic_shared<double>();
  double* const squares = values + kStripRows * pitch;
  const int col = static_cast<int>(blockIdx.x) * kFactorCols;
  const int whole = q.left_rows / kStripRows;  // strips of a window of a block's first row
#pragma unroll 1
  for (int frame = static_cast<int>(blockIdx.z); frame < q.rights;
       frame += static_cast<int>(gridDim.z)) {
    const auto pivot = static_cast<double>(strips.pivots[frame]);
    const float* const from = right + frame * q.right_size();
    const RunSums* const sums =
        strips.sums + static_cast<Index>(frame) * strips.count * q.right_cols;
#pragma unroll 1
    for (int row = static_cast<int>(blockIdx.y) * kStripRows; row < q.out_rows;
         row += static_cast<int>(gridDim.y) * kStripRows) {
      block::barrier();  // the sums of the rows before have been read
#pragma unroll 1
      for (int x = thread; x < cols; x += kFactorsThreads) {
        const int at_x = q.first_sx + col + x, at_y = q.first_sy + row;
        // Windows of the problem have no elements beyond the last row and column. Any stand for these.
        const int own_x = at_x < q.right_cols ? at_x : q.right_cols - 1;
        const int last = q.right_rows - 1 - at_y;
        const float* const column = from + static_cast<Index>(at_y) * q.right_cols + own_x;
        const RunSums* const strip =
            sums + static_cast<Index>(strips.at(at_y)) * q.right_cols + own_x;
        sums_of_windows<kStripRows, 8>(
            [&](int j) { return PlacedSums{values + j * pitch + x, squares + j * pitch + x}; },
            q.left_rows, [&](int i) { return column[i * q.right_cols]; },
            [&](int i) { return column[(i < last ? i : last) * q.right_cols]; },
            [&](float of) {
              const double value = static_cast<double>(of) - pivot;
              return RunSums{value, value * value};
            },
            [&](int& i) {
              constexpr int kAtOnce = 4;
              RunSums all{}, of[kAtOnce];
#pragma unroll 1
              for (int s = 1; s < whole; s += kAtOnce) {
#pragma unroll
                for (int k = 0; k < kAtOnce; ++k) {
                  of[k] = strip[(s + k < whole ? s + k : s) * q.right_cols];
                }
#pragma unroll
                for (int k = 0; k < kAtOnce; ++k) {
                  if (s + k < whole) all.add(of[k]);
                }
              }
              i = whole * kStripRows;
              return all;
            });
      }
      block::barrier();
      // Half of the warps have the sums of the values, the other half those of the squares: both
      // together would be too many registers.
      OneSum windows[kWindowRun];
      const int task = thread % kTasks, y = task % kStripRows, x = task / kStripRows * kWindowRun;
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
#pragma unroll 2
      for (int own_y = first_y; own_y < end_y; own_y += kRowsAtOnce) {
        const int at = own_y * pitch + own_x;
        to[own_y * q.out_cols] =
            factor_of_window(q, {values[at], squares[at]}, strips.terms, strips.share, mean,
                             unscaled, [](double of) { return inverse_root_by_newton(of); });
      }
    }
  }
}

}  // namespace xcorr::fused_fft
