// The kernel of fused_fft_block: a block processes matrices or pairs one after the other, each
// completely in its shared memory (block_tile.hpp).
#pragma once

#include "algorithms/blocks/divide.hpp"
#include "algorithms/device/launch.hpp"
#include "algorithms/fused_fft/block_tile.hpp"
#include "algorithms/fused_fft/fused_fft_block/tuning.hpp"
#include "algorithms/fused_fft/problem.hpp"
#include "harness/variant.hpp"

namespace xcorr::fused_fft {

struct BlockArguments : FusedProblem {
  Complex* spectra;                    // in the workspace: [lefts], then [rights]
  std::uint32_t items;                 // pairs, or matrices to transform
  std::uint32_t lefts, chunks, chunk;  // lefts; blocks per left; max rights per block
  Divider rights_of_left;
  std::uint32_t rights_back;  // the right of pair p of left l is p - l * rights_back
};

template <int kN, Work kWork>
__global__ void __launch_bounds__(32 * BlockTile<kN>::warps, BlockTuning::blocks(kN))
    fused_kernel(BlockArguments a) {
  using T = BlockTile<kN>;
  using L = typename T::L;
  constexpr bool kForward = kWork != Work::pairs;
  Complex* const twiddles = dynamic_shared<Complex>();
  Complex* const left_spectrum = twiddles + kN;
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < kN; i += 32 * T::warps) twiddles[i] = a.roots[i];
  // Work::pairs waits for the previous launch only when it loads spectra, below.
  if constexpr (kWork != Work::pairs) wait_for_previous();
  // Kernels that fill the device do not let the next launch start (launch.hpp says why).
  if constexpr (kWork == Work::shared_left || kWork == Work::spectra) let_next_start();
  const BlockTransform<kN> tile(left_spectrum + (kWork == Work::shared_left ? T::spectrum : 0),
                                twiddles, {thread / 32, T::warps, thread % 32});
  block::barrier();

  // Stores a spectrum, two values at a time. The spectrum of a left is conjugated, scaled and
  // rotated first.
  const auto store = [&](Complex* to, bool is_left) {
    return [=, &a](auto& v, int at, int k1, int kx) {
      if (is_left) a.as_left<L>(v, k1, kx, kN);
#pragma unroll
      for (int i = 0; i < L::second; i += 2) {
        *reinterpret_cast<SpectrumPair*>(to + at + 32 * i) = {v[i], v[i + 1]};
      }
    };
  };

  std::uint32_t p = blockIdx.x, end = a.items, step = gridDim.x;
  if constexpr (kWork == Work::shared_left) {
    const std::uint32_t l = blockIdx.x / a.chunks, m = a.rights_of_left.by;
    const std::uint32_t begin = (blockIdx.x - l * a.chunks) * a.chunk;
    p = l * m + begin;
    end = l * m + (begin + a.chunk < m ? begin + a.chunk : m);
    step = 1;
    tile.forward_rows(a.left_of(l));
    block::barrier();
    tile.template columns<true, false>(a.left_rows, store(left_spectrum, true));
    block::barrier();
  }

  bool waits = kWork == Work::pairs;
#pragma unroll 1
  for (; p < end; p += step) {
    const std::uint32_t l = kWork == Work::spectra ? 0 : a.rights_of_left.quotient(p);
    const std::uint32_t r = p - l * a.rights_back;
    const bool is_left = kWork == Work::spectra && p < a.lefts;
    if constexpr (kForward) {
      tile.forward_rows(is_left ? a.left_of(p)
                                : a.right_of(kWork == Work::spectra ? p - a.lefts : r));
      block::barrier();
    }
    if constexpr (kWork == Work::spectra) {
      tile.template columns<true, false>(
          is_left ? a.left_rows : a.right_rows,
          store(a.spectra + static_cast<Index>(p) * T::spectrum, is_left));
      block::barrier();
    } else {
      if (waits) wait_for_previous();
      waits = false;
      const Complex* const left = kWork == Work::shared_left
                                      ? left_spectrum
                                      : a.spectra + static_cast<Index>(l) * T::spectrum;
      const Complex* const right = a.spectra + static_cast<Index>(a.lefts + r) * T::spectrum;
      tile.template columns<kForward, true>(a.right_rows, [&](auto& v, int at, int, int) {
#pragma unroll
        for (int i = 0; i < L::second; i += 2) {
          if constexpr (kWork == Work::pairs) {
            const auto pair = *reinterpret_cast<const SpectrumPair*>(right + at + 32 * i);
            v[i] = pair.a, v[i + 1] = pair.b;
          }
          const auto pair = *reinterpret_cast<const SpectrumPair*>(left + at + 32 * i);
          v[i] = v[i] * pair.a;
          v[i + 1] = v[i + 1] * pair.b;
        }
        transform<L::second, Direction::inverse>(v);
      });
      block::barrier();
      tile.inverse_rows(a.rows, a.cols, a.out_of(p));
      // The next matrix begins with rows. Each warp overwrites only rows that it has read itself,
      // so no barrier is needed. Work::pairs begins with columns, which other warps overwrite.
      if constexpr (!kForward) block::barrier();
    }
  }
}

template <int kN>
constexpr std::size_t shared_bytes(bool shared_left) {
  using T = BlockTile<kN>;
  return sizeof(Complex) * (kN + T::elements + (shared_left ? T::spectrum : 0));
}

}  // namespace xcorr::fused_fft
