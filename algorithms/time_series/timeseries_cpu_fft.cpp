// Templates against a signal by overlap-save with FFTW (overlap_save.hpp). Derived from cpu_fft,
// which pads a short template to the length of the signal.
//
// The spectra of all templates are computed first. Then each thread processes segments. It
// transforms each channel of a segment once. For each template it multiplies, adds up the channels,
// transforms back and copies the outputs that did not wrap around. Except for the spectra of the
// templates, all data of a segment stay in the caches of its core.
//
// segment is the points of a transform. auto: the power of two with the least work per output, 2048
// for templates of 256 samples. There are no phases, since threads are in different steps at the
// same time. Plans are FFTW_MEASURE without wisdom, as in cpu_fft. For a single call, and for few
// transforms, which take less time than planning, they are FFTW_ESTIMATE.
// Limits: templates are transformed whole; all of their spectra are in memory.
#include <omp.h>

#include <algorithm>
#include <complex>
#include <cstring>

#include "algorithms/blocks/fftw.hpp"
#include "algorithms/blocks/precision.hpp"
#include "algorithms/time_series/overlap_save.hpp"
#include "algorithms/time_series/series_shape.hpp"
#include "harness/variant.hpp"

namespace xcorr::time_series {
namespace {

// Transforms per call from which on measuring is faster in total.
constexpr Index kWorthMeasuring = 64;
constexpr double kExtraWork = 4;  // product, scaling and copies, relative to one of log2(N) steps
constexpr Index kLongest = Index{1} << 17;

Index segment_points(const PlanRequest& request) {
  const std::string& asked = request.params.get("segment");
  return asked == "auto" ? best_segment(SeriesShape(request.problem), kExtraWork, kLongest)
                         : std::stoll(asked);
}

// Sizes of the buffers, in complex elements of 2 * scalar_bytes bytes.
struct CpuFftLayout {
  CpuFftLayout(const PlanRequest& request, Index scalar_bytes)
      : series(request.problem), segments(series, segment_points(request)) {
    const Index line = 64 / (2 * scalar_bytes);
    const auto whole_lines = [line](Index n) { return (n + line - 1) / line * line; };
    bins = segments.points / 2 + 1;
    spectrum = whole_lines(bins);
    real = whole_lines(bins);
    threads = omp_get_max_threads();
    of_thread = (series.channels + 1) * spectrum + real;
    bytes =
        (series.templates * series.channels * spectrum + threads * of_thread) * 2 * scalar_bytes;
  }

  SeriesShape series;
  Segments segments;
  Index bins, spectrum;  // elements of a spectrum, and between spectra
  Index real;            // a segment of real scalars
  Index threads, of_thread;
  Index bytes;
};

template <typename T>
class CpuFftPlan final : public Plan {
  using Complex = std::complex<T>;
  using Library = device::Fftw<T>;

 public:
  explicit CpuFftPlan(const PlanRequest& request)
      : at_(request, sizeof(T)),
        templates_(static_cast<Complex*>(request.workspace)),
        threads_(templates_ + at_.series.templates * at_.series.channels * at_.spectrum) {
    const int points = static_cast<int>(at_.segments.points);
    const Index transforms = at_.segments.count * (at_.series.channels + at_.series.templates);
    const device::Planner<T> planner(transforms >= kWorthMeasuring ? request.planning
                                                                   : Planning::once);
    const Buffers own = buffers(0);
    forward_.reset(planner.r2c(points, own.real, raw(own.product), device::kRowEffort));
    inverse_.reset(planner.c2r(points, raw(own.product), own.real, device::kRowEffort));
  }

  void compute(const Call& call) override {
    const SeriesShape& s = at_.series;
    const int threads = static_cast<int>(at_.threads);
#pragma omp parallel num_threads(threads)
    {
      const Buffers own = buffers(omp_get_thread_num());
#pragma omp for schedule(static)
      for (Index row = 0; row < s.templates * s.channels; ++row) {
        transform(call.lefts<T>() + row * s.length, s.length, own.real,
                  templates_ + row * at_.spectrum);
      }
#pragma omp for schedule(dynamic, 4)
      for (Index k = 0; k < at_.segments.count; ++k) correlate_segment(call, k, own);
    }
  }

 private:
  struct Buffers {
    T* real;
    Complex* product;
    Complex* spectra;  // of the channels of a segment
  };
  Buffers buffers(Index thread) const {
    Complex* const own = threads_ + thread * at_.of_thread;
    return {reinterpret_cast<T*>(own), own + at_.real, own + at_.real + at_.spectrum};
  }
  static typename Library::Complex raw(Complex* p) {
    return reinterpret_cast<typename Library::Complex>(p);
  }

  // Computes the spectrum of `count` samples, padded with zeros.
  void transform(const T* from, Index count, T* real, Complex* to) const {
    std::copy_n(from, count, real);
    std::fill(real + count, real + at_.segments.points, T{0});
    Library::r2c(forward_.get(), real, raw(to));
  }

  void correlate_segment(const Call& call, Index k, const Buffers& own) const {
    const SeriesShape& s = at_.series;
    const Index first = k * at_.segments.valid, count = at_.segments.outputs(s, k);
    for (Index c = 0; c < s.channels; ++c) {
      transform(call.rights<T>() + c * s.pitch + s.first + first,
                std::min(at_.segments.points, s.samples() - first), own.real,
                own.spectra + c * at_.spectrum);
    }
    const T scale = T{1} / static_cast<T>(at_.segments.points);
    for (Index i = 0; i < s.templates; ++i) {
      for (Index c = 0; c < s.channels; ++c) {
        add_product(templates_ + (i * s.channels + c) * at_.spectrum,
                    own.spectra + c * at_.spectrum, own.product, c == 0);
      }
      Library::c2r(inverse_.get(), raw(own.product), own.real);
      T* const out = call.outs<T>() + i * s.shifts + first;
      for (Index x = 0; x < count; ++x) out[x] = scale * own.real[x];
    }
  }

  // product (+)= conj(left) * right; the first channel overwrites the product.
  void add_product(const Complex* left, const Complex* right, Complex* product, bool first) const {
    const T* const l = reinterpret_cast<const T*>(left);
    const T* const r = reinterpret_cast<const T*>(right);
    T* const to = reinterpret_cast<T*>(product);
    if (first) std::fill_n(to, 2 * at_.bins, T{0});
    for (Index i = 0; i < 2 * at_.bins; i += 2) {
      to[i] += l[i] * r[i] + l[i + 1] * r[i + 1];
      to[i + 1] += l[i] * r[i + 1] - l[i + 1] * r[i];
    }
  }

  CpuFftLayout at_;
  Complex *templates_, *threads_;
  device::OwnedPlan<T> forward_, inverse_;
};

Support supports(const PlanRequest& request) {
  if (const Support series = supports_series(request.problem); !series) return series;
  return segment_fits(SeriesShape(request.problem), segment_points(request));
}

std::size_t workspace_bytes(const PlanRequest& request) {
  return device::with_scalar(request.precision, [&](auto scalar) {
    return static_cast<std::size_t>(CpuFftLayout(request, sizeof scalar).bytes);
  });
}

XCORR_VARIANT({
    .summary = "Overlap-save on FFTW: a segment's spectrum meets every template, all cores",
    .parent = "cpu_fft",
    .source = "beyond the paper",
    .algorithm_class = AlgorithmClass::fft,
    .precisions = {Precision::fp32, Precision::fp64},
    .forms = {Form::n_to_m},
    .axes = {{"segment", {"auto", "4096"}}},
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .plan = device::plan_in_precision<CpuFftPlan>,
});

}  // namespace
}  // namespace xcorr::time_series
