// tiled_direct for few pairs: work is split until it fills a card, in one launch and without
// atomics. A warp has one small tile of shifts (overlap_tile); its lanes take different left rows,
// or, where there are fewer than 32, different columns of them. A lane slides along its row: for 4
// left columns it reads one chunk of the left and one of each right row that the tile pairs with
// it. The lanes' sums meet by shuffles in a fixed order, halving what a lane holds at each level
// (16 shuffles for 16 sums), so results are the same bits in every run. Beyond the paper.
//
// Equal shares: small matrices lie in shared memory as a whole, and tiles, ordered by their
// overlap, are dealt to the blocks like cards, each round from the centre of the output outwards
// and in columns in turn from both sides. Every block then has tiles of all sizes, and no second
// launch or fix-up is needed: at 64 x 64 the 1024 tiles of 4 x 4 are 128 blocks of 8 warps. Larger
// matrices are taken in panels, and a block has neighbouring tiles, heavy ones first.
//
// Forms: all; fp32; made for one-to-one and a few pairs, since pairs share nothing. Parameters;
// compile-time:
//   overlap_tile     2x4, 4x4, 4x8: reuse (FMAs for an access of 16 bytes: 11, 13, 26) against
//                    warps: at 16 x 16 there are 124, 64 and 32.
// run-time:
//   warps_per_block  4, 8, 16: sharing of what is staged against blocks on more multiprocessors.
// Limits: an infinity or NaN may reach outputs whose overlaps do not hold it.
//
// Predicted (H200): 4x4 is bound by shared memory (4 cycles an access for 32 lanes) at 80 % of the
// FMA rate, 4x8 at 94 % by issue. At 64 x 64 one-to-one the heaviest warp has 2048 FMAs a lane: 1.5
// us, after 0.8 us of staging; at 16 x 16 latencies alone, about 0.8 us, which
// hide behind the 3.15 us of a launch.
#include <algorithm>
#include <array>

#include "algorithms/device/divide.hpp"
#include "algorithms/device/register_tile.hpp"
#include "harness/variant.hpp"

namespace xcorr {
namespace {

constexpr int kMostWarps = 16;

// How warps and blocks share a problem. Made on the host, given to the kernel by value.
struct Shares {
  int warps_log, warp_cols_log;  // of a block; along the columns of a region
  int row_lanes_log;             // lanes of a warp that take different left rows
  int sy_base, sx_base;          // shift of the first tile
  int tile_rows, tile_cols;      // tiles of an output, or regions of a block's tiles
  int centre_row, centre_col;
  int round_log;  // rows of tiles of a round
  bool dealt;     // tiles are dealt to blocks like cards; else a block has a region of neighbours
  Divider blocks, rights, cols;  // blocks of a pair; pairs of a left; tile_cols
  std::uint32_t rights_back;     // n-to-m: each left starts over at the first right
  int panel_rows, panel_cols;    // of the left matrix
  int left_pitch, right_pitch, right_cols, rights_at;  // in shared memory
  Divider left_chunks, right_chunks;                   // of a staged row
  bool left_aligned, right_aligned;
};

// A thread's part of the sums of kRows x kCols neighbouring shifts: one left row at a time, and
// sliding windows of the kRows right rows that it meets.
template <int kRows, int kCols>
class RowTile {
 public:
  static constexpr int kSums = kRows * kCols;

  // `count` chunks of a left row, from `left` on; `right` is where the first shift meets its first
  // column.
  __device__ __forceinline__ void add(const float* left, const float* right, int pitch, int count) {
    Chunk windows[kRows][kParts];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int v = 0; v < kParts - 1; ++v) {
        windows[i][v] = load_chunk(right + i * pitch + v * kChunk);
      }
    }
    right += (kParts - 1) * kChunk;
#pragma unroll 1
    for (; count >= kParts; count -= kParts) {
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        step(part, load_chunk(left + part * kChunk), right + part * kChunk, pitch, windows);
      }
      left += kParts * kChunk;
      right += kParts * kChunk;
    }
#pragma unroll
    for (int part = 0; part < kParts - 1; ++part) {
      if (part < count) {
        step(part, load_chunk(left + part * kChunk), right + part * kChunk, pitch, windows);
      }
    }
  }

  // The warp's sum number element(). The order of the additions is fixed.
  __device__ __forceinline__ float reduce() {
    float values[kSums];
#pragma unroll
    for (int k = 0; k < kSums; ++k) values[k] = sums_[k / kCols][k % kCols];
    return halve<kSums, warp::kSize / 2>(values);
  }
  // Which of the sums a lane has after reduce(); kCopies lanes have the same.
  static constexpr int kCopies = warp::kSize / kSums;
  static __device__ __forceinline__ int element() { return warp::lane() / kCopies; }

 private:
  static constexpr int kParts = kCols / kChunk + 1;  // chunks of a window
  static_assert(kSums <= warp::kSize);

  // Of each pair of lanes `kOffset` apart, one keeps the lower half of the sums, one the upper.
  template <int kCount, int kOffset>
  __device__ __forceinline__ float halve(float (&values)[kSums]) {
    if constexpr (kOffset == 0) {
      return values[0];
    } else if constexpr (kCount == 1) {
      values[0] += warp::shuffle_xor(values[0], kOffset);
      return halve<1, kOffset / 2>(values);
    } else {
      constexpr int kHalf = kCount / 2;
      const bool upper = (warp::lane() & kOffset) != 0;
#pragma unroll
      for (int k = 0; k < kHalf; ++k) {
        const float low = values[k], high = values[k + kHalf];
        values[k] = select(upper, high, low) + warp::shuffle_xor(select(upper, low, high), kOffset);
      }
      return halve<kHalf, kOffset / 2>(values);
    }
  }

  __device__ __forceinline__ void step(int part, const Chunk& left, const float* right, int pitch,
                                       Chunk (&windows)[kRows][kParts]) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      windows[i][(part + kParts - 1) % kParts] = load_chunk(right + i * pitch);
#pragma unroll
      for (int dx = 0; dx < kChunk; ++dx) {
#pragma unroll
        for (int j = 0; j < kCols; ++j) {
          const int c = dx + j;
          sums_[i][j] += left.at[dx] * windows[i][(part + c / kChunk) % kParts].at[c % kChunk];
        }
      }
    }
  }

  float sums_[kRows][kCols] = {};
};

template <int kRows, int kCols>
__global__ void __launch_bounds__(kMostWarps* warp::kSize)
    tiled_direct_split_kernel(DeviceProblem q, Shares s, const float* __restrict__ left,
                              const float* __restrict__ right, float* __restrict__ out) {
  float* const shared = dynamic_shared<float>();
  const int thread = static_cast<int>(threadIdx.x), lane = warp::lane();
  const int warp_number = thread / warp::kSize, threads = warp::kSize << s.warps_log;

  std::uint32_t block = blockIdx.x;
  const std::uint32_t pair = s.blocks.split(block);
  // Tile of the warp, region of the block.
  int tile_row, tile_col, region_sy = s.sy_base, region_sx = s.sx_base;
  int region_rows = s.tile_rows * kRows, region_cols = s.tile_cols * kCols;
  bool works = true;
  if (s.dealt) {
    // From the centre outwards, a round for each warp; every other round turns the columns round.
    std::uint32_t rank = static_cast<std::uint32_t>(warp_number) * s.blocks.by + block;
    int row = static_cast<int>(s.cols.split(rank));
    works = row < s.tile_rows;
    row = works ? row : 0;
    const int col = static_cast<int>(rank);
    tile_row = centre_out(row, s.tile_rows, s.centre_row);
    tile_col =
        centre_out(row >> s.round_log & 1 ? s.tile_cols - 1 - col : col, s.tile_cols, s.centre_col);
  } else {
    const int row = centre_out(static_cast<int>(s.cols.split(block)), s.tile_rows, s.centre_row);
    const int col = centre_out(static_cast<int>(block), s.tile_cols, s.centre_col);
    const int across_log = s.warp_cols_log, down_log = s.warps_log - across_log;
    tile_row = (row << down_log) + (warp_number >> across_log);
    tile_col = (col << across_log) + (warp_number & ((1 << across_log) - 1));
    region_rows = kRows << down_log;
    region_cols = kCols << across_log;
    region_sy += row * region_rows;
    region_sx += col * region_cols;
  }
  const int sy = s.sy_base + tile_row * kRows, sx = s.sx_base + tile_col * kCols;
  works = works && sy < q.first_sy + q.out_rows && sx < q.first_sx + q.out_cols;

  const std::uint32_t l = s.rights.quotient(pair);
  StageSource lefts = {left + l * q.left_size, 0, q.left_cols, 0, 0, s.left_aligned};
  const StageSource rights = {right + (pair - l * s.rights_back) * q.right_size,
                              0,
                              q.right_cols,
                              0,
                              q.right_rows,
                              s.right_aligned};
  const int row_lane = lane & ((1 << s.row_lanes_log) - 1), group = lane >> s.row_lanes_log;
  const int first_y = larger(0, -(region_sy + region_rows - 1));
  const int end_y = smaller(q.left_rows, q.right_rows - region_sy);
  const int first_x = chunk_down(larger(0, -(region_sx + region_cols - 1)));
  const int end_x = smaller(q.left_cols, q.right_cols - region_sx);

  RowTile<kRows, kCols> tile;
  using Loads = Stage<(kRows * kCols > 8 ? 4 : 2)>;
#pragma unroll 1
  for (int y0 = first_y; y0 < end_y; y0 += s.panel_rows) {
    const int y1 = smaller(y0 + s.panel_rows, end_y);
    lefts.end_row = y1;
    const int right_row = larger(y0 + region_sy, 1 - kRows);
    const int right_end = smaller(y1 + region_sy + region_rows - 1, q.right_rows + kRows - 1);
    const int begin = larger(y0, 1 - kRows - sy), end = smaller(y1, q.right_rows - sy);
#pragma unroll 1
    for (int x0 = first_x; x0 < end_x; x0 += s.panel_cols) {
      const int x1 = smaller(x0 + s.panel_cols, end_x);
      const int right_col = larger(x0 + region_sx, -kCols);
      if (y0 > first_y || x0 > first_x) block::barrier();
      Loads one(lefts,
                {shared, 0, s.left_pitch, 1, y0, y1 - y0, x0, static_cast<int>(s.left_chunks.by)},
                thread, threads, [&](unsigned n) { return s.left_chunks.quotient(n); });
      Loads other(rights,
                  {shared + s.rights_at, 0, s.right_pitch, 1, right_row, right_end - right_row,
                   right_col, static_cast<int>(s.right_chunks.by)},
                  thread, threads, [&](unsigned n) { return s.right_chunks.quotient(n); });
      do {
        one.load();
        other.load();
        one.store();
        other.store();
      } while (one.more() || other.more());
      block::barrier();
      if (!works) continue;
      // Lanes of one row share its chunks.
      const int begin_x = larger(x0, chunk_down(1 - kCols - sx));
      const int chunks = chunk_up(smaller(x1, q.right_cols - sx) - begin_x) / kChunk;
      const int share = (chunks + (warp::kSize >> s.row_lanes_log) - 1) >> (5 - s.row_lanes_log);
      const int first = group * share;
      const int count = smaller(share, chunks - first);
      const int x = begin_x + first * kChunk;
      if (count <= 0) continue;
#pragma unroll 1
      for (int y = begin + row_lane; y < end; y += 1 << s.row_lanes_log) {
        tile.add(shared + (y - y0) * s.left_pitch + (x - x0),
                 shared + s.rights_at + (y + sy - right_row) * s.right_pitch + (x + sx - right_col),
                 s.right_pitch, count);
      }
    }
  }

  warp::barrier();
  const float sum = tile.reduce();
  const int element = tile.element();
  const int row = sy + element / kCols - q.first_sy, col = sx + element % kCols - q.first_sx;
  if (works && lane % tile.kCopies == 0 && row >= 0 && row < q.out_rows && col >= 0 &&
      col < q.out_cols) {
    out[pair * q.out_size + static_cast<Index>(row) * q.out_cols + col] = sum;
  }
}

using Kernel = void (*)(DeviceProblem, Shares, const float*, const float*, float*);
struct Tile {
  const char* name;
  int rows, cols;
  Kernel kernel;
};
const std::array<Tile, 3> kTiles = {Tile{"2x4", 2, 4, tiled_direct_split_kernel<2, 4>},
                                    Tile{"4x4", 4, 4, tiled_direct_split_kernel<4, 4>},
                                    Tile{"4x8", 4, 8, tiled_direct_split_kernel<4, 8>}};

// What a point makes of a problem.
struct Launch {
  Launch(const PlanRequest& request, std::size_t shared_limit)
      : q(request.problem), tile(*std::find_if(kTiles.begin(), kTiles.end(), [&](const Tile& t) {
          return t.name == request.params.get("overlap_tile");
        })) {
    s.warps_log = log2_up(request.params.get_int("warps_per_block"));
    s.warp_cols_log = s.warps_log - s.warps_log / 2;
    s.row_lanes_log = std::min(5, log2_up(q.left.rows));
    s.sy_base = static_cast<int>(q.window.sy.first);
    // A multiple of a chunk, so that both matrices are read in whole ones.
    s.sx_base = chunk_down(static_cast<int>(q.window.sx.first));
    s.left_aligned = q.left.cols % kChunk == 0;
    s.right_aligned = q.right.cols % kChunk == 0;
    s.rights = Divider(rights_of_a_left(q));
    s.rights_back = static_cast<std::uint32_t>(q.form == Form::n_to_m ? q.rights : 0);
    const Index rows = q.window.sy.last + 1 - s.sy_base, cols = q.window.sx.last + 1 - s.sx_base;
    // All of both matrices, or panels of them and the tiles of a region.
    s.dealt = true;
    shared_bytes = bytes(q.left.rows, q.left.cols, rows, cols);
    if (shared_bytes > kMostDealt || shared_bytes > shared_limit) {
      s.dealt = false;
      choose_panels(shared_limit);
    }
    const int down_log = s.dealt ? 0 : s.warps_log - s.warp_cols_log;
    const int across_log = s.dealt ? 0 : s.warp_cols_log;
    s.tile_rows = static_cast<int>(ceil_div<Index>(rows, tile.rows << down_log));
    s.tile_cols = static_cast<int>(ceil_div<Index>(cols, tile.cols << across_log));
    const auto centre = [](const Shifts& shifts, Index left, Index right, int base, int step) {
      return static_cast<int>((std::clamp((right - left) / 2, shifts.first, shifts.last) - base) /
                              step);
    };
    s.centre_row = centre(q.window.sy, q.left.rows, q.right.rows, s.sy_base, tile.rows << down_log);
    s.centre_col =
        centre(q.window.sx, q.left.cols, q.right.cols, s.sx_base, tile.cols << across_log);
    const Index tiles = static_cast<Index>(s.tile_rows) * s.tile_cols;
    const Index of_a_pair = s.dealt ? ceil_div(tiles, Index{1} << s.warps_log) : tiles;
    s.blocks = Divider(of_a_pair);
    s.cols = Divider(s.tile_cols);
    while (2 << s.round_log << s.warps_log <= s.tile_rows) ++s.round_log;
    blocks = of_a_pair * q.pairs();
  }

  // Of a panel of the left matrix, and a region of shifts.
  std::size_t bytes(Index rows, Index cols, Index region_rows, Index region_cols) {
    // An odd number of chunks, so that neighbouring rows do not meet in a bank.
    const auto pitch = [](Index cols) { return (cols / kChunk | 1) * kChunk; };
    cols = ceil_div<Index>(cols, kChunk) * kChunk;
    region_cols = ceil_div<Index>(region_cols, tile.cols) * tile.cols;
    region_rows = ceil_div<Index>(region_rows, tile.rows) * tile.rows;
    const Index whole = ceil_div<Index>(q.right.cols, kChunk) * kChunk + 2 * tile.cols;
    const Index right_cols = std::min(cols + region_cols, whole);
    const Index right_rows = std::min(rows + region_rows - 1, q.right.rows + 2 * (tile.rows - 1));
    s.panel_rows = static_cast<int>(rows);
    s.panel_cols = static_cast<int>(cols);
    s.left_pitch = static_cast<int>(pitch(cols));
    s.right_pitch = static_cast<int>(pitch(right_cols));
    s.left_chunks = Divider(cols / kChunk);
    s.right_chunks = Divider(right_cols / kChunk);
    const Index rights_at = rows * s.left_pitch;
    s.rights_at = static_cast<int>(rights_at);
    return static_cast<std::size_t>(rights_at + right_rows * s.right_pitch) * sizeof(float);
  }

  void choose_panels(std::size_t shared_limit) {
    constexpr std::size_t kReserved = 1024;  // of each block, by the system
    constexpr Index kMost = 2048;
    const std::size_t most = shared_limit / kResident - kReserved;
    const Index region_rows = Index{tile.rows} << (s.warps_log - s.warp_cols_log);
    const Index region_cols = Index{tile.cols} << s.warp_cols_log;
    Index rows = std::min(q.left.rows, kMost), cols = std::min(q.left.cols, kMost);
    while ((shared_bytes = bytes(rows, cols, region_rows, region_cols)) > most) {
      // Panels about as wide as high share most of what they stage.
      (cols >= rows ? cols : rows) = ceil_div<Index>(std::max(rows, cols), 2);
    }
  }

  static constexpr std::size_t kMostDealt = 56 * 1024;
  static constexpr std::size_t kResident = 4;
  Problem q;
  Tile tile;
  Shares s = {};
  Index blocks = 0;
  std::size_t shared_bytes = 0;
};

class SplitPlan final : public Plan {
 public:
  explicit SplitPlan(const PlanRequest& request) : launch_(request, shared_limit()) {}

  void compute(const Call& call) override {
    launch(launch_.tile.kernel, dim3(static_cast<unsigned>(launch_.blocks)),
           dim3(static_cast<unsigned>(warp::kSize << launch_.s.warps_log)), launch_.shared_bytes,
           call.stream, DeviceProblem(launch_.q), launch_.s, call.lefts<float>(),
           call.rights<float>(), call.outs<float>());
  }

 private:
  Launch launch_;
};

Support supports(const PlanRequest& request) {
  if (const Support steps = steps_fit(request.problem); !steps) return steps;
  constexpr std::size_t kEveryDevice = 48 * 1024;
  if (Launch(request, kEveryDevice).blocks > (Index{1} << 31) - 1) {
    return no("more than 2^31 - 1 blocks");
  }
  return yes();
}

XCORR_VARIANT({
    .summary = "A warp has one small tile of shifts, its lanes different left rows",
    .parent = "tiled_direct",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .axes = {{"overlap_tile", {"2x4", "4x4", "4x8"}, true}, {"warps_per_block", {"4", "8", "16"}}},
    .supports = supports,
    .plan = [](const PlanRequest& request) -> std::unique_ptr<Plan> {
      return std::make_unique<SplitPlan>(request);
    },
});

}  // namespace
}  // namespace xcorr
