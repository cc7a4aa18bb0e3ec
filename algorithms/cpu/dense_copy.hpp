// The float64 copy of a matrix from which CPU variants compute the fields of a problem
// (docs/design.md, Fields of a problem). The copy has no views, masks or offset: it is dense, an
// invalid pixel is 0, and what the score removes from a whole matrix is removed.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>

#include "algorithms/blocks/call_side.hpp"
#include "harness/variant.hpp"

namespace xcorr::cpu {

// Both arrays are dense and row-major.
struct DenseCopy {
  Shape shape;
  double* values;            // 0 where a pixel is invalid
  double* valid;             // 1 or 0
  double largest = 0;        // |value|
  double largest_pixel = 0;  // the same before the mean was removed
  int exponent = 0;          // the values are 2^-exponent times the pixels
};

// The factor for the phase correlation of the copies, which grows with the inputs by the exponent
// p.
inline double phase_scale(const Score& score, const DenseCopy& left, const DenseCopy& right) {
  if (score.kind != ScoreKind::phase) return 1;
  return std::exp2(score.exponent * (left.exponent + right.exponent));
}

inline double norm_of(const double* values, Index size) {
  return std::sqrt(std::inner_product(values, values + size, values, 0.0));
}

// Changes the cross spectrum of matrices without means, or half of it, to the spectrum of phase
// correlation (phase_floor). `norms` is the product of the norms of both matrices, `points` the
// number of their pixels.
inline void whiten(std::complex<double>* cross, Index bins, double norms, Index points,
                   double exponent) {
  const double floor = phase_floor(static_cast<double>(points)) * norms;
  cross[0] *= 0.0;  // multiplied, so that a NaN stays a NaN
  for (Index k = 1; k < bins; ++k) {
    const double by = std::max(std::abs(cross[k]), floor);
    cross[k] *= norms == 0 ? 0 : std::pow(by, exponent - 1);
  }
}

// The number of doubles of the two arrays, each rounded up to a multiple of 64 bytes.
inline Index whole_lines(Index doubles) { return (doubles + 7) / 8 * 8; }
inline Index copy_doubles(Shape shape) { return 2 * whole_lines(shape.size()); }
inline DenseCopy copy_in(double* memory, Shape shape) {
  return {shape, memory, memory + whole_lines(shape.size())};
}

inline double largest_value(const DenseCopy& copy) {
  double largest = 0;
  for (Index k = 0; k < copy.shape.size(); ++k) {
    largest = std::max(largest, std::abs(copy.values[k]));
  }
  return largest;
}

// Subtracts the mean of the `count` valid pixels from each of them, twice: the second mean is the
// rounding error of the first, which for an offset of 1e4 is large compared with noise of 1. If all
// pixels are equal, the result must be exactly 0: phase would treat rounding errors as a texture.
inline void remove_mean(const DenseCopy& copy, double count) {
  const double* const values = copy.values;
  const double* const valid = copy.valid;
  const Index size = copy.shape.size();
  const Index first = std::find_if(valid, valid + size, [](double v) { return v != 0; }) - valid;
  const auto equal = [&](Index k) { return valid[k] == 0 || values[k] == values[first]; };
  Index k = first;
  while (k < size && equal(k)) ++k;
  if (k == size && std::isfinite(values[first])) {
    std::fill_n(copy.values, size, 0.0);
    return;
  }
  for (int round = 0; round < 2; ++round) {
    double sum = 0;
    for (Index k = 0; k < copy.shape.size(); ++k) sum += copy.values[k];
    const double mean = sum / count;
    for (Index k = 0; k < copy.shape.size(); ++k) {
      if (copy.valid[k] != 0) copy.values[k] -= mean;
    }
  }
}

// Copies matrix `i` of a side as `score` requires.
// product: the values.
// covariance: minus the mean of the matrix.
// phase: the same, scaled as for ncc.
// ncc: times a power of two, so that squares neither overflow nor underflow, and a scaled input
// gives a copy with the same bits. The score does not depend on a factor.
// zncc: as ncc, minus the mean of the valid pixels. The score removes the mean of each overlap
// again; the mean of the matrix is the pivot of the sums.
template <typename T>
void copy_matrix(const device::CallSide<T>& side, Index i, ScoreKind score, DenseCopy& copy) {
  const Shape shape = copy.shape;
  double count = 0;
  for (Index y = 0; y < shape.rows; ++y) {
    const T* row = side.row(i, y);
    for (Index x = 0; x < shape.cols; ++x) {
      const bool valid = side.valid(i, y, x);
      copy.values[y * shape.cols + x] = valid ? static_cast<double>(row[x]) : 0;
      copy.valid[y * shape.cols + x] = valid ? 1 : 0;
      count += valid ? 1 : 0;
    }
  }
  copy.largest = largest_value(copy);
  copy.exponent = 0;
  const bool scaled = is_normalised(score) || score == ScoreKind::phase;
  if (scaled && copy.largest > 0 && std::isfinite(copy.largest)) {
    copy.exponent = std::ilogb(copy.largest);
    for (Index k = 0; k < shape.size(); ++k) {
      copy.values[k] = std::ldexp(copy.values[k], -copy.exponent);
    }
  }
  copy.largest_pixel = largest_value(copy);
  const bool centred = is_centred(score);
  if (centred && count > 0) remove_mean(copy, count);
  copy.largest = largest_value(copy);
}

}  // namespace xcorr::cpu
