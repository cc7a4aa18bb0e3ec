#include <cufft.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "harness/device/cuda_download.hpp"
#include "harness/registry.hpp"
#include "harness/truth/reference.hpp"
#include "harness/verdict/truth_cuda.hpp"
#include "harness/verdict/truth_kernels.cuh"

namespace xcorr {
namespace {

using truth::kThreads;
using truth::PairTally;
using truth::Source;

// Largest problem, in FMAs, whose reference is the definition: about a tenth of a second.
constexpr Index kSmallFmas = Index{1} << 36;
// The same for time series, some seconds: a transform would be as long as the signal.
constexpr Index kSeriesFmas = Index{1} << 40;
constexpr std::size_t kCacheBytes = std::size_t{2} << 30;    // per kind of input
constexpr std::size_t kChunkBytes = std::size_t{512} << 20;  // of one padded stack

void check_cufft(cufftResult code, const char* what) {
  if (code == CUFFT_ALLOC_FAILED) {
    throw OutOfMemory("float64 reference, " + std::string(what) + ": cuFFT found no device memory");
  }
  if (code != CUFFT_SUCCESS) {
    throw std::runtime_error("float64 reference, " + std::string(what) + ": cuFFT error " +
                             std::to_string(code));
  }
}

int blocks(Index elements) {
  return static_cast<int>(std::clamp<Index>((elements + kThreads - 1) / kThreads, 1, 65536));
}

struct Layout {
  bool by_fft, cache;
  Index rows, cols, bins, chunk;

  explicit Layout(const Problem& p)
      : by_fft(p.fmas() > (p.is_time_series() ? kSeriesFmas : kSmallFmas)),
        cache(static_cast<std::size_t>(p.out_elements()) * sizeof(double) <= kCacheBytes),
        rows(reference_length(p.left.rows + p.right.rows - 1)),
        cols(reference_length(p.left.cols + p.right.cols - 1)),
        bins(cols / 2 + 1) {
    const Index elements = by_fft ? rows * bins * 2 : p.out_size();
    chunk = std::clamp<Index>(static_cast<Index>(kChunkBytes / sizeof(double)) / elements, 1,
                              p.pairs());
  }
};

// A batched two-dimensional float64 transform of `batch` matrices.
class Transform {
 public:
  Transform(const Layout& layout, cufftType type, Index batch, cudaStream_t stream) {
    int n[2] = {static_cast<int>(layout.rows), static_cast<int>(layout.cols)};
    check_cufft(
        cufftPlanMany(&plan_, 2, n, nullptr, 1, 0, nullptr, 1, 0, type, static_cast<int>(batch)),
        "plan");
    if (const cufftResult code = cufftSetStream(plan_, stream); code != CUFFT_SUCCESS) {
      cufftDestroy(plan_);
      check_cufft(code, "stream");
    }
  }
  ~Transform() { cufftDestroy(plan_); }
  Transform(const Transform&) = delete;
  Transform& operator=(const Transform&) = delete;
  cufftHandle get() const { return plan_; }

 private:
  cufftHandle plan_{};
};

// Both directions, the padded matrices and the spectra of a batch.
struct Transforms {
  Transforms(const Layout& layout, Index pairs, cudaStream_t stream)
      : batch(pairs),
        forward(layout, CUFFT_D2Z, pairs, stream),
        inverse(layout, CUFFT_Z2D, pairs, stream),
        padded(pairs * layout.rows * layout.cols),
        left(pairs * layout.rows * layout.bins),
        right(pairs * layout.rows * layout.bins) {}
  Index batch;
  Transform forward, inverse;
  DeviceArray<double> padded;
  DeviceArray<cufftDoubleComplex> left, right;
};

class CudaTruth : public SeededTruth {
 public:
  CudaTruth(const Problem& problem, Precision precision, AlgorithmClass algorithm_class,
            std::uint64_t seed, cudaStream_t stream)
      : SeededTruth(problem, precision, algorithm_class, seed),
        stream_(stream),
        layout_(problem),
        download_(stream) {}

  void fill(InputKind kind, void* left, void* right) override {
    with_scalar([&]<typename T>(T) {
      fill_array(static_cast<T*>(left), source(kind, Side::left));
      fill_array(static_cast<T*>(right), source(kind, Side::right));
    });
    finish("filling inputs");
  }

  std::string changed_inputs(InputKind kind, const void* left, const void* right) override {
    const DeviceArray<unsigned long long> changes(2);
    require_cuda(cudaMemsetAsync(changes.get(), 0, changes.bytes(), stream_), "clearing");
    const auto count = [&](const auto* data, Side side, unsigned long long* into) {
      const Index size = elements(side);
      truth::count_changes<<<blocks(size), kThreads, 0, stream_>>>(data, size, source(kind, side),
                                                                   into);
    };
    with_scalar([&]<typename T>(T) {
      count(static_cast<const T*>(left), Side::left, changes.get());
      count(static_cast<const T*>(right), Side::right, changes.get() + 1);
    });
    unsigned long long counts[2];
    get(counts, changes.get(), 2);
    if (counts[0]) return "the left matrices were overwritten";
    if (counts[1]) return "the right matrices were overwritten";
    return "";
  }

  Check check(InputKind kind, const void* out) override {
    Check result;
    with_scalar([&]<typename T>(T) { result = compare(kind, static_cast<const T*>(out)); });
    return result;
  }

  void surface(InputKind kind, Index first, Index count, Reference& into) override {
    const bool needs_abs = weights_of(kind) != Weights::values;
    const Norms& norms = norms_of(kind);
    const Bounds bounds = bounds_of(kind, norms);
    const Index size = problem_.out_size();
    into.value.resize(count * size);
    into.bound.resize(count * size);
    if (layout_.cache) {
      fill_cache(kind, false);
      if (needs_abs) fill_cache(kind, true);
    }
    const DeviceArray<double> bound(std::min(count, layout_.chunk) * size);
    for (Index i = 0; i < count; i += layout_.chunk) {
      const Index some = std::min(layout_.chunk, count - i), outputs = some * size;
      download_(into.value.data() + i * size, values(kind, false, first + i, some), outputs);
      truth::find_bounds<<<blocks(outputs), kThreads, 0, stream_>>>(
          bounds, norms.left.device.get(), norms.right.device.get(), window_norms(kind), first + i,
          some, values(kind, needs_abs, first + i, some), bound.get());
      download_(into.bound.data() + i * size, bound.get(), outputs);
    }
  }

 private:
  void forget(InputKind kind) override {
    cached_.erase({kind, false});
    cached_.erase({kind, true});
    norms_.erase(kind);
    windows_.erase(kind);
  }

  struct CachedReference {
    DeviceArray<double> out;  // of all pairs when they fit, else of one chunk
    bool complete = false;
  };

  // Time series: [rights]; window2 is [rights][out_size] (truth::WindowNorms).
  struct WindowArrays {
    DeviceArray<double> window2, largest, segment;
  };

  template <typename F>
  void with_scalar(F&& f) const {
    if (scalar_bytes(precision_) == sizeof(double)) {
      f(double{});
    } else {
      f(float{});
    }
  }

  // The inputs; with `second` what the second reference of the bounds correlates.
  Source source(InputKind kind, Side side, bool second = false) const {
    return {inputs(kind, side), second ? weights_of(kind) : Weights::values};
  }
  Index elements(Side side) const {
    return side == Side::left ? problem_.left_elements() : problem_.right_elements();
  }
  template <typename T>
  void fill_array(T* data, const Source& source) const {
    const Index count = elements(source.inputs.side);
    truth::fill_source<<<blocks(count), kThreads, 0, stream_>>>(data, count, source);
  }

  void finish(const char* what) const {
    require_cuda(cudaGetLastError(), what);
    require_cuda(cudaStreamSynchronize(stream_), what);
  }

  template <typename T>
  void get(T* host, const T* device, std::size_t count) const {
    require_cuda(cudaMemcpyAsync(host, device, count * sizeof(T), cudaMemcpyDeviceToHost, stream_),
                 "copy");
    finish("comparison");
  }

  // References of the pairs [first, first + count), at most a chunk.
  const double* values(InputKind kind, bool absolute, Index first, Index count) {
    CachedReference& cached = cached_[{kind, absolute}];
    const Index size = problem_.out_size();
    if (cached.out.empty()) {
      cached.out = DeviceArray<double>((layout_.cache ? problem_.pairs() : layout_.chunk) * size);
    }
    double* out = cached.out.get() + (layout_.cache ? first * size : 0);
    if (layout_.cache && cached.complete) return out;
    const bool round = is_exact(kind);  // rounding makes the reference exact
    if (layout_.by_fft) {
      by_fft(kind, absolute, round, first, count, out);
    } else {
      const DeviceArray<double> left(problem_.left_elements()), right(problem_.right_elements());
      fill_array(left.get(), source(kind, Side::left, absolute));
      fill_array(right.get(), source(kind, Side::right, absolute));
      truth::definition<<<blocks(count * size), kThreads, 0, stream_>>>(
          problem_, left.get(), right.get(), first, count, round, out);
      finish("float64 reference by the definition");
    }
    cached.complete = first + count == problem_.pairs();
    return out;
  }

  // A cache is filled from the first pair on.
  void fill_cache(InputKind kind, bool absolute) {
    for (Index p = 0; p < problem_.pairs() && !cached_[{kind, absolute}].complete;
         p += layout_.chunk) {
      values(kind, absolute, p, std::min(layout_.chunk, problem_.pairs() - p));
    }
  }

  void by_fft(InputKind kind, bool absolute, bool round, Index first, Index count, double* out) {
    if (!transforms_ || transforms_->batch < count) {
      transforms_.reset();  // before new memory is asked for
      transforms_ = std::make_unique<Transforms>(layout_, count, stream_);
    }
    Transforms& t = *transforms_;
    const Index real = count * layout_.rows * layout_.cols,
                spectrum = count * layout_.rows * layout_.bins;
    for (const Side side : {Side::left, Side::right}) {
      truth::pad<<<blocks(real), kThreads, 0, stream_>>>(problem_, source(kind, side, absolute),
                                                         first, count, layout_.rows, layout_.cols,
                                                         t.padded.get());
      check_cufft(cufftExecD2Z(t.forward.get(), t.padded.get(),
                               side == Side::left ? t.left.get() : t.right.get()),
                  "reference");
    }
    truth::hadamard<<<blocks(spectrum), kThreads, 0, stream_>>>(spectrum, t.left.get(),
                                                                t.right.get());
    check_cufft(cufftExecZ2D(t.inverse.get(), t.right.get(), t.padded.get()), "reference");
    truth::crop<<<blocks(count * problem_.out_size()), kThreads, 0, stream_>>>(
        problem_, count, layout_.rows, layout_.cols, round, t.padded.get(), out);
    finish("float64 reference by transform");
  }

  // Norms of the matrices of one side, on the host and on the device.
  struct SideNorms {
    std::vector<double> host;
    DeviceArray<double> device;
  };
  SideNorms side_norms(InputKind kind, Side side) const {
    const bool left = side == Side::left;
    const Index matrices = left ? problem_.lefts : problem_.rights;
    const Index size = (left ? problem_.left : problem_.right).size();
    const Index parts = truth::parts_of(matrices, size);
    const DeviceArray<double> squares(matrices * parts);
    truth::squares<<<static_cast<unsigned>(matrices * parts), kThreads, 0, stream_>>>(
        source(kind, side), size, parts, squares.get());
    std::vector<double> of_parts(matrices * parts);
    get(of_parts.data(), squares.get(), of_parts.size());
    SideNorms made{std::vector<double>(matrices), DeviceArray<double>(matrices)};
    for (Index i = 0; i < matrices; ++i) {
      const auto own = of_parts.begin() + i * parts;
      made.host[i] = std::sqrt(std::accumulate(own, own + parts, 0.0));
    }
    require_cuda(cudaMemcpyAsync(made.device.get(), made.host.data(), made.device.bytes(),
                                 cudaMemcpyHostToDevice, stream_),
                 "norms");
    finish("norms");
    return made;
  }

  // Norms of windows of a time series.
  void make_windows(InputKind kind, const DeviceArray<double>& right_norm) {
    WindowArrays& windows = windows_[kind];
    const Index size = problem_.out_size(), outputs = problem_.rights * size;
    const DeviceArray<double> ones(problem_.left.size()), squares(problem_.right_elements());
    windows.window2 = DeviceArray<double>(outputs);
    windows.largest = DeviceArray<double>(problem_.rights);
    windows.segment = DeviceArray<double>(problem_.rights);
    truth::fill_ones<<<blocks(problem_.left.size()), kThreads, 0, stream_>>>(ones.get(),
                                                                             problem_.left.size());
    Source source_of_squares = source(kind, Side::right);
    source_of_squares.of = Weights::squares;
    fill_array(squares.get(), source_of_squares);
    truth::definition<<<blocks(outputs), kThreads, 0, stream_>>>(window_sums(problem_), ones.get(),
                                                                 squares.get(), 0, problem_.rights,
                                                                 false, windows.window2.get());
    const Index parts = truth::parts_of(problem_.rights, size);
    const DeviceArray<double> largest(problem_.rights * parts);
    truth::
        largest_windows<<<static_cast<unsigned>(problem_.rights * parts), kThreads, 0, stream_>>>(
            windows.window2.get(), size, parts, largest.get());
    truth::segments<<<static_cast<unsigned>(problem_.rights), kThreads, 0, stream_>>>(
        largest.get(), parts, right_norm.get(), static_cast<double>(problem_.left.size()),
        has_few_outputs(problem_), windows.largest.get(), windows.segment.get());
    finish("norms of windows");
  }

  truth::WindowNorms window_norms(InputKind kind) {
    if (!problem_.is_time_series()) return {nullptr, nullptr, nullptr};
    const WindowArrays& windows = windows_[kind];
    return {windows.segment.get(), windows.window2.get(), windows.largest.get()};
  }

  struct Norms {
    SideNorms left, right;
    std::vector<double> segment;  // empty where it has no meaning

    Bounds::OfPair of_pair(const Bounds& bounds, const Pair& pair) const {
      return bounds.of_pair(left.host[pair.left],
                            (segment.empty() ? right.host : segment)[pair.right]);
    }
  };
  Bounds bounds_of(InputKind kind, const Norms& norms) const {
    return SeededTruth::bounds_of(kind, layout_.by_fft, norms.left.host, norms.right.host,
                                  norms.segment);
  }
  const Norms& norms_of(InputKind kind) {
    const auto found = norms_.find(kind);
    if (found != norms_.end()) return found->second;
    Norms norms{side_norms(kind, Side::left), side_norms(kind, Side::right), {}};
    if (problem_.is_time_series()) {
      make_windows(kind, norms.right.device);
      norms.segment.resize(problem_.rights);
      get(norms.segment.data(), windows_[kind].segment.get(), norms.segment.size());
    }
    return norms_.emplace(kind, std::move(norms)).first->second;
  }

  template <typename T>
  Check compare(InputKind kind, const T* out) {
    const bool needs_abs = weights_of(kind) != Weights::values;
    const Norms& norms = norms_of(kind);
    const Bounds bounds = bounds_of(kind, norms);
    Tally all;
    const Index parts = truth::parts_of(layout_.chunk, problem_.out_size());
    const DeviceArray<PairTally> device_tallies(layout_.chunk * parts);
    std::vector<PairTally> tallies(layout_.chunk * parts);
    for (Index first = 0; first < problem_.pairs(); first += layout_.chunk) {
      const Index count = std::min(layout_.chunk, problem_.pairs() - first);
      const double* ref = values(kind, false, first, count);
      const double* abs_ref = needs_abs ? values(kind, true, first, count) : ref;
      truth::compare<<<static_cast<unsigned>(count * parts), kThreads, 0, stream_>>>(
          bounds, norms.left.device.get(), norms.right.device.get(), window_norms(kind), first,
          parts, out, ref, abs_ref, device_tallies.get());
      get(tallies.data(), device_tallies.get(), count * parts);
      for (Index i = 0; i < count; ++i) {
        PairTally& t = tallies[i * parts];
        for (Index part = 1; part < parts; ++part) truth::merge(t, tallies[i * parts + part]);
        Check& check = all.check;
        if (t.worst_ratio > all.worst_ratio) {
          all.worst_ratio = t.worst_ratio, check.error = t.error, check.bound = t.bound;
        }
        if (t.wrong && check.passed()) {
          check.first_wrong = describe_element(problem_, first + i, t.first_wrong, t.wrong_got,
                                               t.wrong_want, t.wrong_bound);
        }
        check.wrong += t.wrong;
        check.argmax_agrees &= t.ref_at_out_max == t.ref_max;
        check.normalised_error = std::max(check.normalised_error, t.normalised_error);
        const Pair pair = problem_.pair(first + i);
        check_pair(check, all.worst_l2_ratio, bounds, first + i,
                   {t.difference2, t.reference2, t.absolute2}, norms.left.host[pair.left],
                   norms.right.host[pair.right]);
      }
    }
    if (layout_.by_fft) compare_sample(kind, bounds, needs_abs, norms, out, all.check);
    return all.check;
  }

  template <typename T>
  void compare_sample(InputKind kind, const Bounds& bounds, bool needs_abs, const Norms& norms,
                      const T* out, Check& check) {
    std::vector<Index> positions;
    for (Index i = 0; i < kSampledElements; ++i) {
      const SampledElement e = sampled_element(problem_, seed_, i);
      positions.insert(positions.end(), {e.pair, e.row, e.col});
    }
    const DeviceArray<Index> device_positions(3 * kSampledElements);
    const DeviceArray<double> device_values(kSampledElements);
    require_cuda(cudaMemcpyAsync(device_positions.get(), positions.data(), device_positions.bytes(),
                                 cudaMemcpyHostToDevice, stream_),
                 "copy");
    const auto by_definition = [&](bool absolute) {
      truth::sampled<<<kSampledElements, kThreads, 0, stream_>>>(
          problem_, source(kind, Side::left, absolute), source(kind, Side::right, absolute),
          device_positions.get(), device_values.get());
      std::vector<double> values(kSampledElements);
      get(values.data(), device_values.get(), values.size());
      return values;
    };
    const std::vector<double> want = by_definition(false);
    const std::vector<double> absolute = needs_abs ? by_definition(true) : want;
    for (std::size_t i = 0; i < want.size(); ++i) {
      const Index p = positions[3 * i],
                  element = positions[3 * i + 1] * problem_.out_cols() + positions[3 * i + 2];
      T got;
      get(&got, out + p * problem_.out_size() + element, 1);
      const double bound = bounds.at(norms.of_pair(bounds, problem_.pair(p)), element, absolute[i]);
      if (bounds.right(std::abs(static_cast<double>(got) - want[i]), bound)) continue;
      count_wrong(check, problem_, p, element, static_cast<double>(got), want[i], bound);
    }
  }

  cudaStream_t stream_;
  Layout layout_;
  CudaDownload download_;
  std::unique_ptr<Transforms> transforms_;
  std::map<std::pair<InputKind, bool>, CachedReference> cached_;
  std::map<InputKind, WindowArrays> windows_;
  std::map<InputKind, Norms> norms_;
};

}  // namespace

std::unique_ptr<Truth> make_cuda_truth(const Problem& problem, Precision precision,
                                       AlgorithmClass algorithm_class, std::uint64_t seed,
                                       cudaStream_t stream) {
  return std::make_unique<CudaTruth>(problem, precision, algorithm_class, seed, stream);
}

std::size_t cuda_truth_bytes(const Problem& problem) {
  const Layout layout(problem);
  const std::size_t out =
      (layout.cache ? problem.pairs() : layout.chunk) * problem.out_size() * sizeof(double);
  const std::size_t inputs = (problem.left_elements() + problem.right_elements()) * sizeof(double);
  // Of a time series two kinds of input have a second reference, and each kind has norms of windows.
  const std::size_t windows =
      problem.is_time_series() ? out + 4 * sizeof(double) * problem.rights * problem.out_size() : 0;
  // Four kinds of input, or three and the absolute values of one. The work area of a transform is as
  // large as its data.
  const std::size_t padded = layout.rows * layout.bins * layout.chunk * sizeof(cufftDoubleComplex);
  const std::size_t bounds = layout.chunk * problem.out_size() * sizeof(double);
  return 4 * out + bounds + windows + (layout.by_fft ? 5 * std::max(kChunkBytes, padded) : inputs) +
         (std::size_t{64} << 20);
}

}  // namespace xcorr
