// The lengths of transforms, and the passes of a transform.
#pragma once

#include <algorithm>
#include <array>
#include <limits>

#include "algorithms/blocks/divide.hpp"
#include "algorithms/blocks/padding.hpp"
#include "algorithms/device/cuda.hpp"
#include "harness/problem/problem.hpp"

namespace xcorr::autocorrelation {

// Lengths of the short transforms in registers (passes.hpp), in descending order.
inline constexpr std::array<int, 8> kRadices = {16, 12, 10, 8, 6, 5, 4, 3};
inline constexpr int kMostPasses = 8;

// A pass computes `tasks` short transforms of `radix` values. Task number = within + before *
// group. It reads values from group * read_pitch + within + k * read_step and writes them to group
// * write_pitch + within + k * before. The pitches are odd, so that threads that access a column
// use different banks. The order is natural before the first and after the last pass.
struct Pass {
  int radix = 0;
  int tasks = 0;
  int before = 1;  // product of the radices of the previous passes
  Divider by_before;
  int read_pitch = 1, read_step = 0, write_pitch = 0;
  int root_step = 0;  // in the table of roots, between roots of order radix * before
};

// A transform of `length` values in two or more passes; count is 0 if the length has none.
struct Passes {
  int length = 0, count = 0;
  int elements = 0;  // elements of a buffer between passes
  Pass pass[kMostPasses];
};

namespace lengths_detail {

using Radices = std::array<int, kMostPasses>;

// Finds the `count` radices with product n, in descending order, whose smallest radix is largest,
// and stores them in `best`. The radices before index `at` are chosen; kRadices[first] is the
// largest radix that may follow.
inline void factor(Index n, int count, Radices& chosen, int at, std::size_t first, Radices& best) {
  const auto last = static_cast<std::size_t>(count - 1);
  if (at == count) {
    if (n == 1 && chosen[last] > best[last]) best = chosen;
    return;
  }
  for (std::size_t i = first; i < kRadices.size(); ++i) {
    if (n % kRadices[i] != 0) continue;
    chosen[static_cast<std::size_t>(at)] = kRadices[i];
    factor(n / kRadices[i], count, chosen, at + 1, i, best);
  }
}

}  // namespace lengths_detail

// The fewest passes of a transform of n values, with similar lengths in descending order.
inline Passes passes_of(Index n) {
  Passes result;
  lengths_detail::Radices chosen = {}, radices = {};
  int count = 1;
  while (radices[0] == 0) {
    if (++count > kMostPasses) return result;
    lengths_detail::factor(n, count, chosen, 0, 0, radices);
  }
  result.length = result.elements = static_cast<int>(n);
  result.count = count;
  int before = 1, pitch = 1;
  for (int i = 0; i < count; ++i) {
    Pass& pass = result.pass[i];
    pass.radix = radices[static_cast<std::size_t>(i)];
    pass.tasks = result.length / pass.radix;
    pass.before = before;
    pass.by_before = Divider(before);
    pass.root_step = pass.tasks / before;
    pass.read_pitch = pitch;
    pass.read_step = pass.tasks / before * pitch;
    before *= pass.radix;
    pitch = pass.write_pitch = i + 1 < count ? before | 1 : before;
    result.elements = std::max(result.elements, result.length / before * pitch);
  }
  return result;
}

// How lengths are chosen: `smooth` minimises length times passes over all lengths that have passes,
// `power` is a power of two.
enum class Lengths { smooth, power };

inline Passes choose_passes(Index least, Lengths lengths) {
  Passes best;
  if (lengths == Lengths::power) {
    Index n = 16;
    while (n < least) n *= 2;
    return passes_of(n);
  }
  Index best_cost = std::numeric_limits<Index>::max();
  for (Index n = std::max<Index>(9, least); 2 * n < best_cost; ++n) {
    if (!device::is_smooth(n, {2, 3, 5})) continue;
    const Passes passes = passes_of(n);
    if (passes.count > 0 && n * passes.count < best_cost) {
      best = passes;
      best_cost = n * passes.count;
    }
  }
  return best;
}

// The number of threads, whole warps and at most `most`, that computes the passes over `columns`
// transforms in the fewest rounds; the smallest such number.
inline int choose_threads(const Passes& passes, int columns, int most) {
  int best = 0, best_rounds = std::numeric_limits<int>::max();
  for (int threads = warp::kSize; threads <= most; threads += warp::kSize) {
    int rounds = 0;
    for (int i = 0; i < passes.count; ++i) {
      rounds += ceil_div(passes.pass[i].tasks * columns, threads);
    }
    if (rounds < best_rounds) {
      best = threads;
      best_rounds = rounds;
    }
  }
  return best;
}

}  // namespace xcorr::autocorrelation
