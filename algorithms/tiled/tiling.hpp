// The division of the shifts and pairs of a problem among lanes, warps and blocks with register
// tiles. tile_plan.hpp computes it on the host, tile_walk.hpp uses it on the device.
#pragma once

#include "algorithms/blocks/divide.hpp"
#include "algorithms/blocks/overlap_geometry.hpp"
#include "algorithms/tiled/chunks.hpp"

namespace xcorr::tiled {

// Groups of pairs, so that lanes have different matrices. In n-to-m a group has neighbouring lefts
// and rights; in the other forms neighbouring pairs, whatever their lefts. Set on the host, passed
// to the kernel by value.
struct PairGroups {
  PairGroups() = default;
  PairGroups(const Problem& q, int left_lanes_log_, int right_lanes_log_)
      : left_lanes_log(left_lanes_log_),
        right_lanes_log(right_lanes_log_),
        rights_of_a_left(xcorr::rights_of_a_left(q)) {
    const bool shared = q.form == Form::n_to_m;
    const Index lefts = Index{1} << left_lanes_log, rights = Index{1} << right_lanes_log;
    const Index of_rights = ceil_div(shared ? q.rights : q.pairs(), rights);
    groups_of_rights = Divider(of_rights);
    count = shared ? of_rights * ceil_div(q.lefts, lefts) : of_rights;
    const Index spanned = (rights - 2) / xcorr::rights_of_a_left(q) + 2;
    most_lefts = static_cast<int>(shared ? lefts : std::min({q.lefts, spanned, rights}));
  }
  int left_lanes_log = 0, right_lanes_log = 0;
  Divider groups_of_rights, rights_of_a_left;
  Index count = 0;
  int most_lefts = 0;  // max left matrices of a group
};

// One group: the matrices that it needs, and the slots of each lane's matrices.
struct LanePairs {
  __device__ __forceinline__ LanePairs(const DeviceProblem& q, const PairGroups& groups,
                                       std::uint32_t group)
      : shared_(q.rights_shared), of_a_left_(groups.rights_of_a_left) {
    const int most_rights = 1 << groups.right_lanes_log;
    if (shared_) {
      left_first = static_cast<int>(groups.groups_of_rights.split(group)) << groups.left_lanes_log;
      left_count = smaller(1 << groups.left_lanes_log, q.lefts - left_first);
      right_first = static_cast<int>(group) * most_rights;
      right_count = smaller(most_rights, q.rights_per_left - right_first);
      left_lanes = left_count;
      first_pair = static_cast<Index>(left_first) * q.rights_per_left + right_first;
    } else {
      right_first = static_cast<int>(group) * most_rights;
      right_count = smaller(most_rights, q.lefts * q.rights_per_left - right_first);
      left_first = left_of(right_first);
      left_count = left_of(right_first + right_count - 1) - left_first + 1;
      left_lanes = 1;
      first_pair = right_first;
    }
  }
  // Lanes whose matrix does not exist use the last slot.
  __device__ __forceinline__ int right_slot(int right_lane) const {
    return right_lane < right_count ? right_lane : right_count - 1;
  }
  __device__ __forceinline__ int left_slot(int left_lane, int right_lane) const {
    if (!shared_) return left_of(right_first + right_slot(right_lane)) - left_first;
    return left_lane < left_count ? left_lane : left_count - 1;
  }

  int left_first, left_count, right_first, right_count;
  int left_lanes;    // left lanes that have pairs
  Index first_pair;  // of lane 0; the next left lane is `rights_per_left` pairs further

 private:
  __device__ __forceinline__ int left_of(int right) const {
    return static_cast<int>(of_a_left_.quotient(static_cast<std::uint32_t>(right)));
  }
  bool shared_;
  const Divider& of_a_left_;
};

inline constexpr int kTileWarpsLog = 3, kTileWarps = 1 << kTileWarpsLog;
inline constexpr int kTileThreads = kTileWarps * warp::kSize;

// The division of a problem among lanes, warps and blocks. Set on the host, passed by value.
struct Tiling {
  PairGroups pairs;
  // Lanes of a warp are divided over rights (fastest), columns, rows and lefts; warps of a block
  // over columns and rows.
  int col_lanes_log, row_lanes_log, warp_cols_log;
  int sy_base, sx_base;          // shift of the first tile: a multiple of the tile
  int rows_count, cols_count;    // blocks along the shifts
  int rows_centre, cols_centre;  // blocks with the most work
  Divider groups, shifts, cols;  // pairs; blocks per group; blocks along columns
  bool groups_last;              // blocks of the same shifts are neighbours
  int panel_rows, panel_cols;    // of the left matrix
  int left_pitch, left_stride, right_pitch, right_stride, rights_at;  // in shared memory
  bool left_aligned, right_aligned;
};

}  // namespace xcorr::tiled
