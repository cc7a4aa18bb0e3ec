// Kernels of the truth on a device. Indices are 64-bit: a problem may have more than 2^32 outputs.
#pragma once

#include <cufft.h>

#include <algorithm>

#include "harness/problem/inputs.hpp"
#include "harness/verdict/bounds.hpp"
#include "harness/verdict/verdict.hpp"

namespace xcorr::truth {

constexpr int kThreads = 256;

// Blocks for each of `count` matrices of `size` elements, so that few large ones take the whole device.
inline Index parts_of(Index count, Index size) {
  constexpr Index kBlocks = 2048, kLeast = 16 * kThreads;
  return std::clamp<Index>(kBlocks / count, 1, (size + kLeast - 1) / kLeast);
}

// The elements of a matrix that a block has, where `parts` blocks share it.
struct Part {
  Index matrix, begin, end;
};
__device__ inline Part part_of_block(Index parts, Index size) {
  const Index part = blockIdx.x % parts;
  return {blockIdx.x / parts, size * part / parts, size * (part + 1) / parts};
}

// The numbers that a reference correlates: values, their sizes or their squares.
struct Source {
  Inputs inputs;
  Weights of;

  XCORR_HD double value(Index i) const {
    const double v = inputs.value(i);
    return of == Weights::values ? v : of == Weights::sizes ? fabs(v) : v * v;
  }
};

// Findings about one pair. Positions are indices of its outputs.
struct PairTally {
  double worst_ratio, error, bound;
  double difference2, reference2, absolute2;
  long long wrong, first_wrong;
  double wrong_got, wrong_want, wrong_bound;
  double out_max, ref_max, ref_at_out_max;
  long long out_max_at;
  double normalised_error;
};

// Time series (null for other problems): norms of segments, squared norms of what each output of a
// right matrix reads, [rights][out_size], and the root of the largest of them.
struct WindowNorms {
  const double* segment;
  const double* window2;
  const double* largest;
};

__device__ inline Index global_thread() {
  return static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline Index global_threads() { return static_cast<Index>(gridDim.x) * blockDim.x; }

template <typename T>
__global__ void fill_source(T* data, Index count, Source source) {
  for (Index i = global_thread(); i < count; i += global_threads()) {
    data[i] = static_cast<T>(source.value(i));
  }
}

template <typename T>
__global__ void count_changes(const T* data, Index count, Source source,
                              unsigned long long* changes) {
  for (Index i = global_thread(); i < count; i += global_threads()) {
    if (data[i] != static_cast<T>(source.value(i))) atomicAdd(changes, 1ull);
  }
}

// The values of all threads of a block, combined two at a time.
template <typename Combine>
__device__ inline double block_reduced(double value, const Combine& combine) {
  __shared__ double partial[kThreads];
  partial[threadIdx.x] = value;
  __syncthreads();
  for (int width = kThreads / 2; width > 0; width /= 2) {
    if (threadIdx.x < width) {
      partial[threadIdx.x] = combine(partial[threadIdx.x], partial[threadIdx.x + width]);
    }
    __syncthreads();
  }
  const double all = partial[0];
  __syncthreads();
  return all;
}
__device__ inline double block_sum(double value) {
  return block_reduced(value, [](double a, double b) { return a + b; });
}
__device__ inline double block_largest(double value) {
  return block_reduced(value, [](double a, double b) { return fmax(a, b); });
}

// `parts` blocks a matrix: the sum of squares of each part.
static __global__ void squares(Source source, Index size, Index parts, double* sums) {
  const Part part = part_of_block(parts, size);
  double sum = 0;
  for (Index i = part.begin + threadIdx.x; i < part.end; i += kThreads) {
    const double v = source.value(part.matrix * size + i);
    sum += v * v;
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

static __global__ void fill_ones(double* data, Index count) {
  for (Index i = global_thread(); i < count; i += global_threads()) data[i] = 1.0;
}

// `parts` blocks a right matrix: the largest window2 of each part.
static __global__ void largest_windows(const double* window2, Index size, Index parts,
                                       double* largest) {
  const Part part = part_of_block(parts, size);
  double most = 0;
  for (Index i = part.begin + threadIdx.x; i < part.end; i += kThreads) {
    most = fmax(most, window2[part.matrix * size + i]);
  }
  most = block_largest(most);
  if (threadIdx.x == 0) largest[blockIdx.x] = most;
}

// One block a right matrix: the root of its largest window2, and the norm of its segments.
static __global__ void segments(const double* largest_of_parts, Index parts,
                                const double* right_norm, double terms, bool few_outputs,
                                double* largest, double* segment) {
  double most = 0;
  for (Index i = threadIdx.x; i < parts; i += kThreads) {
    most = fmax(most, largest_of_parts[blockIdx.x * parts + i]);
  }
  most = sqrt(block_largest(most));
  if (threadIdx.x == 0) {
    largest[blockIdx.x] = most;
    segment[blockIdx.x] = segment_norm(most, right_norm[blockIdx.x], terms, few_outputs);
  }
}

// One thread an element of the pairs [first, first + count).
static __global__ void definition(Problem problem, const double* left, const double* right,
                                  Index first, Index count, bool round, double* out) {
  const Index size = problem.out_size();
  for (Index i = global_thread(); i < count * size; i += global_threads()) {
    const Pair pair = problem.pair(first + i / size);
    const Index element = i % size;
    const Index sy = problem.window.sy.first + element / problem.out_cols();
    const Index sx = problem.window.sx.first + element % problem.out_cols();
    const Overlap ys = overlap(problem.left.rows, problem.right.rows, sy);
    const Overlap xs = overlap(problem.left.cols, problem.right.cols, sx);
    double sum = 0;
    for (Index y = ys.first; y < ys.first + ys.count; ++y) {
      const double* l = left + pair.left * problem.left.size() + y * problem.left.cols + xs.first;
      const double* r =
          right + pair.right * problem.right.size() + (y + sy) * problem.right.cols + xs.first + sx;
      for (Index x = 0; x < xs.count; ++x) sum += l[x] * r[x];
    }
    out[i] = round ? rint(sum) : sum;
  }
}

// One block a sampled element, computed from the inputs themselves.
static __global__ void sampled(Problem problem, Source left, Source right, const Index* positions,
                               double* values) {
  const Index* position = positions + 3 * blockIdx.x;  // pair, row, col
  const Pair pair = problem.pair(position[0]);
  const Index sy = problem.window.sy.first + position[1];
  const Index sx = problem.window.sx.first + position[2];
  const Overlap ys = overlap(problem.left.rows, problem.right.rows, sy);
  const Overlap xs = overlap(problem.left.cols, problem.right.cols, sx);
  double sum = 0;
  for (Index i = threadIdx.x; i < ys.count * xs.count; i += kThreads) {
    const Index y = ys.first + i / xs.count, x = xs.first + i % xs.count;
    sum += left.value(pair.left * problem.left.size() + y * problem.left.cols + x) *
           right.value(pair.right * problem.right.size() + (y + sy) * problem.right.cols + x + sx);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) values[blockIdx.x] = sum;
}

// Slot i of `padded` gets the left or right matrix of pair first + i, followed by zeros.
static __global__ void pad(Problem problem, Source source, Index first, Index count, Index rows,
                           Index cols, double* padded) {
  const bool is_left = source.inputs.side == Side::left;
  const Shape shape = is_left ? problem.left : problem.right;
  for (Index i = global_thread(); i < count * rows * cols; i += global_threads()) {
    const Pair pair = problem.pair(first + i / (rows * cols));
    const Index y = i / cols % rows, x = i % cols;
    const Index matrix = is_left ? pair.left : pair.right;
    padded[i] = y < shape.rows && x < shape.cols
                    ? source.value(matrix * shape.size() + y * shape.cols + x)
                    : 0.0;
  }
}

// right <- conj(left) * right
static __global__ void hadamard(Index count, const cufftDoubleComplex* left,
                                cufftDoubleComplex* right) {
  for (Index i = global_thread(); i < count; i += global_threads()) {
    const cufftDoubleComplex l = left[i], r = right[i];
    right[i] = {l.x * r.x + l.y * r.y, l.x * r.y - l.y * r.x};
  }
}

// Copies the window out of the circular result.
static __global__ void crop(Problem problem, Index count, Index rows, Index cols, bool round,
                            const double* circular, double* out) {
  const Index size = problem.out_size();
  const double scale = 1.0 / static_cast<double>(rows * cols);
  for (Index i = global_thread(); i < count * size; i += global_threads()) {
    const Index element = i % size;
    const Index sy = problem.window.sy.first + element / problem.out_cols();
    const Index sx = problem.window.sx.first + element % problem.out_cols();
    const double v =
        scale *
        circular[(i / size * rows + (sy < 0 ? sy + rows : sy)) * cols + (sx < 0 ? sx + cols : sx)];
    out[i] = round ? rint(v) : v;
  }
}

// Adds tally b to tally a of the same pair. Of equal maxima the smaller position counts.
XCORR_HD inline void merge(PairTally& a, const PairTally& b) {
  if (b.worst_ratio > a.worst_ratio) {
    a.worst_ratio = b.worst_ratio, a.error = b.error, a.bound = b.bound;
  }
  a.difference2 += b.difference2;
  a.reference2 += b.reference2;
  a.absolute2 += b.absolute2;
  a.wrong += b.wrong;
  if (b.first_wrong >= 0 && (a.first_wrong < 0 || b.first_wrong < a.first_wrong)) {
    a.first_wrong = b.first_wrong;
    a.wrong_got = b.wrong_got, a.wrong_want = b.wrong_want, a.wrong_bound = b.wrong_bound;
  }
  if (b.out_max > a.out_max || (b.out_max == a.out_max && b.out_max_at < a.out_max_at)) {
    a.out_max = b.out_max, a.out_max_at = b.out_max_at, a.ref_at_out_max = b.ref_at_out_max;
  }
  a.ref_max = fmax(a.ref_max, b.ref_max);
  a.normalised_error = fmax(a.normalised_error, b.normalised_error);
}

__device__ inline Bounds::OfPair bounds_of_pair(const Bounds& bounds, const double* left_norm,
                                                const double* right_norm,
                                                const WindowNorms& windows, const Pair& pair) {
  const double* const norm = windows.segment ? windows.segment : right_norm;
  return bounds.of_pair(left_norm[pair.left], norm[pair.right]);
}

// One thread an output of the pairs [first, first + count): its bound.
static __global__ void find_bounds(Bounds bounds, const double* left_norm, const double* right_norm,
                                   WindowNorms windows, Index first, Index count,
                                   const double* abs_ref, double* bound) {
  const Index size = bounds.problem.out_size();
  for (Index i = global_thread(); i < count * size; i += global_threads()) {
    const Bounds::OfPair of_pair = bounds_of_pair(bounds, left_norm, right_norm, windows,
                                                  bounds.problem.pair(first + i / size));
    bound[i] = bounds.at(of_pair, i % size, abs_ref[i]);
  }
}

// `parts` blocks a pair of the chunk: compare out with ref element by element. Each writes a tally.
template <typename T>
__global__ void compare(Bounds bounds, const double* left_norm, const double* right_norm,
                        WindowNorms windows, Index first, Index parts, const T* out,
                        const double* ref, const double* abs_ref, PairTally* tallies) {
  __shared__ PairTally shared[kThreads];
  const Index size = bounds.problem.out_size();
  const Part part = part_of_block(parts, size);
  const Index p = first + part.matrix;
  const Pair pair = bounds.problem.pair(p);
  const Bounds::OfPair of_pair = bounds_of_pair(bounds, left_norm, right_norm, windows, pair);
  const T* got_pair = out + p * size;
  const double* ref_pair = ref + part.matrix * size;
  const double* abs_pair = abs_ref + part.matrix * size;
  const bool series = windows.window2 && !is_exact(bounds.kind);
  PairTally tally{-1, 0, 0, 0,         0,         0, 0, -1,
                  0,  0, 0, -INFINITY, -INFINITY, 0, 0, series ? 0.0 : -1.0};
  for (Index e = part.begin + threadIdx.x; e < part.end; e += kThreads) {
    const double got = static_cast<double>(got_pair[e]), want = ref_pair[e];
    const double absolute = abs_pair[e], bound = bounds.at(of_pair, e, absolute);
    const double error = fabs(got - want);
    const bool right = bounds.right(error, bound);
    double ratio = bound > 0 ? error / bound : 0.0;
    if (!right && !(ratio > 1)) ratio = 1e308;  // NaN, or no tolerance
    if (ratio > tally.worst_ratio)
      tally.worst_ratio = ratio, tally.error = error, tally.bound = bound;
    if (!right && tally.wrong++ == 0) {
      tally.first_wrong = e;
      tally.wrong_got = got, tally.wrong_want = want, tally.wrong_bound = bound;
    }
    tally.difference2 += (got - want) * (got - want);
    tally.reference2 += want * want;
    tally.absolute2 += bounds.squared(absolute);
    if (series) {
      tally.normalised_error =
          fmax(tally.normalised_error,
               normalised_error(error, left_norm[pair.left], windows.window2[pair.right * size + e],
                                windows.largest[pair.right]));
    }
    if (got > tally.out_max) tally.out_max = got, tally.out_max_at = e, tally.ref_at_out_max = want;
    tally.ref_max = fmax(tally.ref_max, want);
  }
  shared[threadIdx.x] = tally;
  __syncthreads();
  for (int width = kThreads / 2; width > 0; width /= 2) {
    if (threadIdx.x < width) merge(shared[threadIdx.x], shared[threadIdx.x + width]);
    __syncthreads();
  }
  if (threadIdx.x == 0) tallies[blockIdx.x] = shared[0];
}

}  // namespace xcorr::truth
