// The kernels around the library's transforms: they fill rows with segments and templates, multiply
// spectra, and store outputs. A row is a segment or a template of `pitch` scalars, transformed in
// place: n scalars and two of padding, or n / 2 + 1 complex values.
#pragma once

#include "algorithms/blocks/plan.hpp"
#include "algorithms/time_series/tuning.hpp"

namespace xcorr::time_series {

// Rows of samples in memory: `per_source` rows begin `step` samples apart in each source of `count`
// samples; sources are `source_pitch` apart.
struct RowSource {
  const float* data;
  Index source_pitch, count;
  Index per_source, step;
};

// to[row][x] = sample x of the row, 0 beyond the end of the source and beyond n.
static __global__ void __launch_bounds__(Tuning::kRowThreads)
    fill_rows(RowSource from, Index rows, int n, int pitch, float* to) {
  const int x = static_cast<int>(blockIdx.x) * Tuning::kRowThreads + static_cast<int>(threadIdx.x);
  if (x >= pitch) return;
  for (Index row = blockIdx.y; row < rows; row += gridDim.y) {
    const Index source = row / from.per_source, at = (row - source * from.per_source) * from.step;
    const bool exists = x < n && at + x < from.count;
    to[row * pitch + x] = exists ? from.data[source * from.source_pitch + at + x] : 0.0f;
  }
}

struct alignas(8) Bin {
  float re, im;
};

// products[i][k] = scale * sum over c of conj(templates[i][c]) * segments[c][k], bin by bin.
static __global__ void __launch_bounds__(Tuning::kRowThreads)
    multiply_rows(const Bin* templates, const Bin* segments, Bin* products, int bins,
                  Index template_count, Index channels, Index segment_count, float scale) {
  const int bin =
      static_cast<int>(blockIdx.x) * Tuning::kRowThreads + static_cast<int>(threadIdx.x);
  if (bin >= bins) return;
  for (Index k = blockIdx.y; k < segment_count; k += gridDim.y) {
    for (Index i = blockIdx.z; i < template_count; i += gridDim.z) {
      Bin sum{0.0f, 0.0f};
      for (Index c = 0; c < channels; ++c) {
        const Bin l = templates[(i * channels + c) * bins + bin];
        const Bin r = segments[(c * segment_count + k) * bins + bin];
        sum.re += l.re * r.re + l.im * r.im;
        sum.im += l.re * r.im - l.im * r.re;
      }
      products[(i * segment_count + k) * bins + bin] = {scale * sum.re, scale * sum.im};
    }
  }
}

// Copies the first `valid` scalars of row (i, k) to the outputs k * valid + x of template i, up to
// `count` outputs. Templates are `out_pitch` outputs apart.
static __global__ void __launch_bounds__(Tuning::kRowThreads)
    store_rows(const float* rows, int pitch, Index template_count, Index segment_count, int valid,
               Index count, Index out_pitch, float* out) {
  const int x = static_cast<int>(blockIdx.x) * Tuning::kRowThreads + static_cast<int>(threadIdx.x);
  if (x >= valid) return;
  for (Index k = blockIdx.y; k < segment_count; k += gridDim.y) {
    const Index at = k * valid + x;
    if (at >= count) return;
    for (Index i = blockIdx.z; i < template_count; i += gridDim.z) {
      out[i * out_pitch + at] = rows[(i * segment_count + k) * pitch + x];
    }
  }
}

// A grid for rows of `length` elements: x along the row, y and z over rows.
inline dim3 row_grid(Index length, Index along_y, Index along_z = 1) {
  return dim3(static_cast<unsigned>(ceil_div<Index>(length, Tuning::kRowThreads)),
              grid_extent(along_y), grid_extent(along_z));
}

}  // namespace xcorr::time_series
