// The products of detection with warpgroups. They are those of warpgroup_products.hpp, with a line
// subtracted from each tile, in another order.
//
// After its products a warpgroup computes scores from its sums and counts or stores them, which
// takes many instructions. Therefore the two warpgroups of a block multiply in turns (Turns).
// Otherwise all warpgroups of an SM would multiply at the same time, and later the tensor cores
// would idle while all compute scores. A warpgroup may still read the factors of a tile while the
// other warpgroup multiplies the next tile and the tile after that is copied. Therefore shared
// memory holds the factors of three tiles.
//
// Loads of the signal overlap products. A thread starts an asynchronous copy of its part of the
// next tile. One turn later it subtracts the line from these samples and rounds them (TileCopy).
//
// Dynamic shared memory holds: the signal of two tiles, the templates of each warpgroup, the
// factors of three tiles, the initial sums of two tiles, the sums of products of templates and a
// unit line, per warp the means of the chunks that define the line of a tile, and for three tiles
// whether the tile is wide (prepare.hpp).
#pragma once

#include "algorithms/device/cuda.hpp"
#include "algorithms/time_series/detection/products.hpp"
#include "algorithms/time_series/warpgroup_plan.hpp"

namespace xcorr::time_series {

// Factors of the shifts of a task, in the order of a lane's sums.
struct alignas(16) FourFactors {
  float of[4];
};
struct TaskFactors {
  const FourFactors* of_lane;
  __device__ __forceinline__ TaskFactors again() const { return {opaque(of_lane)}; }
};

// Index of the factor of shift `i` of a tile. The sums of a lane are those of columns 8 j + 2 t and
// 8 j + 2 t + 1, t = lane % 4, at shift lane / 4 of the 8 shifts of a column. Four neighbouring
// words belong to two values of j. The order changes only within kPlacesTogether shifts.
inline constexpr int kPlacesTogether = 4 * warp::kSize;
__device__ __forceinline__ int factor_place(int i) {
  const int column = i / 8, j = column / 8, lane = i % 8 * 4 + column % 8 / 2;
  return j / 2 * (4 * warp::kSize) + lane * 4 + j % 2 * 2 + column % 2;
}

template <typename Maths, int kSpread, typename Use>
__device__ __forceinline__ void each_sum_of(WarpgroupSums<Maths, kSpread>& sums, int half,
                                            const TaskFactors& factors, const Use& use) {
  static_assert(kSpread == 8);  // both halves cover the same shifts
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

// Smaller tiles: samples far from the line, as around a step, cost precision in the whole tile.
// With three steps at once registers remain for the code after the products.
template <typename Maths>
struct LevelledTiles : Maths {
  static constexpr int kMostTileShifts = 2048, kAtOnce = 3;
  static_assert(Maths::kParts == 1 && !Maths::kFromZero);
};

// Launch parameters besides Products. Set on the host.
struct WarpgroupShape {
  WarpgroupLayout layout;
  int tile_shifts;
  int line_chunks;  // chunks of a channel whose means a tile needs
  int words;        // of dynamic shared memory, a multiple of 4; further data of a kernel follow

  int threads() const { return kWarpgroups * kWarpgroup; }
  int tiles() const { return layout.tiles; }
  Index shifts() const { return static_cast<Index>(layout.tiles) * tile_shifts; }  // of all tiles
};

// Offsets of the parts of dynamic shared memory, in words.
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
  // Offset of the flags that say which tiles are wide.
  __host__ __device__ static int wide(const WarpgroupLayout& q, int line_chunks) {
    return means(q) + kWarps * ceil_div(q.channels * line_chunks, 4) * 4;
  }
  // Offset of column 0 of a tile in part `of` of a channel.
  __device__ static __forceinline__ int place(const WarpgroupLayout& q, int of) {
    return (of % kPlanes * q.plane + of / kPlanes) * kPartWords;
  }
};

// Slots of a tile in buffers of two and of three tiles. `number` counts the tiles of the block.
struct TilePlaces {
  int number;  // modulo 6
  __device__ __forceinline__ int of_two() const { return number % 2; }
  __device__ __forceinline__ int of_three() const { return number < 3 ? number : number - 3; }
  __device__ __forceinline__ TilePlaces next() const { return {number == 5 ? 0 : number + 1}; }
};

// The right to multiply, which the two warpgroups of a block pass to each other. After take() a
// warpgroup sees all writes of the other one before its give().
struct Turns {
  static constexpr int kThreads = kWarpgroups * kWarpgroup;
  static_assert(kWarpgroups == 2);
  // Barrier numbers are constants: each warpgroup uses 1 or 2 for itself.
  __device__ __forceinline__ static void take(int warpgroup) {
    if (warpgroup == 0) {
      block::wait(3, kThreads);
    } else {
      block::wait(4, kThreads);
    }
  }
  // Passes the right to the other warpgroup.
  __device__ __forceinline__ static void give(int warpgroup) {
    if (warpgroup == 0) {
      block::arrive(4, kThreads);
    } else {
      block::arrive(3, kThreads);
    }
  }
};

// Copies a tile to its slots. ask() starts the copy. finish() waits for the copies of this thread,
// subtracts the tile's line from the samples and rounds them. No barrier is needed in between: a
// thread finishes the samples, and a warp uses the means, that it copied. Values that follow from
// the thread index are computed in both functions: kept, they would take registers of the sums.
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
  // Means of a channel for this warp.
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
      line = line_of_chunks(p.q, p.memory, chunks(), first(), p.asked.centred,
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
          Maths::words([&](int) { return levelled; }, i, words);
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

// Calls use(sums, factors, shift) for each task of the tiles of a block and the templates of
// blockIdx.y, by all lanes of a warp. `shift` is the first shift of the task. All threads of a
// block call each_task_in_turns.
template <typename Maths, int kSpread, typename Use>
__device__ __forceinline__ void each_task_in_turns(const Products& p, const WarpgroupShape& shape,
                                                   const Use& use) {
  using At = WarpgroupMemory<Maths, kSpread>;
  constexpr int kTemplates = kProductRows / kSpread;  // per product
  constexpr int kTaskShifts = kSpread * Maths::kColumns, kTile = At::kTile;
  constexpr int kAtOnce = Maths::kAtOnce;
  using Left = std::uint32_t[1][4];  // of a lane, for one step
  struct alignas(8) Two {
    std::uint32_t of[2];
  };

  const WarpgroupLayout& q = shape.layout;
  // Values that follow from the thread index are computed where they are used: kept over the
  // products, they would take registers that the sums need.
  const auto thread = [] { return opaque(static_cast<int>(threadIdx.x)) % kWarpgroup; };
  const auto warpgroup = [] { return opaque(static_cast<int>(threadIdx.x)) / kWarpgroup; };
  auto* const signals = dynamic_shared<std::uint32_t>();
  const auto panel = [&] { return signals + At::panels(q) + warpgroup() * q.panel_words; };
  float* const factors = dynamic_shared<float>() + At::factors(q);
  const float* const starts = dynamic_shared<float>() + At::starts(q);
  const int row_words = q.panel_steps * Maths::kStep + kSpread;

  // The units of the templates (prepare.hpp). Only the thread that stores a unit reads it.
  const int of_thread = static_cast<int>(threadIdx.x);
  if (of_thread < kGroup) {
    const int of = first_of_block() + of_thread;
    dynamic_shared<float>()[At::units(q) + of_thread] =
        p.asked.normalised && of < q.templates ? p.memory.units[of] : 0.0f;
  }

  // The block has one or two groups of templates.
  static_assert(kBlockTemplates == 2 * kTemplates);
  const auto two_groups = [&] { return q.templates - first_of_block() > kTemplates; };
  // Tasks of a block in a tile; 0 before the first tile.
  const auto tasks = [&](int tile) {
    const int shifts = std::min(kTile, q.shifts - tile * kTile);
    return tile < 0 ? 0 : ceil_div(shifts, kTaskShifts) << (two_groups() ? 1 : 0);
  };
  const bool one_panel = q.channels == 1 && q.panel_steps == q.steps;
  int state = 5;  // 8 x round of the tile + TilePlaces::number
  // The first iteration has no tasks and only copies the first tile.
#pragma unroll 1
  for (int tile = static_cast<int>(blockIdx.x - gridDim.x); tile < q.tiles;
       tile += static_cast<int>(gridDim.x), state = TilePlaces{state % 8}.next().number) {
#pragma unroll 1
    for (;; state += 8) {
      const int round = state / 8;
      const TilePlaces places{state % 8};
      const int rounds = ceil_div(tasks(opaque(tile)), kWarpgroups);
      // The slots of the next tile are free. Signal: warpgroup 1 multiplied its last task of the
      // previous tile before warpgroup 0 its first of this one. Factors: all tasks of the tile
      // before the previous one have ended.
      const int next = tile + static_cast<int>(gridDim.x);
      const TileCopy<Maths, kSpread> copy{p, shape, next, places.next()};
      if (round == (warpgroup() == 0 ? std::min(1, rounds) : 0) && next < q.tiles) copy.ask();
      // Warpgroup 0 is the first to multiply the next tile, while warpgroup 1 still has a task of
      // this tile. Therefore warpgroup 1 calls finish() before its last task and warpgroup 0 after
      // its last task.
      if (round == (warpgroup() == 0 ? rounds : std::max(rounds - 1, 0)) && next < q.tiles) {
        copy.finish();
      }
      if (round == rounds) break;
      const int task = round * kWarpgroups + warpgroup();
      const bool exists = task < tasks(opaque(tile));
      WarpgroupSums<Maths, kSpread> sums;
      const int groups = two_groups() ? 1 : 0;  // log2 of the number of groups
      sums.group = task & groups;
      const int task_shift = (task >> groups) * kTaskShifts;  // in the tile
      if (!exists) {
        Turns::take(warpgroup());
      } else {
        int channel = 0, begin = 0;
#pragma unroll 1
        while (channel < q.channels) {
          // All tasks of a warpgroup belong to one group.
          if (!one_panel || (round == 0 && tile == static_cast<int>(blockIdx.x))) {
            // No thread of the warpgroup reads the previous panel any more.
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

          // The two template rows of this lane, from column 0 on; the second is 8 rows below the
          // first. Their templates are neighbours, and words of neighbours are stored side by side.
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
          // The columns of the task. A step uses one part of each plane.
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
    block::barrier();  // the first tile is complete
    if (warpgroup() == 1) Turns::give(1);
  }
  // Takes the last turn that warpgroup 1 gave.
  if (warpgroup() == 0) Turns::take(0);
}

// The engine of warpgroups, with the interface of WarpEngine in products.hpp.
template <typename LargeTiles, int kSpread>
struct WarpgroupEngine {
  using Maths = LevelledTiles<LargeTiles>;
  static_assert(kBlockTemplates == kGroup);
  static constexpr int kMostThreads = kWarpgroups * kWarpgroup,
                       kBlocks = SeriesTuning::kWarpgroupBlocks;
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
