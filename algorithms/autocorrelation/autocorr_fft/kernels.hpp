// The three kernels of a call: rows forward, columns, rows back. A block has all of its transforms
// in shared memory. Arguments that the previous kernel writes are not __restrict__: a kernel may
// start before they are written, and loads through __restrict__ may come from a cache that does not
// see writes.
#pragma once

#include "algorithms/autocorrelation/autocorr_fft/passes.hpp"
#include "algorithms/autocorrelation/autocorr_fft/tuning.hpp"
#include "algorithms/autocorrelation/mirrored_rows.hpp"
#include "algorithms/blocks/padding.hpp"
#include "algorithms/blocks/plan.hpp"

namespace xcorr::autocorrelation {

// Launch parameters of a problem. A tile is `columns` neighbouring columns of the half spectrum;
// the spectra of a tile are contiguous, row after row, since one block reads them.
struct FftTasks {
  FftTasks(const Problem& q, Lengths lengths, int columns_of_tile)
      : window_rows(q),
        x(choose_passes(device::padded_size(q.left.cols, q.left.cols, q.window.sx), lengths)),
        y(choose_passes(device::padded_size(q.left.rows, q.left.rows, q.window.sy), lengths)),
        rows(static_cast<int>(q.left.rows)),
        cols(static_cast<int>(q.left.cols)),
        row_pairs(ceil_div(rows, 2)),
        columns(columns_of_tile),
        column_bits(columns / 2),
        bins(x.length / 2 + 1),
        tiles(ceil_div(bins, columns)),
        first_sx(static_cast<int>(q.window.sx.first)),
        last_sx(static_cast<int>(q.window.sx.last)),
        out_row_pairs(ceil_div(window_rows.computed(), 2)),
        image_size(q.left.size()),
        out_size(q.out_size()),
        spectrum_size(Index{tiles} * row_pairs * 2 * columns),
        products_size(Index{window_rows.computed()} * tiles * columns),
        scale(static_cast<float>(1.0 / (static_cast<double>(x.length) * y.length))) {}

  int out_cols() const { return last_sx - first_sx + 1; }
  std::size_t row_shared() const {
    return 2 * static_cast<std::size_t>(x.elements) * sizeof(Complex);
  }
  std::size_t column_shared() const {
    return 2 * static_cast<std::size_t>(y.elements) * static_cast<std::size_t>(columns) *
           sizeof(Complex);
  }

  MirroredRows window_rows;
  Passes x, y;
  int rows, cols, row_pairs;
  int columns, column_bits;  // 2 or 4: 1 or 2 bits
  int bins, tiles;
  int first_sx, last_sx, out_row_pairs;
  Index image_size, out_size;          // scalars
  Index spectrum_size, products_size;  // complex values
  float scale;
};

// (z + conj(w)) / 2 and (z - conj(w)) / 2i. With z = a + i b at k and w the value at -k, these are
// a and b at k, if the values of a and b at -k are conjugates of those at k.
__device__ __forceinline__ Complex part_of_pair(Complex z, Complex w, bool second) {
  const Complex one = second ? Complex{z.im, -z.re} : z;
  const Complex other = second ? Complex{w.im, w.re} : conj(w);
  return {0.5f * (one.re + other.re), 0.5f * (one.im + other.im)};
}

// A block transforms two rows of an image, as real and imaginary part of one transform, and stores
// their half spectra.
static __global__ void __launch_bounds__(AutocorrFftTuning::kMostRowThreads,
                                         AutocorrFftTuning::kForwardBlocks)
    autocorr_fft_rows(FftTasks q, const Complex* __restrict__ roots,
                      const float* __restrict__ images, Complex* __restrict__ spectra) {
  wait_for_previous();
  let_next_start();
  const auto image = static_cast<int>(blockIdx.x) / q.row_pairs;
  const int pair = static_cast<int>(blockIdx.x) - image * q.row_pairs;
  const float* const first = images + image * q.image_size + Index{2 * pair} * q.cols;
  const bool has_second = 2 * pair + 1 < q.rows;
  Complex* const shared = dynamic_shared<Complex>();
  Buffers buffers{shared + q.x.elements, shared};
  run_pass<1>(
      q.x.pass[0], roots,
      [&](int x, int /*column*/) {
        const bool inside = x < q.cols;
        return Complex{inside ? first[x] : 0.0f, inside && has_second ? first[q.cols + x] : 0.0f};
      },
      [&](int x, int /*column*/, Complex value) { buffers.to[x] = value; });
  buffers.turn();
  run_passes<1>(q.x, 1, q.x.count, roots, buffers);
  Complex* const to =
      spectra + image * q.spectrum_size + 2 * pair * q.columns;  // both rows are contiguous
  const int tile_size = 2 * q.row_pairs * q.columns;
  for (int bin = static_cast<int>(threadIdx.x); bin < q.tiles * q.columns;
       bin += static_cast<int>(blockDim.x)) {
    Complex values[2] = {};
    if (bin < q.bins) {
      const Complex z = buffers.from[bin];
      const Complex w = buffers.from[bin == 0 ? 0 : q.x.length - bin];
      values[0] = part_of_pair(z, w, false);
      values[1] = part_of_pair(z, w, true);
    }
    Complex* const at = to + (bin >> q.column_bits) * tile_size + (bin & (q.columns - 1));
    at[0] = values[0];
    at[q.columns] = values[1];
  }
}

// A block processes the columns of a tile: forward transform, squared magnitudes, inverse
// transform. It writes the computed rows of shifts. A squared magnitude is real, so that two
// columns are transformed back as one complex column.
template <int kColumns>
__global__ void __launch_bounds__(AutocorrFftTuning::kColumnBound)
    autocorr_fft_columns(FftTasks q, const Complex* __restrict__ roots, const Complex* spectra,
                         Complex* __restrict__ products) {
  constexpr int kPairs = kColumns / 2;
  wait_for_previous();
  let_next_start();
  const auto image = static_cast<int>(blockIdx.x) / q.tiles;
  const int tile = static_cast<int>(blockIdx.x) - image * q.tiles;
  const Complex* const mine =
      spectra + image * q.spectrum_size + Index{tile} * q.row_pairs * 2 * kColumns;
  Complex* const shared = dynamic_shared<Complex>();
  Buffers buffers{shared + q.y.elements * kColumns, shared};
  const int end = q.y.count - 1, height = 2 * q.row_pairs;
  run_pass<kColumns>(
      q.y.pass[0], roots,
      [&](int y, int column) {
        return y < height ? mine[y * kColumns + column] : Complex{0.0f, 0.0f};
      },
      [&](int y, int column, Complex value) { buffers.to[y * kColumns + column] = value; });
  buffers.turn();
  run_passes<kColumns>(q.y, 1, end, roots, buffers);
  // Columns 2 h and 2 h + 1 become the parts of complex column h.
  float* const squares = reinterpret_cast<float*>(buffers.to);
  run_pass<kColumns>(
      q.y.pass[end], roots, [&](int y, int column) { return buffers.from[y * kColumns + column]; },
      [&](int y, int column, Complex value) {
        squares[y * kColumns + column] = q.scale * (value.re * value.re + value.im * value.im);
      });
  buffers.turn();
  // A forward transform yields at position k the value of the inverse transform at -k.
  run_passes<kPairs>(q.y, 0, q.y.count, roots, buffers);
  const int pitch = q.tiles * kColumns;
  Complex* const to = products + image * q.products_size + tile * kColumns;
  for (int i = static_cast<int>(threadIdx.x); i < q.window_rows.computed() * kColumns;
       i += static_cast<int>(blockDim.x)) {
    const int column = i % kColumns, row = i / kColumns;
    const auto sy = static_cast<int>(q.window_rows.sy(row));
    const int here = sy < 0 ? sy + q.y.length : sy, opposite = sy > 0 ? q.y.length - sy : -sy;
    to[Index{row} * pitch + column] =
        part_of_pair(buffers.from[opposite * kPairs + column / 2],
                     buffers.from[here * kPairs + column / 2], column % 2 != 0);
  }
}

// A block transforms two rows of shifts back, as real and imaginary part of one transform, and
// stores the output.
static __global__ void __launch_bounds__(AutocorrFftTuning::kMostRowThreads,
                                         AutocorrFftTuning::kInverseBlocks)
    autocorr_fft_rows_back(FftTasks q, const Complex* __restrict__ roots, const Complex* products,
                           float* __restrict__ out) {
  wait_for_previous();
  const auto image = static_cast<int>(blockIdx.x) / q.out_row_pairs;
  const int row = 2 * (static_cast<int>(blockIdx.x) - image * q.out_row_pairs);
  const int pitch = q.tiles * q.columns;
  const Complex* const first = products + image * q.products_size + Index{row} * pitch;
  const bool has_second = row + 1 < q.window_rows.computed();
  Complex* const shared = dynamic_shared<Complex>();
  Buffers buffers{shared + q.x.elements, shared};
  const int n = q.x.length, end = q.x.count - 1;
  run_pass<1>(
      q.x.pass[0], roots,
      [&](int k, int /*column*/) {
        const bool conjugate = k >= q.bins;
        const int bin = conjugate ? n - k : k;
        Complex a = first[bin], b = has_second ? first[pitch + bin] : Complex{0.0f, 0.0f};
        if (conjugate) {
          a.im = -a.im;
          b.im = -b.im;
        } else if (bin == 0 || 2 * bin == n) {
          a.im = b.im = 0.0f;  // up to rounding, which must not reach the other row
        }
        return Complex{a.re - b.im, a.im + b.re};
      },
      [&](int k, int /*column*/, Complex value) { buffers.to[k] = value; });
  buffers.turn();
  run_passes<1>(q.x, 1, end, roots, buffers);
  const int cols = q.last_sx - q.first_sx + 1;
  float* const of_image = out + image * q.out_size;
  run_pass<1>(
      q.x.pass[end], roots, [&](int k, int /*column*/) { return buffers.from[k]; },
      [&](int k, int /*column*/, Complex value) {
        const int shift = k == 0 ? 0 : n - k;  // as in autocorr_fft_columns
        const int col = (shift <= q.last_sx ? shift : shift - n) - q.first_sx;
        if (col < 0 || col >= cols) return;
        const auto store = [&](int computed, float output) {
          of_image[Index{q.window_rows.row(computed)} * cols + col] = output;
          if (const int mirror = q.window_rows.mirror(computed); mirror >= 0) {
            of_image[Index{mirror + 1} * cols - 1 - col] = output;
          }
        };
        store(row, value.re);
        if (has_second) store(row + 1, value.im);
      });
}

}  // namespace xcorr::autocorrelation
