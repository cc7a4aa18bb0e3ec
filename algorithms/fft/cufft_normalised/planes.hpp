// What the transforms and the scores of cufft_normalised read. Of each matrix three zero-padded planes for
// transforms: its values without their mean, the squares of these and the mask, both without their means
// too, since what is constant needs no transform. And integral images in float64 of values, squares and
// mask, for the sums over the rectangle in which two matrices overlap.
//
// Values are divided by a power of two that is no less than the largest deviation, so that no square
// leaves the range of float32. Means and deviations are float64.
//
//   sums_kernel      sums, counts and extremes of parts of each matrix
//   planes_kernel    the planes, and the norms of parts of them
//   facts_kernel     the norms of whole planes
//   row_sums_kernel, column_sums_kernel    the integral images, along rows and then along columns
#pragma once

#include <cmath>

#include "algorithms/device/cuda.hpp"
#include "harness/variant.hpp"

namespace xcorr::fft {

constexpr int kPlaneWarps = 8, kPlaneThreads = kPlaneWarps * warp::kSize;
constexpr Index kMostPlaneBlocks = small_if_emulated(Index{1} << 16, 3);
// Blocks that share a matrix.
constexpr Index kMostMatrixParts = small_if_emulated(64, 3);

// Of a matrix, in the order of memory; integral images too.
enum Plane { kValuePlane, kSquarePlane, kMaskPlane, kPlanes };

// The matrices of one side, dense.
struct MaskedMatrices {
  const float* values = nullptr;
  const std::uint8_t* mask = nullptr;  // null: all elements are valid
  Shape shape;

  __device__ __forceinline__ bool is_valid(Index matrix, Index i) const {
    return !mask || mask[matrix * shape.size() + i] != 0;
  }
  __device__ __forceinline__ double value(Index matrix, Index i) const {
    return values[matrix * shape.size() + i];
  }
};

// Both sides: the lefts are matrices 0 to lefts - 1, the rights those behind them.
struct MatrixSides {
  MaskedMatrices left, right;
  Index lefts, matrices;

  __device__ __forceinline__ MaskedMatrices side(Index matrix) const {
    const bool is_left = matrix < lefts;
    return {is_left ? left.values : right.values, is_left ? left.mask : right.mask,
            is_left ? left.shape : right.shape};
  }
  __device__ __forceinline__ Index of_side(Index matrix) const {
    return matrix < lefts ? matrix : matrix - lefts;
  }
};

// Of a part of a matrix, and of a whole one.
struct MatrixSums {
  double sum, squares, count, least, most;  // extremes: where there is a valid element
};
__device__ __forceinline__ MatrixSums joined(const MatrixSums& a, const MatrixSums& b) {
  if (a.count == 0) return b;
  if (b.count == 0) return a;
  return {a.sum + b.sum, a.squares + b.squares, a.count + b.count,
          b.least < a.least ? b.least : a.least, b.most > a.most ? b.most : a.most};
}

// How a matrix became its planes: of a valid element
//   value plane = v = (value - pivot) * scale, square plane = v^2 - square, mask plane = 1 - mask
// and of others 0, 0 and -mask. Norms of the planes; that of the value plane squared is the sum of all v^2.
struct PlaneFacts {
  double pivot, scale, square, mask;
  double norm[kPlanes];

  // To the value plane, as float32.
  __device__ __forceinline__ float plane_value(double value) const {
    return static_cast<float>((value - pivot) * scale);
  }
};

// All but the norms, from the sums of all parts. `size`: elements of the matrix.
__device__ __forceinline__ PlaneFacts facts_of(const MatrixSums* parts, Index count, Index size,
                                               bool centred) {
  MatrixSums all = {};
  for (Index i = 0; i < count; ++i) all = joined(all, parts[i]);
  PlaneFacts facts = {};
  facts.pivot = centred && all.count > 0 ? all.sum / all.count : 0;
  const double above = fabs(all.most - facts.pivot), below = fabs(all.least - facts.pivot);
  const double farthest = above > below ? above : below;
  const bool has_size = all.count > 0 && farthest > 0 && farthest - farthest == 0;
  facts.scale = has_size ? ldexp(1.0, -1 - ilogb(farthest)) : 1.0;
  facts.mask = all.count / static_cast<double>(size);
  if (!has_size) return facts;
  // Near the mean of the squares; it need not be exact.
  const double raw = all.squares / all.count, centre = all.sum / all.count;
  const double spread = raw - (centred ? centre * centre : 0.0);
  const double square = spread * facts.scale * facts.scale;
  facts.square = square > 0 ? (square < 1 ? square : 1) : 0;
  return facts;
}

// parts[matrix][gridDim.x]. grid: parts, matrices (in a stride).
__global__ void __launch_bounds__(kPlaneThreads) sums_kernel(MatrixSides of, MatrixSums* parts) {
  XCORR_SHARED(MatrixSums, of_thread, kPlaneThreads);
  for (Index matrix = blockIdx.y; matrix < of.matrices; matrix += gridDim.y) {
    const MaskedMatrices side = of.side(matrix);
    const Index own = of.of_side(matrix);
    MatrixSums sums = {};
    for (Index i = static_cast<Index>(blockIdx.x) * kPlaneThreads + threadIdx.x;
         i < side.shape.size(); i += static_cast<Index>(gridDim.x) * kPlaneThreads) {
      if (!side.is_valid(own, i)) continue;
      const double value = side.value(own, i);
      sums = joined(sums, {value, value * value, 1, value, value});
    }
    block::barrier();  // the first thread may still read the sums before
    of_thread[threadIdx.x] = sums;
    block::barrier();
    for (int half = kPlaneThreads / 2; half > 0; half /= 2) {
      if (static_cast<int>(threadIdx.x) < half) {
        of_thread[threadIdx.x] = joined(of_thread[threadIdx.x], of_thread[threadIdx.x + half]);
      }
      block::barrier();
    }
    if (threadIdx.x == 0) parts[matrix * gridDim.x + blockIdx.x] = of_thread[0];
  }
}

struct PlaneArguments {
  MatrixSides of;
  const MatrixSums* sums;  // [matrix][parts]
  Index parts;
  bool centred;
  float* planes;  // [matrix][count][rows][pitch]
  int count;  // of planes: all, or without masks the first one, since the others change nothing then
  Index rows, pitch;
  double* squares;    // [matrix][gridDim.x][kPlanes]: of the values of a part of each plane
  double* integrals;  // [matrix][kPlanes][image]: the rows and columns of a matrix are dense in it
  Index image;
  int images;  // that are made: without masks that of the mask is not

  __device__ __forceinline__ PlaneFacts facts(Index matrix) const {
    return facts_of(sums + matrix * parts, parts, of.side(matrix).shape.size(), centred);
  }
};

// grid: parts, matrices (in a stride).
// Four blocks a multiprocessor leave a thread 64 registers; the compiler stops at 40 by itself, and spills.
__global__ void __launch_bounds__(kPlaneThreads, 4) planes_kernel(PlaneArguments a) {
  XCORR_SHARED(double, of_warp, kPlanes* kPlaneWarps);
  const Index size = a.rows * a.pitch;
  for (Index matrix = blockIdx.y; matrix < a.of.matrices; matrix += gridDim.y) {
    const MaskedMatrices side = a.of.side(matrix);
    const Index own = a.of.of_side(matrix);
    const PlaneFacts facts = a.facts(matrix);
    float* const planes = a.planes + matrix * a.count * size;
    double squares[kPlanes] = {};
    for (Index i = static_cast<Index>(blockIdx.x) * kPlaneThreads + threadIdx.x; i < size;
         i += static_cast<Index>(gridDim.x) * kPlaneThreads) {
      const Index y = i / a.pitch, x = i % a.pitch, at = y * side.shape.cols + x;
      float of[kPlanes] = {};
      if (y < side.shape.rows && x < side.shape.cols) {
        const bool valid = side.is_valid(own, at);
        const float value = valid ? facts.plane_value(side.value(own, at)) : 0.0f;
        of[kValuePlane] = value;
        of[kSquarePlane] =
            valid ? static_cast<float>(static_cast<double>(value) * value - facts.square) : 0.0f;
        of[kMaskPlane] = static_cast<float>((valid ? 1 : 0) - facts.mask);
      }
#pragma unroll
      for (int plane = 0; plane < kPlanes; ++plane) {
        if (plane >= a.count) continue;
        planes[plane * size + i] = of[plane];
        squares[plane] += static_cast<double>(of[plane]) * static_cast<double>(of[plane]);
      }
    }
    block::barrier();  // the first thread may still read the sums before
#pragma unroll
    for (int plane = 0; plane < kPlanes; ++plane) {
      const double sum = warp::reduce_add(squares[plane]);
      if (warp::lane() == 0) of_warp[plane * kPlaneWarps + threadIdx.x / warp::kSize] = sum;
    }
    block::barrier();
    if (threadIdx.x < kPlanes) {
      double sum = 0;
      for (int i = 0; i < kPlaneWarps; ++i) sum += of_warp[threadIdx.x * kPlaneWarps + i];
      a.squares[(matrix * gridDim.x + blockIdx.x) * kPlanes + threadIdx.x] = sum;
    }
  }
}

// One thread a matrix. `parts` of `squares`.
__global__ void __launch_bounds__(kPlaneThreads)
    facts_kernel(PlaneArguments a, Index parts, PlaneFacts* facts) {
  for (Index matrix = static_cast<Index>(blockIdx.x) * kPlaneThreads + threadIdx.x;
       matrix < a.of.matrices; matrix += static_cast<Index>(gridDim.x) * kPlaneThreads) {
    PlaneFacts own = a.facts(matrix);
    for (int plane = 0; plane < kPlanes; ++plane) {
      double sum = 0;
      for (Index i = 0; i < parts; ++i) sum += a.squares[(matrix * parts + i) * kPlanes + plane];
      own.norm[plane] = sqrt(sum);
    }
    facts[matrix] = own;
  }
}

// Sums along rows: a warp takes rows in a stride. grid: rows, matrices (in a stride).
__global__ void __launch_bounds__(kPlaneThreads) row_sums_kernel(PlaneArguments a) {
  for (Index matrix = blockIdx.y; matrix < a.of.matrices; matrix += gridDim.y) {
    const MaskedMatrices side = a.of.side(matrix);
    const Index own = a.of.of_side(matrix), cols = side.shape.cols;
    const PlaneFacts facts = a.facts(matrix);
    double* const images = a.integrals + matrix * kPlanes * a.image;
    for (Index y = static_cast<Index>(blockIdx.x) * kPlaneWarps + threadIdx.x / warp::kSize;
         y < side.shape.rows; y += static_cast<Index>(gridDim.x) * kPlaneWarps) {
      double before[kPlanes] = {};
      for (Index first = 0; first < cols; first += warp::kSize) {
        const Index x = first + warp::lane(), at = y * cols + x;
        double of[kPlanes] = {};
        if (x < cols && side.is_valid(own, at)) {
          of[kValuePlane] = facts.plane_value(side.value(own, at));
          of[kSquarePlane] = of[kValuePlane] * of[kValuePlane];
          of[kMaskPlane] = 1;
        }
#pragma unroll
        for (int plane = 0; plane < kPlanes; ++plane) {
          for (int by = 1; by < warp::kSize; by *= 2) {
            const double other = warp::shuffle_up(of[plane], by);
            if (warp::lane() >= by) of[plane] += other;
          }
          of[plane] += before[plane];
          before[plane] = warp::shuffle(of[plane], warp::kSize - 1);
          if (x < cols && plane < a.images) images[plane * a.image + at] = of[plane];
        }
      }
    }
  }
}

// Then along columns. A block has 32 neighbouring columns, and each of its warps a part of the rows: it adds
// up its part, and then what lies above. grid: columns, planes, matrices (in a stride).
__global__ void __launch_bounds__(kPlaneThreads) column_sums_kernel(PlaneArguments a) {
  XCORR_SHARED(double, of_part, kPlaneThreads);
  const int part = static_cast<int>(threadIdx.x) / warp::kSize;
  for (Index matrix = blockIdx.z; matrix < a.of.matrices; matrix += gridDim.z) {
    const Shape shape = a.of.side(matrix).shape;
    double* const image = a.integrals + (matrix * kPlanes + blockIdx.y) * a.image;
    const Index rows = ceil_div<Index>(shape.rows, kPlaneWarps);
    const Index begin = part * rows;
    const Index end = begin + rows < shape.rows ? begin + rows : shape.rows;
    for (Index first = static_cast<Index>(blockIdx.x) * warp::kSize; first < shape.cols;
         first += static_cast<Index>(gridDim.x) * warp::kSize) {
      const Index x = first + warp::lane();
      const bool exists = x < shape.cols;
      double sum = 0;
#pragma unroll 4
      for (Index y = begin; y < end; ++y) sum += exists ? image[y * shape.cols + x] : 0.0;
      block::barrier();  // others may still read the sums before
      of_part[threadIdx.x] = sum;
      block::barrier();
      double above = 0;
      for (int i = 0; i < part; ++i) above += of_part[i * warp::kSize + warp::lane()];
#pragma unroll 4
      for (Index y = begin; y < end; ++y) {
        if (exists) image[y * shape.cols + x] = above += image[y * shape.cols + x];
      }
    }
  }
}

}  // namespace xcorr::fft
