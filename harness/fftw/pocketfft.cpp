// Transforms by pocketfft with the names and meanings of FFTW. Planning times nothing and there is
// no wisdom. A real transform in place has no plan (a null pointer): this project asks for none.
#define POCKETFFT_NO_MULTITHREADING
#define POCKETFFT_CACHE_SIZE 16  // lengths whose twiddle factors are kept
#include <pocketfft_hdronly.h>

#include <complex>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>

#include "harness/fftw/functions.hpp"

namespace xcorr::transforms {
namespace {

// Arrays of a transform. Strides are in bytes, for the input and the output.
struct Layout {
  pocketfft::shape_t shape, axes;
  pocketfft::stride_t in, out;
  bool forward;
};

template <typename T>
struct Pocketfft {
  using Plan = std::conditional_t<std::is_same_v<T, float>, fftwf_plan, fftw_plan>;
  using Complex = std::conditional_t<std::is_same_v<T, float>, fftwf_complex, fftw_complex>;
  static constexpr std::ptrdiff_t kReal = sizeof(T), kComplex = sizeof(Complex);

  static Layout& layout(Plan plan) { return *reinterpret_cast<Layout*>(plan); }
  static std::complex<T>* complex(Complex* data) {
    return reinterpret_cast<std::complex<T>*>(data);
  }
  static Plan plan(Layout layout) noexcept {
    return reinterpret_cast<Plan>(new (std::nothrow) Layout(std::move(layout)));
  }

  // Of rows x cols real numbers and rows x (cols / 2 + 1) complex ones.
  static Plan real_plan(int rows, int cols, const void* in, const void* out, bool forward) {
    if (rows < 1 || cols < 1 || in == out) return nullptr;
    const pocketfft::stride_t real = {cols * kReal, kReal};
    const pocketfft::stride_t spectrum = {(cols / 2 + 1) * kComplex, kComplex};
    const pocketfft::shape_t shape = {static_cast<std::size_t>(rows),
                                      static_cast<std::size_t>(cols)};
    const pocketfft::shape_t axes = rows == 1 ? pocketfft::shape_t{1} : pocketfft::shape_t{0, 1};
    return plan({shape, axes, forward ? real : spectrum, forward ? spectrum : real, forward});
  }

  static Plan plan_dft_r2c_1d(int n, T* in, Complex* out, unsigned) {
    return real_plan(1, n, in, out, true);
  }
  static Plan plan_dft_c2r_1d(int n, Complex* in, T* out, unsigned) {
    return real_plan(1, n, in, out, false);
  }
  static Plan plan_dft_r2c_2d(int rows, int cols, T* in, Complex* out, unsigned) {
    return real_plan(rows, cols, in, out, true);
  }
  static Plan plan_dft_c2r_2d(int rows, int cols, Complex* in, T* out, unsigned) {
    return real_plan(rows, cols, in, out, false);
  }
  static Plan plan_dft_2d(int rows, int cols, Complex*, Complex*, int sign, unsigned) {
    if (rows < 1 || cols < 1) return nullptr;
    const pocketfft::stride_t strides = {cols * kComplex, kComplex};
    return plan({{static_cast<std::size_t>(rows), static_cast<std::size_t>(cols)},
                 {0, 1},
                 strides,
                 strides,
                 sign == FFTW_FORWARD});
  }
  // One dimension; in place with equal strides only.
  static Plan plan_many_dft(int rank, const int* n, int howmany, Complex* in, const int*,
                            int istride, int idist, Complex* out, const int*, int ostride,
                            int odist, int sign, unsigned) {
    if (rank != 1 || *n < 1 || howmany < 1) return nullptr;
    if (in == out && (istride != ostride || idist != odist)) return nullptr;
    return plan({{static_cast<std::size_t>(howmany), static_cast<std::size_t>(*n)},
                 {1},
                 {idist * kComplex, istride * kComplex},
                 {odist * kComplex, ostride * kComplex},
                 sign == FFTW_FORWARD});
  }

  static void execute_dft_r2c(Plan plan, T* in, Complex* out) {
    const Layout& at = layout(plan);
    pocketfft::r2c(at.shape, at.in, at.out, at.axes, true, in, complex(out), T(1));
  }
  static void execute_dft_c2r(Plan plan, Complex* in, T* out) {
    const Layout& at = layout(plan);
    pocketfft::c2r(at.shape, at.in, at.out, at.axes, false, complex(in), out, T(1));
  }
  static void execute_dft(Plan plan, Complex* in, Complex* out) {
    const Layout& at = layout(plan);
    pocketfft::c2c(at.shape, at.in, at.out, at.axes, at.forward, complex(in), complex(out), T(1));
  }
  static void destroy_plan(Plan plan) { delete reinterpret_cast<Layout*>(plan); }

  static void* malloc(std::size_t bytes) { return std::aligned_alloc(64, (bytes + 63) / 64 * 64); }
  static void free(void* memory) { std::free(memory); }

  static void forget_wisdom() {}
  static int import_wisdom_from_string(const char*) { return 1; }
  static char* export_wisdom_to_string() { return strdup(""); }
  static void set_timelimit(double) {}
};

}  // namespace

template <typename T>
Functions<T> pocketfft_functions() {
  Functions<T> all;
#define XCORR_FFTW(result, name, parameters, arguments) all.name = Pocketfft<T>::name;
#include "harness/fftw/functions.inc"
#undef XCORR_FFTW
  return all;
}

template Functions<float> pocketfft_functions<float>();
template Functions<double> pocketfft_functions<double>();

}  // namespace xcorr::transforms
