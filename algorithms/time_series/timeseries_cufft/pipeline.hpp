// The steps of a call around the library's transforms, and the layout of the workspace. Kernels fill
// rows with segments and templates, multiply spectra, and store outputs. A row is a segment or a
// template of `pitch` scalars, transformed in place: n scalars and two of padding, or n / 2 + 1
// complex values.
#pragma once

#include <algorithm>

#include "algorithms/blocks/plan.hpp"
#include "algorithms/blocks/workspace.hpp"
#include "algorithms/time_series/overlap_save.hpp"
#include "algorithms/time_series/series_shape.hpp"
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
static __global__ void __launch_bounds__(SeriesTuning::kRowThreads)
    fill_rows(RowSource from, Index rows, int n, int pitch, float* to) {
  const int x =
      static_cast<int>(blockIdx.x) * SeriesTuning::kRowThreads + static_cast<int>(threadIdx.x);
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
static __global__ void __launch_bounds__(SeriesTuning::kRowThreads)
    multiply_rows(const Bin* templates, const Bin* segments, Bin* products, int bins,
                  Index template_count, Index channels, Index segment_count, float scale) {
  const int bin =
      static_cast<int>(blockIdx.x) * SeriesTuning::kRowThreads + static_cast<int>(threadIdx.x);
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
static __global__ void __launch_bounds__(SeriesTuning::kRowThreads)
    store_rows(const float* rows, int pitch, Index template_count, Index segment_count, int valid,
               Index count, Index out_pitch, float* out) {
  const int x =
      static_cast<int>(blockIdx.x) * SeriesTuning::kRowThreads + static_cast<int>(threadIdx.x);
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
  return dim3(static_cast<unsigned>(ceil_div<Index>(length, SeriesTuning::kRowThreads)),
              grid_extent(along_y), grid_extent(along_z));
}

// Rows of a chunk of segments.
struct ChunkLayout {
  ChunkLayout(const Problem& problem, Index points, Index chunk_bytes)
      : series(problem),
        segments(series, points),
        pitch(points + 2),
        bins(points / 2 + 1),
        template_rows(series.templates * series.channels) {
    const Index row = pitch * Index{sizeof(float)};
    chunk = std::clamp<Index>(chunk_bytes / ((series.templates + series.channels) * row), 1,
                              segments.count);
    segment_rows = series.channels * chunk;
    product_rows = series.templates * chunk;
  }

  SeriesShape series;
  Segments segments;
  Index pitch, bins;
  Index template_rows, segment_rows, product_rows;
  Index chunk;  // segments
};

// `work_bytes` is the work memory of the library's transforms.
struct ChunkMemory {
  ChunkMemory(const ChunkLayout& at, std::size_t work_bytes, Workspace workspace)
      : templates(workspace.take<float>(at.template_rows * at.pitch)),
        segments(workspace.take<float>(at.segment_rows * at.pitch)),
        products(workspace.take<float>(at.product_rows * at.pitch)),
        work(workspace.take<char>(static_cast<Index>(work_bytes))),
        bytes(workspace.bytes()) {}
  float *templates, *segments, *products;
  char* work;
  std::size_t bytes;
};

// Computes a call. transforms.of_templates(rows, stream), .forward and .inverse transform the rows
// of the layout in place.
template <typename Transforms>
void correlate_in_chunks(const ChunkLayout& at, const ChunkMemory& memory, const Call& call,
                         Transforms& transforms) {
  constexpr Index kTemplateGroups = 4;  // blocks that share the templates of a segment
  const SeriesShape& s = at.series;
  const int points = static_cast<int>(at.segments.points), pitch = static_cast<int>(at.pitch);
  const auto fill = [&](const RowSource& from, Index rows, float* to) {
    launch(fill_rows, row_grid(at.pitch, rows), dim3(SeriesTuning::kRowThreads), 0, call.stream,
           from, rows, points, pitch, to);
  };
  const auto as_bins = [](float* rows) { return reinterpret_cast<Bin*>(rows); };

  fill({call.lefts<float>(), s.length, s.length, 1, 0}, at.template_rows, memory.templates);
  call.phase("forward");
  transforms.of_templates(memory.templates, call.stream);
  for (Index k = 0; k < at.segments.count; k += at.chunk) {
    const Index first = k * at.segments.valid;
    call.phase("rest");
    fill({call.rights<float>() + s.first + first, s.pitch, s.samples() - first, at.chunk,
          at.segments.valid},
         at.segment_rows, memory.segments);
    call.phase("forward");
    transforms.forward(memory.segments, call.stream);
    call.phase("hadamard");
    launch(multiply_rows, row_grid(at.bins, at.chunk, kTemplateGroups),
           dim3(SeriesTuning::kRowThreads), 0, call.stream, as_bins(memory.templates),
           as_bins(memory.segments), as_bins(memory.products), static_cast<int>(at.bins),
           s.templates, s.channels, at.chunk, 1.0f / static_cast<float>(points));
    call.phase("inverse");
    transforms.inverse(memory.products, call.stream);
    call.phase("rest");
    launch(store_rows, row_grid(at.segments.valid, at.chunk, kTemplateGroups),
           dim3(SeriesTuning::kRowThreads), 0, call.stream, memory.products, pitch, s.templates,
           at.chunk, static_cast<int>(at.segments.valid), s.shifts - first, s.shifts,
           call.outs<float>() + first);
  }
}

}  // namespace xcorr::time_series
