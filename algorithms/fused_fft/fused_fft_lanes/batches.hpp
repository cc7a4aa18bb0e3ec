// How fused_fft_lanes divides the pairs of a problem: into batches of one list of tasks, groups of
// pairs, or chunks. The memory of images bounds each.
#pragma once

#include <algorithm>

#include "algorithms/fused_fft/fused_fft_lanes/transforms.hpp"
#include "algorithms/fused_fft/lengths.hpp"
#include "harness/variant.hpp"

namespace xcorr::fused_fft {

using LaneLengths = Lengths<256, 384, 512>;
template <typename L>
using LaneGroupOf = LaneGroup<L::n>;

inline Index image_elements(const Problem& q) {
  return LaneLengths::y(q) * (LaneLengths::x(q) / 2 + 1);
}
inline Index lane_groups_of_block(int n) {
  return LaneLengths::with(n, [](auto l) -> Index { return LaneGroupOf<decltype(l)>::of_block; });
}

// How pairs of n-to-m are divided into batches, and how many batches the ring holds.
struct Batches {
  explicit Batches(const PlanRequest& request) {
    const Problem& q = request.problem;
    const Index pairs = lane_groups_of_block(LaneLengths::y(q));
    Index best = 0;
    for (Index l = 1; l <= pairs; l *= 2) {
      const Index number = ceil_div(q.lefts, l) * ceil_div(q.rights, pairs / l);
      // Minimises the number of batches, then that of spectra.
      const Index cost = number * 64 + l + pairs / l;
      if (best == 0 || cost < best) best = cost, lefts = l, count = number;
    }
    rights = pairs / lefts;
    const Index bytes = pairs * image_elements(q) * static_cast<Index>(sizeof(Complex));
    const Index ring_bytes = small_if_emulated(ring_mib(request) << 20, 0);
    ring = std::min(count, std::max<Index>(2, ring_bytes / bytes));
    images = ring * pairs;
  }
  static Index ring_mib(const PlanRequest& request) { return request.params.get_int("ring_mib"); }
  Index lefts = 1, rights = 1, count = 1, ring = 1, images = 1;
};

// Bytes before the counters of batches, so that these are aligned.
inline constexpr Index kCounters = 64;
inline Index counter_bytes(Index batches) {
  return ceil_div<Index>(kCounters + 2 * batches * static_cast<Index>(sizeof(std::uint32_t)), 256) *
         256;
}
inline Index chunk_images(const PlanRequest& request) {
  const Problem& q = request.problem;
  const Index bytes = image_elements(q) * static_cast<Index>(sizeof(Complex));
  return std::min(q.pairs(), std::max<Index>(1, (Batches::ring_mib(request) << 20) / bytes));
}

inline bool has_groups(const PlanRequest& request) {
  return request.params.get("spectra") == "shared";
}

// How pairs of n-to-m are divided into groups: the images of a group fit a chunk, and the spectra
// of one column fit a block.
struct PairGroups {
  static constexpr Index kMostSpectra = 24;
  explicit PairGroups(const PlanRequest& request) {
    const Problem& q = request.problem;
    lefts = q.lefts;
    rights = q.rights;
    while (pairs() > chunk_images(request) || spectra() > kMostSpectra) {
      Index& larger = lefts < rights ? rights : lefts;
      larger = larger > 16 ? 16 : ceil_div<Index>(larger, 2);
    }
    lefts = ceil_div(q.lefts, ceil_div(q.lefts, lefts));
    rights = ceil_div(q.rights, ceil_div(q.rights, rights));
  }
  Index pairs() const { return lefts * rights; }
  Index spectra() const { return lefts + rights; }
  Index lefts, rights;
};

}  // namespace xcorr::fused_fft
