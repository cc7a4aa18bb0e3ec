// The division of a problem for batched transforms: padded sizes, and chunks of pairs that bound
// the workspace.
#pragma once

#include <algorithm>

#include "algorithms/blocks/padding.hpp"
#include "algorithms/blocks/workspace.hpp"
#include "algorithms/device/cuda.hpp"
#include "algorithms/fft/geometry.hpp"

namespace xcorr::fft {

// The smooth length of at least `least` with the lowest cost. cuFFT is slower for radices above 3
// and for lengths that are not multiples of 4.
inline Index cufft_size(Index least) {
  if (least <= 2) return least;
  Index best = 0;
  double best_cost = 0;
  for (Index n = least + least % 2; best == 0 || static_cast<double>(n) < best_cost; n += 2) {
    if (!is_smooth(n)) continue;
    const double cost =
        static_cast<double>(n) * (n % 4 ? 1.15 : 1.0) * (n % 5 ? 1.0 : 1.05) * (n % 7 ? 1.0 : 1.1);
    if (best == 0 || cost < best_cost) {
      best = n;
      best_cost = cost;
    }
  }
  return best;
}

// The kind of batched 2D transforms.
enum class Transform {
  real,          // real to complex and back, one 2D plan each, in place; complex if columns are odd
  complex,       // two right matrices as one complex matrix, 2D plans, in place
  complex_rows,  // the same with one plan for rows and one for columns; row y of all matrices is
                 // contiguous, and rows of padding, which are zero, are not transformed
};

// The length of equal parts of `n` of at most `most` each.
inline Index balanced(Index n, Index most) { return ceil_div(n, ceil_div(n, most)); }

struct Rectangle {
  Index lefts, rights;  // rights per left
};

// Limits of a chunk: `slots` spectra in total, each of `pack` right matrices; keeps_spectra: the
// spectra of the inputs do not count; extra_products: products take slots in addition to the
// rights.
struct ChunkLimits {
  Index slots, pack;
  bool keeps_spectra, extra_products;
};

// The rectangle within the limits with the least waste at the edges and the fewest repeated
// transforms.
inline Rectangle choose_rectangle(const Problem& q, const ChunkLimits& most) {
  const Index rights = q.form == Form::n_to_m ? q.rights : q.rights / q.lefts;
  const Index right_slots = ceil_div(rights, most.pack);
  const auto whole_slots = [&](Index n) {
    return std::min(rights, ceil_div(n, most.pack) * most.pack);
  };
  if (q.form != Form::n_to_m) {
    const Index a_right = most.extra_products ? 2 : 1;
    const Index lefts = most.slots / (1 + a_right * right_slots);
    if (lefts > 0) return {balanced(q.lefts, std::min(q.lefts, lefts)), rights};
    const Index part = std::max<Index>(1, (most.slots - 1) / a_right) * most.pack;
    return {1, whole_slots(balanced(rights, part))};
  }
  Rectangle best{1, whole_slots(1)};
  double best_cost = 0;
  for (Index b = 1; b <= right_slots; ++b) {
    const Index lefts = most.keeps_spectra ? most.slots / b : (most.slots - b) / (b + 1);
    if (lefts < 1) break;
    const Rectangle at{balanced(q.lefts, std::min(q.lefts, lefts)),
                       whole_slots(balanced(rights, b * most.pack))};
    const double chunks = static_cast<double>(ceil_div(q.lefts, at.lefts)) *
                          static_cast<double>(ceil_div(rights, at.rights));
    const Index at_slots = ceil_div(at.rights, most.pack);
    const double cost =
        chunks * (static_cast<double>(at.lefts * at_slots) +
                  static_cast<double>(at.lefts + at_slots) * (most.keeps_spectra ? 0.25 : 1.0));
    if (best_cost == 0 || cost < best_cost) {
      best = at;
      best_cost = cost;
    }
  }
  return best;
}

// The chunks of a problem and their geometry.
struct FftChunks {
  FftGeometry g{};
  Rectangle chunk{};
  bool all_spectra = false;  // n-to-m: keeps the spectra of all matrices, each transformed once
  bool in_place = false;     // products overwrite the spectra of the rights

  bool single(const Problem& q) const {
    return chunk.lefts >= q.lefts && chunk.rights >= g.pair_pitch;
  }
};

// Chunks of at most `chunk_bytes` of spectra, but at least one slot of pairs. In addition, n-to-m
// keeps the spectra of all matrices if they need at most `all_spectra_bytes`.
inline FftChunks fft_chunks(const Problem& q, Index scalar_bytes, Transform transform,
                            Index chunk_bytes, Index all_spectra_bytes) {
  const bool n_to_m = q.form == Form::n_to_m;
  FftChunks at;
  FftGeometry& g = at.g;
  if (q.fields.boundary == Boundary::circular) {
    // A transform has the shape of the matrices. A single column is repeated once, because a
    // transform needs two.
    g.rows = q.left.rows;
    g.cols = std::max<Index>(2, q.left.cols);
  } else {
    g.rows = cufft_size(padded_size(q.left.rows, q.right.rows, q.window.sy));
    g.cols = std::max<Index>(2, cufft_size(padded_size(q.left.cols, q.right.cols, q.window.sx)));
  }
  g.pack = transform == Transform::real ? 1 : 2;
  g.complex = transform != Transform::real || g.cols % 2 != 0;
  g.by_rows = transform == Transform::complex_rows;
  g.padded_rows = g.by_rows ? std::max(q.left.rows, q.right.rows) : g.rows;
  // Rows consist of whole 16-byte accesses.
  g.pitch = (g.used_cols() + 1) / 2 * 2;
  g.real_pitch = 2 * g.pitch;
  g.spectrum = g.rows * g.pitch;
  g.left = q.left;
  g.right = q.right;
  g.sy = q.window.sy;
  g.sx = q.window.sx;
  const Index spectrum_bytes = 2 * g.spectrum * scalar_bytes;
  const Index all_slots = q.lefts + ceil_div(q.rights, g.pack);
  at.all_spectra = n_to_m && all_slots * spectrum_bytes <= all_spectra_bytes;
  at.in_place = !n_to_m && !g.by_rows;
  at.chunk = choose_rectangle(q, {std::max<Index>(2, chunk_bytes / spectrum_bytes), g.pack,
                                  at.all_spectra, !n_to_m && !at.in_place});
  g.left_slots = at.all_spectra ? q.lefts : at.chunk.lefts;
  g.pair_run = ceil_div(at.chunk.rights, g.pack);
  g.pair_slots = at.chunk.lefts * g.pair_run;
  g.right_run = at.all_spectra ? ceil_div(q.rights, g.pack) : g.pair_run;
  g.right_slots = n_to_m ? g.right_run : g.pair_slots;
  g.pair_pitch = g.right_pitch = n_to_m ? q.rights : q.rights / q.lefts;
  const auto image = [&](Index slots) {
    return g.by_rows ? Strides{g.real_pitch, slots * g.real_pitch}
                     : Strides{2 * g.spectrum, g.real_pitch};
  };
  g.in = image(g.input_slots());
  g.out = image(g.pair_slots);
  return at;
}

// Images, spectra and products of a chunk. Images and their spectra share memory, except for
// transforms by rows.
template <typename T, typename Complex>
struct FftMemory {
  FftMemory(const FftChunks& at, Workspace& workspace) {
    const FftGeometry& g = at.g;
    if (g.by_rows) images = workspace.take<T>(2 * g.input_slots() * g.spectrum);
    spectra = workspace.take<Complex>(g.input_slots() * g.spectrum);
    if (!g.by_rows) images = reinterpret_cast<T*>(spectra);
    if (!at.in_place) {
      products = workspace.take<Complex>(g.pair_slots * g.spectrum);
    } else if (spectra != nullptr) {
      products = spectra + g.left_slots * g.spectrum;
    }
  }
  T* images = nullptr;
  Complex *spectra = nullptr, *products = nullptr;
};

}  // namespace xcorr::fft
