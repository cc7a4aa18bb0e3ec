// Correlation by FFT in one kernel that uses the whole GPU, for problems of few pairs. Derived from
// fused_fft_block, which starts too few blocks for few pairs. Beyond the paper.
//
// The kernel has three stages: rows of the inputs; columns, product and columns back; rows back and
// the outputs. Between two stages each matrix or pair has an image in global memory. Small images
// stay in the L2 cache. Each SM runs at most one block, and each block does a part of every stage.
//
// Two real rows of a matrix, a "row pair", form one complex row. A transform uses 16 threads at
// length 64, 32 threads at 96 to 256, and 64 threads at 384 and 512. A thread has at most 8 values
// and does three short passes (three_pass.hpp). Short passes keep the chain of dependent
// instructions short; with few pairs no other work hides its latency. In the second stage, one part
// of a group transforms columns of a left matrix while another part transforms columns of its first
// right matrix.
//
// A block consists of groups of threads that work independently. Within a stage, a thread waits
// only for threads that it exchanges values with: those of its transform, those of the same columns
// where images are read, and its group where the spectrum of the left matrix is shared. With
// exchange=barrier a group loads its next row pair or right matrix before it finishes the current
// one.
//
// columns_per_task  columns of each matrix that a group takes at once. 1 makes the second stage
//                   shorter and is for one pair; 2 needs fewer and wider memory accesses.
// exchange          how a stage waits for the data of the stage before it (exchange.hpp).
//                   barrier:  all blocks wait at a barrier of the grid.
//                   dataflow: a reader waits for each element of 16 bytes. This has less latency
//                             and more L2 traffic.
//
// Limits: the images of all matrices and pairs exist at the same time. They may take 256 MiB, with
// dataflow 40 MiB.
// What limits it (H200): for one pair, latency; with exchange=barrier the two barriers of the grid
// take 2.0 us of it. For 8:8 at 128 x 128, loads from the L2 cache: the second stage uses 41 % of
// the issue slots, the third 30 %. Registers on sm_90: 128 with barrier, 124 with dataflow, no
// spills; 16 warps on an SM.
#include <algorithm>
#include <bit>

#include "algorithms/blocks/plan.hpp"
#include "algorithms/fused_fft/fused_fft_grid/kernel.hpp"
#include "algorithms/fused_fft/fused_fft_grid/tuning.hpp"
#include "algorithms/fused_fft/roots.hpp"
#include "harness/variant.hpp"

namespace xcorr::fused_fft {
namespace {

constexpr Index kMostGroups = 8;  // per block

using Kernel = void (*)(GridArguments, Phases);

// What the host needs to know about a transform length.
struct Sizes {
  int m, threads, elements;
};
Sizes sizes(int n) {
  return AxisLengths::with(n, [](auto length) {
    using R = RadicesOfLength<decltype(length)::n>;
    return Sizes{R::m, R::threads, R::elements};
  });
}
void store_tables(int n, Complex* to, void* stream) {
  AxisLengths::with(n, [&](auto length) {
    using R = RadicesOfLength<decltype(length)::n>;
    store_root_table<typename R::FirstTable>(false, to, stream);
    store_root_table<typename R::SecondTable>(false, to + kRootTable, stream);
  });
}

// The two parameters.
struct GridPoint {
  explicit GridPoint(const Params& params)
      : columns(params.get_int("columns_per_task")), flow(params.get("exchange") == "dataflow") {}
  int columns;
  bool flow;
};

// The numbers of images of lefts, rights and pairs, at most.
struct Images {
  Images(const Problem& q, bool flow)
      : elements(ceil_div<Index>(AxisLengths::x(q) / 2 + 1, kLayout) * kLayout *
                 (AxisLengths::y(q) / 2)) {
    const bool n_to_m = q.form == Form::n_to_m;
    // With dataflow an element has one reader, so each task has its own copy of a left image. A
    // left has at most as many copies as pairs.
    of_lefts = flow ? q.pairs() : q.lefts;
    of_rights = flow && n_to_m ? q.pairs() : q.rights;
    // With the barrier, the image of a pair overwrites that of its right if the right has one pair.
    of_pairs = flow || n_to_m ? q.pairs() : 0;
  }
  Index count() const { return of_lefts + of_rights + of_pairs; }
  Index bytes() const { return count() * elements * static_cast<Index>(sizeof(Element)); }

  Index elements, of_lefts = 0, of_rights = 0, of_pairs = 0;
};

class GridPlan final : public DevicePlan<float> {
 public:
  explicit GridPlan(const PlanRequest& request) : DevicePlan(request.problem) {
    const Problem& q = request.problem;
    const GridPoint point(request.params);
    const Images images(q, point.flow);
    kernel_ = point.flow ? grid_kernel<true> : grid_kernel<false>;
    const int ny = AxisLengths::y(q), nx = AxisLengths::x(q);
    const Sizes of_y = sizes(ny), of_x = sizes(nx);
    auto* const roots = static_cast<Complex*>(request.workspace);
    auto* const counters = reinterpret_cast<std::uint32_t*>(roots + 4 * kRootTable);
    a_.roots = roots;
    a_.images = reinterpret_cast<Element*>(counters + GridBarrier::kBytes / sizeof(std::uint32_t));
    store_tables(nx, roots, request.stream);
    store_tables(ny, roots + 2 * kRootTable, request.stream);
    clear(counters, GridBarrier::kBytes, request.stream);

    const Index m = q.pairs() / q.lefts;  // rights per left
    const bool n_to_m = q.form == Form::n_to_m;
    a_.image = number(images.elements);
    a_.right_image = number(images.of_lefts);
    a_.pair_image = number(images.of_lefts + (images.of_pairs > 0 ? images.of_rights : 0));
    a_.row_pairs = number(ny / 2), a_.m_y = number(of_y.m);
    a_.nx = nx, a_.ny = ny;
    a_.left_rows = static_cast<int>(q.left.rows), a_.left_cols = static_cast<int>(q.left.cols);
    a_.right_rows = static_cast<int>(q.right.rows), a_.right_cols = static_cast<int>(q.right.cols);
    a_.out_rows = static_cast<int>(q.out_rows()), a_.out_cols = static_cast<int>(q.out_cols());
    a_.first_y = static_cast<int>((q.window.sy.first + ny) % ny);
    a_.first_x = static_cast<int>((q.window.sx.first + nx) % nx);
    a_.short_rows = std::max(q.left.cols, q.right.cols) <= nx / 2;
    a_.short_columns = std::max(q.left.rows, q.right.rows) <= ny / 2;
    a_.scale = 0.25f / static_cast<float>(nx * ny);  // the row stage doubles both spectra
    a_.lefts = number(q.lefts), a_.rights_of_left = number(m);
    a_.rights_back = n_to_m ? number(m) : 0;

    const Index rows = std::max(q.left.rows, q.right.rows), whole = rows / (2 * of_y.m);
    a_.by_pairs_with_data =
        Divider(whole * of_y.m + std::min<Index>(of_y.m, rows - whole * 2 * of_y.m));
    a_.by_row_pairs = Divider(ny / 2);
    a_.by_m = Divider(of_y.m);
    a_.row_items = number(q.lefts + q.rights) * a_.by_pairs_with_data.by;
    a_.out_items = number(q.pairs() * (ny / 2));

    const int threads = threads_of_group(q, point.columns), tiles = threads / of_x.threads;
    a_.log_threads = std::countr_zero(static_cast<unsigned>(threads));
    a_.log_columns = std::countr_zero(static_cast<unsigned>(point.columns));
    a_.stride_x = of_x.elements;
    a_.stride_y = stride_y(of_y, point.columns);
    a_.shared_of_group = shared_of_group(q, point.columns);

    // One group for each task. Every SM gets one group before any SM gets two.
    const Index bytes = static_cast<Index>(sizeof(Complex)) * a_.shared_of_group;
    const Index fit =
        std::min(GridTuning::kMostThreads / threads, static_cast<int>(shared_limit() / bytes));
    const Index most_groups = std::clamp<Index>(fit, 1, kMostGroups);
    const Index processors = resident(GridTuning::kMostThreads, 0);
    const Index groups = ceil_div<Index>(nx / 2 + 1, point.columns);
    const Index chunks = std::clamp<Index>(processors * most_groups / (q.lefts * groups), 1, m);
    a_.chunk = number(ceil_div(m, chunks));
    a_.by_groups = Divider(groups);
    a_.by_lefts = Divider(q.lefts);
    a_.left_copies = number(ceil_div<Index>(m, a_.chunk));  // one for each chunk
    a_.column_tasks = number(q.lefts * groups) * a_.left_copies;
    a_.right_copies = n_to_m ? a_.lefts : 1;
    a_.right_copy_of_left = n_to_m ? 1 : 0;
    const Index wanted = std::max<Index>({a_.column_tasks, ceil_div<Index>(a_.row_items, tiles),
                                          ceil_div<Index>(a_.out_items, tiles)});
    const Index groups_of_block = std::clamp<Index>(ceil_div(wanted, processors), 1, most_groups);
    threads_ = static_cast<unsigned>(groups_of_block * threads);
    shared_bytes_ = static_cast<std::size_t>(groups_of_block * bytes);
    // All blocks must be resident at once, because they wait for each other.
    const Index at_once = resident(static_cast<int>(threads_), shared_bytes_);
    blocks_ =
        static_cast<unsigned>(std::min({processors, at_once, ceil_div(wanted, groups_of_block)}));
    a_.barrier = {counters, blocks_};
    if (point.flow) {
      const std::uint32_t count = number(images.count()) * a_.image;
      launch(make_all_missing, dim3(ceil_div(count, 4096u)), dim3(256), 0, request.stream,
             a_.images, count);
    }
  }

  // Neighbouring lanes have neighbouring columns. This pitch avoids bank conflicts.
  static int stride_y(const Sizes& of_y, int columns) { return of_y.elements + 16 / columns % 16; }
  // Complex elements of shared memory per group.
  static int shared_of_group(const Problem& q, int columns) {
    const int ny = AxisLengths::y(q);
    const Sizes of_x = sizes(AxisLengths::x(q));
    return std::max(columns * (2 * stride_y(sizes(ny), columns) + ny),
                    threads_of_group(q, columns) / of_x.threads * of_x.elements);
  }
  static int threads_of_group(const Problem& q, int columns) {
    return std::max(
        {2 * columns * sizes(AxisLengths::y(q)).threads, sizes(AxisLengths::x(q)).threads, 64});
  }

  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    launches_.begin(call);
    a_.left = arrays.left;
    a_.right = arrays.right;
    a_.out = arrays.out;
    if (call.marks == nullptr) return run(Phases::all, call);
    call.phase("forward");
    run(Phases::rows, call);
    call.phase("hadamard");
    run(Phases::columns, call);
    call.phase("inverse");
    run(Phases::inverse, call);
  }

 private:
  static std::uint32_t number(Index i) { return static_cast<std::uint32_t>(i); }
  Index resident(int threads, std::size_t bytes) const {
    return resident_blocks(reinterpret_cast<const void*>(kernel_), threads, bytes);
  }
  void run(Phases phases, const Call& call) {
    launches_.run(kernel_, blocks_, threads_, shared_bytes_, call.stream, a_, phases);
  }

  GridLaunches launches_;
  GridArguments a_{};
  Kernel kernel_ = nullptr;
  unsigned threads_ = 0, blocks_ = 0;
  std::size_t shared_bytes_ = 0;
};

Support supports(const PlanRequest& request) {
  const Problem& q = request.problem;
  if (const Support fit = AxisLengths::supports(q); !fit) return fit;
  const GridPoint point(request.params);
  const Index most = point.flow ? 40 : 256;  // MiB: with dataflow, what an L2 cache holds
  if (Images(q, point.flow).bytes() > most << 20) {
    return no("images take more than " + std::to_string(most) + " MiB");
  }
  const std::size_t bytes =
      sizeof(Complex) * static_cast<std::size_t>(GridPlan::shared_of_group(q, point.columns));
  return shared_fits("a group of threads", bytes);
}

XCORR_VARIANT({
    .summary = "FFT in one kernel on the whole GPU: rows, columns with the product, rows",
    .parent = "fused_fft_block",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::fft,
    .axes = {{"columns_per_task", {"1", "2"}}, {"exchange", {"barrier", "dataflow"}}},
    .supports = supports,
    .workspace_bytes = [](const PlanRequest& request) -> std::size_t {
      const Images images(request.problem, GridPoint(request.params).flow);
      return static_cast<std::size_t>(kRootBytes) + GridBarrier::kBytes +
             static_cast<std::size_t>(images.bytes());
    },
    .plan = make_plan<GridPlan>,
});

}  // namespace
}  // namespace xcorr::fused_fft
