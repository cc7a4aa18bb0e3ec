// Transforms of a block: passes of short transforms in registers (Stockham's order, natural before
// and after). Values are exchanged through shared memory between passes. Roots of one come from a
// table.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "algorithms/autocorrelation/autocorr_fft/lengths.hpp"
#include "algorithms/blocks/coprime_transforms.hpp"
#include "algorithms/device/cuda.hpp"

namespace xcorr::autocorrelation {

// One pass over kColumns transforms: value read(place, column) and write(place, column, value),
// with the places of struct Pass. All threads of the block call it. It contains no barrier.
template <int kColumns, int kRadix, typename Read, typename Write>
__device__ __forceinline__ void run_pass(const Pass& pass, const Complex* __restrict__ roots,
                                         const Read& read, const Write& write) {
  for (int i = static_cast<int>(threadIdx.x); i < pass.tasks * kColumns;
       i += static_cast<int>(blockDim.x)) {
    const int column = i % kColumns;
    auto task = static_cast<std::uint32_t>(i / kColumns);
    const auto group = static_cast<int>(pass.by_before.split(task));
    const auto within = static_cast<int>(task);
    const int from = group * pass.read_pitch + within, to = group * pass.write_pitch + within;
    Complex v[kRadix];
#pragma unroll
    for (int k = 0; k < kRadix; ++k) v[k] = read(from + k * pass.read_step, column);
    if (pass.before > 1) {
      Complex w[kRadix];  // powers of a root, of at most four products one after the other
      w[1] = roots[within * pass.root_step];
      v[1] = v[1] * w[1];
#pragma unroll
      for (int k = 2; k < kRadix; ++k) {
        w[k] = w[k / 2] * w[k - k / 2];
        v[k] = v[k] * w[k];
      }
    }
    short_transform<kRadix, Direction::forward>(v);
#pragma unroll
    for (int k = 0; k < kRadix; ++k) write(to + k * pass.before, column, v[k]);
  }
}

template <int kColumns, typename Read, typename Write>
__device__ __forceinline__ void run_pass(const Pass& pass, const Complex* __restrict__ roots,
                                         const Read& read, const Write& write) {
  const auto run = [&](auto radix) {
    run_pass<kColumns, decltype(radix)::value>(pass, roots, read, write);
  };
  switch (pass.radix) {
    case 16:
      return run(std::integral_constant<int, 16>{});
    case 12:
      return run(std::integral_constant<int, 12>{});
    case 10:
      return run(std::integral_constant<int, 10>{});
    case 8:
      return run(std::integral_constant<int, 8>{});
    case 6:
      return run(std::integral_constant<int, 6>{});
    case 5:
      return run(std::integral_constant<int, 5>{});
    case 4:
      return run(std::integral_constant<int, 4>{});
    default:
      return run(std::integral_constant<int, 3>{});
  }
}

// Two buffers of shared memory: a pass reads one and writes the other.
struct Buffers {
  Complex* from;
  Complex* to;

  // Swaps the buffers after all threads have written `to`.
  __device__ __forceinline__ void turn() {
    block::barrier();
    Complex* const other = from;
    from = to;
    to = other;
  }
};

// Runs passes first .. end - 1, each from one buffer to the other. The result is in buffers.from.
// The columns of a place are neighbours in a buffer.
template <int kColumns>
__device__ __forceinline__ void run_passes(const Passes& passes, int first, int end,
                                           const Complex* __restrict__ roots, Buffers& buffers) {
  for (int i = first; i < end; ++i) {
    const Complex* const from = buffers.from;
    Complex* const to = buffers.to;
    run_pass<kColumns>(
        passes.pass[i], roots,
        [&](int place, int column) { return from[place * kColumns + column]; },
        [&](int place, int column, Complex value) { to[place * kColumns + column] = value; });
    buffers.turn();
  }
}

// The table of a transform of n values: exp(-2 pi i k / n), k < n, rounded from double.
struct RootPiece {
  static constexpr int kCount = 256;
  Complex root[kCount];
};
static __global__ void store_roots(RootPiece piece, int count, Complex* to) {
  const int i = static_cast<int>(threadIdx.x);
  if (i < count) to[i] = piece.root[i];
}
inline void store_roots_of(int n, Complex* to, void* stream) {
  for (int first = 0; first < n; first += RootPiece::kCount) {
    RootPiece piece{};
    const int count = std::min(RootPiece::kCount, n - first);
    for (int i = 0; i < count; ++i) {
      const double angle = -2 * 3.14159265358979323846 * (first + i) / n;
      piece.root[i] = {static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))};
    }
    launch(store_roots, dim3(1), dim3(RootPiece::kCount), 0, stream, piece, count, to + first);
  }
}

}  // namespace xcorr::autocorrelation
