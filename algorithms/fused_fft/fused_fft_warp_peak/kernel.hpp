// The kernel of fused_fft_warp_peak: a warp processes a pair of matrices of up to 32 x 32; a lane
// has a column or a row of 32 values in registers.
//
//   pass       a lane has                      computes
//   load       column x of left + i right      means removed if asked for; sides scaled;
//                                              transform over y
//   ---- exchange
//   spectrum   row ky of Z, all kx             transform over kx; product with row -ky, kx <= 16
//   ---- exchange
//   back       half of the y of column kx      transform over ky of kx < 16
//   ---- exchange
//   row        row y, kx <= 16                 a real row of 32 outputs
//
// One complex transform serves both matrices: if Z is the transform of left + i right, then 2 L =
// Z[k] + conj Z[-k] and 2i R = Z[k] - conj Z[-k]. Columns 0 and 16 of the product are real after
// the transform over ky, so they go through it as one.
#pragma once

#include "algorithms/blocks/divide.hpp"
#include "algorithms/device/launch.hpp"
#include "algorithms/fused_fft/fused_fft_warp_peak/epilogue.hpp"
#include "algorithms/fused_fft/fused_fft_warp_peak/tuning.hpp"
#include "algorithms/fused_fft/pair_columns.hpp"
#include "algorithms/fused_fft/pair_scale.hpp"
#include "algorithms/fused_fft/phase.hpp"
#include "algorithms/fused_fft/problem.hpp"
#include "algorithms/fused_fft/row_transforms.hpp"
#include "harness/variant.hpp"

namespace xcorr::fused_fft {

// product: of circular matrices; padded_product: with zero padding, where the sums of the sides
// count in their scale (pair_scale.hpp). A kernel has the code of one, for the instruction cache.
enum class PairScore { product, padded_product, covariance, phase };

struct PairArguments : PairInputs {
  PairWindow window;
  PhaseWeights phase;
};

// v: the elements of a pair after removal of the pivots. Outputs would be multiplied by 2^back.
__device__ __forceinline__ PairPhase phase_of_lanes(const PhaseWeights& weights,
                                                    const Complex (&v)[32], int back) {
  const Complex sum = sum_of_lanes(v);
  const Complex squares = squares_of_lanes(v);
  // The norm without the part of the means that the pivots left.
  const auto norm = [](float of_squares, float of_sum) {
    return sqrtf(fmaxf(of_squares - of_sum * (of_sum * 0x1p-10f), 0.0f));
  };
  return weights.of_pair(norm(squares.re, sum.re), norm(squares.im, sum.im), back);
}

// v: row `lane` of Z. `product` gets four times the product's values at kx < 16, with the real
// values of 0 and 16 as one complex value. With kPhase the values are weighted.
template <bool kPhase>
__device__ __forceinline__ void multiply_row(const PairPhase& phase, int lane,
                                             const Complex (&v)[32], Complex (&product)[16]) {
  const int mirror = 32 - lane;  // 32 for lane 0: a shuffle takes it modulo 32
  Complex last;
  for_each_constant<17>([&](auto index) {
    constexpr int k = decltype(index)::value, kMirror = (32 - k) % 32;
    const Complex z = v[k];
    const Complex other = {warp::shuffle(v[kMirror].re, mirror),
                           -warp::shuffle(v[kMirror].im, mirror)};
    const Complex q = conj(z + other) * (z - other);
    const Complex p = {q.im, -q.re};
    if constexpr (k == 16) {
      last = p;
    } else {
      product[k] = p;
    }
  });
  if constexpr (kPhase) {
    last = phase.weighted(last);
#pragma unroll
    for (int k = 0; k < 16; ++k) product[k] = phase.weighted(product[k]);
  }
  product[0] = {product[0].re - last.im, product[0].im + last.re};
}

// v[m] becomes value 2 m + of_half of the inverse transform of the 32 values from[0], from[1], ...
__device__ __forceinline__ void half_of_inverse(const Complex* from, int of_half,
                                                Complex (&v)[16]) {
  const float sign = of_half ? -1.0f : 1.0f;
#pragma unroll
  for (int k = 0; k < 16; ++k) {
    const Complex low = from[k], high = from[k + 16];
    v[k] = {low.re + sign * high.re, low.im + sign * high.im};
  }
  if (of_half) {
    for_each_constant<16>([&](auto index) {
      constexpr int k = decltype(index)::value;
      v[k] = turn_by<Direction::inverse, k, 32>(v[k]);
    });
  }
  transform<16, Direction::inverse>(v);
}

template <PairScore kScore>
__global__ void __launch_bounds__(32 * PairTuning::kWarps, PairTuning::kBlocks)
    pair_kernel(PairArguments a) {
  constexpr int kPitch = PairTile::exchange;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  Complex* const tile = dynamic_shared<Complex>() + warp * PairTile::elements;
  const int of_half = lane / 16, kx = lane % 16;
  wait_for_previous();
#pragma unroll 1
  for (std::uint32_t first = blockIdx.x * PairTuning::kWarps; first < a.pairs;
       first += gridDim.x * PairTuning::kWarps) {
    // Warps stay together, so that they execute the same instructions at about the same time. A
    // warp beyond the last pair computes the last pair again and does not write it.
    block::barrier();
    const std::uint32_t mine = first + static_cast<std::uint32_t>(warp);
    const std::uint32_t p = mine < a.pairs ? mine : a.pairs - 1;
    const std::uint32_t l = a.rights_of_left.quotient(p), r = p - l * a.rights_back;
    Complex v[32];
    constexpr bool kPhase = kScore == PairScore::phase;
    constexpr bool kCentred = kPhase || kScore == PairScore::covariance;
    if (a.wraps) {
      load_wrapped<kCentred>(a, l, r, lane, v);
    } else {
      load_columns(a, l, r, lane, v);
      if (kCentred && a.whole) {
        remove_pivots(v);
      } else if (kCentred) {
        remove_means(a, lane, v);
      }
    }
    constexpr bool kSumsCount = kScore == PairScore::padded_product;
    const int back = scale_alike<kSumsCount>(a.of_sums, v);
    // These lie in the padding of the first two rows, where no pass stores values, to save
    // registers.
    Complex& kept = tile[kPitch - 1];
    Complex& kept_phase = tile[2 * kPitch - 1];
    if constexpr (kPhase) {
      const PairPhase phase = phase_of_lanes(a.phase, v, back);
      if (lane == 0) kept_phase = {phase.floor, phase.scale};
    }
    if (lane == 0) kept.re = kPhase ? a.scale : a.scale * any_power_of_two(back);
    transform<32, Direction::forward>(v);
#pragma unroll
    for (int ky = 0; ky < 32; ++ky) tile[ky * kPitch + lane] = v[ky];
    warp::barrier();
#pragma unroll
    for (int x = 0; x < 32; ++x) v[x] = tile[lane * kPitch + x];
    transform<32, Direction::forward>(v);
    // What the pivots left of the means affects one value of the product alone. Without padding it
    // is in that value of Z alone. With `wraps` it is also in values that the padding of the left
    // adds, but the right is 0 there.
    if (kCentred && (a.whole || a.wraps) && lane == 0) v[0] = {0.0f, 0.0f};
    PairPhase phase{};
    if constexpr (kPhase) phase = {a.phase.exponent, kept_phase.re, kept_phase.im};
    Complex half[16];
    multiply_row<kPhase>(phase, lane, v, half);
    warp::barrier();
#pragma unroll
    for (int k = 0; k < 16; ++k) tile[k * kPitch + lane] = half[k];
    warp::barrier();
    half_of_inverse(tile + kx * kPitch, of_half, half);
    warp::barrier();
#pragma unroll
    for (int m = 0; m < 16; ++m) tile[kx * kPitch + 2 * m + of_half] = half[m];
    warp::barrier();
#pragma unroll
    for (int k = 0; k < 16; ++k) half[k] = tile[k * kPitch + lane];
    tangle(half);
    transform<16, Direction::inverse>(half);
    const float scale = kept.re;
    warp::barrier();
    const PairSurface surface = store_outputs(a.window, lane, half, tile);
    warp::barrier();
    if (mine >= a.pairs) continue;
    if (a.request.kind == ResultKind::surface) {
      write_pair_surface(surface, scale, lane, a.out_of(p));
    } else {
      write_pair_result(surface, a.window, a.request, scale, lane, half, p);
    }
    warp::barrier();  // the next pair's values overwrite the outputs
  }
}

}  // namespace xcorr::fused_fft
