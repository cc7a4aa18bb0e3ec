// Transforms of columns for cufft_normalised, with the products of spectra in the same kernel. A
// library would store every product, read it again and store its transform.
//
// A block processes 8 neighbouring columns x of one slot and the mirrored columns -x, since a slot
// holds two real planes, which frequency k of column x and frequency -k of column -x together
// separate.
//
//   column_spectra_kernel   forward transforms; stores the spectrum of each plane, for half of x
//   column_products_kernel  products of the two sums of a slot, and inverse transforms
//
// A column of n = first * second values is transformed in two passes through shared memory
// (frequency k1 + first * k2, time t + second * s). The pass over s is again two passes if `first`
// is a product. Transforms are short, so that an SM has many threads, because the time is that of
// loads and not of arithmetic. A thread of the pass over k2 has row k1 of column x and, in reverse
// order, row -k1 of column -x, so that frequencies that belong together are in its registers.
#pragma once

#include "algorithms/blocks/short_transforms.hpp"
#include "algorithms/blocks/transform_lengths.hpp"
#include "algorithms/device/launch.hpp"
#include "algorithms/fft/cufft_normalised/products.hpp"

namespace xcorr::fft {

// Columns per block; as many mirrored columns are added.
constexpr int kColumns = 8;

// A length second * (outer * inner): s = s0 + inner * s1 and k1 = p + outer * q, with s1 and p
// below `outer`.
template <int kN>
struct ColumnLength {
  static constexpr int outer = device::transform_length(kN).outer;
  static constexpr int inner = device::transform_length(kN).inner, first = outer * inner,
                       second = 8;
  static constexpr int n = first * second, threads = kColumns * first;
  // Complex elements of shared memory per k1. Half a warp has two values of k1, and the pitch puts
  // them in different banks.
  static constexpr int pitch = second * 2 * kColumns + kColumns;
  static constexpr int shared_bytes = first * pitch * static_cast<int>(sizeof(Complex));
  static constexpr int blocks = 1024 / threads;  // per SM, with 64 registers per thread
};

// Calls use(ColumnLength<n>{}).
template <typename Use>
void with_column_length(Index n, const Use& use) {
  device::with_transform_length(n,
                                [&](auto length) { use(ColumnLength<decltype(length)::value>{}); });
}
// The shortest length >= `needed` for which this file has transforms; 0 if there is none, or if the
// library's length `of_library` is so much shorter that the library is faster.
inline Index column_length(Index needed, Index of_library) {
  for (const device::TransformLength& one : device::kTransformLengths) {
    if (one.n >= needed) return 4 * one.n <= 5 * of_library ? one.n : 0;
  }
  return 0;
}
// Number of columns that are no mirrors, rounded up to whole blocks: the width of spectra.
inline Index half_pitch(Index cols) {
  return device::ceil_div<Index>(cols / 2 + 1, kColumns) * kColumns;
}

// roots[k] = exp(2 pi i k / n), rounded from float64, computed as power k of the first root.
static __global__ void column_roots_kernel(Complex* roots, int n, double cosine, double sine) {
  for (int k = static_cast<int>(threadIdx.x); k < n; k += static_cast<int>(blockDim.x)) {
    double re = 1, im = 0, square_re = cosine, square_im = sine;
    for (int bits = k; bits > 0; bits /= 2) {
      if (bits % 2 == 1) {
        const double before = re;
        re = before * square_re - im * square_im;
        im = before * square_im + im * square_re;
      }
      const double before = square_re;
      square_re = before * before - square_im * square_im;
      square_im = 2 * before * square_im;
    }
    roots[k] = {static_cast<float>(re), static_cast<float>(im)};
  }
}

// Calls use(column, t, number) for the tasks of a thread in a pass in shared memory: a column of 2
// * kColumns, a time t < L::second and a number < `count`.
template <typename L, typename Use>
__device__ __forceinline__ void for_tasks(int count, Use use) {
#pragma unroll 1
  for (int task = static_cast<int>(threadIdx.x); task < 2 * kColumns * L::second * count;
       task += L::threads) {
    const int column = task % (2 * kColumns), rest = task / (2 * kColumns);
    use(column, rest % L::second, rest / L::second);
  }
}
// Replaces the elements of one p, L::outer apart, by their transform over s0 (forward) or q
// (inverse).
template <typename L, Direction kWay>
__device__ __forceinline__ void inner_pass(Complex* shared, const Complex* roots) {
  constexpr int kApart = L::outer * L::pitch;
  for_tasks<L>(L::outer, [&](int column, int t, int p) {
    Complex* const at = shared + p * L::pitch + t * (2 * kColumns) + column;
    Complex v[L::inner];
#pragma unroll
    for (int i = 0; i < L::inner; ++i) v[i] = at[i * kApart];
    transform<L::inner, kWay>(v);
#pragma unroll
    for (int i = 0; i < L::inner; ++i) {
      at[i * kApart] = kWay == Direction::forward ? v[i] : v[i] * roots[L::second * p * i];
    }
  });
}

struct ColumnSpectra {
  const Complex* planes;  // transformed rows of slots
  PlaneLayout from;
  int filled, cols;  // rows that are not zero; columns per slot
  const Complex* roots;
  Complex* spectra;  // [plane][frequency][half_pitch]: twice the spectrum of each plane
  Index half_pitch;
};

// grid: groups of columns, slots (in a stride).
template <typename L>
__global__ void __launch_bounds__(L::threads, L::blocks) column_spectra_kernel(ColumnSpectra a) {
  Complex* const shared = dynamic_shared<Complex>();
  const int half = a.cols / 2 + 1, first_x = static_cast<int>(blockIdx.x) * kColumns;
  const int c = static_cast<int>(threadIdx.x) % kColumns;
  const int k1 = static_cast<int>(threadIdx.x) / kColumns;
  for (Index slot = blockIdx.y; slot < a.from.slots; slot += gridDim.y) {
    for_tasks<L>(L::inner, [&](int column, int t, int s0) {
      const int own = first_x + column % kColumns;
      const int x = column < kColumns || own == 0 ? own : a.cols - own;
      const Complex* const from = a.planes + slot * a.from.slot + x;
      Complex v[L::outer];
#pragma unroll
      for (int s1 = 0; s1 < L::outer; ++s1) {
        const int y = t + L::second * (s0 + L::inner * s1);
        v[s1] = own < half && y < a.filled ? from[y * a.from.row] : Complex{0.0f, 0.0f};
      }
      transform<L::outer, Direction::forward>(v);
      Complex* const to = shared + s0 * L::outer * L::pitch + t * (2 * kColumns) + column;
#pragma unroll
      for (int p = 0; p < L::outer; ++p) {
        to[p * L::pitch] = v[p] * conj(a.roots[L::second * p * s0]);
      }
    });
    if constexpr (L::inner > 1) {
      block::barrier();
      inner_pass<L, Direction::forward>(shared, a.roots);
    }
    block::barrier();
    Complex own[L::second], mirrored[L::second];
    const int mirrored_k1 = L::first - k1;  // for k1 = 0 the row is 0, one turn later
    const Complex* const at = shared + k1 * L::pitch + c;
    const Complex* const mirrored_at = shared + mirrored_k1 % L::first * L::pitch + kColumns + c;
#pragma unroll
    for (int t = 0; t < L::second; ++t) {
      own[t] = at[t * (2 * kColumns)] * conj(a.roots[k1 * t]);
      mirrored[t] = mirrored_at[t * (2 * kColumns)] * conj(a.roots[mirrored_k1 * t]);
    }
    transform<L::second, Direction::forward>(own);
    transform<L::second, Direction::forward>(mirrored);
    if (first_x + c < half) {
      Complex* to = a.spectra + (2 * slot * L::n + k1) * a.half_pitch + first_x + c;
#pragma unroll
      for (int k2 = 0; k2 < L::second; ++k2) {
        const Complex z = own[k2], m = mirrored[L::second - 1 - k2];
        to[0] = {z.re + m.re, z.im - m.im};
        to[L::n * a.half_pitch] = {z.im + m.im, m.re - z.re};
        to += L::first * a.half_pitch;
      }
    }
    block::barrier();  // the next slot overwrites what other threads may still read
  }
}

struct ColumnProducts {
  PairRange pairs;
  const Complex* spectra;        // as stored by column_spectra_kernel
  Index plane, half_pitch;       // elements per plane, per row
  Index gap;                     // PlaneArguments
  int planes_of_matrix, number;  // planes per matrix; sums per pair
  // Plane of the left and the right matrix of each sum.
  signed char left_of[kSums], right_of[kSums];
  Complex* products;
  PlaneLayout to;
  int cols, first_row, rows;  // columns per slot; rows that are stored
  const Complex* roots;
  float scale;
  std::uint32_t* uncertain;  // counter; this kernel clears it

  // The spectra whose product gives a sum of the chunk; null beyond its last pair.
  struct Factors {
    const Complex *left, *right;
  };
  __device__ __forceinline__ Factors factors(Index sum) const {
    const Index pair = sum / number;
    const int which = static_cast<int>(sum - pair * number);
    if (pair >= pairs.count) return {nullptr, nullptr};
    const Pair own = pairs.matrices(pair);
    return {spectra + (own.left * planes_of_matrix + left_of[which]) * plane,
            spectra + (own.right * planes_of_matrix + gap + right_of[which]) * plane};
  }
};

// grid: groups of columns, slots of products (in a stride).
template <typename L>
__global__ void __launch_bounds__(L::threads, L::blocks) column_products_kernel(ColumnProducts a) {
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) *a.uncertain = 0;
  Complex* const shared = dynamic_shared<Complex>();
  const int half = a.cols / 2 + 1, first_x = static_cast<int>(blockIdx.x) * kColumns;
  const int c = static_cast<int>(threadIdx.x) % kColumns;
  const int k1 = static_cast<int>(threadIdx.x) / kColumns, mirrored_k1 = L::first - k1;
  const float scale = 0.25f * a.scale;
  for (Index slot = blockIdx.y; slot < a.to.slots; slot += gridDim.y) {
    const ColumnProducts::Factors re = a.factors(2 * slot), im = a.factors(2 * slot + 1);
    Complex own[L::second], mirrored[L::second];
#pragma unroll
    for (int k2 = 0; k2 < L::second; ++k2) {
      // A plane has less than 2^32 elements.
      const auto at = static_cast<std::uint32_t>(k1 + L::first * k2) *
                          static_cast<std::uint32_t>(a.half_pitch) +
                      static_cast<std::uint32_t>(first_x + c);
      // Columns beyond the last one of a half are padding.
      const Complex none{0.0f, 0.0f};
      const Complex re_left = re.left ? re.left[at] : none;
      const Complex re_right = re.left ? re.right[at] : none;
      const Complex im_left = im.left ? im.left == re.left ? re_left : im.left[at] : none;
      const Complex im_right = im.left ? im.right == re.right ? re_right : im.right[at] : none;
      const Complex p = conj(re_left) * re_right, q = conj(im_left) * im_right;
      own[k2] = {scale * (p.re - q.im), scale * (p.im + q.re)};
      mirrored[L::second - 1 - k2] = {scale * (p.re + q.im), scale * (q.re - p.im)};
    }
    transform<L::second, Direction::inverse>(own);
    transform<L::second, Direction::inverse>(mirrored);
    Complex* const at = shared + k1 * L::pitch + c;
    Complex* const mirrored_at = shared + mirrored_k1 % L::first * L::pitch + kColumns + c;
#pragma unroll
    for (int t = 0; t < L::second; ++t) {
      at[t * (2 * kColumns)] = own[t] * a.roots[k1 * t];
      mirrored_at[t * (2 * kColumns)] = mirrored[t] * a.roots[mirrored_k1 * t];
    }
    block::barrier();
    if constexpr (L::inner > 1) {
      inner_pass<L, Direction::inverse>(shared, a.roots);
      block::barrier();
    }
    for_tasks<L>(L::inner, [&](int column, int t, int s0) {
      const int of_half = first_x + column % kColumns;
      const bool is_own_mirror = of_half == 0 || 2 * of_half == a.cols;
      const bool is_mirrored = column >= kColumns;
      if (of_half >= half || (is_mirrored && is_own_mirror)) return;
      const Complex* const from = shared + s0 * L::outer * L::pitch + t * (2 * kColumns) + column;
      Complex v[L::outer];
#pragma unroll
      for (int p = 0; p < L::outer; ++p) v[p] = from[p * L::pitch];
      transform<L::outer, Direction::inverse>(v);
      const int x = is_mirrored ? a.cols - of_half : of_half;
      Complex* const to = a.products + slot * a.to.slot + x;
#pragma unroll
      for (int s1 = 0; s1 < L::outer; ++s1) {
        const int y = t + L::second * (s0 + L::inner * s1);
        if (static_cast<unsigned>(y - a.first_row) < static_cast<unsigned>(a.rows)) {
          to[(y - a.first_row) * a.to.row] = v[s1];
        }
      }
    });
    block::barrier();  // the next slot overwrites what other threads may still read
  }
}

}  // namespace xcorr::fft
