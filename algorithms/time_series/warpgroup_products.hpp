// Time series by the warpgroup products of Hopper's tensor cores: what the variants share.
// mma.sync, which warp_products.hpp uses, reaches about 62 % of their rate. Beyond the paper.
//
// A product has 64 rows and N columns. Its left matrix holds templates, each spread over E shifts
// (parameter `spread`), so that a product has 64 / E templates. With shift = E u + v, the outputs
// of these templates are a product of 64 x K by K x U matrices, K = T + E - 1:
//   left[E i + v][k] = template[i][k - v], 0 outside the template: the same for every u
//   right[k][u] = signal[E u + k]: columns that begin E samples apart and overlap
// The number of products is (T + E - 1) / T times the useful number, and neither matrix is stored.
// A small E computes the fewest products, but wastes rows if there are fewer than 64 / E templates.
//
// The left matrix is an operand in registers. The templates lie in shared memory with E zeros
// before them, and a lane loads the words of its rows, which begin v words earlier. The right
// matrix is an operand in shared memory, in parts of 16 bytes: a few rows of a column, 8 columns
// side by side. Rows k of column u + 1 equal rows k + E of column u. Therefore shared memory holds
// each sample once. Part c of all columns is a plane, in which column u has offset u, and the rows
// that are E i further have offset u + i.
//
// A block has two warpgroups and 16 templates and computes one tile of shifts after the other. A
// task of a warpgroup is the products of 64 / E templates with E N shifts. A panel is as many
// columns of the left matrix as fit in shared memory. If one panel holds all columns, a warpgroup
// keeps it for the next task.
//
// A variant is a class Maths, which defines the words of both operands and the product:
//   kStep            samples per product (its depth)
//   kPart            samples of the signal in 16 bytes
//   kColumns         N
//   kMostTileShifts  max shifts of a tile, unless a task has more
//   kAtOnce          steps whose products run while the words of the next steps are loaded
//   kFromZero        products start from zero, and ordinary additions add them to the sums
//   kParts           words per sample: 2 where inputs are split in two
//   words, add
#pragma once

#include <algorithm>

#include "algorithms/device/matrix.hpp"
#include "algorithms/device/memory.hpp"
#include "algorithms/time_series/series_shape.hpp"
#include "algorithms/time_series/tuning.hpp"

namespace xcorr::time_series {

inline constexpr int kWarpgroup = 128, kWarpgroups = 2;
inline constexpr int kProductRows = 64;
inline constexpr int kBlockTemplates = 16;
inline constexpr int kPartBytes = 16, kPartWords = 4;

// The products in tf32: one word per sample.
struct WgmmaTf32 {
  static constexpr int kStep = 8, kPart = 4, kColumns = 128, kMostTileShifts = 8192;
  static constexpr int kAtOnce = 4, kParts = 1;
  static constexpr bool kFromZero = false;

  template <typename Sample>
  __device__ static __forceinline__ void words(const Sample& sample, int i,
                                               std::uint32_t (&of)[kParts]) {
    of[0] = matrix::to_tf32(sample(i));
  }
  template <bool kAdd>
  __device__ static __forceinline__ void add(float (&d)[kColumns / 2],
                                             const std::uint32_t (&a)[kParts][4],
                                             const std::uint32_t* b, int /*part_words*/,
                                             int rows_apart) {
    warpgroup::add_product_tf32<kAdd>(d, a[0],
                                      warpgroup::right_matrix(b, rows_apart, 8 * kPartBytes));
  }
};

// Shifts of a tile.
template <typename Maths, int kSpread>
inline constexpr int kTileShifts =
    std::max(kSpread * Maths::kColumns,
             static_cast<int>(small_if_emulated(Maths::kMostTileShifts,
                                                std::min(Maths::kMostTileShifts, 2048))));

// Lengths of the operands in shared memory. Set on the host, passed to the kernel by value.
struct WarpgroupLayout : Series {
  using Series::Series;
  int tiles = 0;                           // tiles of shifts
  int steps = 0, panel_steps = 0;          // steps of a channel (K) and of a panel
  int samples = 0;                         // samples of a channel that a block needs
  int plane = 0;                           // parts of a plane
  int channel_words = 0, panel_words = 0;  // of a channel per block, of a panel per warpgroup

  std::size_t bytes() const {
    return sizeof(std::uint32_t) *
           static_cast<std::size_t>(channels * channel_words + kWarpgroups * panel_words);
  }
};

template <typename Maths, int kSpread>
WarpgroupLayout warpgroup_layout(const SeriesShape& q) {
  constexpr int kPlanes = kSpread / Maths::kPart;
  WarpgroupLayout l(q);
  l.tiles = ceil_div(l.shifts, kTileShifts<Maths, kSpread>);
  l.steps = ceil_div(l.length + kSpread - 1, Maths::kStep);
  l.panel_steps = std::min(l.steps, SeriesTuning::kMostColumns / Maths::kStep);
  l.samples = kTileShifts<Maths, kSpread> - kSpread + l.steps * Maths::kStep;
  // Eight neighbouring parts of the signal lie in different banks.
  l.plane = ceil_div(l.samples, kSpread * 8) * 8 + 8 / std::min(kPlanes, 8);
  l.channel_words = Maths::kParts * kPlanes * l.plane * kPartWords;
  l.panel_words = Maths::kParts * kProductRows / kSpread * (l.panel_steps * Maths::kStep + kSpread);
  return l;
}

// The sums of a lane after a task: two rows, columns 2 t and 2 t + 1 of every 8, t = lane % 4.
template <typename Maths, int kSpread>
struct WarpgroupSums {
  float d[Maths::kColumns / 2];
  int group;  // index of the 64 / kSpread templates in the block

  // A row of the product: its template is row / kSpread of the group, its shift row % kSpread.
  __device__ static __forceinline__ int product_row(int half) {
    const int thread = opaque(static_cast<int>(threadIdx.x)) % kWarpgroup;
    return thread / warp::kSize * 16 + thread % warp::kSize / 4 + half * 8;
  }
  // Index of the template in the block.
  __device__ __forceinline__ int row(int half) const {
    return group * (kProductRows / kSpread) + product_row(half) / kSpread;
  }
  // Stores the sums to the outputs [q.templates][q.shifts], from template `first` and shift `shift`
  // on.
  template <typename Lengths>
  __device__ __forceinline__ void store(float* out, const Lengths& q, int first, int shift) const {
    const int column = opaque(warp::lane()) % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int of = first + row(half);
      if (of >= q.templates) continue;
      const int from = shift + column * kSpread + product_row(half) % kSpread;
      const int rest = q.shifts - from;
      float* const to = out + (static_cast<Index>(of) * q.shifts + from);
#pragma unroll
      for (int j = 0; j < Maths::kColumns / 8; ++j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int at = (8 * j + e) * kSpread;
          if (at < rest) store_last(to + at, d[4 * j + 2 * half + e]);
        }
      }
    }
  }
};

// The first template of the block.
__device__ __forceinline__ int first_of_block() {
  return static_cast<int>(blockIdx.y) * kBlockTemplates;
}

// A barrier of one warpgroup. Barrier numbers must be constants.
__device__ __forceinline__ void wait_for_warpgroup(int warpgroup) {
  if (warpgroup == 0) {
    block::barrier(1, kWarpgroup);
  } else {
    block::barrier(2, kWarpgroup);
  }
}

// Stages templates from `first` on in the panel of a warpgroup: the columns of the left matrix from
// step `begin` on. store(i, at, words) stores the words of column `at` of template i. `row_words`
// is the number of columns, thread() the index of the thread in the warpgroup.
template <typename Maths, int kSpread, typename Thread, typename Store>
__device__ __forceinline__ void stage_panel(const WarpgroupLayout& q, const float* left, int first,
                                            int channel, int begin, int row_words,
                                            const Thread& thread, const Store& store) {
#pragma unroll 1
  for (int i = 0; i < kProductRows / kSpread; ++i) {
    const int length = first + i < q.templates ? q.length : 0;
    const float* const of =
        left + (static_cast<Index>(first + i) * q.channels + channel) * q.length;
    const auto of_template = [&](int at) { return load_or_zero(of, at, length); };
#pragma unroll 4
    for (int at = thread(); at < row_words; at += kWarpgroup) {
      std::uint32_t words[Maths::kParts];
      Maths::words(of_template, begin * Maths::kStep - kSpread + at, words);
      store(i, at, words);
    }
  }
}

// Computes the products of the steps of a panel, while the words `a` of the next steps are loaded.
// load(words, step, count) loads the words of `count` steps, multiply(words, step, count) starts
// their products, finish() waits for the products.
template <int kAtOnce, typename Left, typename Load, typename Multiply, typename Finish>
__device__ __forceinline__ void multiply_panel(Left (&a)[2][kAtOnce], int steps, const Load& load,
                                               const Multiply& multiply, const Finish& finish) {
  const int last = steps - kAtOnce;  // last step at which a whole group may begin
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
}

// Calls use(sums, shift) for each task of all tiles of a block and the templates of blockIdx.y, by
// all lanes of a warp; `shift` is the first shift of the task. part_of(shift) is the part of the
// signal of the tile that begins at `shift`: sample(c, i) is its sample i of channel c, start(row)
// the initial value of the sums of template `row` of the block. All threads of a block call
// each_task.
template <typename Maths, int kSpread, typename PartOf, typename Use>
__device__ __forceinline__ void each_task(const WarpgroupLayout& q, const float* left,
                                          const PartOf& part_of, const Use& use) {
  constexpr int kTemplates = kProductRows / kSpread;  // per product
  constexpr int kTaskShifts = kSpread * Maths::kColumns;
  constexpr int kPlanes = kSpread / Maths::kPart;
  constexpr int kSums = Maths::kColumns / 2;
  constexpr int kAtOnce = Maths::kAtOnce, kParts = Maths::kParts;
  using Left = std::uint32_t[kParts][4];  // of a lane, for one step

  const int thread = static_cast<int>(threadIdx.x) % kWarpgroup;
  const int warpgroup = static_cast<int>(threadIdx.x) / kWarpgroup;
  auto* const signal = dynamic_shared<std::uint32_t>();
  const int part_words = q.channel_words / kParts;
  // Offset of column 0 of the block in part p, in words.
  const auto place = [&](int p) { return (p % kPlanes * q.plane + p / kPlanes) * kPartWords; };
  std::uint32_t* const panel = signal + q.channels * q.channel_words + warpgroup * q.panel_words;
  const int row_words = q.panel_steps * Maths::kStep + kSpread;
  const int panel_part_words = kTemplates * row_words;
  // The first of the two rows of this lane (the other is 8 rows below), and the offsets of their
  // column 0.
  const int lane = thread % warp::kSize, row = thread / warp::kSize * 16 + lane / 4;
  const auto first_word = [&](int of) {
    return of / kSpread * row_words + kSpread - of % kSpread + lane % 4 * (Maths::kStep / 8);
  };
  const int first_words[2] = {first_word(row), first_word(row + 8)};

  const int groups =
      ceil_div(std::min(int{kBlockTemplates}, q.templates - first_of_block()), kTemplates);
  int kept = -1;  // group whose only panel is staged for the warpgroup
#pragma unroll 1
  for (int tile = static_cast<int>(blockIdx.x); tile < q.tiles;
       tile += static_cast<int>(gridDim.x)) {
    const int first_shift = tile * kTileShifts<Maths, kSpread>;
    const auto part = part_of(first_shift);
    if (tile != static_cast<int>(blockIdx.x)) block::barrier();  // the signal may still be read
#pragma unroll 1
    for (int channel = 0; channel < q.channels; ++channel) {
      constexpr int kOfWord = Maths::kPart / kPartWords;
      std::uint32_t* const to = signal + channel * q.channel_words;
#pragma unroll 8
      for (int i = opaque(static_cast<int>(threadIdx.x)); i * kOfWord < q.samples;
           i += kWarpgroups * kWarpgroup) {
        std::uint32_t of[kParts];
        Maths::words([&](int at) { return part.sample(channel, at); }, i * kOfWord, of);
#pragma unroll
        for (int n = 0; n < kParts; ++n) {
          to[n * part_words + place(i / kPartWords) + i % kPartWords] = of[n];
        }
      }
    }
    warpgroup::publish_shared();
    block::barrier();
    const int along = std::min(kTileShifts<Maths, kSpread> / kTaskShifts,
                               ceil_div(q.shifts - first_shift, kTaskShifts));
#pragma unroll 1
    for (int task = warpgroup; task < groups * along; task += kWarpgroups) {
      WarpgroupSums<Maths, kSpread> sums;
      sums.group = task % groups;
      const int task_shift = task / groups * kTaskShifts;  // in the tile
      float fresh[kSums];
      const float starts[2] = {part.start(sums.row(0)), part.start(sums.row(1))};
#pragma unroll
      for (int i = 0; i < kSums; ++i) {
        sums.d[i] = starts[i % 4 / 2];
        fresh[i] = 0.0f;
      }

      int channel = 0, begin = 0;
#pragma unroll 1
      while (channel < q.channels) {
        if (sums.group != kept) {
          // No thread of the warpgroup reads the previous panel any more.
          wait_for_warpgroup(warpgroup);
          stage_panel<Maths, kSpread>(
              q, left, first_of_block() + sums.group * kTemplates, channel, begin, row_words,
              [&] { return opaque(thread); },
              [&](int i, int at, const std::uint32_t (&words)[kParts]) {
#pragma unroll
                for (int part = 0; part < kParts; ++part) {
                  panel[part * panel_part_words + i * row_words + at] = words[part];
                }
              });
          if (q.channels == 1 && q.panel_steps == q.steps) kept = sums.group;
          wait_for_warpgroup(warpgroup);
        }

        Left a[2][kAtOnce];
        const auto load = [&](Left(&of)[kAtOnce], int step, int count) {
#pragma unroll
          for (int s = 0; s < count; ++s) {
#pragma unroll
            for (int i = 0; i < kParts * 4; ++i) {
              of[s][i / 4][i % 4] =
                  panel[i / 4 * panel_part_words + first_words[i % 2] + (step + s) * Maths::kStep +
                        i % 4 / 2 * (Maths::kStep / 2)];
            }
          }
        };
        const auto multiply = [&](const Left(&of)[kAtOnce], int step, int count) {
          warpgroup::fence();
#pragma unroll
          for (int s = 0; s < count; ++s) {
            const std::uint32_t* const b =
                signal + channel * q.channel_words +
                place(task_shift / Maths::kPart + (begin + step + s) * 2);
            const int rows_apart = (kPlanes == 1 ? 1 : q.plane) * kPartBytes;
            if constexpr (Maths::kFromZero) {
              if (s == 0) {
                Maths::template add<false>(fresh, of[s], b, part_words, rows_apart);
              } else {
                Maths::template add<true>(fresh, of[s], b, part_words, rows_apart);
              }
            } else {
              Maths::template add<true>(sums.d, of[s], b, part_words, rows_apart);
            }
          }
          warpgroup::commit();
        };
        const auto finish = [&] {
          warpgroup::wait<0>();
          if constexpr (Maths::kFromZero) {
#pragma unroll
            for (int i = 0; i < kSums; ++i) sums.d[i] += fresh[i];
          }
        };
        multiply_panel(a, std::min(q.panel_steps, q.steps - begin), load, multiply, finish);
        begin += q.panel_steps;
        if (begin >= q.steps) {
          begin = 0;
          ++channel;
        }
      }

      use(sums, first_shift + task_shift);
    }
  }
}

// A part of the signal without changes.
struct PlainPart {
  const float* right;
  int pitch, first;
  __device__ __forceinline__ float sample(int channel, int i) const {
    return load_or_zero(right + static_cast<Index>(channel) * pitch, first + i, pitch);
  }
  __device__ __forceinline__ float start(int /*row*/) const { return 0.0f; }
};

template <typename Maths, int kSpread>
__global__ void __launch_bounds__(kWarpgroups* kWarpgroup, SeriesTuning::kWarpgroupBlocks)
    warpgroup_kernel(WarpgroupLayout q, const float* __restrict__ left,
                     const float* __restrict__ right, float* __restrict__ out) {
  each_task<Maths, kSpread>(
      q, left, [&](int shift) { return PlainPart{right, q.pitch, q.first + shift}; },
      [&](const WarpgroupSums<Maths, kSpread>& sums, int shift) {
        sums.store(out, q, first_of_block(), shift);
      });
}

}  // namespace xcorr::time_series
