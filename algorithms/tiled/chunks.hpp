// What all variants of the family use: accesses of 16 bytes, small arithmetic, and the sum over
// neighbouring lanes.
#pragma once

#include <algorithm>
#include <array>

#include "algorithms/device/cuda.hpp"
#include "harness/variant.hpp"

namespace xcorr::tiled {

inline constexpr int kChunk = 4;  // floats per access, and left columns per step

struct alignas(sizeof(float) * kChunk) Chunk {
  float at[kChunk];
};
__device__ __forceinline__ Chunk load_chunk(const float* at) {
  return *reinterpret_cast<const Chunk*>(at);
}
__host__ __device__ constexpr int chunk_down(int x) { return x & ~(kChunk - 1); }
__host__ __device__ constexpr int chunk_up(int x) { return chunk_down(x + kChunk - 1); }

__host__ __device__ constexpr int smaller(int a, int b) { return a < b ? a : b; }
__host__ __device__ constexpr int larger(int a, int b) { return a > b ? a : b; }
constexpr int log2(int n) { return n > 1 ? 1 + log2(n / 2) : 0; }
inline int log2_up(Index n) {
  int log = 0;
  while ((Index{1} << log) < n) ++log;
  return log;
}

// The largest multiple of `step` that is at most x.
inline int floor_to(Index x, int step) {
  return static_cast<int>((x >= 0 ? x / step : -ceil_div<Index>(-x, step)) * step);
}

// A kernel for one tile of neighbouring shifts, as a point names it: rows x cols shifts, and the
// blocks per SM for which the kernel has registers.
struct TileShape {
  int rows, cols, resident_blocks = 1;
};
template <typename Kernel>
struct TileKernel {
  const char* name;
  TileShape shape;
  Kernel kernel;
};
template <typename Kernel, std::size_t kCount>
const TileKernel<Kernel>& kernel_of(const std::array<TileKernel<Kernel>, kCount>& kernels,
                                    const PlanRequest& request) {
  return *std::find_if(kernels.begin(), kernels.end(), [&](const TileKernel<Kernel>& one) {
    return one.name == request.params.get("overlap_tile");
  });
}

// Sums over 2 * kOffset neighbouring lanes. Of two lanes that are kOffset apart, one keeps the
// lower half of the kCount sums and the other the upper half, and so on. The order of the additions
// is fixed. At the end lane l of n lanes has the sums from l * kCount / n on, at the front of
// `sums`.
template <int kCount, int kOffset, int kSums>
__device__ __forceinline__ void reduce_halving(float (&sums)[kSums]) {
  if constexpr (kOffset > 0 && kCount == 1) {
    sums[0] += warp::shuffle_xor(sums[0], kOffset);
    reduce_halving<1, kOffset / 2>(sums);
  } else if constexpr (kOffset > 0) {
    constexpr int kHalf = kCount / 2;
    const bool upper = (warp::lane() & kOffset) != 0;
#pragma unroll
    for (int k = 0; k < kHalf; ++k) {
      const float low = sums[k], high = sums[k + kHalf];
      sums[k] = select(upper, high, low) + warp::shuffle_xor(select(upper, low, high), kOffset);
    }
    reduce_halving<kHalf, kOffset / 2>(sums);
  }
}

}  // namespace xcorr::tiled
