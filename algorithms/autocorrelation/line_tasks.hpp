// The division of a problem by the line kernels (ISS paper, section 4.3): a grid of lines x shifts
// sy, threads over the shifts sx. Set on the host, passed to kernels by value.
#pragma once

#include "algorithms/autocorrelation/mirrored_rows.hpp"
#include "algorithms/blocks/plan.hpp"

namespace xcorr::autocorrelation {

inline constexpr int kPanel = 256;        // columns of a line in shared memory at a time
inline constexpr int kStep = 16;          // columns per step of a thread; divides kPanel
inline constexpr int kMostThreads = 256;  // per block

// Blocks per SM for which a line kernel has registers.
template <int kShifts, bool kWhole>
constexpr int kBlocksResident = kShifts == 8 && kWhole ? 3 : 4;

// A thread with 8 shifts reads octets of a right line in shared memory, its neighbour the next
// octet. Without 4 floats of padding after each 32 floats, every second thread would access the
// banks of another thread.
template <int kShifts>
__host__ __device__ constexpr int padding_before(int octets) {
  return kShifts == 8 ? octets & ~3 : 0;
}
template <int kShifts>
__host__ __device__ constexpr int place_of(int column) {
  return column + padding_before<kShifts>(column / 8);
}

// An image has rows x cols pixels. A thread has `shifts` neighbouring sx, a line `across` threads.
// A block processes `at_once` lines at a time and `lines` lines in total. A block has one `chunk`
// of the shifts sx and one group of lines. A task is a computed row of shifts of a pair.
struct LineTasks {
  LineTasks(const Problem& q, int shifts, int lines_per_thread, Index most_lines)
      : window_rows(q),
        rows(static_cast<int>(q.left.rows)),
        cols(static_cast<int>(q.left.cols)),
        first_sx(static_cast<int>(q.window.sx.first)),
        out_cols(static_cast<int>(q.out_cols())),
        tasks(q.pairs() * window_rows.computed()),
        image_size(q.left.size()),
        out_size(q.out_size()) {
    const int width = ceil_div(out_cols, shifts);
    chunks = ceil_div(width, kMostThreads);
    across = ceil_div(width, chunks);
    right_span = kPanel + across * shifts;
    right_pitch = right_span + 4 + (shifts == 8 ? (right_span / 8 & ~3) : 0);
    const auto line_bytes = static_cast<int>(sizeof(float)) * (kPanel + right_pitch);
    constexpr int kMostBytes = 40 * 1024;
    const int most = std::max(1, std::min({kMostThreads / across, kMostBytes / line_bytes, rows}));
    at_once = filling(static_cast<int>(std::min<Index>(most, most_lines)));
    const Index most_turns = std::min<Index>(lines_per_thread, most_lines / at_once);
    lines = at_once * static_cast<int>(most_turns);
    groups = ceil_div(rows, lines);
    threads = threads_of(at_once);
    sums_pitch = across * shifts;
    shared_bytes =
        std::max<std::size_t>(at_once * line_bytes, at_once * sums_pitch * sizeof(float));
  }

  int threads_of(int lines_at_once) const {
    return ceil_div(across * lines_at_once, warp::kSize) * warp::kSize;
  }
  // A number of simultaneous lines, more than half of `most`, that leaves the fewest threads of
  // whole warps idle.
  int filling(int most) const {
    int best = most;
    for (int n = most; 2 * n > most; --n) {
      if (n * threads_of(best) > best * threads_of(n)) best = n;
    }
    return best;
  }
  // The number of groups of lines of a row of shifts.
  __host__ __device__ constexpr int groups_of(Index sy) const {
    const int overlapping = rows - static_cast<int>(sy < 0 ? -sy : sy);
    return (overlapping + lines - 1) / lines;
  }
  unsigned blocks_x() const { return static_cast<unsigned>(groups * chunks); }

  MirroredRows window_rows;
  int rows, cols, first_sx, out_cols;
  Index tasks, image_size, out_size;
  int chunks, across, at_once, lines, groups, threads;
  int right_span, right_pitch, sums_pitch;
  std::size_t shared_bytes;
};

// The kernel of the parameter shifts_per_thread, from those for 1, 4 and 8.
template <typename Kernel>
Kernel kernel_of(Kernel one, Kernel four, Kernel eight, const Params& params) {
  const int shifts = params.get_int("shifts_per_thread");
  return shifts == 1 ? one : shifts == 4 ? four : eight;
}

inline std::vector<Axis> line_axes() {
  return {{"shifts_per_thread", {"1", "4", "8"}, true}, {"lines_per_thread", {"1", "4", "16"}}};
}

inline Support line_support(const PlanRequest& request) {
  constexpr Index kMost = Index{1} << 26;
  if (request.problem.left.size() > kMost * 64 || request.problem.left.cols > kMost ||
      request.problem.left.rows > kMost) {
    return no("more than 2^26 rows or columns");
  }
  return device::indices_fit(request.problem);
}

}  // namespace xcorr::autocorrelation
