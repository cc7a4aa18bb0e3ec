// How a problem is cut for batched transforms: padded sizes, and chunks of pairs that bound the
// workspace.
#pragma once

#include <algorithm>

#include "algorithms/device/fft_layout.hpp"

namespace xcorr {

inline bool is_smooth(Index n) {
  for (Index prime : {2, 3, 5, 7}) {
    while (n % prime == 0) n /= prime;
  }
  return n == 1;
}

// Length of a circular correlation that is right at `shifts`: shift s also collects s + n and s -
// n, which must lie outside the full window -(left - 1) .. right - 1, and both inputs must fit. Of
// the smooth lengths that are long enough the one of least cost: radices above 3, and lengths that
// no 4 divides, make cuFFT slower.
inline Index padded_size(Index left, Index right, Shifts shifts) {
  const Index least = std::max({left, right, right - shifts.first, left + shifts.last});
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

// Equal parts of `n`, none longer than `most`: the length of a part.
inline Index balanced(Index n, Index most) {
  const Index parts = (n + most - 1) / most;
  return (n + parts - 1) / parts;
}

struct Rectangle {
  Index lefts, rights;  // rights of each left
};

// The rectangle of at most `slots` spectra that wastes least at the edges and transforms least
// twice.
inline Rectangle choose_rectangle(const Problem& q, Index slots, bool keeps_all) {
  const Index rights = q.form == Form::n_to_m ? q.rights : q.rights / q.lefts;
  if (q.form != Form::n_to_m) {
    if (slots > rights) return {balanced(q.lefts, std::min(q.lefts, slots / (1 + rights))), rights};
    return {1, balanced(rights, std::max<Index>(1, slots - 1))};
  }
  Rectangle best{1, 1};
  double best_cost = 0;
  for (Index b = 1; b <= rights; ++b) {
    const Index most = keeps_all ? slots / b : (slots - b) / (b + 1);
    if (most < 1) break;
    const Rectangle at{balanced(q.lefts, std::min(q.lefts, most)), balanced(rights, b)};
    const double chunks = static_cast<double>((q.lefts + at.lefts - 1) / at.lefts) *
                          static_cast<double>((rights + at.rights - 1) / at.rights);
    const double cost =
        chunks * (static_cast<double>(at.lefts * at.rights) +
                  static_cast<double>(at.lefts + at.rights) * (keeps_all ? 0.25 : 1.0));
    if (best_cost == 0 || cost < best_cost) {
      best = at;
      best_cost = cost;
    }
  }
  return best;
}

// A layout in memory: spectra of the inputs' slots, then (n-to-m) of products, then (out of place)
// real images. In place, images and spectra share memory, and rows of an image are as long as those
// of a spectrum.
struct FftChunks {
  FftGeometry g{};
  Rectangle chunk{};
  bool in_place = true;
  bool all_spectra = false;  // n-to-m: spectra of all matrices are kept, each is transformed once
  Index products = 0;        // slots of products; 0: they replace the spectra of the rights
  Index real = 0, end = 0;   // bytes before the images, and in all

  bool single(const Problem& q) const {
    return chunk.lefts >= q.lefts && chunk.rights >= g.pair_pitch;
  }
};

// Chunks of at most `chunk_bytes` of spectra and images, but at least one pair. n-to-m keeps the
// spectra of all matrices, beside that, up to `all_spectra_bytes`.
inline FftChunks fft_chunks(const Problem& q, Index scalar_bytes, bool in_place, Index chunk_bytes,
                            Index all_spectra_bytes) {
  const bool n_to_m = q.form == Form::n_to_m;
  FftChunks at;
  FftGeometry& g = at.g;
  g.rows = padded_size(q.left.rows, q.right.rows, q.window.sy);
  g.cols = std::max<Index>(2, padded_size(q.left.cols, q.right.cols, q.window.sx));
  const Index half = g.cols / 2 + 1;
  g.spectrum = (g.rows * half + 1) / 2 * 2;  // whole 16-byte vectors
  g.real_pitch = in_place ? 2 * half : g.cols;
  g.real_size = in_place ? 2 * g.spectrum : (g.rows * g.cols + 31) / 32 * 32;
  g.left = q.left;
  g.right = q.right;
  g.sy = q.window.sy;
  g.sx = q.window.sx;
  const Index spectrum_bytes = 2 * g.spectrum * scalar_bytes;
  const Index slot_bytes = spectrum_bytes + (in_place ? 0 : g.real_size * scalar_bytes);
  at.in_place = in_place;
  at.all_spectra = n_to_m && (q.lefts + q.rights) * spectrum_bytes <= all_spectra_bytes;
  at.chunk = choose_rectangle(q, std::max<Index>(2, chunk_bytes / slot_bytes), at.all_spectra);
  g.left_slots = at.all_spectra ? q.lefts : at.chunk.lefts;
  g.pair_slots = at.chunk.lefts * at.chunk.rights;
  g.right_run = at.all_spectra ? q.rights : at.chunk.rights;
  g.right_slots = n_to_m ? g.right_run : g.pair_slots;
  g.pair_run = at.chunk.rights;
  g.pair_pitch = n_to_m ? q.rights : q.rights / q.lefts;
  g.right_pitch = g.pair_pitch;
  at.products = n_to_m ? g.pair_slots : 0;
  const auto after = [](Index offset, Index bytes) { return (offset + bytes + 255) / 256 * 256; };
  at.real = after(0, (g.input_slots() + at.products) * spectrum_bytes);
  const Index images = in_place ? 0 : std::max(g.input_slots(), g.pair_slots);
  at.end = after(at.real, images * g.real_size * scalar_bytes);
  return at;
}

}  // namespace xcorr
