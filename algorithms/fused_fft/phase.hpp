// The score phase:p in a kernel that has the products of two spectra in registers
// (harness/problem/fields.hpp). A product X becomes X / max(|X|, f)^(1 - p), with a floor f in
// proportion to the norms of both matrices. The kernel has removed the means of the matrices, and
// sets the product of frequency 0 to 0.
#pragma once

#include <cmath>

#include "algorithms/blocks/short_transforms.hpp"
#include "harness/variant.hpp"

namespace xcorr::fused_fft {

// The modulus of x without squares, which could leave the range of float32. fminf and fmaxf return
// the other number if one is NaN. The modulus of an x with a NaN is thus NaN or too small, but its
// product is NaN in any case.
__device__ __forceinline__ float modulus_of(Complex x) {
  const float re = fabsf(x.re), im = fabsf(x.im);
  const float more = fmaxf(re, im), less = fminf(re, im);
  const float ratio = less / more;
  return more > 0 ? more * sqrtf(1 + ratio * ratio) : more;
}

// The norm of a matrix after it was multiplied by 2^-exponent.
struct ScaledNorm {
  float norm;
  int exponent;
};

// Parameters of the weights of one pair. `scale` is 0 if a norm is 0 or NaN.
struct PairPhase {
  float exponent, floor, scale;

  // If a norm is 0, x is multiplied by 0 and not replaced by 0, so that a NaN stays a NaN.
  __device__ __forceinline__ Complex weighted(Complex x) const {
    const float modulus = fmaxf(modulus_of(x), floor);
    const float by = exponent == 0 ? modulus : powf(modulus, 1 - exponent);
    const float weight = scale > 0 ? scale / by : 0.0f;
    return {weight * x.re, weight * x.im};
  }
  // As weighted(), for matrices whose norms have been scaled to 1 to 2, so that the squares of x and
  // of the floor are in the range of float32.
  __device__ __forceinline__ Complex weighted_scaled(Complex x) const {
    const float squares = fmaxf(fmaf(x.re, x.re, x.im * x.im), floor * floor);
    const float by = exponent == 0 ? rsqrtf(squares) : powf(squares, 0.5f * (exponent - 1));
    const float weight = scale > 0 ? scale * by : 0.0f;
    return {weight * x.re, weight * x.im};
  }
};

struct PhaseWeights {
  PhaseWeights() = default;
  // For products of transforms of `bins` values, each product being `times` its true value.
  PhaseWeights(const Problem& q, double bins, double times)
      : exponent(static_cast<float>(q.fields.score.exponent)),
        floor(static_cast<float>(phase_floor(bins) * times)),
        scale(static_cast<float>(std::pow(times, -q.fields.score.exponent) / bins)) {}

  // For a pair whose outputs would have to be multiplied by 2^exponents if the score were product.
  __device__ __forceinline__ PairPhase of_pair(float left_norm, float right_norm,
                                               int exponents) const {
    const float of_pair = floor * (left_norm * right_norm);
    const float back =
        exponent == 0 ? scale : scale * exp2f(exponent * static_cast<float>(exponents));
    return {exponent, of_pair, of_pair > 0 ? back : 0.0f};
  }

  float exponent = 0, floor = 0, scale = 0;
  const ScaledNorm* norms = nullptr;  // in the workspace: [lefts], then [rights]
};

}  // namespace xcorr::fused_fft
