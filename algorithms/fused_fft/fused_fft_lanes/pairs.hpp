// All pairs of an n-to-m problem in one kernel, for fused_fft_lanes: products of spectra and their
// inverse transforms, as tasks that blocks take from a list.
//
// A batch has as many pairs as a block has lane groups for columns. It has one task for each
// column, which processes the column of all its pairs, and one task for each group of complex rows
// of each image. The list alternates between the two kinds, and row tasks come `lag` entries later.
// Images of batches lie in a ring. A row task needs all columns of its batch. A column task needs
// that all rows of the batch that used its images before are done. Counters show this. What a task
// needs comes before it in the list, so a block has taken it already: no block waits for a task
// that has not begun, however many blocks there are.
#pragma once

#include <algorithm>
#include <type_traits>

#include "algorithms/device/memory.hpp"
#include "algorithms/fused_fft/fused_fft_lanes/arguments.hpp"
#include "algorithms/fused_fft/fused_fft_lanes/columns.hpp"
#include "algorithms/fused_fft/fused_fft_lanes/rows.hpp"
#include "algorithms/fused_fft/fused_fft_lanes/transforms.hpp"
#include "algorithms/fused_fft/fused_fft_lanes/tuning.hpp"

namespace xcorr::fused_fft {

// A task of pairs_kernel. ready: what the task needs was complete when the task was taken.
struct alignas(16) PairTask {
  enum Kind : std::uint32_t { columns, rows, none };
  Kind kind;
  std::uint32_t ready, batch, number;
  std::uint32_t first_left, first_right, first_image;  // of the batch

  // The counter that the end of the task increments; the counter that it waits for.
  __device__ __forceinline__ std::uint32_t* done(const LanesArguments& a) const {
    return (kind == rows ? a.rows_done : a.columns_done) + batch;
  }
  __device__ __forceinline__ const std::uint32_t* needed(const LanesArguments& a) const {
    return kind == rows ? a.columns_done + batch : a.rows_done + (batch - a.ring);
  }
  __device__ __forceinline__ std::uint32_t needed_count(const LanesArguments& a) const {
    return kind == rows ? a.column_tasks : a.row_tasks;
  }
  // Whether the task can begin. The block must meet a barrier afterwards.
  __device__ __forceinline__ bool can_begin(const LanesArguments& a) const {
    const std::uint32_t* const counter = needed(a);
    const std::uint32_t count = needed_count(a);
    return load_acquire(counter) >= count;
  }
};
inline constexpr std::uint32_t kBand = 4;
// Takes the next task of the list and skips the entries that pad the shorter kind of task.
__device__ __forceinline__ void fetch(PairTask& task, const LanesArguments& a) {
  const std::uint32_t all = a.batches * a.of_batch, both = 2 * (all - a.lag);
  for (;;) {
    const std::uint32_t t = atomic_add(a.counters, 1u), u = t - a.lag;
    task.kind = PairTask::none;
    task.ready = 0;
    if (t >= 2 * all) return;
    const bool is_rows = t >= a.lag && (u >= both || u % 2 == 1);
    const std::uint32_t i = t < a.lag   ? t
                            : u >= both ? all - a.lag + (u - both)
                            : is_rows   ? u / 2
                                        : a.lag + u / 2;
    const std::uint32_t batch = i / a.of_batch, number = i - batch * a.of_batch;
    if (number >= (is_rows ? a.row_tasks : a.column_tasks)) continue;
    // Batches are ordered in bands of kBand rows of batches, and within a band column by column:
    // the lefts of a band stay in the L2 cache, and rights are read from memory once per band.
    const std::uint32_t band = batch / (kBand * a.batches_across);
    const std::uint32_t in_band = batch - band * kBand * a.batches_across;
    const std::uint32_t height =
        a.batches_down - band * kBand < kBand ? a.batches_down - band * kBand : kBand;
    const std::uint32_t across = in_band / height;
    const std::uint32_t down = band * kBand + in_band - across * height;
    task.kind = is_rows ? PairTask::rows : PairTask::columns;
    task.batch = batch;
    task.number = number;
    task.first_left = down << a.log_lefts;
    task.first_right = across << a.log_rights;
    task.first_image = (batch % a.ring) << (a.log_lefts + a.log_rights);
    const bool needs = is_rows || batch >= a.ring;
    task.ready = !needs || task.can_begin(a) ? 1 : 0;
    return;
  }
}

template <typename Y, typename X>
struct PairsShape {
  static constexpr int blocks = LanesTuning::blocks(Y::values) < LanesTuning::blocks(X::values)
                                    ? LanesTuning::blocks(Y::values)
                                    : LanesTuning::blocks(X::values);
  static constexpr int buffers_y = Y::of_block * Y::buffer, buffers_x = X::of_block * X::buffer;
  static constexpr int buffers = std::max(buffers_y, buffers_x);
  // Offset from the table of y.
  static constexpr int table_x = std::is_same_v<Y, X> ? 0 : Y::twiddles;
  static constexpr std::size_t bytes =
      3 * sizeof(PairTask) + 16 + sizeof(Complex) * (table_x + X::twiddles + buffers);
};

template <typename Y, typename X>
__global__ void __launch_bounds__(LanesTuning::kThreads, (PairsShape<Y, X>::blocks))
    pairs_kernel(LanesArguments a) {
  // A ring of the previous, the current and the next task.
  PairTask* const tasks = dynamic_shared<PairTask>();
  std::uint32_t* const through = reinterpret_cast<std::uint32_t*>(tasks + 3);
  Complex* const table_y = reinterpret_cast<Complex*>(through + 4);
  Complex* const table_x = table_y + PairsShape<Y, X>::table_x;
  Complex* const buffers = table_x + X::twiddles;
  table_of<Y>(table_y, a, 1);
  table_of<X>(table_x, a, 0);
  wait_for_previous();
  if (threadIdx.x == 0) {
    fetch(tasks[0], a);
    tasks[2].kind = PairTask::none;
    *through = 0;
  }
  for (std::uint32_t turn = 0;; turn = turn == 2 ? 0 : turn + 1) {
    block::barrier();
    const PairTask task = tasks[turn];
    // One thread signals that the previous task is done, as soon as its warp has its loads: there
    // the fence costs little.
    const auto tell = [&] {
      PairTask& last = tasks[turn == 0 ? 2 : turn - 1];
      if (opaque(static_cast<int>(threadIdx.x)) != 0 || last.kind == PairTask::none) return;
      add_release(last.done(a), 1);
      last.kind = PairTask::none;
    };
    if (task.ready == 0) {
      tell();
      if (task.kind == PairTask::none) return;
      block::barrier();
      if (opaque(static_cast<int>(threadIdx.x)) == 0) {
        const std::uint32_t* const counter = task.needed(a);
        const std::uint32_t count = task.needed_count(a);
        while (load_acquire(counter) < count) back_off<50>();
      }
      block::barrier();
    }
    Complex* const images = a.pair_images + task.first_image * a.image;
    const auto left_of = [&](std::uint32_t g) { return task.first_left + (g >> a.log_rights); };
    const auto right_of = [&](std::uint32_t g) {
      return task.first_right + (g & ((1u << a.log_rights) - 1));
    };
    if (task.kind == PairTask::columns) {
      const Place<Y> at;
      const std::uint32_t g = static_cast<std::uint32_t>(at.lane_group);
      const std::uint32_t l = left_of(g), r = right_of(g);
      const bool live = l < a.lefts && r < a.rights;
      const Index column = static_cast<Index>(task.number) * Y::n;
      Complex v[Y::values];
      Y::load_spectrum(v, a.right_images + (live ? r : 0) * a.image + column, at.lane);
      multiply<Y>(v, a.left_images + (live ? l : 0) * a.image + column, at.lane);
      tell();
      Y::template run<Direction::inverse>(v, buffers + at.lane_group * Y::buffer, table_y, at.lane);
      if (live) Y::store_column(v, images + g * a.image + column, at.lane);
    } else {
      constexpr std::uint32_t kGroups = Y::n / 2 / X::of_block;
      const std::uint32_t g = task.number / kGroups, l = left_of(g), r = right_of(g);
      // A pair out of range is computed on arbitrary data and not stored.
      const bool live = l < a.lefts && r < a.rights;
      inverse_row_pairs<X>(
          images + g * a.image, static_cast<int>(task.number - g * kGroups) * X::of_block, Y::n,
          live ? a.rows : Range{0, 0}, a.cols,
          a.out_of(live ? static_cast<Index>(l) * a.rights + r : 0), buffers, table_x, tell);
    }
    // The first warp that finishes takes the next task while the other warps continue.
    warp::barrier();
    if (warp::lane() == 0 && atomic_add(through, 1u) % (LanesTuning::kThreads / warp::kSize) == 0) {
      fetch(tasks[turn == 2 ? 0 : turn + 1], a);
    }
  }
}

}  // namespace xcorr::fused_fft
