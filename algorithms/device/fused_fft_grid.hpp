// A correlation in three phases whose images lie in global memory and whose transforms are those of
// three_pass_fft.hpp: rows, columns with the product (fused_fft_grid_columns.hpp), rows. As in
// fused_fft_tile.hpp two rows of a real matrix are one complex row; here the row phase takes their
// spectra apart, and an element of an image is one frequency of both rows, 16 bytes.
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
  bool short_rows, short_columns;            // no input has more than half of nx or ny
  float scale;
  std::uint32_t lefts, rights_of_left, rights_back;
  int log_columns;      // of a task over columns
  std::uint32_t chunk;  // rights of a task
  Divider by_pairs_with_data, by_row_pairs, by_m, by_groups, by_lefts;
  std::uint32_t row_items, column_tasks, out_items;
  // Threads of a part; complex elements of shared memory, of a part and of a transform.
  int log_threads, shared_of_part, stride_x, stride_y;
  GridBarrier barrier;
};

// The position of i, counted from `first` on around a circle of n.
__device__ __forceinline__ int from_first(int i, int first, int n) {
  const auto ahead = static_cast<unsigned>(i - first), around = ahead + static_cast<unsigned>(n);
  return static_cast<int>(ahead < around ? ahead : around);
}

// A row of outputs whose address is not computed anew for each of them, as the compiler would.
struct RowStore {
  __device__ __forceinline__ explicit RowStore(float* row)
      : bits(opaque(reinterpret_cast<std::int64_t>(row))) {}
  __device__ __forceinline__ void store(int x, float value) const {
    float* const to = reinterpret_cast<float*>(bits) + x;
#ifdef XCORR_EMULATE
    *to = value;
#else
    asm volatile("st.global.f32 [%0], %1;" ::"l"(to), "f"(value) : "memory");
#endif
  }
  std::int64_t bits;
};

// The transforms over rows of a part of a block, R::threads threads each: items of all parts are
// dealt out so that every block has its share before any has two. Tiles go on apart.
template <typename R>
struct RowTile {
  __device__ __forceinline__ RowTile(const GridArguments& a, const BlockPart& whole)
      : part(whole),
        t(part.thread % R::threads),
        first(static_cast<std::uint32_t>(part.thread / R::threads) * part.count + part.number),
        step(static_cast<std::uint32_t>(part.threads / R::threads) * part.count),
        pass(dynamic_shared<Complex>() + part.index * a.shared_of_part +
             part.thread / R::threads * a.stride_x) {}
  // All threads of the tile.
  __device__ __forceinline__ void barrier() const { part.barrier_of(R::threads); }

  const BlockPart& part;
  int t;
  std::uint32_t first, step;
  ThreePass<R> pass;
};

// What a thread has of a row pair: values from t on, m apart, and where their spectrum goes.
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

// Row pairs with data of all lefts and rights into images, when the launch before has ended. The next
// row pair is on its way while one is transformed.
template <typename R, bool kFlow>
__device__ __forceinline__ void forward_rows(const GridArguments& a, const BlockPart& part) {
  const RowTile<R> tile(a, part);
  const ThreePass<R> pass = tile.pass;
  const int t = tile.t;
  const Twiddles<R> w(a.roots, a.roots + kRootTable, t, t);
  // Element (row pair 0, column t) of an image; from column k to k + R::threads.
  const std::uint32_t of_t = a.of_column(t), columns_on = R::threads * a.row_pairs;
  wait_for_previous();
  let_next_start();
  RowPair<R> item(a, tile.first, t, kFlow);
#pragma unroll 1
  for (std::uint32_t base = 0; base < a.row_items; base += tile.step) {
    if (base > 0) tile.barrier();
    const bool works = item.works;
    const std::uint32_t copies = item.copies, image = item.to + of_t;
    if (works && t < R::m) pass.first_forward(item.v, w, t, a.short_rows);
    if (base + tile.step < a.row_items) {
      item = RowPair<R>(a, base + tile.step + tile.first, t, kFlow);
    }
    tile.barrier();
    if (works) pass.second_forward(w, t);
    tile.barrier();
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
    tile.barrier();
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
            store_shared(to + copy * a.image + i * columns_on, e);
          }
        }
      }
    }
  }
}

// Where a row pair of an image of a pair comes from and goes.
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

// Row pairs of all pairs into outputs. With barriers, the next row pair is on its way while one is
// transformed.
template <typename R, bool kFlow, typename Wait>
__device__ __forceinline__ void inverse_rows(const GridArguments& a, const BlockPart& part,
                                             Wait wait) {
  const RowTile<R> tile(a, part);
  const ThreePass<R> pass = tile.pass;
  const int t = tile.t;
  const Twiddles<R> w(a.roots, a.roots + kRootTable, t, t);
  // Columns t and ab - t of an image, of each turn; from column k to k + ab.
  std::uint32_t of_t[R::turns], of_mirror[R::turns];
#pragma unroll
  for (int i = 0; i < R::turns; ++i) {
    of_t[i] = a.of_column(t + i * R::threads);
    of_mirror[i] = a.of_column(R::ab - t - i * R::threads);
  }
  const std::uint32_t columns_on = R::ab * a.row_pairs;
  OutPair<R> item(a, tile.first);
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
  for (std::uint32_t base = 0; base < a.out_items; base += tile.step) {
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
    if (base + tile.step < a.out_items) {
      item = OutPair<R>(a, base + tile.step + tile.first);
      if (!kFlow && item.works) load();
    }
    tile.barrier();
    if (kFlow && works) {  // both readers of an element, of one tile, have it
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
    tile.barrier();
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

}  // namespace xcorr
