// The score phase:p in a kernel that has the products of two spectra at hand (harness/problem/fields.hpp): a
// product X becomes X / max(|X|, f)^(1 - p), with a floor f in proportion to the norms of both matrices.
// The kernel has removed their means, and makes the product of frequency 0 zero.
#pragma once

#include <cmath>

#include "algorithms/blocks/short_transforms.hpp"
#include "harness/variant.hpp"

namespace xcorr::fused_fft {

// Without squares, which could leave the range of float32. The least of two numbers of which one is
// NaN is the other one; such a modulus is NaN or too small, and its product is NaN all the same.
__device__ __forceinline__ float modulus_of(Complex x) {
  const float re = fabsf(x.re), im = fabsf(x.im);
  const float more = fmaxf(re, im), less = fminf(re, im);
  const float ratio = less / more;
  return more > 0 ? more * sqrtf(1 + ratio * ratio) : more;
}

// A matrix that was multiplied by 2^-exponent, and its norm then.
struct ScaledNorm {
  float norm;
  int exponent;
};

// Of the products of a pair. scale: 0 where a norm is 0 or no number.
struct PairPhase {
  float exponent, floor, scale;

  // Times 0 and not 0 where a norm is 0, so that what is no number stays none.
  __device__ __forceinline__ Complex weighted(Complex x) const {
    const float modulus = fmaxf(modulus_of(x), floor);
    const float by = exponent == 0 ? modulus : powf(modulus, 1 - exponent);
    const float weight = scale > 0 ? scale / by : 0.0f;
    return {weight * x.re, weight * x.im};
  }
};

struct PhaseWeights {
  PhaseWeights() = default;
  // Products of transforms of `bins` values in all, each product `times` the true one.
  PhaseWeights(const Problem& q, double bins, double times)
      : exponent(static_cast<float>(q.fields.score.exponent)),
        floor(static_cast<float>(phase_floor(bins) * times)),
        scale(static_cast<float>(std::pow(times, -q.fields.score.exponent) / bins)) {}

  // Of a pair whose outputs are to be multiplied by 2^exponents, were they products.
  __device__ __forceinline__ PairPhase of_pair(float left_norm, float right_norm,
                                               int exponents) const {
    const float of_pair = floor * (left_norm * right_norm);
    const float back =
        exponent == 0 ? scale : scale * exp2f(exponent * static_cast<float>(exponents));
    return {exponent, of_pair, of_pair > 0 ? back : 0.0f};
  }

  float exponent = 0, floor = 0, scale = 0;
  const ScaledNorm* norms = nullptr;  // in the workspace, of lefts, then of rights
};

}  // namespace xcorr::fused_fft
