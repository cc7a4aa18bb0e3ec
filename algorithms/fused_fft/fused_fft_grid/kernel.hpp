// The kernel of fused_fft_grid: its three phases, and how blocks meet between them.
#pragma once

#include "algorithms/fused_fft/fused_fft_grid/arguments.hpp"
#include "algorithms/fused_fft/fused_fft_grid/columns.hpp"
#include "algorithms/fused_fft/fused_fft_grid/exchange.hpp"
#include "algorithms/fused_fft/fused_fft_grid/rows.hpp"
#include "algorithms/fused_fft/fused_fft_grid/three_pass.hpp"
#include "algorithms/fused_fft/fused_fft_grid/tuning.hpp"
#include "algorithms/fused_fft/lengths.hpp"

namespace xcorr::fused_fft {

using AxisLengths = Lengths<64, 96, 128, 192, 256, 384, 512>;

// Calls f(ThreeRadices of length n).
template <int kFirst, int... kRest, typename F>
__device__ __forceinline__ void with_radices(Lengths<kFirst, kRest...>, int n, F f) {
  if constexpr (sizeof...(kRest) > 0) {
    if (n != kFirst) return with_radices(Lengths<kRest...>(), n, f);
  }
  f(RadicesOfLength<kFirst>{});
}

enum class Phases { all, rows, columns, inverse };

// All phases, or one phase if phases are timed separately.
template <bool kFlow>
__global__ void __launch_bounds__(GridTuning::kMostThreads, GridTuning::kBlocks)
    grid_kernel(GridArguments a, Phases phases) {
  const BlockGroup group(a.log_threads);
  const bool all = phases == Phases::all;
  const auto end_phase = [&](int number) {
    if (!all) return;
    if constexpr (kFlow) {
      group.barrier();
    } else {
      a.barrier.arrive(number);
    }
  };
  const auto wait = [&](int number) {
    if (all && !kFlow) a.barrier.wait(number);
  };
  if (all || phases == Phases::rows) {
    with_radices(AxisLengths(), a.nx,
                 [&](auto r) { transform_rows<decltype(r), kFlow>(a, group); });
  }
  end_phase(0);
  if (all || phases == Phases::columns) {
    with_radices(AxisLengths(), a.ny, [&](auto r) {
      correlate_columns<decltype(r), kFlow>(a, group, [&] { wait(0); });
    });
  }
  end_phase(1);
  if (all || phases == Phases::inverse) {
    with_radices(AxisLengths(), a.nx,
                 [&](auto r) { invert_rows<decltype(r), kFlow>(a, group, [&] { wait(1); }); });
  }
}

}  // namespace xcorr::fused_fft
