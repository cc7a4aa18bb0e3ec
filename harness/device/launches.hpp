// The launches of a call.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "harness/problem/problem.hpp"

namespace xcorr {

// What a call enqueues: all of its launches, and those of its longest chain, of which each waits for the one before. A stream has
// at least the launches of a chain in its queue. 0: not known.
struct Launches {
  Index all = 0, chain = 0;
};

// Counts `nodes` launches, of which the second of each of `edges` waits for the first. No node waits for itself.
inline Launches count_launches(Index nodes, const std::vector<std::pair<Index, Index>>& edges) {
  std::vector<std::vector<Index>> after(nodes);
  std::vector<Index> waits(nodes, 0), place(nodes, 1), ready;
  for (const auto& [from, to] : edges) after[from].push_back(to), ++waits[to];
  for (Index node = 0; node < nodes; ++node) {
    if (waits[node] == 0) ready.push_back(node);
  }
  Launches found{nodes, 0};
  while (!ready.empty()) {
    const Index node = ready.back();
    ready.pop_back();
    found.chain = std::max(found.chain, place[node]);
    for (const Index later : after[node]) {
      place[later] = std::max(place[later], place[node] + 1);
      if (--waits[later] == 0) ready.push_back(later);
    }
  }
  return found;
}

}  // namespace xcorr
