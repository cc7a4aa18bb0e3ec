// Kernels of fused_fft_lanes over rows of images. Two real rows (2q and 2q + 1) form one complex
// row. Their elements are neighbours in a column-major image, and are read and written together.
// Each lane group of a block has one complex row. For loads and stores the threads of a block lie
// across the rows, so that a block accesses one run of memory per column.
#pragma once

#include <type_traits>

#include "algorithms/device/memory.hpp"
#include "algorithms/fused_fft/fused_fft_lanes/arguments.hpp"
#include "algorithms/fused_fft/fused_fft_lanes/transforms.hpp"
#include "algorithms/fused_fft/fused_fft_lanes/tuning.hpp"
#include "algorithms/fused_fft/problem.hpp"

namespace xcorr::fused_fft {

// Transforms rows 2q and 2q + 1 of a matrix, complex rows from `first` on, one per lane group, into
// its image.
template <typename T>
__device__ __forceinline__ void forward_row_pairs(const Source& from, int first, int ny,
                                                  Complex* image, Complex* buffers,
                                                  const Complex* table) {
  const Place<T> at;
  const int pairs = (from.rows + 1) / 2;
  Complex* const own = buffers + at.lane_group * T::buffer;
  {
    const int y = 2 * (first + at.lane_group);
    const bool one = y < from.rows, both = y + 1 < from.rows;
    const float* row = from.data + (one ? y * from.cols : 0) + at.lane;
    const float* next = row + (both ? from.cols : 0);
    Complex v[T::values];
    const auto load = [&](auto inputs) {
#pragma unroll
      for (int m = 0; m < decltype(inputs)::value; ++m) {
        const bool inside = at.lane + T::lanes * m < from.cols;
        v[m].re = inside && one ? row[T::lanes * m] : 0.0f;
        v[m].im = inside && both ? next[T::lanes * m] : 0.0f;
      }
    };
    if (from.cols <= T::n / 2) {
      load(std::integral_constant<int, T::values / 2>{});
      T::template run<Direction::forward, true>(v, own, table, at.lane);
    } else {
      load(std::integral_constant<int, T::values>{});
      T::template run<Direction::forward>(v, own, table, at.lane);
    }
    warp::barrier();
#pragma unroll
    for (int m = 0; m < T::values; ++m) own[at.lane + T::lanes * m] = v[m];
  }
  block::barrier();
  const int q = at.thread % T::of_block, begin = at.thread / T::of_block;
  const Complex* const z = buffers + q * T::buffer;
  auto* const to = reinterpret_cast<SpectrumPair*>(image) + first + q;
  if (first + q < pairs) {
    const auto take_apart = [&](int k) {
      const Complex p = z[k], m = z[k == 0 ? 0 : T::n - k];
      to[k * (ny / 2)] = {{p.re + m.re, p.im - m.im}, {p.im + m.im, m.re - p.re}};
    };
#pragma unroll 4
    for (int i = 0; i < T::values / 2; ++i) take_apart(begin + i * T::lanes);
    if (begin == 0) take_apart(T::n / 2);
  }
  block::barrier();
}

// Combines element k of the spectra of two real rows to elements of the spectrum of their complex
// row z: z[k], and z[n - k].
__device__ __forceinline__ Complex packed(const SpectrumPair& p) {
  return {p.a.re - p.b.im, p.a.im + p.b.re};
}
__device__ __forceinline__ Complex packed_mirror(const SpectrumPair& p) {
  return {p.a.re + p.b.im, p.b.re - p.a.im};
}
__device__ __forceinline__ Complex select_complex(bool condition, Complex yes, Complex no) {
  return {select(condition, yes.re, no.re), select(condition, yes.im, no.im)};
}

// Loads complex rows from `first` on, one per lane group, from an image into the buffers of the
// lane groups, and does the first pass of their inverse transforms. Column k gives elements k and n
// - k, so those of tasks j and kRest - j are loaded together: a thread has both tasks, or (`odd`)
// one, and neighbours swap halves. Tasks 0 and kRest / 2 are their own mirrors; element n / 2 is
// loaded separately.
template <typename T>
__device__ __forceinline__ void begin_row_pairs(const SpectrumPair* all, int ny, int thread,
                                                Complex* buffers, const Complex* table) {
  constexpr int kFirst = T::R::first, kHalf = kFirst / 2, kRest = T::kRest;
  constexpr int kTasks = kRest / T::lanes;
  constexpr bool kOdd = kTasks % 2 == 1;
  static_assert(kTasks <= 3 && (!kOdd || T::of_block == 16));
  const int q = thread % T::of_block, number = thread / T::of_block;
  Complex* const z = buffers + q * T::buffer;
  const int pitch = ny / 2;
  all += q;
  const bool outer = number == 0;
  Complex alone{0.0f, 0.0f};
  if (outer) alone = packed(load_past_l1(all + T::n / 2 * pitch));
  if constexpr (kOdd) {
    const int near = number / 2;
    const int j = number % 2 == 0 ? near : kRest - (number == 1 ? kRest / 2 : near);
    const int swap = number < 2 ? 0 : 16;
    const SpectrumPair* const from = opaque(all + j * pitch);
    SpectrumPair p[kHalf];
#pragma unroll
    for (int i = 0; i < kHalf; ++i) p[i] = load_past_l1(from + i * kRest * pitch);
    Complex a[kFirst], b[kHalf + 1];
#pragma unroll
    for (int i = 0; i < kHalf; ++i) {
      a[i] = packed(p[i]);
      b[i] = packed_mirror(p[i]);
    }
    b[kHalf] = alone;
#pragma unroll
    for (int i = 0; i < kHalf; ++i) {
      const Complex given = select_complex(outer, b[i + 1], b[i]);
      a[kFirst - 1 - i] = {warp::shuffle_xor(given.re, swap), warp::shuffle_xor(given.im, swap)};
    }
    T::template begin<Direction::inverse>(a, j, z, table);
  }
  if constexpr (kTasks > 1) {
    // Tasks after those that neighbours swap; otherwise the first thread has tasks 0 and kRest / 2.
    const int j = kOdd ? T::lanes / 2 + number : number;
    const int mirror = !kOdd && outer ? kRest / 2 : kRest - j;
    const SpectrumPair* const from = opaque(all + j * pitch);
    const SpectrumPair* const from_mirror = opaque(all + mirror * pitch);
    SpectrumPair p[kHalf], m[kHalf];
#pragma unroll
    for (int i = 0; i < kHalf; ++i) {
      p[i] = load_past_l1(from + i * kRest * pitch);
      m[i] = load_past_l1(from_mirror + i * kRest * pitch);
    }
    Complex a[kFirst], c[kFirst];
#pragma unroll
    for (int i = 0; i < kHalf; ++i) {
      a[i] = packed(p[i]);
      c[i] = packed(m[i]);
      const Complex same = i == 0 ? alone : packed_mirror(p[(kHalf - i) % kHalf]);
      const Complex of_p = packed_mirror(p[kHalf - 1 - i]), of_m = packed_mirror(m[kHalf - 1 - i]);
      a[kHalf + i] = kOdd ? of_m : select_complex(outer, same, of_m);
      c[kHalf + i] = kOdd ? of_p : select_complex(outer, of_m, of_p);
    }
    T::template begin<Direction::inverse>(a, j, z, table);
    T::template begin<Direction::inverse>(c, mirror, z, table);
  }
}

// Transforms complex rows from `first` on, one per lane group, from an image into the outputs of a
// pair. `loaded` is called when the block has loaded all of them.
template <typename T, typename Loaded>
__device__ __forceinline__ void inverse_row_pairs(const Complex* image, int first, int ny,
                                                  Range rows, Range cols, float* out,
                                                  Complex* buffers, const Complex* table,
                                                  Loaded loaded) {
  const Place<T> at;
  begin_row_pairs<T>(reinterpret_cast<const SpectrumPair*>(image) + first, ny, at.thread, buffers,
                     table);
  block::barrier();
  loaded();
  Complex v[T::values];
  T::template finish<Direction::inverse>(v, buffers + at.lane_group * T::buffer, table, at.lane);
  const int y = 2 * (first + at.lane_group);
  const auto count = static_cast<std::uint32_t>(cols.count);
  const std::uint32_t of_one = rows.has(y) ? count : 0, of_next = rows.has(y + 1) ? count : 0;
  float* const to = opaque(out + (y - rows.first) * cols.count + (at.lane - cols.first));
  float* const next = opaque(to + cols.count);
#pragma unroll
  for (int m = 0; m < T::values; ++m) {
    const auto x = static_cast<std::uint32_t>(at.lane - cols.first + T::lanes * m);
    if (x < of_one) store_last(to + T::lanes * m, v[m].re);
    if (x < of_next) store_last(next + T::lanes * m, v[m].im);
  }
}

// Transforms the rows of all matrices of the chunk into images.
template <typename X>
__global__ void __launch_bounds__(LanesTuning::kThreads, LanesTuning::blocks(X::values))
    forward_rows_kernel(LanesArguments a) {
  Complex* const table = begin_with_table<X>(a, 0);
  for (std::uint32_t i = blockIdx.x * LanesTuning::kThreads + threadIdx.x; i < a.all_counters;
       i += gridDim.x * LanesTuning::kThreads) {
    a.counters[i] = 0;
  }
  const std::uint32_t matrix = blockIdx.x / a.groups;
  const int first = static_cast<int>(blockIdx.x - matrix * a.groups) * X::of_block;
  const bool is_left = matrix < a.lefts;
  const Index at = is_left ? matrix : matrix - a.lefts;
  const Source source = is_left ? a.left_of(at) : a.right_of(at);
  if (2 * first >= source.rows) return;
  forward_row_pairs<X>(source, first, a.ny,
                       (is_left ? a.left_images : a.right_images) + at * a.image,
                       table + X::twiddles, table);
}

template <typename X>
__global__ void __launch_bounds__(LanesTuning::kThreads, LanesTuning::blocks(X::values))
    inverse_rows_kernel(LanesArguments a) {
  Complex* const table = begin_with_table<X, Ends::call>(a, 0);
  const std::uint32_t pair = blockIdx.x / a.groups;
  const int first = static_cast<int>(blockIdx.x - pair * a.groups) * X::of_block;
  const std::uint32_t l = pair / a.rights;
  inverse_row_pairs<X>(a.pair_images + pair * a.image, first, a.ny, a.rows, a.cols,
                       a.out_of(l * a.of_left + (pair - l * a.rights)), table + X::twiddles, table,
                       [] {});
}

}  // namespace xcorr::fused_fft
