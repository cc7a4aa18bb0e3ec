// The line kernel of the ISS paper (section 4.3, Listing 1, Fig. 8). A block has two lines of the
// image in shared memory, y0 and y1 = y0 + Y0. Y0 is the shift sy, X0 the shift sx. A thread sums
// their products for its X0 and adds the sum to the output with one atomic addition. The grid is
// lines x Y0. Derived from autocorr_cuda_simple.
//
// Beyond the paper: any R (chunks of shifts if a block has too few threads), lines of any length
// (panels of 256 columns), several lines per block if there are fewer than 256 shifts, and mirrored
// rows of negative Y0 if the window has both halves. The first value of each parameter is the
// paper's.
//
// shifts_per_thread  neighbouring X0 per thread. With 1 a product needs one access to shared
//                    memory, and a fourth of an access for the pixel at x. With 8 the right line
//                    slides through registers: 64 products for 4 accesses of 16 bytes
// sums               float: additions in float32. integer: the paper's exact additions of 32-bit
//                    integers, for panels whose values are whole numbers with magnitudes of at most
//                    255. The kernel tests every value that it loads, and adds other panels in
//                    float32
// lines_per_thread   lines that a thread sums before its addition: more lines mean fewer additions
//                    and fewer blocks
//
// Integers: products of 8-bit values and their sums over 256 columns are exact in float32.
// Therefore the same instructions compute them, and the results are added to 32-bit integers. The
// paper adds all lines into one 32-bit integer. At shift 0 an image of 1500 x 750 exceeds 2^32 if
// its root mean square is above 61 of 255. Here an integer sums only as many lines as fit, and a
// second kernel adds the integers.
// Limits: `integer` supports lines of up to 33,025 columns. An infinity or a NaN may reach outputs
// whose overlaps do not contain it.
// What limits it: with 1 shift per thread, 5 accesses to shared memory for 4 products, so that at
// most a fifth of the FMA rate is possible; with 8, one issue slot in seven that is no product,
// products with zeros beside the image, and two barriers per panel.
#include <limits>

#include "algorithms/autocorrelation/line_sums.hpp"

namespace xcorr::autocorrelation {
namespace {

constexpr int kFinishThreads = 256;
constexpr Index kSquare = 255 * 255;  // the largest product of 8-bit values
constexpr Index kMostWhole = std::numeric_limits<int>::max();

bool adds_integers(const PlanRequest& request) { return request.params.get("sums") == "integer"; }

// Lines whose products of 8-bit values fit into an integer.
Index lines_of_an_integer(const Problem& q) { return kMostWhole / (kSquare * q.left.cols); }

LineTasks tasks_of(const PlanRequest& request) {
  const Params& params = request.params;
  const Index most = adds_integers(request) ? lines_of_an_integer(request.problem) : kMostWhole;
  return {request.problem, params.get_int("shifts_per_thread"), params.get_int("lines_per_thread"),
          most};
}

// Groups of lines that share an integer, and the number of integers per output.
struct Integers {
  Integers(const Problem& q, const LineTasks& of)
      : groups(static_cast<int>(
            std::min<Index>(of.groups, std::max<Index>(1, lines_of_an_integer(q) / of.lines)))),
        count(ceil_div(of.groups, groups)),
        elements(q.out_elements()) {}
  int groups, count;
  Index elements;  // outputs; also the distance between the integers of two groups
};

// grid: groups of lines x chunks of shifts (x), tasks in a stride (y). `whole` is unused without
// kWhole.
template <int kShifts, bool kWhole>
__global__ void __launch_bounds__(kMostThreads, (kBlocksResident<kShifts, kWhole>))
    autocorr_cuda_line_kernel(LineTasks q, Integers integers, const float* __restrict__ images,
                              float* __restrict__ out, int* __restrict__ whole) {
  float* const shared = dynamic_shared<float>();
  for_each_task(q, 0, q.tasks, [&](Index task, int sy, int i, int group, int chunk) {
    const Index pair = task / q.window_rows.computed();
    const LineTotals<kShifts, kWhole> totals =
        sum_lines<kShifts, kWhole>(q, images + pair * q.image_size, sy, group, chunk, shared);
    const Index row = pair * q.out_size + static_cast<Index>(q.window_rows.row(i)) * q.out_cols;
    if (totals.has_sums) {
      give_sums<kShifts>(q, chunk, totals.sums, shared,
                         [&](int col, float sum) { atomic_add(out + row + col, sum); });
    }
    if constexpr (kWhole) {
      if (!totals.has_whole) return;
      int* const mine = whole + group / integers.groups * integers.elements;
      give_sums<kShifts>(q, chunk, totals.whole, reinterpret_cast<int*>(shared),
                         [&](int col, int sum) { atomic_add(mine + row + col, sum); });
    }
  });
}

// Adds the integers of each computed output, and mirrors it. grid: columns (x), tasks in a stride
// (y).
__global__ void __launch_bounds__(kFinishThreads)
    autocorr_cuda_line_finish(LineTasks q, Integers integers, const int* __restrict__ whole,
                              float* __restrict__ out) {
  const int col = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (col >= q.out_cols) return;
  const int computed = q.window_rows.computed();
  for (Index task = blockIdx.y; task < q.tasks; task += gridDim.y) {
    const Index pair = task / computed;
    const auto i = static_cast<int>(task - pair * computed);
    float* const of_pair = out + pair * q.out_size;
    const Index at = static_cast<Index>(q.window_rows.row(i)) * q.out_cols + col;
    if (whole != nullptr) {
      const int groups = q.groups_of(q.window_rows.sy(i));
      long long sum = 0;
      for (int n = 0; n * integers.groups < groups; ++n) {
        sum += whole[n * integers.elements + pair * q.out_size + at];
      }
      of_pair[at] += static_cast<float>(sum);
    }
    if (const int mirror = q.window_rows.mirror(i); mirror >= 0) {
      of_pair[static_cast<Index>(mirror + 1) * q.out_cols - 1 - col] = of_pair[at];
    }
  }
}

using Kernel = void (*)(LineTasks, Integers, const float*, float*, int*);
template <bool kWhole>
Kernel line_kernel(const Params& params) {
  return kernel_of<Kernel>(autocorr_cuda_line_kernel<1, kWhole>,
                           autocorr_cuda_line_kernel<4, kWhole>,
                           autocorr_cuda_line_kernel<8, kWhole>, params);
}

class LinePlan final : public DevicePlan<float> {
 public:
  explicit LinePlan(const PlanRequest& request)
      : DevicePlan(request.problem, true),
        tasks_(tasks_of(request)),
        integers_(request.problem, tasks_),
        kernel_((adds_integers(request) ? line_kernel<true> : line_kernel<false>)(request.params)),
        whole_(adds_integers(request) ? static_cast<int*>(request.workspace) : nullptr) {}

  static std::size_t workspace_bytes(const PlanRequest& request) {
    if (!adds_integers(request)) return 0;
    return bytes_of(Integers(request.problem, tasks_of(request)));
  }

 private:
  static std::size_t bytes_of(const Integers& integers) {
    return static_cast<std::size_t>(integers.count) * static_cast<std::size_t>(integers.elements) *
           sizeof(int);
  }

  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    if (whole_ != nullptr) clear(whole_, bytes_of(integers_), call.stream);
    const unsigned rows = grid_extent(tasks_.tasks);
    launch(kernel_, dim3(tasks_.blocks_x(), rows), dim3(static_cast<unsigned>(tasks_.threads)),
           tasks_.shared_bytes, call.stream, tasks_, integers_, arrays.left, arrays.out, whole_);
    if (whole_ == nullptr && tasks_.window_rows.mirrored == 0) return;
    const auto columns = static_cast<unsigned>(ceil_div(tasks_.out_cols, kFinishThreads));
    launch(autocorr_cuda_line_finish, dim3(columns, rows), dim3(kFinishThreads), 0, call.stream,
           tasks_, integers_, whole_, arrays.out);
  }

  LineTasks tasks_;
  Integers integers_;
  Kernel kernel_;
  int* whole_;
};

Support supports(const PlanRequest& request) {
  if (const Support support = line_support(request); !support) return support;
  if (!adds_integers(request) || lines_of_an_integer(request.problem) > 0) return yes();
  return no("sums=integer: a line of more than " + std::to_string(kMostWhole / kSquare) +
            " products of 8-bit values does not fit 32 bits; use sums=float");
}

std::vector<Axis> axes() {
  std::vector<Axis> axes = line_axes();
  axes.push_back({"sums", {"float", "integer"}, true});
  return axes;
}

XCORR_VARIANT({
    .summary = "Autocorrelation: blocks have two lines in shared memory, threads shifts along them",
    .parent = "autocorr_cuda_simple",
    .source = "ISS paper, section 4.3",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::definition_atomic,
    .forms = {Form::one_to_one, Form::n_to_mn},
    .axes = axes(),
    .same_only = true,
    .supports = supports,
    .workspace_bytes = LinePlan::workspace_bytes,
    .plan = make_plan<LinePlan>,
});

}  // namespace
}  // namespace xcorr::autocorrelation
