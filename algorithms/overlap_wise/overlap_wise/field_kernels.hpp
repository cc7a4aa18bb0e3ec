// The kernels of overlap_wise for problems with fields (harness/problem/fields.hpp): all scores but
// phase, both boundaries, masks and views. Accuracy comes before speed. For every scalar type,
// means, sums and norms are float64, and sums of squares are relative to the mean of the same
// overlap, in a second pass (blocks/overlap_score.hpp). Every sum has a fixed order, so that equal
// inputs give equal bits.
//
//   mean_kernel            the mean of each matrix (covariance)
//   largest_counts_kernel  with masks: the largest number of valid elements in the window
//   score_kernel           the outputs, one thread each
#pragma once

#include "algorithms/blocks/block_sum.hpp"
#include "algorithms/blocks/overlap_score.hpp"
#include "algorithms/blocks/pairs.hpp"
#include "algorithms/device/cuda.hpp"
#include "algorithms/overlap_wise/overlap_wise/tuning.hpp"

namespace xcorr::overlap_wise {

// A mean in two parts. The pivot is a float64 number near the mean, and `rest` is the mean of the
// differences from it, so that an offset of the data costs no bit of the difference.
struct Mean {
  double pivot = 0, rest = 0;
};

// The matrices of one side.
template <typename T>
struct Matrices {
  const T* values = nullptr;
  const std::uint8_t* mask = nullptr;  // null: all elements are valid
  const Index* offsets = nullptr;      // null: dense
  Index pitch = 0;                     // windows
  bool offset_of_row = false;          // channels
  Shape shape;

  __device__ __forceinline__ const T* row(Index matrix, Index y) const {
    if (!offsets) return values + (matrix * shape.rows + y) * shape.cols;
    return values +
           (offset_of_row ? offsets[matrix * shape.rows + y] : offsets[matrix] + y * pitch);
  }
  __device__ __forceinline__ const std::uint8_t* mask_row(Index matrix, Index y) const {
    return mask ? mask + (matrix * shape.rows + y) * shape.cols : nullptr;
  }
};

template <typename T>
struct FieldArguments {
  Geometry q;
  Pairing pairing;
  Boundary boundary;
  Score score;
  Matrices<T> left, right;
  const Mean* means;     // of the left matrices, then of the right ones; null unless covariance
  const Index* largest;  // per pair, with masks; null: `largest_of_all`
  Index largest_of_all;
};

// The sum of value - pivot over the valid elements of a matrix; *count is set to their number.
template <typename T>
__device__ __forceinline__ double sum_about(const Matrices<T>& of, Index matrix, double pivot,
                                            double* count) {
  double sum = 0, valid = 0;
  for (Index i = threadIdx.x; i < of.shape.size(); i += OverlapWiseTuning::kMeanThreads) {
    const Index y = i / of.shape.cols, x = i % of.shape.cols;
    const std::uint8_t* mask = of.mask_row(matrix, y);
    if (mask && !mask[x]) continue;
    sum += static_cast<double>(of.row(matrix, y)[x]) - pivot;
    ++valid;
  }
  *count = sum_over_block<OverlapWiseTuning::kMeanThreads>(valid);
  return sum_over_block<OverlapWiseTuning::kMeanThreads>(sum);
}

// means[i] = the mean of the valid elements of matrix i, 0 where there are none. A block takes
// matrices in a stride.
template <typename T>
__global__ void __launch_bounds__(OverlapWiseTuning::kMeanThreads)
    mean_kernel(Matrices<T> of, Index matrices, Mean* means) {
  for (Index matrix = blockIdx.x; matrix < matrices; matrix += gridDim.x) {
    double count = 0;
    Mean mean;
    mean.pivot = sum_about(of, matrix, 0, &count);
    if (count > 0) mean.pivot /= count;
    mean.rest = sum_about(of, matrix, mean.pivot, &count);
    if (count > 0) mean.rest /= count;
    if (threadIdx.x == 0) means[matrix] = mean;
  }
}

// Calls use(l, r) for each product of the shift whose elements are valid in both matrices.
template <typename T, typename Use>
__device__ __forceinline__ void for_overlap(const FieldArguments<T>& a, Pair pair, Index sy,
                                            Index sx, const Use& use) {
  const Shape left = a.left.shape, right = a.right.shape;
  const bool wraps = a.boundary == Boundary::circular;
  const Overlap ys = wraps ? Overlap{0, left.rows} : overlap(left.rows, right.rows, sy);
  const Overlap xs = wraps ? Overlap{0, left.cols} : overlap(left.cols, right.cols, sx);
  for (Index y = ys.first; y < ys.first + ys.count; ++y) {
    const Index right_y = wraps ? wrapped(y, sy, right.rows) : y + sy;
    const T* l = a.left.row(pair.left, y);
    const T* r = a.right.row(pair.right, right_y);
    const std::uint8_t* left_mask = a.left.mask_row(pair.left, y);
    const std::uint8_t* right_mask = a.right.mask_row(pair.right, right_y);
    Index right_x = wraps ? wrapped(xs.first, sx, right.cols) : xs.first + sx;
    for (Index x = xs.first; x < xs.first + xs.count; ++x) {
      const bool valid = (!left_mask || left_mask[x]) && (!right_mask || right_mask[right_x]);
      if (valid) use(l[x], r[right_x]);
      if (++right_x == right.cols) right_x = 0;
    }
  }
}

// partial[pair][part] = the largest number of valid elements among the shifts of a block of one
// warp. grid: parts (x), pairs in a stride (y).
template <typename T>
__global__ void __launch_bounds__(warp::kSize)
    largest_counts_kernel(FieldArguments<T> a, Index* partial) {
  for (Index p = blockIdx.y; p < a.q.pairs(); p += gridDim.y) {
    const Pair pair = a.pairing.pair(static_cast<std::uint32_t>(p));
    Index largest = 0;
    for (Index i = static_cast<Index>(blockIdx.x) * warp::kSize + threadIdx.x; i < a.q.out_size();
         i += static_cast<Index>(gridDim.x) * warp::kSize) {
      Index count = 0;
      for_overlap(a, pair, a.q.window.sy.first + i / a.q.out_cols(),
                  a.q.window.sx.first + i % a.q.out_cols(), [&](T, T) { ++count; });
      largest = count > largest ? count : largest;
    }
    for (int by = warp::kSize / 2; by > 0; by /= 2) {
      const Index other = warp::shuffle_xor(largest, by);
      largest = other > largest ? other : largest;
    }
    if (threadIdx.x == 0) partial[p * gridDim.x + blockIdx.x] = largest;
  }
}

// largest[pair] = the largest of its parts. One thread per pair.
template <typename Count>
__global__ void __launch_bounds__(warp::kSize)
    largest_of_parts_kernel(const Count* partial, Index parts, Index pairs, Count* largest) {
  for (Index p = static_cast<Index>(blockIdx.x) * warp::kSize + threadIdx.x; p < pairs;
       p += static_cast<Index>(gridDim.x) * warp::kSize) {
    Count found = 0;
    for (Index i = 0; i < parts; ++i) {
      found = partial[p * parts + i] > found ? partial[p * parts + i] : found;
    }
    largest[p] = found;
  }
}

// The scores product and covariance; for product the means are 0.
template <typename T>
__device__ __forceinline__ double sum_of_products(const FieldArguments<T>& a, Pair pair, Mean left,
                                                  Mean right, Index sy, Index sx) {
  double sum = 0;
  for_overlap(a, pair, sy, sx, [&](T l, T r) {
    sum += ((static_cast<double>(l) - left.pivot) - left.rest) *
           ((static_cast<double>(r) - right.pivot) - right.rest);
  });
  return sum;
}

// The scores ncc and zncc, in [-1, 1]. 0 below the least overlap, and where a side is constant in
// the overlap.
template <typename T>
__device__ __forceinline__ double normalised(const FieldArguments<T>& a, Pair pair, Index sy,
                                             Index sx, Index largest) {
  Index count = 0;
  if (a.largest) {
    for_overlap(a, pair, sy, sx, [&](T, T) { ++count; });
  } else {
    count = overlap(a.left.shape.rows, a.right.shape.rows, sy).count *
            overlap(a.left.shape.cols, a.right.shape.cols, sx).count;
  }
  if (static_cast<double>(count) < a.score.min_overlap * static_cast<double>(largest)) return 0;
  return overlap_score(a.score.kind, [&](const auto& use) {
    for_overlap(a, pair, sy, sx,
                [&](T l, T r) { use(static_cast<double>(l), static_cast<double>(r)); });
  });
}

// grid: columns (x), rows in a stride (y), pairs in a stride (z).
template <typename T>
__global__ void __launch_bounds__(OverlapWiseTuning::kScoreRows* warp::kSize,
                                  OverlapWiseTuning::kScoreBlocks)
    score_kernel(FieldArguments<T> a, T* __restrict__ out) {
  const Index col = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (col >= a.q.out_cols()) return;
  const Index sx = a.q.window.sx.first + col;
  const bool is_ratio = is_normalised(a.score.kind);
  for (Index p = blockIdx.z; p < a.q.pairs(); p += gridDim.z) {
    const Pair pair = a.pairing.pair(static_cast<std::uint32_t>(p));
    const Mean left = a.means ? a.means[pair.left] : Mean{};
    const Mean right = a.means ? a.means[a.q.lefts + pair.right] : Mean{};
    const Index largest = a.largest ? a.largest[p] : a.largest_of_all;
    for (Index row = static_cast<Index>(blockIdx.y) * blockDim.y + threadIdx.y;
         row < a.q.out_rows(); row += static_cast<Index>(gridDim.y) * blockDim.y) {
      const Index sy = a.q.window.sy.first + row;
      const double value = is_ratio ? normalised(a, pair, sy, sx, largest)
                                    : sum_of_products(a, pair, left, right, sy, sx);
      out[(p * a.q.out_rows() + row) * a.q.out_cols() + col] = static_cast<T>(value);
    }
  }
}

}  // namespace xcorr::overlap_wise
