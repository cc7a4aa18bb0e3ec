// Scores from the sums of each shift. Some sums come from inverse transforms (products.hpp), and
// those over rectangles come from integral images (planes.hpp).
//
// A sum from a float32 transform has an error in proportion to the norms of both planes, whatever
// the overlap is. From these norms the kernel computes the largest error of a score. A score whose
// error may exceed its budget is computed by its definition (definition.hpp). That happens mostly
// at shifts with small overlaps, and where a side is nearly constant.
//
//   scores_kernel      a score, or a note of neighbouring shifts of which at least one is uncertain
#pragma once

#include <utility>

#include "algorithms/fft/cufft_normalised/products.hpp"

namespace xcorr::fft {

// A range of rows or columns.
struct Range {
  int first, count;
};
// The rectangle of a matrix in which another matrix overlaps it.
struct OverlapRectangle {
  Range y, x;

  __device__ __forceinline__ OverlapRectangle moved(int down, int across) const {
    return {{y.first + down, y.count}, {x.first + across, x.count}};
  }
  __device__ __forceinline__ int area() const { return y.count * x.count; }
};

// Offsets, in an integral image, of the four corners that give the sum over a rectangle.
struct BoxCorners {
  std::uint32_t top_before, top_last, bottom_before, bottom_last;

  __device__ __forceinline__ BoxCorners(const OverlapRectangle& of, int cols) {
    // Opaque to the compiler, so that it keeps them and does not compute them again for each pair.
    const auto kept = [](int at) { return static_cast<std::uint32_t>(opaque(at)); };
    const int first = of.y.first * (cols + 1) + of.x.first;
    const int below = first + of.y.count * (cols + 1);
    top_before = kept(first);
    top_last = kept(first + of.x.count);
    bottom_before = kept(below);
    bottom_last = kept(below + of.x.count);
  }
  __device__ __forceinline__ std::uint32_t count(const std::uint32_t* image) const {
    return (image[bottom_last] - image[top_last]) - (image[bottom_before] - image[top_before]);
  }
};
// The elements at the four corners.
struct BoxLoads {
  BoxEntry top_before, top_last, bottom_before, bottom_last;

  __device__ __forceinline__ BoxLoads() {}
  __device__ __forceinline__ BoxLoads(const BoxEntry* image, const BoxCorners& at)
      : top_before(image[at.top_before]),
        top_last(image[at.top_last]),
        bottom_before(image[at.bottom_before]),
        bottom_last(image[at.bottom_last]) {}
  __device__ __forceinline__ BoxEntry sums() const {
    return {
        (bottom_last.sum - top_last.sum) - (bottom_before.sum - top_before.sum),
        (bottom_last.squares - top_last.squares) - (bottom_before.squares - top_before.squares)};
  }
};

// A matrix with less than 2^31 elements.
struct SmallShape {
  int rows, cols;

  explicit SmallShape(Shape shape)
      : rows(static_cast<int>(shape.rows)), cols(static_cast<int>(shape.cols)) {}
  __host__ __device__ __forceinline__ Index size() const { return static_cast<Index>(rows) * cols; }
};

// The shifts that a thread processes along one axis. Shifts that are the size of a left matrix
// apart read an integral image at the same place, so one thread has them: two along each axis.
// `step` is their distance. `count` is the number of first shifts of such pairs.
struct ShiftAxis {
  std::uint32_t step, count, each;  // each: 1 or 2

  ShiftAxis(Index outputs, Index apart) {
    step = static_cast<std::uint32_t>(apart < outputs ? apart : outputs);
    each = apart < outputs ? 2 : 1;
    count = static_cast<std::uint32_t>((outputs + each * step - 1) / (each * step)) * step;
  }
  // The output of the `at`-th first shift.
  __device__ __forceinline__ int first(std::uint32_t at) const {
    return static_cast<int>(each == 1 ? at : at + at / step * step);
  }
};

// Max pairs whose scores a thread computes one after the other; its data of a shift and of a left
// matrix serve all of them.
constexpr int kMostScorePairs = small_if_emulated(8, 3);

struct ScoreArguments {
  SmallShape left, right;
  int first_sy, first_sx, out_rows, out_cols;
  PairRange pairs;
  int of_thread;  // pairs per thread: at most kMostScorePairs
  double min_overlap;
  MatrixSides of;
  const PlaneFacts* facts;
  Integrals left_integrals, right_integrals;
  const float* sums;  // circular: sum s of a pair is scalar plane pair * number + s
  PlaneLayout layout;
  int rows, cols;  // size of a transform
  int first_row;   // first row that is stored
  double* most;    // [owner][parts]
  int parts;
  double least;    // without masks: min elements of a score that is not 0
  float norms;     // product of the norms of the values of both planes
  float roundoff;  // rounding error of a sum from a transform, relative to the norms of both planes
  float* out;
  ShiftAxis down, across;
  std::uint32_t tiles;       // tiles of kScoreWarps x 32 shifts along a row
  Index* notes;              // each is of 32 neighbouring shifts of which at least one is uncertain
  std::uint32_t* uncertain;  // number of notes

  // Offset of an output in the circular correlation, in scalars.
  __device__ __forceinline__ Index place(int sy, int sx) const {
    const int y = sy < 0 ? sy + rows : sy, x = sx < 0 ? sx + cols : sx;
    return 2 * ((y - first_row) * layout.row + x);
  }
  // Offset of row 0 of a sum of a pair, in scalars.
  template <typename S>
  __device__ __forceinline__ Index plane(Index pair, int place) const {
    return layout.first(pair * S::kNumber + place);
  }
  // The rectangle of the overlap in the left matrix. In the right matrix it is moved by the shift.
  __device__ __forceinline__ OverlapRectangle in_left(int sy, int sx) const {
    const auto range = [](int of_left, int of_right, int shift) {
      const int first = shift < 0 ? -shift : 0;
      const int end = of_right - shift < of_left ? of_right - shift : of_left;
      return Range{first, end > first ? end - first : 0};
    };
    return {range(left.rows, right.rows, sy), range(left.cols, right.cols, sx)};
  }
  // Offset of the integral image of a matrix, in elements.
  __device__ __forceinline__ Index left_image(Index matrix) const {
    return matrix * integral_size({left.rows, left.cols});
  }
  __device__ __forceinline__ Index right_image(Index matrix) const {
    return (matrix - pairs.lefts) * integral_size({right.rows, right.cols});
  }
  // The outputs of a pair.
  __device__ __forceinline__ float* outputs(Index pair) const {
    return out + (pairs.first + pair) * out_rows * out_cols;
  }
};

// The number of elements that are valid in both matrices, from the numbers of each.
template <typename S>
__device__ __forceinline__ double valid_in_both(double left, double right, double area,
                                                float from_transform, const PlaneFacts& l,
                                                const PlaneFacts& r) {
  if (S::kMasks == Masks::left) return left;
  if (S::kMasks != Masks::both) return right;
  return rint(from_transform * (l.mask_size * r.mask_size) + l.mask * right + r.mask * left -
              l.mask * r.mask * area);
}

// Constants of a side of a pair, for all shifts.
struct SideConstants {
  const BoxEntry* boxes;  // its integral images
  const std::uint32_t* counts;
  // Rounding error of a sum from the image: in proportion to the sum of all squares, which is the
  // number of elements, or 0 for a constant matrix.
  float box_error;
  // Smallest sum of squares, per element, that is more than the rounding of a constant, given that
  // no element exceeds `most`.
  float limit;
  double zero;  // value of the plane for an element that is 0
};
// With masks: the facts of both sides, and what follows from them.
struct MaskConstants {
  PlaneFacts left, right;
  double least;  // min elements of a score that is not 0
};
template <typename S>
struct PairConstants {
  SideConstants left, right;
  float* out;         // first output
  Index plane;        // offset of the first sum, in scalars
  bool has_new_left;  // the previous pair has another left
};

__device__ __forceinline__ SideConstants side_constants(const PlaneFacts& facts,
                                                        const Integrals& of, Index image,
                                                        Index size) {
  const auto most = static_cast<float>(facts.most);
  return {of.boxes + image, of.counts + image,
          most > 0 ? 0x1p-48f * static_cast<float>(size) : 0.0f, 0x1p-38f * most * most,
          -facts.pivot * facts.scale};
}

// Statistics of one side over the n elements of an overlap.
struct SideOfScore {
  double sum, mean;
  float size_of_mean, sum_error;
  float inverse;  // 1 / the norm; 0 if the side is constant, NaN if the squares have too few digits
  float squares_error;  // half of the relative error of the squares
};
__device__ __forceinline__ SideOfScore side_of_score(double sum, double squares, float n,
                                                     double inverse_n, float sum_error,
                                                     float squares_error, float limit,
                                                     double zero) {
  SideOfScore side;
  side.sum = sum;
  side.mean = sum * inverse_n;
  side.size_of_mean = fabsf(static_cast<float>(side.mean));
  side.sum_error = sum_error;
  const float centred = static_cast<float>(squares - sum * side.mean);
  const float error = squares_error + 2 * side.size_of_mean * sum_error;
  const bool certain = centred > 8 * error && centred > limit * n;
  side.inverse = rsqrtf(certain ? centred : 1.0f);
  side.squares_error = 0.5f * error * (side.inverse * side.inverse);
  // The largest element is at least as large as the mean, so a constant leaves at most this by
  // rounding.
  const auto from_zero = static_cast<float>(side.mean - zero);
  const bool constant = centred + error <= 0x1p-42f * from_zero * from_zero * n;
  side.inverse = constant ? 0.0f : certain ? side.inverse : NAN;
  return side;
}

// The score, or NaN if its error may be too large.
template <bool kMasked>
__device__ __forceinline__ float score_of(const ScoreArguments& a, const SideOfScore& left,
                                          const SideOfScore& right, float products) {
  const float inverse = left.inverse * right.inverse;
  const float score = (products - static_cast<float>(left.mean * right.sum)) * inverse;
  // Two sums that share a complex inverse transform have the errors of both.
  const float scale = a.roundoff * a.norms * inverse;
  float error = 1.42f * scale + fabsf(score) * (left.squares_error + right.squares_error);
  // Without masks sums come from integral images alone, and the error of the mean is less than a
  // hundredth of that.
  if (kMasked) {
    error += (left.size_of_mean * right.sum_error + right.size_of_mean * left.sum_error) * inverse;
  }
  // Half of what docs/design.md allows for a transform: 16 u, and 4 u log2(N) for the norms.
  const float half = 0x1p-21f + 4 * scale;
  const bool certain = error <= half;
  const float clamped = score > 1 ? 1.0f : score < -1 ? -1.0f : score;
  return left.inverse == 0 || right.inverse == 0 ? 0.0f : certain ? clamped : NAN;
}

// One side with masks: the sums of its integral images, changed by the mask of the other side. The
// mean of that mask enters through the box sums, and its deviations through the transforms:
// `sum_rest` and `squares_rest`.
template <typename S, bool kChanged>
__device__ __forceinline__ SideOfScore masked_side(const ScoreArguments& a,
                                                   const SideConstants& side, BoxEntry box,
                                                   double valid, const PlaneFacts& own,
                                                   const PlaneFacts& other, double n,
                                                   double inverse_n, float sum_rest,
                                                   float squares_rest) {
  float sum_error = side.box_error, squares_error = side.box_error;
  if (kChanged) {
    const float of_transform = 1.42f * a.roundoff * a.norms;
    box.sum = other.mask * box.sum + other.mask_size * sum_rest;
    sum_error += of_transform * static_cast<float>(other.mask_size);
    const double of_squares = other.mask_size * own.square_size;
    box.squares = other.mask * (box.squares - own.square * valid) + own.square * n +
                  of_squares * squares_rest;
    squares_error += of_transform * static_cast<float>(of_squares);
  }
  return side_of_score(S::kCentred ? box.sum : 0.0, box.squares, static_cast<float>(n), inverse_n,
                       S::kCentred ? sum_error : 0.0f, squares_error, side.limit, side.zero);
}

// All sums of a pair at a shift that come from transforms. If they fill whole complex elements,
// these are loaded.
template <typename S>
struct SumLoads {
  float of[S::kNumber] = {};

  __device__ __forceinline__ SumLoads() {}
  // `plane`: offset of the first sum in scalars; `slot`: scalars per slot.
  __device__ __forceinline__ SumLoads(const float* at, Index plane, Index slot) {
    if constexpr (S::kNumber % 2 == 0) {
      const auto* const whole = reinterpret_cast<const Bin*>(at + plane);
#pragma unroll
      for (int i = 0; i < S::kNumber / 2; ++i) {
        const Bin both = whole[i * (slot / 2)];
        of[2 * i] = both.re;
        of[2 * i + 1] = both.im;
      }
    } else {
      const int odd = static_cast<int>(plane % 2);
#pragma unroll
      for (int i = 0; i < S::kNumber; ++i) {
        const int on = odd + i;
        of[i] = at[plane - odd + on / 2 * slot + on % 2];
      }
    }
  }
};

// The largest value of the lanes of a warp.
__device__ __forceinline__ double largest_of_lanes(double value) {
  for (int by = warp::kSize / 2; by > 0; by /= 2) {
    const double other = warp::shuffle_xor(value, by);
    value = other > value ? other : value;
  }
  return value;
}

// The min number of elements of a score of a pair that is not 0, computed by a warp.
template <typename S>
__device__ __forceinline__ double least_elements(const ScoreArguments& a, Index pair) {
  const Pair own = a.pairs.matrices(pair);
  const Index owner = S::kMasks == Masks::both   ? pair
                      : S::kMasks == Masks::left ? own.left
                                                 : own.right - a.pairs.lefts;
  const double largest =
      largest_of_lanes(warp::lane() < a.parts ? a.most[owner * a.parts + warp::lane()] : 0.0);
  const double least = a.min_overlap * largest;
  return least > 1 ? least : 1;
}

// A shift of a lane of a warp: at first the first one, along each axis, of those that it has.
struct ShiftNumbers {
  int row, col;
  bool exist;

  __device__ __forceinline__ ShiftNumbers(const ScoreArguments& a, std::uint32_t tile,
                                          std::uint32_t of_warp) {
    const std::uint32_t tile_row = tile / a.tiles;
    const std::uint32_t down = tile_row * kScoreWarps + of_warp;
    const std::uint32_t across =
        (tile - tile_row * a.tiles) * warp::kSize + static_cast<std::uint32_t>(warp::lane());
    exist = down < a.down.count && across < a.across.count;
    row = a.down.first(down);
    col = a.across.first(across);
  }

  // Moves to the `which`-th shift of the lane.
  __device__ __forceinline__ void move(const ScoreArguments& a, std::uint32_t which) {
    // 1 for the second of two rows or columns.
    const std::uint32_t below = a.down.each == 2 ? which % 2 : 0;
    const std::uint32_t behind = a.down.each == 2 ? which / 2 : which;
    row += static_cast<int>(below * a.down.step);
    col += static_cast<int>(behind * a.across.step);
    exist = exist && row < a.out_rows && col < a.out_cols;
  }
};

// grid: tiles of shifts, groups of pairs (in a stride).
template <typename S>
__global__ void __launch_bounds__(kScoreThreads, S::kMasked ? 2 : 3)
    scores_kernel(ScoreArguments a) {
  XCORR_SHARED(PairConstants<S>, constants, kMostScorePairs);
  XCORR_SHARED(MaskConstants, masks, S::kMasked ? kMostScorePairs : 1);
  const auto of_warp = static_cast<int>(threadIdx.x) / warp::kSize;
  const ShiftNumbers first(a, blockIdx.x, static_cast<std::uint32_t>(of_warp));
  for (Index group = blockIdx.y; group * a.of_thread < a.pairs.count; group += gridDim.y) {
    const Index first_pair = group * a.of_thread, rest = a.pairs.count - first_pair;
    const int count = rest < a.of_thread ? static_cast<int>(rest) : a.of_thread;
    block::barrier();  // the previous constants may still be read
    for (int i = of_warp; i < count; i += kScoreWarps) {
      const Index pair = first_pair + i;
      const Pair own = a.pairs.matrices(pair);
      const double least = S::kMasked ? least_elements<S>(a, pair) : 0;
      if (warp::lane() > 0) continue;
      const PlaneFacts left = a.facts[own.left], right = a.facts[own.right];
      PairConstants<S>& of = constants[i];
      of.left = side_constants(left, a.left_integrals, a.left_image(own.left), a.left.size());
      of.right = side_constants(right, a.right_integrals, a.right_image(own.right), a.right.size());
      of.out = a.outputs(pair);
      of.plane = a.plane<S>(pair, 0);
      of.has_new_left = i == 0 || a.pairs.matrices(pair - 1).left != own.left;
      if (S::kMasked) masks[i] = {left, right, least};
    }
    block::barrier();
#pragma unroll 1
    for (std::uint32_t which = 0; which < a.down.each * a.across.each; ++which) {
      ShiftNumbers numbers = first;
      numbers.move(a, which);
      const auto [row, col, exists] = numbers;
      const int sy = a.first_sy + row, sx = a.first_sx + col;
      const OverlapRectangle in_left = a.in_left(sy, sx);
      const float area = static_cast<float>(in_left.area());
      const bool counts = exists && area > 0 && (S::kMasked || in_left.area() >= a.least);
      int unsure = 0;
      if (exists) {
        const double inverse_area = S::kMasked || !counts ? 0.0 : 1.0 / in_left.area();
        const float* const sums = opaque(a.sums + a.place(sy, sx));
        const int output = opaque(row * a.out_cols + col);
        const BoxCorners left_corners(in_left, a.left.cols);
        const BoxCorners right_corners(in_left.moved(sy, sx), a.right.cols);
        SideOfScore left = {};
        BoxEntry left_box = {};
        std::uint32_t left_valid = 0;
        // Loads of the next pair, while the current one is computed.
        BoxLoads next;
        SumLoads<S> next_sums;
        if (counts) {
          next = BoxLoads(constants[0].right.boxes, right_corners);
          next_sums = SumLoads<S>(sums, constants[0].plane, 2 * a.layout.slot);
        }
#pragma unroll 1
        for (int k = 0; k < count; ++k) {
          const PairConstants<S>& of = constants[k];
          float* const out = of.out + output;
          float score = 0;
          if (counts) {
            const BoxEntry box = next.sums();
            const SumLoads<S> transformed = next_sums;
            const float products = transformed.of[0];
            // After the last pair that pair is loaded again, so that loads need no condition.
            const PairConstants<S>& behind_it = constants[k + 1 < count ? k + 1 : k];
            next = BoxLoads(behind_it.right.boxes, right_corners);
            next_sums = SumLoads<S>(sums, behind_it.plane, 2 * a.layout.slot);
            if (of.has_new_left) {
              left_box = BoxLoads(of.left.boxes, left_corners).sums();
              if (S::kMasked) {
                left_valid = left_corners.count(of.left.counts);
              } else {
                const float error = of.left.box_error;
                left = side_of_score(S::kCentred ? left_box.sum : 0.0, left_box.squares, area,
                                     inverse_area, S::kCentred ? error : 0.0f, error, of.left.limit,
                                     of.left.zero);
              }
            }
            if constexpr (!S::kMasked) {
              const float error = of.right.box_error;
              const SideOfScore right =
                  side_of_score(S::kCentred ? box.sum : 0.0, box.squares, area, inverse_area,
                                S::kCentred ? error : 0.0f, error, of.right.limit, of.right.zero);
              score = score_of<false>(a, left, right, products);
            } else {
              const MaskConstants& mask = masks[k];
              const std::uint32_t right_valid = right_corners.count(of.right.counts);
              const float both = S::kLeft && S::kRight ? transformed.of[S::kNumber - 1] : 0.0f;
              const double n = valid_in_both<S>(left_valid, right_valid, in_left.area(), both,
                                                mask.left, mask.right);
              if (n >= mask.least) {
                const double inverse_n = 1 / n;
                constexpr int kLeftSums = S::kPlace[kLeftSum],
                              kLeftSquare = S::kPlace[kLeftSquares],
                              kRightSums = S::kPlace[kRightSum],
                              kRightSquare = S::kPlace[kRightSquares];
                constexpr bool kLeftMean = S::kRight && S::kCentred,
                               kRightMean = S::kLeft && S::kCentred;
                const SideOfScore changed_left = masked_side<S, S::kRight>(
                    a, of.left, left_box, left_valid, mask.left, mask.right, n, inverse_n,
                    kLeftMean ? transformed.of[kLeftSums] : 0.0f,
                    S::kRight ? transformed.of[kLeftSquare] : 0.0f);
                const SideOfScore changed_right = masked_side<S, S::kLeft>(
                    a, of.right, box, right_valid, mask.right, mask.left, n, inverse_n,
                    kRightMean ? transformed.of[kRightSums] : 0.0f,
                    S::kLeft ? transformed.of[kRightSquare] : 0.0f);
                score = score_of<true>(a, changed_left, changed_right, products);
              }
            }
          }
          *out = score;
          unsure |= score != score;
        }
      }
      if (!warp::any(unsure != 0)) continue;
      if (warp::lane() == 0) {
        const Index warps = static_cast<Index>(gridDim.x) * kScoreWarps;
        const Index note = (group * 4 + which) * warps + blockIdx.x * kScoreWarps + of_warp;
        a.notes[atomic_add(a.uncertain, std::uint32_t{1})] = note;
      }
    }
  }
}

}  // namespace xcorr::fft
