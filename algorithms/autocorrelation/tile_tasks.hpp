// The division of a problem by autocorr_cuda_tile. Set on the host, passed to kernels by value.
//
// A task is 4 neighbouring computed rows of shifts of a pair, and one chunk of the shifts along
// them: `octets` times 8 neighbouring sx. Its left pixels are divided into panels of columns, and a
// panel into steps of 4 rows for each of the `down` threads, which are one below the other. A group
// with a single row of shifts has larger steps, which take about as long. The steps of all tasks
// are numbered, and each block takes an equal share of the numbers, in tiles of several steps. In a
// tile a thread has one octet, 8 columns (for one of `across` threads side by side) and at most
// `rows_per_thread` rows.
#pragma once

#include <limits>

#include "algorithms/autocorrelation/mirrored_rows.hpp"
#include "algorithms/blocks/divide.hpp"
#include "algorithms/blocks/plan.hpp"

namespace xcorr::autocorrelation {

inline constexpr int kOctet = 8;          // neighbouring sx per thread
inline constexpr int kColumns = 8;        // neighbouring left columns per thread
inline constexpr int kRowsOfShifts = 4;   // neighbouring sy per thread
inline constexpr int kTileThreads = 512;  // max per block

// How the threads of a block copy rows of `vectors` vectors of 4: in `count` teams, one row each.
struct CopyTeams {
  CopyTeams() = default;
  CopyTeams(int vectors_of_row, int threads_of_block)
      : vectors(vectors_of_row),
        count(std::max(1, threads_of_block / vectors_of_row)),
        threads(std::min(vectors_of_row, threads_of_block)) {}
  int vectors = 0, count = 0;
  Divider threads;  // per team
};

struct TileTasks {
  TileTasks(const Problem& q, int most_threads, int most_rows)
      : window_rows(q),
        rows(static_cast<int>(q.left.rows)),
        cols(static_cast<int>(q.left.cols)),
        pitch(ceil_div(cols, 4) * 4),
        out_cols(static_cast<int>(q.out_cols())),
        pairs(q.pairs()),
        out_size(q.out_size()) {
    const auto sx = static_cast<int>(q.window.sx.first);
    skipped = ((sx % 4) + 4) % 4;
    first_sx = sx - skipped;
    groups_before = ceil_div(window_rows.before, kRowsOfShifts);
    groups = groups_before + ceil_div(window_rows.computed() - window_rows.before, kRowsOfShifts);
    choose(most_threads, most_rows);
    step = Divider(down * kRowsOfShifts);
    const int larger = rows_per_thread % 12 == 0 ? 3 : rows_per_thread % 8 == 0 ? 2 : 1;
    single_rows = kRowsOfShifts * larger;
    single_step = Divider(down * single_rows);
    for (int group = 0; group < groups; ++group) steps_of_pair += steps_of_group(group);
    steps = pairs * steps_of_pair;
  }

  // A group of rows of shifts: its first computed row, its number of rows, its smallest sy.
  __host__ __device__ constexpr int first_of(int group) const {
    return group < groups_before ? group * kRowsOfShifts
                                 : window_rows.before + (group - groups_before) * kRowsOfShifts;
  }
  __host__ __device__ constexpr int group_of(int computed_row) const {
    return computed_row < window_rows.before
               ? computed_row / kRowsOfShifts
               : groups_before + (computed_row - window_rows.before) / kRowsOfShifts;
  }
  __host__ __device__ constexpr int count_of(int group) const {
    const int end = group < groups_before ? window_rows.before : window_rows.computed();
    const int count = end - first_of(group);
    return count < kRowsOfShifts ? count : kRowsOfShifts;
  }
  __host__ __device__ constexpr int sy_of(int group) const {
    return static_cast<int>(window_rows.sy(first_of(group)));
  }
  // The left rows of a group: first_y .. end_y - 1.
  __host__ __device__ constexpr int first_y(int group) const {
    const int last_sy = sy_of(group) + count_of(group) - 1;
    return last_sy < 0 ? -last_sy : 0;
  }
  __host__ __device__ constexpr int end_y(int group) const {
    const int sy = sy_of(group);
    return sy > 0 ? rows - sy : rows;
  }
  // The rows of a step of a group, and the number of steps for `count` rows.
  __host__ __device__ constexpr const Divider& step_of(int group) const {
    return count_of(group) == 1 ? single_step : step;
  }
  __host__ __device__ __forceinline__ int rows_of_step(int group) const {
    return static_cast<int>(step_of(group).by);
  }
  __host__ __device__ __forceinline__ int steps_of(int group, int count) const {
    const Divider& its = step_of(group);
    return static_cast<int>(its.quotient(static_cast<std::uint32_t>(count) + its.by - 1));
  }
  __host__ __device__ __forceinline__ int steps_of_panel(int group) const {
    return steps_of(group, end_y(group) - first_y(group));
  }
  __host__ __device__ __forceinline__ Index steps_of_group(int group) const {
    return static_cast<Index>(steps_of_panel(group)) * panels_of_all;
  }
  // A chunk: its smallest sx; its left columns, first_x .. end_x - 1; its panels. The smallest sx
  // and first_x are multiples of 4.
  __host__ __device__ constexpr int sx_of(int chunk) const {
    return first_sx + chunk * octets * kOctet;
  }
  __host__ __device__ constexpr int first_x(int chunk) const {
    const int last_sx = sx_of(chunk) + octets * kOctet - 1;
    return last_sx < 0 ? -last_sx / 4 * 4 : 0;
  }
  __host__ __device__ constexpr int end_x(int chunk) const {
    const int sx = sx_of(chunk);
    return sx > 0 ? cols - sx : cols;
  }
  __host__ __device__ constexpr int panels_of(int chunk) const {
    return ceil_div(end_x(chunk) - first_x(chunk), across * kColumns);
  }
  // The number of steps of a pair before those of a task.
  __host__ __device__ __forceinline__ Index steps_before(int group, int chunk) const {
    Index before = 0;
    for (int g = 0; g < group; ++g) before += steps_of_group(g);
    int panels = 0;
    for (int c = 0; c < chunk; ++c) panels += panels_of(c);
    return before + static_cast<Index>(steps_of_panel(group)) * panels;
  }
  __host__ __device__ constexpr Index task_of(Index pair, int group, int chunk) const {
    return (pair * groups + group) * chunks + chunk;
  }
  Index tasks() const { return pairs * groups * chunks; }
  __host__ __device__ constexpr int shifts() const { return octets * kOctet; }
  int right_rows() const { return tile_rows + kRowsOfShifts - 1; }
  __host__ __device__ constexpr Index padded_size() const {
    return static_cast<Index>(rows) * pitch;
  }
  std::size_t shared_bytes() const { return 2 * sizeof(float) * static_cast<std::size_t>(buffer); }

  MirroredRows window_rows;
  int rows, cols, pitch;                    // pitch: of the padded images, whole vectors of 4
  int first_sx = 0, skipped = 0, out_cols;  // skipped: shifts before the window
  int groups_before = 0, groups = 0;        // of rows of shifts: before the mirrored rows, in total
  int octets = 0, chunks = 0, panels_of_all = 0;
  int across = 0, down = 0, rows_per_thread = 0, tile_rows = 0, threads = 0;
  Divider step, single_step;  // rows per step
  int single_rows = 0;        // per thread
  CopyTeams left_teams, right_teams;
  int left_pitch = 0, half = 0, buffer = 0;  // in floats; two buffers alternate
  Index pairs, out_size, steps_of_pair = 0, steps = 0;

 private:
  // Chooses the octets and the threads across and down with the fewest instructions per left row.
  void choose(int most_threads, int most_rows) {
    // Shared memory of an SM: that of compute capability 9.0, 8.0, 8.6, or the minimum. A block
    // uses at most its share, unless no tile is that small.
    std::size_t of_sm = 40 * 1024;
    for (const std::size_t kib : {96, 160, 224}) {
      if (fits_shared(kib * 1024)) of_sm = kib * 1024;
    }
    const std::size_t share = of_sm * static_cast<std::size_t>(most_threads) / kTileThreads;
    if (!choose_within(share, most_threads, most_rows)) {
      choose_within(of_sm, most_threads, most_rows);
    }
    threads = ceil_div(octets * across * down, warp::kSize) * warp::kSize;
    left_teams = {left_pitch / 4, threads};
    right_teams = {(left_pitch + shifts()) / 4, threads};
  }

  bool choose_within(std::size_t most_bytes, int most_threads, int most_rows) {
    const int all = ceil_div(out_cols + skipped, kOctet);
    const int fewest = ceil_div(all, kMostOctets);
    const int most = fewest > kFewChunks ? fewest : std::max(fewest, all / kFewOctets);
    double least = std::numeric_limits<double>::infinity();
    TileTasks best = *this;
    for (int count = fewest; count <= most; ++count) {
      octets = ceil_div(all, count);
      chunks = ceil_div(all, octets);
      const int widest = std::min(most_threads / octets, ceil_div(cols, kColumns));
      for (across = 1; across <= widest; ++across) {
        panels_of_all = 0;
        for (int chunk = 0; chunk < chunks; ++chunk) panels_of_all += panels_of(chunk);
        down = std::min(most_threads / (octets * across), ceil_div(rows, kRowsOfShifts));
        while (down > 0 && !set_rows(most_rows, most_bytes)) down /= 2;
        if (down == 0) continue;
        if (const double cost = instructions(most_threads); cost < least) {
          least = cost;
          best = *this;
        }
      }
    }
    *this = best;
    return least < std::numeric_limits<double>::infinity();
  }

  // Chooses the rows per thread: as many as fit, but few enough that there are enough tiles.
  bool set_rows(int most_rows, std::size_t most_bytes) {
    const double all_rows = static_cast<double>(rows) * panels_of_all * groups *
                            static_cast<double>(pairs) / (kEnoughTiles * down);
    int count = most_rows;
    while (count > kRowsOfShifts && (count > all_rows || count * down > 2 * rows)) {
      count -= kRowsOfShifts;
    }
    for (; count > 0; count -= kRowsOfShifts) {
      rows_per_thread = count;
      tile_rows = count * down;
      left_pitch = across * kColumns;
      half = 4 * ceil_div(left_pitch + shifts(), 8);
      const int tile = tile_rows * left_pitch + right_rows() * 2 * half;
      buffer = std::max(tile, octets * kOctet * across * down);
      if (shared_bytes() <= most_bytes) return true;
    }
    return false;
  }

  // Estimated instructions of all threads for all tiles, from the machine code of compute
  // capability 9.0.
  double instructions(int most_threads) const {
    constexpr double kOfCopiedFloat = 2.5, kOfTile = 250;
    const double of_row = kRowsOfShifts * kOctet * kColumns + kColumns / 4 + 8;
    const double copied = left_pitch * tile_rows + right_rows() * (left_pitch + shifts());
    const double of_tile =
        most_threads * (rows_per_thread * of_row + kOfTile) + copied * kOfCopiedFloat;
    return of_tile * panels_of_all * rows / tile_rows;
  }

  static constexpr int kMostOctets = 32, kFewOctets = 8, kFewChunks = 64;
  static constexpr double kEnoughTiles = small_if_emulated(1024, 6);
};

}  // namespace xcorr::autocorrelation
