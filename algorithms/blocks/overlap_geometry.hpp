// The geometry of overlaps, in 32 bits: the problem for a kernel, the 32 neighbouring shifts of a
// warp, and the groups of neighbouring output rows and of matrices that it computes at once.
#pragma once

#include "algorithms/blocks/pairs.hpp"

namespace xcorr::device {

struct DeviceProblem : Extents {
  explicit DeviceProblem(const Problem& q)
      : Extents(q),
        lefts(static_cast<int>(q.lefts)),
        rights_per_left(static_cast<int>(rights_of_a_left(q))),
        rights_shared(q.form == Form::n_to_m),
        left_size(q.left.size()),
        right_size(q.right.size()),
        out_size(q.out_size()) {}

  int lefts, rights_per_left;
  bool rights_shared;  // by all lefts (n-to-m); otherwise each left has separate rights
  Index left_size, right_size, out_size;  // elements of a matrix
};

// Kernels advance a few tiles beyond a matrix before they stop.
inline Support steps_fit(const Problem& problem) {
  constexpr Index kLimit = Index{1} << 30;
  for (const Index length :
       {problem.left.rows, problem.left.cols, problem.right.rows, problem.right.cols}) {
    if (length > kLimit) return no("more than 2^30 rows or columns");
  }
  return indices_fit(problem);
}

// For variants that add all products of an output into one register. In float32 such a sum of K
// uniform numbers loses about 1.5e-13 K^1.5 of its value. Measured: 2.2e-5 for 307,200 products,
// half of the error bound, and 1.7e-4 for 1,125,000, twice the bound. 2^19 products reach 0.85 of it.
inline constexpr Index kMostProductsOfASum = Index{1} << 19;
inline Support one_sum_fits(const PlanRequest& request) {
  const Index products = request.problem.max_overlap();
  if (request.precision == Precision::fp32 && products > kMostProductsOfASum) {
    return no("an output has " + std::to_string(products) +
              " products, and one float32 sum of more than 2^19 exceeds the error bound: choose "
              "tiled_direct with sums=blocked, or a transform");
  }
  return steps_fit(request.problem);
}

// The columns of 32 neighbouring shifts, one per lane, from output column 32 * block on.
struct WarpColumns {
  __device__ WarpColumns(const DeviceProblem& q, int block) {
    out = block * warp::kSize;
    const int rest = q.out_cols - out;
    lanes = rest < warp::kSize ? rest : warp::kSize;
    sx = q.first_sx + out;
    const int right = sx + lanes - 1 + q.left_cols;
    begin = sx > 0 ? sx : 0;
    end = right < q.right_cols ? right : q.right_cols;
  }
  int out;         // output column of lane 0
  int lanes;       // lanes that have an output
  int sx;          // shift of lane 0
  int begin, end;  // right columns that any of these lanes needs
};

// Up to kCount vertically adjacent outputs from output row `out` on.
struct OverlapGroup {
  __device__ OverlapGroup(const DeviceProblem& q, int row, int most) {
    out = row;
    const int rest = q.out_rows - out;
    count = rest < most ? rest : most;
    sy = q.first_sy + out;
    const int down = sy + count - 1, height = q.right_rows - sy;
    begin = down < 0 ? -down : 0;
    end = height < q.left_rows ? height : q.left_rows;
  }
  int out;
  int count;
  int sy;          // shift of the first output
  int begin, end;  // left rows that any of these outputs needs
};

// Several dense matrices of one shape; the first `count` exist.
template <typename T>
struct MatrixRun {
  const T* first;
  Index size;
  int rows, cols, count;

  // Calls use(matrix, k, value) for column x of rows y .. y + kRows - 1 of the first kMats
  // matrices. The value is 0 outside a matrix, from row `height` on, and for a matrix that does not
  // exist.
  template <int kMats, int kRows, typename Use>
  __device__ __forceinline__ void load(int y, int x, int height, const Use& use) const {
    const T* matrix = first + (static_cast<Index>(y) * cols + x);
    const bool inside = static_cast<unsigned>(x) < static_cast<unsigned>(cols);
#pragma unroll
    for (int m = 0; m < kMats; ++m) {
      const T* element = matrix;
#pragma unroll
      for (int k = 0; k < kRows; ++k) {
        const bool exists =
            inside && m < count && static_cast<unsigned>(y + k) < static_cast<unsigned>(height);
        use(m, k, exists ? *element : T(0));
        element += cols;
      }
      matrix += size;
    }
  }
};

// Up to left_mats x right_mats pairs that are computed at once: group l of neighbouring lefts, and
// group r of neighbouring rights of a left.
template <typename T>
struct PairGroup {
  __device__ __forceinline__ PairGroup(const DeviceProblem& q, int l, int r, int left_mats,
                                       int right_mats, const T* left, const T* right) {
    l *= left_mats;
    r *= right_mats;
    const int lefts_rest = q.lefts - l, rights_rest = q.rights_per_left - r;
    first_pair = static_cast<Index>(l) * q.rights_per_left + r;
    lefts = {left + l * q.left_size, q.left_size, q.left_rows, q.left_cols,
             lefts_rest < left_mats ? lefts_rest : left_mats};
    rights = {right + (q.rights_shared ? r : first_pair) * q.right_size, q.right_size, q.right_rows,
              q.right_cols, rights_rest < right_mats ? rights_rest : right_mats};
  }
  Index first_pair;
  MatrixRun<T> lefts, rights;
};

}  // namespace xcorr::device
