// The steps of a call around the library's transforms, and where rows lie in the workspace.
#pragma once

#include <algorithm>

#include "algorithms/time_series/overlap_save.hpp"
#include "algorithms/time_series/series_shape.hpp"
#include "algorithms/time_series/timeseries_cufft/segments.hpp"

namespace xcorr::time_series {

// Rows of a chunk of segments; places in bytes.
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
    const auto after = [row](Index from, Index rows) {
      return (from + rows * row + 255) / 256 * 256;
    };
    segment_rows = series.channels * chunk;
    product_rows = series.templates * chunk;
    segment_bytes = after(0, template_rows);
    product_bytes = after(segment_bytes, segment_rows);
    end_bytes = after(product_bytes, product_rows);
  }

  SeriesShape series;
  Segments segments;
  Index pitch, bins;
  Index template_rows, segment_rows, product_rows;
  Index chunk;  // segments
  Index segment_bytes, product_bytes, end_bytes;
};

// A call. transforms.of_templates(rows, stream), .forward and .inverse transform the rows of the
// layout in place.
template <typename Transforms>
void correlate_in_chunks(const ChunkLayout& at, const Call& call, void* workspace,
                         Transforms& transforms) {
  constexpr Index kTemplateGroups = 4;  // blocks that share the templates of a segment
  const SeriesShape& s = at.series;
  const int points = static_cast<int>(at.segments.points), pitch = static_cast<int>(at.pitch);
  char* const base = static_cast<char*>(workspace);
  auto* const templates = reinterpret_cast<float*>(base);
  auto* const segments = reinterpret_cast<float*>(base + at.segment_bytes);
  auto* const products = reinterpret_cast<float*>(base + at.product_bytes);
  const auto fill = [&](const RowSource& from, Index rows, float* to) {
    launch(fill_rows, row_grid(at.pitch, rows), dim3(kRowThreads), 0, call.stream, from, rows,
           points, pitch, to);
  };
  const auto as_bins = [](float* rows) { return reinterpret_cast<Bin*>(rows); };

  fill({call.lefts<float>(), s.length, s.length, 1, 0}, at.template_rows, templates);
  call.phase("forward");
  transforms.of_templates(templates, call.stream);
  for (Index k = 0; k < at.segments.count; k += at.chunk) {
    const Index first = k * at.segments.valid;
    call.phase("rest");
    fill({call.rights<float>() + s.first + first, s.pitch, s.samples() - first, at.chunk,
          at.segments.valid},
         at.segment_rows, segments);
    call.phase("forward");
    transforms.forward(segments, call.stream);
    call.phase("hadamard");
    launch(multiply_rows, row_grid(at.bins, at.chunk, kTemplateGroups), dim3(kRowThreads), 0,
           call.stream, as_bins(templates), as_bins(segments), as_bins(products),
           static_cast<int>(at.bins), s.templates, s.channels, at.chunk,
           1.0f / static_cast<float>(points));
    call.phase("inverse");
    transforms.inverse(products, call.stream);
    call.phase("rest");
    launch(store_rows, row_grid(at.segments.valid, at.chunk, kTemplateGroups), dim3(kRowThreads), 0,
           call.stream, products, pitch, s.templates, at.chunk, static_cast<int>(at.segments.valid),
           s.shifts - first, s.shifts, call.outs<float>() + first);
  }
}

}  // namespace xcorr::time_series
