// The product of two spectra on the CPU, one of them conjugated, with AVX2 if the CPU has it.
#pragma once

#include "harness/variant.hpp"

namespace xcorr::device {

// product = conj(left) * right over `n` interleaved scalars; product may be the same array as
// right.
template <typename T>
[[gnu::always_inline]] inline void multiply_conj(const T* left, const T* right, T* product,
                                                 Index n) {
  for (Index i = 0; i < n; i += 2) {
    const T real = left[i] * right[i] + left[i + 1] * right[i + 1];
    const T imaginary = left[i] * right[i + 1] - left[i + 1] * right[i];
    product[i] = real;
    product[i + 1] = imaginary;
  }
}

#if defined(__x86_64__)
template <typename T>
[[gnu::target("avx2,fma")]] void multiply_avx2(const T* left, const T* right, T* product, Index n) {
  multiply_conj(left, right, product, n);
}
#endif

template <typename T>
void multiply_baseline(const T* left, const T* right, T* product, Index n) {
  multiply_conj(left, right, product, n);
}

// The multiply_conj for this CPU.
template <typename T>
auto choose_multiply() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return multiply_avx2<T>;
#endif
  return multiply_baseline<T>;
}

}  // namespace xcorr::device
