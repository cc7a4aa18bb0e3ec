// The vocabulary's products of small matrices, each made by a whole warp (tensor cores). A lane
// holds a few registers of each matrix: its fragment. With lane = 4 g + t, g 0 to 7 and t 0 to 3,
// and (row, column) of the matrix:
//
//   left, 16 x 8 in tf32    a[0] = (g, t), a[1] = (g + 8, t), a[2] = (g, t + 4), a[3] = (g + 8, t + 4)
//   right, 8 x 8 in tf32    b0 = (t, g), b1 = (t + 4, g)
//   left, 16 x 16 in half   as 16 x 8 words: word c of a row holds columns 2 c and 2 c + 1
//   right, 16 x 8 in half   as 8 x 8 words: word r of a column holds rows 2 r and 2 r + 1
//   sum, 16 x 8 in float    d[0] = (g, 2 t), d[1] = (g, 2 t + 1), d[2] and d[3] eight rows below
//
// The first of two halves is the lower part of its word. Source: PTX ISA, Matrix Fragments for
// mma.m16n8k8 and mma.m16n8k16. PTX leaves the fragments of wmma.m16n16k8 open. The machine code of
// wmma.load and wmma.mma for compute capability 8.0 and 9.0 has those above: the left one is the
// same, and a right matrix or a sum of 16 columns is two of 8.
//
// All lanes of a warp take part in every call. These names need compute capability 8.0; below, they
// compile to nothing that may run.
#pragma once

#include <cstdint>

#include "algorithms/device/cuda.hpp"

#ifndef XCORR_EMULATE

namespace xcorr::device {
namespace matrix {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
inline constexpr bool kAvailable = true;
#else
inline constexpr bool kAvailable = false;
#endif

inline bool supported() { return compute_capability_major() >= 8; }

// The bits of a float with 10 fraction bits: to nearest, ties away from zero.
__device__ __forceinline__ std::uint32_t to_tf32(float value) {
  std::uint32_t bits = 0;
  if constexpr (kAvailable) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return bits;
}

// Two halves in a word: to nearest, ties to even.
__device__ __forceinline__ std::uint32_t to_halves(float low, float high) {
  std::uint32_t bits = 0;
  if constexpr (kAvailable) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  }
  return bits;
}

// d += a b: 16 x 8 of 16 x 8 and 8 x 8 in tf32. Bits beyond the 10 of the fraction are ignored.
__device__ __forceinline__ void add_product_tf32(float (&d)[4], const std::uint32_t (&a)[4],
                                                 std::uint32_t b0, std::uint32_t b1) {
  if constexpr (kAvailable) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

// The same of 16 x 16 and 16 x 8 in half.
__device__ __forceinline__ void add_product_half(float (&d)[4], const std::uint32_t (&a)[4],
                                                 std::uint32_t b0, std::uint32_t b1) {
  if constexpr (kAvailable) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

// wmma: 16 x 16 of 16 x 8 and 8 x 16 in tf32. b[0], b[1] are of columns 0 to 7 of the right matrix,
// b[2], b[3] of columns 8 to 15, as are d and e of the sum.
__device__ __forceinline__ void add_product_16_columns(float (&d)[4], float (&e)[4],
                                                       const std::uint32_t (&a)[4],
                                                       const std::uint32_t (&b)[4]) {
  if constexpr (kAvailable) {
    asm volatile(
        "wmma.mma.sync.aligned.row.row.m16n16k8.f32.tf32.tf32.f32 {%0, %1, %2, %3, %4, %5, %6, "
        "%7}, {%8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3, %4, %5, %6, %7};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(e[0]), "+f"(e[1]), "+f"(e[2]),
          "+f"(e[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]));
  }
}

// The fragment of a left matrix of 16 x 8 (load_matrix_sync). Its rows lie `pitch` words apart in
// shared memory; `shared` is aligned to 32 bytes, and pitch is a multiple of 4.
__device__ __forceinline__ void load_left(std::uint32_t (&a)[4], const std::uint32_t* shared,
                                          int pitch) {
  if constexpr (kAvailable) {
    asm volatile("wmma.load.a.sync.aligned.row.m16n16k8.shared.tf32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "l"(__cvta_generic_to_shared(shared)), "r"(pitch)
                 : "memory");
  }
}

// The same of a right matrix of 8 x 16.
__device__ __forceinline__ void load_right(std::uint32_t (&b)[4], const std::uint32_t* shared,
                                           int pitch) {
  if constexpr (kAvailable) {
    asm volatile("wmma.load.b.sync.aligned.row.m16n16k8.shared.tf32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                 : "l"(__cvta_generic_to_shared(shared)), "r"(pitch)
                 : "memory");
  }
}

}  // namespace matrix
}  // namespace xcorr::device

#endif  // XCORR_EMULATE
