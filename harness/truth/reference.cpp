#include "harness/truth/reference.hpp"

#include <fftw3.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <new>

namespace xcorr {
namespace {

// Columns of outputs that are computed together: their part of a row stays in the first-level
// cache.
constexpr Index kBlockCols = 1024;

// The columns [first_col, first_col + kBlockCols) of one pair. The innermost loop runs over
// consecutive sx, so that the compiler can use SIMD.
void correlate_block(const Problem& problem, const double* left, const double* right,
                     Index first_col, double* out) {
  const Shape l = problem.left, r = problem.right;
  const Shifts all = problem.window.sx;
  const Shifts sx{all.first + first_col,
                  std::min(all.last, all.first + first_col + kBlockCols - 1)};
  for (Index row = 0; row < problem.out_rows(); ++row) {
    const Index sy = problem.window.sy.first + row;
    const Overlap ys = overlap(l.rows, r.rows, sy);
    double* out_row = out + row * problem.out_cols() + first_col;
    std::fill(out_row, out_row + sx.count(), 0.0);
    for (Index y = ys.first; y < ys.first + ys.count; ++y) {
      const double* right_row = right + (y + sy) * r.cols;
      for (Index x = 0; x < l.cols; ++x) {
        const double value = left[y * l.cols + x];
        const Index first = std::max(sx.first, -x), last = std::min(sx.last, r.cols - 1 - x);
        for (Index s = first; s <= last; ++s) out_row[s - sx.first] += value * right_row[x + s];
      }
    }
  }
}

struct FftwFree {
  void operator()(void* p) const { fftw_free(p); }
};
template <typename T>
using FftwArray = std::unique_ptr<T[], FftwFree>;
template <typename T>
FftwArray<T> fftw_array(Index count) {
  void* memory = fftw_malloc(sizeof(T) * static_cast<std::size_t>(count));
  if (!memory) throw std::bad_alloc();
  return FftwArray<T>(static_cast<T*>(memory));
}

// The passes of a transform of this length. A convolution takes three transforms of up to four times
// the length.
double log2_circular(Index length) {
  const double passes = std::log2(static_cast<double>(length));
  return largest_prime_factor(length) <= kLargestDirectPrime ? passes : 3.0 * (passes + 2.0);
}

}  // namespace

Index largest_prime_factor(Index n) {
  Index largest = 1;
  for (Index p = 2; p * p <= n; ++p) {
    for (; n % p == 0; n /= p) largest = p;
  }
  return std::max(n, largest);
}

Index reference_length(Index n) {
  for (Index candidate = n;; ++candidate) {
    Index rest = candidate;
    for (const Index prime : {2, 3, 5, 7}) {
      while (rest % prime == 0) rest /= prime;
    }
    if (rest == 1) return candidate;
  }
}

void correlate_definition(const Problem& problem, const double* left, const double* right,
                          Index first, Index count, double* out) {
  const Index blocks = (problem.out_cols() + kBlockCols - 1) / kBlockCols;
#pragma omp parallel for schedule(dynamic)
  for (Index task = 0; task < count * blocks; ++task) {
    const Index i = task / blocks;
    const Pair pair = problem.pair(first + i);
    correlate_block(problem, left + pair.left * problem.left.size(),
                    right + pair.right * problem.right.size(), task % blocks * kBlockCols,
                    out + i * problem.out_size());
  }
}

double correlate_element(const Problem& problem, const double* left, const double* right,
                         Index pair, Index out_row, Index out_col) {
  const auto [l, r] = problem.pair(pair);
  const double* lm = left + l * problem.left.size();
  const double* rm = right + r * problem.right.size();
  const Index sy = problem.window.sy.first + out_row, sx = problem.window.sx.first + out_col;
  const Overlap ys = overlap(problem.left.rows, problem.right.rows, sy);
  const Overlap xs = overlap(problem.left.cols, problem.right.cols, sx);
  double sum = 0;
  for (Index y = ys.first; y < ys.first + ys.count; ++y) {
    for (Index x = xs.first; x < xs.first + xs.count; ++x) {
      sum += lm[y * problem.left.cols + x] * rm[(y + sy) * problem.right.cols + x + sx];
    }
  }
  return sum;
}

struct FftReference::State {
  Problem problem;
  const double* left;
  const double* right;
  Index rows, cols, bins;
  fftw_plan forward, inverse;
  FftwArray<std::complex<double>> right_spectra;  // n-to-m only: every left uses each right

  struct Scratch {
    FftwArray<double> real;
    FftwArray<std::complex<double>> left, product;
  };
  Scratch scratch() const {
    return {fftw_array<double>(rows * cols), fftw_array<std::complex<double>>(rows * bins),
            fftw_array<std::complex<double>>(rows * bins)};
  }

  void spectrum(const double* matrix, Shape shape, double* real, std::complex<double>* out) const {
    std::fill(real, real + rows * cols, 0.0);
    for (Index y = 0; y < shape.rows; ++y) {
      std::copy_n(matrix + y * shape.cols, shape.cols, real + y * cols);
    }
    fftw_execute_dft_r2c(forward, real, reinterpret_cast<fftw_complex*>(out));
  }

  void pair(Index p, Index& left_index, Scratch& s, double* out) const {
    const Pair pair = problem.pair(p);
    if (pair.left != left_index) {
      spectrum(left + pair.left * problem.left.size(), problem.left, s.real.get(), s.left.get());
      left_index = pair.left;
    }
    const std::complex<double>* r = s.product.get();
    if (right_spectra) {
      r = right_spectra.get() + pair.right * rows * bins;
    } else {
      spectrum(right + pair.right * problem.right.size(), problem.right, s.real.get(),
               s.product.get());
    }
    for (Index i = 0; i < rows * bins; ++i) s.product[i] = std::conj(s.left[i]) * r[i];
    fftw_execute_dft_c2r(inverse, reinterpret_cast<fftw_complex*>(s.product.get()), s.real.get());
    const double scale = 1.0 / static_cast<double>(rows * cols);
    for (Index row = 0; row < problem.out_rows(); ++row) {
      const Index sy = problem.window.sy.first + row;
      const double* source = s.real.get() + (sy < 0 ? sy + rows : sy) * cols;
      for (Index col = 0; col < problem.out_cols(); ++col) {
        const Index sx = problem.window.sx.first + col;
        *out++ = scale * source[sx < 0 ? sx + cols : sx];
      }
    }
  }
};

std::mutex& fftw_planner() {
  static std::mutex planner;
  return planner;
}

FftReference::FftReference(const Problem& problem, const double* left, const double* right)
    : state_(new State{problem, left, right, 0, 0, 0, nullptr, nullptr, nullptr}) {
  State& s = *state_;
  const bool wraps = problem.fields.boundary == Boundary::circular;
  s.rows = wraps ? problem.left.rows : reference_length(problem.left.rows + problem.right.rows - 1);
  s.cols = wraps ? problem.left.cols : reference_length(problem.left.cols + problem.right.cols - 1);
  s.bins = s.cols / 2 + 1;
  State::Scratch scratch = s.scratch();
  std::unique_lock planning(fftw_planner());
  // A variant may have changed the thread count of the planner.
  static const int initialised = fftw_init_threads();
  (void)initialised;
  fftw_plan_with_nthreads(1);
  auto* spectrum = reinterpret_cast<fftw_complex*>(scratch.product.get());
  s.forward = fftw_plan_dft_r2c_2d(static_cast<int>(s.rows), static_cast<int>(s.cols),
                                   scratch.real.get(), spectrum, FFTW_ESTIMATE);
  s.inverse = fftw_plan_dft_c2r_2d(static_cast<int>(s.rows), static_cast<int>(s.cols), spectrum,
                                   scratch.real.get(), FFTW_ESTIMATE);
  planning.unlock();
  if (problem.form != Form::n_to_m) return;
  s.right_spectra = fftw_array<std::complex<double>>(problem.rights * s.rows * s.bins);
#pragma omp parallel
  {
    const FftwArray<double> real = fftw_array<double>(s.rows * s.cols);
#pragma omp for
    for (Index r = 0; r < problem.rights; ++r) {
      s.spectrum(right + r * problem.right.size(), problem.right, real.get(),
                 s.right_spectra.get() + r * s.rows * s.bins);
    }
  }
}

FftReference::FftReference(FftReference&&) noexcept = default;

FftReference::~FftReference() {
  if (!state_) return;
  const std::lock_guard planning(fftw_planner());
  fftw_destroy_plan(state_->forward);
  fftw_destroy_plan(state_->inverse);
}

void FftReference::correlate(Index first, Index count, double* out) const {
  // Each thread has arrays as large as a transform.
  const int threads = static_cast<int>(std::min<Index>(count, omp_get_max_threads()));
#pragma omp parallel num_threads(threads)
  {
    State::Scratch scratch = state_->scratch();
    Index left_index = -1;
#pragma omp for schedule(static)
    for (Index i = 0; i < count; ++i) {
      state_->pair(first + i, left_index, scratch, out + i * state_->problem.out_size());
    }
  }
}

double log2_transform_points(const Problem& problem) {
  if (problem.fields.boundary == Boundary::circular) {
    return std::max(1.0, log2_circular(problem.left.rows) + log2_circular(problem.left.cols));
  }
  const double rows = static_cast<double>(problem.left.rows + problem.right.rows - 1);
  const double cols = static_cast<double>(problem.left.cols + problem.right.cols - 1);
  return std::max(1.0, std::log2(rows * cols));
}

}  // namespace xcorr
