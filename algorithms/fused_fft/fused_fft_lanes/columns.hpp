// Kernels of fused_fft_lanes over columns of images.
#pragma once

#include <algorithm>
#include <type_traits>

#include "algorithms/fused_fft/fused_fft_lanes/arguments.hpp"
#include "algorithms/fused_fft/fused_fft_lanes/transforms.hpp"
#include "algorithms/fused_fft/fused_fft_lanes/tuning.hpp"

namespace xcorr::fused_fft {

// Multiplies v by a spectrum that LaneGroup::store_spectrum stored. It does so in two halves with a
// warp barrier between their loads: all loads at once would need more registers than there are.
template <typename Y>
__device__ __forceinline__ void multiply(Complex (&v)[Y::values], const Complex* by, int lane) {
  const auto* const from = reinterpret_cast<const SpectrumPair*>(by) + lane;
#pragma unroll
  for (int m = 0; m < Y::values; m += 2) {
    if (m == Y::values / 2) warp::barrier();
    const SpectrumPair w = from[m / 2 * Y::lanes];
    v[m] = v[m] * w.a;
    v[m + 1] = v[m + 1] * w.b;
  }
}

// Stores spectrum v of a left's column kx to `to`, then replaces it by its conjugate, times the
// factor that undoes all scales, rotated. This is done in memory, since 16 phases would take too
// many registers.
template <typename Y>
__device__ __forceinline__ void store_left(const Complex (&v)[Y::values], Complex* to,
                                           const LanesArguments& a, int kx, int lane) {
  Y::store_spectrum(v, to, lane);
  const Complex* const powers_x = a.roots + 2 * kRootTable;
  const Complex* const powers_y = powers_x + kRootTable;
  const Complex of_column = powers_x[kx * a.turn_x % a.nx];
#pragma unroll 1
  for (int m = 0; m < Y::values; ++m) {
    const Complex phase = of_column * powers_y[(lane + Y::lanes * m) * a.turn_y % Y::n];
    Complex& w = to[2 * (m / 2 * Y::lanes + lane) + m % 2];
    w = conj(w * Complex{a.scale * phase.re, a.scale * phase.im});
  }
}

// Spectra for n-to-m; they overwrite the images.
template <typename Y>
__global__ void __launch_bounds__(LanesTuning::kThreads, LanesTuning::blocks(Y::values))
    spectra_kernel(LanesArguments a) {
  Complex* const table = begin_with_table<Y>(a, 1);
  const Place<Y> at;
  const std::uint32_t matrix = blockIdx.x / a.groups;
  const bool is_left = matrix < a.lefts;
  const int number = static_cast<int>(blockIdx.x - matrix * a.groups) * Y::of_block + at.lane_group;
  const bool live = number <= a.nx / 2;
  const int kx = live ? number : 0;
  Complex* const column =
      (is_left ? a.left_images + matrix * a.image : a.right_images + (matrix - a.lefts) * a.image) +
      kx * Y::n;
  Complex v[Y::values];
  Y::forward_column(v, column, is_left ? a.left_rows : a.right_rows,
                    table + Y::twiddles + at.lane_group * Y::buffer, table, at.lane);
  if (live && is_left) store_left<Y>(v, column, a, kx, at.lane);
  if (live && !is_left) Y::store_spectrum(v, column, at.lane);
}

// Columns of a left and of some of its rights; the results overwrite the images of the rights. Of
// the lane groups of a column the first has the left, and the others have a right each. A block
// takes as many columns as its lane groups allow.
template <typename Y>
__global__ void __launch_bounds__(LanesTuning::kThreads, LanesTuning::blocks(Y::values))
    columns_kernel(LanesArguments a) {
  Complex* const table = begin_with_table<Y>(a, 1);
  const Place<Y> at;
  const int lane_groups = static_cast<int>(a.chunk) + 1, c = at.lane_group / lane_groups;
  Complex* const of_left = table + (Y::twiddles + 1) / 2 * 2 + c * Y::n;
  Complex* const own =
      table + (Y::twiddles + 1) / 2 * 2 + a.columns_of_block * Y::n + at.lane_group * Y::buffer;
  const std::uint32_t task = blockIdx.x / a.groups, l = task / a.chunks;
  const std::uint32_t item =
      (task - l * a.chunks) * a.chunk + (at.lane_group - c * lane_groups) - 1;
  const int number = static_cast<int>((blockIdx.x - task * a.groups) * a.columns_of_block) + c;
  const bool is_left = at.lane_group == c * lane_groups,
             live = number <= a.nx / 2 && c < a.columns_of_block;
  const bool works = live && !is_left && item < a.rights;
  const int kx = live ? number : 0;
  Complex* const column =
      (works ? a.right_images + (static_cast<Index>(l) * a.rights + item) * a.image
             : a.left_images + l * a.image) +
      kx * Y::n;
  Complex v[Y::values];
  Y::forward_column(v, column, works ? a.right_rows : a.left_rows, own, table, at.lane);
  if (is_left && live) store_left<Y>(v, of_left, a, kx, at.lane);
  block::barrier();
  multiply<Y>(v, live ? of_left : table, at.lane);
  Y::template run<Direction::inverse>(v, own, table, at.lane);
  if (works) Y::store_column(v, column, at.lane);
}

// Columns for n-to-m without a workspace of spectra: a block has one column of a group of lefts and
// rights. It stores their spectra in shared memory, and computes from these that column of all
// pairs of the group. GroupShape is the number of threads of a block, and its shared memory:
// twiddles, spectra, and one buffer per lane group.
template <typename Y>
struct GroupShape {
  // Max threads, given their registers.
  static constexpr int kMost = Y::R::middle == 1 ? 1024 : Y::values > 16 ? 512 : 768;
  // Offset of the spectra, aligned to 16 bytes.
  static constexpr int kSpectra = (Y::twiddles + 1) / 2 * 2;
  static constexpr std::size_t bytes(Index threads, Index spectra) {
    return sizeof(Complex) *
           static_cast<std::size_t>(kSpectra + spectra * Y::n + threads / Y::lanes * Y::buffer);
  }
  // As many threads as the work and `limit` bytes allow, in whole warps, at least one.
  static Index threads(Index spectra, Index pairs, Index most, std::size_t limit) {
    Index result = std::min(ceil_div(std::max(spectra, pairs) * Y::lanes, Index{32}) * 32, most);
    while (result > 32 && bytes(result, spectra) > limit) result -= 32;
    return result;
  }
};

// Pointers are those of the first left, right and pair image of the group.
template <typename Y>
__global__ void __launch_bounds__(GroupShape<Y>::kMost) groups_kernel(LanesArguments a) {
  Complex* const table = begin_with_table<Y>(a, 1);
  const int lefts = static_cast<int>(a.lefts), rights = static_cast<int>(a.rights);
  const int spectra = lefts + rights, pairs = lefts * rights;
  const int lane_groups = static_cast<int>(blockDim.x) / Y::lanes,
            kx = static_cast<int>(blockIdx.x);
  Complex* const of_group = table + GroupShape<Y>::kSpectra;
  // Computed where it is needed, which saves registers.
  const auto place = [] { return opaque(static_cast<int>(threadIdx.x)); };
  const auto transformed = [&](auto way, Complex(&v)[Y::values]) {
    const int thread = place();
    Y::template run<decltype(way)::value>(
        v, of_group + spectra * Y::n + thread / Y::lanes * Y::buffer, table, thread % Y::lanes);
  };
#pragma unroll 1
  for (int first = 0; first < spectra; first += lane_groups) {
    Complex v[Y::values];
    {
      const int thread = place(), s = first + thread / Y::lanes;
      const bool is_right = s >= lefts && s < spectra;
      const Complex* const image = is_right ? a.right_images + (s - lefts) * a.image
                                            : a.left_images + (s < spectra ? s : 0) * a.image;
      Y::load_column(v, image + kx * Y::n, is_right ? a.right_rows : a.left_rows,
                     thread % Y::lanes);
    }
    transformed(std::integral_constant<Direction, Direction::forward>{}, v);
    const int thread = place(), s = first + thread / Y::lanes, lane = thread % Y::lanes;
    Complex* const to = of_group + s * Y::n;
    if (s < lefts) {
      store_left<Y>(v, to, a, kx, lane);
    } else if (s < spectra) {
      Y::store_spectrum(v, to, lane);
    }
  }
  block::barrier();
#pragma unroll 1
  for (int first = 0; first < pairs; first += lane_groups) {
    Complex v[Y::values];
    {
      const int thread = place(), p = first + thread / Y::lanes;
      const int l = p < pairs ? p / rights : 0, r = p < pairs ? p - l * rights : 0;
      Y::load_spectrum(v, of_group + (lefts + r) * Y::n, thread % Y::lanes);
      multiply<Y>(v, of_group + l * Y::n, thread % Y::lanes);
    }
    transformed(std::integral_constant<Direction, Direction::inverse>{}, v);
    const int thread = place(), p = first + thread / Y::lanes;
    if (p < pairs) Y::store_column(v, a.pair_images + p * a.image + kx * Y::n, thread % Y::lanes);
  }
}

}  // namespace xcorr::fused_fft
