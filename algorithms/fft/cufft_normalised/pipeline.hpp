// The steps of a call around the library's transforms, and where planes lie in the workspace.
#pragma once

#include <algorithm>
#include <cmath>

#include "algorithms/blocks/padding.hpp"
#include "algorithms/blocks/plan.hpp"
#include "algorithms/blocks/workspace.hpp"
#include "algorithms/device/launch.hpp"
#include "algorithms/fft/chunks.hpp"
#include "algorithms/fft/cufft_normalised/columns.hpp"
#include "algorithms/fft/cufft_normalised/definition.hpp"
#include "algorithms/fft/cufft_normalised/largest_counts.hpp"
#include "algorithms/fft/cufft_normalised/tuning.hpp"

namespace xcorr::fft {

// Rounding error of a sum from a float32 transform of `points` points, relative to the norms of
// both planes: an eighth of what docs/design.md allows.
inline double transform_roundoff(double points) {
  return 0x1p-25 * std::log2(points < 2 ? 2 : points);
}

// Calls use(SumList<...>{}) for the masks and the score of a problem.
template <typename Use>
auto with_sums(const Fields& fields, Use&& use) {
  const bool centred = fields.score.kind == ScoreKind::zncc;
  const auto of = [&]<Masks kMasks>() {
    return centred ? use(SumList<kMasks, true>{}) : use(SumList<kMasks, false>{});
  };
  switch (fields.masks) {
    case Masks::left:
      return of.template operator()<Masks::left>();
    case Masks::right:
      return of.template operator()<Masks::right>();
    case Masks::both:
      return of.template operator()<Masks::both>();
    default:
      return of.template operator()<Masks::none>();
  }
}

// Blocks that keep a GPU busy while sums of parts of matrices are computed.
constexpr Index kEnoughParts = small_if_emulated(1056, 4);

struct NormalisedLayout {
  NormalisedLayout(const Problem& problem, Index chunk_bytes)
      : q(problem),
        rows(cufft_size(device::padded_size(q.left.rows, q.right.rows, q.window.sy))),
        cols(std::max<Index>(
            2, cufft_size(device::padded_size(q.left.cols, q.right.cols, q.window.sx)))),
        padded_rows(std::max(q.left.rows, q.right.rows)),
        matrices(q.lefts + q.rights) {
    const Index own =
        column_length(device::padded_size(q.left.rows, q.right.rows, q.window.sy), rows);
    own_columns = own > 0;
    if (own_columns) rows = own;
    Index number = 0, pairs_of_slots = 0, slots_of_pairs = 0, images = 0;
    with_sums(problem.fields, [&](auto sums) {
      using S = decltype(sums);
      number = S::kNumber;
      pairs_of_slots = S::kPairs;
      slots_of_pairs = S::kSlots;
      planes_of_matrix = S::kPlanes;
      images = S::kImages;
      return 0;
    });
    gap = q.lefts * planes_of_matrix % 2;
    slots = device::ceil_div<Index>(matrices * planes_of_matrix + gap, 2);
    // All rows of products, or only those of the window if these are contiguous.
    first_row = q.window.sy.first >= 0 ? q.window.sy.first : 0;
    window_rows = q.window.sy.first >= 0 ? q.out_rows() : rows;
    // The transforms of columns.hpp need no rows of padding, and store only the rows of the window.
    const Index row_bytes = cols * Index{sizeof(Bin)}, slot_bytes = rows * row_bytes;
    const Index product_bytes = own_columns ? window_rows * row_bytes : slot_bytes;
    const Index groups = std::max<Index>(1, chunk_bytes / (slots_of_pairs * product_bytes));
    chunk = std::min(groups * pairs_of_slots, q.pairs());
    product_slots = device::ceil_div(chunk, pairs_of_slots) * slots_of_pairs;

    // Each part ends with sums over the block, which cost as much as about ten elements per thread.
    const Index elements = std::max(q.left.size(), q.right.size());
    parts = std::clamp<Index>(kEnoughParts / matrices,
                              device::ceil_div<Index>(elements, 16 * kPlaneThreads),
                              device::ceil_div<Index>(elements, 4 * kPlaneThreads));
    parts = std::min(parts, kMostMatrixParts);
    owner_parts = std::min(device::ceil_div<Index>(q.out_size(), kScoreThreads), kMostOwnerParts);
    // Bands short enough to give blocks for a whole GPU, but with at least one row per warp.
    band_rows = std::clamp<Index>(padded_rows * matrices / 264 / kPlaneWarps, 1,
                                  kMostBandRows / kPlaneWarps) *
                kPlaneWarps;
    // Longer bands for long matrices, since a block reads the sums of all bands above it.
    if (padded_rows > 16 * band_rows) {
      band_rows = std::min<Index>(
          kMostBandRows, device::ceil_div<Index>(padded_rows, 16 * kPlaneWarps) * kPlaneWarps);
    }
    bands = device::ceil_div(padded_rows, band_rows);
    column_pitch = std::max(q.left.cols, q.right.cols);
    const Index owners = std::max({q.fields.masks == Masks::both ? chunk : Index{0},
                                   q.fields.masks == Masks::left ? q.lefts : Index{0},
                                   q.fields.masks == Masks::right ? q.rights : Index{0}});
    // Only if the columns of a template are at least one warp.
    const Index apart = q.left.cols >= warp::kSize ? q.left.cols : q.out_cols();
    ShiftAxis of_rows(q.out_rows(), q.left.rows), of_cols(q.out_cols(), apart);
    down = of_rows;
    across = of_cols;
    tiles_across = device::ceil_div<Index>(across.count, warp::kSize);
    tiles = tiles_across * device::ceil_div<Index>(down.count, kScoreWarps);
    // Several pairs per thread, as long as there are enough threads.
    of_thread = std::clamp<Index>(tiles * chunk / kEnoughScoreBlocks, 1, kMostScorePairs);
    const Index notes_of_group = Index{down.each} * across.each * tiles * kScoreWarps;
    notes_count = device::ceil_div(chunk, of_thread) * notes_of_group;
    maximum_count = owners * owner_parts;
    column_count = matrices * bands * images * column_pitch;
  }

  Problem q;
  Index rows, cols;          // of a transform
  bool own_columns = false;  // columns are transformed by columns.hpp and not by the library
  Index padded_rows;
  Index matrices;
  int planes_of_matrix = 0;
  Index gap = 0;    // PlaneArguments
  Index slots = 0;  // slots of planes
  Index chunk = 0;  // pairs per chunk
  Index product_slots = 0;
  Index first_row = 0, window_rows = 0;  // rows that are transformed back
  Index parts = 0, owner_parts = 0;
  Index band_rows = 0, bands = 0, column_pitch = 0;
  ShiftAxis down{1, 1}, across{1, 1};
  Index tiles_across = 0, tiles = 0, of_thread = 0;
  Index maximum_count = 0, notes_count = 0, column_count = 0;
};

// `work_bytes`: memory that the library's transforms need.
struct NormalisedMemory {
  NormalisedMemory(const NormalisedLayout& at, std::size_t work_bytes, Workspace workspace) {
    const Problem& q = at.q;
    const bool masked = q.fields.masks != Masks::none;
    const Index left_size = q.lefts * integral_size(q.left);
    const Index right_size = q.rights * integral_size(q.right);
    // Memory that must be 0 where no kernel writes it comes first.
    planes = reinterpret_cast<float*>(
        workspace.take<Bin>(at.slots * at.cols * (at.own_columns ? at.padded_rows : at.rows)));
    left_boxes = workspace.take<BoxEntry>(left_size);
    right_boxes = workspace.take<BoxEntry>(right_size);
    left_counts = workspace.take<std::uint32_t>(masked ? left_size : 0);
    right_counts = workspace.take<std::uint32_t>(masked ? right_size : 0);
    zeroed = workspace.bytes();
    spectra = workspace.take<Bin>(at.slots * at.rows *
                                  (at.own_columns ? 2 * half_pitch(at.cols) : at.cols));
    roots = workspace.take<Complex>(at.own_columns ? at.rows : 0);
    products = workspace.take<Bin>(at.product_slots * at.cols *
                                   (at.own_columns ? at.window_rows : at.rows));
    sums = workspace.take<MatrixSums>(at.matrices * at.parts);
    facts = workspace.take<PlaneFacts>(at.matrices);
    columns = workspace.take<double>(at.column_count);
    most = workspace.take<double>(at.maximum_count);
    uncertain = workspace.take<std::uint32_t>(1);
    notes = workspace.take<Index>(at.notes_count);
    work = workspace.take<char>(static_cast<Index>(work_bytes));
    bytes = workspace.bytes();
  }
  float* planes;
  BoxEntry *left_boxes, *right_boxes;
  std::uint32_t *left_counts, *right_counts, *uncertain;
  std::size_t zeroed, bytes;
  Bin *spectra, *products;
  Complex* roots;
  MatrixSums* sums;
  PlaneFacts* facts;
  double *columns, *most;
  Index* notes;
  char* work;
};

// Stores the roots, once per plan.
inline void store_roots(const NormalisedLayout& at, const NormalisedMemory& memory, void* stream) {
  if (!at.own_columns) return;
  const double angle = 2 * 3.14159265358979323846 / static_cast<double>(at.rows);
  launch(column_roots_kernel, dim3(1), dim3(256), 0, stream, memory.roots,
         static_cast<int>(at.rows), std::cos(angle), std::sin(angle));
}

// Enqueues a call. transforms.forward(planes, spectra, stream) transforms the rows of the planes in
// place, and then all columns. transforms.inverse(products, stream) transforms all columns and the
// rows of the window in place. With at.own_columns forward_rows(planes, stream) and
// inverse_rows(products, stream) are called in place of these, and transform only rows. Before the
// first call the first memory.zeroed bytes of the workspace were set to 0, and the roots were
// stored.
template <typename S, typename Transforms>
void correlate_normalised_as(const NormalisedLayout& at, const NormalisedMemory& memory,
                             const Call& call, Transforms& transforms) {
  const Problem& q = at.q;
  MatrixSums* const sums = memory.sums;
  PlaneFacts* const facts = memory.facts;
  float* const planes = memory.planes;
  Bin *const spectra = memory.spectra, *const products = memory.products;
  double* const columns = memory.columns;
  const Integrals left_integrals{memory.left_boxes, S::kMasked ? memory.left_counts : nullptr};
  const Integrals right_integrals{memory.right_boxes, S::kMasked ? memory.right_counts : nullptr};
  std::uint32_t* const uncertain = memory.uncertain;

  const auto blocks = [](Index count, Index of_block) {
    return static_cast<unsigned>(std::min(device::ceil_div(count, of_block), kMostBlocks));
  };

  const MatrixSides sides{{call.lefts<float>(), call.left_mask, q.left},
                          {call.rights<float>(), call.right_mask, q.right},
                          q.lefts,
                          at.matrices};
  const unsigned matrices = device::grid_extent(at.matrices);
  launch(sums_kernel, dim3(static_cast<unsigned>(at.parts), matrices), dim3(kPlaneThreads), 0,
         call.stream, sides, sums);
  launch(facts_kernel, dim3(blocks(at.matrices, kPlaneWarps)), dim3(kPlaneThreads), 0, call.stream,
         sides, sums, at.parts, S::kCentred, facts);
  const auto layout = [&](Index slots, Index rows) {
    return at.own_columns ? PlaneLayout::by_slots(slots, rows, at.cols)
                          : PlaneLayout::by_rows(slots, at.cols);
  };
  const PlaneLayout plane_layout = layout(at.slots, at.padded_rows);
  const PlaneLayout product_layout = layout(at.product_slots, at.window_rows);
  const Index chunks = device::ceil_div<Index>(at.cols, kPlaneThreads);
  const PlaneArguments p{sides,
                         facts,
                         planes,
                         plane_layout,
                         at.padded_rows,
                         at.cols,
                         S::kPlanes,
                         at.gap,
                         S::kLeftPlanes,
                         S::kRightPlanes,
                         columns,
                         at.column_pitch,
                         at.band_rows,
                         static_cast<std::uint32_t>(at.bands),
                         static_cast<std::uint32_t>(chunks)};
  launch(planes_kernel<S::kMasked>, dim3(static_cast<unsigned>(at.bands * chunks), matrices),
         dim3(kPlaneThreads), 0, call.stream, p);
  const IntegralArguments i{sides,        facts,    columns,        at.column_pitch,
                            at.band_rows, at.bands, left_integrals, right_integrals};
  launch(integrals_kernel<S::kMasked>, dim3(static_cast<unsigned>(at.bands), matrices),
         dim3(kPlaneThreads), 0, call.stream, i);
  call.phase("forward");
  const Complex* const roots = memory.roots;
  const unsigned column_groups = static_cast<unsigned>(half_pitch(at.cols) / kColumns);
  if (at.own_columns) {
    transforms.forward_rows(planes, call.stream);
    const ColumnSpectra c{reinterpret_cast<const Complex*>(planes),
                          plane_layout,
                          static_cast<int>(at.padded_rows),
                          static_cast<int>(at.cols),
                          roots,
                          reinterpret_cast<Complex*>(spectra),
                          half_pitch(at.cols)};
    with_column_length(at.rows, [&](auto length) {
      using L = decltype(length);
      launch(column_spectra_kernel<L>, dim3(column_groups, device::grid_extent(at.slots)),
             dim3(L::threads), L::shared_bytes, call.stream, c);
    });
  } else {
    transforms.forward(planes, spectra, call.stream);
  }

  const double points = static_cast<double>(at.rows * at.cols);
  ScoreArguments s{SmallShape(q.left),
                   SmallShape(q.right),
                   static_cast<int>(q.window.sy.first),
                   static_cast<int>(q.window.sx.first),
                   static_cast<int>(q.out_rows()),
                   static_cast<int>(q.out_cols()),
                   {Pairing(q), q.lefts, 0, 0},
                   static_cast<int>(at.of_thread),
                   q.fields.score.min_overlap,
                   sides,
                   facts,
                   left_integrals,
                   right_integrals,
                   reinterpret_cast<const float*>(products),
                   product_layout,
                   static_cast<int>(at.rows),
                   static_cast<int>(at.cols),
                   static_cast<int>(at.own_columns ? at.first_row : 0),
                   memory.most,
                   static_cast<int>(at.owner_parts),
                   std::max(1.0, q.fields.score.min_overlap * static_cast<double>(q.max_overlap())),
                   static_cast<float>(std::sqrt(static_cast<double>(q.left.size())) *
                                      std::sqrt(static_cast<double>(q.right.size()))),
                   static_cast<float>(transform_roundoff(points)),
                   call.outs<float>(),
                   at.down,
                   at.across,
                   static_cast<std::uint32_t>(at.tiles_across),
                   memory.notes,
                   uncertain};
  const auto find_most = [&](Index owners) {
    if constexpr (S::kMasked) {
      const bool many = owners >= kManyOwners;
      const Index groups = many ? device::ceil_div<Index>(owners, kMostOwners) : owners;
      launch(many ? most_kernel<S, kMostOwners> : most_kernel<S, 1>,
             dim3(static_cast<unsigned>(at.owner_parts), device::grid_extent(groups)),
             dim3(kScoreThreads), 0, call.stream, s, owners);
    }
  };
  if constexpr (S::kMasks == Masks::left) find_most(q.lefts);
  if constexpr (S::kMasks == Masks::right) find_most(q.rights);
  const Index half = at.cols / 2 + 1;
  for (Index first = 0; first < q.pairs(); first += at.chunk) {
    s.pairs.first = first;
    s.pairs.count = std::min(at.chunk, q.pairs() - first);
    const float scale = static_cast<float>(1 / points);
    call.phase("hadamard");
    if (at.own_columns) {
      ColumnProducts m{s.pairs,
                       reinterpret_cast<const Complex*>(spectra),
                       at.rows * half_pitch(at.cols),
                       half_pitch(at.cols),
                       at.gap,
                       S::kPlanes,
                       S::kNumber,
                       {},
                       {},
                       reinterpret_cast<Complex*>(products),
                       product_layout,
                       static_cast<int>(at.cols),
                       static_cast<int>(at.first_row),
                       static_cast<int>(at.window_rows),
                       roots,
                       scale,
                       uncertain};
      for (int sum = 0; sum < kSums; ++sum) {
        if (!S::kHas[sum]) continue;
        m.left_of[S::kPlace[sum]] = static_cast<signed char>(S::kLeftOf[sum]);
        m.right_of[S::kPlace[sum]] = static_cast<signed char>(S::kRightOf[sum]);
      }
      with_column_length(at.rows, [&](auto length) {
        using L = decltype(length);
        launch(column_products_kernel<L>,
               dim3(column_groups, device::grid_extent(at.product_slots)), dim3(L::threads),
               L::shared_bytes, call.stream, m);
      });
      call.phase("inverse");
      transforms.inverse_rows(products, call.stream);
    } else {
      const Index groups = device::ceil_div<Index>(s.pairs.count, S::kPairs);
      const ProductArguments m{s.pairs,
                               spectra,
                               at.gap,
                               plane_layout,
                               products,
                               product_layout,
                               Divider(half),
                               static_cast<std::uint32_t>(at.rows),
                               static_cast<std::uint32_t>(at.cols),
                               groups,
                               scale,
                               uncertain};
      // A thread processes several groups of pairs if there are enough threads.
      const Index bin_blocks = device::ceil_div<Index>(at.rows * half, kScoreThreads);
      const Index runs = std::clamp<Index>(kEnoughProductBlocks / bin_blocks, 1, groups);
      launch(products_kernel<S>, dim3(static_cast<unsigned>(bin_blocks), device::grid_extent(runs)),
             dim3(kScoreThreads), 0, call.stream, m);
      call.phase("inverse");
      transforms.inverse(products, call.stream);
    }
    call.phase("rest");
    if constexpr (S::kMasks == Masks::both) find_most(s.pairs.count);
    launch(scores_kernel<S>,
           dim3(static_cast<unsigned>(at.tiles),
                device::grid_extent(device::ceil_div(s.pairs.count, at.of_thread))),
           dim3(kScoreThreads), 0, call.stream, s);
    launch(definition_kernel<S::kCentred>,
           dim3(blocks(s.pairs.count * at.tiles * kScoreWarps, kScoreWarps)), dim3(kScoreThreads),
           0, call.stream, s, static_cast<std::uint32_t>(at.tiles));
  }
}

template <typename Transforms>
void correlate_normalised(const NormalisedLayout& at, const NormalisedMemory& memory,
                          const Call& call, Transforms& transforms) {
  with_sums(at.q.fields, [&](auto sums) {
    correlate_normalised_as<decltype(sums)>(at, memory, call, transforms);
    return 0;
  });
}

}  // namespace xcorr::fft
