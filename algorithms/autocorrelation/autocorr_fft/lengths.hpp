// The lengths of transforms, and the passes of which a transform is made.
#pragma once

#include <algorithm>
#include <array>
#include <limits>

#include "algorithms/blocks/divide.hpp"
#include "algorithms/device/cuda.hpp"
#include "harness/problem/problem.hpp"

namespace xcorr::autocorrelation {

// Lengths of the short transforms in registers (passes.hpp), the longest first.
inline constexpr std::array<int, 8> kRadices = {16, 12, 10, 8, 6, 5, 4, 3};
inline constexpr int kMostPasses = 8;

// A pass makes `tasks` short transforms of `radix` values. A task is within + before * group. Its
// values come from group * read_pitch + within + k * read_step and go to
// group * write_pitch + within + k * before. The pitches are odd, so that threads that access a column
// meet different banks; before the first pass and after the last one the order is natural.
struct Pass {
  int radix = 0;
  int tasks = 0;
  int before = 1;  // product of the radices of the passes before
  Divider by_before;
  int read_pitch = 1, read_step = 0, write_pitch = 0;
  int root_step = 0;  // in the table of roots, from a root of radix * before to the next
};

// A transform of `length` values in two passes or more; count is 0 where the length has none.
struct Passes {
  int length = 0, count = 0;
  int elements = 0;  // of a buffer between passes
  Pass pass[kMostPasses];
};

namespace lengths_detail {

using Radices = std::array<int, kMostPasses>;

// Of all `count` radices whose product is n, the longest first, those whose shortest is longest go to
// `best`; places before `at` are chosen, and kRadices[first] is the longest one that may follow.
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

// The fewest passes of a transform of n values, of about equal lengths, long ones first.
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

// Which lengths are chosen: `smooth` has the least product of length and passes of all lengths that
// have passes, `power` is a power of two.
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
    Index rest = n;
    for (const Index prime : {2, 3, 5}) {
      while (rest % prime == 0) rest /= prime;
    }
    if (rest != 1) continue;
    const Passes passes = passes_of(n);
    if (passes.count > 0 && n * passes.count < best_cost) {
      best = passes;
      best_cost = n * passes.count;
    }
  }
  return best;
}

// Threads, whole warps and at most `most`, that make the passes over `columns` transforms in the
// fewest rounds; of equal numbers the smallest.
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
