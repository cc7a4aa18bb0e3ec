// Register-tiled direct correlation: rectangles of several matrices staged in shared memory with
// zeros around them, and a thread's tile of kRows x kCols neighbouring shifts, whose sums stay in
// registers. All shared memory is read 16 bytes at a time.
#pragma once

#include <algorithm>

#include "algorithms/device/divide.hpp"
#include "algorithms/device/overlap_geometry.hpp"

namespace xcorr::tiled {

inline constexpr int kChunk = 4;  // floats of an access, and left columns of a step

struct alignas(sizeof(float) * kChunk) Chunk {
  float at[kChunk];
};
__device__ __forceinline__ Chunk load_chunk(const float* shared) {
  return *reinterpret_cast<const Chunk*>(shared);
}
__host__ __device__ constexpr int chunk_down(int x) { return x & ~(kChunk - 1); }
__host__ __device__ constexpr int chunk_up(int x) { return chunk_down(x + kChunk - 1); }

__host__ __device__ constexpr int smaller(int a, int b) { return a < b ? a : b; }
__host__ __device__ constexpr int larger(int a, int b) { return a > b ? a : b; }
constexpr int log2(int n) { return n > 1 ? 1 + log2(n / 2) : 0; }
inline int log2_up(Index n) {
  int log = 0;
  while ((Index{1} << log) < n) ++log;
  return log;
}

// The largest multiple of `step` that is at most x.
inline int floor_to(Index x, int step) {
  return static_cast<int>((x >= 0 ? x / step : -ceil_div<Index>(-x, step)) * step);
}

// Sums over 2 * kOffset neighbouring lanes: of each pair of lanes kOffset apart one keeps the lower
// half of the kCount sums, one the upper, and so on. The order of the additions is fixed. Of n
// lanes, lane l is left with the sums from l * kCount / n on, in front.
template <int kCount, int kOffset, int kSums>
__device__ __forceinline__ void reduce_halving(float (&sums)[kSums]) {
  if constexpr (kOffset > 0 && kCount == 1) {
    sums[0] += warp::shuffle_xor(sums[0], kOffset);
    reduce_halving<1, kOffset / 2>(sums);
  } else if constexpr (kOffset > 0) {
    constexpr int kHalf = kCount / 2;
    const bool upper = (warp::lane() & kOffset) != 0;
#pragma unroll
    for (int k = 0; k < kHalf; ++k) {
      const float low = sums[k], high = sums[k + kHalf];
      sums[k] = select(upper, high, low) + warp::shuffle_xor(select(upper, low, high), kOffset);
    }
    reduce_halving<kHalf, kOffset / 2>(sums);
  }
}

// Groups of pairs, so that lanes have different matrices: n-to-m takes neighbouring lefts and
// rights, the other forms neighbouring pairs, whatever their lefts. Made on the host, given to the
// kernel by value.
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
  int most_lefts = 0;  // that a group has
};

// One of these groups: the matrices that it needs, and where those of a lane are among them.
struct LanePairs {
  __device__ __forceinline__ LanePairs(const DeviceProblem& q, const PairGroups& groups,
                                       std::uint32_t group)
      : shared_(q.rights_shared), of_a_left_(groups.rights_of_a_left) {
    const int most_rights = 1 << groups.right_lanes_log;
    if (shared_) {
      left_first = static_cast<int>(groups.groups_of_rights.split(group)) << groups.left_lanes_log;
      left_count = smaller(1 << groups.left_lanes_log, q.lefts - left_first);
      right_first = static_cast<int>(group) * most_rights;
      right_count = smaller(most_rights, q.rights - right_first);
      left_lanes = left_count;
      first_pair = static_cast<Index>(left_first) * q.rights + right_first;
    } else {
      right_first = static_cast<int>(group) * most_rights;
      right_count = smaller(most_rights, q.lefts * q.rights - right_first);
      left_first = left_of(right_first);
      left_count = left_of(right_first + right_count - 1) - left_first + 1;
      left_lanes = 1;
      first_pair = right_first;
    }
  }
  // Lanes whose matrix does not exist take the last one.
  __device__ __forceinline__ int right_slot(int right_lane) const {
    return right_lane < right_count ? right_lane : right_count - 1;
  }
  __device__ __forceinline__ int left_slot(int left_lane, int right_lane) const {
    if (!shared_) return left_of(right_first + right_slot(right_lane)) - left_first;
    return left_lane < left_count ? left_lane : left_count - 1;
  }

  int left_first, left_count, right_first, right_count;
  int left_lanes;    // that have pairs
  Index first_pair;  // of left and right lane 0; one left lane on are `rights` pairs more

 private:
  __device__ __forceinline__ int left_of(int right) const {
    return static_cast<int>(of_a_left_.quotient(static_cast<std::uint32_t>(right)));
  }
  bool shared_;
  const Divider& of_a_left_;
};

// 0 .. count - 1 from `centre` outwards: work that is largest there is started first.
__device__ __forceinline__ int centre_out(int rank, int count, int centre) {
  const int above = count - 1 - centre, shorter = centre < above ? centre : above;
  if (rank > 2 * shorter) return centre < above ? rank : count - 1 - rank;
  return rank & 1 ? centre + (rank + 1) / 2 : centre - rank / 2;
}

// Where matrices are, and how large: rows [first_row, end_row) count, all others are zero.
struct StageSource {
  const float* matrix;
  Index size;
  int cols, first_row = 0, end_row = 0;
  bool aligned = false;  // each row begins at a multiple of 16 bytes
};

// Stages rows x (kChunk * chunks) elements from (row, col) on of several matrices, zero outside, by
// all threads of a block: chunk after chunk in turn, kFlight loads of a thread in flight. `col` is
// a multiple of kChunk; matrix m goes to shared + m * stride.
template <int kFlight>
class Stage {
 public:
  struct Target {
    float* shared;
    int stride, pitch, matrices, row, rows, col, chunks;
  };

  // divide(n) is n / chunks.
  template <typename Divide>
  __device__ __forceinline__ Stage(const StageSource& source, const Target& target, int thread,
                                   int threads, const Divide& divide)
      : source_(source), to_(target) {
    y_ = static_cast<int>(divide(static_cast<unsigned>(thread)));
    x_ = thread - y_ * to_.chunks;
    dy_ = static_cast<int>(divide(static_cast<unsigned>(threads)));
    dx_ = threads - dy_ * to_.chunks;
    wrap();
  }

  __device__ __forceinline__ bool more() const { return m_ < to_.matrices; }
  __device__ __forceinline__ void load() {
#pragma unroll
    for (int k = 0; k < kFlight; ++k) {
      const bool exists = more();
      at_[k] = exists ? m_ * to_.stride + y_ * to_.pitch + x_ * kChunk : -1;
      chunk_[k] = {};
      const int row = to_.row + y_, col = to_.col + x_ * kChunk;
      if (exists && row >= source_.first_row && row < source_.end_row) {
        const float* const line =
            source_.matrix + m_ * source_.size + static_cast<Index>(row) * source_.cols;
        if (source_.aligned) {
          if (static_cast<unsigned>(col) < static_cast<unsigned>(source_.cols)) {
            chunk_[k] = load_chunk(line + col);
          }
        } else {
#pragma unroll
          for (int i = 0; i < kChunk; ++i) {
            chunk_[k].at[i] = load_or_zero(line, col + i, source_.cols);
          }
        }
      }
      x_ += dx_;
      y_ += dy_;
      if (x_ >= to_.chunks) x_ -= to_.chunks, ++y_;
      wrap();
    }
  }
  __device__ __forceinline__ void store() const {
#pragma unroll
    for (int k = 0; k < kFlight; ++k) {
      if (at_[k] >= 0) *reinterpret_cast<Chunk*>(to_.shared + at_[k]) = chunk_[k];
    }
  }

 private:
  __device__ __forceinline__ void wrap() {
    while (y_ >= to_.rows) y_ -= to_.rows, ++m_;
  }

  StageSource source_;
  Target to_;
  int x_, y_, dx_, dy_, m_ = 0;  // the thread's next chunk
  Chunk chunk_[kFlight];
  int at_[kFlight];
};

// The sums of kRows x kCols shifts: sums[i][j] pairs the left row i rows behind the newest one with
// the current right row, and column dx of a left chunk with column dx + j of the right row's
// window.
template <int kRows, int kCols>
class RegisterTile {
  static_assert(kRows == 4 || kRows == 8);

 public:
  static constexpr int kReach = kCols + kChunk - 1;  // columns of the window that are used

  // Walks `steps` >= 1 right rows, all lanes of a warp as many. In each step one left row, at
  // `left`, becomes the newest one, and `right` is the right row. Rows before the first newest one
  // are zero, unless `preload`: then `left` points at the kRows - 1 rows before it. Only products
  // with kLow <= dx + j < kHigh are added: the others are known to meet zeros.
  template <int kLow, int kHigh>
  __device__ __forceinline__ void add(const float* left, int left_step, const float* right,
                                      int right_step, int steps, bool preload) {
    Walk<kLow, kHigh> walk;
    walk.left = left;
    walk.right = right;
    walk.left_step = left_step;
    walk.right_step = right_step;
    walk.steps = steps;
    if (preload) {
#pragma unroll
      for (int k = 0; k < kRows - 1; ++k, walk.left += left_step) {
        walk.rows[k] = load_chunk(walk.left);
      }
    } else {
      if (walk_row<0>(walk)) return;
      if (walk_row<1>(walk)) return;
      if (walk_row<2>(walk)) return;
      if constexpr (kRows == 8) {
        if (walk_row<3>(walk)) return;
        if (walk_row<4>(walk)) return;
        if (walk_row<5>(walk)) return;
        if (walk_row<6>(walk)) return;
      }
    }
    // Written out: the compiler does not unroll a loop that is left in the middle.
#pragma unroll 1
    for (;;) {
      if (walk_row<kRows - 1>(walk)) return;
      if (walk_row<kRows>(walk)) return;
      if (walk_row<kRows + 1>(walk)) return;
      if (walk_row<kRows + 2>(walk)) return;
      if constexpr (kRows == 8) {
        if (walk_row<kRows + 3>(walk)) return;
        if (walk_row<kRows + 4>(walk)) return;
        if (walk_row<kRows + 5>(walk)) return;
        if (walk_row<kRows + 6>(walk)) return;
      }
    }
  }

  float sums[kRows][kCols] = {};

 private:
  // The last kRows left rows in turn, row number k in rows[k % kRows].
  template <int kLow, int kHigh>
  struct Walk {
    const float *left, *right;
    int left_step, right_step, steps;
    Chunk rows[kRows];
  };

  // Row number kNumber; the rows before number 0 are zero. True after the last step.
  template <int kNumber, int kLow, int kHigh>
  __device__ __forceinline__ bool walk_row(Walk<kLow, kHigh>& walk) {
    Chunk window[(kReach + kChunk - 1) / kChunk];
    walk.rows[kNumber % kRows] = load_chunk(walk.left);
#pragma unroll
    for (int v = 0; v * kChunk < kReach; ++v) {
      if (v * kChunk >= kHigh || (v + 1) * kChunk <= kLow) continue;
      window[v] = load_chunk(walk.right + v * kChunk);
    }
    walk.left += walk.left_step;
    walk.right += walk.right_step;
#pragma unroll
    for (int dx = 0; dx < kChunk; ++dx) {
#pragma unroll
      for (int i = 0; i < kRows && i <= kNumber; ++i) {
#pragma unroll
        for (int j = 0; j < kCols; ++j) {
          const int c = dx + j;
          if (c < kLow || c >= kHigh) continue;
          sums[i][j] += walk.rows[(kNumber - i) % kRows].at[dx] * window[c / kChunk].at[c % kChunk];
        }
      }
    }
    return --walk.steps == 0;
  }
};

}  // namespace xcorr::tiled
