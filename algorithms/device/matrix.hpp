// The vocabulary's products of small matrices, each computed by a whole warp (tensor cores). A lane
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
// mma.m16n8k8 and mma.m16n8k16. PTX does not specify the fragments of wmma.m16n16k8. The machine
// code of wmma.load and wmma.mma for compute capability 8.0 and 9.0 uses those above: the left
// fragment is the same, and a right matrix or a sum of 16 columns is two of 8 columns.
//
// All lanes of a warp take part in every call. These names need compute capability 8.0; for lower
// ones they compile to nothing that may run.
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

// The bits of a float rounded to 10 fraction bits: to nearest, ties away from zero.
__device__ __forceinline__ std::uint32_t to_tf32(float value) {
  std::uint32_t bits = 0;
  if constexpr (kAvailable) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return bits;
}

// Two halves in a word: rounded to nearest, ties to even.
__device__ __forceinline__ std::uint32_t to_halves(float low, float high) {
  std::uint32_t bits = 0;
  if constexpr (kAvailable) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  }
  return bits;
}

// d += a b: 16 x 8 of 16 x 8 and 8 x 8 in tf32. Bits beyond the 10 fraction bits are ignored.
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

// The same for 16 x 16 and 16 x 8 in half.
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

// wmma: 16 x 16 of 16 x 8 and 8 x 16 in tf32. b[0] and b[1] belong to columns 0 to 7 of the right
// matrix, b[2] and b[3] to columns 8 to 15; d and e belong to the same columns of the sum.
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

// The fragment of a left matrix of 16 x 8 (load_matrix_sync). Its rows are `pitch` words apart in
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

// The same for a right matrix of 8 x 16.
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

// Products by a warpgroup, four neighbouring warps. The right matrix is read from shared memory
// while the warps continue (PTX ISA, Asynchronous Warpgroup Level Matrix Instructions). They exist
// only for the target sm_90a; for others these names compile to nothing that may run. The emulation
// computes them at once, so that it does not detect a missing fence or wait.
namespace warpgroup {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
inline constexpr bool kAvailable = true;
#else
inline constexpr bool kAvailable = false;
#endif

// Whether the device code was compiled for this target. A template, so that only code that uses it
// contains it.
template <typename Unused>
__device__ int compiled = kAvailable;

// Whether these products can run on the current device in this build.
inline bool supported() {
  if (compute_capability_major() != 9) return false;
  int value = 0;
  check_cuda(cudaMemcpyFromSymbol(&value, compiled<void>, sizeof value), "target of the kernels");
  return value != 0;
}

// A right matrix of 8 x N in tf32, or of 16 x N in half, in shared memory, without swizzle, with
// columns along memory (PTX ISA, Matrix Descriptor Format). A part is half of the rows of 8
// columns: 128 bytes, 16 per column. The parts of the two halves are `rows_apart` bytes apart,
// those of the next 8 columns `columns_apart` bytes. Address and distances are multiples of 16
// bytes.
__device__ __forceinline__ std::uint64_t right_matrix(const void* shared, int rows_apart,
                                                      int columns_apart) {
  const auto field = [](std::uint64_t bytes) { return bytes >> 4 & 0x3fffu; };
  return field(__cvta_generic_to_shared(shared)) |
         field(static_cast<std::uint64_t>(rows_apart)) << 16 |
         field(static_cast<std::uint64_t>(columns_apart)) << 32;
}

// Called before a barrier after which products read this thread's stores to shared memory.
__device__ __forceinline__ void publish_shared() {
  if constexpr (kAvailable) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// Called before the first product, and after writes to registers of a product since the last
// product.
__device__ __forceinline__ void fence() {
  if constexpr (kAvailable) asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
// The products since the last commit become a group; wait<n>() waits for all groups but the last n.
__device__ __forceinline__ void commit() {
  if constexpr (kAvailable) asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kGroups>
__device__ __forceinline__ void wait() {
  if constexpr (kAvailable) {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kGroups) : "memory");
  }
}

// The operands of a sum of 32 or 64 registers, and their names in PTX.
#define XCORR_NAMES_32                                                     \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define XCORR_NAMES_64                                                                 \
  XCORR_NAMES_32                                                                       \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define XCORR_SUMS_4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define XCORR_SUMS_16(d, i) \
  XCORR_SUMS_4(d, i), XCORR_SUMS_4(d, i + 4), XCORR_SUMS_4(d, i + 8), XCORR_SUMS_4(d, i + 12)
#define XCORR_SUMS_32(d) XCORR_SUMS_16(d, 0), XCORR_SUMS_16(d, 16)
#define XCORR_SUMS_64(d) XCORR_SUMS_32(d), XCORR_SUMS_16(d, 32), XCORR_SUMS_16(d, 48)

// d += a b, or d = a b without kAdd: 64 x N of 64 x 8 and 8 x N in tf32. N is 64 or 128, by the
// number of sums. Warp w of the four has rows 16 w to 16 w + 15 of the left matrix and of the sum,
// in the fragments above; d[4 j] to d[4 j + 3] belong to columns 8 j to 8 j + 7.
template <bool kAdd = true>
__device__ __forceinline__ void add_product_tf32(float (&d)[32], const std::uint32_t (&a)[4],
                                                 std::uint64_t b) {
  if constexpr (kAvailable) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 {" XCORR_NAMES_32
                 "}, {%32, %33, %34, %35}, %36, %37, 1, 1;"
                 : XCORR_SUMS_32(d)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(kAdd ? 1 : 0));
  }
}
template <bool kAdd = true>
__device__ __forceinline__ void add_product_tf32(float (&d)[64], const std::uint32_t (&a)[4],
                                                 std::uint64_t b) {
  if constexpr (kAvailable) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {" XCORR_NAMES_64
                 "}, {%64, %65, %66, %67}, %68, %69, 1, 1;"
                 : XCORR_SUMS_64(d)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(kAdd ? 1 : 0));
  }
}

// The same for 64 x 16 and 16 x 128 in half: a part of the right matrix has 8 rows of a column.
template <bool kAdd = true>
__device__ __forceinline__ void add_product_half(float (&d)[64], const std::uint32_t (&a)[4],
                                                 std::uint64_t b) {
  if constexpr (kAvailable) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" XCORR_NAMES_64
                 "}, {%64, %65, %66, %67}, %68, %69, 1, 1, 0;"
                 : XCORR_SUMS_64(d)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(kAdd ? 1 : 0));
  }
}

}  // namespace warpgroup
}  // namespace xcorr::device

#endif  // XCORR_EMULATE
