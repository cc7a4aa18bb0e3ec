// The whole FFT correlation in one kernel over the whole card, for few pairs: a step from
// fused_fft_split. Its three phases (rows, columns with the product, rows) are the same; between
// them every block waits for every other (grid_barrier.hpp), which costs less than a launch. Beyond
// the paper.
#include <bit>

#include "algorithms/device/divide.hpp"
#include "algorithms/device/fused_fft_plan.hpp"
#include "algorithms/device/grid_barrier.hpp"
#include "algorithms/device/three_pass_fft.hpp"
#include "harness/variant.hpp"

namespace xcorr {
namespace {

using AxisLengths = Lengths<64, 96, 128, 192, 256, 384, 512>;
#ifdef XCORR_EMULATE
constexpr int kMostParts = 1;
#else
constexpr int kMostParts = 12;
#endif

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

// An element that nobody has written yet: a bit pattern that no arithmetic makes.
__device__ __forceinline__ std::uint32_t bits_of(float x) {
#ifdef XCORR_EMULATE
  return std::bit_cast<std::uint32_t>(x);
#else
  return __float_as_uint(x);
#endif
}
__device__ __forceinline__ RowPair load_fresh(const RowPair* from) {
#ifdef XCORR_EMULATE
  return *from;
#else
  RowPair r;
  asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(r.even.re), "=f"(r.even.im), "=f"(r.odd.re), "=f"(r.odd.im)
               : "l"(from)
               : "memory");
  return r;
#endif
}
__device__ __forceinline__ bool is_missing(const RowPair& r) {
  constexpr std::uint32_t kMissing = 0xffffffffu;
  return (bits_of(r.even.re) == kMissing) | (bits_of(r.even.im) == kMissing) |
         (bits_of(r.odd.re) == kMissing) | (bits_of(r.odd.im) == kMissing);
}
__device__ __forceinline__ void store_shared(RowPair* to, const RowPair& r) {
#ifdef XCORR_EMULATE
  *to = r;
#else
  asm volatile("st.relaxed.gpu.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(r.even.re),
               "f"(r.even.im), "f"(r.odd.re), "f"(r.odd.im)
               : "memory");
#endif
}
__device__ __forceinline__ void make_missing(RowPair* to) {
  std::uint64_t* const words = reinterpret_cast<std::uint64_t*>(to);
  words[0] = words[1] = ~std::uint64_t{0};
}
__global__ void fill_missing(RowPair* to, std::uint32_t count) {
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) make_missing(to + i);
}

struct GridArguments {
  const float *left, *right;
  float* out;
  const Complex* roots;      // tables of x, of y, each two
  RowPair* images;  // of lefts, then rights; pairs from number first_pair on
  std::uint32_t image, first_pair;  // elements of one
  int nx, ny;
  std::uint32_t half_ny, m_y;  // rows of a pair are m_y apart
  int left_rows, left_cols, right_rows, right_cols;
  int out_rows, out_cols, first_y, first_x;  // of the window in the circular result
  float scale;
  std::uint32_t lefts, rights, pairs, rights_of_left, rights_back;
  int group_shift, layout_shift, groups;   // log2 of columns of a group, in the layout of images; groups
  std::uint32_t chunk;       // rights of a block over columns
  Divider by_left_pairs, by_right_pairs, by_pairs, by_m, by_groups, by_chunks;
  std::uint32_t row_items, column_tasks, out_items;
  int part_threads, shared_of_part, stride_x, stride_y;  // complex elements of shared memory, of a transform
  int rehearsals;
  GridBarrier barrier;

  // Offset of column k from column 0 of the same row pair.
  __device__ __forceinline__ std::uint32_t of_column(int k) const {
    const auto column = static_cast<std::uint32_t>(k);
    return (((column >> layout_shift) * half_ny) << layout_shift) + (column & ((1u << layout_shift) - 1));
  }
};

// The number of position i, counted from `first` on around a circle of n.
__device__ __forceinline__ int from_first(int i, int first, int n) {
  const unsigned ahead = static_cast<unsigned>(i - first), around = ahead + static_cast<unsigned>(n);
  return static_cast<int>(ahead < around ? ahead : around);
}

// What a part of a block does over rows: its tiles, one transform each.
template <typename R>
struct RowTile {
  __device__ __forceinline__ RowTile(const GridArguments& a, const BlockPart& part)
      : t(part.thread % R::threads),
        tiles(static_cast<std::uint32_t>(part.threads / R::threads)),
        first(static_cast<std::uint32_t>(part.thread / R::threads) * part.count + part.number),
        pass(dynamic_shared<Complex>() + part.index() * a.shared_of_part +
             part.thread / R::threads * a.stride_x) {}
  int t;
  std::uint32_t tiles, first;
  ThreePass<R> pass;
};

template <typename R, bool kFlow>
__device__ __forceinline__ void forward_rows(const GridArguments& a) {
  const BlockPart part = BlockPart::of(a.part_threads);
  const RowTile<R> tile(a, part);
  const ThreePass<R> pass = tile.pass;
  const int t = tile.t;
  const std::uint32_t left_items = a.lefts * a.by_left_pairs.by, step = part.count * tile.tiles;
  // Element (row pair 0, column t) of an image; from column k to k + R::threads.
  const std::uint32_t of_t = a.of_column(t), columns_on = R::threads * a.half_ny;
  Complex v[R::a];
  RowPair* to = nullptr;
  const auto load = [&](std::uint32_t item) {
    const bool is_left = item < left_items;
    std::uint32_t q = is_left ? item : item - left_items;
    const std::uint32_t index = (is_left ? a.by_left_pairs : a.by_right_pairs).split(q);
    const int rows = is_left ? a.left_rows : a.right_rows, cols = is_left ? a.left_cols : a.right_cols;
    to = a.images + (is_left ? index : a.lefts + index) * a.image + (q << a.layout_shift) + of_t;
    const int row = static_cast<int>(q + a.by_m.quotient(q) * a.m_y);
    if (t >= R::m) return;
    const float* const even = (is_left ? a.left : a.right) + (index * rows + row) * cols + t;
    const bool both = row + static_cast<int>(a.m_y) < rows;
    const float* const odd = even + (both ? static_cast<int>(a.m_y) * cols : 0);
#pragma unroll
    for (int s = 0; s < R::a; ++s) {
      v[s] = {0.0f, 0.0f};
      if (t + R::m * s < cols) v[s] = {even[R::m * s], odd[R::m * s]};
      if (!both) v[s].im = 0.0f;
    }
  };
  std::uint32_t base = 0;
  bool real = (a.rehearsals & 1) == 0;
  if (tile.first < a.row_items) load(tile.first);
  const Twiddles<R> w(a.roots, a.roots + kRootTable, t, t);
#pragma unroll 1
  while (base < a.row_items) {
    const bool works = base + tile.first < a.row_items;
    if (works && t < R::m && real) pass.first_forward(v, w, t);
    part.barrier();
    if (works) pass.second_forward(w, t);
    part.barrier();
    if (works && t < R::ab) {
      Complex last[R::c];
      pass.third_forward(last, t);
#pragma unroll
      for (int k = 0; k < R::c; ++k) pass.x[t + R::ab * k] = last[k];
    }
    part.barrier();
    if (works) {
#pragma unroll
      for (int i = 0; i <= R::n / 2 / R::threads; ++i) {
        const int k = t + i * R::threads;
        if ((i + 1) * R::threads > R::n / 2 && k > R::n / 2) break;
        const Complex z = pass.x[k], mirrored = pass.x[k == 0 ? 0 : R::n - k];
        const RowPair two = {{z.re + mirrored.re, z.im - mirrored.im},
                             {z.im + mirrored.im, mirrored.re - z.re}};
        if (real) {
          if constexpr (kFlow) store_shared(to + i * columns_on, two);
          else to[i * columns_on] = two;
        }
      }
    }
    if (real) {
      base += step;
      if (base + tile.first < a.row_items) load(base + tile.first);
      if (base < a.row_items) part.barrier();
    }
    real = true;
  }
}

template <typename R, bool kFlow, typename Wait>
__device__ __forceinline__ void columns(const GridArguments& a, Wait wait) {
  const BlockPart part = BlockPart::of(a.part_threads);
  const int shift = a.group_shift;
  const int slot = part.thread / R::threads >> shift;
  const int lane = part.thread - ((slot * R::threads) << shift);
  // A thread's column and number: along rows of an image at its ends, elsewhere along columns.
  const int outer_c = lane & ((1 << shift) - 1), t = lane >> shift;
  const int c = lane / R::threads, u = lane % R::threads;
  Complex* const shared = dynamic_shared<Complex>() + part.index() * a.shared_of_part;
  const ThreePass<R> outer(shared + ((slot << shift) + outer_c) * a.stride_y);
  const ThreePass<R> inner(shared + ((slot << shift) + c) * a.stride_y);
  Complex* const left = shared + (2 << shift) * a.stride_y + c * R::n + u;
  const Complex* const tables = a.roots + 2 * kRootTable;
  const Twiddles<R> w(tables, tables + kRootTable, t, u);
  const std::uint32_t rows_on = static_cast<std::uint32_t>(R::m) << a.layout_shift;
  std::uint32_t task = part.number;
  bool real = (a.rehearsals & 2) == 0;
  if (real) wait();
#pragma unroll 1
  while (!real || task < a.column_tasks) {
    std::uint32_t group = task;
    std::uint32_t begin = a.by_groups.split(group);
    const std::uint32_t l = a.by_chunks.split(begin);
    begin *= a.chunk;
    const std::uint32_t end = begin + a.chunk < a.rights_of_left ? begin + a.chunk : a.rights_of_left;
    const int count = real ? static_cast<int>(end - begin) : 1;
    const std::uint32_t pair = l * a.rights_of_left + begin, right = a.lefts + pair - l * a.rights_back;
    const int column_number = static_cast<int>(group << shift) + outer_c;
    RowPair* const column = a.images + a.of_column(column_number) + (t << a.layout_shift);
    const bool live = column_number <= a.nx / 2 && t < R::m;
    // Item -1, of the first slot, is the left; the other begins with a right beside it.
#pragma unroll 1
    for (int first = -1; first < count; first += 2) {
      const int item = first + slot;
      const bool is_left = item < 0, works = slot < 2 && item < count, is_right = works && !is_left;
      if (works && live) {
        const RowPair* const from = column + (is_left ? l : right + item) * a.image;
        const int rows = real ? is_left ? a.left_rows : a.right_rows : 0;
        Complex v[R::a];
        RowPair two[R::a / 2];
        bool missing;
        do {
          missing = false;
#pragma unroll
          for (int s = 0; s < R::a / 2; ++s) {
            two[s] = {};
            if (t + 2 * R::m * s >= rows) continue;
            if constexpr (kFlow) {
              two[s] = load_fresh(from + s * rows_on);
            } else {
              two[s] = from[s * rows_on];
            }
          }
          if constexpr (kFlow) {
#pragma unroll
            for (int s = 0; s < R::a / 2; ++s) missing |= is_missing(two[s]);
          }
        } while (missing);
#pragma unroll
        for (int s = 0; s < R::a / 2; ++s) {
          if (kFlow && t + 2 * R::m * s < rows) make_missing(const_cast<RowPair*>(from) + s * rows_on);
          v[2 * s] = two[s].even;
          v[2 * s + 1] = two[s].odd;
        }
        outer.first_forward(v, w, t);
      }
      part.barrier();
      if (works) inner.second_forward(w, u);
      part.barrier();
      Complex v[R::c];
      if (works && u < R::ab) {
        inner.third_forward(v, u);
        if (is_left) {
#pragma unroll
          for (int k = 0; k < R::c; ++k) left[R::ab * k] = {a.scale * v[k].re, -a.scale * v[k].im};
        }
      }
      if (first < 0) part.barrier();
      if (is_right && u < R::ab) {
#pragma unroll
        for (int k = 0; k < R::c; ++k) v[k] = v[k] * left[R::ab * k];
        inner.third_inverse(v, u);
      }
      part.barrier();
      if (is_right) inner.second_inverse(w, u);
      part.barrier();
      if (is_right && live) {
        RowPair* const to = column + (a.first_pair + pair + item) * a.image;
        Complex result[R::a];
        outer.first_inverse(result, w, t);
#pragma unroll
        for (int s = 0; s < R::a; s += 2) {
          const RowPair two = {result[s], result[s + 1]};
          if (real) {
            if constexpr (kFlow) store_shared(to + s / 2 * rows_on, two);
            else to[s / 2 * rows_on] = two;
          }
        }
      }
    }
    if (real) {
      task += part.count;
    } else {
      real = true;
      wait();
    }
  }
}

template <typename R, bool kFlow, typename Wait>
__device__ __forceinline__ void inverse_rows(const GridArguments& a, Wait wait) {
  const BlockPart part = BlockPart::of(a.part_threads);
  const RowTile<R> tile(a, part);
  const ThreePass<R> pass = tile.pass;
  const int t = tile.t;
  const Twiddles<R> w(a.roots, a.roots + kRootTable, t, t);
  // Columns t and ab - t of an image; from column k to k + ab.
  const std::uint32_t of_t = a.of_column(t), of_mirror = a.of_column(R::ab - t), columns_on = R::ab * a.half_ny;
  std::uint32_t base = 0;
  bool real = (a.rehearsals & 4) == 0;
  if (real) wait();
#pragma unroll 1
  while (!real || base < a.out_items) {
    std::uint32_t q = base + tile.first;
    const bool inside = q < a.out_items;
    const std::uint32_t pair = a.by_pairs.split(q);
    const int y = static_cast<int>(q + a.by_m.quotient(q) * a.m_y);
    const int even_row = from_first(y, a.first_y, a.ny);
    const int odd_row = from_first(y + static_cast<int>(a.m_y), a.first_y, a.ny);
    const bool works = !real || (inside && (even_row < a.out_rows || odd_row < a.out_rows));
    RowPair* const from = a.images + (a.first_pair + pair) * a.image + (q << a.layout_shift);
    if (works && t < R::ab) {
      const RowPair *const direct = from + of_t, *const mirrored = from + of_mirror;
      RowPair two[R::c];
      bool missing;
      do {
        missing = false;
#pragma unroll
        for (int k = 0; k < R::c; ++k) {
          two[k] = {};
          if (!real) continue;
          const RowPair* const of = k < R::c / 2 ? direct + k * columns_on : mirrored + (R::c - 1 - k) * columns_on;
          if constexpr (kFlow) {
            two[k] = load_fresh(of);
          } else {
            two[k] = *of;
          }
        }
        if constexpr (kFlow) {
#pragma unroll
          for (int k = 0; k < R::c; ++k) missing |= is_missing(two[k]);
        }
      } while (missing);
      Complex v[R::c];
#pragma unroll
      for (int k = 0; k < R::c; ++k) {
        const Complex p = two[k].even, q = two[k].odd;
        v[k] = k < R::c / 2 ? Complex{p.re - q.im, p.im + q.re} : Complex{p.re + q.im, q.re - p.im};
      }
      pass.third_inverse(v, t);
    }
    part.barrier();
    if (kFlow && works && real && t < R::ab) {
#pragma unroll
      for (int k = 0; k < R::c / 2; ++k) make_missing(from + of_t + k * columns_on);
      if (t == 0) make_missing(from + of_t + R::c / 2 * columns_on);
    }
    if (works) pass.second_inverse(w, t);
    part.barrier();
    if (works && t < R::m) {
      Complex v[R::a];
      pass.first_inverse(v, w, t);
      const int even_cols = real && even_row < a.out_rows ? a.out_cols : 0;
      const int odd_cols = real && odd_row < a.out_rows ? a.out_cols : 0;
      float* const out = a.out + pair * static_cast<std::uint32_t>(a.out_rows * a.out_cols);
      float *const even = out + even_row * a.out_cols, *const odd = out + odd_row * a.out_cols;
#pragma unroll
      for (int s = 0; s < R::a; ++s) {
        const int x = from_first(t + R::m * s, a.first_x, a.nx);
        if (x < even_cols) even[x] = v[s].re;
        if (x < odd_cols) odd[x] = v[s].im;
      }
    }
    if (real) {
      base += part.count * tile.tiles;
    } else {
      real = true;
      wait();
    }
  }
}

enum class Phases { all, rows, columns, inverse };

// All phases, or one of them: for the emulation, and for phases that are measured apart.
template <int kMost, bool kFlow>
__global__ void __launch_bounds__(kMost, 1) grid_kernel(GridArguments a, Phases phases) {
  const bool all = phases == Phases::all;
  if (all || phases == Phases::rows) {
    with_radices(a.nx, [&](auto r) { forward_rows<decltype(r), kFlow>(a); });
  }
  if (all && !kFlow) a.barrier.arrive(0);
  if (all && kFlow) block::barrier();
  if (all || phases == Phases::columns) {
    with_radices(a.ny, [&](auto r) {
      columns<decltype(r), kFlow>(a, [&] {
        if (all && !kFlow) a.barrier.wait(0);
      });
    });
  }
  if (all && !kFlow) a.barrier.arrive(1);
  if (all && kFlow) block::barrier();
  if (all || phases == Phases::inverse) {
    with_radices(a.nx, [&](auto r) {
      inverse_rows<decltype(r), kFlow>(a, [&] {
        if (all && !kFlow) a.barrier.wait(1);
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
constexpr int kLayout = 8;
Index image_elements(const Problem& q) {
  return groups_of(q, kLayout) * kLayout * (AxisLengths::y(q) / 2);
}
// Those of pairs take the place of their rights' where each right has one pair.
Index all_images(const Problem& q) {
  return q.lefts + q.rights + q.pairs();
}

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
    a_.image = static_cast<std::uint32_t>(image_elements(q));
    a_.nx = nx, a_.ny = ny;
    a_.half_ny = static_cast<std::uint32_t>(ny / 2), a_.m_y = static_cast<std::uint32_t>(of_y.m);
    a_.left_rows = static_cast<int>(q.left.rows), a_.left_cols = static_cast<int>(q.left.cols);
    a_.right_rows = static_cast<int>(q.right.rows), a_.right_cols = static_cast<int>(q.right.cols);
    a_.out_rows = static_cast<int>(q.out_rows()), a_.out_cols = static_cast<int>(q.out_cols());
    a_.first_y = static_cast<int>((q.window.sy.first + ny) % ny);
    a_.first_x = static_cast<int>((q.window.sx.first + nx) % nx);
    a_.scale = 0.25f / static_cast<float>(nx * ny);
    const Index m = q.pairs() / q.lefts;
    a_.lefts = static_cast<std::uint32_t>(q.lefts), a_.rights = static_cast<std::uint32_t>(q.rights);
    a_.first_pair = q.form == Form::n_to_m || request.params.get_int("flow") == 1 ? a_.lefts + a_.rights : a_.lefts;
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

    const int most = request.params.get_int("most");
    const bool flow = request.params.get_int("flow") == 1;
    kernel_ = flow ? grid_kernel<512, true> : most == 512 ? grid_kernel<512, false> : grid_kernel<768, false>;
    const int layout = request.params.get_int("layout");
    while (1 << a_.layout_shift < layout) ++a_.layout_shift;
    a_.rehearsals = request.params.get_int("rehearsals");
    a_.part_threads = threads_of(q, columns);
    const int tiles = a_.part_threads / of_x.threads;
    a_.shared_of_part = std::max(columns * (2 * a_.stride_y + ny), tiles * a_.stride_x);
    // As many parts as there is work for, over all multiprocessors first.
    const Index per_part = static_cast<Index>(sizeof(Complex)) * a_.shared_of_part;
    const Index processors = resident_blocks(reinterpret_cast<const void*>(kernel_), most, 0);
    const Index most_parts = std::max<Index>(1, std::min<Index>({kMostParts, most / a_.part_threads, static_cast<Index>(shared_limit()) / per_part}));
    const Index chunks = flow ? 1 : std::clamp<Index>(processors * most_parts / (q.lefts * a_.groups), 1, m);
    a_.chunk = static_cast<std::uint32_t>(ceil_div(m, chunks));
    a_.by_chunks = Divider(ceil_div<Index>(m, a_.chunk));
    a_.column_tasks = a_.lefts * static_cast<std::uint32_t>(a_.groups) * a_.by_chunks.by;
    const Index wanted = std::max<Index>(
        {a_.column_tasks, ceil_div<Index>(a_.row_items, tiles), ceil_div<Index>(a_.out_items, tiles)});
    const Index parts = std::clamp<Index>(ceil_div(wanted, processors), 1, most_parts);
    threads_ = static_cast<unsigned>(parts * a_.part_threads);
    shared_bytes_ = static_cast<std::size_t>(parts * per_part);
    blocks_ = static_cast<unsigned>(std::min(processors, ceil_div(wanted, parts)));
    resident_blocks(reinterpret_cast<const void*>(kernel_), static_cast<int>(threads_), shared_bytes_);
    a_.barrier = {counters, blocks_};
    if (flow) {
      const auto count = static_cast<std::uint32_t>(all_images(q) * a_.image);
      launch(fill_missing, dim3(ceil_div(count, 4096u)), dim3(256), 0, request.stream, a_.images, count);
    }
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
    launch(kernel_, dim3(blocks_), dim3(threads_), shared_bytes_, call.stream, a_, phases);
  }

  GridArguments a_{};
  unsigned threads_ = 0;
  void (*kernel_)(GridArguments, Phases) = nullptr;
  unsigned blocks_ = 0;
  std::size_t shared_bytes_ = 0;
};

constexpr Index kMostImageBytes = Index{256} << 20;

Support supports(const PlanRequest& request) {
  const Problem& q = request.problem;
  if (const Support fit = AxisLengths::supports(q); !fit) return fit;
  const int columns = request.params.get_int("columns_per_block");
  if (threads_of(q, columns) > 512) return no("too many threads");
  if (request.params.get_int("layout") < columns) return no("layout");
  if (request.params.get_int("flow") == 1 && ((q.form == Form::n_to_m && q.lefts > 1) || request.params.get_int("most") > 512)) return no("flow");
  if (all_images(q) * image_elements(q) * static_cast<Index>(sizeof(RowPair)) > kMostImageBytes) {
    return no("more images than " + std::to_string(kMostImageBytes >> 20) + " MiB hold");
  }
  return yes();
}

std::size_t workspace_bytes(const PlanRequest& request) {
  const Problem& q = request.problem;
  const Index images = all_images(q) * image_elements(q);
  return static_cast<std::size_t>(kRootBytes) + kCounterBytes +
         static_cast<std::size_t>(images) * sizeof(RowPair);
}

XCORR_VARIANT({
    .summary = "Transform theorem in one kernel: rows, columns, rows with barriers of the whole grid",
    .parent = "fused_fft_split",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::fft,
    .axes = {{"columns_per_block", {"1", "2", "4"}}, {"rehearsals", {"0", "6", "7"}}, {"most", {"512", "768"}}, {"layout", {"2", "4", "8"}}, {"flow", {"0", "1"}}},
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .plan = [](const PlanRequest& request) -> std::unique_ptr<Plan> {
      return std::make_unique<GridPlan>(request);
    },
});

}  // namespace
}  // namespace xcorr
