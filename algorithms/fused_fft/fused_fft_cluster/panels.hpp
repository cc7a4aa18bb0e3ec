// The 2D transform of a real matrix, cut at its two transpositions: phases over rows, over columns,
// and over rows again. The blocks of a cluster share the images (row spectra of a matrix) between
// the phases. Two real rows, second(y) apart, form one complex row (README.md).
//
// An image has ny rows of nx / 2 + second(x) / 2 complex elements; the phase over columns works in
// place. Frequencies 0 .. nx / 2 of a complex row lie in row0, at their columns, and the negative
// ones in row1, at the columns' mirrors. In shared memory the blocks of columns of a row are one
// element further apart than they are long, so that lanes along rows or columns have no bank
// conflicts.
#pragma once

#include "algorithms/blocks/short_transforms.hpp"
#include "algorithms/fused_fft/problem.hpp"

namespace xcorr::fused_fft {

// Threads that work together, a multiple of 16: all threads of a block, or a part of them.
struct Group {
  int thread, count;
};

// Columns of a tile for transforms X along rows, in blocks of `second`; frequency k1 + first * k2
// has number second * k1 + k2. Representatives of (k, -k) are columns 0 .. second / 2 of block 0,
// the first half of the last block (k1 = first / 2), and all columns of the blocks between.
template <typename X>
struct ImageColumns {
  static constexpr int half = X::second / 2;
  // Number of columns with data; complex elements per row.
  static constexpr int live = X::n / 2 + 1, pitch = X::n / 2 + half + 1;
  // The column of the i-th live column, and the column that holds its partner in odd rows.
  static __device__ __forceinline__ int column(int i) { return i <= half ? i : i + half - 1; }
  static __device__ __forceinline__ int mirror(int column) {
    if (column <= half) return half - column;
    return column ^ (column < X::n / 2 ? X::second - 1 : half - 1);
  }
};

// Distance of the blocks of columns of a row in shared memory.
template <typename X>
constexpr int kPanelBlock = X::second + 1;

// Where value (k1, t) of one complex row lies, for a thread that has t of each short transform over
// s (the first and the last pass).
template <typename X>
struct PanelRowByTime {
  __device__ __forceinline__ PanelRowByTime(Complex* row0, Complex* row1, int t)
      : first_(row0 + t),
        second_(row1 + t),
        split_(t < X::second / 2 ? first_ : second_ - X::second / 2) {}
  template <int k1>
  __device__ __forceinline__ Complex& at() const {
    if constexpr (k1 == 0 || 2 * k1 == X::first) return split_[kPanelBlock<X> * k1];
    if constexpr (2 * k1 < X::first) return first_[kPanelBlock<X> * k1];
    return second_[kPanelBlock<X> * (X::first - k1)];
  }

 private:
  Complex *first_, *second_, *split_;
};

// The same for a thread that has all t of one k1: the low and the high half.
template <typename X>
struct PanelRowByFrequency {
  __device__ __forceinline__ PanelRowByFrequency(Complex* row0, Complex* row1, int k1) {
    const bool split = k1 == 0 || 2 * k1 == X::first;
    const int block = kPanelBlock<X> * (2 * k1 > X::first ? X::first - k1 : k1);
    low_ = (2 * k1 > X::first ? row1 : row0) + block;
    high_ = split ? row1 + block - X::second / 2 : low_;
  }
  __device__ __forceinline__ Complex& operator[](int t) const {
    return t < X::second / 2 ? low_[t] : high_[t];
  }

 private:
  Complex *low_, *high_;
};

// Complex elements per row of an image.
template <typename X>
constexpr int kImagePitch = (X::n + X::second) / 2;

// Some rows of one image in shared memory: row0 and row1 of `count` complex rows g.
template <typename X>
struct RowPanel {
  static constexpr int kPitch = (X::first / 2 + 1) * kPanelBlock<X>;
  static constexpr int elements(int count) { return 2 * count * kPitch; }
  __device__ __forceinline__ Complex* row(int g, int part) const {
    return panel + (2 * g + part) * kPitch;
  }
  static __device__ __forceinline__ int at(int column) { return column + column / X::second; }

  // Calls f(g, part, column) for every element, with lanes along rows.
  template <typename F>
  __device__ __forceinline__ void each_element(F f) const {
#pragma unroll 1
    for (int i = group.thread; i < 2 * count * kImagePitch<X>; i += group.count) {
      const int row = i / kImagePitch<X>;
      f(row / 2, row % 2, i - row * kImagePitch<X>);
    }
  }
  // Calls f(g, k1), with lanes along k1.
  template <typename F>
  __device__ __forceinline__ void each_block(F f) const {
#pragma unroll 1
    for (int i = group.thread; i < count * X::first; i += group.count)
      f(i / X::first, i % X::first);
  }
  template <Direction kWay>
  __device__ __forceinline__ void transform_blocks() const {
    each_block([&](int g, int k1) {
      const PanelRowByFrequency<X> slots(row(g, 0), row(g, 1), k1);
      Complex v[X::second];
#pragma unroll
      for (int t = 0; t < X::second; ++t) v[t] = slots[t];
      transform<X::second, kWay>(v);
#pragma unroll
      for (int t = 0; t < X::second; ++t) slots[t] = v[t];
      if (kWay == Direction::forward && k1 == 0) {
        row(g, 1)[X::second / 2] = v[0];
        row(g, 0)[X::second / 2] = v[X::second / 2];
      }
    });
  }

  Complex* panel;
  const Complex* twiddles;
  int count;
  Group group;
};

// The first of the two matrix rows, X::second from each other, of complex row q.
template <typename X>
__device__ __forceinline__ int first_of_pair(int q) {
  return 2 * q - q % X::second;
}

// Transforms complex rows [q, q + count) of a matrix into its image. image(y, column) is the
// address of an element; null if it is not stored.
template <typename X, typename Image>
__device__ __forceinline__ void panel_forward_rows(const RowPanel<X>& panel, const Source& from,
                                                   int q, Image image) {
  const auto load = [&](auto inputs) {
    constexpr int kInputs = decltype(inputs)::value;
    const int t = panel.group.thread % X::second;
#pragma unroll 1
    for (int g = panel.group.thread / X::second; g < panel.count;
         g += panel.group.count / X::second) {
      const int y = first_of_pair<X>(q + g);
      const bool one = y < from.rows, both = y + X::second < from.rows;
      const float* row = from.data + (one ? y * from.cols : 0) + t;
      const float* partner = row + (both ? X::second * from.cols : 0);
      Complex v[X::first];
#pragma unroll
      for (int s = 0; s < kInputs; ++s) {
        const bool inside = t + X::second * s < from.cols;
        v[s].re = inside && one ? row[X::second * s] : 0.0f;
        v[s].im = inside && both ? partner[X::second * s] : 0.0f;
      }
      transform<X::first, Direction::forward, kInputs>(v);
      const PanelRowByTime<X> slots(panel.row(g, 0), panel.row(g, 1), t);
      for_each_constant<X::first>([&](auto k) {
        constexpr int k1 = decltype(k)::value;
        slots.template at<k1>() = k1 == 0 ? v[0] : v[k1] * conj(panel.twiddles[X::second * k1 + t]);
      });
    }
  };
  if (from.cols <= X::n / 2) {
    load(std::integral_constant<int, X::first / 2>{});
  } else {
    load(std::integral_constant<int, X::first>{});
  }
  block::barrier();
  panel.template transform_blocks<Direction::forward>();
  block::barrier();
  panel.each_element([&](int g, int part, int column) {
    const int y = first_of_pair<X>(q + g) + part * X::second;
    if (Complex* to = image(y, column)) *to = panel.row(g, part)[RowPanel<X>::at(column)];
  });
  block::barrier();
}

// Transforms complex rows [q, q + count) of an image into the outputs of a pair.
template <typename X, typename Image>
__device__ __forceinline__ void panel_inverse_rows(const RowPanel<X>& panel, Image image, int q,
                                                   Range rows, Range cols, float* out) {
  panel.each_element([&](int g, int part, int column) {
    const int y = first_of_pair<X>(q + g) + part * X::second;
    if (const Complex* of = image(y, column)) panel.row(g, part)[RowPanel<X>::at(column)] = *of;
  });
  block::barrier();
  panel.template transform_blocks<Direction::inverse>();
  block::barrier();
  const int t = panel.group.thread % X::second;
#pragma unroll 1
  for (int g = panel.group.thread / X::second; g < panel.count;
       g += panel.group.count / X::second) {
    const int y = first_of_pair<X>(q + g);
    const PanelRowByTime<X> slots(panel.row(g, 0), panel.row(g, 1), t);
    Complex v[X::first];
    for_each_constant<X::first>([&](auto k) {
      constexpr int k1 = decltype(k)::value;
      v[k1] = slots.template at<k1>();
      if constexpr (k1 > 0) v[k1] = v[k1] * panel.twiddles[X::second * k1 + t];
    });
    transform<X::first, Direction::inverse>(v);
    store_row(rows, cols, y, t, v, &Complex::re, out, X::second);
    store_row(rows, cols, y + X::second, t, v, &Complex::im, out, X::second);
  }
  block::barrier();
}

// kCols columns of one tile in shared memory, stored row by row, and where they lie in images.
template <typename Y, int kCols>
struct ColumnPanel {
  static constexpr int kElements = Y::n * kCols;

  // Calls f(j) for the j < `of` of this thread, with lanes along columns first.
  template <typename F>
  __device__ __forceinline__ void each(int of, F f) const {
    if (!live) return;
#pragma unroll 1
    for (int j = group.thread / kCols; j < of; j += group.count / kCols) f(j);
  }

  // Reads Z from an image, transforms over s, and stores to the panel.
  __device__ __forceinline__ void split(const Complex* image, int rows) const {
    if (rows <= Y::n / 2) {
      split_of<Y::first / 2>(image, rows);
    } else {
      split_of<Y::first>(image, rows);
    }
  }
  // Calls f(values, offset of the first value in the panel, k1) between the two transforms over t.
  template <typename F>
  __device__ __forceinline__ void middle(F f) const {
    each(Y::first, [&](int k1) {
      Complex* from = mine() + k1 * Y::second * kCols;
      Complex v[Y::second];
#pragma unroll
      for (int t = 0; t < Y::second; ++t) v[t] = from[t * kCols];
      transform<Y::second, Direction::forward>(v);
      f(v, static_cast<int>(from - panel), k1);
#pragma unroll
      for (int t = 0; t < Y::second; ++t) from[t * kCols] = v[t];
    });
  }
  // Transforms the panel back over k1 and stores W to an image.
  __device__ __forceinline__ void join(Complex* image) const {
    each(Y::second, [&](int t) {
      Complex v[Y::first];
#pragma unroll
      for (int k = 0; k < Y::first; ++k) {
        v[k] = mine()[(k * Y::second + t) * kCols];
        if (k > 0) v[k] = v[k] * twiddles[Y::second * k + t];
      }
      transform<Y::first, Direction::inverse>(v);
      Complex *even = image + t * kCols + column, *odd = image + t * kCols + mirror;
#pragma unroll
      for (int s = 0; s < Y::first; s += 2) {
        const Complex a = v[s], b = v[s + 1];
        even[s * Y::second * kCols] = {a.re - b.im, a.im + b.re};
        odd[(s + 1) * Y::second * kCols] = {a.re + b.im, b.re - a.im};
      }
    });
  }
  template <int kInputs>
  __device__ __forceinline__ void split_of(const Complex* image, int rows) const {
    each(Y::second, [&](int t) {
      const Complex *even = image + t * kCols + column, *odd = image + t * kCols + mirror;
      Complex v[Y::first];
#pragma unroll
      for (int s = 0; s < kInputs; s += 2) {
        Complex a{0.0f, 0.0f}, b = a;
        if (t + Y::second * s < rows) {
          a = even[s * Y::second * kCols];
          b = conj(odd[(s + 1) * Y::second * kCols]);
        }
        v[s] = a + b;
        v[s + 1] = quarter_turn<Direction::forward>(a - b);
      }
      transform<Y::first, Direction::forward, kInputs>(v);
#pragma unroll
      for (int k = 0; k < Y::first; ++k) {
        mine()[(k * Y::second + t) * kCols] =
            k == 0 ? v[0] : v[k] * conj(twiddles[Y::second * k + t]);
      }
    });
  }
  __device__ __forceinline__ Complex* mine() const { return panel + group.thread % kCols; }

  Complex* panel;
  const Complex* twiddles;
  bool live;  // whether this thread has a column: `column` in even rows, `mirror` in odd rows
  int column, mirror;
  Group group;
};

}  // namespace xcorr::fused_fft
