// Templates against a signal by overlap-save with cuFFT (overlap_save.hpp). Derived from cufft,
// which pads a short template to the length of the signal.
//
// The templates are padded to a segment and transformed. Then, per chunk of segments: a kernel
// copies overlapping segments of the signal, a batched R2C transform computes their spectra, a
// kernel multiplies each spectrum with the spectra of all templates and adds the channels, a
// batched C2R transform goes back, and a kernel copies the outputs that did not wrap around. All
// transforms are in place. timeseries_fft does all of this in one kernel.
//
// segment is the points of a transform. chunk_mib is the memory of a chunk: 32 stays in the L2
// cache, 512 needs fewer launches. A chunk has at least one segment, so that many templates can
// exceed chunk_mib. Not emulated: library calls.
#include <cufft.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

#include "algorithms/device/launch.hpp"
#include "algorithms/time_series/overlap_save.hpp"
#include "algorithms/time_series/series_shape.hpp"
#include "algorithms/time_series/timeseries_cufft/pipeline.hpp"
#include "harness/variant.hpp"

namespace xcorr::time_series {
namespace {

void check_cufft(cufftResult status, const char* what) {
  if (status == CUFFT_SUCCESS) return;
  throw std::runtime_error(std::string(what) + ": cuFFT error " + std::to_string(status));
}

// In-place transforms of `rows` rows, with the work memory passed to use().
class RowTransforms {
 public:
  RowTransforms(cufftType type, int n, Index rows) : type_(type) {
    check_cufft(cufftCreate(&handle_), "cufftCreate");
    check_cufft(cufftSetAutoAllocation(handle_, 0), "cufftSetAutoAllocation");
    const int bins = n / 2 + 1;
    int length[] = {n}, real[] = {2 * bins}, complex[] = {bins};
    const bool forward = type == CUFFT_R2C;
    check_cufft(cufftMakePlanMany(handle_, 1, length, forward ? real : complex, 1,
                                  forward ? 2 * bins : bins, forward ? complex : real, 1,
                                  forward ? bins : 2 * bins, type, static_cast<int>(rows), &bytes_),
                "cufftMakePlanMany");
  }
  ~RowTransforms() { cufftDestroy(handle_); }
  RowTransforms(const RowTransforms&) = delete;
  RowTransforms& operator=(const RowTransforms&) = delete;

  std::size_t work_bytes() const { return bytes_; }
  void use(void* work) { check_cufft(cufftSetWorkArea(handle_, work), "cufftSetWorkArea"); }
  void run(float* rows, void* stream) {
    check_cufft(cufftSetStream(handle_, static_cast<cudaStream_t>(stream)), "cufftSetStream");
    auto* const complex = reinterpret_cast<cufftComplex*>(rows);
    check_cufft(type_ == CUFFT_R2C ? cufftExecR2C(handle_, rows, complex)
                                   : cufftExecC2R(handle_, complex, rows),
                "transform");
  }

 private:
  cufftType type_;
  cufftHandle handle_ = 0;
  std::size_t bytes_ = 0;
};

ChunkLayout layout(const PlanRequest& request) {
  return {request.problem, request.params.get_int("segment"),
          Index{request.params.get_int("chunk_mib")} << 20};
}

class ChunkTransforms {
 public:
  explicit ChunkTransforms(const ChunkLayout& at)
      : templates_(CUFFT_R2C, static_cast<int>(at.segments.points), at.template_rows),
        forward_(CUFFT_R2C, static_cast<int>(at.segments.points), at.segment_rows),
        inverse_(CUFFT_C2R, static_cast<int>(at.segments.points), at.product_rows) {}

  // They run one after the other and share the work memory.
  std::size_t work_bytes() const {
    return std::max({templates_.work_bytes(), forward_.work_bytes(), inverse_.work_bytes()});
  }
  void use(void* work) {
    for (RowTransforms* one : {&templates_, &forward_, &inverse_}) one->use(work);
  }
  void of_templates(float* rows, void* stream) { templates_.run(rows, stream); }
  void forward(float* rows, void* stream) { forward_.run(rows, stream); }
  void inverse(float* rows, void* stream) { inverse_.run(rows, stream); }

 private:
  RowTransforms templates_, forward_, inverse_;
};

class SeriesCufftPlan final : public Plan {
 public:
  explicit SeriesCufftPlan(const PlanRequest& request)
      : at_(layout(request)),
        transforms_(at_),
        memory_(at_, transforms_.work_bytes(), Workspace(request.workspace)) {
    transforms_.use(memory_.work);
  }

  void compute(const Call& call) override { correlate_in_chunks(at_, memory_, call, transforms_); }

 private:
  ChunkLayout at_;
  ChunkTransforms transforms_;
  ChunkMemory memory_;
};

Support supports(const PlanRequest& request) {
  if (const Support series = supports_series(request.problem); !series) return series;
  const SeriesShape s(request.problem);
  const Index points = request.params.get_int("segment");
  if (const Support fits = segment_fits(s, points); !fits) return fits;
  const ChunkLayout at = layout(request);
  if (std::max({at.template_rows, at.segment_rows, at.product_rows}) * at.pitch >
      std::numeric_limits<int>::max()) {
    return no("2^31 scalars or more in the padded templates, or in the outputs of a segment");
  }
  return yes();
}

std::size_t workspace_bytes(const PlanRequest& request) {
  const ChunkLayout at = layout(request);
  return ChunkMemory(at, ChunkTransforms(at).work_bytes(), Workspace(nullptr)).bytes;
}

XCORR_VARIANT({
    .summary = "Overlap-save on cuFFT: batched segments, products with every template, in chunks",
    .parent = "cufft",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::fft,
    .forms = {Form::n_to_m},
    .axes = {{"segment", {"1024", "2048", "4096", "16384"}}, {"chunk_mib", {"32", "512"}}},
    .emulated = false,
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .plan = make_plan<SeriesCufftPlan>,
});

}  // namespace
}  // namespace xcorr::time_series
