// Seeded inputs. A value is a pure function of kind, seed, side, index and problem, so that host
// and device compute any part of the inputs again without storing it.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

#include "harness/problem/problem.hpp"
#include "harness/variant.hpp"

#ifdef __CUDACC__
#define XCORR_HD __host__ __device__
#else
#define XCORR_HD
#endif

namespace xcorr {

enum class InputKind {
  uniform,        // [0, 1), the paper's
  zero_mean,      // [-1, 1)
  integer,        // whole numbers in [-amplitude, amplitude]
  flat_spectrum,  // left: one element of 1; right: a chirp. Every frequency bin weighs alike
  sparse,       // 1 and -1; of the left only every `rounds`-th diagonal, a different one each round
  offset,       // 1e4 + [-1, 1)
  outlier,      // [-1, 1), and one element of every left matrix is 1e6
  alternating,  // 1e4 + [-1, 1), the sign alternates along rows and columns
  constant,     // all elements of a matrix equal, one of [1, 2)
  subnormal,    // left: [-1, 1) 2^-120, every 64th below the smallest normal float; right: [-1, 1)
  drift,  // a mean of 1e4 that drifts along rows, + [-1, 1); lefts are pieces of the first right
  fill,   // [-1, 1), and in every right matrix an element or a fifth of them is a fill value
  bimodal,  // [0, 2), and the second half of the columns of a right matrix, or all of a left one, 1e4 more
  contrast,  // 1 + d [-1, 1), with a d of each matrix from 2^-6 to 2^-19
  unequal,   // [-1, 1) times a power of two of the side, from 2^-30 to 2^30
  blank      // [-1, 1), and of one side the first matrix and half of the others are 0, or all 1
};
inline constexpr InputKind kInputKinds[] = {
    InputKind::uniform,  InputKind::zero_mean, InputKind::integer, InputKind::flat_spectrum,
    InputKind::sparse,   InputKind::offset,    InputKind::outlier, InputKind::alternating,
    InputKind::constant, InputKind::subnormal, InputKind::drift,   InputKind::fill,
    InputKind::bimodal,  InputKind::contrast,  InputKind::unequal, InputKind::blank};
enum class Side { left, right };

// Every sum of products is exact in float32, in any order, where the definition is computed.
XCORR_HD constexpr bool is_exact(InputKind kind) {
  return kind == InputKind::integer || kind == InputKind::sparse;
}
// All products of one output have the same sign, so |L| correlated with |R| is the absolute output.
XCORR_HD constexpr bool is_same_sign(InputKind kind) {
  return kind == InputKind::uniform || kind == InputKind::offset ||
         kind == InputKind::alternating || kind == InputKind::constant ||
         kind == InputKind::drift || kind == InputKind::bimodal || kind == InputKind::contrast;
}
// The spectra have most of their energy in few bins.
XCORR_HD constexpr bool has_few_bins(InputKind kind) {
  return is_same_sign(kind) || kind == InputKind::fill;  // a run of one value
}
// All products are nearly equal. Their rounding errors add up instead of averaging out.
XCORR_HD constexpr bool is_systematic(InputKind kind) {
  return is_same_sign(kind) && kind != InputKind::uniform;
}

// Partial sums of whole numbers up to this one are exact in float32.
constexpr Index kExactSum = Index{1} << 24;

// The largest amplitude, at least 1, with which every partial sum of K products of integers stays
// below 2^24 and is exact in float32: floor(sqrt(2^24 / K)).
Index integer_amplitude(Index largest_overlap);

// How many rounds of sparse inputs are needed. An output has at most `limit` products in a round,
// and together the rounds use every element of the left matrices.
Index sparse_rounds(const Problem& problem, Index limit = kExactSum);

// SplitMix64 (Steele et al. 2014) of the position: 64-bit avalanche without state.
XCORR_HD constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// One side of the inputs of a problem.
struct Inputs {
  InputKind kind;
  std::uint64_t seed;
  Side side;
  Index amplitude = 1;                                         // of integers
  Shape shape = {1, 1};                                        // of a matrix of this side
  Index round = 0, rounds = 1;                                 // of sparse inputs
  Index hot_row = 0, hot_rows = 1, hot_col = 0, hot_cols = 1;  // where a lone 1 may lie
  double largest_fill = 1e6;                                   // larger fill values are this

  // Element `index` of the stack. Every value is the same number in float32 and float64.
  XCORR_HD double value(Index index) const {
    const std::uint64_t salt = static_cast<std::uint64_t>(kind) * 2 + static_cast<int>(side);
    const std::uint64_t key =
        kind <= InputKind::integer ? mix(seed * 6 + salt) : mix(mix(seed) ^ (salt << 56));
    const std::uint64_t bits = mix(key ^ static_cast<std::uint64_t>(index));
    const double unit = static_cast<double>(bits >> 40) * 0x1p-24;
    const double zero_mean = 2.0 * unit - 1.0;
    const bool left = side == Side::left;
    switch (kind) {
      case InputKind::zero_mean:
        return zero_mean;
      case InputKind::integer:
        return static_cast<double>(
            static_cast<Index>(bits % static_cast<std::uint64_t>(2 * amplitude + 1)) - amplitude);
      case InputKind::flat_spectrum:
        return left ? lone_one(key, index) : chirp(key, index);
      case InputKind::sparse:
        if (left && (row_of(index) + index % shape.cols) % rounds != round) return 0.0;
        return bits & 1 ? 1.0 : -1.0;
      case InputKind::offset:
        return near_1e4(bits);
      case InputKind::outlier: {
        const std::uint64_t place =
            of_matrix(key, index) % static_cast<std::uint64_t>(shape.size());
        return left && index % shape.size() == static_cast<Index>(place) ? 1e6 : zero_mean;
      }
      case InputKind::alternating:
        return (row_of(index) + index % shape.cols) % 2 ? -near_1e4(bits) : near_1e4(bits);
      case InputKind::constant:
        return 1.0 + static_cast<double>(of_matrix(key, index) >> 41) * 0x1p-23;
      case InputKind::subnormal:
        return left ? zero_mean * 0x1p-120 : zero_mean;
      case InputKind::drift:
        return drifting(index);
      case InputKind::fill:
        return !left && is_filled(key, index) ? fill_value(of_matrix(key, index)) : zero_mean;
      case InputKind::bimodal: {
        const bool high = left ? of_matrix(key, index) & 1 : index % shape.cols >= shape.cols / 2;
        // The low mode has digits that a difference from a number of the high mode loses.
        return high ? near_1e4(bits) + 1 : 2 * unit;
      }
      case InputKind::contrast: {
        // Multiples of 2^-23 near 1. From size 2^-21 on a side would be constant.
        const auto size = static_cast<int>(6 + of_matrix(key, index) % 14);
        return 1.0 + floor(zero_mean * ldexp(0x1p23, -size)) * 0x1p-23;
      }
      case InputKind::unequal:
        return zero_mean * ldexp(1.0, static_cast<int>(mix(key) % 61) - 30);
      case InputKind::blank: {
        const bool is_blank = ((mix(seed) & 1) != 0) == left &&
                              (index < shape.size() || (of_matrix(key, index) & 1) != 0);
        return !is_blank ? zero_mean : (mix(seed) & 2) != 0 ? 1.0 : 0.0;
      }
      default:
        return unit;
    }
  }

 private:
  XCORR_HD Index row_of(Index index) const { return index % shape.size() / shape.cols; }
  // Bits of the matrix that the element lies in.
  XCORR_HD std::uint64_t of_matrix(std::uint64_t key, Index index) const {
    return mix(key + 0x632be59bd9b4e019u * static_cast<std::uint64_t>(index / shape.size() + 1));
  }
  // One element, or a run of a fifth of the matrix.
  XCORR_HD bool is_filled(std::uint64_t key, Index index) const {
    const std::uint64_t of = of_matrix(key, index);
    const Index size = shape.size(), count = of & 1 ? (size + 4) / 5 : 1;
    const Index first = static_cast<Index>((of >> 8) % static_cast<std::uint64_t>(size));
    return (index % size - first + size) % size < count;
  }
  // Values that users' matrices hold for missing data: the lowest float32, sentinels, saturation.
  XCORR_HD double fill_value(std::uint64_t of_matrix) const {
    constexpr double kFills[] = {-0x1.fffffep127, 1e11, 1e20, -2147483648.0, 65535.0};
    const double fill = static_cast<float>(kFills[(of_matrix >> 1) % 5]);
    return fabs(fill) <= largest_fill ? fill : fill < 0 ? -largest_fill : largest_fill;
  }
  // 9999 to 10001 in multiples of 2^-10, which floats near 1e4 represent.
  XCORR_HD static double near_1e4(std::uint64_t bits) {
    return 9999.0 + static_cast<double>(bits >> 53) * 0x1p-10;
  }
  // Samples of a day at 100 Hz: the mean falls from 15e3 to 5e3 in 2,048,000 samples and rises
  // again. Values are multiples of 2^-10. Left matrix m starts 97 (m + 1) columns after the start
  // of the first right matrix, where its score is 1.
  XCORR_HD double drifting(Index index) const {
    constexpr Index kHalfTurn = 2'048'000;
    const bool left = side == Side::left;
    const Index matrix = index / shape.size();
    const Index at = index % shape.cols + (left ? 97 * (matrix + 1) : 0);
    const Index of_turn = at % (2 * kHalfTurn);
    const Index height = of_turn < kHalfTurn ? kHalfTurn - of_turn : of_turn - kHalfTurn;
    const auto row = static_cast<std::uint64_t>(row_of(index) + (left ? 0 : matrix * shape.rows));
    const std::uint64_t of_row = mix(mix(seed ^ 0x6472696674u) + row);
    const auto noise = static_cast<Index>(mix(of_row ^ static_cast<std::uint64_t>(at)) >> 53);
    return static_cast<double>(5000 * 1024 + 5 * height + noise - 1024) * 0x1p-10;
  }
  XCORR_HD double lone_one(std::uint64_t key, Index index) const {
    const std::uint64_t place = of_matrix(key, index);
    const Index row =
        hot_row + static_cast<Index>((place >> 32) % static_cast<std::uint64_t>(hot_rows));
    const Index col =
        hot_col + static_cast<Index>((place & 0xffffffffu) % static_cast<std::uint64_t>(hot_cols));
    return row_of(index) == row && index % shape.cols == col ? 1.0 : 0.0;
  }
  // A linear sweep from frequency 0 to the highest along both axes, with a size and sign per
  // matrix. With this phase no bin of the padded spectrum is small. Rounded to multiples of 2^-16,
  // since cosines of hosts and devices differ in the last bit.
  XCORR_HD double chirp(std::uint64_t key, Index index) const {
    const std::uint64_t of = of_matrix(key, index);
    const double size = 0.5 + static_cast<double>(of >> 60) * 0x1p-5;
    const double wave = sweep(row_of(index), shape.rows) * sweep(index % shape.cols, shape.cols);
    return (of & 1 ? size : -size) * floor(wave * 0x1p16 + 0.5) * 0x1p-16;
  }
  XCORR_HD static double sweep(Index at, Index length) {
    constexpr double kPi = 3.14159265358979323846;
    // An odd length would not hold both ends of the spectrum. Integers leave out whole turns.
    const Index even = length + length % 2;
    const auto half_turns =
        static_cast<double>(at * at % (4 * even)) / static_cast<double>(2 * even);
    return cos(kPi * (half_turns - 0.25));
  }
};

// Whether pixel `index` of the stack of one side is valid in generated masks: three of four are.
XCORR_HD constexpr bool mask_value(std::uint64_t seed, Side side, Index index) {
  const std::uint64_t key = mix(seed ^ (side == Side::left ? 0x6d61736bu : 0x6b73616du));
  return mix(key ^ static_cast<std::uint64_t>(index)) % 4 != 0;
}

// One side of a problem. Left and right are equal where the problem says `same`.
Inputs make_inputs(const Problem& problem, InputKind kind, std::uint64_t seed, Side side,
                   Index amplitude, Index round = 0);

// Fills `count` elements starting at element `first` of one side.
template <typename T>
void fill_inputs(T* data, const Inputs& inputs, Index first, Index count) {
#ifdef _OPENMP
#pragma omp parallel for
#endif
  for (Index i = 0; i < count; ++i) data[i] = static_cast<T>(inputs.value(first + i));
}

std::string_view to_string(InputKind kind);
InputKind parse_input_kind(std::string_view text);

}  // namespace xcorr
