// Templates against a signal by overlap-save in one kernel (overlap_save.hpp). Derived from
// timeseries_cufft, which moves spectra and products through global memory. Here a segment's
// spectrum is computed once, stays in shared memory and is multiplied with every template. The
// signal is read one and a half times, the outputs are written once, and all other data stay within
// the L2 cache.
//
// - A first kernel transforms the templates. Their spectra are stored in the workspace.
// - A group of threads (a warp up to 1024 points, else a block) combines two neighbouring segments
//   as the real and the imaginary part of one complex segment. Correlation with a real template is
//   linear, so that one inverse transform yields the outputs of both segments without unpacking.
// - For each template the group multiplies the two spectra, transforms back (segment_transform.hpp)
//   and stores the outputs that did not wrap around. Channels are added before the inverse
//   transform.
//
// segment is the points of a transform. template_parts is the number of groups that process the
// same segments, each with a part of the templates: more than 1 for short signals, at the cost of
// as many forward transforms.
// Limits: a segment has segment - T + 1 outputs, and they must be at least an eighth of it. The
// spectra of all channels must fit into the shared memory of a block: 8192 points with one channel
// fit into the 227 KB of compute capability 9.0. An outlier in a segment adds to the errors of the
// neighbour in the same transform.
// Measured (H200, 16 x 256 against 4.32 M): 123 us. Writing the outputs takes 62 us; shared memory
// and instruction issue take 78 us each; docs/notebook/2026-11-time-series-transforms.md.
#include <cmath>

#include "algorithms/blocks/plan.hpp"
#include "algorithms/blocks/points.hpp"
#include "algorithms/time_series/overlap_save.hpp"
#include "algorithms/time_series/series_shape.hpp"
#include "algorithms/time_series/timeseries_fft/kernel.hpp"
#include "harness/variant.hpp"

namespace xcorr::time_series {
namespace {

using SegmentPoints = PointAxis<Values<512, 1024, 2048, 4096, 8192>>;
using SpectraKernel = void (*)(FftArguments);
using SaveKernel = void (*)(FftArguments, int);
const bool kSpectraKernels = add_kernels<SegmentPoints>(
    XCORR_ID, [](auto n) -> SpectraKernel { return template_spectra_kernel<n>; });
const bool kSaveKernels = add_kernels<SegmentPoints>(
    XCORR_ID, [](auto n) -> SaveKernel { return overlap_save_kernel<n>; });

constexpr Index kLineFloats = 32;  // a line of 128 bytes, which a warp stores at once

// Roots of one, correctly rounded from double, as a kernel argument.
struct RootsPart {
  Complex w[256];
};
__global__ void store_powers(RootsPart part, Complex* to) { to[threadIdx.x] = part.w[threadIdx.x]; }
void store_all_powers(int n, Complex* to, void* stream) {
  for (int first = 0; first < n; first += 256) {
    RootsPart part{};
    for (int i = 0; i < 256; ++i) {
      const double angle = 2 * 3.14159265358979323846 * (first + i) / n;
      part.w[i] = {static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))};
    }
    launch(store_powers, dim3(1), dim3(256), 0, stream, part, to + first);
  }
}

// Launch parameters of one segment length.
struct GroupShape {
  int threads;  // per block
  int groups;   // per block
  Index bytes(Index spectra) const { return fixed_bytes + spectra * spectrum_bytes; }
  Index fixed_bytes, spectrum_bytes;  // of shared memory
};
template <int kN>
GroupShape group_shape() {
  using T = SegmentTransform<kN>;
  const Index fixed = shared_elements<T>(0) * Index{sizeof(Complex)};
  return {kThreads<T>, T::groups, fixed, shared_elements<T>(1) * Index{sizeof(Complex)} - fixed};
}
GroupShape group_shape(int points) {
  GroupShape found;
  with_value(SegmentPoints::Built(), points, [&](auto n) { found = group_shape<n>(); });
  return found;
}

class SeriesFftPlan final : public DevicePlan<float> {
 public:
  explicit SeriesFftPlan(const PlanRequest& request)
      : DevicePlan(request.problem),
        points_(request.params.get_int("segment")),
        shape_(group_shape(points_)),
        spectra_kernel_(find_kernel<SpectraKernel>(XCORR_ID, {points_})),
        save_kernel_(find_kernel<SaveKernel>(XCORR_ID, {points_})) {
    const SeriesShape s(request.problem);
    const Segments segments(s, points_, kLineFloats);
    auto* const powers = static_cast<Complex*>(request.workspace);
    store_all_powers(points_, powers, request.stream);
    a_.powers = powers;
    a_.spectra = powers + points_;
    a_.pitch = s.pitch;
    a_.samples = s.samples();
    a_.shifts = s.shifts;
    a_.template_count = static_cast<int>(s.templates);
    a_.channels = static_cast<int>(s.channels);
    a_.length = static_cast<int>(s.length);
    a_.valid = static_cast<int>(segments.valid);
    a_.pairs = ceil_div<Index>(segments.count, 2);
    a_.scale = 1.0f / static_cast<float>(points_);
    first_ = s.first;
    const int parts = request.params.get_int("template_parts");
    of_a_part_ = ceil_div(a_.template_count, parts);
    parts_ = ceil_div(a_.template_count, of_a_part_);
  }

 private:
  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    a_.templates = arrays.left;
    a_.signal = arrays.right + first_;
    a_.out = arrays.out;
    launches_.begin(call);
    call.phase("forward");
    launches_.run(spectra_kernel_, blocks(Index{a_.template_count} * a_.channels),
                  dim3(static_cast<unsigned>(shape_.threads)), shared_bytes(0), call.stream, a_);
    call.phase("rest");
    dim3 grid = blocks(a_.pairs);
    grid.y = static_cast<unsigned>(parts_);
    launches_.run(save_kernel_, grid, dim3(static_cast<unsigned>(shape_.threads)),
                  shared_bytes(a_.channels), call.stream, a_, of_a_part_);
  }

  dim3 blocks(Index groups) const {
    return dim3(static_cast<unsigned>(ceil_div<Index>(groups, shape_.groups)));
  }
  std::size_t shared_bytes(Index spectra) const {
    return static_cast<std::size_t>(shape_.bytes(spectra));
  }

  DependentLaunches launches_;
  int points_;
  GroupShape shape_;
  SpectraKernel spectra_kernel_;
  SaveKernel save_kernel_;
  FftArguments a_{};
  Index first_ = 0;
  int of_a_part_ = 1, parts_ = 1;
};

Support supports(const PlanRequest& request) {
  const Problem& q = request.problem;
  if (const Support series = supports_series(q); !series) return series;
  const SeriesShape s(q);
  const int points = request.params.get_int("segment");
  if (s.length > points - points / 8) {
    return no("segment=" + std::to_string(points) + ": less than an eighth of it are outputs of " +
              "templates of " + std::to_string(s.length) + " samples");
  }
  if (s.templates < request.params.get_int("template_parts")) {
    return no("template_parts: more than templates");
  }
  if (s.templates * s.channels > kIndexLimit || ceil_div<Index>(s.shifts, 2) > kIndexLimit) {
    return no("more than 2^31 - 1 spectra of templates, or 2^32 outputs of a template");
  }
  // The limit is read from the device for every size: the emulation's limit may be below that of
  // every GPU.
  const auto bytes = static_cast<std::size_t>(group_shape(points).bytes(s.channels));
  if (bytes <= shared_limit()) return yes();
  return no("segment=" + std::to_string(points) + ", " + std::to_string(s.channels) +
            " channels: " + std::to_string(bytes) + " bytes of shared memory, and a block has " +
            std::to_string(shared_limit()));
}

std::size_t workspace_bytes(const PlanRequest& request) {
  const SeriesShape s(request.problem);
  const Index points = request.params.get_int("segment");
  return static_cast<std::size_t>((1 + s.templates * s.channels) * points) * sizeof(Complex);
}

XCORR_VARIANT({
    .summary = "Overlap-save in one kernel: a segment's spectrum in shared memory meets every "
               "template",
    .parent = "timeseries_cufft",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::fft,
    .forms = {Form::n_to_m},
    .axes = {SegmentPoints::axis("segment"), {"template_parts", {"1", "2", "4"}}},
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .plan = make_plan<SeriesFftPlan>,
});

}  // namespace
}  // namespace xcorr::time_series
