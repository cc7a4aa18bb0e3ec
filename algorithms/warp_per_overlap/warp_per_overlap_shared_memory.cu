// Warp-per-overlap with shared memory (thesis 3.6.3 to 3.6.6): derived from warp_per_overlap, where
// each product needs two loads from global memory. The warps of a block take vertically adjacent
// outputs, whose overlaps have the same columns and almost the same rows. Therefore they share
// tiles of both matrices in shared memory.
//
// A tile has at least as many rows as the block has warps. Warp k computes shift sy + k: its right
// row y is multiplied with left row y - sy - k. A tile of right rows therefore needs the left rows
// of two tiles: a ring, of which each step replaces one tile. Both tiles are stored without gaps
// between rows and from the same column of the overlap on, so that the products of a warp and a
// step are those of two contiguous vectors, read 8 or 16 bytes per lane. Several right matrices
// (thesis 3.6.5) share the left tile.
//
// Parameters:
//   right_mats_per_block    r: 1 + r loads for r products, and r times the registers for sums;
//                           above 1 only where a left matrix has several rights
//   overlaps_per_block      warps of a block; with more, each staged value is read by more warps,
//                           and there are fewer blocks
//   shmem_row               most columns of a tile; an overlap is cut into slabs of about this
//                           width, and wider ones need fewer barriers
//   shmem_rows              rows of a tile. A point without it has as many as the block has warps,
//                           as all points of the published artifact. More rows need fewer barriers
//                           and more shared memory. Only with strided_load = 1, otherwise a warp
//                           stages one row, and with column_group_per_block = 1, which keeps the
//                           grid small
//   strided_load            1: all threads of a block stage consecutive elements in turn; 0: each
//                           warp stages one row (thesis 3.6.4)
//   column_group_per_block  1: a block has one slab, and the sums of slabs are added atomically to
//                           a cleared output (3.6.6)
// Limits: those of warp_per_overlap; shmem_rows is more than the block has warps, and half of it is
// less than the right matrix has rows; 2 + r tiles fit into the shared memory of a block; at most
// 2^31 - 1 elements in a matrix.
// Measured (H200, one-to-one, 128 x 128, 32 overlaps, rows of 128): 10 instructions of a warp for
// each FMA, issued in 74 % of the cycles. The shared-memory pipe is busy in 69 %, the FMA pipe in
// 24 %: the two loads from shared memory per product are the limit.
#include <algorithm>

#include "algorithms/blocks/plan.hpp"
#include "algorithms/blocks/points.hpp"
#include "algorithms/warp_per_overlap/overlap_tasks.hpp"
#include "harness/variant.hpp"

namespace xcorr::warp_per_overlap {
namespace {

constexpr int kWide = 4;  // floats of the widest access; rows of a tile are aligned to it
template <int kCount>
struct alignas(sizeof(float) * kCount) Vector {
  float at[kCount];
};
using RightMats = PointAxis<Values<1, 2, 4, 8>>;

__host__ __device__ constexpr int round_up(int cols) { return (cols + kWide - 1) / kWide * kWide; }

// The slabs of an overlap: as few as possible, of equal width except for the last.
struct Slabs {
  __device__ __forceinline__ Slabs(int cols, int most_log) {
    count = (cols + (1 << most_log) - 1) >> most_log;
    width = round_up(count == 1 ? cols : ceil_div(cols, count));
  }
  int count, width;
};

// The division into tiles and slabs. Set on the host.
struct Staging {
  int rows_per_warp;  // rows of a tile over warps of a block
  int shmem_row_log;
  bool strided, slab_per_block;
  unsigned tasks;  // groups of pairs, times the slabs of the widest overlap if each has a block
  Divider slabs;   // slabs of the widest overlap if each gets a block, else 1
  Divider groups_of_a_left;
};

// The elements of a tile that a thread stages, the same in all tiles. It starts at (y, x) and steps
// by (dy, dx), one row further if x passes `wrap`. In shared memory it starts at `at`, steps by
// `step` and ends below `end`.
struct StagingWalk {
  int y, x, dy, dx, wrap, at, step, end;
};

// The source of the tiles of a slab: first columns, and the number of columns without padding.
struct SlabColumns {
  int left, right, count;
};

template <int kRights>
class SharedTiles {
 public:
  static constexpr int kParts = kRights < 4 ? 2 : 1;  // independent sums

  // Rows of a tile, and columns with padding, a multiple of kWide.
  __device__ __forceinline__ SharedTiles(int rows, int rows_per_warp, int pitch)
      : pitch_(pitch),
        tile_(rows * pitch),
        per_warp_(rows_per_warp * pitch),
        left_(dynamic_shared<float>()) {}

  __device__ __forceinline__ StagingWalk walk(bool strided) const {
    const int warp = static_cast<int>(threadIdx.y), lane = warp::lane();
    if (!strided) {
      constexpr int kNever = 1 << 30;
      const int at = warp * pitch_;
      return {warp, lane, 0, warp::kSize, kNever, at + lane, warp::kSize, at + pitch_};
    }
    const int thread = warp * warp::kSize + lane;
    const int threads = static_cast<int>(blockDim.y) * warp::kSize;
    const auto pitch = static_cast<std::uint32_t>(pitch_);
    const int y = static_cast<int>(static_cast<std::uint32_t>(thread) / pitch);
    // A small tile needs no second step.
    const int dy = per_warp_ <= warp::kSize
                       ? 0
                       : static_cast<int>(static_cast<std::uint32_t>(threads) / pitch);
    const int dx = threads - dy * pitch_;
    return {y, thread - y * pitch_, dy, dx, pitch_, thread, threads, tile_};
  }

  // Stages a tile of left rows from ly on as half `half` of the ring, and one from ry on of kMats
  // right matrices (all or none). Elements outside a matrix and padding are zero.
  template <int kMats>
  __device__ __forceinline__ void stage(StagingWalk walk, const PairGroup<float>& pairs, int half,
                                        int ly, int ry, const SlabColumns& columns) const {
    const MatrixRun<float>&lefts = pairs.lefts, &rights = pairs.rights;
    float* const left = left_ + half * tile_;
    float* const right = left_ + 2 * tile_;
#pragma unroll 1
    for (int rest = per_warp_;;) {
      const bool inside = walk.x < columns.count;
      const float l = element(lefts, lefts.first, inside, ly + walk.y, columns.left + walk.x);
      float r[kMats + 1];
      const float* matrix = rights.first;
#pragma unroll
      for (int k = 0; k < kMats; ++k) {
        r[k] = element(rights, matrix, inside, ry + walk.y, columns.right + walk.x);
        if (k + 1 < rights.count) matrix += rights.size;  // a missing matrix: the last again
      }
      if (walk.at < walk.end) {
        left[walk.at] = l;
#pragma unroll
        for (int k = 0; k < kMats; ++k) right[k * tile_ + walk.at] = r[k];
      }
      rest -= warp::kSize;
      if (rest <= 0) return;
      walk.at += walk.step;
      walk.x += walk.dx;
      walk.y += walk.dy;
      if (walk.x >= walk.wrap) {
        walk.x -= pitch_;
        ++walk.y;
      }
    }
  }

  // Adds the products of rows [begin, end) of the right tile with the left rows that are `up` rows
  // above the same rows of half `half`.
  __device__ __forceinline__ void add(int half, int up, int begin, int end,
                                      float (&sums)[kRights][kParts]) const {
    const int shift = half * tile_ - up * pitch_;
#pragma unroll 1
    for (int i = begin * pitch_ + warp::lane() * kRead; i < end * pitch_;
         i += warp::kSize * kRead) {
      const int at = i + shift;
      const Read l = read(left_ + (at < 0 ? at + 2 * tile_ : at));
#pragma unroll
      for (int m = 0; m < kRights; ++m) {
        const Read r = read(left_ + (2 + m) * tile_ + i);
#pragma unroll
        for (int j = 0; j < kRead; ++j) sums[m][j % kParts] += l.at[j] * r.at[j];
      }
    }
  }

 private:
  // Floats per read of a lane: as many as the registers allow.
  static constexpr int kRead = kRights < 8 ? kWide : kWide / 2;
  using Read = Vector<kRead>;
  static __device__ __forceinline__ Read read(const float* at) {
    return *reinterpret_cast<const Read*>(at);
  }

  // Offsets fit in 32 bits; see supports().
  static __device__ __forceinline__ float element(const MatrixRun<float>& m, const float* matrix,
                                                  bool inside, int y, int x) {
    const bool exists = inside && static_cast<unsigned>(y) < static_cast<unsigned>(m.rows);
    return exists ? matrix[static_cast<std::uint32_t>(y * m.cols + x)] : 0.0f;
  }

  int pitch_, tile_;
  int per_warp_;  // elements of a tile over warps
  float* left_;
};

template <int kRights>
__global__ void __launch_bounds__(kMostThreads, kRights == 1 ? 2 : 1)
    shared_memory_kernel(DeviceProblem q, Staging staging, const float* __restrict__ left,
                         const float* __restrict__ right, float* __restrict__ out) {
  using Tiles = SharedTiles<kRights>;
  const int warps = static_cast<int>(blockDim.y), warp = static_cast<int>(threadIdx.y);
  const int rows = staging.rows_per_warp * warps;
  const int col = static_cast<int>(blockIdx.x), sx = q.first_sx + col;
  const Span x(q.left_cols, q.right_cols, sx);
  const Slabs slabs(x.count, staging.shmem_row_log);
  for (unsigned task = blockIdx.z; task < staging.tasks; task += gridDim.z) {
    unsigned slab = task;
    const unsigned group = staging.slabs.split(slab);
    const int first = static_cast<int>(slab);
    if (first >= slabs.count) continue;
    const int end = staging.slab_per_block ? first + 1 : slabs.count;
    std::uint32_t r = group;
    const std::uint32_t l = staging.groups_of_a_left.split(r);
    PairGroup<float> pairs(q, static_cast<int>(l), static_cast<int>(r), 1, kRights, left, right);
    // Opaque: otherwise the pointers are computed again for each element.
    pairs.lefts.first = left + opaque(pairs.lefts.first - left);
    pairs.rights.first = right + opaque(pairs.rights.first - right);
    for (int row = static_cast<int>(blockIdx.y) * warps; row < q.out_rows;
         row += static_cast<int>(gridDim.y) * warps) {
      float sums[kRights][Tiles::kParts] = {};
      const int sy = q.first_sy + row, my_sy = sy + warp;
      const int live = q.out_rows - row < warps ? q.out_rows - row : warps;
      // Right rows of the whole block and of this warp.
      const Span all(q.left_rows + live - 1, q.right_rows, sy);
      const Span mine(q.left_rows, q.right_rows, my_sy);
      const int begin = all.first + sy, stop = begin + all.count;
      const int my_begin = mine.first + my_sy;
      const int my_end = warp < live ? my_begin + mine.count : my_begin;
      for (int n = first; n < end; ++n) {
        const int at = n * slabs.width;
        const int cols = x.count - at < slabs.width ? x.count - at : slabs.width;
        const Tiles tiles(rows, staging.rows_per_warp, round_up(cols));
        const StagingWalk walk = tiles.walk(staging.strided);
        const SlabColumns columns = {x.first + at, x.first + at + sx, cols};
        int half = 0;
        // The left rows before the first ones, for shifts further down.
        if (begin > sy) tiles.template stage<0>(walk, pairs, 1, begin - sy - rows, 0, columns);
        for (int y = begin; y < stop; y += rows, half ^= 1) {
          tiles.template stage<kRights>(walk, pairs, half, y - sy, y, columns);
          block::barrier();
          const int from = my_begin > y ? my_begin - y : 0;
          const int to = my_end - y < rows ? my_end - y : rows;
          tiles.add(half, warp, from, to, sums);
          block::barrier();
        }
      }
      float* const element =
          out + pairs.first_pair * q.out_size + static_cast<Index>(row + warp) * q.out_cols + col;
#pragma unroll
      for (int m = 0; m < kRights; ++m) {
        float sum = 0;
#pragma unroll
        for (int j = 0; j < Tiles::kParts; ++j) sum += sums[m][j];
        sum = warp::reduce_add(sum);
        if (warp::lane() != 0 || warp >= live || m >= pairs.rights.count) continue;
        if (end - first == slabs.count) {
          element[m * q.out_size] = sum;
        } else {
          atomic_add(element + m * q.out_size, sum);
        }
      }
    }
  }
}

using Kernel = void (*)(DeviceProblem, Staging, const float*, const float*, float*);
const bool kKernels = add_kernels<RightMats>(
    XCORR_ID, [](auto rights) -> Kernel { return shared_memory_kernel<rights()>; });

// The widest overlap of the window. It is at the shift nearest to those at which one matrix
// contains the other.
Index widest_overlap(const Problem& q) {
  const Shifts& sx = q.window.sx;
  const Index contained = std::min<Index>(0, q.right.cols - q.left.cols);
  return overlap(q.left.cols, q.right.cols, std::min(std::max(sx.first, contained), sx.last)).count;
}

// The division of a problem for a point.
struct SlabWork {
  explicit SlabWork(const PlanRequest& request) {
    const Problem& q = request.problem;
    const auto param = [&](const char* name) { return request.params.get_int(name); };
    const Index row = param("shmem_row"), widest = widest_overlap(q);
    rights = param("right_mats_per_block");
    warps = static_cast<int>(std::min<Index>(param("overlaps_per_block"), q.out_rows()));
    const int pitch = round_up(static_cast<int>(std::min(row, widest)));
    staging.rows_per_warp = 1;
    if (request.params.has("shmem_rows")) {
      // No more rows than are staged in all.
      const Index staged = std::min<Index>(q.right.rows, q.left.rows + warps - 1);
      const Index rows = std::min<Index>(param("shmem_rows"), staged);
      staging.rows_per_warp = static_cast<int>(ceil_div<Index>(rows, warps));
    }
    const int rows = staging.rows_per_warp * warps;
    shared_bytes = sizeof(float) * static_cast<std::size_t>((2 + rights) * rows * pitch);
    staging.strided = param("strided_load") == 1;
    staging.slab_per_block = param("column_group_per_block") == 1;
    while (1 << staging.shmem_row_log < row) ++staging.shmem_row_log;
    slabs = staging.slab_per_block ? ceil_div(widest, row) : 1;
    const Index groups = ceil_div<Index>(rights_of_a_left(q), rights);
    tasks = slabs * q.lefts * groups;
    staging.slabs = Divider(slabs);
    staging.groups_of_a_left = Divider(groups);
    staging.tasks = static_cast<unsigned>(tasks);
  }
  int rights, warps;
  std::size_t shared_bytes;
  Index slabs, tasks;
  Staging staging = {};
};

class SharedMemoryPlan final : public DevicePlan<float> {
 public:
  explicit SharedMemoryPlan(const PlanRequest& request)
      : SharedMemoryPlan(request.problem, SlabWork(request)) {}

 private:
  SharedMemoryPlan(const Problem& problem, const SlabWork& work)
      : DevicePlan(problem, work.slabs > 1),
        work_(work),
        kernel_(find_kernel<Kernel>(XCORR_ID, {work.rights})) {}

  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    const Problem& q = problem_;
    const dim3 grid(static_cast<unsigned>(q.out_cols()),
                    grid_extent(ceil_div<Index>(q.out_rows(), work_.warps)),
                    grid_extent(work_.tasks));
    launch(kernel_, grid, dim3(warp::kSize, static_cast<unsigned>(work_.warps)), work_.shared_bytes,
           call.stream, DeviceProblem(q), work_.staging, arrays.left, arrays.right, arrays.out);
  }

  SlabWork work_;
  Kernel kernel_;
};

Support supports(const PlanRequest& request) {
  const Problem& q = request.problem;
  if (const Support steps = steps_fit(q); !steps) return steps;
  const SlabWork work(request);
  if (work.rights > 1 && rights_of_a_left(q) == 1) {
    return no("right_mats_per_block=" + std::to_string(work.rights) +
              ": a left matrix has one right matrix");
  }
  if (request.params.has("shmem_rows")) {
    const Index rows = request.params.get_int("shmem_rows");
    const std::string point = "shmem_rows=" + std::to_string(rows);
    if (rows <= request.params.get_int("overlaps_per_block")) {
      return no(point + ": a block has as many warps; leave out shmem_rows");
    }
    if (rows / 2 >= q.right.rows) {
      return no(point + ": half of these rows hold the right matrix");
    }
  }
  if (work.tasks > kIndexLimit) return no("more than 2^31 - 1 slabs");
  if (std::max(q.left.size(), q.right.size()) > kIndexLimit) {
    return no("a matrix of more than 2^31 - 1 elements");
  }
  return shared_fits("tiles of the block", work.shared_bytes);
}

XCORR_VARIANT({
    .summary = "Warps of a block take outputs below each other and share tiles in shared memory",
    .parent = "warp_per_overlap",
    .source = "thesis 3.6.3-3.6.6",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::definition_atomic,
    .axes = {{"overlaps_per_block", {"8", "16", "32"}},
             {"shmem_row", {"32", "128", "256"}},
             {"shmem_rows", {"warps", "32", "64"}},
             {"strided_load", {"0", "1"}},
             {"column_group_per_block", {"0", "1"}},
             RightMats::axis("right_mats_per_block")},
    .drops = {{"shmem_rows", "warps", "shmem_rows"},
              {"strided_load", "0", "shmem_rows"},
              {"column_group_per_block", "0", "shmem_rows"}},
    .supports = supports,
    .plan = make_plan<SharedMemoryPlan>,
});

}  // namespace
}  // namespace xcorr::warp_per_overlap
