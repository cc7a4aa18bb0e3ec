// The surfaces of all pairs, several at a time.
#pragma once

#include <omp.h>

#include <algorithm>
#include <vector>

#include "harness/verdict/pair_truth.hpp"

namespace xcorr::judged {

// Pairs with references in memory at a time: one a thread at least, unless pairs are very large,
// and few enough that their memory is soon used again.
inline Index pairs_of_a_turn(const Problem& problem) {
  constexpr Index kElements = Index{1} << 24, kMostElements = Index{1} << 27;
  const Index size = problem.out_size();
  const Index one_a_thread = std::min<Index>(omp_get_max_threads(), kMostElements / size);
  return std::clamp<Index>(std::max(kElements / size, one_a_thread), 1, problem.pairs());
}

// Calls step(pair truth, tally of the pair) for all pairs, several at a time, and adds up the tallies.
template <typename F>
Tally each_pair(const Problem& problem, Truth& truth, InputKind kind, F&& step) {
  const Index size = problem.out_size(), per_chunk = pairs_of_a_turn(problem);
  Tally all;
  Reference reference;
  for (Index first = 0; first < problem.pairs(); first += per_chunk) {
    const Index count = std::min(per_chunk, problem.pairs() - first);
    truth.surface(kind, first, count, reference);
    std::vector<Tally> of_pairs(count);
#pragma omp parallel for schedule(dynamic)
    for (Index i = 0; i < count; ++i) {
      of_pairs[i].first_wrong_pair = first + i;
      step(PairTruth(problem, first + i, reference.value.data() + i * size,
                     reference.bound.data() + i * size),
           of_pairs[i]);
    }
    for (const Tally& of_pair : of_pairs) all.add(of_pair);
  }
  return all;
}

}  // namespace xcorr::judged
