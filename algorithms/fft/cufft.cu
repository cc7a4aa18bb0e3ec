// Correlation by the transform theorem on cuFFT, as fast as library transforms allow: the honest
// FFT baseline. Steps from cufft_paper:
//
// - smooth padded sizes 2^a 3^b 5^c 7^d that depend on the window, not 2h x 2w (`padded_size`);
// - a Hadamard kernel over all pairs at once, 16 bytes a load, four pairs a thread, left spectra
// reused from
//   registers and caches, the scale folded in;
// - one forward plan over lefts and rights in one buffer, one inverse plan over pairs, of fixed
// batches: a
//   problem larger than `chunk_mib` of spectra runs in equal chunks (rectangles of lefts and
//   rights), so the workspace is bounded, and with the small value a chunk stays in the L2 cache
//   from its product to its output;
// - padding and the definition's layout as one coalesced kernel each, or folded into the
// transforms.
//
// Parameters, all run time:
//   callbacks  none: pad, forward, hadamard, inverse, crop, each its launches.
//              layout: the forward transform loads from the unpadded inputs, the inverse stores
//              into the outputs, through callbacks that NVRTC compiles from the text below and
//              cuFFT links into its kernels while it plans (that cost is in plan_us): two launches
//              and two passes over memory less. all: moreover the inverse transform loads products:
//              no Hadamard kernel and, in n-to-m, no products in memory. The phase hadamard is then
//              inside inverse.
//   transform  in_place | out_of_place (callbacks: always in place): half the memory, or aligned
//   rows. chunk_mib  32 (L2 cache) | 1024; the larger is no point where the smaller is one chunk.
//
// n-to-m transforms each matrix once while all spectra fit in kAllSpectraBytes; beyond, and in the
// other forms, a chunk transforms its own lefts and rights.
//
// Forms: all four, any shapes, any window; fp32 and fp64. Phases forward, hadamard, inverse;
// padding and layout kernels are rest. Limits: a chunk is at least one pair, so a huge transform
// takes what it needs; a short left against a very long right is padded to the length of the right
// (no overlap-save).
#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/device/cufft_plan.hpp"
#include "algorithms/device/fft_chunks.hpp"
#include "algorithms/device/hadamard.hpp"
#include "algorithms/device/lto_callback.hpp"

namespace xcorr {
namespace {

constexpr Index kAllSpectraBytes = Index{2} << 30;
constexpr Index kInfoBytes = 256;
constexpr int kChunkMib[] = {32, 1024};

// What callbacks read; in device memory, since cuFFT fixes the address when it plans.
template <typename T>
struct CallbackInfo {
  FftChunk<T> chunk;
  const void* left_spectra;
  const void* right_spectra;
};

template <typename T>
__global__ void store_info(CallbackInfo<T>* to, CallbackInfo<T> info) {
  *to = info;
}

// Follows definitions of T, T2 (complex), U (an unsigned type that counts a batch's elements) and
// the constants below. One image a callback: cuFFT links an image once for each callback of a plan,
// and would find others twice.
constexpr const char* kCallbackSource = R"(
struct Info {  // CallbackInfo of the file that holds this text
  const T* left; const T* right; T* out;
  long long lefts, right_runs, rights, pair_runs, pairs;
  const T2* left_spectra; const T2* right_spectra;
};

#ifdef XCORR_PAD
__device__ T xcorr_pad(void*, unsigned long long offset, void* caller, void*) {
  const Info* info = static_cast<const Info*>(caller);
  const U slot = U(offset) / kRealSize, rest = U(offset) % kRealSize;
  const U y = rest / kRealPitch, x = rest % kRealPitch;
  if (slot < kLeftSlots) {
    if (slot >= info->lefts || y >= kLeftRows || x >= kLeftCols) return T(0);
    return __ldg(info->left + (slot * kLeftRows + y) * kLeftCols + x);
  }
  const U run = (slot - kLeftSlots) / kRightRun, item = (slot - kLeftSlots) % kRightRun;
  if (run >= info->right_runs || item >= info->rights || y >= kRightRows || x >= kRightCols) return T(0);
  const long long matrix = run * (long long)kRightPitch + item;
  return __ldg(info->right + (matrix * kRightRows + y) * kRightCols + x);
}
#endif

#ifdef XCORR_CROP
__device__ void xcorr_crop(void*, unsigned long long offset, T value, void* caller, void*) {
  const Info* info = static_cast<const Info*>(caller);
  const U slot = U(offset) / kRealSize, rest = U(offset) % kRealSize;
  long long y = (long long)(rest / kRealPitch) - kFirstSy, x = (long long)(rest % kRealPitch) - kFirstSx;
  const long long rows = kRows, cols = kCols;
  y += y < 0 ? rows : y >= rows ? -rows : 0;
  x += x < 0 ? cols : x >= cols ? -cols : 0;
  const U run = slot / kPairRun, item = slot % kPairRun;
  if (y >= kOutRows || x >= kOutCols || run >= info->pair_runs || item >= info->pairs) return;
  const long long pair = run * (long long)kPairPitch + item;
  __stcs(info->out + (pair * kOutRows + y) * kOutCols + x, value);
}
#endif

#ifdef XCORR_PRODUCT
__device__ T2 xcorr_product(void* products, unsigned long long offset, void* caller, void*) {
  const Info* info = static_cast<const Info*>(caller);
  const U slot = U(offset) / kSpectrum, element = U(offset) % kSpectrum;
  const U run = slot / kPairRun, item = slot % kPairRun;
  T2 product = {T(0), T(0)};
  if (run >= info->pair_runs || item >= info->pairs) return product;
  const T2 l = info->left_spectra[run * kSpectrum + element];
  const T2 r = kSharedRights ? info->right_spectra[item * kSpectrum + element]
                             : static_cast<const T2*>(products)[offset];
  const T scale = T(1) / (T(kRows) * T(kCols));
  product.x = scale * (l.x * r.x + l.y * r.y);
  product.y = scale * (l.x * r.y - l.y * r.x);
  return product;
}
#endif
)";

// The definitions before that text; the callback is one of XCORR_PAD, XCORR_CROP, XCORR_PRODUCT.
template <typename T>
std::string callback_source(const FftGeometry& g, bool shared_rights, const char* callback) {
  const bool single = sizeof(T) == sizeof(float);
  const Index slots = std::max(g.input_slots(), g.pair_slots);
  const bool narrow = slots * std::max(g.real_size, 2 * g.spectrum) < Index{1} << 32;
  std::string text = std::string("#define ") + callback +
                     "\nusing T = " + (single ? "float" : "double") +
                     ";\nusing T2 = " + (single ? "float2" : "double2") + ";\nusing U = unsigned " +
                     (narrow ? "int" : "long long") + ";\n";
  const std::pair<const char*, Index> sizes[] = {{"kRows", g.rows},
                                                 {"kCols", g.cols},
                                                 {"kRealPitch", g.real_pitch},
                                                 {"kRealSize", g.real_size},
                                                 {"kSpectrum", g.spectrum},
                                                 {"kLeftSlots", g.left_slots},
                                                 {"kLeftRows", g.left.rows},
                                                 {"kLeftCols", g.left.cols},
                                                 {"kRightRows", g.right.rows},
                                                 {"kRightCols", g.right.cols},
                                                 {"kRightRun", g.right_run},
                                                 {"kRightPitch", g.right_pitch},
                                                 {"kPairRun", g.pair_run},
                                                 {"kPairPitch", g.pair_pitch},
                                                 {"kOutRows", g.sy.count()},
                                                 {"kOutCols", g.sx.count()},
                                                 {"kSharedRights", shared_rights}};
  for (const auto& [name, value] : sizes) {
    text += std::string("constexpr U ") + name + " = " + std::to_string(value) + ";\n";
  }
  return text + "constexpr long long kFirstSy = " + std::to_string(g.sy.first) +
         ", kFirstSx = " + std::to_string(g.sx.first) + ";\n" + kCallbackSource;
}

bool uses_callbacks(const PlanRequest& request) {
  return request.params.get("callbacks") != "none";
}

template <typename T>
FftChunks chunks(const PlanRequest& request, Index mib) {
  const bool in_place = uses_callbacks(request) || request.params.get("transform") == "in_place";
  return fft_chunks(request.problem, sizeof(T), in_place, mib << 20, kAllSpectraBytes);
}

template <typename T>
FftChunks chunks(const PlanRequest& request) {
  return chunks<T>(request, request.params.get_int("chunk_mib"));
}

// With callbacks cuFFT tells its need only after linking, so a bound is reserved: one image of the
// batch.
template <typename T>
std::size_t reserved_for_callbacks(const FftGeometry& g) {
  const Index slots = std::max(g.input_slots(), g.pair_slots);
  return static_cast<std::size_t>(slots * 2 * g.spectrum) * sizeof(T) + (std::size_t{1} << 20);
}

template <typename T>
class CufftPipeline final : public Plan {
  using Complex = typename CufftTypes<T>::Complex;

 public:
  explicit CufftPipeline(const PlanRequest& request)
      : problem_(request.problem),
        at_(chunks<T>(request)),
        layout_in_callbacks_(uses_callbacks(request)),
        product_in_callback_(request.params.get("callbacks") == "all") {
    const FftGeometry& g = at_.g;
    char* base = static_cast<char*>(request.workspace);
    lefts_ = reinterpret_cast<Complex*>(base);
    rights_ = lefts_ + g.left_slots * g.spectrum;
    products_ = at_.products > 0 ? rights_ + g.right_slots * g.spectrum : rights_;
    real_in_ = at_.in_place ? reinterpret_cast<T*>(lefts_) : reinterpret_cast<T*>(base + at_.real);
    real_out_ = at_.in_place ? reinterpret_cast<T*>(products_) : real_in_;
    info_ = reinterpret_cast<CallbackInfo<T>*>(base + at_.end);
    if (layout_in_callbacks_) set_callbacks();
    const std::size_t work =
        std::max(forward_.make(g, true, g.input_slots()), inverse_.make(g, false, g.pair_slots));
    images_.clear();
    void* area = base + at_.end + kInfoBytes;
    if (layout_in_callbacks_ && work > reserved_for_callbacks<T>(g)) {
      check_cuda(cudaMalloc(&own_work_, work), "work area of cuFFT");
      area = own_work_;
    }
    forward_.use(area);
    inverse_.use(area);
    // Slots beyond the valid part, and the element that rounds a spectrum up, are read but never
    // written.
    check_cuda(cudaMemsetAsync(base, 0, static_cast<std::size_t>(at_.end + kInfoBytes),
                               static_cast<cudaStream_t>(request.stream)),
               "clearing the workspace");
  }

  ~CufftPipeline() override { cudaFree(own_work_); }

  void compute(const Call& call) override {
    const auto stream = static_cast<cudaStream_t>(call.stream);
    const Problem& q = problem_;
    const Index rights = at_.g.pair_pitch;
    for (Index l = 0; l < q.lefts; l += at_.chunk.lefts) {
      for (Index r = 0; r < rights; r += at_.chunk.rights) {
        const Rectangle part{std::min(at_.chunk.lefts, q.lefts - l),
                             std::min(at_.chunk.rights, rights - r)};
        run(call, l, r, part, stream);
      }
    }
  }

 private:
  void run(const Call& call, Index l, Index r, Rectangle part, cudaStream_t stream) {
    const Problem& q = problem_;
    const FftGeometry& g = at_.g;
    const bool n_to_m = q.form == Form::n_to_m;
    const Index pair = l * g.pair_pitch + r;
    CallbackInfo<T> info{};
    info.chunk.out = call.outs<T>() + pair * q.out_size();
    info.chunk.pair_runs = part.lefts;
    info.chunk.pairs = part.rights;
    if (at_.all_spectra) {
      info.chunk.left = call.lefts<T>();
      info.chunk.right = call.rights<T>();
      info.chunk.lefts = q.lefts;
      info.chunk.right_runs = 1;
      info.chunk.rights = q.rights;
    } else {
      info.chunk.left = call.lefts<T>() + l * q.left.size();
      info.chunk.right = call.rights<T>() + (n_to_m ? r : pair) * q.right.size();
      info.chunk.lefts = part.lefts;
      info.chunk.right_runs = n_to_m ? 1 : part.lefts;
      info.chunk.rights = part.rights;
    }
    const Complex* lefts = lefts_ + (at_.all_spectra ? l * g.spectrum : 0);
    const Complex* rights = rights_ + (at_.all_spectra ? r * g.spectrum : 0);
    info.left_spectra = lefts;
    info.right_spectra = rights;

    const bool transform_inputs = !at_.all_spectra || pair == 0;
    if (layout_in_callbacks_) publish(info, stream);
    if (transform_inputs) {
      if (!layout_in_callbacks_) pad(g, info.chunk, real_in_, stream);
      call.phase("forward");
      forward_.forward(real_in_, lefts_, stream);
    }
    if (!product_in_callback_) {
      call.phase("hadamard");
      multiply(lefts, rights, part, stream);
    }
    call.phase("inverse");
    inverse_.inverse(products_, real_out_, stream);
    call.phase("rest");
    if (!layout_in_callbacks_) crop(g, info.chunk, real_out_, T(1), stream);
  }

  void multiply(const Complex* lefts, const Complex* rights, Rectangle part,
                cudaStream_t stream) const {
    const FftGeometry& g = at_.g;
    hadamard_chunk<T>({lefts, rights, products_, g.spectrum, g.pair_slots, g.pair_run, part.lefts,
                       part.rights, at_.products > 0, T(1) / static_cast<T>(g.rows * g.cols)},
                      stream);
  }

  // Brings the callbacks' information to the device where it is not there yet: in the usual case of
  // one chunk and unchanged pointers, never. A captured call may be replayed at any time, so from
  // then on always.
  void publish(const CallbackInfo<T>& info, cudaStream_t stream) {
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    check_cuda(cudaStreamIsCapturing(stream, &capture), "cudaStreamIsCapturing");
    if (capture != cudaStreamCaptureStatusNone) captured_ = true;
    if (!captured_ && std::memcmp(&info, &published_, sizeof info) == 0) return;
    launch(store_info<T>, dim3(1), dim3(1), 0, stream, info_, info);
    published_ = info;
  }

#if CUFFT_VERSION >= 11300
  void set_callbacks() {
    const bool single = sizeof(T) == sizeof(float);
    set_callback(forward_, "xcorr_pad", "XCORR_PAD",
                 single ? CUFFT_CB_LD_REAL : CUFFT_CB_LD_REAL_DOUBLE);
    set_callback(inverse_, "xcorr_crop", "XCORR_CROP",
                 single ? CUFFT_CB_ST_REAL : CUFFT_CB_ST_REAL_DOUBLE);
    if (product_in_callback_) {
      set_callback(inverse_, "xcorr_product", "XCORR_PRODUCT",
                   single ? CUFFT_CB_LD_COMPLEX : CUFFT_CB_LD_COMPLEX_DOUBLE);
    }
  }

  void set_callback(CufftPlan<T>& plan, const char* name, const char* part,
                    cufftXtCallbackType type) {
    // cuFFT reads the image and the pointer when it plans.
    images_.push_back(
        LtoCompiler::instance().compile(callback_source<T>(at_.g, at_.products > 0, part)));
    info_pointer_ = info_;
    check_cufft(cufftXtSetJITCallback(plan.handle(), name, images_.back().data(),
                                      images_.back().size(), type, &info_pointer_),
                "cufftXtSetJITCallback");
  }
#else
  void set_callbacks() {}  // supports() says no
#endif

  Problem problem_;
  FftChunks at_;
  bool layout_in_callbacks_, product_in_callback_;
  Complex *lefts_, *rights_, *products_;
  T *real_in_, *real_out_;
  CallbackInfo<T>* info_;
  void* info_pointer_ = nullptr;
  void* own_work_ = nullptr;
  CallbackInfo<T> published_{};
  bool captured_ = false;
  std::vector<std::vector<char>> images_;
  CufftPlan<T> forward_, inverse_;
};

template <typename T>
Support supports_as(const PlanRequest& request) {
  const FftChunks at = chunks<T>(request);
  if (std::max(at.g.rows, at.g.cols) > std::numeric_limits<int>::max()) {
    return no("a transform longer than 2^31 - 1");
  }
  const Index mib = request.params.get_int("chunk_mib");
  if (mib > kChunkMib[0] && chunks<T>(request, kChunkMib[0]).single(request.problem)) {
    return no("one chunk already at chunk_mib=" + std::to_string(kChunkMib[0]));
  }
  return yes();
}

Support supports(const PlanRequest& request) {
  if (uses_callbacks(request)) {
    if (CUFFT_VERSION < kFirstCufftWithLto) {
      return no("callbacks compiled at run time need CUDA 12.6 update 2; built with cuFFT " +
                std::to_string(CUFFT_VERSION));
    }
    if (!LtoCompiler::instance().problem().empty()) return no(LtoCompiler::instance().problem());
  }
  return request.precision == Precision::fp64 ? supports_as<double>(request)
                                              : supports_as<float>(request);
}

template <typename T>
std::size_t workspace_as(const PlanRequest& request) {
  const FftChunks at = chunks<T>(request);
  return static_cast<std::size_t>(at.end + kInfoBytes) +
         (uses_callbacks(request) ? reserved_for_callbacks<T>(at.g) : cufft_work_bytes<T>(at.g));
}

std::size_t workspace_bytes(const PlanRequest& request) {
  return request.precision == Precision::fp64 ? workspace_as<double>(request)
                                              : workspace_as<float>(request);
}

std::unique_ptr<Plan> plan(const PlanRequest& request) {
  if (request.precision == Precision::fp64) return std::make_unique<CufftPipeline<double>>(request);
  return std::make_unique<CufftPipeline<float>>(request);
}

XCORR_VARIANT({
    .summary =
        "Transform theorem on cuFFT: smooth sizes, streaming products, chunks in cache, callbacks",
    .parent = "cufft_paper",
    .source = "section 3.1",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::fft,
    .precisions = {Precision::fp32, Precision::fp64},
    .axes = {{"callbacks", {"none", "layout", "all"}},
             {"transform", {"in_place", "out_of_place"}},
             {"chunk_mib", {std::to_string(kChunkMib[0]), std::to_string(kChunkMib[1])}}},
    .drops = {{"callbacks", "layout", "transform"}, {"callbacks", "all", "transform"}},
    .emulated = false,
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .plan = plan,
});

}  // namespace
}  // namespace xcorr
