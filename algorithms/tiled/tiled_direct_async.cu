// tiled_direct that copies the next panel while it computes the current one. The copies are
// asynchronous (cp.async): from global to shared memory without a register, 16 bytes at a time if
// rows begin at multiples of 16 bytes, else 4. Outside a matrix a copy reads nothing and writes
// zeros. Beyond the paper.
//
// Left panels have two buffers. Right columns have a ring: the panel that begins c columns further
// needs the same right columns moved by c. Only the c new columns are copied, over columns that no
// panel needs any more. The first columns of the ring are stored again after its end, so that the
// window of a step is contiguous. A panel needs one barrier where tiled_direct needs two, and a
// block copies each right column once.
//
// A block waits for its first panel. Therefore panels have at most a quarter of the left columns,
// and at most 16. If the whole height does not fit with two blocks per SM, one block gets all
// shared memory.
//
// Parameters: as in tiled_direct. The ring of tile 8x4 is narrower than that of 4x8, so that its
// panels are wider. pairs_per_warp=32 stages 32 rights, in n-to-m 8. warps_across=1 has the
// narrowest ring.
// Limits: compute capability 8.0; an infinity or a NaN may reach outputs whose overlaps do not
// contain it.
// Measured (H200): 739 us for 1:32 at 128 x 128, where tiled_direct takes 1280 us. Its 122 (4x8)
// and 127 (8x4) registers leave two blocks on an SM.
#include <array>

#include "algorithms/tiled/async_staging.hpp"
#include "algorithms/tiled/tile_plan.hpp"
#include "algorithms/tiled/tile_walk.hpp"
#include "harness/variant.hpp"

namespace xcorr::tiled {
namespace {

constexpr int kResidentBlocks = 2;

template <int kRows, int kCols>
__global__ void __launch_bounds__(kTileThreads, kResidentBlocks)
    tiled_direct_async_kernel(DeviceProblem q, Tiling t, int ring, const float* __restrict__ left,
                              const float* __restrict__ right, float* __restrict__ out) {
  float* const shared = dynamic_shared<float>();
  const TileBlock block(t, blockIdx.x);
  const LanePairs pairs(q, t.pairs, block.group);
  const TilePosition<kRows, kCols> at(q, t, pairs, block, shared);

  auto [lefts, rights] = panel_sources(q, t, pairs, left, right);
  // The right columns that overlap the left columns from x0 on, and the end of a panel.
  const int pad_cols = at.col_lanes * kCols;
  const auto panel_end = [&](int x0) { return smaller(x0 + t.panel_cols, at.end_x); };
  const auto right_begin = [&](int x0) { return larger(x0 + at.block_sx, -pad_cols); };
  const auto right_end = [&](int x0) {
    return smaller(x0 + chunk_up(panel_end(x0) - x0) + at.block_sx + at.block_cols,
                   chunk_up(q.right_cols) + pad_cols);
  };
  RegisterTile<kRows, kCols> tile;
#pragma unroll 1
  for (int y0 = at.first_y; y0 < at.end_y; y0 += t.panel_rows) {
    const int y1 = smaller(y0 + t.panel_rows, at.end_y);
    lefts.first_row = y0;
    lefts.end_row = y1;
    const TileRows<kRows, kCols> rows(q, t, at, y0, y1);
    // Stages the panel at x0: its left columns, and its right columns from `col` on. Column `col`
    // is at `position` of the ring.
    const auto stage = [&](int x0, int buffer, int col, int position) {
      const int x1 = panel_end(x0);
      stage_async(lefts,
                  {{shared + buffer, t.left_stride, t.left_pitch, pairs.left_count,
                    y0 - (kRows - 1), y1 - y0 + 2 * (kRows - 1), x0, chunk_up(x1 - x0) / kChunk},
                   t.panel_cols,
                   0,
                   0},
                  at.thread, kTileThreads);
      stage_async(
          rights,
          {{shared + t.rights_at, t.right_stride, t.right_pitch, pairs.right_count, rows.right_row,
            rows.right_end - rows.right_row, col, (right_end(x0) - col) / kChunk},
           ring,
           position,
           t.right_pitch - ring},
          at.thread, kTileThreads);
      async_copy::commit();
    };
    const auto wrapped = [&](int position) { return position < ring ? position : position - ring; };
    if (y0 > at.first_y) block::barrier();
    int x0 = at.first_x, buffer = 0;
    int begin = 0;  // of the panel's right columns, in the ring
    if (x0 < at.end_x) stage(x0, buffer, right_begin(x0), begin);
#pragma unroll 1
    while (x0 < at.end_x) {
      async_copy::wait();
      block::barrier();
      // All copies of this panel are complete, and no thread reads the previous panel any more.
      const int next = x0 + t.panel_cols, next_buffer = t.rights_at / 2 - buffer;
      if (next < at.end_x) {
        const int col = right_end(x0);
        stage(next, next_buffer, col, wrapped(begin + col - right_begin(x0)));
      }
      if (at.works && rows.steps > 0) {
        const int to_ring = begin + at.my_sx - right_begin(x0);
        rows.add(tile, q, at, x0, panel_end(x0), rows.left + buffer,
                 [&](int x) { return rows.right + wrapped(x + to_ring); });
      }
      begin = wrapped(begin + right_begin(next) - right_begin(x0));
      x0 = next;
      buffer = next_buffer;
    }
  }
  write_tiles(q, t, pairs, at, tile, shared, out);
}

using Kernel = void (*)(DeviceProblem, Tiling, int, const float*, const float*, float*);
const std::array<TileKernel<Kernel>, 2> kKernels = {{
    {"4x8", {4, 8, kResidentBlocks}, tiled_direct_async_kernel<4, 8>},
    {"8x4", {8, 4, kResidentBlocks}, tiled_direct_async_kernel<8, 4>},
}};

class AsyncPlan final : public DevicePlan<float> {
 public:
  explicit AsyncPlan(const PlanRequest& request)
      : DevicePlan(request.problem),
        kernel_(kernel_of(kKernels, request)),
        tiles_(request, kernel_.shape, Panels::sliding, shared_limit()) {}

 private:
  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    launch(kernel_.kernel, dim3(static_cast<unsigned>(tiles_.blocks)), dim3(kTileThreads),
           tiles_.shared_bytes, call.stream, DeviceProblem(problem_), tiles_.t, tiles_.ring_cols,
           arrays.left, arrays.right, arrays.out);
  }

  TileKernel<Kernel> kernel_;
  TilePlan tiles_;
};

Support supports(const PlanRequest& request) {
  if (!async_copy::supported()) return no("asynchronous copies need compute capability 8.0");
  if (const Support fit = one_sum_fits(request); !fit) return fit;
  return TilePlan::supports(request, kernel_of(kKernels, request).shape, Panels::sliding);
}

XCORR_VARIANT({
    .summary =
        "Register tiles whose panels arrive by asynchronous copies while others are computed",
    .parent = "tiled_direct",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .axes = {{"overlap_tile", {"4x8", "8x4"}, true},
             {"pairs_per_warp", {"1", "8", "32"}},
             {"warps_across", {"1", "4", "8"}}},
    .supports = supports,
    .plan = make_plan<AsyncPlan>,
});

}  // namespace
}  // namespace xcorr::tiled
