// The score phase:p in a kernel that has the products of two spectra at hand (harness/fields.hpp):
// a product X becomes X / max(|X|, 1e-5 max |X|)^(1 - p).
#pragma once

#include <cmath>

#include "algorithms/device/short_transforms.hpp"
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

struct PhaseWeights {
  PhaseWeights() = default;
  // Products of transforms of `bins` values in all, each product `times` the true one.
  PhaseWeights(const Problem& q, double bins, double times)
      : exponent(static_cast<float>(q.fields.score.exponent)),
        scale(static_cast<float>(std::pow(times, -q.fields.score.exponent) / bins)) {}

  // A product, where `largest` is the largest modulus of all. 0 where all are 0, so that what is no
  // number stays none.
  __device__ __forceinline__ Complex weighted(Complex x, float largest) const {
    const float modulus = fmaxf(modulus_of(x), 1e-5f * largest);
    const float by = exponent == 0 ? modulus : powf(modulus, 1 - exponent);
    const float weight = largest > 0 ? scale / by : 0.0f;
    return {weight * x.re, weight * x.im};
  }

  float exponent = 0, scale = 0;
  Complex* products = nullptr;  // in the workspace, where a kernel keeps them between its passes
};

}  // namespace xcorr::fused_fft
