// Register tiles over both directions of shifts: a thread has 8 neighbouring sx of 4 neighbouring
// sy, 32 sums. A thread of autocorr_cuda_two_kernels has shifts of one row only. Here a right row
// in shared memory serves 4 rows of shifts. Derived from autocorr_cuda_two_kernels; the second
// kernel is the same. The order of all additions is fixed on a device.
//
// 1. A kernel copies the image into the workspace with rows of whole vectors of 16 bytes.
// 2. A thread walks down the rows of 8 left columns (tile_sums.hpp): 256 products for 6 accesses
//    to shared memory. Meanwhile the next tile is copied asynchronously.
// 3. A block takes an equal share of the rows of all tasks. At the end of a task, or after
//    kTilesOfASum tiles, the threads of a block add their sums for the same shifts, and the block
//    writes one value for each shift of the task. This bounds the number of products per float32
//    sum.
// 4. A last kernel adds the values of the blocks, and mirrors rows.
//
// `threads` and `rows_per_thread` are maxima: an SM has registers for 512 threads in total. The
// host chooses the octets of sx per block and the division of a tile among threads by the number of
// instructions (tile_tasks.hpp).
// Limits: at most 2^20 rows and columns; compute capability 8.0 (asynchronous copies). An infinity
// or a NaN may reach outputs whose overlaps do not contain it.
// What limits it: the FMA rate. 2.5 % of the issue slots read shared memory. Products with zeros
// cost more: the warps of a block process the columns of the widest overlap of their shifts.
#include "algorithms/autocorrelation/tile_sums.hpp"

namespace xcorr::autocorrelation {
namespace {

constexpr int kSumThreads = 256;
constexpr int kTilesOfASum = static_cast<int>(small_if_emulated(32, 2));

// grid: vectors of a row (x), rows of all images in a stride (y).
__global__ void __launch_bounds__(kSumThreads)
    autocorr_cuda_tile_pad(TileTasks q, const float* __restrict__ images,
                           float* __restrict__ padded) {
  const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (x >= q.pitch) return;
  const Index rows = q.pairs * q.rows;
  for (Index y = blockIdx.y; y < rows; y += gridDim.y) {
    padded[y * q.pitch + x] = load_or_zero(images + y * q.cols, x, q.cols);
  }
}

// grid: blocks. Block b processes the steps from b * steps / blocks on, and stores its value for a
// task at index b + task.
__global__ void __launch_bounds__(kTileThreads, 1)
    autocorr_cuda_tile_sums(TileTasks q, const float* __restrict__ padded,
                            float* __restrict__ values) {
  float* const shared = dynamic_shared<float>();
  const int thread = static_cast<int>(threadIdx.x);
  const int part = thread / q.octets, octet = thread - part * q.octets;
  const int below = part / q.across, beside = part - below * q.across;
  const Index begin = q.steps * blockIdx.x / gridDim.x;
  auto left = static_cast<int>(q.steps * (blockIdx.x + 1) / gridDim.x - begin);
  TilePlace place(q, begin);
  TileSums sums = {};
  bool adds = false;
  int turn = 0, of_a_sum = 0, steps = place.steps(q, left);
  copy_tile(q, place, steps * q.rows_of_step(place.group), padded, shared);
  async_copy::commit();
  while (steps > 0) {
    async_copy::wait();
    block::barrier();
    float* const buffer = shared + turn * q.buffer;
    turn ^= 1;
    const bool single = q.count_of(place.group) == 1;
    const int rows_of_tile = steps * q.rows_of_step(place.group);
    const int rows = steps * (single ? q.single_rows : kRowsOfShifts), first = below * rows;
    const Index task = q.task_of(place.pair, place.group, place.chunk);
    // Whether a right column of the thread exists. Skipping threads without one saves energy, not
    // time: other threads of their warp have one.
    const int x = place.x + beside * kColumns, right_x = x + q.sx_of(place.chunk) + octet * kOctet;
    const bool overlaps =
        below < q.down && x < q.cols && right_x < q.cols && right_x + kOctet + kColumns - 1 > 0;
    left -= steps;
    const bool ends = place.advance(q, rows_of_tile) || left == 0;
    steps = left > 0 ? place.steps(q, left) : 0;
    if (steps > 0) {
      copy_tile(q, place, steps * q.rows_of_step(place.group), padded, shared + turn * q.buffer);
      async_copy::commit();
    }
    if (overlaps) {
      const float* const rights = buffer + q.tile_rows * q.left_pitch + first * 2 * q.half;
      const int vector = 2 * octet + beside * (kColumns / 4);
      const auto place_of = [&](int n) { return rights + n % 2 * q.half + n / 2 * 4; };
      const float* const lefts = buffer + first * q.left_pitch + beside * kColumns;
      if (single) {
        add_rows<1>(q, sums, lefts, place_of(vector), place_of(vector + 1), rows);
      } else {
        add_rows<kRowsOfShifts>(q, sums, lefts, place_of(vector), place_of(vector + 1), rows);
      }
    }
    if (++of_a_sum < kTilesOfASum && !ends) continue;
    give_tile_sums(q, sums, adds, buffer,
                   values + (blockIdx.x + task) * kRowsOfShifts * q.shifts());
    adds = !ends;
    of_a_sum = 0;
  }
}

// grid: columns (x), computed rows of shifts of all pairs in a stride (y). `blocks` is the number
// of blocks of autocorr_cuda_tile_sums.
__global__ void __launch_bounds__(kSumThreads)
    autocorr_cuda_tile_finish(TileTasks q, Index blocks, const float* __restrict__ values,
                              float* __restrict__ out) {
  const int col = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (col >= q.out_cols) return;
  const int computed = q.window_rows.computed();
  const int chunk = (col + q.skipped) / q.shifts();
  const int at = col + q.skipped - chunk * q.shifts();
  for (Index row = blockIdx.y; row < q.pairs * computed; row += gridDim.y) {
    const Index pair = row / computed;
    const auto i = static_cast<int>(row - pair * computed);
    const int group = q.group_of(i), s = i - q.first_of(group);
    const Index first = pair * q.steps_of_pair + q.steps_before(group, chunk);
    const Index last = first + static_cast<Index>(q.steps_of_panel(group)) * q.panels_of(chunk) - 1;
    const Index task = q.task_of(pair, group, chunk);
    float sum = 0;
    // The block of step n is the last one whose first step is at or before n.
    for (Index block = ((first + 1) * blocks - 1) / q.steps;
         block <= ((last + 1) * blocks - 1) / q.steps; ++block) {
      sum += values[((block + task) * kRowsOfShifts + s) * q.shifts() + at];
    }
    float* const of_pair = out + pair * q.out_size;
    of_pair[static_cast<Index>(q.window_rows.row(i)) * q.out_cols + col] = sum;
    if (const int mirror = q.window_rows.mirror(i); mirror >= 0) {
      of_pair[static_cast<Index>(mirror + 1) * q.out_cols - 1 - col] = sum;
    }
  }
}

TileTasks tasks_of(const PlanRequest& request) {
  return {request.problem, request.params.get_int("threads"),
          request.params.get_int("rows_per_thread")};
}

class TilePlan final : public DevicePlan<float> {
 public:
  explicit TilePlan(const PlanRequest& request)
      : DevicePlan(request.problem),
        tasks_(tasks_of(request)),
        blocks_(blocks_of(tasks_)),
        padded_(static_cast<float*>(request.workspace)),
        values_(padded_ + tasks_.pairs * tasks_.padded_size()) {}

  static std::size_t workspace_bytes(const PlanRequest& request) {
    const TileTasks tasks = tasks_of(request);
    const Index values = (blocks_of(tasks) + tasks.tasks()) * kRowsOfShifts * tasks.shifts();
    return static_cast<std::size_t>(tasks.pairs * tasks.padded_size() + values) * sizeof(float);
  }

 private:
  static Index blocks_of(const TileTasks& tasks) {
    return std::min<Index>(tasks.steps,
                           resident_blocks(reinterpret_cast<const void*>(autocorr_cuda_tile_sums),
                                           tasks.threads, tasks.shared_bytes()));
  }

  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    const auto across = [](int columns) {
      return static_cast<unsigned>(ceil_div(columns, kSumThreads));
    };
    launch(autocorr_cuda_tile_pad,
           dim3(across(tasks_.pitch), grid_extent(tasks_.pairs * tasks_.rows)), dim3(kSumThreads),
           0, call.stream, tasks_, arrays.left, padded_);
    launch(autocorr_cuda_tile_sums, dim3(static_cast<unsigned>(blocks_)),
           dim3(static_cast<unsigned>(tasks_.threads)), tasks_.shared_bytes(), call.stream, tasks_,
           padded_, values_);
    launch(autocorr_cuda_tile_finish,
           dim3(across(tasks_.out_cols), grid_extent(tasks_.pairs * tasks_.window_rows.computed())),
           dim3(kSumThreads), 0, call.stream, tasks_, blocks_, values_, arrays.out);
  }

  TileTasks tasks_;
  Index blocks_;
  float *padded_, *values_;
};

Support supports(const PlanRequest& request) {
  constexpr Index kMost = Index{1} << 20;
  if (request.problem.left.rows > kMost || request.problem.left.cols > kMost) {
    return no("more than 2^20 rows or columns");
  }
  if (!async_copy::supported()) {
    return no("asynchronous copies need compute capability 8.0");
  }
  return indices_fit(request.problem);
}

XCORR_VARIANT({
    .summary = "Autocorrelation: threads have 8 x 4 shifts, the next tile is copied meanwhile",
    .parent = "autocorr_cuda_two_kernels",
    .source = "this project",
    .backend = Backend::cuda,
    .forms = {Form::one_to_one, Form::n_to_mn},
    .axes = {{"threads", {"128", "256", "512"}}, {"rows_per_thread", {"8", "24", "48"}}},
    .same_only = true,
    .supports = supports,
    .workspace_bytes = TilePlan::workspace_bytes,
    .plan = make_plan<TilePlan>,
});

}  // namespace
}  // namespace xcorr::autocorrelation
