// The steps of a call around the library's transforms, and where planes lie in the workspace.
#pragma once

#include <algorithm>
#include <cmath>

#include "algorithms/device/launch.hpp"
#include "algorithms/device/padding.hpp"
#include "algorithms/device/plan.hpp"
#include "algorithms/fft/cufft_normalised/scores.hpp"

namespace xcorr::fft {

// Rounding errors of a sum of a float32 transform of so many points, relative to the norms of both planes: an
// eighth of what docs/design.md allows.
inline double transform_roundoff(double points) {
  return 0x1p-25 * std::log2(points < 2 ? 2 : points);
}

// Places are in bytes of the workspace. Planes and their spectra share a place.
struct NormalisedLayout {
  NormalisedLayout(const Problem& q, Index chunk_bytes)
      : rows(device::smooth_size(device::padded_size(q.left.rows, q.right.rows, q.window.sy))),
        cols(device::smooth_size(device::padded_size(q.left.cols, q.right.cols, q.window.sx))),
        bins(rows * (cols / 2 + 1)),
        pitch(2 * (cols / 2 + 1)),
        matrices(q.lefts + q.rights),
        number(SumList(q.fields).number),
        count(q.fields.masks == Masks::none ? 1 : int{kPlanes}),
        image(std::max(q.left.size(), q.right.size())),
        parts(std::min(device::ceil_div<Index>(bins, kPlaneThreads), kMostMatrixParts)),
        pair_parts(std::min(device::ceil_div<Index>(q.out_size(), kScoreThreads), kMostPairParts)) {
    const Index plane = 2 * bins * Index{sizeof(float)};
    chunk = std::clamp<Index>(chunk_bytes / (number * plane), 1, q.pairs());
    Index at = 0;
    const auto take = [&](Index bytes) {
      const Index first = at;
      at += (bytes + 255) / 256 * 256;
      return first;
    };
    sums = take(matrices * parts * Index{sizeof(MatrixSums)});
    squares = take(matrices * parts * kPlanes * Index{sizeof(double)});
    facts = take(matrices * Index{sizeof(PlaneFacts)});
    most = take(chunk * pair_parts * Index{sizeof(double)});
    planes = take(matrices * count * plane);
    integrals = take(matrices * kPlanes * image * Index{sizeof(double)});
    products = take(chunk * number * plane);
    end = at;
  }

  Index rows, cols, bins, pitch;  // of a transform; scalars of a row
  Index matrices, number;         // number: transforms back of a pair
  int count;                      // planes of a matrix
  Index image;                    // elements of an integral image
  Index parts, pair_parts;
  Index chunk;  // pairs
  Index sums, squares, facts, most, planes, integrals, products, end;
};

// A call. transforms.forward(planes, stream) and .inverse(products, stream) transform in place.
template <typename Transforms>
void correlate_normalised(const NormalisedLayout& at, const Problem& q, const Call& call,
                          void* workspace, Transforms& transforms) {
  char* const base = static_cast<char*>(workspace);
  auto* const sums = reinterpret_cast<MatrixSums*>(base + at.sums);
  auto* const facts = reinterpret_cast<PlaneFacts*>(base + at.facts);
  auto* const planes = reinterpret_cast<float*>(base + at.planes);
  auto* const integrals = reinterpret_cast<double*>(base + at.integrals);
  auto* const products = reinterpret_cast<float*>(base + at.products);
  const auto blocks = [](Index count, Index threads) {
    return static_cast<unsigned>(std::min(device::ceil_div(count, threads), kMostPlaneBlocks));
  };

  const bool masked = q.fields.masks != Masks::none;
  PlaneArguments a{};
  a.of = {{call.lefts<float>(), call.left_mask, q.left},
          {call.rights<float>(), call.right_mask, q.right},
          q.lefts,
          at.matrices};
  a.sums = sums;
  a.parts = at.parts;
  a.centred = q.fields.score.kind == ScoreKind::zncc;
  a.planes = planes;
  a.count = at.count;
  a.rows = at.rows;
  a.pitch = at.pitch;
  a.squares = reinterpret_cast<double*>(base + at.squares);
  a.integrals = integrals;
  a.image = at.image;
  a.images = masked ? int{kPlanes} : int{kMaskPlane};
  const dim3 of_matrices(static_cast<unsigned>(at.parts), device::grid_extent(at.matrices));
  launch(sums_kernel, of_matrices, dim3(kPlaneThreads), 0, call.stream, a.of, sums);
  launch(planes_kernel, of_matrices, dim3(kPlaneThreads), 0, call.stream, a);
  launch(facts_kernel, dim3(blocks(at.matrices, kPlaneThreads)), dim3(kPlaneThreads), 0,
         call.stream, a, at.parts, facts);
  const Index rows = std::max(q.left.rows, q.right.rows),
              cols = std::max(q.left.cols, q.right.cols);
  launch(row_sums_kernel, dim3(blocks(rows, kPlaneWarps), device::grid_extent(at.matrices)),
         dim3(kPlaneThreads), 0, call.stream, a);
  launch(column_sums_kernel,
         dim3(blocks(cols, warp::kSize), static_cast<unsigned>(a.images),
              device::grid_extent(at.matrices)),
         dim3(kPlaneThreads), 0, call.stream, a);
  call.phase("forward");
  transforms.forward(planes, call.stream);

  const double points = static_cast<double>(at.rows * at.cols);
  ScoreArguments s{q,
                   {Pairing(q), q.lefts, 0, 0},
                   q.fields.score,
                   masked,
                   a.of,
                   facts,
                   integrals,
                   at.image,
                   SumList(q.fields),
                   products,
                   at.rows,
                   at.cols,
                   at.pitch,
                   reinterpret_cast<double*>(base + at.most),
                   at.pair_parts,
                   static_cast<double>(q.max_overlap()),
                   transform_roundoff(points),
                   call.outs<float>()};
  for (Index first = 0; first < q.pairs(); first += at.chunk) {
    s.pairs.first = first;
    s.pairs.count = std::min(at.chunk, q.pairs() - first);
    const unsigned pairs = device::grid_extent(s.pairs.count);
    const dim3 of_bins(static_cast<unsigned>(device::ceil_div<Index>(at.bins, kScoreThreads)),
                       pairs);
    const dim3 of_outputs(
        static_cast<unsigned>(device::ceil_div<Index>(q.out_size(), kScoreThreads)), pairs);
    call.phase("hadamard");
    launch(products_kernel, of_bins, dim3(kScoreThreads), 0, call.stream, s.pairs,
           reinterpret_cast<const Bin*>(planes), at.count, s.list, reinterpret_cast<Bin*>(products),
           at.bins, static_cast<float>(1 / points));
    call.phase("inverse");
    transforms.inverse(products, call.stream);
    call.phase("rest");
    if (masked) {
      launch(most_kernel, dim3(static_cast<unsigned>(at.pair_parts), pairs), dim3(kScoreThreads), 0,
             call.stream, s);
    }
    launch(scores_kernel, of_outputs, dim3(kScoreThreads), 0, call.stream, s);
    launch(definition_kernel, of_outputs, dim3(kScoreThreads), 0, call.stream, s);
  }
}

}  // namespace xcorr::fft
