// The products of detection by warpgroups: those of warpgroup_products.hpp about a line for each tile, in
// another order. What follows the products takes the time of many instructions, and the two warpgroups of
// a block multiply in turns: while one multiplies, the other makes scores of its sums, and counts or stores
// them. Without turns all warpgroups of an SM multiply at the same time, and then none does. The one that
// ends its products says so and goes on; only who is to multiply waits (Turns). So one may still
// read factors of the tile before the one that the other multiplies, while the next is copied: they have
// places for three tiles.
//
// Nobody waits for the signal. A thread asks for its part of the next tile, which copies itself into shared
// memory meanwhile, and takes it about its line and rounds it there a turn later (TileCopy).
//
// Dynamic shared memory: two tiles of the signal, the templates of each warpgroup, factors of three tiles,
// what sums of two tiles begin with, what templates make of a line, for each warp the means of chunks
// that the line of a tile is made of, and whether each of three tiles is wide (prepare.hpp).
#pragma once

#include "algorithms/device/turns.hpp"
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
// t = lane % 4, and of the shift lane / 4 of their 8: four neighbouring words are of two j. So many shifts
// change places among each other.
inline constexpr int kPlacesTogether = 4 * warp::kSize;
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
  int line_chunks;  // of a channel, whose means a tile needs
  int words;  // of dynamic shared memory, a multiple of 4; what else a kernel needs lies behind

  int threads() const { return kWarpgroups * kWarpgroup; }
  int tiles() const { return layout.tiles; }
  Index shifts() const { return static_cast<Index>(layout.tiles) * tile_shifts; }  // of all tiles
};

// Where the parts of dynamic shared memory lie, in words.
template <typename Maths, int kSpread>
struct WarpgroupMemory {
  static constexpr int kTile = kTileShifts<Maths, kSpread>, kPlanes = kSpread / Maths::kPart;
  static constexpr int kWarps = kWarpgroups * kWarpgroup / warp::kSize;

  __host__ __device__ static int signal_words(const WarpgroupLayout& q) {
    return q.channels * q.channel_words;
  }
  __host__ __device__ static int panels(const WarpgroupLayout& q) { return 2 * signal_words(q); }
  __host__ __device__ static int factors(const WarpgroupLayout& q) {
    return panels(q) + kWarpgroups * q.panel_words;
  }
  __host__ __device__ static int starts(const WarpgroupLayout& q) { return factors(q) + 3 * kTile; }
  __host__ __device__ static int units(const WarpgroupLayout& q) { return starts(q) + 2 * kGroup; }
  __host__ __device__ static int means(const WarpgroupLayout& q) { return units(q) + kGroup; }
  __host__ __device__ static int words(const WarpgroupLayout& q, int line_chunks) {
    return wide(q, line_chunks) + 4;
  }
  // Whether each tile with factors is wide.
  __host__ __device__ static int wide(const WarpgroupLayout& q, int line_chunks) {
    return means(q) + kWarps * ceil_div(q.channels * line_chunks, 4) * 4;
  }
  // Where column 0 of a tile has part `of` of a channel.
  __device__ static __forceinline__ int place(const WarpgroupLayout& q, int of) {
    return (of % kPlanes * q.plane + of / kPlanes) * kPartWords;
  }
};

// Which places a tile has, by its number among those of the block: of two, and of three.
struct TilePlaces {
  int number;  // modulo 6
  __device__ __forceinline__ int of_two() const { return number % 2; }
  __device__ __forceinline__ int of_three() const { return number < 3 ? number : number - 3; }
  __device__ __forceinline__ TilePlaces next() const { return {number == 5 ? 0 : number + 1}; }
};

// The right to multiply, which the warpgroups of a block hand to each other. Between two of its take()
// a warpgroup has seen all that the other did before the give() in between.
struct Turns {
  static constexpr int kThreads = kWarpgroups * kWarpgroup;
  static_assert(kWarpgroups == 2);
  // Numbers of barriers as constants: 1 and 2 are those of each warpgroup by itself.
  __device__ __forceinline__ static void take(int warpgroup) {
    if (warpgroup == 0) {
      block::wait(3, kThreads);
    } else {
      block::wait(4, kThreads);
    }
  }
  // To the other one.
  __device__ __forceinline__ static void give(int warpgroup) {
    if (warpgroup == 0) {
      block::arrive(4, kThreads);
    } else {
      block::arrive(3, kThreads);
    }
  }
};

// The copy of a tile to its places. ask() leaves it on its way; finish() waits for what this
// thread asked for, takes the samples about the tile's line and rounds them. A thread finishes the samples
// that it asked for and a warp the line from means that its own lanes asked for, so that between the
// two no barrier is needed. What follows from a thread's number is computed in both: kept meanwhile, it
// would take registers that the sums need.
template <typename Maths, int kSpread>
struct TileCopy {
  using At = WarpgroupMemory<Maths, kSpread>;
  static_assert(Maths::kPart == kPartWords && At::kTile % (2 * kWarpgroup) == 0);
  static constexpr int kThreads = kWarpgroups * kWarpgroup;
  struct alignas(16) Part {
    std::uint32_t of[kPartWords];
  };

  const Products& p;
  const WarpgroupShape& shape;
  int tile;
  TilePlaces places;

  __device__ __forceinline__ static int thread() { return opaque(static_cast<int>(threadIdx.x)); }
  __device__ __forceinline__ int first() const { return p.q.first + tile * At::kTile; }
  __device__ __forceinline__ std::uint32_t* signal(int channel) const {
    const WarpgroupLayout& q = shape.layout;
    return dynamic_shared<std::uint32_t>() + places.of_two() * At::signal_words(q) +
           channel * q.channel_words;
  }
  __device__ __forceinline__ LineChunks chunks() const {
    return {p.q, p.memory, first(), At::kTile + p.q.length};
  }
  // Of a channel, for this warp.
  __device__ __forceinline__ float* means(int channel) const {
    const WarpgroupLayout& q = shape.layout;
    const int of_warp = ceil_div(q.channels * shape.line_chunks, 4) * 4;
    return dynamic_shared<float>() + At::means(q) + thread() / warp::kSize * of_warp +
           channel * shape.line_chunks;
  }

  __device__ __forceinline__ void ask() const {
    const WarpgroupLayout& q = shape.layout;
    const int from = thread();
#pragma unroll 1
    for (int channel = 0; channel < q.channels; ++channel) {
      const float* const samples = p.right + static_cast<Index>(channel) * p.q.pitch + first();
      const int exist = p.q.pitch - first();  // samples
      const bool aligned = reinterpret_cast<std::uintptr_t>(samples) % sizeof(Part) == 0;
      auto* const to = reinterpret_cast<float*>(signal(channel));
#pragma unroll 1
      for (int of = from; of * kPartWords < q.samples; of += kThreads) {
        const int i = of * kPartWords;
        float* const part = to + At::place(q, of);
        if (aligned && i + kPartWords <= exist) {
          async_copy::copy<kPartWords>(part, samples + i, true);
        } else {
#pragma unroll
          for (int k = 0; k < kPartWords; ++k) {
            const bool exists = i + k < exist;
            async_copy::copy<1>(part + k, samples + (exists ? i + k : 0), exists);
          }
        }
      }
    }
    float* const factors = dynamic_shared<float>() + At::factors(q) + places.of_three() * At::kTile;
    const float* const of_tile = p.memory.factors + tile * At::kTile;
    static_assert(kThreads % kPlacesTogether == 0);
    const int place = factor_place(from);
#pragma unroll
    for (int i = 0; i < At::kTile; i += kThreads) {
      async_copy::copy<1>(factors + place + i, of_tile + from + i, true);
    }
    if (p.asked.normalised) {
      const LineChunks of = chunks();
#pragma unroll 1
      for (int channel = 0; channel < q.channels; ++channel) {
        const float* const of_channel = p.memory.means + channel * p.memory.chunks + of.before;
#pragma unroll 1
        for (int i = warp::lane(); i <= of.after - of.before; i += warp::kSize) {
          async_copy::copy<1>(means(channel) + i, of_channel + i, true);
        }
      }
    }
    async_copy::commit();
  }

  __device__ __forceinline__ void finish() const {
    const WarpgroupLayout& q = shape.layout;
    async_copy::wait();
    Line line;
    if (p.asked.normalised) {
      line = line_of_chunks(p.q, chunks(), first(), p.asked.centred,
                            [&](int channel, int i) { return means(channel)[i]; });
    }
    const int from = thread(), exist = p.q.pitch - first();
#pragma unroll 1
    for (int channel = 0; channel < q.channels; ++channel) {
#pragma unroll 1
      for (int of = from; of * kPartWords < q.samples; of += kThreads) {
        auto* const at = reinterpret_cast<Part*>(signal(channel) + At::place(q, of));
        Part part = *at;
        const auto begin = static_cast<float>(of * kPartWords);
#pragma unroll
        for (int k = 0; k < kPartWords; ++k) {
          const int i = of * kPartWords + k;
          const float value = std::bit_cast<float>(part.of[k]);
          const float levelled = i < exist && is_finite(value)
                                     ? line.without(value, begin + static_cast<float>(k))
                                     : 0.0f;
          std::uint32_t words[1];
          Maths::signal_words([&](int) { return levelled; }, i, words);
          part.of[k] = words[0];
        }
        *at = part;
      }
    }
    if (from < kGroup) {
      float* const words = dynamic_shared<float>();
      const float unit = words[At::units(q) + from];
      words[At::starts(q) + places.of_two() * kGroup + from] =
          p.asked.normalised ? (p.asked.centred ? line.slope : line.start) * unit : 0.0f;
      if (from == 0) {
        dynamic_shared<std::uint32_t>()[At::wide(q, shape.line_chunks) + places.of_three()] =
            line.is_wide() ? 1 : 0;
      }
    }
    warpgroup::publish_shared();
  }
};

// The tasks of the tiles of a block, for the templates of blockIdx.y. use(sums, factors, shift) is called
// by all lanes of a warp for each task, whose first shift is `shift`. All threads of a block call
// each_task_in_turns.
template <typename Maths, int kSpread, typename Use>
__device__ __forceinline__ void each_task_in_turns(const Products& p, const WarpgroupShape& shape,
                                                   const Use& use) {
  using At = WarpgroupMemory<Maths, kSpread>;
  constexpr int kTemplates = kProductRows / kSpread;  // of a product
  constexpr int kTaskShifts = kSpread * Maths::kColumns, kTile = At::kTile;
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
  auto* const signals = dynamic_shared<std::uint32_t>();
  const auto panel = [&] { return signals + At::panels(q) + warpgroup() * q.panel_words; };
  float* const factors = dynamic_shared<float>() + At::factors(q);
  const float* const starts = dynamic_shared<float>() + At::starts(q);
  const int row_words = q.panel_steps * Maths::kStep + kSpread;

  // What the templates make of a line. A thread alone reads what it stores.
  const int of_thread = static_cast<int>(threadIdx.x);
  if (of_thread < kGroup) {
    const int of = first_of_block() + of_thread;
    dynamic_shared<float>()[At::units(q) + of_thread] =
        p.asked.normalised && of < q.templates ? p.memory.units[of] : 0.0f;
  }

  // One or two.
  static_assert(kBlockTemplates == 2 * kTemplates);
  const auto two_groups = [&] { return q.templates - first_of_block() > kTemplates; };
  // Of the block, the first time none.
  const auto tasks = [&](int tile) {
    const int shifts = std::min(kTile, q.shifts - tile * kTile);
    return tile < 0 ? 0 : ceil_div(shifts, kTaskShifts) << (two_groups() ? 1 : 0);
  };
  const bool one_panel = q.channels == 1 && q.panel_steps == q.steps;
  int state = 5;  // 8 times the round of the tile, and the number of its places
  // The first time there are no tasks, only copies of the first tile.
#pragma unroll 1
  for (int tile = static_cast<int>(blockIdx.x - gridDim.x); tile < q.tiles;
       tile += static_cast<int>(gridDim.x), state = TilePlaces{state % 8}.next().number) {
#pragma unroll 1
    for (;; state += 8) {
      const int round = state / 8;
      const TilePlaces places{state % 8};
      const int rounds = ceil_div(tasks(opaque(tile)), kWarpgroups);
      // The signal of the tile before this one is read no more: warpgroup 1 has multiplied its last task
      // before warpgroup 0 multiplied the first of this tile. And nobody has factors of the tile before
      // that one, of which all tasks ended before.
      const int next = tile + static_cast<int>(gridDim.x);
      const TileCopy<Maths, kSpread> copy{p, shape, next, places.next()};
      if (round == (warpgroup() == 0 ? std::min(1, rounds) : 0) && next < q.tiles) copy.ask();
      // Warpgroup 0 multiplies the next tile first, and then warpgroup 1 has a task of this one. So that
      // one finishes before its last task, and warpgroup 0 after it.
      if (round == (warpgroup() == 0 ? rounds : std::max(rounds - 1, 0)) && next < q.tiles) {
        copy.finish();
      }
      if (round == rounds) break;
      const int task = round * kWarpgroups + warpgroup();
      const bool exists = task < tasks(opaque(tile));
      WarpgroupSums<Maths, kSpread> sums;
      const int groups = two_groups() ? 1 : 0;  // 2 to the power of this
      sums.group = task & groups;
      const int task_shift = (task >> groups) * kTaskShifts;  // in the tile
      if (!exists) {
        Turns::take(warpgroup());
      } else {
        int channel = 0, begin = 0;
#pragma unroll 1
        while (channel < q.channels) {
          // A warpgroup's tasks are of one group.
          if (!one_panel || (round == 0 && tile == static_cast<int>(blockIdx.x))) {
            // Nobody of the warpgroup reads the panel before any more.
            wait_for_warpgroup(warpgroup());
            stage_panel<Maths, kSpread>(
                q, p.memory.templates, first_of_block() + sums.group * kTemplates, channel, begin,
                row_words, thread, [&](int i, int at, const std::uint32_t (&words)[1]) {
                  panel()[(i / 2 * row_words + at) * 2 + i % 2] = words[0];
                });
            wait_for_warpgroup(warpgroup());
          }
          if (channel == 0 && begin == 0) {
            Turns::take(warpgroup());
#pragma unroll
            for (int half = 0; half < 2; ++half) {
              const float start = starts[places.of_two() * kGroup + sums.row(half)];
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
          static_assert(kSpread == Maths::kStep && kTaskShifts % kSpread == 0);
          const std::uint32_t* const columns = signals + places.of_two() * At::signal_words(q) +
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
          multiply_panel(a, std::min(q.panel_steps, q.steps - begin), load, multiply, finish);
          begin += q.panel_steps;
          if (begin >= q.steps) {
            begin = 0;
            ++channel;
          }
        }
      }
      Turns::give(warpgroup());
      if (exists) {
        const float* const of_task = factors + places.of_three() * kTile + task_shift;
        const TaskFactors of_lanes{reinterpret_cast<const FourFactors*>(of_task) + warp::lane()};
        if (signals[At::wide(q, shape.line_chunks) + places.of_three()] != 0) {
          take_back_scale(sums, of_lanes);
        }
        use(sums, of_lanes, tile * kTile + task_shift);
      }
    }
    if (tile >= 0) continue;
    block::barrier();  // the first tile is there
    if (warpgroup() == 1) Turns::give(1);
  }
  // What warpgroup 1 gave last.
  if (warpgroup() == 0) Turns::take(0);
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
    const int chunks = LineChunks::most(kTile + l.length);
    return {l, kTile, chunks, WarpgroupMemory<Maths, kSpread>::words(l, chunks)};
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
