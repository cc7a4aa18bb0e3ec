// The data that the transforms and the scores of cufft_normalised read.
//
// Each matrix has up to three zero-padded planes: its values without their mean and, if the problem
// has masks, the squares of these values and the mask. Squares and mask also lack their means,
// since constants need no transform. The norm of a plane is at most that of a matrix of ones. Two
// planes of one side are the real and the imaginary part of one complex transform. A left and a
// right plane never share a transform: rounding leaves a part of each plane in the spectrum of the
// other one. That part would be multiplied by its own spectrum, and all of the product would gather
// in the scores near shift 0.
//
// Integral images in float64 of values, squares and mask give the sums over the rectangle in which
// two matrices overlap. Means, deviations and norms are float64.
//
//   sums_kernel       count, mean and squares about the mean of parts of each matrix
//   facts_kernel      the parameters of the planes of each matrix
//   planes_kernel     the planes, and the sums of columns over bands of rows
//   integrals_kernel  integral images
#pragma once

#include <cmath>

#include "algorithms/blocks/divide.hpp"
#include "algorithms/device/cuda.hpp"
#include "algorithms/fft/cufft_normalised/tuning.hpp"
#include "harness/variant.hpp"

namespace xcorr::fft {

// Columns that the integral image of a block has at once; columns per lane.
constexpr int kScanCols = 128, kScanRun = kScanCols / warp::kSize;
// A band is a multiple of kPlaneWarps rows.
constexpr int kMostBandRows = small_if_emulated(32, 16);

// The matrices of one side, stored one after the other.
struct MaskedMatrices {
  const float* values = nullptr;
  const std::uint8_t* mask = nullptr;  // null: all elements are valid
  Shape shape;
};

// Both sides: matrices 0 to lefts - 1 are the lefts, and the rights follow.
struct MatrixSides {
  MaskedMatrices left, right;
  Index lefts, matrices;

  __device__ __forceinline__ bool is_left(Index matrix) const { return matrix < lefts; }
  __device__ __forceinline__ Shape shape(Index matrix) const {
    return is_left(matrix) ? left.shape : right.shape;
  }
};

// One matrix.
struct MaskedMatrix {
  const float* values;
  const std::uint8_t* mask;  // null: all elements are valid
  Index rows, cols;

  __device__ __forceinline__ MaskedMatrix(const MatrixSides& of, Index matrix) {
    const bool is_left = of.is_left(matrix);
    rows = is_left ? of.left.shape.rows : of.right.shape.rows;
    cols = is_left ? of.left.shape.cols : of.right.shape.cols;
    const Index first = (is_left ? matrix : matrix - of.lefts) * rows * cols;
    values = (is_left ? of.left.values : of.right.values) + first;
    mask = is_left ? of.left.mask : of.right.mask;
    if (mask) mask += first;
  }
  __device__ __forceinline__ bool is_valid(Index at) const { return !mask || mask[at] != 0; }
};

// Statistics of the valid elements of a matrix or of a part of it. `squares` is about the mean.
struct MatrixSums {
  double count, mean, squares, least, most;
};
__device__ __forceinline__ MatrixSums joined(const MatrixSums& a, const MatrixSums& b) {
  if (a.count == 0) return b;
  if (b.count == 0) return a;
  const double count = a.count + b.count, apart = b.mean - a.mean, share = b.count / count;
  return {count, a.mean + apart * share, a.squares + b.squares + apart * apart * a.count * share,
          b.least < a.least ? b.least : a.least, b.most > a.most ? b.most : a.most};
}
// Statistics over the lanes of a warp; only the result of lane 0 is used.
__device__ __forceinline__ MatrixSums over_warp(MatrixSums sums) {
#pragma unroll 1
  for (int by = warp::kSize / 2; by > 0; by /= 2) {
    const MatrixSums other = {warp::shuffle_xor(sums.count, by), warp::shuffle_xor(sums.mean, by),
                              warp::shuffle_xor(sums.squares, by),
                              warp::shuffle_xor(sums.least, by), warp::shuffle_xor(sums.most, by)};
    sums = joined(sums, other);
  }
  return sums;
}

// How planes follow from a matrix: for a valid element
//   value plane = v = (value - pivot) * scale, square plane = (v^2 - square) / square_size,
//   mask plane = (1 - mask) / mask_size
// and for other elements 0, 0 and -mask / mask_size. The sum of all v^2 is the number of elements
// of the matrix, or 0 if all v are 0.
struct PlaneFacts {
  double pivot, scale, most;  // most: max |v|
  double square, square_size;
  double mask, mask_size;  // mask_size: 0 if all elements are valid, or none

  // The element of the value plane, as float32.
  __device__ __forceinline__ float plane_value(double value) const {
    return static_cast<float>((value - pivot) * scale);
  }
};

// `size`: number of elements of the matrix.
__device__ __forceinline__ PlaneFacts facts_of(const MatrixSums& all, Index size, bool centred) {
  PlaneFacts facts = {};
  facts.scale = 1;
  facts.square_size = 1;
  const double elements = static_cast<double>(size);
  facts.mask = all.count / elements;
  facts.mask_size = sqrt(facts.mask * (1 - facts.mask));
  if (centred) facts.pivot = all.mean;
  const double squares = all.squares + (centred ? 0 : all.count * all.mean * all.mean);
  const double size_of_values = sqrt(squares / elements);
  if (!(size_of_values > 0 && size_of_values - size_of_values == 0)) return facts;
  facts.scale = 1 / size_of_values;
  const double above = fabs(all.most - facts.pivot), below = fabs(all.least - facts.pivot);
  facts.most = (above > below ? above : below) * facts.scale;
  facts.square = elements / all.count;
  // The sum of all (v^2 - square)^2 is at most most^2 times the sum of all v^2, less square^2 per
  // valid element. If all |v| are equal, only rounding errors of squares remain.
  const double spread = facts.most * facts.most - facts.square;
  facts.square_size = sqrt(spread > 0x1p-20 ? spread : 0x1p-20);
  return facts;
}

// parts[matrix][gridDim.x]. grid: parts, matrices (in a stride).
__global__ void __launch_bounds__(kPlaneThreads) sums_kernel(MatrixSides of, MatrixSums* parts) {
  XCORR_SHARED(MatrixSums, of_warp, kPlaneWarps);
  constexpr int kAtOnce = 4;
  const Index step = static_cast<Index>(gridDim.x) * kPlaneThreads;
  for (Index matrix = blockIdx.y; matrix < of.matrices; matrix += gridDim.y) {
    const MaskedMatrix own(of, matrix);
    const Index size = own.rows * own.cols;
    // Sums are about the first valid element of the thread.
    double first = 0, count = 0, sum = 0, squares = 0;
    float least = 0, most = 0;
    for (Index i = static_cast<Index>(blockIdx.x) * kPlaneThreads + threadIdx.x; i < size;
         i += kAtOnce * step) {
      float value[kAtOnce];
      bool valid[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const Index at = i + k * step;
        value[k] = at < size ? own.values[at] : 0.0f;
        valid[k] = at < size && own.is_valid(at);
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        if (!valid[k]) continue;
        if (count == 0) {
          first = value[k];
          least = most = value[k];
        }
        const double apart = value[k] - first;
        count += 1;
        sum += apart;
        squares += apart * apart;
        least = value[k] < least ? value[k] : least;
        most = value[k] > most ? value[k] : most;
      }
    }
    MatrixSums sums = {};
    if (count > 0) {
      const double rest = squares - sum * sum / count;
      sums = {count, first + sum / count, rest > 0 ? rest : rest - rest, least, most};
    }
    sums = over_warp(sums);
    block::barrier();  // the first thread may still read the previous sums
    if (warp::lane() == 0) of_warp[threadIdx.x / warp::kSize] = sums;
    block::barrier();
    if (threadIdx.x == 0) {
      for (int i = 1; i < kPlaneWarps; ++i) sums = joined(sums, of_warp[i]);
      parts[matrix * gridDim.x + blockIdx.x] = sums;
    }
  }
}

// One warp per matrix.
__global__ void __launch_bounds__(kPlaneThreads)
    facts_kernel(MatrixSides of, const MatrixSums* sums, Index parts, bool centred,
                 PlaneFacts* facts) {
  for (Index matrix = static_cast<Index>(blockIdx.x) * kPlaneWarps + threadIdx.x / warp::kSize;
       matrix < of.matrices; matrix += static_cast<Index>(gridDim.x) * kPlaneWarps) {
    MatrixSums all = {};
    for (Index i = warp::lane(); i < parts; i += warp::kSize) {
      all = joined(all, sums[matrix * parts + i]);
    }
    all = over_warp(all);
    if (warp::lane() == 0) facts[matrix] = facts_of(all, of.shape(matrix).size(), centred);
  }
}

// The position of each plane of a matrix of a side, other than the value plane; -1 if there is
// none.
struct SidePlanes {
  int square = -1, mask = -1;
};

// Planes of all matrices, one after the other: plane p is part p % 2 of the complex elements of
// slot p / 2. In memory either the rows y of all slots are together, which library transforms of
// columns need, or all rows of a slot.
struct PlaneLayout {
  Index slots, slot, row;  // number of slots; elements per slot, per row

  static PlaneLayout by_rows(Index slots, Index cols) { return {slots, cols, slots * cols}; }
  static PlaneLayout by_slots(Index slots, Index rows, Index cols) {
    return {slots, rows * cols, cols};
  }
  // Offset of row 0 of a plane, in scalars.
  __host__ __device__ __forceinline__ Index first(Index plane) const {
    return plane / 2 * slot * 2 + plane % 2;
  }
};

struct PlaneArguments {
  MatrixSides of;
  const PlaneFacts* facts;
  float* planes;
  PlaneLayout layout;
  Index rows, cols;  // rows of padded matrices; columns of a transform
  int count;         // planes per matrix
  Index gap;         // planes between those of the lefts and those of the rights: 1 or 0
  SidePlanes left, right;
  double* columns;  // [matrix][bands][kColumnSums][column_pitch]: sums of columns over bands
  Index column_pitch;
  Index band_rows;
  std::uint32_t bands, chunks;  // chunks of columns

  __host__ __device__ static constexpr int column_sums(bool masked) { return masked ? 3 : 2; }
};

// A thread processes a column of a band. grid: chunks of columns within bands, matrices (in a
// stride).
template <bool kMasked>
__global__ void __launch_bounds__(kPlaneThreads, 4) planes_kernel(PlaneArguments a) {
  constexpr int kAtOnce = 4, kSums = PlaneArguments::column_sums(kMasked);
  const Index band = blockIdx.x / a.chunks;
  const Index x = static_cast<Index>(blockIdx.x % a.chunks) * kPlaneThreads + threadIdx.x;
  if (x >= a.cols) return;
  const Index begin = band * a.band_rows;
  const Index end = begin + a.band_rows < a.rows ? begin + a.band_rows : a.rows;
  const Index row = 2 * a.layout.row;
  for (Index matrix = blockIdx.y; matrix < a.of.matrices; matrix += gridDim.y) {
    const MaskedMatrix own(a.of, matrix);
    const PlaneFacts facts = a.facts[matrix];
    const bool is_left = a.of.is_left(matrix);
    const double of_square = 1 / facts.square_size;
    const double of_mask = facts.mask_size > 0 ? 1 / facts.mask_size : 0;
    const Index plane = matrix * a.count + (is_left ? 0 : a.gap);
    const int square_place = is_left ? a.left.square : a.right.square;
    const int mask_place = is_left ? a.left.mask : a.right.mask;
    float* const to = a.planes + 2 * x;
    // If the last slot of a side has only one plane, its other part is set to 0, so that its
    // transform is that of real elements.
    const bool is_last = matrix + 1 == (is_left ? a.of.lefts : a.of.matrices);
    const bool fills_up = is_last && (plane + a.count) % 2 == 1;
    double sum = 0, squares = 0, count = 0;
    for (Index first = begin; first < end; first += kAtOnce) {
      float value[kAtOnce];
      bool valid[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const Index y = first + k, at = y * own.cols + x;
        valid[k] = y < own.rows && x < own.cols;
        value[k] = valid[k] ? own.values[at] : 0.0f;
        if (kMasked) valid[k] = valid[k] && own.is_valid(at);
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const Index y = first + k;
        if (y >= end) break;
        const float v = valid[k] ? facts.plane_value(value[k]) : 0.0f;
        const double square = static_cast<double>(v) * v;
        sum += v;
        squares += square;
        to[y * row + a.layout.first(plane)] = v;
        if (fills_up) to[y * row + a.layout.first(plane + a.count)] = 0;
        if (!kMasked) continue;
        count += valid[k] ? 1 : 0;
        if (square_place >= 0) {
          to[y * row + a.layout.first(plane + square_place)] =
              valid[k] ? static_cast<float>((square - facts.square) * of_square) : 0.0f;
        }
        if (mask_place >= 0) {
          const bool inside = y < own.rows && x < own.cols;
          to[y * row + a.layout.first(plane + mask_place)] =
              inside ? static_cast<float>(((valid[k] ? 1 : 0) - facts.mask) * of_mask) : 0.0f;
        }
      }
    }
    if (x >= own.cols || begin >= own.rows) continue;
    double* const columns = a.columns + (matrix * a.bands + band) * kSums * a.column_pitch + x;
    columns[0] = sum;
    columns[a.column_pitch] = squares;
    if (kMasked) columns[2 * a.column_pitch] = count;
  }
}

// An element of an integral image: the sums of values and of their squares over all rows above it
// and columns before it.
struct alignas(16) BoxEntry {
  double sum, squares;
};
// Number of elements of the integral image of a matrix: rows + 1 times cols + 1. Its first row and
// column are zeros, which no kernel writes.
__host__ __device__ constexpr Index integral_size(Shape shape) {
  return (shape.rows + 1) * (shape.cols + 1);
}

// Integral images of one side, one matrix after the other. `counts`: numbers of valid elements;
// null without masks.
struct Integrals {
  BoxEntry* boxes;
  std::uint32_t* counts;
};

struct IntegralArguments {
  MatrixSides of;
  const PlaneFacts* facts;
  const double* columns;
  Index column_pitch, band_rows, bands;
  Integrals left, right;
};

// Offsets of a row of a chunk in shared memory; every lane writes kScanRun neighbours.
constexpr int kScanPitch = kScanCols + kScanCols / kScanRun;
__host__ __device__ constexpr int scan_place(int x) { return x + x / kScanRun; }

// Sums along the rows of a band, one warp per row, and then down its columns, one thread per
// column. Both halves of a block add up all rows of a group of kPlaneWarps, and each stores half of
// these rows. The sums above the band are added to its first row. grid: bands, matrices (in a
// stride).
template <bool kMasked>
__global__ void __launch_bounds__(kPlaneThreads, 4) integrals_kernel(IntegralArguments a) {
  constexpr int kImages = PlaneArguments::column_sums(kMasked);
  XCORR_SHARED(float, staged, kPlaneWarps* kScanCols);
  XCORR_SHARED(float, staged_valid, kMasked ? kPlaneWarps* kScanCols : 1);
  XCORR_SHARED(double, scanned, kImages* kPlaneWarps* kScanPitch);
  XCORR_SHARED(double, above, kImages* kScanCols);
  XCORR_SHARED(double, before, kImages* kMostBandRows);  // sum of each row over the previous chunks
  const int own_warp = static_cast<int>(threadIdx.x) / warp::kSize, lane = warp::lane();
  const int half = static_cast<int>(threadIdx.x) / kScanCols;
  const int column = static_cast<int>(threadIdx.x) % kScanCols;
  const Index band = blockIdx.x;
  for (Index matrix = blockIdx.y; matrix < a.of.matrices; matrix += gridDim.y) {
    const MaskedMatrix own(a.of, matrix);
    const Index begin = band * a.band_rows;
    if (begin >= own.rows) continue;
    const Index end = begin + a.band_rows < own.rows ? begin + a.band_rows : own.rows;
    const PlaneFacts facts = a.facts[matrix];
    const Index size = integral_size({own.rows, own.cols});
    const Index before_matrix = (a.of.is_left(matrix) ? matrix : matrix - a.of.lefts) * size;
    BoxEntry* const boxes = (a.of.is_left(matrix) ? a.left.boxes : a.right.boxes) + before_matrix;
    std::uint32_t* const counts =
        kMasked ? (a.of.is_left(matrix) ? a.left.counts : a.right.counts) + before_matrix : nullptr;
    const double* const of_columns = a.columns + matrix * a.bands * kImages * a.column_pitch;
    for (int i = static_cast<int>(threadIdx.x); i < kImages * kMostBandRows; i += kPlaneThreads) {
      before[i] = 0;
    }
    for (Index first = 0; first < own.cols; first += kScanCols) {
      const Index x = first + column;
      const auto add_above = [&](int image) {
        double sum = 0;
#pragma unroll 8
        for (Index i = 0; i < band; ++i) {
          sum += x < own.cols ? of_columns[(i * kImages + image) * a.column_pitch + x] : 0.0;
        }
        above[image * kScanCols + column] = sum;
      };
      add_above(half);
      if (kMasked && half == 0) add_above(kImages - 1);
      block::barrier();
      BoxEntry down = {0, 0};
      double count_down = 0;
      for (Index group = begin; group < end; group += kPlaneWarps) {
        const Index y = group + own_warp;
#pragma unroll
        for (int i = 0; i < kScanRun; ++i) {
          const int at = i * warp::kSize + lane;
          const Index place = y * own.cols + first + at;
          bool valid = y < end && first + at < own.cols;
          const float value = valid ? own.values[place] : 0.0f;
          if (kMasked) {
            valid = valid && own.is_valid(place);
            staged_valid[own_warp * kScanCols + at] = valid ? 1 : 0;
          }
          staged[own_warp * kScanCols + at] = valid ? facts.plane_value(value) : 0.0f;
        }
        warp::barrier();
        double sum[kImages] = {}, of_place[kScanRun][kImages];
#pragma unroll
        for (int i = 0; i < kScanRun; ++i) {
          const int at = lane * kScanRun + i;
          const double v = staged[own_warp * kScanCols + at];
          sum[0] += v;
          sum[1] += v * v;
          if (kMasked) sum[kImages - 1] += staged_valid[own_warp * kScanCols + at];
#pragma unroll
          for (int image = 0; image < kImages; ++image) {
            if (y == begin) sum[image] += above[image * kScanCols + at];
            of_place[i][image] = sum[image];
          }
        }
        const int row = static_cast<int>(y - begin);
#pragma unroll
        for (int image = 0; image < kImages; ++image) {
          double until = sum[image];
#pragma unroll
          for (int by = 1; by < warp::kSize; by *= 2) {
            const double other = warp::shuffle_up(until, by);
            if (lane >= by) until += other;
          }
          const double start = before[image * kMostBandRows + row];
          const double of_lanes_before = until - sum[image] + start;
#pragma unroll
          for (int i = 0; i < kScanRun; ++i) {
            const int to = own_warp * kScanPitch + scan_place(lane * kScanRun + i);
            scanned[image * kPlaneWarps * kScanPitch + to] = of_place[i][image] + of_lanes_before;
          }
          const double total = warp::shuffle(until, warp::kSize - 1) + start;
          warp::barrier();  // all lanes have read the start of the row
          if (lane == 0) before[image * kMostBandRows + row] = total;
        }
        block::barrier();
#pragma unroll
        for (int i = 0; i < kPlaneWarps; ++i) {
          const double* const from = scanned + i * kScanPitch + scan_place(column);
          down.sum += from[0];
          down.squares += from[kPlaneWarps * kScanPitch];
          if (kMasked) count_down += from[(kImages - 1) * kPlaneWarps * kScanPitch];
          if (i / (kPlaneWarps / 2) != half || group + i >= end || x >= own.cols) continue;
          const Index to = (group + i + 1) * (own.cols + 1) + x + 1;
          boxes[to] = down;
          if (kMasked) counts[to] = static_cast<std::uint32_t>(count_down);
        }
        block::barrier();
      }
    }
  }
}

}  // namespace xcorr::fft
