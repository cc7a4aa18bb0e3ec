// The earlier program of the ISS paper (section 2.2), for GPUs without atomic additions: the line
// kernel writes its sums to global memory, and a second kernel adds them. Derived from
// autocorr_cuda_line, from which only the addition differs. "This leads to an overall decrease in
// performance of 25 %." The order of all additions is fixed. The paper has one shift and one line
// per thread.
//
// The sums of a row of shifts are (lines / lines of a block) x shifts values. The workspace holds
// up to 2^26 values, and the two kernels run in turns over as many rows as fit.
// Limits: those of the line kernel; in addition, a value is written and read for each sum of a
// block. An infinity or a NaN may reach outputs whose overlaps do not contain it.
#include <limits>

#include "algorithms/autocorrelation/line_sums.hpp"

namespace xcorr::autocorrelation {
namespace {

constexpr Index kMostValues = small_if_emulated(Index{1} << 26, 600);
constexpr int kSumThreads = 256;

// Rows of shifts whose sums are in the workspace at once: tasks first .. first + count - 1.
struct Turn {
  Index first, count;
};

// Index of the first value of a group of a task of this turn; out_cols values follow.
__host__ __device__ constexpr Index value_of(const LineTasks& q, const Turn& turn, Index task,
                                             int group) {
  return ((task - turn.first) * q.groups + group) * q.out_cols;
}

// grid: groups of lines x chunks of shifts (x), tasks of this turn in a stride (y).
template <int kShifts>
__global__ void __launch_bounds__(kMostThreads, (kBlocksResident<kShifts, false>))
    autocorr_cuda_two_kernels_lines(LineTasks q, Turn turn, const float* __restrict__ images,
                                    float* __restrict__ values) {
  float* const shared = dynamic_shared<float>();
  for_each_task(q, turn.first, turn.first + turn.count,
                [&](Index task, int sy, int /*i*/, int group, int chunk) {
                  const Index pair = task / q.window_rows.computed();
                  const LineTotals<kShifts, false> totals = sum_lines<kShifts, false>(
                      q, images + pair * q.image_size, sy, group, chunk, shared);
                  float* const mine = values + value_of(q, turn, task, group);
                  give_sums<kShifts>(q, chunk, totals.sums, shared,
                                     [&](int col, float sum) { mine[col] = sum; });
                });
}

// grid: columns (x), tasks of this turn in a stride (y).
__global__ void __launch_bounds__(kSumThreads)
    autocorr_cuda_two_kernels_sums(LineTasks q, Turn turn, const float* __restrict__ values,
                                   float* __restrict__ out) {
  const int col = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (col >= q.out_cols) return;
  const int computed = q.window_rows.computed();
  const Index end = turn.first + turn.count;
  for (Index task = turn.first + blockIdx.y; task < end; task += gridDim.y) {
    const Index pair = task / computed;
    const auto i = static_cast<int>(task - pair * computed);
    const int groups = q.groups_of(q.window_rows.sy(i));
    const float* const mine = values + value_of(q, turn, task, 0) + col;
    float sum = 0;
    for (int group = 0; group < groups; ++group) {
      sum += mine[static_cast<Index>(group) * q.out_cols];
    }
    float* const of_pair = out + pair * q.out_size;
    of_pair[static_cast<Index>(q.window_rows.row(i)) * q.out_cols + col] = sum;
    if (const int mirror = q.window_rows.mirror(i); mirror >= 0) {
      of_pair[static_cast<Index>(mirror + 1) * q.out_cols - 1 - col] = sum;
    }
  }
}

using Kernel = void (*)(LineTasks, Turn, const float*, float*);

class TwoKernelsPlan final : public DevicePlan<float> {
 public:
  explicit TwoKernelsPlan(const PlanRequest& request)
      : DevicePlan(request.problem),
        tasks_(tasks_of(request)),
        tasks_of_a_turn_(of_a_turn(tasks_)),
        kernel_(kernel_of<Kernel>(autocorr_cuda_two_kernels_lines<1>,
                                  autocorr_cuda_two_kernels_lines<4>,
                                  autocorr_cuda_two_kernels_lines<8>, request.params)),
        values_(static_cast<float*>(request.workspace)) {}

  static std::size_t workspace_bytes(const PlanRequest& request) {
    const LineTasks tasks = tasks_of(request);
    return static_cast<std::size_t>(of_a_turn(tasks) * values_of_a_task(tasks)) * sizeof(float);
  }

 private:
  static LineTasks tasks_of(const PlanRequest& request) {
    const Params& params = request.params;
    return {request.problem, params.get_int("shifts_per_thread"),
            params.get_int("lines_per_thread"), std::numeric_limits<int>::max()};
  }
  static Index values_of_a_task(const LineTasks& tasks) {
    return static_cast<Index>(tasks.groups) * tasks.out_cols;
  }
  static Index of_a_turn(const LineTasks& tasks) {
    return std::clamp<Index>(kMostValues / values_of_a_task(tasks), 1, tasks.tasks);
  }

  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    const auto columns = static_cast<unsigned>(ceil_div(tasks_.out_cols, kSumThreads));
    for (Index first = 0; first < tasks_.tasks; first += tasks_of_a_turn_) {
      const Turn turn = {first, std::min(tasks_of_a_turn_, tasks_.tasks - first)};
      const unsigned rows = grid_extent(turn.count);
      launch(kernel_, dim3(tasks_.blocks_x(), rows), dim3(static_cast<unsigned>(tasks_.threads)),
             tasks_.shared_bytes, call.stream, tasks_, turn, arrays.left, values_);
      launch(autocorr_cuda_two_kernels_sums, dim3(columns, rows), dim3(kSumThreads), 0, call.stream,
             tasks_, turn, values_, arrays.out);
    }
  }

  LineTasks tasks_;
  Index tasks_of_a_turn_;
  Kernel kernel_;
  float* values_;
};

XCORR_VARIANT({
    .summary = "Autocorrelation: the line kernel writes its sums, a second kernel adds them",
    .parent = "autocorr_cuda_line",
    .source = "ISS paper, section 2.2",
    .backend = Backend::cuda,
    .forms = {Form::one_to_one, Form::n_to_mn},
    .axes = line_axes(),
    .same_only = true,
    .supports = line_support,
    .workspace_bytes = TwoKernelsPlan::workspace_bytes,
    .plan = make_plan<TwoKernelsPlan>,
});

}  // namespace
}  // namespace xcorr::autocorrelation
