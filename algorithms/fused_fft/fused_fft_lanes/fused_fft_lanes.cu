// Correlation by transforms for many pairs at padded lengths of 256 to 512, at which
// a whole matrix does not fit a block: derived from fused_fft_block. Beyond the paper.
//
// A transform belongs to 16 or 32 lanes of a warp, a "lane group" (transforms.hpp). No barrier of a
// block stands between its passes, so the 32 warps of an SM are at different passes. Images are
// column-major: a column is one run of memory, and a block over rows reads 128 bytes of each
// column. n-to-m has two ways; the other forms have three kernels: rows, columns with the product,
// rows.
//
// spectra   how n-to-m computes spectra.
//           workspace: all spectra are stored once. Then one kernel processes all pairs. Its blocks
//           take columns and rows of different batches of pairs from one list (pairs.hpp), so that
//           the GPU stays full until the last pairs. A block over columns has two lefts and four
//           rights, or four and four: the L1 cache serves most of their spectra.
//           shared: pairs are divided into groups, whose images stay in the L2 cache. A block has
//           one column of a group, transforms it for all lefts and rights into shared memory, and
//           multiplies and transforms back from there (groups_kernel in columns.hpp). This needs
//           one launch less, but two more for every further group, which transforms its columns
//           again.
// ring_mib  memory of the images of pairs in MiB, reused as a ring. 44 MiB stay in the L2 cache.
//
// Limits: the workspace holds the images of all matrices (n-to-m) and of the pairs of the ring.
// What limits it (H200, 32:32 at 256 x 256, 1.04 ms): latency. The kernel over pairs takes 0.97 ms.
// It uses 41 % of issue slots and 43 % of the L2 cache's rate. Of 17 warps of a scheduler 8 wait
// for memory and 5 at a barrier. The lower bounds are 0.37 ms for instructions (a pair has 257
// columns and 256 rows of 750 warp instructions each), 0.5 ms for shared memory and the L1 cache,
// and 0.75 ms for the L2 cache (3.9 MB per pair at 5.5 TB/s). Registers on sm_90: 64, so four
// blocks per SM; 80 and three blocks at 384; no spills. groups_kernel has 1024, 512 or 768 threads
// with 54, 98 or 76 registers.
#include "algorithms/blocks/plan.hpp"
#include "algorithms/fused_fft/fused_fft_lanes/batches.hpp"
#include "algorithms/fused_fft/fused_fft_lanes/columns.hpp"
#include "algorithms/fused_fft/fused_fft_lanes/pairs.hpp"
#include "algorithms/fused_fft/fused_fft_lanes/rows.hpp"
#include "algorithms/fused_fft/fused_fft_lanes/tuning.hpp"
#include "algorithms/fused_fft/lengths.hpp"
#include "algorithms/fused_fft/roots.hpp"
#include "harness/variant.hpp"

namespace xcorr::fused_fft {
namespace {

using Kernel = void (*)(LanesArguments);

class LanesPlan final : public DevicePlan<float> {
 public:
  explicit LanesPlan(const PlanRequest& request)
      : DevicePlan(request.problem),
        batches_(request),
        groups_(request),
        has_groups_(has_groups(request)),
        chunk_(chunk_images(request)) {
    const Problem& q = problem_;
    const int ny = LaneLengths::y(q), nx = LaneLengths::x(q);
    auto* const roots = static_cast<Complex*>(request.workspace);
    LaneLengths::with(ny, [&](auto y) {
      LaneLengths::with(
          nx, [&](auto x) { store_root_tables<decltype(y), decltype(x)>(roots, request.stream); });
    });
    static_cast<FusedProblem&>(a_) = FusedProblem(q, ny, nx, roots);
    a_.image = image_elements(q);
    a_.ny = ny;
    a_.nx = nx;
    auto* memory = reinterpret_cast<unsigned char*>(roots) + kRootBytes;
    if (q.form == Form::n_to_m && !has_groups_) {
      const Index count = batches_.count;
      a_.counters = reinterpret_cast<std::uint32_t*>(memory);
      a_.columns_done = a_.counters + kCounters / sizeof(std::uint32_t);
      a_.rows_done = a_.columns_done + count;
      a_.all_counters = static_cast<std::uint32_t>(a_.rows_done + count - a_.counters);
      memory += counter_bytes(count);
      a_.batches = static_cast<std::uint32_t>(count);
      a_.ring = static_cast<std::uint32_t>(batches_.ring);
      for (Index l = batches_.lefts; l > 1; l /= 2) ++a_.log_lefts;
      for (Index r = batches_.rights; r > 1; r /= 2) ++a_.log_rights;
      a_.batches_across = static_cast<std::uint32_t>(ceil_div(q.rights, batches_.rights));
      a_.batches_down = static_cast<std::uint32_t>(ceil_div(q.lefts, batches_.lefts));
    }
    a_.left_images = reinterpret_cast<Complex*>(memory);
    a_.right_images = a_.left_images + q.lefts * a_.image;
    a_.pair_images = a_.right_images + (q.form == Form::n_to_m ? q.rights * a_.image : 0);
    LaneLengths::with(nx, [&](auto x) {
      using X = LaneGroupOf<decltype(x)>;
      forward_ = forward_rows_kernel<X>;
      inverse_ = inverse_rows_kernel<X>;
      lane_groups_x_ = X::of_block;
      shared_x_ = sizeof(Complex) * (X::twiddles + X::of_block * X::buffer);
      LaneLengths::with(ny, [&](auto y) {
        using Y = LaneGroupOf<decltype(y)>;
        spectra_ = spectra_kernel<Y>;
        columns_ = columns_kernel<Y>;
        pairs_ = pairs_kernel<Y, X>;
        lane_groups_y_ = Y::of_block;
        twiddles_y_ = Y::twiddles;
        buffer_y_ = Y::buffer;
        shared_y_ = sizeof(Complex) * (Y::twiddles + Y::of_block * Y::buffer);
        shared_pairs_ = PairsShape<Y, X>::bytes;
      });
    });
    if (has_groups_)
      LaneLengths::with(ny, [&](auto y) { shape_groups<LaneGroupOf<decltype(y)>>(); });
    if (q.form != Form::n_to_m || has_groups_) return;
    const Index pairs = batches_.lefts * batches_.rights;
    a_.column_tasks = static_cast<std::uint32_t>(nx / 2 + 1);
    a_.row_tasks = static_cast<std::uint32_t>(pairs * (ny / 2 / lane_groups_x_));
    a_.of_batch = std::max(a_.row_tasks, a_.column_tasks);
    // The lag is between one and `ring` - 1 batches; otherwise tasks would wait for later tasks.
    a_.lag = std::max(a_.of_batch, a_.of_batch * a_.ring / 2);
    resident_ = resident_blocks(reinterpret_cast<const void*>(pairs_), LanesTuning::kThreads,
                                shared_pairs_);
  }

  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    const Problem& q = problem_;
    a_.set(arrays);
    launches_.begin(call);
    if (has_groups_) return groups(call);
    if (q.form == Form::n_to_m) return n_to_m(call);
    const Index m = q.rights / q.lefts;
    // A chunk has all rights of several lefts, or some rights of one left.
    const Index lefts = std::clamp<Index>(chunk_ / m, 1, q.lefts), rights = std::min(m, chunk_);
    for (Index l = 0; l < q.lefts; l += lefts) {
      for (Index r = 0; r < m; r += rights) {
        LanesArguments a = a_;
        a.lefts = static_cast<std::uint32_t>(std::min(lefts, q.lefts - l));
        a.rights = static_cast<std::uint32_t>(std::min(rights, m - r));
        a.of_left = a.rights;
        const Index pairs = Index{a.lefts} * a.rights;
        a.left += l * q.left.size();
        a.right += (l * m + r) * q.right.size();
        a.out += (l * m + r) * q.out_size();
        a.left_images += l * a.image;
        a.pair_images = a.right_images;
        call.phase("forward");
        forward(call, a, a.lefts + pairs);
        call.phase("hadamard");
        columns(call, a);
        call.phase("inverse");
        inverse(call, a);
      }
    }
  }

 private:
  void n_to_m(const Call& call) {
    const Problem& q = problem_;
    LanesArguments a = a_;
    a.lefts = static_cast<std::uint32_t>(q.lefts);
    a.rights = static_cast<std::uint32_t>(q.rights);
    call.phase("forward");
    forward(call, a, q.lefts + q.rights);
    a.groups = static_cast<std::uint32_t>(ceil_div(a.nx / 2 + 1, lane_groups_y_));
    run(spectra_, a, (q.lefts + q.rights) * a.groups, LanesTuning::kThreads, shared_y_, call);
    call.phase("inverse");
    a.groups = static_cast<std::uint32_t>(a.ny / 2 / lane_groups_x_);
    const Index tasks = 2 * Index{a.batches} * a.of_batch;
    run(pairs_, a, std::min(resident_, tasks), LanesTuning::kThreads, shared_pairs_, call);
  }

  template <typename Y>
  void shape_groups() {
    using Shape = GroupShape<Y>;
    const Index spectra = groups_.spectra(), pairs = groups_.pairs();
    groups_kernel_ = groups_kernel<Y>;
    group_threads_ = Shape::threads(spectra, pairs, Shape::kMost, shared_limit());
    const auto* const kernel = reinterpret_cast<const void*>(groups_kernel_);
    const int threads = static_cast<int>(group_threads_);
    // If there are more columns than resident blocks, two blocks share an SM, which reserves 1 KiB
    // for each.
    if (resident_blocks(kernel, threads, Shape::bytes(threads, spectra)) < a_.nx / 2 + 1) {
      const std::size_t half = shared_limit() / 2 - 512;
      const Index fewer = Shape::threads(spectra, pairs, Shape::kMost / 2, half);
      if (Shape::bytes(fewer, spectra) <= half) group_threads_ = fewer;
    }
    shared_groups_ = Shape::bytes(group_threads_, spectra);
  }
  void groups(const Call& call) {
    const Problem& q = problem_;
    LanesArguments all = a_;
    all.lefts = static_cast<std::uint32_t>(q.lefts);
    call.phase("forward");
    forward(call, all, q.lefts + q.rights);
    for (Index l = 0; l < q.lefts; l += groups_.lefts) {
      for (Index r = 0; r < q.rights; r += groups_.rights) {
        LanesArguments a = a_;
        a.lefts = static_cast<std::uint32_t>(std::min(groups_.lefts, q.lefts - l));
        a.rights = static_cast<std::uint32_t>(std::min(groups_.rights, q.rights - r));
        a.of_left = q.rights;
        a.left_images += l * a.image;
        a.right_images += r * a.image;
        a.out += (l * q.rights + r) * q.out_size();
        call.phase("hadamard");
        run(groups_kernel_, a, a.nx / 2 + 1, static_cast<int>(group_threads_), shared_groups_,
            call);
        call.phase("inverse");
        inverse(call, a);
      }
    }
  }
  void inverse(const Call& call, LanesArguments& a) {
    a.groups = static_cast<std::uint32_t>(a.ny / 2 / lane_groups_x_);
    run(inverse_, a, Index{a.lefts} * a.rights * a.groups, LanesTuning::kThreads, shared_x_, call);
  }

  void columns(const Call& call, LanesArguments& a) {
    a.chunks = ceil_div<std::uint32_t>(a.rights, static_cast<std::uint32_t>(lane_groups_y_ - 1));
    a.chunk = ceil_div(a.rights, a.chunks);
    const int of_column = static_cast<int>(a.chunk) + 1, columns = a.nx / 2 + 1;
    a.columns_of_block = lane_groups_y_ / of_column;
    a.groups = static_cast<std::uint32_t>(ceil_div(columns, a.columns_of_block));
    const int lanes = LanesTuning::kThreads / lane_groups_y_;
    const int threads = ceil_div(a.columns_of_block * of_column * lanes, 32) * 32;
    const std::size_t shared =
        sizeof(Complex) * static_cast<std::size_t>(twiddles_y_ + 1 + a.columns_of_block * a.ny +
                                                   threads / lanes * buffer_y_);
    run(columns_, a, Index{a.lefts} * a.chunks * a.groups, threads, shared, call);
  }
  void forward(const Call& call, LanesArguments& a, Index matrices) {
    a.groups = static_cast<std::uint32_t>(
        ceil_div((std::max(a.left_rows, a.right_rows) + 1) / 2, lane_groups_x_));
    run(forward_, a, matrices * a.groups, LanesTuning::kThreads, shared_x_, call);
  }
  void run(Kernel kernel, const LanesArguments& a, Index blocks, int threads, std::size_t shared,
           const Call& call) {
    launches_.run(kernel, dim3(static_cast<unsigned>(blocks)), dim3(static_cast<unsigned>(threads)),
                  shared, call.stream, a);
  }

  Batches batches_;
  PairGroups groups_;
  bool has_groups_;
  Index chunk_;
  DependentLaunches launches_;
  LanesArguments a_{};
  Kernel forward_, inverse_, spectra_, columns_, pairs_, groups_kernel_ = nullptr;
  int lane_groups_x_, lane_groups_y_, twiddles_y_, buffer_y_;
  std::size_t shared_x_, shared_y_, shared_pairs_, shared_groups_ = 0;
  Index group_threads_ = 0;
  Index resident_ = 0;  // resident blocks of pairs_
};

// Shared memory of the largest block that a problem may start, except groups.
std::size_t most_shared_bytes(const Problem& q) {
  return LaneLengths::with(LaneLengths::y(q), [&](auto y) {
    return LaneLengths::with(LaneLengths::x(q), [&](auto x) -> std::size_t {
      using Y = LaneGroupOf<decltype(y)>;
      using X = LaneGroupOf<decltype(x)>;
      constexpr std::size_t kRows = X::twiddles + X::of_block * X::buffer;
      constexpr std::size_t kColumns =
          Y::twiddles + 1 + Y::of_block / 2 * Y::n + Y::of_block * Y::buffer;
      return std::max(sizeof(Complex) * std::max(kRows, kColumns), PairsShape<Y, X>::bytes);
    });
  });
}

Support supports(const PlanRequest& request) {
  const Problem& q = request.problem;
  if (const Support fit = LaneLengths::supports(q); !fit) return fit;
  if (const Support fit = shared_fits("a block", most_shared_bytes(q)); !fit) return fit;
  if (has_groups(request)) {
    if (q.form != Form::n_to_m) return no("spectra=shared exists for n-to-m only");
    const std::size_t bytes = LaneLengths::with(LaneLengths::y(q), [&](auto y) {
      return GroupShape<LaneGroupOf<decltype(y)>>::bytes(32, PairGroups(request).spectra());
    });
    return shared_fits("spectra of a column of a group of pairs", bytes);
  }
  if (q.form == Form::n_to_m) {
    constexpr Index kMost = Index{1} << 20;
    if (Batches(request).count > kMost) return no("more than 2^20 batches of pairs");
  }
  return yes();
}

std::size_t workspace_bytes(const PlanRequest& request) {
  const Problem& q = request.problem;
  const Batches cut(request);
  const bool n_to_m = q.form == Form::n_to_m;
  const bool list = n_to_m && !has_groups(request);
  const Index of_pairs = list ? cut.images : n_to_m ? PairGroups(request).pairs() : 0;
  const Index images = q.lefts + (n_to_m ? q.rights + of_pairs : chunk_images(request));
  return static_cast<std::size_t>(kRootBytes + (list ? counter_bytes(cut.count) : 0) +
                                  images * image_elements(q) * static_cast<Index>(sizeof(Complex)));
}

XCORR_VARIANT({
    .summary = "FFT correlation, a transform in the lanes of a warp; n-to-m from one task list",
    .parent = "fused_fft_block",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::fft,
    .axes = {{"ring_mib", {"44", "60"}}, {"spectra", {"workspace", "shared"}}},
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .plan = make_plan<LanesPlan>,
});

}  // namespace
}  // namespace xcorr::fused_fft
