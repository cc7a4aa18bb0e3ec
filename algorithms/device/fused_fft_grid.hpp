// The three phases of a correlation whose images lie in global memory and whose transforms are
// those of three_pass_fft.hpp: rows, columns with the product, rows. As in fused_fft_tile.hpp two
// rows of a real matrix are one complex row; here the row phase takes their spectra apart, and an
// element of an image is one frequency of both rows, 16 bytes.
//
// Rows of a pair are m(y) apart, so that they meet in the first pass over a column. An image has
// its columns in groups of kLayout, a group has all row pairs one after the other: lanes along a
// row touch half as many lines of a cache as sectors, and so do lanes along two columns.
//
// kFlow: elements are waited for one by one (grid_exchange.hpp). Each then has one reader, so the
// row phase writes as many copies of an image as there are blocks that read it.
#pragma once

#include "algorithms/device/divide.hpp"
#include "algorithms/device/fused_fft_plan.hpp"
#include "algorithms/device/grid_exchange.hpp"
#include "algorithms/device/three_pass_fft.hpp"

namespace xcorr {

// Columns of a group in the layout of images, and its logarithm.
inline constexpr int kLayout = 4, kLogLayout = 2;

struct GridArguments {
  // Offset of column k from column 0 of the same row pair.
  __device__ __forceinline__ std::uint32_t of_column(int k) const {
    const auto column = static_cast<std::uint32_t>(k);
    return (column / kLayout) * row_pairs * kLayout + column % kLayout;
  }

  const float *left, *right;
  float* out;
  const Complex* roots;  // two tables of x, two of y
  Element* images;       // of lefts, of rights from right_image on, of pairs from pair_image on
  std::uint32_t image, right_image, pair_image;  // elements of one; numbers
  std::uint32_t left_copies, right_copies;       // of an image; with kFlow
  std::uint32_t right_copy_of_left;              // 1 if each left has its own copy of a right
  std::uint32_t row_pairs, m_y;                  // of an image; rows of a pair are m_y apart
  int nx, ny;
  int left_rows, left_cols, right_rows, right_cols;
  int out_rows, out_cols, first_y, first_x;  // of the window in the circular result
  float scale;
  std::uint32_t lefts, rights_of_left, rights_back;
  int log_columns;      // of a task over columns
  std::uint32_t chunk;  // rights of a task
  Divider by_pairs_with_data, by_row_pairs, by_m, by_groups, by_chunks;
  std::uint32_t row_items, column_tasks, out_items;
  // Threads of a part; complex elements of shared memory, of a part and of a transform.
  int log_threads, shared_of_part, stride_x, stride_y;
  GridBarrier barrier;
};

// f() until what it has loaded is there: f says whether something is missing.
template <bool kFlow, typename F>
__device__ __forceinline__ void until_there(F f) {
  if constexpr (kFlow) {
    while (f()) {
    }
  } else {
    f();
  }
}
template <bool kFlow>
__device__ __forceinline__ Element load_element(const Element* from) {
  if constexpr (kFlow) return load_shared(from);
  return *from;
}
template <bool kFlow>
__device__ __forceinline__ void store_element(Element* to, const Element& e) {
  if constexpr (kFlow) {
    store_shared(to, e);
  } else {
    *to = e;
  }
}

// The position of i, counted from `first` on around a circle of n.
__device__ __forceinline__ int from_first(int i, int first, int n) {
  const auto ahead = static_cast<unsigned>(i - first), around = ahead + static_cast<unsigned>(n);
  return static_cast<int>(ahead < around ? ahead : around);
}

// The transforms over rows of a part of a block, R::threads threads each: items of all parts are
// dealt out so that every block has its share before any has two.
template <typename R>
struct RowTile {
  __device__ __forceinline__ RowTile(const GridArguments& a, const BlockPart& part)
      : t(part.thread % R::threads),
        first(static_cast<std::uint32_t>(part.thread / R::threads) * part.count + part.number),
        step(static_cast<std::uint32_t>(part.threads / R::threads) * part.count),
        pass(dynamic_shared<Complex>() + part.index * a.shared_of_part +
             part.thread / R::threads * a.stride_x) {}
  int t;
  std::uint32_t first, step;
  ThreePass<R> pass;
};

// Row pairs with data of all lefts and rights into images.
template <typename R, bool kFlow>
__device__ __forceinline__ void forward_rows(const GridArguments& a, const BlockPart& part) {
  const RowTile<R> tile(a, part);
  const ThreePass<R> pass = tile.pass;
  const int t = tile.t;
  const Twiddles<R> w(a.roots, a.roots + kRootTable, t, t);
  // Element (row pair 0, column t) of an image; from column k to k + R::threads.
  const std::uint32_t of_t = a.of_column(t), columns_on = R::threads * a.row_pairs;
#pragma unroll 1
  for (std::uint32_t base = 0; base < a.row_items; base += tile.step) {
    if (base > 0) part.barrier();
    std::uint32_t q = base + tile.first;
    const bool inside = q < a.row_items;
    std::uint32_t matrix = a.by_pairs_with_data.split(q);
    const bool is_left = matrix < a.lefts;
    matrix -= is_left ? 0 : a.lefts;
    const int rows = is_left ? a.left_rows : a.right_rows;
    const int cols = is_left ? a.left_cols : a.right_cols;
    const int apart = static_cast<int>(a.m_y);
    const int row = static_cast<int>(q + a.by_m.quotient(q) * a.m_y);
    const bool works = inside && row < rows;
    if (works && t < R::m) {
      const std::uint32_t at = (matrix * static_cast<std::uint32_t>(rows) + row) * cols + t;
      const float* const even = (is_left ? a.left : a.right) + at;
      const bool both = row + apart < rows;
      const float* const odd = even + (both ? apart * cols : 0);
      const int odd_cols = both ? cols : 0;
      Complex v[R::a];
#pragma unroll
      for (int s = 0; s < R::a; ++s) {
        v[s] = {0.0f, 0.0f};
        if (t + R::m * s < cols) v[s].re = even[R::m * s];
        if (t + R::m * s < odd_cols) v[s].im = odd[R::m * s];
      }
      pass.first_forward(v, w, t);
    }
    part.barrier();
    if (works) pass.second_forward(w, t);
    part.barrier();
    if (works && t < R::ab) {
      Complex v[R::c];
      pass.third_forward(v, t);
#pragma unroll
      for (int k = 0; k < R::c; ++k) pass.x[t + R::ab * k] = v[k];
    }
    part.barrier();
    if (works) {
      const std::uint32_t copies = !kFlow ? 1 : is_left ? a.left_copies : a.right_copies;
      const std::uint32_t number = kFlow     ? (is_left ? 0 : a.right_image) + matrix * copies
                                   : is_left ? matrix
                                             : a.right_image + matrix;
      Element* to = a.images + number * a.image + q * kLayout + of_t;
#pragma unroll
      for (int i = 0; i <= R::n / 2 / R::threads; ++i) {
        const int k = t + i * R::threads;
        if ((i + 1) * R::threads > R::n / 2 && k > R::n / 2) break;
        const Complex z = pass.x[k], mirrored = pass.x[k == 0 ? 0 : R::n - k];
        const Element e = {z.re + mirrored.re, z.im - mirrored.im, z.im + mirrored.im,
                           mirrored.re - z.re};
        store_element<kFlow>(to + i * columns_on, e);
        if constexpr (kFlow) {
          for (std::uint32_t copy = 1; copy < copies; ++copy) {
            store_shared(to + copy * a.image + i * columns_on, e);
          }
        }
      }
    }
  }
}

// Some columns of a left and of rights of it: spectra, product, inverse, into images of pairs. A
// part has two slots of 2^log_columns columns: one has the left while the other has the first
// right, then both have rights.
template <typename R, bool kFlow, typename Wait>
__device__ __forceinline__ void columns(const GridArguments& a, const BlockPart& part, Wait wait) {
  const int log_cols = a.log_columns;
  const int slot = part.thread / R::threads >> log_cols;
  const int lane = part.thread - ((slot * R::threads) << log_cols);
  // A thread's column and number in it: across columns where images are met, elsewhere along one.
  const int outer_c = lane & ((1 << log_cols) - 1), t = lane >> log_cols;
  const int c = lane / R::threads, u = lane % R::threads;
  Complex* const shared = dynamic_shared<Complex>() + part.index * a.shared_of_part;
  const ThreePass<R> outer(shared + ((slot << log_cols) + outer_c) * a.stride_y);
  const ThreePass<R> inner(shared + ((slot << log_cols) + c) * a.stride_y);
  Complex* const left = shared + (2 << log_cols) * a.stride_y + c * R::n + u;
  const Complex* const tables = a.roots + 2 * kRootTable;
  const Twiddles<R> w(tables, tables + kRootTable, t, u);
  wait();
#pragma unroll 1
  for (std::uint32_t task = part.number; task < a.column_tasks; task += part.count) {
    std::uint32_t group = task;
    std::uint32_t chunk = a.by_groups.split(group);
    const std::uint32_t l = a.by_chunks.split(chunk), begin = chunk * a.chunk;
    const std::uint32_t rest = a.rights_of_left - begin;
    const int count = static_cast<int>(rest < a.chunk ? rest : a.chunk);
    const std::uint32_t pair = l * a.rights_of_left + begin;
    const int column = static_cast<int>(group << log_cols) + outer_c;
    const bool live = column <= a.nx / 2 && t < R::m;
    Element* const of_t = a.images + a.of_column(column) + t * kLayout;
    // Item -1 is the left.
#pragma unroll 1
    for (int first = -1; first < count; first += 2) {
      const int item = first + slot;
      const bool is_left = item < 0, works = slot < 2 && item < count;
      const bool is_right = works && !is_left;
      if (works && live) {
        std::uint32_t number = l;
        if (kFlow) number = l * a.left_copies + chunk;
        if (!is_left) {
          number = pair + item - l * a.rights_back;
          if (kFlow) number = number * a.right_copies + l * a.right_copy_of_left;
          number += a.right_image;
        }
        Element* const from = of_t + number * a.image;
        const int rows = is_left ? a.left_rows : a.right_rows;
        Element e[R::a / 2];
        until_there<kFlow>([&] {
          bool missing = false;
#pragma unroll
          for (int s = 0; s < R::a / 2; ++s) {
            e[s] = {};
            if (t + 2 * R::m * s < rows) e[s] = load_element<kFlow>(from + s * R::m * kLayout);
          }
#pragma unroll
          for (int s = 0; s < R::a / 2; ++s) missing |= is_missing(e[s]);
          return missing;
        });
        Complex v[R::a];
#pragma unroll
        for (int s = 0; s < R::a / 2; ++s) {
          if (kFlow && t + 2 * R::m * s < rows) make_missing(from + s * R::m * kLayout);
          v[2 * s] = {e[s].x, e[s].y};
          v[2 * s + 1] = {e[s].z, e[s].w};
        }
        outer.first_forward(v, w, t);
      }
      part.barrier();
      if (works) inner.second_forward(w, u);
      part.barrier();
      Complex v[R::c];
      if (works && u < R::ab) {
        inner.third_forward(v, u);
        if (is_left) {
#pragma unroll
          for (int k = 0; k < R::c; ++k) left[R::ab * k] = {a.scale * v[k].re, -a.scale * v[k].im};
        }
      }
      if (first < 0) part.barrier();
      if (is_right && u < R::ab) {
#pragma unroll
        for (int k = 0; k < R::c; ++k) v[k] = v[k] * left[R::ab * k];
        inner.third_inverse(v, u);
      }
      part.barrier();
      if (is_right) inner.second_inverse(w, u);
      part.barrier();
      if (is_right && live) {
        Element* const to = of_t + (a.pair_image + pair + item) * a.image;
        Complex result[R::a];
        outer.first_inverse(result, w, t);
#pragma unroll
        for (int s = 0; s < R::a / 2; ++s) {
          const Complex even = result[2 * s], odd = result[2 * s + 1];
          store_element<kFlow>(to + s * R::m * kLayout, {even.re, even.im, odd.re, odd.im});
        }
      }
    }
  }
}

// Images of pairs into outputs: row pairs of which none is in the window are left out.
template <typename R, bool kFlow, typename Wait>
__device__ __forceinline__ void inverse_rows(const GridArguments& a, const BlockPart& part,
                                             Wait wait) {
  const RowTile<R> tile(a, part);
  const ThreePass<R> pass = tile.pass;
  const int t = tile.t;
  const Twiddles<R> w(a.roots, a.roots + kRootTable, t, t);
  // Columns t and ab - t of an image; from column k to k + ab.
  const std::uint32_t of_t = a.of_column(t), of_mirror = a.of_column(R::ab - t);
  const std::uint32_t columns_on = R::ab * a.row_pairs;
  wait();
#pragma unroll 1
  for (std::uint32_t base = 0; base < a.out_items; base += tile.step) {
    std::uint32_t q = base + tile.first;
    const bool inside = q < a.out_items;
    const std::uint32_t pair = a.by_row_pairs.split(q);
    const int y = static_cast<int>(q + a.by_m.quotient(q) * a.m_y);
    const int even_row = from_first(y, a.first_y, a.ny);
    const int odd_row = from_first(y + static_cast<int>(a.m_y), a.first_y, a.ny);
    const bool works = inside && (even_row < a.out_rows || odd_row < a.out_rows);
    Element* const from = a.images + (a.pair_image + pair) * a.image + q * kLayout;
    Element *const direct = from + of_t, *const mirrored = from + of_mirror;
    if (works && t < R::ab) {
      // Frequencies beyond n / 2 are the conjugates of their mirrors.
      Element e[R::c];
      until_there<kFlow>([&] {
        bool missing = false;
#pragma unroll
        for (int k = 0; k < R::c / 2; ++k) e[k] = load_element<kFlow>(direct + k * columns_on);
#pragma unroll
        for (int k = R::c / 2; k < R::c; ++k) {
          e[k] = load_element<kFlow>(mirrored + (R::c - 1 - k) * columns_on);
        }
#pragma unroll
        for (int k = 0; k < R::c; ++k) missing |= is_missing(e[k]);
        return missing;
      });
      Complex v[R::c];
#pragma unroll
      for (int k = 0; k < R::c; ++k) {
        v[k] = k < R::c / 2 ? Complex{e[k].x - e[k].w, e[k].y + e[k].z}
                            : Complex{e[k].x + e[k].w, e[k].z - e[k].y};
      }
      pass.third_inverse(v, t);
    }
    part.barrier();
    if (kFlow && works && t < R::ab) {  // both readers of an element, of one tile, have it
#pragma unroll
      for (int k = 0; k < R::c / 2; ++k) make_missing(direct + k * columns_on);
      if (t == 0) make_missing(direct + R::c / 2 * columns_on);
    }
    if (works) pass.second_inverse(w, t);
    part.barrier();
    if (works && t < R::m) {
      Complex v[R::a];
      pass.first_inverse(v, w, t);
      const int even_cols = even_row < a.out_rows ? a.out_cols : 0;
      const int odd_cols = odd_row < a.out_rows ? a.out_cols : 0;
      float* const out = a.out + pair * static_cast<std::uint32_t>(a.out_rows * a.out_cols);
      float *const even = out + even_row * a.out_cols, *const odd = out + odd_row * a.out_cols;
#pragma unroll
      for (int s = 0; s < R::a; ++s) {
        const int x = from_first(t + R::m * s, a.first_x, a.nx);
        if (x < even_cols) even[x] = v[s].re;
        if (x < odd_cols) odd[x] = v[s].im;
      }
    }
  }
}

}  // namespace xcorr
