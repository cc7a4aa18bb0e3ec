// Templates against a signal as one matrix product in float64: the reference row of the time-series
// paper. The signal's Hankel matrix has one row per shift: the C x T samples under the template at
// this shift. The outputs are the templates times the transpose of this matrix. Derived from
// cpu_definition by storing every sample T times.
//
// The matrix is built in chunks of kChunkBytes (phase `build`) and multiplied by cblas_dgemm of
// OpenBLAS (phase `rest`). The paper's time excludes building. OpenBLAS is loaded when the variant
// is first requested; where it is not installed, the variant is not_supported. It uses all cores,
// unless OPENBLAS_NUM_THREADS is set. Limits: sizes in BLAS have 32 bits.
#include <dlfcn.h>
#include <omp.h>

#include <algorithm>
#include <string>

#include "algorithms/time_series/series_shape.hpp"
#include "harness/variant.hpp"

namespace xcorr::time_series {
namespace {

constexpr Index kChunkBytes = Index{64} << 20;

// The only BLAS function that is used, declared as in cblas.h.
class Blas {
 public:
  using Gemm = void (*)(int order, int transpose_a, int transpose_b, int rows, int cols, int depth,
                        double alpha, const double* a, int a_pitch, const double* b, int b_pitch,
                        double beta, double* c, int c_pitch);
  static constexpr int kRowMajor = 101, kAsIs = 111, kTransposed = 112;

  // One per process: a BLAS has its own threads.
  static const Blas& instance() {
    static const Blas blas;
    return blas;
  }

  Gemm gemm = nullptr;
  std::string problem;  // why OpenBLAS is missing

 private:
  Blas() {
    void* const library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library) gemm = reinterpret_cast<Gemm>(dlsym(library, "cblas_dgemm"));
    if (gemm) return;
    const char* const cause = dlerror();
    problem = std::string("OpenBLAS cannot be loaded (") + (cause ? cause : "no cblas_dgemm") +
              "); Debian and Ubuntu have it as libopenblas0-pthread";
  }
};

Index chunk_shifts(const SeriesShape& s) { return hankel_rows(s, kChunkBytes, sizeof(double)); }

class DgemmPlan final : public Plan {
 public:
  explicit DgemmPlan(const PlanRequest& request)
      : series_(request.problem),
        chunk_(chunk_shifts(series_)),
        matrix_(static_cast<double*>(request.workspace)) {}

  void compute(const Call& call) override {
    const SeriesShape& s = series_;
    const int depth = static_cast<int>(s.channels * s.length);
    for (Index first = 0; first < s.shifts; first += chunk_) {
      const Index count = std::min(chunk_, s.shifts - first);
      call.phase("build");
      build(call.rights<double>() + s.first + first, count);
      call.phase("rest");
      Blas::instance().gemm(Blas::kRowMajor, Blas::kAsIs, Blas::kTransposed,
                            static_cast<int>(s.templates), static_cast<int>(count), depth, 1.0,
                            call.lefts<double>(), depth, matrix_, depth, 0.0,
                            call.outs<double>() + first, static_cast<int>(s.shifts));
    }
  }

 private:
  // Row i of the matrix: `length` samples of each channel from sample i on.
  void build(const double* signal, Index count) const {
    const SeriesShape& s = series_;
    const int threads = omp_get_max_threads();
#pragma omp parallel for num_threads(threads) schedule(static)
    for (Index i = 0; i < count; ++i) {
      double* const row = matrix_ + i * s.channels * s.length;
      for (Index c = 0; c < s.channels; ++c) {
        std::copy_n(signal + c * s.pitch + i, s.length, row + c * s.length);
      }
    }
  }

  SeriesShape series_;
  Index chunk_;
  double* matrix_;
};

Support supports(const PlanRequest& request) {
  if (const Support fit = supports_blas(request.problem); !fit) return fit;
  const std::string& problem = Blas::instance().problem;
  return problem.empty() ? yes() : no(problem);
}

std::size_t workspace_bytes(const PlanRequest& request) {
  const SeriesShape s(request.problem);
  return static_cast<std::size_t>(chunk_shifts(s) * s.channels * s.length) * sizeof(double);
}

XCORR_VARIANT({
    .summary = "The explicit Hankel matrix times the templates by OpenBLAS in float64, built in "
               "every call",
    .parent = "cpu_definition",
    .source = "beyond the paper",
    .precisions = {Precision::fp64},
    .forms = {Form::n_to_m},
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .plan = make_plan<DgemmPlan>,
});

}  // namespace
}  // namespace xcorr::time_series
