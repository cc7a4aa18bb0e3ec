// Templates against a signal by overlap-save on cuFFT (overlap_save.hpp): a step from cufft, which
// pads a short template to the length of the signal.
//
// The templates are padded to a segment and transformed. Then, for chunks of segments: a kernel
// copies overlapping segments of the signal apart, a batched R2C transform makes their spectra, a
// kernel multiplies each with the spectra of all templates and adds the channels, a batched C2R
// transform goes back, and a kernel copies the outputs that did not wrap. All transforms are in
// place. Compare timeseries_fft, which has all of this in one kernel.
//
// Problem: n-to-m with one signal, rows as channels, window inside `valid`; fp32.
// Parameters, run-time:
//   segment    points of a transform
//   chunk_mib  memory of a chunk: 32 stays in the L2 cache, 512 has fewer launches
// Phases: forward, hadamard, inverse; copies are the rest. A chunk is at least one segment, so many
// templates take what they need. Not emulated: library calls.
#include <cufft.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

#include "algorithms/device/launch.hpp"
#include "algorithms/time_series/overlap_save.hpp"
#include "algorithms/time_series/series_shape.hpp"
#include "algorithms/time_series/timeseries_cufft/segments.hpp"
#include "harness/variant.hpp"

namespace xcorr::time_series {
namespace {

void check_cufft(cufftResult status, const char* what) {
  if (status == CUFFT_SUCCESS) return;
  throw std::runtime_error(std::string(what) + ": cuFFT error " + std::to_string(status));
}

// Transforms of `rows` rows in place, in work memory that use() gives.
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

// Rows of a chunk and where they lie in the workspace, in bytes.
struct ChunkLayout {
  explicit ChunkLayout(const PlanRequest& request)
      : series(request.problem),
        segments(series, request.params.get_int("segment")),
        pitch(segments.points + 2),
        bins(segments.points / 2 + 1),
        template_rows(series.templates * series.channels) {
    const Index row = pitch * Index{sizeof(float)};
    const Index asked = (Index{request.params.get_int("chunk_mib")} << 20) /
                        ((series.templates + series.channels) * row);
    chunk = std::clamp<Index>(asked, 1, segments.count);
    const auto after = [row](Index from, Index rows) {
      return (from + rows * row + 255) / 256 * 256;
    };
    chunk_rows = series.channels * chunk;
    product_rows = series.templates * chunk;
    segment_bytes = after(0, template_rows);
    product_bytes = after(segment_bytes, chunk_rows);
    work_bytes = after(product_bytes, product_rows);
  }

  SeriesShape series;
  Segments segments;
  Index pitch, bins;
  Index template_rows, chunk_rows, product_rows;
  Index chunk;  // segments
  Index segment_bytes, product_bytes, work_bytes;
};

struct ChunkTransforms {
  explicit ChunkTransforms(const ChunkLayout& at)
      : templates(CUFFT_R2C, static_cast<int>(at.segments.points), at.template_rows),
        forward(CUFFT_R2C, static_cast<int>(at.segments.points), at.chunk_rows),
        inverse(CUFFT_C2R, static_cast<int>(at.segments.points), at.product_rows) {}
  // They run one after the other.
  std::size_t work_bytes() const {
    return std::max({templates.work_bytes(), forward.work_bytes(), inverse.work_bytes()});
  }
  RowTransforms templates, forward, inverse;
};

class SeriesCufftPlan final : public Plan {
 public:
  explicit SeriesCufftPlan(const PlanRequest& request) : at_(request), transforms_(at_) {
    char* const base = static_cast<char*>(request.workspace);
    templates_ = reinterpret_cast<float*>(base);
    segments_ = reinterpret_cast<float*>(base + at_.segment_bytes);
    products_ = reinterpret_cast<float*>(base + at_.product_bytes);
    for (RowTransforms* one : {&transforms_.templates, &transforms_.forward, &transforms_.inverse})
      one->use(base + at_.work_bytes);
  }

  void compute(const Call& call) override {
    const SeriesShape& s = at_.series;
    fill({call.lefts<float>(), s.length, s.length, 1, 0}, at_.template_rows, templates_, call);
    call.phase("forward");
    transforms_.templates.run(templates_, call.stream);
    for (Index k = 0; k < at_.segments.count; k += at_.chunk) {
      const Index first = k * at_.segments.valid;
      call.phase("rest");
      fill({call.rights<float>() + s.first + first, s.pitch, s.samples() - first, at_.chunk,
            at_.segments.valid},
           at_.chunk_rows, segments_, call);
      call.phase("forward");
      transforms_.forward.run(segments_, call.stream);
      call.phase("hadamard");
      launch(multiply_rows, row_grid(at_.bins, at_.chunk, kTemplateGroups), dim3(kRowThreads), 0,
             call.stream, bins(templates_), bins(segments_), bins(products_),
             static_cast<int>(at_.bins), s.templates, s.channels, at_.chunk,
             1.0f / static_cast<float>(at_.segments.points));
      call.phase("inverse");
      transforms_.inverse.run(products_, call.stream);
      call.phase("rest");
      launch(store_rows, row_grid(at_.segments.valid, at_.chunk, kTemplateGroups),
             dim3(kRowThreads), 0, call.stream, products_, static_cast<int>(at_.pitch), s.templates,
             at_.chunk, static_cast<int>(at_.segments.valid), s.shifts - first, s.shifts,
             call.outs<float>() + first);
    }
  }

 private:
  // Blocks that share the templates of a segment.
  static constexpr Index kTemplateGroups = 4;

  static Bin* bins(float* rows) { return reinterpret_cast<Bin*>(rows); }

  void fill(const RowSource& from, Index rows, float* to, const Call& call) const {
    launch(fill_rows, row_grid(at_.pitch, rows), dim3(kRowThreads), 0, call.stream, from, rows,
           static_cast<int>(at_.segments.points), static_cast<int>(at_.pitch), to);
  }

  ChunkLayout at_;
  ChunkTransforms transforms_;
  float *templates_, *segments_, *products_;
};

Support supports(const PlanRequest& request) {
  if (const Support series = supports_series(request.problem); !series) return series;
  const SeriesShape s(request.problem);
  const Index points = request.params.get_int("segment");
  if (const Support fits = segment_fits(s, points); !fits) return fits;
  const ChunkLayout at(request);
  if (std::max({at.template_rows, at.chunk_rows, at.product_rows}) * at.pitch >
      std::numeric_limits<int>::max()) {
    return no("2^31 scalars or more in the padded templates, or in the outputs of a segment");
  }
  return yes();
}

std::size_t workspace_bytes(const PlanRequest& request) {
  const ChunkLayout at(request);
  return static_cast<std::size_t>(at.work_bytes) + ChunkTransforms(at).work_bytes();
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
    .plan = [](const PlanRequest& request) -> std::unique_ptr<Plan> {
      return std::make_unique<SeriesCufftPlan>(request);
    },
});

}  // namespace
}  // namespace xcorr::time_series
