// The kernel of fused_fft_block_peak: as that of fused_fft_block, but the outputs stay in the tile
// (surface_rows.hpp), from which the block makes the record of the pair (epilogue.hpp).
#pragma once

#include "algorithms/blocks/divide.hpp"
#include "algorithms/device/launch.hpp"
#include "algorithms/fused_fft/block_tile.hpp"
#include "algorithms/fused_fft/fused_fft_block_peak/epilogue.hpp"
#include "algorithms/fused_fft/fused_fft_block_peak/tuning.hpp"
#include "algorithms/fused_fft/phase.hpp"
#include "algorithms/fused_fft/problem.hpp"
#include "algorithms/fused_fft/surface_rows.hpp"
#include "harness/variant.hpp"

namespace xcorr::fused_fft {

struct PeakArguments : FusedProblem {
  Complex* spectra;     // in the workspace: [lefts], then [rights]
  std::uint32_t items;  // pairs, or matrices to transform
  std::uint32_t lefts;
  Divider rights_of_left;
  std::uint32_t rights_back;
  ResultRequest request;
  PhaseWeights phase;
  Upsample upsample;
};

template <int kN>
struct PeakShared {
  using T = BlockTile<kN>;
  static constexpr std::size_t tile = kN, scratch = tile + T::elements;  // in complex values
  static constexpr std::size_t bytes = sizeof(Complex) * scratch + sizeof(PeakScratch<kN>);
  // Including the memory that the result of the problem needs.
  static std::size_t bytes_of(const Problem& q) {
    const Index line = is_upsampled(q) ? q.out_rows() * Upsample::kTogether : 0;
    return bytes + sizeof(float) * static_cast<std::size_t>(line);
  }
};

template <int kN, Work kWork, bool kPhase>
__global__ void __launch_bounds__(32 * BlockPeakTuning::kWarps<kN>,
                                  BlockPeakTuning::blocks(kN, kPhase))
    peak_kernel(PeakArguments a) {
  using T = BlockTile<kN>;
  using L = typename T::L;
  static_assert(kWork != Work::shared_left && !(kPhase && kWork == Work::spectra));
  constexpr bool kForward = kWork != Work::pairs;
  Complex* const twiddles = dynamic_shared<Complex>();
  Complex* const in_tile = twiddles + PeakShared<kN>::tile;
  auto& scratch = *reinterpret_cast<PeakScratch<kN>*>(twiddles + PeakShared<kN>::scratch);
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < kN; i += 32 * BlockPeakTuning::kWarps<kN>) twiddles[i] = a.roots[i];
  wait_for_previous();
  // The other kernels fill the device and do not call let_next_start().
  if constexpr (kWork == Work::spectra) {
    clear_header(a.request);
    let_next_start();
  }
  block::barrier();

#pragma unroll 1
  for (std::uint32_t p = blockIdx.x; p < a.items; p += gridDim.x) {
    // Opaque to the compiler, so that it computes no address before the loop: that would take
    // registers which the passes need.
    const int place = opaque(thread);
    const WarpPlace my{place / 32, BlockPeakTuning::kWarps<kN>, place % 32};
    const BlockTransform<kN> tile(in_tile, twiddles, my);
    if constexpr (kWork == Work::spectra) {
      const bool is_left = p < a.lefts;
      tile.forward_rows(is_left ? a.left_of(p) : a.right_of(p - a.lefts));
      block::barrier();
      Complex* const to = a.spectra + static_cast<Index>(p) * T::spectrum;
      tile.template columns<true, false>(
          is_left ? a.left_rows : a.right_rows, [&](auto& v, int at, int k1, int kx) {
            if (is_left) a.as_left<L>(v, k1, kx, kN);
#pragma unroll
            for (int i = 0; i < L::second; i += 2) {
              *reinterpret_cast<SpectrumPair*>(to + at + 32 * i) = {v[i], v[i + 1]};
            }
          });
      block::barrier();
    } else {
      // Kept in shared memory until the end, because the passes use all registers.
      if (place == 0) scratch.pair = p;
      const std::uint32_t l = a.rights_of_left.quotient(p), r = p - l * a.rights_back;
      if constexpr (kForward) {
        tile.forward_rows(a.right_of(r));
        block::barrier();
      }
      const Complex* const left = a.spectra + static_cast<Index>(l) * T::spectrum;
      const Complex* const right = a.spectra + static_cast<Index>(a.lefts + r) * T::spectrum;
      // v holds values of the right if they come from the tile; then it holds values of the
      // product.
      const auto multiply = [&](auto& v, int at) {
#pragma unroll
        for (int i = 0; i < L::second; i += 2) {
          if constexpr (!kForward) {
            const auto pair = *reinterpret_cast<const SpectrumPair*>(right + at + 32 * i);
            v[i] = pair.a, v[i + 1] = pair.b;
          }
          const auto pair = *reinterpret_cast<const SpectrumPair*>(left + at + 32 * i);
          v[i] = v[i] * pair.a;
          v[i + 1] = v[i + 1] * pair.b;
        }
      };
      PairPhase phase{};
      if constexpr (kPhase) {
        const ScaledNorm of_left = a.phase.norms[l], of_right = a.phase.norms[a.lefts + r];
        phase = a.phase.of_pair(of_left.norm, of_right.norm, of_left.exponent + of_right.exponent);
      }
      tile.template columns<kForward, true>(a.right_rows, [&](auto& v, int at, int k1, int kx) {
        multiply(v, at);
        if constexpr (kPhase) {
#pragma unroll
          for (int i = 0; i < L::second; ++i) v[i] = phase.weighted_scaled(v[i]);
          if (k1 == 0 && kx == 0) v[0] = {0.0f, 0.0f};
        }
        transform<L::second, Direction::inverse>(v);
      });
      block::barrier();
      const SurfaceRows<kN> rows(in_tile, twiddles, my);
      const bool broken = warp::any(rows.inverse(a.rows, a.cols, scratch.tops));
      if (my.lane == 0) scratch.broken[my.warp] = broken;
      block::barrier();
      p = scratch.pair;
      const TileSurface<kN> surface{&in_tile->re, a.rows.first, a.cols.first, a.rows.count,
                                    a.cols.count};
      if (a.request.kind == ResultKind::peak) {
        write_peak<kN>(surface, scratch, a.request, a.upsample, a.request.peaks_of(p));
      } else if (a.request.kind == ResultKind::surface) {
        write_surface<kN>(surface, my, a.out_of(p));
      } else {
        write_rows_result<kN>(surface, scratch, a.request, p);
      }
    }
  }
}

}  // namespace xcorr::fused_fft
