// fused_fft_block with NVIDIA's transforms in kernels (cuFFTDx), to compare the short transforms of
// this project with the library's. cuFFTDx consists of headers in the Python package nvidia-mathdx;
// a build that does not find them leaves this file out. Beyond the paper.
//
// The library is used at the level of a block, where it chooses radices, roots and the exchange
// between threads. A transform has a whole row or column in natural order before and after it:
// thread t of `first` threads has elements t + first * i. Everything else is as in fused_fft_block:
//
// - Two real rows, `first` apart, form one complex row Z. A thread of a column has Z[k] and Z[-k]
//   and separates the two rows. So a tile is n / 2 rows of n. Column k of 0 .. n / 2 alone uses
//   elements k and n - k of every row, and the inverse packs in place.
// - Product and both directions of a column are one pass in registers.
//
// A tile is read and written four times in place of nine. But the library's exchanges, in separate
// memory, add eight times, with two barriers of the block per transform (four at 128). The library
// has no transforms of inputs that are half zeros, and none of 48 on several threads.
//
// left_spectrum         shared: beside the tile, one launch. workspace: two launches.
// right_mats_per_block  tiles whose rows and columns share the rounds of a block.
//
// Limits: the tile and the library's exchange must fit the shared memory of a block (219 KB at
// 192). Not emulated.
// What limits it: barriers and exchanges of the library; it takes 1.7 to 2.0 times as long as
// fused_fft_block on an H200. Registers on sm_90: 56 to 64 up to length 64, 95 at 128, 119 at 96
// and 192, no spills.
//
// cuFFTDx's types for matrix products, which are not used here, would need CUTLASS.
#define CUFFTDX_DISABLE_CUTLASS_DEPENDENCY
#include <cufftdx.hpp>

#include "algorithms/blocks/divide.hpp"
#include "algorithms/blocks/plan.hpp"
#include "algorithms/fused_fft/lengths.hpp"
#include "algorithms/fused_fft/problem.hpp"
#include "algorithms/fused_fft/roots.hpp"
#include "harness/variant.hpp"

namespace xcorr::fused_fft {
namespace {

using Squares = Lengths<32, 64, 96, 128, 192>;

// Elements per thread, transforms at a time (of n / 2 + 1 columns) and max tiles per block, and
// resident blocks per SM that the launch bounds ask for.
struct VendorSetting {
  int elements, batch, most_tiles, resident;
};
constexpr VendorSetting setting_of(int n) {
  return n <= 32    ? VendorSetting{8, 34, 4, 4}
         : n <= 64  ? VendorSetting{8, 33, 4, 2}
         : n <= 96  ? VendorSetting{24, 49, 1, 2}
         : n <= 128 ? VendorSetting{16, 33, 1, 2}
                    : VendorSetting{24, 49, 1, 1};
}

// Described for one architecture, whichever runs it: the description determines how much memory an
// exchange takes, and host and kernel must agree on that.
template <int kN, cufftdx::fft_direction kWay>
using Vendor =
    decltype(cufftdx::Size<kN>() + cufftdx::Precision<float>() +
             cufftdx::Type<cufftdx::fft_type::c2c>() + cufftdx::Direction<kWay>() +
             cufftdx::ElementsPerThread<setting_of(kN).elements>() +
             cufftdx::FFTsPerBlock<setting_of(kN).batch>() + cufftdx::SM<900>() + cufftdx::Block());

// A square tile of rows of packed pairs, and a spectrum, stored column after column. A thread has
// frequencies threadIdx.x + first * i, i = 0 .. second - 1 (FusedProblem::as_left).
template <int kN>
struct Square {
  using Forward = Vendor<kN, cufftdx::fft_direction::forward>;
  using Inverse = Vendor<kN, cufftdx::fft_direction::inverse>;
  static constexpr int n = kN, second = setting_of(kN).elements, first = kN / second;
  static constexpr int batch = setting_of(kN).batch, threads = first * batch;
  static constexpr int columns = kN / 2 + 1, row_pairs = kN / 2;
  // The lanes of half a warp, `first` along a column and 16 / first columns, access all banks.
  static constexpr int pitch = kN + 16 / first, spectrum_pitch = kN + first;
  static constexpr int tile = row_pairs * pitch, spectrum = columns * spectrum_pitch;
  static constexpr std::size_t exchange = Forward::shared_memory_size;
  static_assert(Forward::block_dim.x == first && Forward::block_dim.y == batch);
  static_assert(Forward::storage_size == second && second % 2 == 0 && exchange % 16 == 0);
  static_assert(Inverse::shared_memory_size == exchange && !Forward::requires_workspace);

  // The number of row pairs that contain any of the first `rows` rows. first_row(q) is the first
  // row of pair q.
  static __device__ __forceinline__ int pairs_of(int rows) {
    const int rest = rows % (2 * first);
    return rows / (2 * first) * first + (rest < first ? rest : first);
  }
  static __device__ __forceinline__ int first_row(int q) { return 2 * q - q % first; }
};

struct Arguments : FusedProblem {
  Complex* spectra;                    // in the workspace: [lefts], then [rights]
  std::uint32_t items;                 // pairs, or matrices to transform
  std::uint32_t lefts, chunks, chunk;  // blocks per left, max rights per block
  std::uint32_t tiles, rights_back;    // tiles per block
  Divider rights_of_left;
};

// Load and store the elements of a thread, `first` apart.
template <typename S>
__device__ __forceinline__ void load(Complex (&v)[S::second], const Complex* from) {
#pragma unroll
  for (int i = 0; i < S::second; ++i) v[i] = from[S::first * i];
}
template <typename S>
__device__ __forceinline__ void store(const Complex (&v)[S::second], Complex* to) {
#pragma unroll
  for (int i = 0; i < S::second; ++i) to[S::first * i] = v[i];
}

// The passes of all tiles of a block. Every thread takes part in every transform, with work or
// without, since transforms contain barriers. The first barrier is before the write to `exchange`.
// So after a transform no other thread still reads what it read from a tile before the transform.
template <typename S>
struct Passes {
  Complex* tiles;
  void* exchange;

  // source(tile) is the matrix to transform.
  template <typename F>
  __device__ __forceinline__ void forward_rows(int count, int rows, F source) const {
    const int pairs = S::pairs_of(rows), tasks = count * pairs;
#pragma unroll 1
    for (int begin = 0; begin < tasks; begin += S::batch) {
      const int task = begin + static_cast<int>(threadIdx.y), x = static_cast<int>(threadIdx.x);
      const int of = task / pairs, q = task - of * pairs, y = S::first_row(q);
      Complex v[S::second] = {};
      if (task < tasks) {
        const Source from = source(of);
        const bool both = y + S::first < from.rows;
        const float* const row = from.data + y * from.cols + x;
        const float* const partner = row + (both ? S::first * from.cols : 0);
#pragma unroll
        for (int i = 0; i < S::second; ++i) {
          const bool inside = x + S::first * i < from.cols;
          v[i].re = inside ? row[S::first * i] : 0.0f;
          v[i].im = inside && both ? partner[S::first * i] : 0.0f;
        }
      }
      typename S::Forward().execute(v, exchange);
      if (task < tasks) store<S>(v, tiles + of * S::tile + q * S::pitch + x);
    }
    block::barrier();
  }

  // Calls f(values of a column by frequency, tile, column); with kInverse the values are then
  // transformed back into the tile.
  template <bool kForward, bool kInverse, typename F>
  __device__ __forceinline__ void columns(int count, int rows, F f) const {
    const int pairs = S::pairs_of(rows), tasks = count * S::columns;
#pragma unroll 1
    for (int begin = 0; begin < tasks; begin += S::batch) {
      const int task = begin + static_cast<int>(threadIdx.y), t = static_cast<int>(threadIdx.x);
      const int of = task / S::columns, column = task - of * S::columns;
      const bool works = task < tasks, alone = column == 0 || column == S::n / 2;
      Complex* const at = tiles + of * S::tile + t * S::pitch + column;
      Complex* const mirror = at + (alone ? 0 : S::n - 2 * column);
      Complex v[S::second] = {};
      if constexpr (kForward) {
        if (works) {
#pragma unroll
          for (int i = 0; i < S::second; i += 2) {
            if (t + S::first * i / 2 >= pairs) continue;
            const int offset = S::first * i / 2 * S::pitch;
            const Complex a = at[offset], b = conj(mirror[offset]);
            v[i] = a + b;
            v[i + 1] = quarter_turn<Direction::forward>(a - b);
          }
        }
        typename S::Forward().execute(v, exchange);
      }
      if (works) f(v, of, column);
      if constexpr (kInverse) {
        typename S::Inverse().execute(v, exchange);
        if (works) {
#pragma unroll
          for (int i = 0; i < S::second; i += 2) {
            const Complex a = v[i], b = v[i + 1];
            const int offset = S::first * i / 2 * S::pitch;
            at[offset] = {a.re - b.im, a.im + b.re};
            if (!alone) mirror[offset] = {a.re + b.im, b.re - a.im};
          }
        }
      }
    }
    block::barrier();
  }

  // Writes the rows x columns of the circular results to out(tile), dense.
  template <typename F>
  __device__ __forceinline__ void inverse_rows(int count, Range rows, Range cols, F out) const {
    const int tasks = count * S::row_pairs;
#pragma unroll 1
    for (int begin = 0; begin < tasks; begin += S::batch) {
      const int task = begin + static_cast<int>(threadIdx.y), x = static_cast<int>(threadIdx.x);
      const int of = task / S::row_pairs, q = task - of * S::row_pairs, y = S::first_row(q);
      const bool upper = task < tasks && rows.has(y);
      const bool lower = task < tasks && rows.has(y + S::first);
      Complex v[S::second] = {};
      if (upper || lower) load<S>(v, tiles + of * S::tile + q * S::pitch + x);
      typename S::Inverse().execute(v, exchange);
      if (upper || lower) {
        float* const to = out(of) + (y - rows.first) * cols.count + (x - cols.first);
#pragma unroll
        for (int i = 0; i < S::second; ++i) {
          if (!cols.has(x + S::first * i)) continue;
          if (upper) to[S::first * i] = v[i].re;
          if (lower) to[S::first * (i + cols.count)] = v[i].im;
        }
      }
    }
  }
};

template <typename S, Work kWork>
__global__ void __launch_bounds__(S::threads, setting_of(S::n).resident)
    vendor_kernel(Arguments a) {
  constexpr bool kShared = kWork == Work::shared_left;
  unsigned char* const memory = dynamic_shared<unsigned char>();
  Complex* const left_here = reinterpret_cast<Complex*>(memory + S::exchange);
  const Passes<S> passes{left_here + (kShared ? S::spectrum : 0), memory};
  // Opaque to the compiler, so that the offsets of all phases do not stay in registers from column
  // to column.
  const auto as_left = [&](Complex(&v)[S::second], int column) {
    a.as_left<S>(v, opaque(static_cast<int>(threadIdx.x)), column, S::n);
  };

  std::uint32_t item = blockIdx.x * a.tiles, end = a.items, step = gridDim.x * a.tiles;
  if constexpr (kShared) {
    const std::uint32_t l = blockIdx.x / a.chunks, m = a.rights_of_left.by;
    const std::uint32_t begin = (blockIdx.x - l * a.chunks) * a.chunk;
    item = l * m + begin;
    end = l * m + (begin + a.chunk < m ? begin + a.chunk : m);
    step = a.tiles;
    passes.forward_rows(1, a.left_rows, [&](int) { return a.left_of(l); });
    passes.template columns<true, false>(1, a.left_rows, [&](auto& v, int, int column) {
      as_left(v, column);
      store<S>(v, left_here + column * S::spectrum_pitch + threadIdx.x);
    });
  }

#pragma unroll 1
  for (; item < end; item += step) {
    const int count = static_cast<int>(end - item < a.tiles ? end - item : a.tiles);
    if constexpr (kWork == Work::spectra) {  // one tile
      const bool is_left = item < a.lefts;
      const Source source = is_left ? a.left_of(item) : a.right_of(item - a.lefts);
      passes.forward_rows(1, source.rows, [&](int) { return source; });
      passes.template columns<true, false>(1, source.rows, [&](auto& v, int, int column) {
        if (is_left) as_left(v, column);
        const Index at = static_cast<Index>(item) * S::spectrum + column * S::spectrum_pitch;
        store<S>(v, a.spectra + at + threadIdx.x);
      });
    } else {
      const auto left_of_item = [&](int of) { return a.rights_of_left.quotient(item + of); };
      if constexpr (kWork != Work::pairs) {
        passes.forward_rows(count, a.right_rows, [&](int of) {
          return a.right_of(item + of - left_of_item(of) * a.rights_back);
        });
      }
      const auto product = [&](auto& v, int of, int column) {
        const int at = column * S::spectrum_pitch + static_cast<int>(threadIdx.x);
        const Index l = kShared ? 0 : left_of_item(of);
        const Complex* const left = (kShared ? left_here : a.spectra + l * S::spectrum) + at;
        if constexpr (kWork == Work::pairs) {
          const Index r = a.lefts + item + of - l * a.rights_back;
          load<S>(v, a.spectra + r * S::spectrum + at);
        }
#pragma unroll
        for (int i = 0; i < S::second; ++i) v[i] = v[i] * left[S::first * i];
      };
      passes.template columns<kWork != Work::pairs, true>(count, a.right_rows, product);
      passes.inverse_rows(count, a.rows, a.cols, [&](int of) { return a.out_of(item + of); });
    }
  }
}

bool shares_left(const PlanRequest& q) { return q.params.get("left_spectrum") == "shared"; }
Index tiles_of(const PlanRequest& q) { return q.params.get_int("right_mats_per_block"); }

template <typename S>
std::size_t shared_bytes(Index tiles, bool shared_left) {
  return S::exchange + sizeof(Complex) * static_cast<std::size_t>(tiles * S::tile +
                                                                  (shared_left ? S::spectrum : 0));
}

template <int kN>
class VendorPlan final : public DevicePlan<float> {
  using S = Square<kN>;

 public:
  explicit VendorPlan(const PlanRequest& request) : DevicePlan(request.problem) {
    const Problem& q = request.problem;
    const bool n_to_m = q.form == Form::n_to_m;
    const Index tiles = tiles_of(request), m = q.pairs() / q.lefts;
    auto* const roots = static_cast<Complex*>(request.workspace);
    store_root_tables<Length<kN>, Length<kN>>(roots, request.stream);
    static_cast<FusedProblem&>(a_) = FusedProblem(q, kN, kN, roots);
    a_.spectra = roots + 4 * kRootTable;
    a_.lefts = static_cast<std::uint32_t>(q.lefts);
    a_.items = static_cast<std::uint32_t>(q.pairs());
    a_.tiles = static_cast<std::uint32_t>(tiles);
    a_.rights_of_left = Divider(m);
    a_.rights_back = n_to_m ? static_cast<std::uint32_t>(q.rights) : 0;
    shared_ = shared_bytes<S>(tiles, shares_left(request));
    if (shares_left(request)) {
      kernel_ = vendor_kernel<S, Work::shared_left>;
      const Index chunks = std::clamp<Index>(resident() / q.lefts, 1, ceil_div(m, tiles));
      a_.chunk = static_cast<std::uint32_t>(ceil_div(ceil_div(m, chunks), tiles) * tiles);
      a_.chunks = static_cast<std::uint32_t>(ceil_div<Index>(m, a_.chunk));
      blocks_ = static_cast<unsigned>(q.lefts * a_.chunks);
      return;
    }
    spectra_ = a_;
    spectra_.items = static_cast<std::uint32_t>(q.lefts + (n_to_m ? q.rights : 0));
    spectra_.tiles = 1;
    kernel_ = n_to_m ? vendor_kernel<S, Work::pairs> : vendor_kernel<S, Work::stored_left>;
    blocks_ = static_cast<unsigned>(std::min(resident(), ceil_div(q.pairs(), tiles)));
  }

  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    a_.set(arrays);
    spectra_.set(arrays);
    if (spectra_.items > 0) {
      call.phase("forward");
      run(vendor_kernel<S, Work::spectra>, spectra_, call, spectra_.items,
          shared_bytes<S>(1, false));
      call.phase("inverse");
    }
    run(kernel_, a_, call, blocks_, shared_);
  }

 private:
  Index resident() const {
    return resident_blocks(reinterpret_cast<const void*>(kernel_), S::threads, shared_);
  }
  static void run(void (*kernel)(Arguments), const Arguments& a, const Call& call, unsigned blocks,
                  std::size_t shared) {
    launch(kernel, dim3(blocks), dim3(S::first, S::batch), shared, call.stream, a);
  }

  Arguments a_{}, spectra_{};
  void (*kernel_)(Arguments) = nullptr;
  std::size_t shared_ = 0;
  unsigned blocks_ = 0;
};

template <typename F>
auto with_shape(const PlanRequest& request, F f) {
  return Squares::with(Squares::square(request.problem),
                       [&](auto length) { return f(Square<decltype(length)::n>{}); });
}

Support supports(const PlanRequest& request) {
  const Problem& q = request.problem;
  if (const Support fit = Squares::supports(q); !fit) return fit;
  const int n = Squares::square(q);
  const Index tiles = tiles_of(request);
  if (tiles > setting_of(n).most_tiles)
    return no("a block has no space for so many tiles of " + std::to_string(n));
  if (tiles > 1 && tiles >= 2 * q.pairs() / q.lefts) return no("more tiles than rights of a left");
  const std::size_t bytes = with_shape(request, [&](auto shape) {
    return shared_bytes<decltype(shape)>(tiles, shares_left(request));
  });
  return shared_fits("tiles of " + std::to_string(n), bytes);
}

std::size_t workspace_bytes(const PlanRequest& request) {
  const Problem& q = request.problem;
  if (shares_left(request)) return kRootBytes;
  const Index spectra = q.lefts + (q.form == Form::n_to_m ? q.rights : 0);
  return kRootBytes + with_shape(request, [&](auto shape) {
           return static_cast<std::size_t>(spectra) * sizeof(Complex) * decltype(shape)::spectrum;
         });
}

XCORR_VARIANT({
    .summary = "fused_fft_block with cuFFTDx, the vendor's transforms inside kernels",
    .parent = "fused_fft_block",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::fft,
    .axes = {{"left_spectrum", {"shared", "workspace"}}, {"right_mats_per_block", {"1", "4"}}},
    .emulated = false,
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .plan = Squares::plan<VendorPlan>,
});

}  // namespace
}  // namespace xcorr::fused_fft
