// The whole FFT correlation in one kernel over the whole card, for few pairs: a step from
// fused_fft_split. Its three phases (rows, columns with the product, rows) are the same; between
// them every block waits for every other (grid_barrier.hpp), which costs less than a launch. Beyond
// the paper.
#include "algorithms/device/divide.hpp"
#include "algorithms/device/fused_fft_plan.hpp"
#include "algorithms/device/grid_barrier.hpp"
#include "algorithms/device/three_pass_fft.hpp"
#include "harness/variant.hpp"

namespace xcorr {
namespace {

using AxisLengths = Lengths<64, 96, 128, 192, 256, 384, 512>;
constexpr int kMostThreads = 256;

// f(Radices) of one of the lengths.
template <int kFirst, int... kRest, typename F>
__device__ __forceinline__ void with_radices_of(int n, F f) {
  if constexpr (sizeof...(kRest) > 0) {
    if (n != kFirst) return with_radices_of<kRest...>(n, f);
  }
  f(typename RadicesOfLength<kFirst>::type{});
}
template <typename F>
__device__ __forceinline__ void with_radices(int n, F f) {
  with_radices_of<64, 96, 128, 192, 256, 384, 512>(n, f);
}

// One frequency of two rows m apart, or what becomes of it: an element of an image. An image has
// its columns in groups; a group has all its row pairs one after the other, each with the group's
// columns.
struct alignas(16) RowPair {
  Complex even, odd;
};

struct GridArguments {
  const float *left, *right;
  float* out;
  const Complex* roots;      // tables of x, of y, each two
  RowPair* images;           // of lefts, then rights, then pairs
  std::uint32_t image;       // elements of one
  int nx, ny, m_y;           // lengths; rows of a pair are m_y apart
  int left_rows, left_cols, right_rows, right_cols;
  int out_rows, out_cols, first_y, first_x;  // of the window in the circular result
  float scale;
  std::uint32_t lefts, rights, pairs, rights_of_left, rights_back;
  int group_shift, groups;   // log2 of columns of a group
  std::uint32_t chunk;       // rights of a block over columns
  Divider by_left_pairs, by_right_pairs, by_pairs, by_m, by_groups, by_chunks;
  std::uint32_t row_items, column_tasks, out_items;
  int stride_x, stride_y;    // complex elements of shared memory, of a transform
  GridBarrier barrier;

  __device__ __forceinline__ RowPair* of_row_pair(std::uint32_t index, std::uint32_t q) const {
    return images + index * image + (q << group_shift);
  }
  // Offset of column k from column 0 of the same row pair.
  __device__ __forceinline__ int of_column(int k) const {
    return (((k >> group_shift) * (ny / 2)) << group_shift) + (k & ((1 << group_shift) - 1));
  }
};

__device__ __forceinline__ float load_if(bool condition, const float* from) {
  return condition ? *from : 0.0f;
}

template <typename R>
__device__ __forceinline__ void forward_rows(const GridArguments& a) {
  const int tile = static_cast<int>(threadIdx.x) / R::threads, tiles = static_cast<int>(blockDim.x) / R::threads;
  const int t = static_cast<int>(threadIdx.x) % R::threads;
  const Twiddles<R> w(a.roots, a.roots + kRootTable, t, t);
  const ThreePass<R> pass(dynamic_shared<Complex>() + tile * a.stride_x);
  const std::uint32_t left_items = a.lefts * a.by_left_pairs.by;
#pragma unroll 1
  for (std::uint32_t base = 0; base < a.row_items; base += gridDim.x * tiles) {
    if (base > 0) block::barrier();
    std::uint32_t q = base + tile * gridDim.x + blockIdx.x;
    const bool works = q < a.row_items, is_left = q < left_items;
    q -= is_left ? 0 : left_items;
    const Divider by = is_left ? a.by_left_pairs : a.by_right_pairs;
    const std::uint32_t index = by.split(q);
    const int rows = is_left ? a.left_rows : a.right_rows;
    const int cols = is_left ? a.left_cols : a.right_cols;
    if (works && t < R::m) {
      const int step = static_cast<int>(a.by_m.quotient(q)), row = static_cast<int>(q) + step * a.m_y;
      const float* const even = (is_left ? a.left : a.right) + (index * rows + row) * cols + t;
      const float* const odd = even + a.m_y * cols;
      const bool both = row + a.m_y < rows;
      Complex v[R::a];
#pragma unroll
      for (int s = 0; s < R::a; ++s) {
        const bool inside = t + R::m * s < cols;
        v[s] = {load_if(inside, even + R::m * s), load_if(inside && both, odd + R::m * s)};
      }
      pass.first_forward(v, w, t);
    }
    block::barrier();
    if (works) pass.second_forward(w, t);
    block::barrier();
    if (works && t < R::ab) {
      Complex v[R::c];
      pass.third_forward(v, t);
#pragma unroll
      for (int k = 0; k < R::c; ++k) pass.x[t + R::ab * k] = v[k];
    }
    block::barrier();
    if (works) {
      RowPair* const to = a.of_row_pair(is_left ? index : a.lefts + index, q);
      const auto store = [&](int k) {
        const Complex z = pass.x[k], mirrored = pass.x[k == 0 ? 0 : R::n - k];
        to[a.of_column(k)] = {{z.re + mirrored.re, z.im - mirrored.im},
                              {z.im + mirrored.im, mirrored.re - z.re}};
      };
#pragma unroll
      for (int k = 0; k < R::n / 2; k += R::threads) {
        if (R::n / 2 % R::threads == 0 || k + t < R::n / 2) store(k + t);
      }
      if (t == 0) store(R::n / 2);
    }
  }
}

template <typename R, typename Wait>
__device__ __forceinline__ void columns(const GridArguments& a, Wait wait) {
  const int shift = a.group_shift, cols = 1 << shift;
  const int slot = static_cast<int>(threadIdx.x) / R::threads >> shift;
  const int lane = static_cast<int>(threadIdx.x) - ((slot * R::threads) << shift);
  // A thread's column and number: along rows of an image at its ends, elsewhere along columns.
  const int outer_c = lane & (cols - 1), t = lane >> shift;
  const int c = lane / R::threads, u = lane % R::threads;
  Complex* const shared = dynamic_shared<Complex>();
  const ThreePass<R> outer(shared + ((slot << shift) + outer_c) * a.stride_y);
  const ThreePass<R> inner(shared + ((slot << shift) + c) * a.stride_y);
  Complex* const left = shared + (2 << shift) * a.stride_y + c * R::n + u;
  const Complex* const tables = a.roots + 2 * kRootTable;
  const Twiddles<R> w(tables, tables + kRootTable, t, u);
  wait();
#pragma unroll 1
  for (std::uint32_t task = blockIdx.x; task < a.column_tasks; task += gridDim.x) {
    std::uint32_t group = task;
    std::uint32_t l = a.by_groups.split(group);
    std::uint32_t begin = l;
    l = a.by_chunks.split(begin);
    begin *= a.chunk;
    const int count = static_cast<int>(begin + a.chunk < a.rights_of_left ? a.chunk : a.rights_of_left - begin);
    const std::uint32_t pair = l * a.rights_of_left + begin, right = a.lefts + pair - l * a.rights_back;
    const int at = static_cast<int>(((group * (static_cast<std::uint32_t>(R::n) / 2)) << shift) + outer_c);
    const bool live = (static_cast<int>(group) << shift) + outer_c <= a.nx / 2 && t < R::m;
    // Item -1, of the first slot, is the left; the other begins with a right beside it.
#pragma unroll 1
    for (int first = -1; first < count; first += 2) {
      const int item = first + slot;
      const bool is_left = item < 0, works = slot < 2 && item < count, is_right = works && !is_left;
      if (works && live) {
        const RowPair* const from = a.images + (is_left ? l : right + item) * a.image + at;
        const int rows = is_left ? a.left_rows : a.right_rows;
        Complex v[R::a];
#pragma unroll
        for (int s = 0; s < R::a; s += 2) {
          RowPair two{};
          if (t + R::m * s < rows) two = from[(s / 2 * R::m + t) << shift];
          v[s] = two.even;
          v[s + 1] = two.odd;
        }
        outer.first_forward(v, w, t);
      }
      block::barrier();
      if (works) inner.second_forward(w, u);
      block::barrier();
      Complex v[R::c];
      if (works && u < R::ab) {
        inner.third_forward(v, u);
        if (is_left) {
#pragma unroll
          for (int k = 0; k < R::c; ++k) left[R::ab * k] = {a.scale * v[k].re, -a.scale * v[k].im};
        }
      }
      if (first < 0) block::barrier();
      if (is_right && u < R::ab) {
#pragma unroll
        for (int k = 0; k < R::c; ++k) v[k] = v[k] * left[R::ab * k];
        inner.third_inverse(v, u);
      }
      block::barrier();
      if (is_right) inner.second_inverse(w, u);
      block::barrier();
      if (is_right && live) {
        RowPair* const to = a.images + (a.lefts + a.rights + pair + item) * a.image + at;
        Complex result[R::a];
        outer.first_inverse(result, w, t);
#pragma unroll
        for (int s = 0; s < R::a; s += 2) to[(s / 2 * R::m + t) << shift] = {result[s], result[s + 1]};
      }
    }
  }
}

template <typename R, typename Wait>
__device__ __forceinline__ void inverse_rows(const GridArguments& a, Wait wait) {
  const int tile = static_cast<int>(threadIdx.x) / R::threads, tiles = static_cast<int>(blockDim.x) / R::threads;
  const int t = static_cast<int>(threadIdx.x) % R::threads;
  const Twiddles<R> w(a.roots, a.roots + kRootTable, t, t);
  const ThreePass<R> pass(dynamic_shared<Complex>() + tile * a.stride_x);
  wait();
#pragma unroll 1
  for (std::uint32_t base = 0; base < a.out_items; base += gridDim.x * tiles) {
    std::uint32_t q = base + tile * gridDim.x + blockIdx.x;
    const bool inside = q < a.out_items;
    const std::uint32_t pair = a.by_pairs.split(q);
    const int y = static_cast<int>(q) + static_cast<int>(a.by_m.quotient(q)) * a.m_y;
    const auto shifted = [](int i, int first, int n) { return i < first ? i - first + n : i - first; };
    const int even_row = shifted(y, a.first_y, a.ny), odd_row = shifted(y + a.m_y, a.first_y, a.ny);
    const bool works = inside && (even_row < a.out_rows || odd_row < a.out_rows);
    if (works && t < R::ab) {
      const RowPair* const from = a.of_row_pair(a.lefts + a.rights + pair, q);
      RowPair two[R::c];
#pragma unroll
      for (int k = 0; k < R::c; ++k) {
        two[k] = from[a.of_column(k < R::c / 2 ? t + R::ab * k : R::ab * (R::c - k) - t)];
      }
      Complex v[R::c];
#pragma unroll
      for (int k = 0; k < R::c; ++k) {
        const Complex p = two[k].even, q = two[k].odd;
        v[k] = k < R::c / 2 ? Complex{p.re - q.im, p.im + q.re} : Complex{p.re + q.im, q.re - p.im};
      }
      pass.third_inverse(v, t);
    }
    block::barrier();
    if (works) pass.second_inverse(w, t);
    block::barrier();
    if (works && t < R::m) {
      Complex v[R::a];
      pass.first_inverse(v, w, t);
      float* const out = a.out + pair * static_cast<std::uint32_t>(a.out_rows * a.out_cols);
      float *const even = out + even_row * a.out_cols, *const odd = out + odd_row * a.out_cols;
#pragma unroll
      for (int s = 0; s < R::a; ++s) {
        const int x = shifted(t + R::m * s, a.first_x, a.nx);
        if (x >= a.out_cols) continue;
        if (even_row < a.out_rows) even[x] = v[s].re;
        if (odd_row < a.out_rows) odd[x] = v[s].im;
      }
    }
  }
}

enum class Phases { all, rows, columns, inverse };

// All phases, or one of them: for the emulation, and for phases that are measured apart.
__global__ void __launch_bounds__(kMostThreads, 2) grid_kernel(GridArguments a, Phases phases) {
  const bool all = phases == Phases::all;
  if (all || phases == Phases::rows) {
    with_radices(a.nx, [&](auto r) { forward_rows<decltype(r)>(a); });
  }
  if (all) a.barrier.arrive(0);
  if (all || phases == Phases::columns) {
    with_radices(a.ny, [&](auto r) {
      columns<decltype(r)>(a, [&] {
        if (all) a.barrier.wait(0);
      });
    });
  }
  if (all) a.barrier.arrive(1);
  if (all || phases == Phases::inverse) {
    with_radices(a.nx, [&](auto r) {
      inverse_rows<decltype(r)>(a, [&] {
        if (all) a.barrier.wait(1);
      });
    });
  }
}

// What the host needs of the radices of a length.
struct Sizes {
  int m, threads, elements;
};
Sizes sizes(int n) {
  return AxisLengths::with(n, [](auto length) {
    using R = typename RadicesOfLength<decltype(length)::n>::type;
    return Sizes{R::m, R::threads, R::elements};
  });
}

int threads_of(const Problem& q, int columns) {
  return std::max({2 * columns * sizes(AxisLengths::y(q)).threads, sizes(AxisLengths::x(q)).threads, 64});
}
Index groups_of(const Problem& q, int columns) {
  return ceil_div<Index>(AxisLengths::x(q) / 2 + 1, columns);
}
Index image_elements(const Problem& q, int columns) {
  return groups_of(q, columns) * columns * (AxisLengths::y(q) / 2);
}
Index all_images(const Problem& q) { return q.lefts + q.rights + q.pairs(); }

void store_tables(int n, Complex* to, void* stream) {
  AxisLengths::with(n, [&](auto length) {
    using R = typename RadicesOfLength<decltype(length)::n>::type;
    store_root_table<typename R::FirstTable>(false, to, stream);
    store_root_table<typename R::SecondTable>(false, to + kRootTable, stream);
  });
}

class GridPlan final : public Plan {
 public:
  explicit GridPlan(const PlanRequest& request) {
    const Problem& q = request.problem;
    const int columns = request.params.get_int("columns_per_block");
    const int ny = AxisLengths::y(q), nx = AxisLengths::x(q);
    const Sizes of_y = sizes(ny), of_x = sizes(nx);
    auto* const memory = static_cast<Complex*>(request.workspace);
    store_tables(nx, memory, request.stream);
    store_tables(ny, memory + 2 * kRootTable, request.stream);
    auto* const counters = static_cast<unsigned*>(static_cast<void*>(memory + 4 * kRootTable));
    clear(counters, kCounterBytes, request.stream);
    a_.roots = memory;
    a_.images = static_cast<RowPair*>(
        static_cast<void*>(static_cast<char*>(static_cast<void*>(counters)) + kCounterBytes));
    a_.image = static_cast<std::uint32_t>(image_elements(q, columns));
    a_.nx = nx, a_.ny = ny, a_.m_y = of_y.m;
    a_.left_rows = static_cast<int>(q.left.rows), a_.left_cols = static_cast<int>(q.left.cols);
    a_.right_rows = static_cast<int>(q.right.rows), a_.right_cols = static_cast<int>(q.right.cols);
    a_.out_rows = static_cast<int>(q.out_rows()), a_.out_cols = static_cast<int>(q.out_cols());
    a_.first_y = static_cast<int>((q.window.sy.first + ny) % ny);
    a_.first_x = static_cast<int>((q.window.sx.first + nx) % nx);
    a_.scale = 0.25f / static_cast<float>(nx * ny);
    const Index m = q.pairs() / q.lefts;
    a_.lefts = static_cast<std::uint32_t>(q.lefts), a_.rights = static_cast<std::uint32_t>(q.rights);
    a_.pairs = static_cast<std::uint32_t>(q.pairs());
    a_.rights_of_left = static_cast<std::uint32_t>(m);
    a_.rights_back = q.form == Form::n_to_m ? a_.rights_of_left : 0;
    while (1 << a_.group_shift < columns) ++a_.group_shift;
    a_.groups = static_cast<int>(groups_of(q, columns));
    a_.stride_x = of_x.elements;
    a_.stride_y = of_y.elements + 16 / columns % 16;
    const auto row_pairs = [&](Index rows) {
      return rows / (2 * of_y.m) * of_y.m + std::min<Index>(of_y.m, rows % (2 * of_y.m));
    };
    a_.by_left_pairs = Divider(row_pairs(q.left.rows));
    a_.by_right_pairs = Divider(row_pairs(q.right.rows));
    a_.by_pairs = Divider(ny / 2);
    a_.by_m = Divider(of_y.m);
    a_.by_groups = Divider(a_.groups);
    a_.row_items = a_.lefts * a_.by_left_pairs.by + a_.rights * a_.by_right_pairs.by;
    a_.out_items = a_.pairs * a_.by_pairs.by;

    threads_ = threads_of(q, columns);
    const int tiles = threads_ / of_x.threads;
    const int of_columns = columns * (2 * a_.stride_y + ny), of_rows = tiles * a_.stride_x;
    shared_bytes_ = sizeof(Complex) * static_cast<std::size_t>(std::max(of_columns, of_rows));
    const Index resident = resident_blocks(reinterpret_cast<const void*>(&grid_kernel), threads_, shared_bytes_);
    const Index chunks = std::clamp<Index>(resident / (q.lefts * a_.groups), 1, m);
    a_.chunk = static_cast<std::uint32_t>(ceil_div(m, chunks));
    a_.by_chunks = Divider(ceil_div<Index>(m, a_.chunk));
    a_.column_tasks = a_.lefts * static_cast<std::uint32_t>(a_.groups) * a_.by_chunks.by;
    const Index wanted = std::max<Index>(
        {a_.column_tasks, ceil_div<Index>(a_.row_items, tiles), ceil_div<Index>(a_.out_items, tiles)});
    blocks_ = static_cast<unsigned>(std::min(resident, wanted));
    a_.barrier = {counters, blocks_};
  }

  void compute(const Call& call) override {
    a_.left = call.lefts<float>();
    a_.right = call.rights<float>();
    a_.out = call.outs<float>();
#ifdef XCORR_EMULATE
    const bool apart = true;  // blocks run one after the other
#else
    const bool apart = call.marks != nullptr;
#endif
    if (!apart) return run(Phases::all, call);
    call.phase("forward");
    run(Phases::rows, call);
    call.phase("hadamard");
    run(Phases::columns, call);
    call.phase("inverse");
    run(Phases::inverse, call);
  }

 private:
  void run(Phases phases, const Call& call) {
    launch(grid_kernel, dim3(blocks_), dim3(static_cast<unsigned>(threads_)), shared_bytes_, call.stream, a_, phases);
  }

  GridArguments a_{};
  int threads_ = 0;
  unsigned blocks_ = 0;
  std::size_t shared_bytes_ = 0;
};

constexpr Index kMostImageBytes = Index{256} << 20;

Support supports(const PlanRequest& request) {
  const Problem& q = request.problem;
  if (const Support fit = AxisLengths::supports(q); !fit) return fit;
  const int columns = request.params.get_int("columns_per_block");
  if (threads_of(q, columns) > kMostThreads) {
    return no("columns_per_block=" + std::to_string(columns) + " takes more than " +
              std::to_string(kMostThreads) + " threads");
  }
  if (all_images(q) * image_elements(q, columns) * static_cast<Index>(sizeof(RowPair)) > kMostImageBytes) {
    return no("more images than " + std::to_string(kMostImageBytes >> 20) + " MiB hold");
  }
  return yes();
}

std::size_t workspace_bytes(const PlanRequest& request) {
  const Problem& q = request.problem;
  const Index images = all_images(q) * image_elements(q, request.params.get_int("columns_per_block"));
  return static_cast<std::size_t>(kRootBytes) + kCounterBytes +
         static_cast<std::size_t>(images) * sizeof(RowPair);
}

XCORR_VARIANT({
    .summary = "Transform theorem in one kernel: rows, columns, rows with barriers of the whole grid",
    .parent = "fused_fft_split",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::fft,
    .axes = {{"columns_per_block", {"1", "2", "4"}}},
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .plan = [](const PlanRequest& request) -> std::unique_ptr<Plan> {
      return std::make_unique<GridPlan>(request);
    },
});

}  // namespace
}  // namespace xcorr
