// Lists of detections in the records of `above`.
#pragma once

#include <algorithm>
#include <tuple>
#include <vector>

#include "harness/problem/problem.hpp"
#include "harness/problem/results.hpp"

namespace xcorr {

struct Listed {
  AboveHeader header;
  std::vector<Detection> written, sorted;  // sorted by (pair, sy, sx)
};

inline Listed listed(const Problem& problem, const void* records) {
  const auto& header = *static_cast<const AboveHeader*>(records);
  const auto* const first = reinterpret_cast<const Detection*>(&header + 1);
  const auto capacity = static_cast<std::uint64_t>(problem.fields.result.capacity);
  Listed found{header, {first, first + std::min(header.count, capacity)}, {}};
  found.sorted = found.written;
  std::ranges::sort(found.sorted, {},
                    [](const Detection& d) { return std::tuple(d.pair, d.sy, d.sx); });
  return found;
}

}  // namespace xcorr
