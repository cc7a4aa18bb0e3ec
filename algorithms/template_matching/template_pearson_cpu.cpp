// An optimised form of the CPU program that the sliding-window paper compares with ("a
// multi-threaded C implementation", section Current Performance): Pearson's correlation of
// templates at every position in a frame, by its definition. Derived from cpu_row_streaming in
// three steps:
//
// - Scores need one correlation, with the template without its mean; cpu_row_streaming computes
//   six.
// - The sums of a window come from integral images, in float64.
// - Products are float32, in SIMD blocks of outputs that stay in registers (below).
//
// Whatever a tile of the surface needs is computed once and serves all templates (cpu_tiles.hpp).
// If the mean of a window is far from the pivot of the tile compared with its deviation, the
// products of the tile are computed again in float64.
//
// SIMD by row streaming: a vector of a row of the frame is multiplied by one template element in
// all lanes, for kRows rows of outputs at once. Rows of zeros surround the template, so that the
// loop over the rows of the frame has no branch. Lanes and rows beyond the tile are computed and
// dropped. AVX-512, AVX2 with FMA or the baseline of the architecture is chosen at run time.
//
// Covariance, masks, and large templates with ncc are computed in float64. threads=all spreads over
// tiles, and over templates if there are few tiles.
// Limits: the left matrix is the template and lies inside the right one at every shift (window
// `valid` or a part of it). Templates along one signal are refused (family time_series).
// Measured: about 80 % of the peak rate of multiply-adds of one core at 64 x 64; small search areas
// do not fill the vectors.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "algorithms/blocks/precision.hpp"
#include "algorithms/template_matching/cpu_tiles.hpp"
#include "harness/variant.hpp"

namespace xcorr::template_matching {
namespace {

constexpr int kMostRows = 8;
constexpr Index kMostCols = 48;  // outputs per block along x: three vectors of AVX-512 in float32

// Rows whose products go into one sum. The error of float32 sums of a large template grows with the
// root of their length; sums of 32 rows, added up, have a third of the error at 141 x 107.
constexpr Index kRowsOfASum = 32;

// Computes a block of kRows x kVectors vectors of outputs. `left` has kRows - 1 rows of zeros
// before and after it.
template <typename T, int kBytes, int kRows, int kVectors>
[[gnu::always_inline]] inline void correlate_block(const T* left, Shape shape, const T* right,
                                                   Index pitch, T* out, Index out_pitch) {
  constexpr int kLanes = kBytes / sizeof(T);
  typedef T Vector __attribute__((vector_size(kBytes), aligned(sizeof(T)), may_alias));
  const Index rows = shape.rows + kRows - 1;
  for (Index first = 0; first < rows; first += kRowsOfASum) {
    Vector sum[kRows][kVectors] = {};
    for (Index row = first; row < std::min(first + kRowsOfASum, rows); ++row) {
      const T* at = right + row * pitch;
      const T* of_row = left + row * shape.cols;
      for (Index x = 0; x < shape.cols; ++x) {
        Vector r[kVectors];
#pragma GCC unroll 16
        for (int v = 0; v < kVectors; ++v) {
          r[v] = *reinterpret_cast<const Vector*>(at + x + v * kLanes);
        }
#pragma GCC unroll 16
        for (int i = 0; i < kRows; ++i) {
          const T l = of_row[x - i * shape.cols];
#pragma GCC unroll 16
          for (int v = 0; v < kVectors; ++v) sum[i][v] += l * r[v];
        }
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) {
        Vector& all = *reinterpret_cast<Vector*>(out + i * out_pitch + v * kLanes);
        all = first == 0 ? sum[i][v] : all + sum[i][v];
      }
    }
  }
}

}  // namespace

// Outside of the unnamed namespace, since a member of TilesPlan, which is in a header, holds it.
template <typename T>
struct Block {
  void (*run)(const T* left, Shape shape, const T* right, Index pitch, T* out, Index out_pitch);
  int rows, cols;
};
// Indexed by rows (all, half of them) and vectors (1, 2, 3).
template <typename T>
using Blocks = std::array<std::array<Block<T>, 3>, 2>;

namespace {

struct Baseline {
  static constexpr int kBytes = 16;
  template <typename T, int kRows, int kVectors>
  static void run(const T* left, Shape shape, const T* right, Index pitch, T* out,
                  Index out_pitch) {
    correlate_block<T, kBytes, kRows, kVectors>(left, shape, right, pitch, out, out_pitch);
  }
};
#if defined(__x86_64__)
struct Avx2 {
  static constexpr int kBytes = 32;
  template <typename T, int kRows, int kVectors>
  [[gnu::target("avx2,fma")]] static void run(const T* left, Shape shape, const T* right,
                                              Index pitch, T* out, Index out_pitch) {
    correlate_block<T, kBytes, kRows, kVectors>(left, shape, right, pitch, out, out_pitch);
  }
};
struct Avx512 {
  static constexpr int kBytes = 64;
  template <typename T, int kRows, int kVectors>
  [[gnu::target("avx512f")]] static void run(const T* left, Shape shape, const T* right,
                                             Index pitch, T* out, Index out_pitch) {
    correlate_block<T, kBytes, kRows, kVectors>(left, shape, right, pitch, out, out_pitch);
  }
};
#endif

template <typename T, typename Set, int kRows>
Blocks<T> blocks_of() {
  const auto of_rows = []<int kOf>(std::integral_constant<int, kOf>) {
    constexpr int kLanes = Set::kBytes / sizeof(T);
    return std::array<Block<T>, 3>{{{Set::template run<T, kOf, 1>, kOf, kLanes},
                                    {Set::template run<T, kOf, 2>, kOf, 2 * kLanes},
                                    {Set::template run<T, kOf, 3>, kOf, 3 * kLanes}}};
  };
  return {of_rows(std::integral_constant<int, kRows>()),
          of_rows(std::integral_constant<int, kRows / 2>())};
}
template <typename T>
Blocks<T> choose_blocks() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return blocks_of<T, Avx512, 8>();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return blocks_of<T, Avx2, 4>();
  }
#endif
  return blocks_of<T, Baseline, 4>();
}

// Computes every output of a tile, in blocks. `left` and `right` are planes as in cpu_tiles.hpp.
template <typename T>
void correlate_tile(const Blocks<T>& blocks, const T* left, Shape shape, const T* right,
                    const Tile& tile, T* out, Index out_pitch) {
  for (Index y = 0; y < tile.outputs.rows;) {
    const auto& sizes = blocks[tile.outputs.rows - y <= blocks[1][0].rows ? 1 : 0];
    for (Index x = 0; x < tile.outputs.cols;) {
      const Block<T>* block = &sizes[0];
      while (block != &sizes[2] && tile.outputs.cols - x > block->cols) ++block;
      block->run(left, shape, right + y * tile.input.cols + x, tile.input.cols,
                 out + y * out_pitch + x, out_pitch);
      x += block->cols;
    }
    y += sizes[0].rows;
  }
}

}  // namespace

// The Correlator of cpu_tiles.hpp. In float64 it reads the planes of the tile without a copy.
template <typename C>
class RowStreaming {
 public:
  static constexpr Index kSlackRows = kMostRows - 1, kSlack = 2 * kMostCols;
  // Max ratio of the squares of a window about the pivot to those about its mean. At this ratio
  // products of float32 err by 0.3 sqrt(n) roundings times 5.
  static constexpr double kLargestOffset =
      sizeof(C) == sizeof(float) ? 25 : std::numeric_limits<double>::infinity();
  static constexpr double kLeastShare = 0;

  static Index pitch(const TileGrid& grid) { return grid.out_cols + kMostCols; }
  static Index template_doubles(const PlanRequest& request, const TileGrid&) {
    const Shape shape = request.problem.left;
    const Index copied = (shape.rows + 2 * kSlackRows) * shape.cols;
    return copies() ? lines(copied) : 0;
  }
  static Index tile_doubles(const TileGrid& grid) {
    return copies() ? lines((grid.rows + kSlackRows) * grid.cols + kSlack) : 0;
  }
  static Index doubles(const PlanRequest& request, const TileGrid& grid, Index slots,
                       Index threads) {
    return slots * template_doubles(request, grid) + threads * tile_doubles(grid);
  }

  RowStreaming(const PlanRequest& request, const TileGrid& grid, Index slots, Index threads,
               double* memory)
      : shape_(request.problem.left),
        pitch_(pitch(grid)),
        template_(template_doubles(request, grid)),
        tile_(tile_doubles(grid)),
        templates_(memory),
        tiles_(memory + slots * template_) {
    std::fill_n(memory, slots * template_ + threads * tile_, 0.0);
    left_.resize(static_cast<std::size_t>(slots));
    right_.resize(static_cast<std::size_t>(threads));
  }

  void left(Index slot, Plane plane, const double* values) {
    if constexpr (copies()) {
      C* to = reinterpret_cast<C*>(templates_ + slot * template_) + kSlackRows * shape_.cols;
      std::copy_n(values, shape_.size(), to);
      left_[static_cast<std::size_t>(slot)].plane[plane] = to;
    } else {
      left_[static_cast<std::size_t>(slot)].plane[plane] = values;
    }
  }
  void right(Index thread, Plane plane, const double* values, const Part& part) {
    if constexpr (copies()) {
      C* to = reinterpret_cast<C*>(tiles_ + thread * tile_);
      std::copy_n(values, part.rows * part.cols, to);
      right_[static_cast<std::size_t>(thread)].plane[plane] = to;
    } else {
      right_[static_cast<std::size_t>(thread)].plane[plane] = values;
    }
  }
  void correlate(Index thread, Index slot, Plane left, Plane right, const Tile& tile,
                 C* out) const {
    correlate_tile(blocks_, left_[static_cast<std::size_t>(slot)].plane[left], shape_,
                   right_[static_cast<std::size_t>(thread)].plane[right], tile, out, pitch_);
  }
  void correlate_in_double(const Planes& left, const Planes& right, const Tile& tile,
                           double* out) const {
    correlate_tile(exact_, static_cast<const double*>(left.plane[kValues]), shape_,
                   static_cast<const double*>(right.plane[kValues]), tile, out, pitch_);
  }

 private:
  struct Copies {
    const C* plane[kPlanes] = {};
  };
  static constexpr bool copies() { return sizeof(C) == sizeof(float); }
  static Index lines(Index elements) { return (elements * Index{sizeof(C)} + 255) / 256 * 32; }

  Shape shape_;
  Index pitch_, template_, tile_;
  double *templates_, *tiles_;
  std::vector<Copies> left_, right_;
  Blocks<C> blocks_ = choose_blocks<C>();
  Blocks<double> exact_ = choose_blocks<double>();
};

namespace {

// With 96 x 96 outputs a tile stays in the second-level cache. If there are fewer tiles than the
// threads need, tiles become lower, unless there is so little work that a barrier would take
// longer.
TileGrid grid(const PlanRequest& request) {
  constexpr Index kOutputs = 96;
  const Problem& q = request.problem;
  const Index wanted = 2 * device::thread_count(request);
  Index rows = kOutputs;
  const auto tasks = [&] {
    const TileGrid made = make_grid(q, rows, kOutputs);
    return made.tiles() * q.rights * (q.form == Form::n_to_m ? q.lefts : 1);
  };
  rows = std::min(rows, (q.out_rows() + kMostRows - 1) / kMostRows * kMostRows);
  constexpr Index kLittleWork = Index{1} << 22;
  const bool divides = device::thread_count(request) > 1 && q.fmas() > kLittleWork;
  while (divides && tasks() < wanted && rows > kMostRows) {
    rows = (rows / 2 + kMostRows - 1) / kMostRows * kMostRows;
  }
  return make_grid(q, rows, kOutputs);
}

// All products of ncc may have the same sign. Then all additions in float32 round in one direction,
// and a sum of n products loses up to n / 4 roundoffs; the check allows 0.8 sqrt(K) + 12 for K
// products (docs/design.md, Checks).
bool loses_digits_of_ncc(const Problem& q) {
  const Index together = std::min(q.left.rows, kRowsOfASum) * q.left.cols;
  const Index terms = together + (q.left.rows + kMostRows - 1) / kRowsOfASum;
  const double allowed = 0.8 * std::sqrt(static_cast<double>(q.left.size())) + 12;
  return q.fields.score.kind == ScoreKind::ncc && static_cast<double>(terms) > 4 * allowed;
}

// Sums are float64 with masks; for covariance, which has no norm beside which errors would be
// small; and for long sums of ncc.
bool is_exact(const Problem& q) {
  return q.fields.masks != Masks::none || q.fields.score.kind == ScoreKind::covariance ||
         loses_digits_of_ncc(q);
}

using Tiles = TilesVariant<RowStreaming, grid, is_exact>;

XCORR_VARIANT({
    .summary = "Pearson's score of templates by definition: one correlation and integral images a "
               "tile, SIMD by row streaming, threads",
    .parent = "cpu_row_streaming",
    .source = "Adaptable sliding window, Current Performance",
    .precisions = {Precision::fp32, Precision::fp64},
    .axes = {{"threads", {"1", "all"}}},
    .scores = {ScoreKind::covariance, ScoreKind::ncc, ScoreKind::zncc},
    .masks = true,
    .views = {Views::dense, Views::windows, Views::channels},
    .supports = [](const PlanRequest& request) { return takes(request, false); },
    .workspace_bytes = Tiles::workspace_bytes,
    .plan = Tiles::plan,
});

}  // namespace
}  // namespace xcorr::template_matching
