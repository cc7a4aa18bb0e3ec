// Correlation by the transform theorem (paper section 3.1) on FFTW:
//
//   out = inverse(conj(forward(L)) * forward(R)),
//
// where both matrices are padded with zeros to P x Q, sizes 2^a 3^b 5^c 7^d, so that the circular
// correlation does not wrap into the window (blocks/padding.hpp). Derived from cpu_definition. Left
// spectra are used for all their rights, and in n-to-m right spectra for all lefts.
//
// The 2D transform consists of 1D transforms. Only those with nonzero input, or on the way back
// with output in the window, are computed. A spectrum is stored in panels of kWidth columns, row
// after row, so that the transforms of its columns read a few contiguous KiB. Rows are copied to
// and from the panels in blocks of kRowBlock.
//
// Planning: a plan for many calls is FFTW_MEASURE and takes seconds at most. The harness plans
// without wisdom, so that the time is that of a first plan; a session plans with the wisdom on disk
// (blocks/fftw_wisdom.hpp). A plan for a single call is FFTW_ESTIMATE. With threads=all, threads
// share out matrices if there are many, else rows and panels of one matrix.
// Fields: all, pair by pair in float64 (fields_by_correlation.hpp). zncc and ncc need one
// correlation and integral images, with masks six correlations. Boundary `circular` is a transform
// of the size of the matrices, with one thread; score `phase` changes the magnitudes of its
// spectrum. Plans of fields are FFTW_ESTIMATE, so that all plans of a problem give the same bits.
// Workspace: in n-to-m, chunks of kSpectraBytes of spectra (if they do not all fit, rights are
// transformed again for each chunk of lefts); in other forms chunks of kChunkBytes.
// Limits: a single row is transformed by one thread; a short left matrix with a very long right
// matrix is padded to the length of the right one (no overlap-save).
// Measured (AMD EPYC, Zen 3, one thread, one pair of 256 x 256, fp32): 1.3 ms.
#include <omp.h>

#include <algorithm>
#include <bit>
#include <complex>
#include <cstdint>
#include <cstring>

#include "algorithms/blocks/conjugate_product.hpp"
#include "algorithms/blocks/fftw.hpp"
#include "algorithms/blocks/padding.hpp"
#include "algorithms/blocks/precision.hpp"
#include "algorithms/cpu/circular_transform.hpp"
#include "algorithms/cpu/fields_by_correlation.hpp"
#include "harness/variant.hpp"

namespace xcorr::cpu {
namespace {

constexpr Index kWidth = 4;     // columns of a panel: 32 bytes in float, an AVX register
constexpr Index kRowBlock = 8;  // rows per copy between a matrix and the panels
constexpr Index kSpectraBytes = Index{256} << 20;
constexpr Index kChunkBytes = Index{8} << 20;
constexpr Index kSpread = 4;  // with fewer items per thread, threads share an item

// FFTW's column transforms of other sizes take about 1.5 times as long per element as powers of two
// (n > 16).
Index column_size(Index n) {
  const Index smooth = device::smooth_size(n);
  const Index power = static_cast<Index>(std::bit_ceil(static_cast<std::uint64_t>(n)));
  return n > 16 && 4 * power <= 5 * smooth ? power : smooth;
}

// Sizes, in elements of the type T or std::complex<T> as named.
struct PanelLayout {
  Index rows, cols;     // P, Q
  Index panels;         // of kWidth columns of the Q / 2 + 1
  Index panel_pitch;    // complex, from panel to panel: not a power of two, which would crowd one
                        // cache set
  Index spectrum;       // complex
  Index lefts, rights;  // spectra kept at a time
  Index products;  // n-to-m: spectra of pairs kept at a time; else they replace those of the rights
  Index images;    // products whose columns are back, their rows not yet
  Index column;    // complex elements of a thread's panel
  Index row;       // real elements of a thread's padded row
  Index block;     // complex elements of a thread's kRowBlock rows
  Index bytes;
};

PanelLayout layout(const PlanRequest& request, Index scalar_bytes) {
  const Problem& q = request.problem;
  const Index line = 64 / scalar_bytes;
  const Index threads = device::thread_count(request);
  PanelLayout at{};
  at.rows = column_size(device::padded_size(q.left.rows, q.right.rows, q.window.sy));
  at.cols = device::smooth_size(device::padded_size(q.left.cols, q.right.cols, q.window.sx));
  at.panels = (at.cols / 2 + 1 + kWidth - 1) / kWidth;
  at.panel_pitch = (at.rows * kWidth + line - 1) / line * line + line;
  at.spectrum = at.panels * at.panel_pitch;
  const Index spectrum_bytes = at.spectrum * 2 * scalar_bytes;
  const Index chunk = std::clamp<Index>(kChunkBytes / spectrum_bytes, 2 * threads, 1 << 16);
  if (q.form == Form::n_to_m) {
    const Index most = std::max<Index>(2, kSpectraBytes / spectrum_bytes);
    at.lefts = std::min(q.lefts, std::max(most / 2, most - q.rights));
    at.rights = std::min(q.rights, most - at.lefts);
    at.products = std::min(at.lefts * at.rights, chunk);
  } else {
    at.rights = std::min(q.rights, chunk);
    const Index share = q.rights / q.lefts;  // rights of a left
    at.lefts = std::min(q.lefts, (at.rights + share - 2) / share + 1);
  }
  at.images = std::min(at.products > 0 ? at.products : at.rights, kSpread * threads);
  at.column = at.panel_pitch;
  at.row = (at.cols + line - 1) / line * line;
  at.block = (kRowBlock * at.panels * kWidth + line - 1) / line * line;
  at.bytes = (at.lefts + at.rights + at.products + at.images) * spectrum_bytes +
             threads * (2 * at.column + 2 * at.block + at.row) * scalar_bytes;
  return at;
}

template <typename T>
class FftPlan final : public Plan {
  using Complex = std::complex<T>;
  using Library = device::Fftw<T>;

 public:
  explicit FftPlan(const PlanRequest& request)
      : problem_(request.problem),
        threads_(device::thread_count(request)),
        at_(layout(request, sizeof(T))) {
    lefts_ = static_cast<Complex*>(request.workspace);
    rights_ = lefts_ + at_.lefts * at_.spectrum;
    products_ = at_.products > 0 ? rights_ + at_.rights * at_.spectrum : rights_;
    images_ = rights_ + (at_.rights + at_.products) * at_.spectrum;
    columns_ = images_ + at_.images * at_.spectrum;
    blocks_ = columns_ + threads_ * at_.column;
    rows_ = reinterpret_cast<T*>(blocks_ + threads_ * at_.block);

    const device::Planner<T> planner(request.planning);
    const int rows = static_cast<int>(at_.rows), cols = static_cast<int>(at_.cols);
    const int width = static_cast<int>(kWidth);
    row_forward_.reset(planner.r2c(cols, rows_, raw(blocks_), device::kRowEffort));
    row_inverse_.reset(planner.c2r(cols, raw(blocks_), rows_, device::kRowEffort));
    const auto columns = [&](int sign) {
      return planner.columns(rows, width, raw(columns_), raw(lefts_), sign);
    };
    column_forward_.reset(columns(FFTW_FORWARD));
    column_inverse_.reset(columns(FFTW_BACKWARD));
    std::memset(request.workspace, 0, at_.bytes);  // padding is zero, and nothing ever writes it
  }

  static std::size_t workspace_bytes(const PlanRequest& request) {
    return static_cast<std::size_t>(layout(request, sizeof(T)).bytes);
  }

  void compute(const Call& call) override {
    const Problem& q = problem_;
    if (q.form == Form::n_to_m) {
      for (Index l = 0; l < q.lefts; l += at_.lefts) {
        const Index lefts = std::min(at_.lefts, q.lefts - l);
        call.phase("forward");
        forward(call.lefts<T>(), q.left, l, lefts, lefts_);
        for (Index r = 0; r < q.rights; r += at_.rights) {
          const Index rights = std::min(at_.rights, q.rights - r);
          call.phase("forward");
          if (l == 0 || at_.rights < q.rights) {
            forward(call.rights<T>(), q.right, r, rights, rights_);
          }
          for (Index k = 0; k < lefts * rights; k += at_.products) {
            multiply_and_invert(call, std::min(at_.products, lefts * rights - k), [=, &q](Index i) {
              const Index left = (k + i) / rights, right = (k + i) % rights;
              return Job{left, right, (l + left) * q.rights + r + right};
            });
          }
        }
      }
      return;
    }
    for (Index r = 0; r < q.rights; r += at_.rights) {
      const Index rights = std::min(at_.rights, q.rights - r);
      const Index l = q.pair(r).left, lefts = q.pair(r + rights - 1).left + 1 - l;
      call.phase("forward");
      if (r == 0 || q.lefts > 1) forward(call.lefts<T>(), q.left, l, lefts, lefts_);
      forward(call.rights<T>(), q.right, r, rights, rights_);
      multiply_and_invert(call, rights,
                          [=, &q](Index i) { return Job{q.pair(r + i).left - l, i, r + i}; });
    }
  }

 private:
  // Indices of spectra in the buffers; index of the pair in the problem.
  struct Job {
    Index left, right, pair;
  };

  static typename Library::Complex raw(Complex* p) {
    return reinterpret_cast<typename Library::Complex>(p);
  }
  static T* real(Complex* p) { return reinterpret_cast<T*>(p); }
  Complex* panel(Complex* spectrum, Index k) const { return spectrum + k * at_.panel_pitch; }
  bool whole_items(Index items) const { return threads_ == 1 || items >= kSpread * threads_; }

  // Two steps of several parts for each item. If there are enough items, one thread processes an
  // item, which stays in its cache; otherwise the parts of all items are spread over the threads.
  template <typename First, typename Second>
  void each(Index items, Index first_parts, const First& first, Index second_parts,
            const Second& second) const {
    if (whole_items(items)) {
#pragma omp parallel for num_threads(threads_) schedule(dynamic) if (threads_ > 1)
      for (Index i = 0; i < items; ++i) {
        for (Index part = 0; part < first_parts; ++part) first(i, part);
        for (Index part = 0; part < second_parts; ++part) second(i, part);
      }
      return;
    }
#pragma omp parallel num_threads(threads_)
    {
#pragma omp for schedule(dynamic)
      for (Index k = 0; k < items * first_parts; ++k) first(k / first_parts, k % first_parts);
#pragma omp for schedule(dynamic)
      for (Index k = 0; k < items * second_parts; ++k) second(k / second_parts, k % second_parts);
    }
  }

  // Computes the spectra of matrices first .. first + count - 1.
  void forward(const T* matrices, Shape shape, Index first, Index count, Complex* spectra) const {
    each(
        count, (shape.rows + kRowBlock - 1) / kRowBlock,
        [&](Index i, Index part) {
          forward_rows(matrices + (first + i) * shape.size(), shape, part * kRowBlock,
                       spectra + i * at_.spectrum);
        },
        at_.panels,
        [&](Index i, Index k) {
          Complex* columns = panel(spectra + i * at_.spectrum, k);
          Complex* padded = columns_ + omp_get_thread_num() * at_.column;
          std::copy_n(columns, shape.rows * kWidth, padded);
          std::fill(padded + shape.rows * kWidth, padded + at_.rows * kWidth, Complex{});
          Library::dft(column_forward_.get(), raw(padded), raw(columns));
        });
  }

  void forward_rows(const T* matrix, Shape shape, Index first, Complex* spectrum) const {
    T* row = rows_ + omp_get_thread_num() * at_.row;
    Complex* block = blocks_ + omp_get_thread_num() * at_.block;
    const Index count = std::min(kRowBlock, shape.rows - first), pitch = at_.panels * kWidth;
    std::fill(row + shape.cols, row + at_.cols, T{0});
    for (Index y = 0; y < count; ++y) {
      std::memcpy(row, matrix + (first + y) * shape.cols, shape.cols * sizeof(T));
      Library::r2c(row_forward_.get(), row, raw(block + y * pitch));
    }
    for (Index k = 0; k < at_.panels; ++k) {
      Complex* to = panel(spectrum, k) + first * kWidth;
      for (Index y = 0; y < count; ++y) {
        std::memcpy(to + y * kWidth, block + y * pitch + k * kWidth, kWidth * sizeof(Complex));
      }
    }
  }

  template <typename JobOf>
  void multiply_and_invert(const Call& call, Index count, const JobOf& job) const {
    call.phase("hadamard");
    const Index panels = at_.panels;
#pragma omp parallel for num_threads(threads_) schedule(dynamic, 16) if (threads_ > 1)
    for (Index k = 0; k < count * panels; ++k) {
      const auto [left, right, pair] = job(k / panels);
      multiply_(real(panel(lefts_ + left * at_.spectrum, k % panels)),
                real(panel(rights_ + right * at_.spectrum, k % panels)),
                real(panel(products_ + k / panels * at_.spectrum, k % panels)),
                2 * at_.rows * kWidth);
    }
    call.phase("inverse");
    const auto image = [&](Index i) {
      return images_ + (whole_items(count) ? omp_get_thread_num() : i) * at_.spectrum;
    };
    each(
        count, panels,
        [&](Index i, Index k) {
          Library::dft(column_inverse_.get(), raw(panel(products_ + i * at_.spectrum, k)),
                       raw(panel(image(i), k)));
        },
        (problem_.out_rows() + kRowBlock - 1) / kRowBlock,
        [&](Index i, Index part) {
          inverse_rows(image(i), part * kRowBlock,
                       call.outs<T>() + job(i).pair * problem_.out_size());
        });
  }

  // Writes the output rows from `first` on of one pair: row (shift mod P), element (shift mod Q).
  void inverse_rows(Complex* spectrum, Index first, T* out) const {
    T* row = rows_ + omp_get_thread_num() * at_.row;
    Complex* block = blocks_ + omp_get_thread_num() * at_.block;
    const Shifts sy = problem_.window.sy, sx = problem_.window.sx;
    const Index count = std::min(kRowBlock, sy.count() - first), pitch = at_.panels * kWidth;
    const T scale = T{1} / static_cast<T>(at_.rows * at_.cols);
    for (Index k = 0; k < at_.panels; ++k) {
      for (Index y = 0; y < count; ++y) {
        const Index shift = sy.first + first + y, from = shift < 0 ? shift + at_.rows : shift;
        std::memcpy(block + y * pitch + k * kWidth, panel(spectrum, k) + from * kWidth,
                    kWidth * sizeof(Complex));
      }
    }
    const Index negative = std::clamp<Index>(-sx.first, 0, sx.count());
    for (Index y = 0; y < count; ++y) {
      Library::c2r(row_inverse_.get(), raw(block + y * pitch), row);
      T* to = out + (first + y) * sx.count();
      const T* wrapped = row + at_.cols + sx.first;
      for (Index x = 0; x < negative; ++x) to[x] = scale * wrapped[x];
      const T* plain = row + sx.first;
      for (Index x = negative; x < sx.count(); ++x) to[x] = scale * plain[x];
    }
  }

  Problem problem_;
  int threads_;
  PanelLayout at_;
  void (*multiply_)(const T*, const T*, T*, Index) = device::choose_multiply<T>();
  Complex *lefts_, *rights_, *products_, *images_, *columns_, *blocks_;
  T* rows_;
  device::OwnedPlan<T> row_forward_, row_inverse_, column_forward_, column_inverse_;
};

using Fields = FieldsVariant<FftPlan, CircularTransform, true>;

XCORR_VARIANT({
    .summary = "Transform theorem on FFTW: smooth sizes, only rows that count, spectra in panels "
               "and reused",
    .parent = "cpu_definition",
    .source = "section 3.1",
    .algorithm_class = AlgorithmClass::fft,
    .precisions = {Precision::fp32, Precision::fp64},
    .axes = {{"threads", {"1", "all"}}},
    .boundaries = {Boundary::zero, Boundary::circular},
    .scores = {ScoreKind::product, ScoreKind::covariance, ScoreKind::ncc, ScoreKind::zncc,
               ScoreKind::phase},
    .masks = true,
    .views = {Views::dense, Views::windows, Views::channels},
    .workspace_bytes = Fields::workspace_bytes,
    .plan = Fields::plan,
});

}  // namespace
}  // namespace xcorr::cpu
