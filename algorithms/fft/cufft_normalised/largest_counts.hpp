// The largest number of elements that are valid in both matrices, of all shifts: scores of much smaller overlaps
// are 0 (min_overlap).
//
//   most_kernel  with masks, by parts of the shifts of an owner
#pragma once

#include "algorithms/fft/cufft_normalised/scores.hpp"

namespace xcorr::fft {

// Whose mask decides how many elements are valid at a shift: with one mask the matrices of that side, with two the
// pairs of a chunk. The largest number of all shifts, by parts.
// A warp takes a row of outputs, so that what depends on the row is computed once. grid: parts, owners (in a stride).
template <typename S>
__global__ void __launch_bounds__(kScoreThreads) most_kernel(ScoreArguments a, Index owners) {
  XCORR_SHARED(double, of_warp, kScoreWarps);
  constexpr int kAtOnce = 4;  // so many outputs have their loads in flight
  for (Index owner = blockIdx.y; owner < owners; owner += gridDim.y) {
    const Pair own =
        S::kMasks == Masks::both ? a.pairs.matrices(owner) : Pair{owner, a.pairs.lefts + owner};
    double largest = 0;
    const PlaneFacts l_facts = a.facts[own.left], r_facts = a.facts[S::kRight ? own.right : 0];
    const std::uint32_t* const left_counts =
        S::kLeft ? a.left_integrals.counts + a.left_image(own.left) : nullptr;
    const std::uint32_t* const right_counts =
        S::kRight ? a.right_integrals.counts + a.right_image(own.right) : nullptr;
    const float* const of_both =
        a.sums + (S::kLeft && S::kRight ? a.plane<S>(owner, S::kNumber - 1) : 0);
    for (int row = static_cast<int>(blockIdx.x) * kScoreWarps +
                   static_cast<int>(threadIdx.x) / warp::kSize;
         row < a.out_rows; row += static_cast<int>(gridDim.x) * kScoreWarps) {
      for (int first = warp::lane(); first < a.out_cols; first += kAtOnce * warp::kSize) {
        std::uint32_t left[kAtOnce] = {}, right[kAtOnce] = {};
        float both[kAtOnce] = {};
        int area[kAtOnce];
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k) {
          // Behind the last output of the row the first one again: it changes no maximum.
          const int col = first + k * warp::kSize < a.out_cols ? first + k * warp::kSize : first;
          const int sy = a.first_sy + row, sx = a.first_sx + col;
          const OverlapRectangle found = a.in_left(sy, sx);
          area[k] = found.area();
          // Where nothing overlaps, the first elements of all arrays, so that no condition stands before a load.
          const bool overlaps = area[k] > 0;
          const OverlapRectangle l = overlaps ? found : OverlapRectangle{{0, 0}, {0, 0}};
          const int down = overlaps ? sy : 0, across = overlaps ? sx : 0;
          if (S::kLeft) left[k] = BoxCorners(l, a.left.cols).count(left_counts);
          if (S::kRight) {
            right[k] = BoxCorners(l.moved(down, across), a.right.cols).count(right_counts);
          }
          if (S::kLeft && S::kRight) both[k] = of_both[overlaps ? a.place(sy, sx) : 0];
        }
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k) {
          const double count =
              valid_in_both<S>(left[k], right[k], area[k], both[k], l_facts, r_facts);
          largest = area[k] > 0 && count > largest ? count : largest;
        }
      }
    }
    for (int by = warp::kSize / 2; by > 0; by /= 2) {
      const double other = warp::shuffle_xor(largest, by);
      largest = other > largest ? other : largest;
    }
    block::barrier();  // the first thread may still read the values before
    if (warp::lane() == 0) of_warp[threadIdx.x / warp::kSize] = largest;
    block::barrier();
    if (threadIdx.x == 0) {
      for (int i = 1; i < kScoreWarps; ++i) {
        largest = of_warp[i] > largest ? of_warp[i] : largest;
      }
      a.most[owner * a.parts + blockIdx.x] = largest;
    }
  }
}

}  // namespace xcorr::fft
