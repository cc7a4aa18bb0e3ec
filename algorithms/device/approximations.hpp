// Hardware approximations that take one instruction, where CUDA's functions take many to round as
// IEEE 754 requires.
#pragma once

#include "algorithms/device/cuda.hpp"

#ifndef XCORR_EMULATE

namespace xcorr::device {

// 1 / sqrt(value) of a normal number, with a relative error of 2^-38: the hardware approximation,
// which computes the upper half of a double, and one step of Newton's method.
__device__ __forceinline__ double inverse_root(double value) {
  double root;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(root) : "d"(value));
  const double rest = fma(-value * root, root, 1.0);
  return fma(0.5 * root, rest, root);
}

}  // namespace xcorr::device

#endif  // XCORR_EMULATE
