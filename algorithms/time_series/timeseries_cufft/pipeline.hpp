// The steps of a call around the library's transforms, and the layout of the workspace.
#pragma once

#include <algorithm>

#include "algorithms/blocks/workspace.hpp"
#include "algorithms/time_series/overlap_save.hpp"
#include "algorithms/time_series/series_shape.hpp"
#include "algorithms/time_series/timeseries_cufft/segments.hpp"

namespace xcorr::time_series {

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
    launch(fill_rows, row_grid(at.pitch, rows), dim3(Tuning::kRowThreads), 0, call.stream, from,
           rows, points, pitch, to);
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
    launch(multiply_rows, row_grid(at.bins, at.chunk, kTemplateGroups), dim3(Tuning::kRowThreads),
           0, call.stream, as_bins(memory.templates), as_bins(memory.segments),
           as_bins(memory.products), static_cast<int>(at.bins), s.templates, s.channels, at.chunk,
           1.0f / static_cast<float>(points));
    call.phase("inverse");
    transforms.inverse(memory.products, call.stream);
    call.phase("rest");
    launch(store_rows, row_grid(at.segments.valid, at.chunk, kTemplateGroups),
           dim3(Tuning::kRowThreads), 0, call.stream, memory.products, pitch, s.templates, at.chunk,
           static_cast<int>(at.segments.valid), s.shifts - first, s.shifts,
           call.outs<float>() + first);
  }
}

}  // namespace xcorr::time_series
