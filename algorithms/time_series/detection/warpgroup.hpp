// The products of detection by warpgroups: those of warpgroup_products.hpp about a line for each tile, in
// another order. What follows the products takes the time of many instructions, and the two warpgroups of
// a block take turns: while one multiplies, the other makes scores of its sums, counts or stores them, and
// copies its part of the next tile. Without turns all warpgroups of an SM multiply at the same time, and
// then none does.
//
// Dynamic shared memory: two tiles of the signal, the templates of each warpgroup, factors of two tiles,
// what sums of two tiles begin with.
#pragma once

#include "algorithms/time_series/detection/products.hpp"
#include "algorithms/time_series/warpgroup_plan.hpp"

namespace xcorr::time_series {

// Factors of the shifts of a task, in the order of the lanes' sums.
struct alignas(16) FourFactors {
  float of[4];
};
struct TaskFactors {
  const FourFactors* of_lane;
  __device__ __forceinline__ TaskFactors again() const { return {opaque(of_lane)}; }
};

// Where shift `i` of a tile has its factor. A lane's sums are of columns 8 j + 2 t and the next one,
// t = lane % 4, and of the shift lane / 4 of their 8: four neighbouring words are of two j.
__device__ __forceinline__ int factor_place(int i) {
  const int column = i / 8, j = column / 8, lane = i % 8 * 4 + column % 8 / 2;
  return j / 2 * (4 * warp::kSize) + lane * 4 + j % 2 * 2 + column % 2;
}

template <typename Maths, int kSpread, typename Use>
__device__ __forceinline__ void each_sum_of(WarpgroupSums<Maths, kSpread>& sums, int half,
                                            const TaskFactors& factors, const Use& use) {
  static_assert(kSpread == 8);  // so that both halves have the same shifts
  const int lane = opaque(warp::lane());
  const int first = lane % 4 * 2 * kSpread + lane / 4;
#pragma unroll
  for (int i = 0; i < Maths::kColumns / 16; ++i) {
    const FourFactors four = factors.of_lane[i * warp::kSize];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int j = 2 * i + k / 2;
      use(first + (8 * j + k % 2) * kSpread, sums.d[4 * j + 2 * half + k % 2], four.of[k]);
    }
  }
}

// Smaller tiles: what is far from a line, as the samples around a step are, costs precision in its tile.
// Three steps at once leave registers for what follows the products, and 256 samples are 33 steps.
template <typename Maths>
struct LevelledTiles : Maths {
  static constexpr int kMostTileShifts = 2048, kAtOnce = 3;
  static_assert(Maths::kParts == 1 && !Maths::kFromZero);
};

// What the kernels need to know beside Products. Made on the host.
struct WarpgroupShape {
  WarpgroupLayout layout;
  int tile_shifts;
  int words;  // of dynamic shared memory, a multiple of 4; what else a kernel needs lies behind

  int threads() const { return kWarpgroups * kWarpgroup; }
  int tiles() const { return layout.tiles; }
  Index shifts() const { return static_cast<Index>(layout.tiles) * tile_shifts; }  // of all tiles
};

// The tasks of the tiles of a block, for the templates of blockIdx.y. use(sums, factors, shift) is called
// by all lanes of a warp for each task, whose first shift is `shift`. All threads of a block call
// each_task_in_turns.
template <typename Maths, int kSpread, typename Use>
__device__ __forceinline__ void each_task_in_turns(const Products& p, const WarpgroupShape& shape,
                                                   const Use& use) {
  constexpr int kTemplates = kProductRows / kSpread;  // of a product
  constexpr int kTaskShifts = kSpread * Maths::kColumns, kTile = kTileShifts<Maths, kSpread>;
  constexpr int kPlanes = kSpread / Maths::kPart;
  constexpr int kAtOnce = Maths::kAtOnce;
  using Left = std::uint32_t[1][4];  // of a lane, for a step
  struct alignas(8) Two {
    std::uint32_t of[2];
  };

  const WarpgroupLayout& q = shape.layout;
  // What follows from a thread's number is computed where it is used: kept over the products, it would
  // take registers that the sums need.
  const auto thread = [] { return opaque(static_cast<int>(threadIdx.x)) % kWarpgroup; };
  const auto warpgroup = [] { return opaque(static_cast<int>(threadIdx.x)) / kWarpgroup; };
  // Of two tiles one behind the other, but for the templates.
  auto* const signals = dynamic_shared<std::uint32_t>();
  const int signal_words = q.channels * q.channel_words;
  const auto panel = [&] { return signals + 2 * signal_words + warpgroup() * q.panel_words; };
  auto* const factors =
      reinterpret_cast<float*>(signals + 2 * signal_words + kWarpgroups * q.panel_words);
  float* const starts = factors + 2 * kTile;
  // Where column 0 of the block has part `of`, in words.
  const auto place = [&](int of) { return (of % kPlanes * q.plane + of / kPlanes) * kPartWords; };
  const auto wait_for_warpgroup = [&] {
    if (warpgroup() == 0) {
      block::barrier(1, kWarpgroup);
    } else {
      block::barrier(2, kWarpgroup);
    }
  };
  // Each warpgroup comes here before and after its products, one of them a turn later.
  const auto take_turns = [] { block::barrier(); };
  const int row_words = q.panel_steps * Maths::kStep + kSpread;

  // What this thread copies of a tile; `which` of two places it goes to.
  const auto copy_tile = [&](int tile, int which) {
    const int first_shift = tile * kTile;
    const int from = opaque(static_cast<int>(threadIdx.x));
    // All of these loads are on their way before anything waits for one: the other warpgroup waits for the
    // end of the copy.
    constexpr int kThreads = kWarpgroups * kWarpgroup;
    constexpr int kAtOnce = static_cast<int>(small_if_emulated(10, 5));
    float of_factors[ceil_div(kTile, kThreads)], values[kAtOnce];
#pragma unroll
    for (int i = 0; i < kTile; i += kThreads) {
      const bool exists = i + kThreads <= kTile || i + from < kTile;
      of_factors[i / kThreads] = exists ? p.memory.factors[first_shift + i + from] : 0.0f;
    }
    LevelledPart samples{p.right, p.q.first + first_shift, p.q.pitch, 0, {}};
    const auto load = [&](int begin) {
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) values[k] = samples.load(begin + k * kThreads);
    };
    load(from);
    const Line line = line_of_tile(p.q, p.asked, p.memory, first_shift, kTile);
    samples.line = line;
#pragma unroll
    for (int i = 0; i < kTile; i += kThreads) {
      if (i + kThreads <= kTile || i + from < kTile)
        factors[which * kTile + factor_place(i + from)] = of_factors[i / kThreads];
    }
#pragma unroll 1
    for (int channel = 0; channel < q.channels; ++channel) {
      samples.channel = p.right + static_cast<Index>(channel) * p.q.pitch;
      std::uint32_t* const to = signals + which * signal_words + channel * q.channel_words;
#pragma unroll 1
      for (int begin = from; begin < q.samples; begin += kAtOnce * kThreads) {
        if (channel > 0 || begin > from) load(begin);
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k) {
          const int i = begin + k * kThreads;
          if (i >= q.samples) break;
          std::uint32_t of[1];
          Maths::signal_words([&](int) { return samples.levelled(values[k], i); }, i, of);
          to[place(i / kPartWords) + i % kPartWords] = of[0];
        }
      }
    }
    if (from < kGroup) {
      const int of = first_of_block() + from;
      starts[which * kGroup + from] =
          of < q.templates ? start_of(p.asked, p.memory, line, of) : 0.0f;
    }
    warpgroup::publish_shared();
  };

  const auto groups = [&] {
    return ceil_div(std::min(int{kBlockTemplates}, q.templates - first_of_block()), kTemplates);
  };
  // Of the block, the first time none.
  const auto tasks = [&](int tile) {
    const int shifts = std::min(kTile, q.shifts - tile * kTile);
    return tile < 0 ? 0 : groups() * ceil_div(shifts, kTaskShifts);
  };
  const bool one_panel = q.channels == 1 && q.panel_steps == q.steps;
  int state = 1;  // 2 times the round of the tile, and which of two places the tile has
  // The first time there are no tasks, only copies of the first tile.
#pragma unroll 1
  for (int tile = static_cast<int>(blockIdx.x - gridDim.x); tile < q.tiles;
       tile += static_cast<int>(gridDim.x), state = state % 2 ^ 1) {
#pragma unroll 1
    for (;; state += 2) {
      const int round = state / 2, which = state % 2;
      const int rounds = ceil_div(tasks(opaque(tile)), kWarpgroups);
      // The tile before this one is read no more: by warpgroup 1 since its last task, by the other since
      // its first task of this tile. That warpgroup 1 copies before its next turn is enough for the other
      // to find the copy after its own.
      if (round == (warpgroup() == 0 ? std::min(1, rounds) : 0)) {
        const int next = tile + static_cast<int>(gridDim.x);
        if (next < q.tiles) copy_tile(next, which ^ 1);
      }
      if (round == rounds) break;
      const int task = round * kWarpgroups + warpgroup();
      const bool exists = task < tasks(opaque(tile));
      WarpgroupSums<Maths, kSpread> sums;
      sums.group = task % groups();
      const int task_shift = task / groups() * kTaskShifts;  // in the tile
      if (!exists) {
        take_turns();
      } else {
        int channel = 0, begin = 0;
#pragma unroll 1
        while (channel < q.channels) {
          // A warpgroup's tasks are of one group.
          if (!one_panel || (round == 0 && tile == static_cast<int>(blockIdx.x))) {
            // Nobody of the warpgroup reads the panel before any more.
            wait_for_warpgroup();
            const int first = first_of_block() + sums.group * kTemplates;
#pragma unroll 1
            for (int i = 0; i < kTemplates; ++i) {
              const int length = first + i < q.templates ? q.length : 0;
              const float* const of =
                  p.memory.templates +
                  (static_cast<Index>(first + i) * q.channels + channel) * q.length;
              const auto of_template = [&](int at) { return load_or_zero(of, at, length); };
#pragma unroll 4
              for (int at = thread(); at < row_words; at += kWarpgroup) {
                std::uint32_t words[1];
                Maths::template_words(of_template, begin * Maths::kStep - kSpread + at, words);
                panel()[(i / 2 * row_words + at) * 2 + i % 2] = words[0];
              }
            }
            wait_for_warpgroup();
          }
          if (channel == 0 && begin == 0) {
            take_turns();
#pragma unroll
            for (int half = 0; half < 2; ++half) {
              const float start = starts[which * kGroup + sums.row(half)];
#pragma unroll
              for (int i = 0; i < Maths::kColumns / 4; ++i) {
                sums.d[i / 2 * 4 + 2 * half + i % 2] = start;
              }
            }
          }

          // Of the lane: its two rows, the second is 8 below, from column 0 on. Their templates are
          // neighbours, whose words lie side by side.
          static_assert(kSpread == 8);
          const int row = WarpgroupSums<Maths, kSpread>::product_row(0);
          const Two* const rows = reinterpret_cast<const Two*>(panel()) +
                                  (row / 16 * row_words + kSpread - row % kSpread +
                                   opaque(warp::lane()) % 4 * (Maths::kStep / 8));
          Left a[2][kAtOnce];
          const auto load = [&](Left(&of)[kAtOnce], int step, int count) {
#pragma unroll
            for (int s = 0; s < count; ++s) {
#pragma unroll
              for (int i = 0; i < 2; ++i) {
                const Two two = rows[(step + s) * Maths::kStep + i * (Maths::kStep / 2)];
                of[s][0][2 * i] = two.of[0];
                of[s][0][2 * i + 1] = two.of[1];
              }
            }
          };
          // The columns of the task. A step has a part of each plane.
          static_assert(kPlanes * Maths::kPart == Maths::kStep && kTaskShifts % kSpread == 0);
          const std::uint32_t* const columns = signals + which * signal_words +
                                               channel * q.channel_words +
                                               task_shift / kSpread * kPartWords;
          const auto multiply = [&](const Left(&of)[kAtOnce], int step, int count) {
            warpgroup::fence();
#pragma unroll
            for (int s = 0; s < count; ++s) {
              const std::uint32_t* const b = columns + (begin + step + s) * kPartWords;
              const int rows_apart = q.plane * kPartBytes;
              Maths::template add<true>(sums.d, of[s], b, 0, rows_apart);
            }
            warpgroup::commit();
          };
          const auto finish = [] { warpgroup::wait<0>(); };
          // Products run while the words of the next ones are loaded.
          const int steps = std::min(q.panel_steps, q.steps - begin);
          const int last = steps - kAtOnce;  // where a whole group may begin
          int step = 0;
          if (step <= last) load(a[0], step, kAtOnce);
#pragma unroll 1
          for (; step + kAtOnce <= last; step += 2 * kAtOnce) {
            multiply(a[0], step, kAtOnce);
            load(a[1], step + kAtOnce, kAtOnce);
            finish();
            multiply(a[1], step + kAtOnce, kAtOnce);
            if (step + 2 * kAtOnce <= last) load(a[0], step + 2 * kAtOnce, kAtOnce);
            finish();
          }
          if (step <= last) {
            multiply(a[0], step, kAtOnce);
            finish();
            step += kAtOnce;
          }
#pragma unroll 1
          for (; step < steps; ++step) {
            load(a[0], step, 1);
            multiply(a[0], step, 1);
            finish();
          }
          begin += q.panel_steps;
          if (begin >= q.steps) {
            begin = 0;
            ++channel;
          }
        }
      }
      take_turns();
      if (exists) {
        use(sums,
            TaskFactors{reinterpret_cast<const FourFactors*>(factors + which * kTile + task_shift) +
                        warp::lane()},
            tile * kTile + task_shift);
      }
    }
    if (tile >= 0) continue;
    block::barrier();  // the first tile is there
    if (warpgroup() == 1) take_turns();
  }
  if (warpgroup() == 0) take_turns();
}

// As WarpEngine of products.hpp.
template <typename LargeTiles, int kSpread>
struct WarpgroupEngine {
  using Maths = LevelledTiles<LargeTiles>;
  static_assert(kBlockTemplates == kGroup);
  static constexpr int kMostThreads = kWarpgroups * kWarpgroup, kBlocks = 2;
  static constexpr int kSumsOfHalf = Maths::kColumns / 4;
  using Shape = WarpgroupShape;
  static Support supports(const Problem& q) { return supports_warpgroups(q); }
  static Shape shape(const Problem& q, int /*threads of blocks of warps*/) {
    constexpr int kTile = kTileShifts<Maths, kSpread>;
    const WarpgroupLayout l = warpgroup_layout<Maths, kSpread>(SeriesShape(q));
    return {l, kTile,
            2 * l.channels * l.channel_words + kWarpgroups * l.panel_words + 2 * (kTile + kGroup)};
  }

  template <typename Use>
  __device__ static __forceinline__ void each(const Products& p, const Shape& shape,
                                              const Use& use) {
    each_task_in_turns<Maths, kSpread>(p, shape,
                                       [&](auto& sums, const TaskFactors& factors, int shift) {
                                         use(sums, factors, first_of_block(), shift);
                                       });
  }
};

}  // namespace xcorr::time_series
