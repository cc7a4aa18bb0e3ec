// tiled_direct for few pairs: the work of a tile of shifts is split over 32 or 8 lanes, in one
// launch and without atomics. Each lane takes 4 left columns and a part of the overlapping rows. It
// walks down these rows and keeps the matching right rows in registers. Shuffles add the sums of
// the lanes in a fixed order, so that results have the same bits in every run. Beyond the paper.
//
// The fewer columns of a tile overlap, the more of its lanes take different rows, so that lanes
// have equal work. A warp of four tiles has the mirror images of one tile, whose overlaps have
// equal size. Neighbouring tiles go to different blocks, so that every block has tiles of all
// sizes. Each block stages a whole pair with asynchronous copies, with zeros around the right
// matrix.
//
// Parameters:
//   overlap_tile     2x4, 4x4 and 4x8 have 11, 21 and 32 FMAs for each access of 16 bytes; at 64 x
//                    64 there are 2048, 1024 and 512 tiles
//   lanes_per_tile   of tile 4x4 (2x4 has 32, 4x8 has 8): 16 shuffles for one tile, or 14 for four
//   warps_per_block  more warps share the staged matrices; fewer warps use more SMs
// Limits: a pair fits into the shared memory of a block; at most 65535 pairs; an infinity or a NaN
// may reach outputs whose overlaps do not contain it.
// Measured (H200, one pair of 64 x 64): the FMA pipe is busy in 35 % of the cycles, instructions
// are issued in 61 %.
#include <algorithm>
#include <array>

#include "algorithms/blocks/divide.hpp"
#include "algorithms/blocks/overlap_geometry.hpp"
#include "algorithms/blocks/plan.hpp"
#include "algorithms/device/memory.hpp"
#include "algorithms/tiled/chunks.hpp"
#include "harness/variant.hpp"

namespace xcorr::tiled {
namespace {

constexpr int kMostWarps = 16;

// The division of a problem among warps and blocks. Set on the host, passed to the kernel by value.
struct Shares : Extents {
  using Extents::Extents;
  int sy_base = 0, sx_base = 0;      // shift of the first tile
  int tile_rows = 0, tile_cols = 0;  // tiles in the window
  int units = 0;                     // per pair: tiles, or groups of four tiles
  Divider unit_cols, rights_per_left;
  std::uint32_t rights_back = 0;  // n-to-m: the rights start again for each left
  // Threads of a block; chunks of a staged row.
  int threads_log = 0, left_width_log = 0, right_width_log = 0;
  int left_pitch = 0, right_pitch = 0, rights_at = 0;  // in shared memory
  bool left_aligned = false, right_aligned = false;
};

// Stages rows x cols elements with halo rows and columns of zeros around them. Each thread has one
// column of chunks.
template <int kHaloRows, int kHaloCols, int kFloats>
__device__ __forceinline__ void stage(float* shared, int pitch, const float* matrix, int rows,
                                      int cols, int width_log, int thread, int threads_log) {
  const int col = (thread & ((1 << width_log) - 1)) * kChunk, y = thread >> width_log;
  const int step = 1 << (threads_log - width_log);
  if (col < cols) {
    const float* from = matrix + y * cols + col;
    float* to = shared + (y + kHaloRows) * pitch + kHaloCols + col;
#pragma unroll 4
    for (int row = y; row < rows; row += step) {
#pragma unroll
      for (int i = 0; i < kChunk; i += kFloats) {
        const bool exists = kFloats == kChunk || col + i < cols;
        async_copy::copy<kFloats>(to + i, exists ? from + i : matrix, exists);
      }
      from += step * cols;
      to += step * pitch;
    }
  }
  if constexpr (kHaloCols > 0) {
    const auto clear = [](float* chunk) { *reinterpret_cast<Chunk*>(chunk) = {}; };
    for (int n = thread * kChunk; n < kHaloRows * pitch; n += kChunk << threads_log) {
      clear(shared + n);
      clear(shared + (kHaloRows + rows) * pitch + n);
    }
    for (int row = thread; row < rows; row += 1 << threads_log) {
      float* const line = shared + (row + kHaloRows) * pitch;
#pragma unroll
      for (int i = 0; i < kHaloCols; i += kChunk) {
        clear(line + i);
        clear(line + pitch - kHaloCols + i);
      }
    }
  }
}

// Partial sums of a thread for kRows x kCols neighbouring shifts.
template <int kRows, int kCols, int kLanes>
class LaneTile {
 public:
  static constexpr int kSums = kRows * kCols;

  // Adds `count` left rows of 4 columns, from `left` on. `right` points to the right row and column
  // of the first shift for the first of them. All lanes of a warp take `steps` >= `count` steps.
  __device__ __forceinline__ void add(const float* left, int left_pitch, const float* right,
                                      int right_pitch, int count, int steps) {
    Chunk window[kSlots][kParts] = {};
    if (count > 0) {
#pragma unroll
      for (int i = 0; i < kRows - 1; ++i, right += right_pitch) load(right, window[i]);
    }
    int k = 0;
#pragma unroll 1
    for (; k + kSlots <= steps; k += kSlots) {
#pragma unroll
      for (int s = 0; s < kSlots; ++s) {
        step(left + s * left_pitch, right + s * right_pitch, k + s < count, s, window);
      }
      left += kSlots * left_pitch;
      right += kSlots * right_pitch;
    }
#pragma unroll
    for (int s = 0; s < kSlots - 1; ++s) {
      if (k + s >= steps) break;
      step(left + s * left_pitch, right + s * right_pitch, k + s < count, s, window);
    }
  }

  // Reduces the sums over the lanes in a fixed order and keeps sums element() to element() + kKept
  // - 1 of the tile. kCopies lanes have the same sums; first() is true in one of them.
  static constexpr int kKept = kSums > kLanes ? kSums / kLanes : 1;
  static constexpr int kCopies = kSums > kLanes ? 1 : kLanes / kSums;
  __device__ __forceinline__ void reduce(float (&kept)[kKept]) {
    reduce_halving<kSums, kLanes / 2>(sums_);
#pragma unroll
    for (int k = 0; k < kKept; ++k) kept[k] = sums_[k];
  }
  static __device__ __forceinline__ int element() {
    return warp::lane() % kLanes / kCopies * kKept;
  }
  static __device__ __forceinline__ bool first() { return warp::lane() % kCopies == 0; }

 private:
  static constexpr int kParts = kCols / kChunk + 1;  // chunks per window
  static constexpr int kSlots = 4;                   // right rows kept in registers
  static_assert(kRows <= kSlots);

  static __device__ __forceinline__ void load(const float* right, Chunk (&parts)[kParts]) {
#pragma unroll
    for (int v = 0; v < kParts; ++v) parts[v] = load_chunk(right + v * kChunk);
  }

  __device__ __forceinline__ void step(const float* left, const float* right, bool exists, int s,
                                       Chunk (&window)[kSlots][kParts]) {
    Chunk row = {};
    if (exists) {
      row = load_chunk(left);
      load(right, window[(s + kRows - 1) % kSlots]);
    }
#pragma unroll
    for (int dx = 0; dx < kChunk; ++dx) {
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
#pragma unroll
        for (int j = 0; j < kCols; ++j) {
          const int c = dx + j;
          sums_[i * kCols + j] += row.at[dx] * window[(s + i) % kSlots][c / kChunk].at[c % kChunk];
        }
      }
    }
  }

  float sums_[kSums] = {};
};

// The largest of `value` over the tiles of a warp.
template <int kLanes>
__device__ __forceinline__ int largest(int value) {
#pragma unroll
  for (int offset = kLanes; offset < warp::kSize; offset *= 2) {
    value = larger(value, warp::shuffle_xor(value, offset));
  }
  return value;
}

template <int kRows, int kCols, int kLanes>
__global__ void __launch_bounds__(kMostWarps* warp::kSize, 1)
    tiled_direct_split_kernel(Shares s, const float* __restrict__ left,
                              const float* __restrict__ right, float* __restrict__ out) {
  float* const shared = dynamic_shared<float>();
  const int thread = static_cast<int>(threadIdx.x), lane = warp::lane();
  const std::uint32_t pair = blockIdx.y;
  wait_for_previous();
  {
    const std::uint32_t l = s.rights_per_left.quotient(pair);
    const float* const matrix = left + static_cast<Index>(l) * (s.left_rows * s.left_cols);
    const float* const other =
        right + static_cast<Index>(pair - l * s.rights_back) * (s.right_rows * s.right_cols);
    if (s.left_aligned) {
      stage<0, 0, kChunk>(shared, s.left_pitch, matrix, s.left_rows, s.left_cols, s.left_width_log,
                          thread, s.threads_log);
    } else {
      stage<0, 0, 1>(shared, s.left_pitch, matrix, s.left_rows, s.left_cols, s.left_width_log,
                     thread, s.threads_log);
    }
    if (s.right_aligned) {
      stage<kRows - 1, kCols, kChunk>(shared + s.rights_at, s.right_pitch, other, s.right_rows,
                                      s.right_cols, s.right_width_log, thread, s.threads_log);
    } else {
      stage<kRows - 1, kCols, 1>(shared + s.rights_at, s.right_pitch, other, s.right_rows,
                                 s.right_cols, s.right_width_log, thread, s.threads_log);
    }
    async_copy::commit();
  }

  // While the copies are in flight: positions of the warp's tiles, which are mirror images of one
  // tile.
  std::uint32_t rank = static_cast<std::uint32_t>(thread / warp::kSize) * gridDim.x + blockIdx.x;
  bool works = static_cast<int>(rank) < s.units;
  int row = static_cast<int>(s.unit_cols.split(rank)), col = static_cast<int>(rank);
  if constexpr (kLanes < warp::kSize) {
    static_assert(warp::kSize / kLanes == 4);
    const int other_row = s.tile_rows - 1 - row, other_col = s.tile_cols - 1 - col;
    const bool down = (lane & kLanes) != 0, across = (lane & 2 * kLanes) != 0;
    works = works && !(down && other_row == row) && !(across && other_col == col);
    row = down ? other_row : row;
    col = across ? other_col : col;
  }
  const int sy = s.sy_base + row * kRows, sx = s.sx_base + col * kCols;
  const int first_row = larger(0, 1 - kRows - sy);
  const int rows = smaller(s.left_rows, s.right_rows - sy) - first_row;
  const int first_chunk = larger(0, 1 - kCols - sx) / kChunk;
  const int end_chunk = chunk_up(smaller(s.left_cols, s.right_cols - sx)) / kChunk;
  // 2^cols_log lanes of a tile take different columns, the others different rows.
  const int most_chunks = largest<kLanes>(end_chunk - first_chunk);
  int cols_log = 0;
#pragma unroll
  for (int n = 1; n < kLanes; n *= 2) cols_log += most_chunks > n;
  const int rows_log = log2(kLanes) - cols_log;
  const int steps = (largest<kLanes>(rows) + (1 << rows_log) - 1) >> rows_log;
  const int my_row = lane % kLanes >> cols_log, my_col = lane & ((1 << cols_log) - 1);
  const int begin = my_row * ((rows + (1 << rows_log) - 1) >> rows_log);
  const int count = works ? smaller((rows + (1 << rows_log) - 1) >> rows_log, rows - begin) : 0;
  const float* my_left =
      shared + (first_row + begin) * s.left_pitch + (first_chunk + my_col) * kChunk;
  const float* my_right = shared + s.rights_at +
                          (first_row + begin + sy + kRows - 1) * s.right_pitch +
                          (first_chunk + my_col) * kChunk + sx + kCols;

  async_copy::wait();
  block::barrier();
  LaneTile<kRows, kCols, kLanes> tile;
#pragma unroll 1
  for (int chunk = 0; chunk < most_chunks; chunk += 1 << cols_log) {
    const bool exists = first_chunk + chunk + my_col < end_chunk;
    tile.add(my_left + chunk * kChunk, s.left_pitch, my_right + chunk * kChunk, s.right_pitch,
             exists ? count : 0, steps);
  }

  let_next_start();
  float kept[tile.kKept];
  tile.reduce(kept);
  const int out_row = sy + tile.element() / kCols - s.first_sy;
  const int out_col = sx + tile.element() % kCols - s.first_sx;
  if (!works || !tile.first() ||
      static_cast<unsigned>(out_row) >= static_cast<unsigned>(s.out_rows)) {
    return;
  }
  float* const line =
      out + (static_cast<Index>(pair) * s.out_rows + out_row) * s.out_cols + out_col;
#pragma unroll
  for (int k = 0; k < tile.kKept; ++k) {
    if (static_cast<unsigned>(out_col + k) < static_cast<unsigned>(s.out_cols)) line[k] = kept[k];
  }
}

using Kernel = void (*)(Shares, const float*, const float*, float*);
struct SplitKernel {
  const char *tile, *lanes;
  int rows, cols, images_log;  // log2 of the tiles per warp along rows, and along columns
  Kernel kernel;
};
template <int kRows, int kCols, int kLanes>
SplitKernel make_kernel(const char* tile, const char* lanes) {
  constexpr int kImagesLog = kLanes < warp::kSize;
  return {tile, lanes, kRows, kCols, kImagesLog, tiled_direct_split_kernel<kRows, kCols, kLanes>};
}
const std::array<SplitKernel, 4> kKernels = {
    make_kernel<2, 4, 32>("2x4", ""), make_kernel<4, 4, 32>("4x4", "32"),
    make_kernel<4, 4, 8>("4x4", "8"), make_kernel<4, 8, 8>("4x8", "")};
const SplitKernel& kernel_of(const Params& params) {
  return *std::find_if(kKernels.begin(), kKernels.end(), [&](const SplitKernel& one) {
    return one.tile == params.get("overlap_tile") &&
           (!params.has("lanes_per_tile") || one.lanes == params.get("lanes_per_tile"));
  });
}

// The division of a problem for a point.
struct SplitWork {
  explicit SplitWork(const PlanRequest& request)
      : kernel(kernel_of(request.params)), s(request.problem) {
    const Problem& q = request.problem;
    const auto pitch = [](Index cols) { return ceil_div<Index>(cols, kChunk) * kChunk; };
    const Index left_pitch = pitch(q.left.cols);
    const Index right_pitch = pitch(q.right.cols) + 2 * kernel.cols;
    const Index rights_at = q.left.rows * left_pitch;
    const Index floats = rights_at + (q.right.rows + 2 * (kernel.rows - 1)) * right_pitch;
    shared_bytes = static_cast<std::size_t>(floats) * sizeof(float);
    s.threads_log = 5 + log2_up(request.params.get_int("warps_per_block"));
    s.left_width_log = log2_up(left_pitch / kChunk);
    s.right_width_log = log2_up(pitch(q.right.cols) / kChunk);
    fits = s.left_width_log <= s.threads_log && s.right_width_log <= s.threads_log;
    if (shared_bytes > 1 << 20) return;  // more than any device has
    s.sy_base = s.first_sy;
    // A multiple of a chunk, so that both matrices are read in whole chunks.
    s.sx_base = chunk_down(s.first_sx);
    s.tile_rows = ceil_div(static_cast<int>(q.window.sy.last) + 1 - s.sy_base, kernel.rows);
    s.tile_cols = ceil_div(static_cast<int>(q.window.sx.last) + 1 - s.sx_base, kernel.cols);
    const int unit_rows = (s.tile_rows + kernel.images_log) >> kernel.images_log;
    const int unit_cols = (s.tile_cols + kernel.images_log) >> kernel.images_log;
    s.unit_cols = Divider(unit_cols);
    s.units = unit_rows * unit_cols;
    s.rights_per_left = Divider(rights_of_a_left(q));
    s.rights_back = static_cast<std::uint32_t>(rights_back(q));
    s.left_pitch = static_cast<int>(left_pitch);
    s.right_pitch = static_cast<int>(right_pitch);
    s.rights_at = static_cast<int>(rights_at);
    s.left_aligned = q.left.cols % kChunk == 0;
    s.right_aligned = q.right.cols % kChunk == 0;
    blocks = ceil_div(s.units, 1 << (s.threads_log - 5));
  }

  SplitKernel kernel;
  Shares s;
  bool fits;  // each row has at most as many chunks as a block has threads
  int blocks = 0;
  std::size_t shared_bytes;
};

class SplitPlan final : public DevicePlan<float> {
 public:
  explicit SplitPlan(const PlanRequest& request) : DevicePlan(request.problem), work_(request) {}

 private:
  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    const dim3 grid(static_cast<unsigned>(work_.blocks), static_cast<unsigned>(problem_.pairs()));
    launches_.begin(call);
    launches_.run(work_.kernel.kernel, grid, dim3(1U << work_.s.threads_log), work_.shared_bytes,
                  call.stream, work_.s, arrays.left, arrays.right, arrays.out);
  }

  DependentLaunches launches_;
  SplitWork work_;
};

Support supports(const PlanRequest& request) {
  const Problem& q = request.problem;
  if (const Support steps = steps_fit(q); !steps) return steps;
  if (q.pairs() > kGridLimitYZ) {
    return no("more than " + std::to_string(kGridLimitYZ) + " pairs");
  }
  const SplitWork work(request);
  if (!work.fits) return no("a row has more chunks than a block has threads");
  return shared_fits("a pair", work.shared_bytes);
}

XCORR_VARIANT({
    .summary = "A tile of shifts has 32 or 8 lanes, each with other left columns and rows",
    .parent = "tiled_direct",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .axes = {{"overlap_tile", {"2x4", "4x4", "4x8"}, true},
             {"lanes_per_tile", {"32", "8"}, true},
             {"warps_per_block", {"4", "8", "16"}}},
    .drops = {{"overlap_tile", "2x4", "lanes_per_tile"}, {"overlap_tile", "4x8", "lanes_per_tile"}},
    .supports = supports,
    .plan = make_plan<SplitPlan>,
});

}  // namespace
}  // namespace xcorr::tiled
