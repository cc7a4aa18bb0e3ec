// The whole FFT correlation of a pair in one thread-block cluster: a step from fused_fft_block, for
// tiles that no block holds and for pairs too few to fill the card with one block each.
//
// Rows, columns with the product and rows again are phases with a cluster barrier between them, and
// the image between phases lies in distributed shared memory: each block owns some columns of it. In
// the phases over rows a block transforms its share of the complex rows and stores them into, or
// loads them from, the owners of the columns; the phase over columns is local. The first right is
// transformed beside the left, whose spectrum then stays for all rights of the cluster.
//
// Forms: all four (n-to-m transforms each right once for every left: fused_fft_lanes does not); any
// shape and window; fp32. No parameters. Limits: compute capability 9.0; square transforms of 64,
// 128, 192, 256, 384 or 512 (the larger of what both axes need); clusters of 8, for 512 of 16
// blocks.
//
// Predicted on an H200, stream: ten short phases of 300 to 500 cycles and three cluster barriers
// over one launch, so 6 us for 1:1 at 64 x 64 and 128 x 128; at 256 x 256 a right is 25 M
// instructions on 16 multiprocessors, 9 us: 1:1 in 22 us, 1:32 on eight clusters in 55 us.
#include "algorithms/device/fused_cluster.hpp"
#include "algorithms/device/fused_fft_plan.hpp"
#include "algorithms/device/fused_fft_panels.hpp"
#include "harness/variant.hpp"

namespace xcorr {
namespace {

using Squares = Lengths<64, 128, 192, 256, 384, 512>;
constexpr int kGroups = 2;  // of threads: one has the left while the other has the first right

template <int kN>
struct Shape {
  using L = Length<kN>;
#ifdef XCORR_EMULATE
  static constexpr int size = 2, most_threads = 160;  // a cluster is a block there
#else
  static constexpr int size = kN > 384 ? 16 : 8;  // blocks: 16 is the most that hardware has
  // Or registers are too few.
  static constexpr int most_threads = kN > 384 ? 128 : kN > 256 ? 256 : 512;
#endif
  // Columns of a block, threads of a group (one for each element of a pass over them), and complex
  // rows that a group has at a time.
  static constexpr int columns = ceil_div(Columns<L>::live, size);
  static constexpr int crew = std::min(most_threads, ceil_div(L::second* columns, 32) * 32);
  static constexpr int panel_rows = kN <= 64    ? 2
                                    : kN <= 128 ? 4
                                    : kN <= 192 ? 6
                                    : kN <= 256 ? 8
                                                : 4;
  static_assert(crew >= columns && crew % L::second == 0);
  using Cols = ColumnPanel<L, columns>;
  static constexpr int panel_elements = RowPanel<L>::elements(panel_rows);
  static constexpr std::size_t bytes =
      sizeof(Complex) * (L::n + 2 * Cols::kElements + kGroups * panel_elements);
};

struct ClusterArguments : FusedProblem {
  std::uint32_t chunks, chunk;  // clusters of a left, rights of one
  std::uint32_t rights_of_left, rights_back;
};

template <int kN>
__global__ void __launch_bounds__(kGroups* Shape<kN>::crew, 1) cluster_kernel(ClusterArguments a) {
  if constexpr (cluster::kAvailable) {
    using S = Shape<kN>;
    using L = typename S::L;
    using Cols = typename S::Cols;
    Complex* const roots = cluster::shared<Complex>(S::bytes);
    Complex* const left_image = roots + L::n;
    Complex* const right_image = left_image + Cols::kElements;
    const int group = static_cast<int>(threadIdx.y), lane = static_cast<int>(threadIdx.x);
    const int thread = group * S::crew + lane, rank = cluster::rank();
    for (int i = thread; i < L::n; i += kGroups * S::crew) roots[i] = a.roots[i];
    const RowPanel<L> rows{right_image + Cols::kElements + group * S::panel_elements,
                           roots,
                           S::panel_rows,
                           {lane, S::crew}};
    // Columns of this block; its image has row after row of them, those of odd rows in place.
    const auto columns = [&](Complex* image, Crew crew) {
      const int mine = crew.thread % S::columns;
      const bool live = rank * S::columns + mine < Columns<L>::live &&
                        crew.thread < crew.count / S::columns * S::columns;
      return Cols{image, roots, live, mine, mine, S::columns, crew};
    };
    const Crew my_group{lane, S::crew}, everyone{thread, kGroups * S::crew};
    // Where element (y, column) of an image lies in the cluster.
    const auto in_cluster = [&](Complex* image) {
      return [=](int y, int column) -> Complex* {
        constexpr int kHalf = L::second / 2;
        if (y >= L::n || (column > kHalf && column < L::second)) return nullptr;
        const int owned = y / L::second % 2 == 0 ? column : Columns<L>::mirror(column);
        const int number = owned <= kHalf ? owned : owned - kHalf + 1;
        const int owner = number / S::columns;
        return cluster::peer(image, owner, S::bytes) + y * S::columns + number - owner * S::columns;
      };
    };
    // f(which, first complex row) for this group's shares of the rows of `count` matrices.
    const auto each_panel = [&](int count, int pairs, auto f) {
      const int of_block = ceil_div(pairs, S::size), panels = ceil_div(of_block, S::panel_rows);
#pragma unroll 1
      for (int first = 0; first < count * panels; first += kGroups) {
        const int i = first + group, panel = i / count;
        // What is beyond the share or the rows goes nowhere.
        const bool works = i < count * panels;
        f(i - panel * count, works ? rank * of_block + panel * S::panel_rows : L::n,
          of_block - panel * S::panel_rows);
      }
    };

    const std::uint32_t number = cluster::number(), l = number / a.chunks;
    const std::uint32_t begin = (number - l * a.chunks) * a.chunk;
    const std::uint32_t end =
        begin + a.chunk < a.rights_of_left ? begin + a.chunk : a.rights_of_left;
    const Source left = a.left_of(l);
    cluster::barrier();
#pragma unroll 1
    for (std::uint32_t r = begin; r < end; ++r) {
      const bool is_first = r == begin;
      const std::uint32_t p = l * a.rights_of_left + r;
      const Source right = a.right_of(p - l * a.rights_back);
      const int most = is_first && left.rows > right.rows ? left.rows : right.rows;
      const int pairs = ceil_div(most, 2 * L::second) * L::second;
      each_panel(is_first ? 2 : 1, pairs, [&](int which, int q, int count) {
        const bool is_left = is_first && which == 0;
        const auto to = in_cluster(is_left ? left_image : right_image);
        const int last = q + count;
        // Field by field: a choice between two structures would be one between addresses.
        const Source source = {is_left ? left.data : right.data, is_left ? left.rows : right.rows,
                               is_left ? left.cols : right.cols};
        forward_rows(rows, source, q, L::second, [&](int y, int column) {
          // y back to its complex row: those beyond this block's share are another's.
          const int t = y % L::second, row = y / (2 * L::second) * L::second + t;
          return row < last ? to(y, column) : nullptr;
        });
      });
      cluster::barrier();
      const Cols right_columns = columns(right_image, everyone);
      if (is_first) {
        const Cols left_columns = columns(left_image, my_group);
        if (group == 0) left_columns.split(left_image, left.rows);
        if (group == 1) columns(right_image, my_group).split(right_image, right.rows);
        block::barrier();
        if (group == 0) {
          left_columns.template middle<true>([&](auto& v, int, int k1) {
            const int number_of = rank * S::columns + left_columns.column;
            const int column = Columns<L>::column(number_of);
            a.as_left<L>(v, k1, column / L::second + L::first * (column % L::second), L::n);
          });
        }
      } else {
        right_columns.split(right_image, right.rows);
      }
      block::barrier();
      right_columns.template middle<true>([&](auto& v, int at, int) {
#pragma unroll
        for (int i = 0; i < L::second; ++i) v[i] = v[i] * left_image[at + i * S::columns];
        transform<L::second, Direction::inverse>(v);
      });
      block::barrier();
      right_columns.join(right_image);
      cluster::barrier();
      each_panel(1, L::n / 2, [&](int, int q, int) {
        inverse_rows(rows, in_cluster(right_image), q, L::second, a.rows, a.cols, a.out_of(p));
      });
      // Nobody stores into an image, nor leaves, before all have read it.
      cluster::barrier();
    }
  }
}

template <typename F>
auto with_shape(const Problem& q, F f) {
  return Squares::with(Squares::square(q),
                       [&](auto length) { return f(Shape<decltype(length)::n>{}); });
}

template <int kN>
void (*kernel_of(Shape<kN>))(ClusterArguments) {
  return cluster_kernel<kN>;
}

template <typename S>
Index resident_clusters() {
  return cluster::resident(kernel_of(S{}), S::size, dim3(S::crew, kGroups), S::bytes);
}

template <typename S>
class ClusterPlan final : public Plan {
 public:
  explicit ClusterPlan(const PlanRequest& request) {
    const Problem& q = request.problem;
    using L = typename S::L;
    auto* const roots = static_cast<Complex*>(request.workspace);
    store_root_tables<L, L>(roots, request.stream);
    static_cast<FusedProblem&>(a_) = FusedProblem(q, L::n, L::n, roots);
    const Index m = q.pairs() / q.lefts;
    a_.rights_of_left = static_cast<std::uint32_t>(m);
    a_.rights_back = q.form == Form::n_to_m ? static_cast<std::uint32_t>(m) : 0;
    const Index chunks = std::clamp<Index>(resident_clusters<S>() / q.lefts, 1, m);
    a_.chunk = static_cast<std::uint32_t>(ceil_div(m, chunks));
    a_.chunks = static_cast<std::uint32_t>(ceil_div<Index>(m, a_.chunk));
    clusters_ = static_cast<unsigned>(q.lefts * a_.chunks);
  }

  void compute(const Call& call) override {
    a_.left = call.lefts<float>();
    a_.right = call.rights<float>();
    a_.out = call.outs<float>();
    cluster::launch(kernel_of(S{}), clusters_, S::size, dim3(S::crew, kGroups), S::bytes,
                    call.stream, a_);
  }

 private:
  ClusterArguments a_{};
  unsigned clusters_ = 0;
};

Support supports(const PlanRequest& request) {
  const Problem& q = request.problem;
  if (!cluster::supported()) return no("clusters need compute capability 9.0");
  if (const Support fit = Squares::supports(q); !fit) return fit;
  const std::size_t bytes = with_shape(q, [](auto shape) { return decltype(shape)::bytes; });
  if (bytes > shared_limit()) {
    return no("needs " + std::to_string(bytes) + " bytes of shared memory, a block has " +
              std::to_string(shared_limit()));
  }
  return with_shape(q, [](auto shape) {
    using S = decltype(shape);
    if (resident_clusters<S>() > 0) return yes();
    return no("no " + std::to_string(S::size) + " multiprocessors of the device form a cluster");
  });
}

XCORR_VARIANT({
    .summary = "Transform theorem in one kernel: a tile in a cluster's distributed shared memory",
    .parent = "fused_fft_block",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::fft,
    .emulated = false,
    .supports = supports,
    .workspace_bytes = [](const PlanRequest&) { return static_cast<std::size_t>(kRootBytes); },
    .plan = [](const PlanRequest& request) -> std::unique_ptr<Plan> {
      return with_shape(request.problem, [&](auto shape) -> std::unique_ptr<Plan> {
        return std::make_unique<ClusterPlan<decltype(shape)>>(request);
      });
    },
});

}  // namespace
}  // namespace xcorr
