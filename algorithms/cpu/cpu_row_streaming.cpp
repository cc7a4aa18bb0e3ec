// Row streaming, section 4.2 of the ISS paper (../autocorrelation/README.md). Derived from
// cpu_definition with reordered loops: the innermost loop runs over consecutive sx. One vector of
// the right matrix, multiplied by one left element in all lanes, adds a product to as many outputs
// as the vector has lanes. The paper stops there. Here a block of outputs (kRows shifts sy x
// kVectors vectors of shifts sx) also stays in registers during the walk over the overlap: each
// right vector serves kRows products and each left element kVectors products. With AVX2 these are
// 12 multiply-adds for 3 + 4 loads.
//
// Each right matrix is copied between columns of zeros (inside compute, by each thread into its
// part of the workspace), and rows outside the left matrix are replaced by a row of zeros, so that
// the inner loop has no branch. Products with these zeros are wasted: per output about half
// the rows and half the columns of a block more than its overlap has. Columns are processed in
// blocks of kColumnBlock, so that the rows in use stay in the L1 cache.
//
// In float32 a sum has at most kProductsOfASum products. These sums are added with compensation, so
// that outputs of any length satisfy the bound of the check. SIMD: vector types of GCC and Clang,
// compiled once per instruction set (AVX-512, AVX2 + FMA, and the baseline of the architecture:
// SSE2, NEON) and chosen at run time.
//
// With threads=all, tasks are blocks of sy of a pair, or whole pairs if there are many. The order
// of the additions of an output is the same for any number of threads.
// Fields: all but score `phase`, pair by pair in float64 (fields_by_correlation.hpp). ncc and zncc
// need six correlations. For boundary `circular` the right matrix is continued periodically, so
// that the left matrix lies inside it at every shift. Limits: an infinity or a NaN may reach
// outputs whose overlaps do not contain it, since it is multiplied by the zeros of the border; with
// one output row the other rows of a block are unused. Measured (AMD EPYC, Zen 3, one core, 128 x
// 128, fp32): 37 GFMA/s of at most 50.
#include <omp.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "algorithms/blocks/precision.hpp"
#include "algorithms/cpu/fields_by_correlation.hpp"
#include "harness/variant.hpp"

namespace xcorr::cpu {
namespace {

constexpr Index kColumnBlock = 1024;

// Products per float32 sum before the sum is added to the total. If all products are similar, every
// addition may round in one direction: a sum of n then loses n / 2 roundoffs, for 256 no more than
// the 8 sqrt(n) + 4 that the check allows (docs/design.md, Checks).
constexpr Index kProductsOfASum = 256;

// A block of outputs of one pair, and the part of the overlap that it needs.
template <typename T>
struct Block {
  const T* left;
  Index left_rows, left_cols;
  const T* right;  // column 0 of row 0; zeros lie left and right of each row
  Index right_rows, right_pitch;
  const T* zeros;        // left_cols zeros
  Index sy = 0, sx = 0;  // the smallest shifts of the block
  Index first_x = 0, end_x = 0;
  T* out = nullptr;
  Index out_pitch = 0, out_rows = 0, out_cols = 0;  // the part of the block in the window
};

template <typename T, int kBytes>
struct Lanes {
  typedef T Vector __attribute__((vector_size(kBytes), aligned(sizeof(T)), may_alias));
};

// The total of sums of products, with the rounding errors of its additions (Kahan). In float64 a
// sum has all products of an output, and there is no total.
template <typename T, int kBytes, int kRows, int kVectors>
struct Total {
  using Vector = typename Lanes<T, kBytes>::Vector;
  Vector value[kRows][kVectors] = {}, excess[kRows][kVectors] = {};

  // Adds the sums to the total and sets them to zero.
  [[gnu::always_inline]] inline void take(Vector (&sum)[kRows][kVectors]) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) {
        const Vector term = sum[i][v] - excess[i][v];
        const Vector next = value[i][v] + term;
        excess[i][v] = (next - value[i][v]) - term;
        value[i][v] = next;
        sum[i][v] = Vector{};
      }
    }
  }
};

template <typename T, int kBytes, int kRows, int kVectors>
[[gnu::always_inline]] inline void correlate(const Block<T>& b) {
  constexpr int kLanes = kBytes / sizeof(T);
  constexpr bool kInBlocks = sizeof(T) == sizeof(float);
  using Vector = typename Lanes<T, kBytes>::Vector;
  Vector sum[kRows][kVectors] = {};
  Total<T, kBytes, kRows, kVectors> total;
  Index held = 0;  // products in each sum
  const Index first_row = std::max<Index>(0, b.sy);
  const Index end_row = std::min(b.right_rows, b.left_rows + b.sy + kRows - 1);
  for (Index x0 = b.first_x; x0 < b.end_x; x0 += kColumnBlock) {
    const Index count = std::min(kColumnBlock, b.end_x - x0);
    for (Index row = first_row; row < end_row; ++row) {
      const T* left[kRows];
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        const Index y = row - b.sy - i;
        left[i] = (y >= 0 && y < b.left_rows ? b.left + y * b.left_cols : b.zeros) + x0;
      }
      const T* right = b.right + row * b.right_pitch + x0 + b.sx;
      for (Index x = 0; x < count;) {
        const Index end = kInBlocks ? std::min(count, x + kProductsOfASum - held) : count;
        if (kInBlocks) held += end - x;
        for (; x < end; ++x) {
          Vector r[kVectors];
#pragma GCC unroll 16
          for (int v = 0; v < kVectors; ++v) {
            r[v] = *reinterpret_cast<const Vector*>(right + x + v * kLanes);
          }
#pragma GCC unroll 16
          for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
            for (int v = 0; v < kVectors; ++v) sum[i][v] += left[i][x] * r[v];
          }
        }
        if (kInBlocks && held == kProductsOfASum) {
          total.take(sum);
          held = 0;
        }
      }
    }
  }
  if constexpr (kInBlocks) {
    total.take(sum);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) sum[i][v] = total.value[i][v];
    }
  }
  if (b.out_rows == kRows && b.out_cols == kVectors * kLanes) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) {
        *reinterpret_cast<Vector*>(b.out + i * b.out_pitch + v * kLanes) = sum[i][v];
      }
    }
    return;
  }
  T all[kRows][kVectors * kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      *reinterpret_cast<Vector*>(&all[i][v * kLanes]) = sum[i][v];
    }
  }
  for (Index i = 0; i < b.out_rows; ++i) {
    std::memcpy(b.out + i * b.out_pitch, all[i], b.out_cols * sizeof(T));
  }
}

// A kernel, and the size of its block of outputs.
template <typename T>
struct Kernel {
  void (*run)(const Block<T>&);
  int rows, cols;
};

// Kernels with 1, 2 and 3 vectors for one instruction set; rows fill the registers.
template <typename T>
using Kernels = std::array<Kernel<T>, 3>;

#if defined(__x86_64__)
template <typename T, int kRows, int kVectors>
[[gnu::target("avx2,fma")]] void correlate_avx2(const Block<T>& block) {
  correlate<T, 32, kRows, kVectors>(block);
}

template <typename T, int kRows, int kVectors>
[[gnu::target("avx512f")]] void correlate_avx512(const Block<T>& block) {
  correlate<T, 64, kRows, kVectors>(block);
}
#endif

template <typename T, int kRows, int kVectors>
void correlate_baseline(const Block<T>& block) {
  correlate<T, 16, kRows, kVectors>(block);
}

template <typename T>
Kernels<T> choose_kernels() {
  constexpr int kScalar = sizeof(T);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    return {{{correlate_avx512<T, 12, 1>, 12, 64 / kScalar},
             {correlate_avx512<T, 8, 2>, 8, 128 / kScalar},
             {correlate_avx512<T, 8, 3>, 8, 192 / kScalar}}};
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return {{{correlate_avx2<T, 8, 1>, 8, 32 / kScalar},
             {correlate_avx2<T, 6, 2>, 6, 64 / kScalar},
             {correlate_avx2<T, 4, 3>, 4, 96 / kScalar}}};
  }
#endif
  return {{{correlate_baseline<T, 6, 1>, 6, 16 / kScalar},
           {correlate_baseline<T, 4, 2>, 4, 32 / kScalar},
           {correlate_baseline<T, 4, 3>, 4, 48 / kScalar}}};
}

// Offsets in the workspace, in elements: a row of zeros, then a copy of a right matrix per thread.
struct CopyLayout {
  Index border;  // zeros on either side of a row
  Index pitch;
  Index zeros, copy, total;
};

template <typename T>
CopyLayout layout(const PlanRequest& request) {
  constexpr Index kLine = 64 / sizeof(T);
  const auto lines = [](Index n) { return (n + kLine - 1) / kLine * kLine; };
  const Problem& q = request.problem;
  CopyLayout at{};
  for (const Kernel<T>& kernel : choose_kernels<T>())
    at.border = std::max<Index>(at.border, kernel.cols);
  at.pitch = lines(q.right.cols + 2 * at.border);
  at.zeros = lines(q.left.cols);
  at.copy = at.pitch * q.right.rows;
  at.total = at.zeros + device::thread_count(request) * at.copy;
  return at;
}

template <typename T>
class RowStreamingPlan final : public Plan {
 public:
  explicit RowStreamingPlan(const PlanRequest& request)
      : problem_(request.problem),
        threads_(device::thread_count(request)),
        layout_(layout<T>(request)),
        kernels_(choose_kernels<T>()),
        workspace_(static_cast<T*>(request.workspace)) {
    std::fill_n(workspace_, layout_.total, T{0});
    // Tasks are whole pairs if this balances the threads, otherwise blocks of sy with a multiple of
    // every kernel's rows.
    const Index wanted = threads_ == 1 ? 1 : 8 * threads_;
    const Index parts = std::max<Index>(1, wanted / problem_.pairs());
    constexpr Index kCommonRows = 24;
    const Index rows = (problem_.out_rows() + parts - 1) / parts;
    task_rows_ =
        parts == 1 ? problem_.out_rows() : (rows + kCommonRows - 1) / kCommonRows * kCommonRows;
  }

  static std::size_t workspace_bytes(const PlanRequest& request) {
    return static_cast<std::size_t>(layout<T>(request).total) * sizeof(T);
  }

  void compute(const Call& call) override {
    const Index parts = (problem_.out_rows() + task_rows_ - 1) / task_rows_;
    const Index tasks = problem_.pairs() * parts;
    const int threads = static_cast<int>(std::min<Index>(threads_, tasks));
    if (threads == 1)
      return work(call, 0, parts,
                  [next = Index{0}, tasks]() mutable { return next < tasks ? next++ : -1; });
    Index shared = 0;
#pragma omp parallel num_threads(threads)
    work(call, omp_get_thread_num(), parts, [&shared, tasks] {
      Index task;
#pragma omp atomic capture
      task = shared++;
      return task < tasks ? task : -1;
    });
  }

 private:
  // The loop of one thread: takes tasks until none remain.
  template <typename Next>
  void work(const Call& call, int thread, Index parts, Next next) const {
    const Problem& q = problem_;
    T* copy = workspace_ + layout_.zeros + thread * layout_.copy + layout_.border;
    Index copied = -1;
    for (Index task = next(); task >= 0; task = next()) {
      const Index p = task / parts, first = task % parts * task_rows_;
      const auto [left, right] = q.pair(p);
      if (right != copied) {
        const T* from = call.rights<T>() + right * q.right.size();
        for (Index y = 0; y < q.right.rows; ++y) {
          std::memcpy(copy + y * layout_.pitch, from + y * q.right.cols, q.right.cols * sizeof(T));
        }
        copied = right;
      }
      correlate_rows(call.lefts<T>() + left * q.left.size(), copy,
                     call.outs<T>() + p * q.out_size(), first,
                     std::min(q.out_rows(), first + task_rows_));
    }
  }

  // Computes output rows first .. end - 1 of one pair.
  void correlate_rows(const T* left, const T* right, T* out, Index first, Index end) const {
    const Problem& q = problem_;
    for (Index column = 0; column < q.out_cols();) {
      const Index left_over = q.out_cols() - column;
      const Kernel<T>* kernel = &kernels_[0];
      while (kernel != &kernels_[2] && left_over > kernel->cols) ++kernel;
      const Index sx = q.window.sx.first + column;
      Block<T> block{left,         q.left.rows,   q.left.cols, right,
                     q.right.rows, layout_.pitch, workspace_};
      block.sx = sx;
      block.first_x = std::max<Index>(0, -(sx + kernel->cols - 1));
      block.end_x = std::min(q.left.cols, q.right.cols - sx);
      block.out_pitch = q.out_cols();
      block.out_cols = std::min<Index>(kernel->cols, left_over);
      for (Index row = first; row < end; row += kernel->rows) {
        block.sy = q.window.sy.first + row;
        block.out = out + row * q.out_cols() + column;
        block.out_rows = std::min<Index>(kernel->rows, end - row);
        kernel->run(block);
      }
      column += kernel->cols;
    }
  }

  Problem problem_;
  int threads_;
  CopyLayout layout_;
  Kernels<T> kernels_;
  T* workspace_;
  Index task_rows_;
};

// One pair with boundary circular, as a plain problem with a continued right matrix.
class CircularPair final : public Plan {
 public:
  explicit CircularPair(const PlanRequest& request)
      : circular_(request.problem), continued_(static_cast<double*>(request.workspace)) {
    PlanRequest plain = plain_request(request);
    plain.workspace = continued_ + continued_doubles(plain.problem);
    plain_ = std::make_unique<RowStreamingPlan<double>>(plain);
    right_ = plain.problem.right;
  }

  static std::size_t workspace_bytes(const PlanRequest& request) {
    const PlanRequest plain = plain_request(request);
    return continued_doubles(plain.problem) * sizeof(double) +
           RowStreamingPlan<double>::workspace_bytes(plain);
  }

  void compute(const Call& call) override {
    const double* from = call.rights<double>();
    const Index rows = circular_.right.rows, cols = circular_.right.cols;
    for (Index y = 0; y < right_.rows; ++y) {
      const double* row = from + wrapped(y, circular_.window.sy.first, rows) * cols;
      for (Index x = 0; x < right_.cols; ++x) {
        continued_[y * right_.cols + x] = row[wrapped(x, circular_.window.sx.first, cols)];
      }
    }
    Call plain = call;
    plain.right = continued_;
    plain_->compute(plain);
  }

 private:
  // Element (0, 0) of the continued matrix is the right element that is multiplied with element (0,
  // 0) of the left matrix at the first shift. This shift becomes shift 0.
  static PlanRequest plain_request(PlanRequest request) {
    Problem& q = request.problem;
    q.fields = {};
    q.window = {Window::Kind::explicit_ranges, {0, q.out_rows() - 1}, {0, q.out_cols() - 1}};
    q.right = {q.left.rows + q.out_rows() - 1, q.left.cols + q.out_cols() - 1};
    return request;
  }
  static Index continued_doubles(const Problem& plain) {
    return (plain.right.size() + 31) / 32 * 32;  // 256 bytes
  }

  Problem circular_;
  double* continued_;
  Shape right_;
  std::unique_ptr<Plan> plain_;
};

using Fields = FieldsVariant<RowStreamingPlan, CircularPair, false>;

XCORR_VARIANT({
    .summary = "Innermost loop over consecutive sx: SIMD, register blocks, OpenMP",
    .parent = "cpu_definition",
    .source = "ISS autocorrelation, section 4.2",
    .precisions = {Precision::fp32, Precision::fp64},
    .axes = {{"threads", {"1", "all"}}},
    .boundaries = {Boundary::zero, Boundary::circular},
    .scores = {ScoreKind::product, ScoreKind::covariance, ScoreKind::ncc, ScoreKind::zncc},
    .masks = true,
    .views = {Views::dense, Views::windows, Views::channels},
    .workspace_bytes = Fields::workspace_bytes,
    .plan = Fields::plan,
});

}  // namespace
}  // namespace xcorr::cpu
