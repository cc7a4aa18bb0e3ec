// From spectra to scores: products of spectra, and after the transforms back the scores from the sums
// of each shift.
//
// A sum over the elements that are valid in both matrices splits: with M = m + M', m the share of valid
// elements, sum v M' comes from a transform and m times the sum of v over the overlap from an integral
// image. So only what a mask really changes needs transforms.
//
// A sum that comes from a float32 transform has an error in proportion to the norms of both planes,
// whatever the overlap is. The kernel knows these norms, and with them how far a score may be off. One
// that may be off by more than its budget is computed by its definition in float64, by a warp: the shifts
// with small overlaps, mostly, and those where a side is nearly constant.
//
//   products_kernel    sum by sum, conj(left plane) * right plane
//   most_kernel        with masks: the largest number of valid elements of all shifts
//   scores_kernel      a score, or NaN where it is uncertain
//   definition_kernel  those again, by the definition
#pragma once

#include "algorithms/device/pairs.hpp"
#include "algorithms/fft/cufft_normalised/planes.hpp"

namespace xcorr::fft {

// The sums of a shift, as far as transforms make them: of which planes. A sum of a side is changed by the
// mask of the other side alone.
enum Sum { kProducts, kLeftSquares, kLeftSum, kRightSquares, kRightSum, kCount, kSums };
struct Term {
  Plane left, right;
};
__host__ __device__ constexpr Term term_of(int sum) {
  switch (sum) {
    case kProducts:
      return {kValuePlane, kValuePlane};
    case kLeftSquares:
      return {kSquarePlane, kMaskPlane};
    case kLeftSum:
      return {kValuePlane, kMaskPlane};
    case kRightSquares:
      return {kMaskPlane, kSquarePlane};
    case kRightSum:
      return {kMaskPlane, kValuePlane};
    default:
      return {kMaskPlane, kMaskPlane};
  }
}

// Which sums a problem takes from transforms.
struct SumList {
  int number = 0;
  int place[kSums] = {-1, -1, -1,
                      -1, -1, -1};  // of each sum among those of a pair; -1: no transform
  int sum[kSums] = {};              // at each place

  explicit SumList(const Fields& fields) {
    const bool left = fields.masks == Masks::left || fields.masks == Masks::both;
    const bool right = fields.masks == Masks::right || fields.masks == Masks::both;
    const bool centred = fields.score.kind == ScoreKind::zncc;
    add(kProducts);
    if (right) add(kLeftSquares);
    if (right && centred) add(kLeftSum);
    if (left) add(kRightSquares);
    if (left && centred) add(kRightSum);
    if (left && right) add(kCount);
  }

 private:
  void add(Sum one) {
    sum[number] = one;
    place[one] = number++;
  }
};

constexpr int kScoreThreads = 256;
constexpr Index kMostPairParts = small_if_emulated(32, 3);

struct alignas(8) Bin {
  float re, im;
};

// Pairs [first, first + count) of a call.
struct PairRange {
  Pairing pairing;
  Index lefts;
  Index first, count;

  __device__ __forceinline__ Pair matrices(Index pair) const {
    const Pair own = pairing.pair(static_cast<std::uint32_t>(first + pair));
    return {own.left, lefts + own.right};
  }
};

// to[pair][place] = conj(left) * right * scale, spectra of `bins` each, of planes [matrix][planes]. grid: bins,
// pairs (in a stride).
__global__ void __launch_bounds__(kScoreThreads, 4)
    products_kernel(PairRange pairs, const Bin* __restrict__ of, int planes, SumList sums,
                    Bin* __restrict__ to, Index bins, float scale) {
  const Index bin = static_cast<Index>(blockIdx.x) * kScoreThreads + threadIdx.x;
  if (bin >= bins) return;
  for (Index pair = blockIdx.y; pair < pairs.count; pair += gridDim.y) {
    const Pair own = pairs.matrices(pair);
    const Bin* const left = of + own.left * planes * bins + bin;
    const Bin* const right = of + own.right * planes * bins + bin;
    for (int place = 0; place < sums.number; ++place) {
      const Term term = term_of(sums.sum[place]);
      const Bin l = left[term.left * bins], r = right[term.right * bins];
      to[(pair * sums.number + place) * bins + bin] = {scale * (l.re * r.re + l.im * r.im),
                                                       scale * (l.re * r.im - l.im * r.re)};
    }
  }
}

// The rectangle of a matrix in which another one overlaps it.
struct OverlapRectangle {
  Overlap y, x;
};

struct ScoreArguments {
  Geometry q;
  PairRange pairs;
  Score score;
  bool masked;
  MatrixSides of;
  const PlaneFacts* facts;
  const double* integrals;
  Index image;
  SumList list;
  const float* sums;        // [pair][place][rows][pitch], circular
  Index rows, cols, pitch;  // of a transform
  double* most;             // [pair][parts]
  Index parts;
  double max_overlap;
  double roundoff;  // of a sum, relative to the product of two norms
  float* out;

  // Where the circular correlation has the output.
  __device__ __forceinline__ Index place(Index row, Index col) const {
    const Index y = wrapped(row, q.window.sy.first, rows);
    return y * pitch + wrapped(col, q.window.sx.first, cols);
  }
  // What the transform has of a sum, 0 where there is none.
  __device__ __forceinline__ double transformed(Index pair, Sum sum, Index place) const {
    if (list.place[sum] < 0) return 0;
    return sums[(pair * list.number + list.place[sum]) * rows * pitch + place];
  }
  // The rectangle in the left matrix; that in the right one is moved by the shift.
  __device__ __forceinline__ OverlapRectangle in_left(Index sy, Index sx) const {
    return {overlap(q.left.rows, q.right.rows, sy), overlap(q.left.cols, q.right.cols, sx)};
  }
  __device__ __forceinline__ OverlapRectangle in_right(Index sy, Index sx) const {
    OverlapRectangle of = in_left(sy, sx);
    of.y.first += sy;
    of.x.first += sx;
    return of;
  }
  // The sum over a rectangle of a matrix from its integral image.
  __device__ __forceinline__ double box(Index matrix, Plane plane, Index cols_of_matrix,
                                        const OverlapRectangle& of) const {
    const double* const from = integrals + (matrix * kPlanes + plane) * image;
    const Index top = of.y.first - 1, bottom = top + of.y.count;
    const Index before = of.x.first - 1, last = before + of.x.count;
    const auto at = [&](Index y, Index x) {
      return y < 0 || x < 0 ? 0.0 : from[y * cols_of_matrix + x];
    };
    return (at(bottom, last) - at(top, last)) - (at(bottom, before) - at(top, before));
  }
  __device__ __forceinline__ double count(Index pair, Pair own, Index sy, Index sx,
                                          Index place) const {
    const OverlapRectangle l = in_left(sy, sx), r = in_right(sy, sx);
    const double area = static_cast<double>(l.y.count * l.x.count);
    if (!masked || area == 0) return area;
    const double left = facts[own.left].mask, right = facts[own.right].mask;
    return rint(transformed(pair, kCount, place) +
                left * box(own.right, kMaskPlane, q.right.cols, r) +
                right * box(own.left, kMaskPlane, q.left.cols, l) - left * right * area);
  }
  // The least number of elements of a score that is not 0.
  __device__ __forceinline__ double least(Index pair) const {
    double largest = masked ? 0 : max_overlap;
    for (Index i = 0; masked && i < parts; ++i) {
      const double own = most[pair * parts + i];
      largest = own > largest ? own : largest;
    }
    const double least = score.min_overlap * largest;
    return least > 1 ? least : 1;
  }
};

// grid: parts, pairs (in a stride).
__global__ void __launch_bounds__(kScoreThreads) most_kernel(ScoreArguments a) {
  XCORR_SHARED(double, of_warp, kScoreThreads / warp::kSize);
  for (Index pair = blockIdx.y; pair < a.pairs.count; pair += gridDim.y) {
    const Pair own = a.pairs.matrices(pair);
    double largest = 0;
    for (Index i = static_cast<Index>(blockIdx.x) * kScoreThreads + threadIdx.x; i < a.q.out_size();
         i += static_cast<Index>(gridDim.x) * kScoreThreads) {
      const Index row = i / a.q.out_cols(), col = i % a.q.out_cols();
      const double count = a.count(pair, own, a.q.window.sy.first + row, a.q.window.sx.first + col,
                                   a.place(row, col));
      largest = count > largest ? count : largest;
    }
    for (int by = warp::kSize / 2; by > 0; by /= 2) {
      const double other = warp::shuffle_xor(largest, by);
      largest = other > largest ? other : largest;
    }
    block::barrier();  // the first thread may still read the values before
    if (warp::lane() == 0) of_warp[threadIdx.x / warp::kSize] = largest;
    block::barrier();
    if (threadIdx.x == 0) {
      for (int i = 1; i < kScoreThreads / warp::kSize; ++i) {
        largest = of_warp[i] > largest ? of_warp[i] : largest;
      }
      a.most[pair * a.parts + blockIdx.x] = largest;
    }
  }
}

// The sums of one side over the n elements of an overlap, and how far they may be off.
struct SideSums {
  double mean, mean_error;        // the mean is 0 for ncc
  double squares, squares_error;  // about the mean

  // Whether these are what rounding leaves of a constant: elements are at least as far from the pivot as
  // their mean.
  __device__ __forceinline__ bool is_constant(double n) const {
    return squares + squares_error <= 0x1p-42 * mean * mean * n;
  }
  // Enough digits, and no constant: elements are 1 at most.
  __device__ __forceinline__ bool is_certain(double n) const {
    return squares > 8 * squares_error && squares > 0x1p-38 * n;
  }
};

// Of the matrix `own`, which the mask of `other` changes.
__device__ __forceinline__ SideSums side_sums(const ScoreArguments& a, Index own, Index other,
                                              Index cols, const OverlapRectangle& of, double n,
                                              double sum, double squares) {
  constexpr double kBoxRoundoff = 0x1p-48;
  const PlaneFacts &facts = a.facts[own], &mask = a.facts[other];
  const double all = facts.norm[kValuePlane] * facts.norm[kValuePlane];
  const double mask_error = a.roundoff * mask.norm[kMaskPlane];
  SideSums side = {};
  double total = 0;
  const bool changed = a.masked && mask.norm[kMaskPlane] > 0;
  const double valid = changed ? a.box(own, kMaskPlane, cols, of) : 0.0;
  if (a.score.kind == ScoreKind::zncc) {
    total = sum + mask.mask * a.box(own, kValuePlane, cols, of);
    side.mean = total / n;
    const double size = static_cast<double>(a.of.side(own).shape.size());
    side.mean_error = (mask_error * facts.norm[kValuePlane] + kBoxRoundoff * sqrt(size * all)) / n;
  }
  // The square plane lacks facts.square at each valid element.
  const double box = a.box(own, kSquarePlane, cols, of);
  const double raw =
      changed ? squares + mask.mask * (box - facts.square * valid) + facts.square * n : box;
  side.squares = raw - total * side.mean;
  side.squares_error = mask_error * facts.norm[kSquarePlane] + kBoxRoundoff * all +
                       2 * fabs(total) * side.mean_error;
  return side;
}

// The score of a shift, or NaN where that may be too far off.
__device__ __forceinline__ double score_at(const ScoreArguments& a, Index pair, Pair own, Index sy,
                                           Index sx, Index place, double n) {
  const SideSums left =
      side_sums(a, own.left, own.right, a.q.left.cols, a.in_left(sy, sx), n,
                a.transformed(pair, kLeftSum, place), a.transformed(pair, kLeftSquares, place));
  if (left.is_constant(n)) return 0;
  const SideSums right =
      side_sums(a, own.right, own.left, a.q.right.cols, a.in_right(sy, sx), n,
                a.transformed(pair, kRightSum, place), a.transformed(pair, kRightSquares, place));
  if (right.is_constant(n)) return 0;
  if (!left.is_certain(n) || !right.is_certain(n)) return NAN;
  const double inverse = 1 / (sqrt(left.squares) * sqrt(right.squares));
  const double products = a.transformed(pair, kProducts, place) - n * left.mean * right.mean;
  const double score = products * inverse;
  const double error =
      a.roundoff * a.facts[own.left].norm[kValuePlane] * a.facts[own.right].norm[kValuePlane];
  const double of_means =
      n * (fabs(left.mean) * right.mean_error + fabs(right.mean) * left.mean_error);
  const double of_squares =
      0.5 * (left.squares_error / left.squares + right.squares_error / right.squares);
  // Half of what docs/design.md allows a transform: 16 u and 4 u log2(N) for the norms.
  const double budget = 0x1p-21 + 4 * error * inverse;
  if (!((error + of_means) * inverse + fabs(score) * of_squares <= budget)) return NAN;
  return score > 1 ? 1 : score < -1 ? -1 : score;
}

// grid: outputs of a pair, pairs (in a stride).
__global__ void __launch_bounds__(kScoreThreads, 2) scores_kernel(ScoreArguments a) {
  const Index at = static_cast<Index>(blockIdx.x) * kScoreThreads + threadIdx.x;
  if (at >= a.q.out_size()) return;
  const Index row = at / a.q.out_cols(), col = at % a.q.out_cols(), place = a.place(row, col);
  const Index sy = a.q.window.sy.first + row, sx = a.q.window.sx.first + col;
  for (Index pair = blockIdx.y; pair < a.pairs.count; pair += gridDim.y) {
    const Pair own = a.pairs.matrices(pair);
    const double n = a.count(pair, own, sy, sx, place);
    const double score = n >= a.least(pair) ? score_at(a, pair, own, sy, sx, place, n) : 0;
    a.out[(a.pairs.first + pair) * a.q.out_size() + at] = static_cast<float>(score);
  }
}

// By a warp: the score of one shift by its definition, in two passes.
__device__ __forceinline__ double by_definition(const ScoreArguments& a, Pair own, Index sy,
                                                Index sx) {
  const PlaneFacts &left = a.facts[own.left], &right = a.facts[own.right];
  const Overlap ys = overlap(a.q.left.rows, a.q.right.rows, sy);
  const Overlap xs = overlap(a.q.left.cols, a.q.right.cols, sx);
  const Index r_matrix = own.right - a.of.lefts;
  const auto each = [&](const auto& use) {
    for (Index i = warp::lane(); i < ys.count * xs.count; i += warp::kSize) {
      const Index y = ys.first + i / xs.count, x = xs.first + i % xs.count;
      const Index l = y * a.q.left.cols + x, r = (y + sy) * a.q.right.cols + x + sx;
      if (a.of.left.is_valid(own.left, l) && a.of.right.is_valid(r_matrix, r)) {
        use((a.of.left.value(own.left, l) - left.pivot) * left.scale,
            (a.of.right.value(r_matrix, r) - right.pivot) * right.scale);
      }
    }
  };
  double n = 0, left_sum = 0, right_sum = 0, left_most = 0, right_most = 0;
  each([&](double l, double r) {
    n += 1;
    left_sum += l;
    right_sum += r;
    left_most = fabs(l) > left_most ? fabs(l) : left_most;
    right_most = fabs(r) > right_most ? fabs(r) : right_most;
  });
  n = warp::reduce_add(n);
  const bool centred = a.score.kind == ScoreKind::zncc;
  const double left_mean = centred ? warp::reduce_add(left_sum) / n : 0;
  const double right_mean = centred ? warp::reduce_add(right_sum) / n : 0;
  for (int by = warp::kSize / 2; by > 0; by /= 2) {
    const double l = warp::shuffle_xor(left_most, by), r = warp::shuffle_xor(right_most, by);
    left_most = l > left_most ? l : left_most;
    right_most = r > right_most ? r : right_most;
  }
  double products = 0, left_squares = 0, right_squares = 0;
  each([&](double l, double r) {
    products += (l - left_mean) * (r - right_mean);
    left_squares += (l - left_mean) * (l - left_mean);
    right_squares += (r - right_mean) * (r - right_mean);
  });
  products = warp::reduce_add(products);
  left_squares = warp::reduce_add(left_squares);
  right_squares = warp::reduce_add(right_squares);
  const auto is_constant = [n](double squares, double most) {
    const double step = 8 * 0x1p-24 * most;
    return squares <= step * step * n;
  };
  if (is_constant(left_squares, left_most) || is_constant(right_squares, right_most)) return 0;
  const double score = products / (sqrt(left_squares) * sqrt(right_squares));
  return score > 1 ? 1 : score < -1 ? -1 : score;
}

// A warp takes 32 neighbouring outputs. grid: outputs of a pair, pairs (in a stride).
__global__ void __launch_bounds__(kScoreThreads, 2) definition_kernel(ScoreArguments a) {
  const Index at = static_cast<Index>(blockIdx.x) * kScoreThreads + threadIdx.x;
  const bool exists = at < a.q.out_size();
  for (Index pair = blockIdx.y; pair < a.pairs.count; pair += gridDim.y) {
    float* const out = a.out + (a.pairs.first + pair) * a.q.out_size();
    const float value = exists ? out[at] : 0.0f;
    const int unsure = value != value;
    if (!warp::any(unsure != 0)) continue;
    const Pair own = a.pairs.matrices(pair);
    for (int lane = 0; lane < warp::kSize; ++lane) {
      if (!warp::shuffle(unsure, lane)) continue;
      const Index of = at - warp::lane() + lane;
      const double score = by_definition(a, own, a.q.window.sy.first + of / a.q.out_cols(),
                                         a.q.window.sx.first + of % a.q.out_cols());
      if (warp::lane() == lane) out[at] = static_cast<float>(score);
    }
  }
}

}  // namespace xcorr::fft
