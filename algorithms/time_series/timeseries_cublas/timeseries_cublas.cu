// timeseries_cpu_dgemm by cuBLAS, to which the time-series paper compares: the explicit Hankel
// matrix of the signal, built in chunks of shifts. Derived from overlap_wise by storing every
// sample T times. The time includes building, as the phase `build`; the product is the phase
// `rest`. (The paper's time excludes building.)
//
// Precision classes: fp32 (CUBLAS_COMPUTE_32F) and tf32 (CUBLAS_COMPUTE_32F_FAST_TF32). chunk_mib
// is the size of the matrix: 32 stays in the L2 cache, 1024 needs fewer launches.
// Limits: sizes in cuBLAS have 32 bits. Not emulated: library calls.
#include <cublas_v2.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "algorithms/time_series/series_shape.hpp"
#include "algorithms/time_series/timeseries_cublas/hankel.hpp"
#include "harness/variant.hpp"

namespace xcorr::time_series {
namespace {

// The workspace that NVIDIA recommends for compute capability 9.0.
constexpr std::size_t kBlasBytes = std::size_t{32} << 20;

void check_cublas(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(std::string(what) + ": cuBLAS error " + std::to_string(status));
}

class Blas {
 public:
  Blas() { check_cublas(cublasCreate(&handle_), "cublasCreate"); }
  ~Blas() { cublasDestroy(handle_); }
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;

  // cublasSetStream resets the workspace.
  void use(void* stream, void* memory) {
    check_cublas(cublasSetStream(handle_, static_cast<cudaStream_t>(stream)), "cublasSetStream");
    check_cublas(cublasSetWorkspace(handle_, memory, kBlasBytes), "cublasSetWorkspace");
  }
  cublasHandle_t get() const { return handle_; }

 private:
  cublasHandle_t handle_ = nullptr;
};

Index row_elements(const SeriesShape& s) { return s.channels * s.length; }

Index chunk_shifts(const PlanRequest& request) {
  return hankel_rows(SeriesShape(request.problem), Index{request.params.get_int("chunk_mib")} << 20,
                     sizeof(float));
}

class CublasPlan final : public Plan {
 public:
  explicit CublasPlan(const PlanRequest& request)
      : series_(request.problem),
        chunk_(chunk_shifts(request)),
        compute_type_(request.precision == Precision::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                           : CUBLAS_COMPUTE_32F),
        blas_memory_(request.workspace),
        matrix_(reinterpret_cast<float*>(static_cast<char*>(request.workspace) + kBlasBytes)) {}

  void compute(const Call& call) override {
    const SeriesShape& s = series_;
    const int depth = static_cast<int>(row_elements(s));
    blas_.use(call.stream, blas_memory_);
    for (Index first = 0; first < s.shifts; first += chunk_) {
      const Index count = std::min(chunk_, s.shifts - first);
      call.phase("build");
      enqueue_hankel(call.rights<float>() + s.first + first, s, count, matrix_, call.stream);
      call.phase("rest");
      // cuBLAS is column-major: its out is our [templates][shifts].
      const float one = 1, zero = 0;
      check_cublas(
          cublasGemmEx(blas_.get(), CUBLAS_OP_T, CUBLAS_OP_N, static_cast<int>(count),
                       static_cast<int>(s.templates), depth, &one, matrix_, CUDA_R_32F, depth,
                       call.left, CUDA_R_32F, depth, &zero, call.outs<float>() + first, CUDA_R_32F,
                       static_cast<int>(s.shifts), compute_type_, CUBLAS_GEMM_DEFAULT),
          "cublasGemmEx");
    }
  }

 private:
  SeriesShape series_;
  Index chunk_;
  cublasComputeType_t compute_type_;
  void* blas_memory_;
  float* matrix_;
  Blas blas_;
};

std::size_t workspace_bytes(const PlanRequest& request) {
  const SeriesShape s(request.problem);
  return kBlasBytes +
         static_cast<std::size_t>(chunk_shifts(request) * row_elements(s)) * sizeof(float);
}

XCORR_VARIANT({
    .summary = "The explicit Hankel matrix times the templates by cuBLAS, built in every call",
    .parent = "overlap_wise",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .precisions = {Precision::fp32, Precision::tf32},
    .forms = {Form::n_to_m},
    .axes = {{"chunk_mib", {"32", "1024"}}},
    .emulated = false,
    .supports = [](const PlanRequest& request) { return supports_blas(request.problem); },
    .workspace_bytes = workspace_bytes,
    .plan = make_plan<CublasPlan>,
});

}  // namespace
}  // namespace xcorr::time_series
