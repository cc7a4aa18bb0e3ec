// The two phases of fused_fft_grid over rows: matrices to images, and images of pairs to outputs.
// Two rows of a real matrix, m(y) apart so that both are inputs of the same transform in the first
// pass over a column, form one complex row (README.md). Their spectra are separated here.
//
// kFlow: readers wait for each element (exchange.hpp). An element then has one reader, so the first
// phase writes as many copies of an image as there are blocks that read it.
#pragma once

#include "algorithms/device/launch.hpp"
#include "algorithms/device/memory.hpp"
#include "algorithms/fused_fft/fused_fft_grid/arguments.hpp"
#include "algorithms/fused_fft/fused_fft_grid/exchange.hpp"
#include "algorithms/fused_fft/fused_fft_grid/three_pass.hpp"
#include "algorithms/fused_fft/roots.hpp"

namespace xcorr::fused_fft {

// The position of i, counted from `first` on around a circle of n.
__device__ __forceinline__ int from_first(int i, int first, int n) {
  const auto ahead = static_cast<unsigned>(i - first), around = ahead + static_cast<unsigned>(n);
  return static_cast<int>(ahead < around ? ahead : around);
}

// A row of outputs whose address is computed once. Without this struct the compiler computes it for
// each output.
struct RowStore {
  __device__ __forceinline__ explicit RowStore(float* row)
      : bits(opaque(reinterpret_cast<std::int64_t>(row))) {}
  __device__ __forceinline__ void store(int x, float value) const {
    store_global(reinterpret_cast<float*>(bits) + x, value);
  }
  std::int64_t bits;
};

// The R::threads threads of one transform over rows. Items are numbered so that every block has one
// before any block has two.
template <typename R>
struct RowGroup {
  __device__ __forceinline__ RowGroup(const GridArguments& a, const BlockGroup& whole)
      : group(whole),
        t(group.thread % R::threads),
        first(static_cast<std::uint32_t>(group.thread / R::threads) * group.count + group.number),
        step(static_cast<std::uint32_t>(group.threads / R::threads) * group.count),
        pass(dynamic_shared<Complex>() + group.index * a.shared_of_group +
             group.thread / R::threads * a.stride_x) {}
  // Synchronises the threads of the transform.
  __device__ __forceinline__ void barrier() const { group.barrier_of(R::threads); }

  const BlockGroup& group;
  int t;
  std::uint32_t first, step;
  ThreePass<R> pass;
};

// The values of a row pair that a thread has, from t on, m apart, and where their spectrum goes.
template <typename R>
struct RowPair {
  __device__ __forceinline__ RowPair(const GridArguments& a, std::uint32_t q, int t, bool flow) {
    works = q < a.row_items;
    std::uint32_t matrix = a.by_pairs_with_data.split(q);
    const bool is_left = matrix < a.lefts;
    matrix -= is_left ? 0 : a.lefts;
    const int rows = is_left ? a.left_rows : a.right_rows;
    const int cols = is_left ? a.left_cols : a.right_cols;
    const int apart = static_cast<int>(a.m_y);
    const int row = static_cast<int>(q + a.by_m.quotient(q) * a.m_y);
    works = works && row < rows;
    copies = !flow ? 1 : is_left ? a.left_copies : a.right_copies;
    to = (matrix * copies + (is_left ? 0 : a.right_image)) * a.image + q * kLayout;
#pragma unroll
    for (int s = 0; s < R::a; ++s) v[s] = {0.0f, 0.0f};
    if (!works || t >= R::m) return;
    const std::uint32_t at = (matrix * static_cast<std::uint32_t>(rows) + row) * cols + t;
    const float* const even = (is_left ? a.left : a.right) + at;
    const bool both = row + apart < rows;
    const float* const odd = even + (both ? apart * cols : 0);
    const int odd_cols = both ? cols : 0;
    const auto load = [&](int s) {
      if (t + R::m * s < cols) v[s].re = even[R::m * s];
      if (t + R::m * s < odd_cols) v[s].im = odd[R::m * s];
    };
#pragma unroll
    for (int s = 0; s < R::a / 2; ++s) load(s);
    if (a.short_rows) return;
#pragma unroll
    for (int s = R::a / 2; s < R::a; ++s) load(s);
  }
  bool works;
  std::uint32_t copies, to;
  Complex v[R::a];
};

// Transforms the row pairs with data of all lefts and rights into images, after the previous launch
// has ended. The next row pair is loaded while one is transformed.
template <typename R, bool kFlow>
__device__ __forceinline__ void transform_rows(const GridArguments& a, const BlockGroup& group) {
  const RowGroup<R> mine(a, group);
  const ThreePass<R> pass = mine.pass;
  const int t = mine.t;
  const Twiddles<R> w(a.roots, a.roots + kRootTable, t, t);
  // Offset of element (row pair 0, column t) of an image; distance of columns k and k + R::threads.
  const std::uint32_t of_t = a.of_column(t), columns_on = R::threads * a.row_pairs;
  wait_for_previous();
  let_next_start();
  RowPair<R> item(a, mine.first, t, kFlow);
#pragma unroll 1
  for (std::uint32_t base = 0; base < a.row_items; base += mine.step) {
    if (base > 0) mine.barrier();
    const bool works = item.works;
    const std::uint32_t copies = item.copies, image = item.to + of_t;
    if (works && t < R::m) pass.first_forward(item.v, w, t, a.short_rows);
    if (base + mine.step < a.row_items) {
      item = RowPair<R>(a, base + mine.step + mine.first, t, kFlow);
    }
    mine.barrier();
    if (works) pass.second_forward(w, t);
    mine.barrier();
    if (works) {
      Complex v[R::turns][R::c];
#pragma unroll
      for (int i = 0; i < R::turns; ++i) {
        if (R::has_turn(t, i)) pass.third_forward(v[i], t + i * R::threads);
      }
#pragma unroll
      for (int i = 0; i < R::turns; ++i) {
#pragma unroll
        for (int k = 0; k < R::c; ++k) {
          if (R::has_turn(t, i)) pass.x[t + i * R::threads + R::ab * k] = v[i][k];
        }
      }
    }
    mine.barrier();
    if (works) {
      Element* to = a.images + image;
#pragma unroll
      for (int i = 0; i <= R::n / 2 / R::threads; ++i) {
        const int k = t + i * R::threads;
        if ((i + 1) * R::threads > R::n / 2 && k > R::n / 2) break;
        const Complex z = pass.x[k], mirrored = pass.x[k == 0 ? 0 : R::n - k];
        const Element e = {z.re + mirrored.re, z.im - mirrored.im, z.im + mirrored.im,
                           mirrored.re - z.re};
        store_element<kFlow>(to + i * columns_on, e);
        if constexpr (kFlow) {
#pragma unroll 1
          for (std::uint32_t copy = 1; copy < copies; ++copy) {
            store_relaxed(to + copy * a.image + i * columns_on, e);
          }
        }
      }
    }
  }
}

// Where a row pair of the image of a pair is read, and where its outputs go.
template <typename R>
struct OutPair {
  __device__ __forceinline__ OutPair(const GridArguments& a, std::uint32_t q) {
    const bool inside = q < a.out_items;
    pair = a.by_row_pairs.split(q);
    const int y = static_cast<int>(q + a.by_m.quotient(q) * a.m_y);
    even_row = from_first(y, a.first_y, a.ny);
    odd_row = from_first(y + static_cast<int>(a.m_y), a.first_y, a.ny);
    works = inside && (even_row < a.out_rows || odd_row < a.out_rows);
    from = (a.pair_image + pair) * a.image + q * kLayout;
  }
  bool works;
  int even_row, odd_row;
  std::uint32_t pair, from;
};

// Transforms the row pairs of all pairs into outputs. With barriers, the next row pair is loaded
// while one is transformed.
template <typename R, bool kFlow, typename Wait>
__device__ __forceinline__ void invert_rows(const GridArguments& a, const BlockGroup& group,
                                            Wait wait) {
  const RowGroup<R> mine(a, group);
  const ThreePass<R> pass = mine.pass;
  const int t = mine.t;
  const Twiddles<R> w(a.roots, a.roots + kRootTable, t, t);
  // Offsets of columns t and ab - t of an image at each turn; distance of columns k and k + ab.
  std::uint32_t of_t[R::turns], of_mirror[R::turns];
#pragma unroll
  for (int i = 0; i < R::turns; ++i) {
    of_t[i] = a.of_column(t + i * R::threads);
    of_mirror[i] = a.of_column(R::ab - t - i * R::threads);
  }
  const std::uint32_t columns_on = R::ab * a.row_pairs;
  OutPair<R> item(a, mine.first);
  // Frequencies beyond n / 2 are the conjugates of their mirrors.
  Element e[R::turns][R::c];
  const auto load = [&] {
    const Element* const from = a.images + item.from;
    bool missing = false;
#pragma unroll
    for (int i = 0; i < R::turns; ++i) {
#pragma unroll
      for (int k = 0; k < R::c; ++k) {
        if (!R::has_turn(t, i)) continue;
        e[i][k] =
            load_element<kFlow>(k < R::c / 2 ? from + of_t[i] + k * columns_on
                                             : from + of_mirror[i] + (R::c - 1 - k) * columns_on);
      }
    }
#pragma unroll
    for (int i = 0; i < R::turns; ++i) {
#pragma unroll
      for (int k = 0; k < R::c; ++k) missing |= kFlow && R::has_turn(t, i) && is_missing(e[i][k]);
    }
    return missing;
  };
  wait();
  if (!kFlow && item.works) load();
#pragma unroll 1
  for (std::uint32_t base = 0; base < a.out_items; base += mine.step) {
    const bool works = item.works;
    const int even_row = item.even_row, odd_row = item.odd_row;
    const std::uint32_t pair = item.pair;
    Element* const from = a.images + item.from;
    if (works) {
      if constexpr (kFlow) until_there<kFlow>(load);
#pragma unroll
      for (int i = 0; i < R::turns; ++i) {
        if (!R::has_turn(t, i)) continue;
        Complex v[R::c];
#pragma unroll
        for (int k = 0; k < R::c; ++k) {
          const Element& z = e[i][k];
          v[k] = k < R::c / 2 ? Complex{z.x - z.w, z.y + z.z} : Complex{z.x + z.w, z.z - z.y};
        }
        pass.third_inverse(v, t + i * R::threads);
      }
    }
    if (base + mine.step < a.out_items) {
      item = OutPair<R>(a, base + mine.step + mine.first);
      if (!kFlow && item.works) load();
    }
    mine.barrier();
    if (kFlow && works) {  // both threads that read an element, of the same transform, have it
#pragma unroll
      for (int i = 0; i < R::turns; ++i) {
#pragma unroll
        for (int k = 0; k < R::c / 2; ++k) {
          if (R::has_turn(t, i)) make_missing(from + of_t[i] + k * columns_on);
        }
      }
      if (t == 0) make_missing(from + of_t[0] + R::c / 2 * columns_on);
    }
    if (works) pass.second_inverse(w, t);
    mine.barrier();
    if (works && t < R::m) {
      Complex v[R::a];
      pass.first_inverse(v, w, t);
      const int even_cols = even_row < a.out_rows ? a.out_cols : 0;
      const int odd_cols = odd_row < a.out_rows ? a.out_cols : 0;
      const auto row = [&](int y) {
        return a.out + pair * static_cast<std::uint32_t>(a.out_rows * a.out_cols) + y * a.out_cols;
      };
      const RowStore even(row(even_row)), odd(row(odd_row));
#pragma unroll
      for (int s = 0; s < R::a; ++s) {
        const int x = from_first(t + R::m * s, a.first_x, R::n);
        if (x < even_cols) even.store(x, v[s].re);
        if (x < odd_cols) odd.store(x, v[s].im);
      }
    }
  }
}

}  // namespace xcorr::fused_fft
