// The largest number, over all shifts, of elements that are valid in both matrices. Scores at
// shifts with a much smaller number are 0 (min_overlap).
//
//   most_kernel  with masks, by parts of the shifts of an owner
//
// An owner is a matrix or pair whose mask decides how many elements are valid at a shift: with one
// mask a matrix of that side, with two masks a pair of a chunk. A thread processes several owners
// at once, because the offset of a shift in the integral images is the same for all of them, and so
// is the number of a left matrix that they share. If there are few owners it processes several
// outputs at once, so that as many loads are in flight. Data of owners lies in shared memory: in
// registers it halved the warps of an SM, and the kernel was no faster than with one owner per
// thread (163 us in place of 148, one left matrix for a hundred of 256 x 256 on an H200).
#pragma once

#include "algorithms/fft/cufft_normalised/scores.hpp"

namespace xcorr::fft {

// Owners per thread, if there are so many that groups of them still keep a GPU busy.
constexpr int kMostOwners = 4;
constexpr Index kManyOwners = small_if_emulated(32, 3);

// The terms from which valid_in_both() computes the number of an owner.
struct CountSource {
  const std::uint32_t *left, *right;  // integral images; null if a side has no mask
  const float* both;                  // from the transform
  double of_both, of_left, of_right, of_area;
};
template <typename S>
__device__ __forceinline__ CountSource count_source(const ScoreArguments& a, Index owner) {
  constexpr bool kBoth = S::kMasks == Masks::both;
  const Pair own = kBoth ? a.pairs.matrices(owner) : Pair{owner, a.pairs.lefts + owner};
  CountSource source{nullptr, nullptr, a.sums, 0, S::kLeft ? 1.0 : 0.0, S::kRight ? 1.0 : 0.0, 0};
  if (S::kLeft) source.left = a.left_integrals.counts + a.left_image(own.left);
  if (S::kRight) source.right = a.right_integrals.counts + a.right_image(own.right);
  if constexpr (kBoth) {
    const PlaneFacts &l = a.facts[own.left], &r = a.facts[own.right];
    source.both += a.plane<S>(owner, S::kNumber - 1);
    source.of_both = l.mask_size * r.mask_size;
    source.of_left = r.mask;
    source.of_right = l.mask;
    source.of_area = -l.mask * r.mask;
  }
  return source;
}

// How many elements are valid at a shift, up to the rounding of the transform.
__device__ __forceinline__ double elements_at(const CountSource& of, std::uint32_t left,
                                              std::uint32_t right, float both, int area) {
  return both * of.of_both + left * of.of_left + right * of.of_right + area * of.of_area;
}

// The number of valid elements of an owner at the shift nearest to the middle: a lower bound of the
// largest number. Only shifts with a larger overlap, which are few, are evaluated.
template <typename S>
__device__ __forceinline__ double elements_in_the_middle(const ScoreArguments& a,
                                                         const CountSource& of) {
  const auto nearest = [](int middle, int first, int count) {
    return middle < first ? first : middle >= first + count ? first + count - 1 : middle;
  };
  const int sy = nearest((a.right.rows - a.left.rows) / 2, a.first_sy, a.out_rows);
  const int sx = nearest((a.right.cols - a.left.cols) / 2, a.first_sx, a.out_cols);
  const OverlapRectangle found = a.in_left(sy, sx);
  if (found.area() <= 0) return 0;
  const std::uint32_t left = S::kLeft ? BoxCorners(found, a.left.cols).count(of.left) : 0;
  const std::uint32_t right =
      S::kRight ? BoxCorners(found.moved(sy, sx), a.right.cols).count(of.right) : 0;
  const float both = S::kMasks == Masks::both ? of.both[a.place(sy, sx)] : 0.0f;
  return rint(elements_at(of, left, right, both, found.area()));
}

// A warp processes a row of outputs, so that what depends on the row is computed once. grid: parts,
// groups of kOwners owners (in a stride).
template <typename S, int kOwners>
__global__ void __launch_bounds__(kScoreThreads, 3) most_kernel(ScoreArguments a, Index owners) {
  constexpr bool kBoth = S::kMasks == Masks::both;
  constexpr int kOutputs = kMostOwners / kOwners;  // outputs per thread at once
  XCORR_SHARED(CountSource, source, kOwners);
  XCORR_SHARED(double, least, kOwners);
  XCORR_SHARED(double, of_warp, kOwners* kScoreWarps);
  const int own_warp = static_cast<int>(threadIdx.x) / warp::kSize;
  for (Index group = static_cast<Index>(blockIdx.y) * kOwners; group < owners;
       group += static_cast<Index>(gridDim.y) * kOwners) {
    block::barrier();  // the previous owners and values may still be read
    if (const int k = static_cast<int>(threadIdx.x); k < kOwners) {
      // Beyond the last owner the last one is used again.
      source[k] = count_source<S>(a, group + k < owners ? group + k : owners - 1);
      least[k] = elements_in_the_middle<S>(a, source[k]);
    }
    block::barrier();
    double largest[kOwners];
    double least_of_all = least[0];
#pragma unroll
    for (int k = 0; k < kOwners; ++k) {
      largest[k] = least[k];
      least_of_all = least[k] < least_of_all ? least[k] : least_of_all;
    }
    const int least_area =
        static_cast<int>(least_of_all);  // an overlap has no more elements than its area
    for (int row = static_cast<int>(blockIdx.x) * kScoreWarps + own_warp; row < a.out_rows;
         row += static_cast<int>(gridDim.x) * kScoreWarps) {
      for (int first = warp::lane(); first < a.out_cols; first += kOutputs * warp::kSize) {
        int area[kOutputs];
        bool any = false;
        const int sy = a.first_sy + row;
#pragma unroll
        for (int i = 0; i < kOutputs; ++i) {
          // Beyond the last output of the row the first one is used again, which changes no
          // maximum.
          const int col = first + i * warp::kSize < a.out_cols ? first + i * warp::kSize : first;
          area[i] = a.in_left(sy, a.first_sx + col).area();
          any |= area[i] > least_area;
        }
        if (!any) continue;
        std::uint32_t left[kOutputs][kOwners] = {}, right[kOutputs][kOwners] = {};
        float both[kOutputs][kOwners] = {};
#pragma unroll
        for (int i = 0; i < kOutputs; ++i) {
          const int col = first + i * warp::kSize < a.out_cols ? first + i * warp::kSize : first;
          const int sx = a.first_sx + col;
          // If an output does not count, the first elements of all arrays are loaded, so that loads
          // need no condition.
          const bool counts = area[i] > least_area;
          const OverlapRectangle l = counts ? a.in_left(sy, sx) : OverlapRectangle{{0, 0}, {0, 0}};
          const BoxCorners left_corners(l, a.left.cols);
          const BoxCorners right_corners(l.moved(counts ? sy : 0, counts ? sx : 0), a.right.cols);
          const Index place = counts && kBoth ? a.place(sy, sx) : 0;
#pragma unroll
          for (int k = 0; k < kOwners; ++k) {
            if (S::kLeft) {
              left[i][k] = k > 0 && source[k].left == source[k > 0 ? k - 1 : 0].left
                               ? left[i][k > 0 ? k - 1 : 0]
                               : left_corners.count(source[k].left);
            }
            if (S::kRight) right[i][k] = right_corners.count(source[k].right);
            if (kBoth) both[i][k] = source[k].both[place];
          }
        }
#pragma unroll
        for (int i = 0; i < kOutputs; ++i) {
#pragma unroll
          for (int k = 0; k < kOwners; ++k) {
            const double count =
                elements_at(source[k], left[i][k], right[i][k], both[i][k], area[i]);
            largest[k] = area[i] > least_area && count > largest[k] ? count : largest[k];
          }
        }
      }
    }
#pragma unroll
    for (int k = 0; k < kOwners; ++k) {
      largest[k] = largest_of_lanes(largest[k]);
      if (warp::lane() == 0) of_warp[k * kScoreWarps + own_warp] = largest[k];
    }
    block::barrier();
    const int owner = static_cast<int>(threadIdx.x);
    if (owner < kOwners && group + owner < owners) {
      double most = of_warp[owner * kScoreWarps];
      for (int i = 1; i < kScoreWarps; ++i) {
        const double other = of_warp[owner * kScoreWarps + i];
        most = other > most ? other : most;
      }
      // A whole number, up to the rounding of the transform.
      a.most[(group + owner) * a.parts + blockIdx.x] = rint(most);
    }
  }
}

}  // namespace xcorr::fft
