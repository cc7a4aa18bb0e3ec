// The whole FFT correlation as three kernels, for transforms that no block holds and for few pairs:
// a step from fused_fft_block. Rows, columns with the product, rows again; between them lie images
// of complex rows (fused_fft_split.hpp), so few at a time that they stay in the L2 cache. Beyond
// the paper.
//
// A block over columns has 8 of them, two sectors a row. It transforms its left's columns beside
// those of its first right and keeps them; for n-to-m all spectra are made once, in place, and a
// block goes on with one left while it can. On compute capability 9.0 each kernel starts while the
// one before drains (programmatic dependent launch).
//
// Forms: all four, any shape and window; fp32. Parameter, run time: chunk_mib (12, 36), the images
// of a chunk: more fill the card better, fewer leave the cache for inputs and outputs. Lengths 64,
// 128, 256 and 512, of each axis apart: the lengths between are left to the variants that came of
// it and are faster, fused_fft_grid and fused_fft_lanes. Limits: longer transforms; the workspace
// holds the images of all lefts and a chunk, for n-to-m of all matrices and a chunk.
//
// Traffic of the L2 cache for a right at 256 x 256: 5.5 MB with its left's spectrum, so 1:32 takes
// 35 us of it; it took 115. Profiled at 32:32, an instruction was issued in 17 to 24 % of the slots
// with 17 % of the warps that fit: its chunks are too small to fill the card, and their blocks wait
// at barriers. Registers on sm_90: 128 for columns, at most 162 for rows, no spills.
#include "algorithms/device/fused_fft_plan.hpp"
#include "algorithms/device/fused_fft_split.hpp"
#include "harness/variant.hpp"

namespace xcorr {
namespace {

using AxisLengths = Lengths<64, 128, 256, 512>;

// What a kernel is to do with columns.
enum class ColumnWork { shared_left, spectra, pairs };

// The first left, right and output are those of a chunk: `lefts` x `rights` of each.
struct SplitArguments : FusedProblem {
  Complex *left_images, *right_images, *pair_images;
  Index image;  // complex elements of one
  int ny, second_y, nx, second_x;
  std::uint32_t lefts, rights, pairs;
  std::uint32_t panels, panel_rows;          // of an image; complex rows of one
  std::uint32_t chunks, chunk;               // blocks of a left, rights (or pairs) of one
  std::uint32_t first_pair, rights_of_left;  // n-to-m
};

template <typename X>
__device__ __forceinline__ RowPanel<X> row_panel(const SplitArguments& a) {
  Complex* const roots = dynamic_shared<Complex>();
  const Crew crew{static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x)};
  for (int i = crew.thread; i < X::n; i += crew.count) roots[i] = a.roots[i];
  return {roots + X::n, roots, static_cast<int>(a.panel_rows), crew};
}

template <typename X>
__device__ __forceinline__ auto in_image(Complex* image) {
  return [=](int y, int column) { return image + y * kImagePitch<X> + column; };
}

// Rows of all matrices of the chunk into images.
template <typename X>
__global__ void __launch_bounds__(128, 4) forward_rows_kernel(SplitArguments a) {
  const RowPanel<X> panel = row_panel<X>(a);
  block::barrier();
  wait_for_previous();
  let_next_start();
  const std::uint32_t matrix = blockIdx.x / a.panels;
  const int q = static_cast<int>((blockIdx.x - matrix * a.panels) * a.panel_rows);
  const bool is_left = matrix < a.lefts;
  const Index at = is_left ? matrix : matrix - a.lefts;
  const Source source = is_left ? a.left_of(at) : a.right_of(at);
  if (first_of_pair(q, a.second_y) >= source.rows) return;
  Complex* const image = (is_left ? a.left_images : a.right_images) + at * a.image;
  forward_rows(panel, source, q, a.second_y, in_image<X>(image));
}

template <typename X>
__global__ void __launch_bounds__(128, 3) inverse_rows_kernel(SplitArguments a) {
  const RowPanel<X> panel = row_panel<X>(a);
  block::barrier();
  wait_for_previous();
  let_next_start();
  const std::uint32_t pair = blockIdx.x / a.panels;
  const int q = static_cast<int>((blockIdx.x - pair * a.panels) * a.panel_rows);
  bool any = false;
  for (int g = 0; g < panel.count; ++g) {
    const int y = first_of_pair(q + g, a.second_y);
    any |= a.rows.has(y) || a.rows.has(y + a.second_y);
  }
  if (!any) return;
  inverse_rows(panel, in_image<X>(a.pair_images + pair * a.image), q, a.second_y, a.rows, a.cols,
               a.out_of(pair));
}

// In place of images: of the rights, or of the matrices whose spectra they become, or of pairs.
template <typename Y, ColumnWork kWork>
__global__ void __launch_bounds__(256, 2) columns_kernel(SplitArguments a) {
  using Panel = ColumnPanel<Y>;
  Complex* const roots = dynamic_shared<Complex>();
  Complex* const left_panel = roots + Y::n;
  Complex* const panels = left_panel + (kWork == ColumnWork::spectra ? 0 : Panel::kElements);
  const int tile = static_cast<int>(threadIdx.y), tiles = static_cast<int>(blockDim.y);
  const int thread = static_cast<int>(threadIdx.x), all = static_cast<int>(blockDim.x) * tiles;
  for (int i = thread + tile * static_cast<int>(blockDim.x); i < Y::n; i += all) {
    roots[i] = a.roots[kRootTable + i];
  }
  const std::uint32_t groups = a.panels, task = blockIdx.x / groups;
  const int number =
      static_cast<int>(blockIdx.x - task * groups) * Panel::kCols + thread % Panel::kCols;
  const int half = a.second_x / 2;
  const int column = number <= half ? number : number + half - 1;
  const int mirror = column <= half      ? half - column
                     : column < a.nx / 2 ? column ^ (a.second_x - 1)
                                         : column ^ (half - 1);
  const bool live = number <= a.nx / 2;
  const Panel panel{
      panels + tile * Panel::kElements,      roots, live, column, mirror, (a.nx + a.second_x) / 2,
      {thread, static_cast<int>(blockDim.x)}};
  const auto as_left = [&](auto& v, int k1) {
    const int first_x = a.nx / a.second_x;
    a.as_left<Y>(v, k1, column / a.second_x + first_x * (column % a.second_x), a.nx);
  };
  block::barrier();
  wait_for_previous();
  let_next_start();
  if constexpr (kWork == ColumnWork::shared_left) {
    const std::uint32_t l = task / a.chunks, begin = (task - l * a.chunks) * a.chunk;
    const int count = static_cast<int>(begin + a.chunk < a.rights ? a.chunk : a.rights - begin);
    const Panel left{left_panel, roots, live, column, mirror, panel.pitch, panel.crew};
    Complex* const images = a.right_images + (static_cast<Index>(l) * a.rights + begin) * a.image;
    // Item -1, of the first tile, is the left; the others start with rights beside it.
    for (int first = -1; first < count; first += tiles) {
      const int item = first + tile;
      const bool works = item >= 0 && item < count;
      Complex* const image = images + item * a.image;
      if (item < 0) left.split(a.left_images + l * a.image, a.left_rows);
      if (works) panel.split(image, a.right_rows);
      block::barrier();
      if (item < 0) left.template middle<true>([&](auto& v, int, int k1) { as_left(v, k1); });
      if (first < 0) block::barrier();
      if (works) {
        panel.template middle<true>([&](auto& v, int at, int) {
          const Complex* const of_left = left_panel + at;
#pragma unroll
          for (int i = 0; i < Y::second; ++i) {
            v[i] = v[i] * of_left[i * Panel::kCols];
          }
          transform<Y::second, Direction::inverse>(v);
        });
      }
      block::barrier();
      if (works) panel.join(image);
      block::barrier();
    }
  } else if constexpr (kWork == ColumnWork::spectra) {
    const bool is_left = task < a.lefts;
    Complex* const image =
        is_left ? a.left_images + task * a.image : a.right_images + (task - a.lefts) * a.image;
    panel.split(image, is_left ? a.left_rows : a.right_rows);
    block::barrier();
    panel.store_spectrum(image, [&](auto& v, int k1) {
      if (is_left) as_left(v, k1);
    });
  } else {
    std::uint32_t resident = ~0u;
    const std::uint32_t begin = task * a.chunk;
    const std::uint32_t end = begin + a.chunk < a.pairs ? begin + a.chunk : a.pairs;
#pragma unroll 1
    for (std::uint32_t pair = begin; pair < end; ++pair) {
      const std::uint32_t p = a.first_pair + pair, l = p / a.rights_of_left;
      if (l != resident) {
        resident = l;
        panel.each(Y::first, [&](int k1) {
          const Complex* from = panel.of_spectrum(a.left_images + l * a.image, k1);
          Complex* to = left_panel + Panel::at(k1 * Y::second) + thread % Panel::kCols;
#pragma unroll
          for (int t = 0; t < Y::second; ++t) to[t * Panel::kCols] = from[t * panel.pitch];
        });
      }
      Complex* const right = a.right_images + (p - l * a.rights_of_left) * a.image;
      // A thread meets only what it brought of the left: same columns, same k1.
      panel.template middle<false>([&](auto& v, int at, int k1) {
        const Complex* const from = panel.of_spectrum(right, k1);
        const Complex* const of_left = left_panel + at;
#pragma unroll
        for (int i = 0; i < Y::second; ++i) {
          v[i] = from[i * panel.pitch] * of_left[i * Panel::kCols];
        }
        transform<Y::second, Direction::inverse>(v);
      });
      block::barrier();
      panel.join(a.pair_images + pair * a.image);
      block::barrier();
    }
  }
}

using Kernel = void (*)(SplitArguments);

Index image_elements(const Problem& q) {
  return AxisLengths::y(q) * AxisLengths::with(AxisLengths::x(q), [](auto x) -> Index {
           return kImagePitch<decltype(x)>;
         });
}

constexpr int kChunkMib[] = {12, 36};  // images: a few, or most of what an L2 cache holds

// Images of a chunk: pairs of n-to-m, else rights.
Index chunk_images(const Problem& q, Index mib) {
  const Index bytes = image_elements(q) * static_cast<Index>(sizeof(Complex));
  return std::min(q.pairs(), std::max<Index>(1, (mib << 20) / bytes));
}

class SplitPlan final : public Plan {
 public:
  explicit SplitPlan(const PlanRequest& request)
      : problem_(request.problem),
        chunk_(chunk_images(request.problem, request.params.get_int("chunk_mib"))),
        dependent_(has_dependent_launch()) {
    const Problem& q = problem_;
    const int ny = AxisLengths::y(q), nx = AxisLengths::x(q);
    auto* const roots = static_cast<Complex*>(request.workspace);
    AxisLengths::with(ny, [&](auto y) {
      AxisLengths::with(
          nx, [&](auto x) { store_root_tables<decltype(y), decltype(x)>(roots, request.stream); });
    });
    static_cast<FusedProblem&>(a_) = FusedProblem(q, ny, nx, roots);
    a_.image = image_elements(q);
    a_.left_images = roots + 4 * kRootTable;
    a_.right_images = a_.left_images + q.lefts * a_.image;
    a_.pair_images = a_.right_images + (q.form == Form::n_to_m ? q.rights * a_.image : 0);
    a_.nx = nx;
    a_.ny = ny;
    a_.rights_of_left = static_cast<std::uint32_t>(q.rights);
    AxisLengths::with(ny, [&](auto y) {
      using Y = decltype(y);
      a_.second_y = Y::second;
      shared_left_ = columns_kernel<Y, ColumnWork::shared_left>;
      spectra_ = columns_kernel<Y, ColumnWork::spectra>;
      pairs_ = columns_kernel<Y, ColumnWork::pairs>;
      crew_ = ColumnPanel<Y>::kCols * Y::second;
      column_elements_ = ColumnPanel<Y>::kElements;
    });
    AxisLengths::with(nx, [&](auto x) {
      using X = decltype(x);
      a_.second_x = X::second;
      forward_ = forward_rows_kernel<X>;
      inverse_ = inverse_rows_kernel<X>;
      row_elements_ = RowPanel<X>::elements(1);
    });
    const bool n_to_m = q.form == Form::n_to_m;
    resident_ = resident_blocks(reinterpret_cast<const void*>(n_to_m ? pairs_ : shared_left_),
                                n_to_m ? crew_ : 2 * crew_, shared_of_columns(n_to_m ? 2 : 3));
  }

  void compute(const Call& call) override {
    const Problem& q = problem_;
    a_.left = call.lefts<float>();
    a_.right = call.rights<float>();
    a_.out = call.outs<float>();
    fresh_ = true;
    if (q.form == Form::n_to_m) return n_to_m(call);
    const Index m = q.rights / q.lefts;
    // A rectangle of whole lefts, or of some rights of one.
    const Index lefts = std::clamp<Index>(chunk_ / m, 1, q.lefts), rights = std::min(m, chunk_);
    for (Index l = 0; l < q.lefts; l += lefts) {
      for (Index r = 0; r < m; r += rights) {
        SplitArguments a = a_;
        a.lefts = static_cast<std::uint32_t>(std::min(lefts, q.lefts - l));
        a.rights = static_cast<std::uint32_t>(std::min(rights, m - r));
        a.pairs = a.lefts * a.rights;
        a.left += l * q.left.size();
        a.right += (l * m + r) * q.right.size();
        a.out += (l * m + r) * q.out_size();
        a.left_images += l * a.image;
        a.pair_images = a.right_images;
        call.phase("forward");
        rows(call, a);
        call.phase("hadamard");
        a.panels = groups();
        const Index most = std::max<Index>(1, resident_ / (Index{a.lefts} * a.panels));
        a.chunk =
            static_cast<std::uint32_t>(ceil_div<Index>(a.rights, std::min<Index>(most, a.rights)));
        a.chunks = ceil_div(a.rights, a.chunk);
        run(shared_left_, a, Index{a.panels} * a.lefts * a.chunks, crew_, 2, shared_of_columns(3),
            call);
        call.phase("inverse");
        inverse(call, a);
      }
    }
  }

 private:
  void n_to_m(const Call& call) {
    const Problem& q = problem_;
    SplitArguments a = a_;
    a.lefts = static_cast<std::uint32_t>(q.lefts);
    a.rights = static_cast<std::uint32_t>(q.rights);
    a.pairs = a.lefts + a.rights;  // matrices
    call.phase("forward");
    rows(call, a);
    a.panels = groups();
    run(spectra_, a, Index{a.panels} * (q.lefts + q.rights), crew_, 1, shared_of_columns(1), call);
    for (Index p = 0; p < q.pairs(); p += chunk_) {
      a.first_pair = static_cast<std::uint32_t>(p);
      a.pairs = static_cast<std::uint32_t>(std::min(chunk_, q.pairs() - p));
      a.out = a_.out + p * q.out_size();
      call.phase("hadamard");
      a.panels = groups();
      const Index most = std::max<Index>(1, resident_ / a.panels);
      a.chunk =
          static_cast<std::uint32_t>(ceil_div<Index>(a.pairs, std::min<Index>(most, a.pairs)));
      run(pairs_, a, Index{a.panels} * ceil_div(a.pairs, a.chunk), crew_, 1, shared_of_columns(2),
          call);
      call.phase("inverse");
      inverse(call, a);
    }
  }

  void rows(const Call& call, SplitArguments& a) {
    const Index matrices = Index{a.lefts} + (problem_.form == Form::n_to_m ? a.rights : a.pairs);
    const int most = std::max(a.left_rows, a.right_rows);
    // Complex rows with data: whole groups of second_y pairs, the last perhaps fewer.
    const int pairs = ceil_div(most, 2 * a.second_y) * a.second_y;
    row_launch(forward_, a, matrices, pairs, call);
  }
  void inverse(const Call& call, SplitArguments& a) {
    row_launch(inverse_, a, a.pairs, a.ny / 2, call);
  }
  void row_launch(Kernel kernel, SplitArguments& a, Index images, int row_pairs, const Call& call) {
    constexpr Index kManyBlocks = 264;  // two of an H200's multiprocessor
    a.panel_rows = 8;
    while (a.panel_rows > 2 && images * row_pairs / a.panel_rows < kManyBlocks) a.panel_rows /= 2;
    a.panels = static_cast<std::uint32_t>(row_pairs) / a.panel_rows;
    const int rows = static_cast<int>(a.panel_rows);
    const std::size_t shared =
        sizeof(Complex) * static_cast<std::size_t>(a.nx + rows * row_elements_);
    run(kernel, a, images * a.panels, std::max(32, rows * 16), 1, shared, call);
  }
  void run(Kernel kernel, const SplitArguments& a, Index blocks, int threads, int tiles,
           std::size_t shared, const Call& call) {
    // The first kernel of a call waits for the call before, which reads the images.
    launch_dependent(
        dependent_ && !fresh_ && !call.marks, kernel, dim3(static_cast<unsigned>(blocks)),
        dim3(static_cast<unsigned>(threads), static_cast<unsigned>(tiles)), shared, call.stream, a);
    fresh_ = false;
  }

  std::uint32_t groups() const { return static_cast<std::uint32_t>(ceil_div(a_.nx / 2 + 1, 8)); }
  std::size_t shared_of_columns(int tiles) const {
    return sizeof(Complex) * static_cast<std::size_t>(a_.ny + tiles * column_elements_);
  }

  Problem problem_;
  Index chunk_;
  bool dependent_, fresh_ = true;
  SplitArguments a_{};
  Kernel forward_, inverse_, shared_left_, spectra_, pairs_;
  int crew_, column_elements_, row_elements_;
  Index resident_;  // blocks over columns that the device holds
};

Support supports(const PlanRequest& request) {
  const Problem& q = request.problem;
  if (const Support fit = AxisLengths::supports(q); !fit) return fit;
  if (request.params.get_int("chunk_mib") > kChunkMib[0] &&
      chunk_images(q, kChunkMib[0]) == q.pairs()) {
    return no("one chunk already at chunk_mib=" + std::to_string(kChunkMib[0]));
  }
  return yes();
}

std::size_t workspace_bytes(const PlanRequest& request) {
  const Problem& q = request.problem;
  const Index chunk = chunk_images(q, request.params.get_int("chunk_mib"));
  const Index images = q.lefts + chunk + (q.form == Form::n_to_m ? q.rights : 0);
  return static_cast<std::size_t>(kRootBytes +
                                  images * image_elements(q) * static_cast<Index>(sizeof(Complex)));
}

XCORR_VARIANT({
    .summary = "Transform theorem in three kernels: rows, columns with the product, rows",
    .parent = "fused_fft_block",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::fft,
    .axes = {{"chunk_mib", {std::to_string(kChunkMib[0]), std::to_string(kChunkMib[1])}}},
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .plan = [](const PlanRequest& request) -> std::unique_ptr<Plan> {
      return std::make_unique<SplitPlan>(request);
    },
});

}  // namespace
}  // namespace xcorr
