// Correlation by transforms on cuFFT, as fast as library transforms allow: the FFT baseline.
// Derived from cufft_paper:
//
// - Padded sizes are smooth, 2^a 3^b 5^c 7^d, and depend on the window (`padded_size`); those of
//   cufft_paper are 2h x 2w.
// - Two right matrices of one left are the real and the imaginary part of one complex matrix
//   (geometry.hpp). A complex transform moves fewer bytes than two real transforms and has no odd
//   last element per row (measured: 0.76 to 0.88 of their time).
// - Rows of padding are not transformed (transform=complex_rows).
// - One kernel multiplies all pairs of a chunk and scales them. Padding and the definition's layout
//   are one kernel each, or parts of the transforms. All of them access 16 bytes at a time.
// - Plans have fixed batches: forward plans over lefts and rights in one buffer, inverse plans over
//   pairs. A problem with more than `chunk_mib` of spectra runs in equal chunks (rectangles of
//   lefts and rights), so that the workspace is bounded.
//
// callbacks  none:   pad, forward, hadamard, inverse and crop are separate launches.
//            layout: the forward transform loads from the unpadded inputs and the inverse transform
//                    stores into the outputs, through callbacks that NVRTC compiles (callbacks.hpp)
//                    and cuFFT links into its kernels while it plans (part of plan_us). Two
//                    launches less, but slower transforms: faster where launches take most of
//                    the time. Always with real transforms and small chunks.
// transform  real: one matrix per transform, which is complex where the matrix has an odd number of
//            columns (geometry.hpp). complex: two rights per transform. complex_rows: the same, with
//            separate transforms of rows and columns. The complex ones have no point if a left has
//            one right.
// chunk_mib  With 32 a chunk stays in the L2 cache from its product to its output. 1024 has no
//            point where 32 needs only one chunk.
// launch     stream: one launch after the other. graph: all launches of a call are replayed as one
//            CUDA graph. If pointers differ from those of the previous call, it is recorded again.
//            A call with marked phases is not replayed.
//
// With boundary circular a transform has the shape of the matrices, whatever its prime factors. The
// scores covariance and phase have additional, slow kernels in float64 between the launches above
// (scores.hpp).
//
// n-to-m transforms each matrix once if all spectra fit in kAllSpectraBytes. Otherwise, and in the
// other forms, each chunk transforms its lefts and rights.
//
// Kernels of padding and layout are phase `rest`. Limits: a chunk is at least one slot of pairs, so
// that a huge transform can exceed chunk_mib. A short left with a very long right is padded to the
// length of the right (no overlap-save). Not emulated.
#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/blocks/precision.hpp"
#include "algorithms/device/launch.hpp"
#include "algorithms/fft/chunks.hpp"
#include "algorithms/fft/cufft/callbacks.hpp"
#include "algorithms/fft/cufft/lto_compiler.hpp"
#include "algorithms/fft/cufft/products.hpp"
#include "algorithms/fft/cufft/replay.hpp"
#include "algorithms/fft/cufft/scores.hpp"
#include "algorithms/fft/geometry.hpp"
#include "algorithms/fft/layout.hpp"
#include "algorithms/fft/transforms.hpp"

namespace xcorr::fft {
namespace {

constexpr Index kAllSpectraBytes = Index{2} << 30;
constexpr int kChunkMib[] = {32, 1024};

bool uses_callbacks(const PlanRequest& request) {
  return request.params.get("callbacks") == "layout";
}

Transform transform(const PlanRequest& request) {
  if (uses_callbacks(request) || request.params.get("transform") == "real") return Transform::real;
  return request.params.get("transform") == "complex" ? Transform::complex
                                                      : Transform::complex_rows;
}

Index chunk_mib(const PlanRequest& request) {
  return uses_callbacks(request) ? kChunkMib[0] : request.params.get_int("chunk_mib");
}

template <typename T>
FftChunks chunks(const PlanRequest& request, Index mib) {
  return fft_chunks(request.problem, sizeof(T), transform(request), mib << 20, kAllSpectraBytes);
}

template <typename T>
FftChunks chunks(const PlanRequest& request) {
  return chunks<T>(request, chunk_mib(request));
}

// With callbacks cuFFT reports its memory only after linking. Therefore an upper bound is reserved:
// one image of the batch.
template <typename T>
std::size_t reserved_for_callbacks(const FftGeometry& g) {
  const Index slots = std::max(g.input_slots(), g.pair_slots);
  return static_cast<std::size_t>(slots * 2 * g.spectrum) * sizeof(T) + (std::size_t{1} << 20);
}

template <typename T>
struct CufftMemory : FftMemory<T, typename CufftTypes<T>::Complex> {
  CufftMemory(const Problem& q, const FftChunks& at, Workspace& workspace)
      : FftMemory<T, typename CufftTypes<T>::Complex>(at, workspace),
        chunk(workspace.take<FftChunk<T>>(1)),
        cleared(workspace.bytes()),
        norms(workspace.take<double>(
            q.fields.score.kind == ScoreKind::product ? 0 : matrix_norms(at.g))) {}
  FftChunk<T>* chunk;  // read by callbacks
  std::size_t cleared;
  double* norms;  // of the matrices without their means
};

template <typename T>
class CufftPipeline final : public Plan {
  using Complex = typename CufftTypes<T>::Complex;

 public:
  explicit CufftPipeline(const PlanRequest& request)
      : problem_(request.problem),
        at_(chunks<T>(request)),
        transforms_(at_.g),
        callbacks_(uses_callbacks(request)) {
    const FftGeometry& g = at_.g;
    Workspace workspace(request.workspace);
    const CufftMemory<T> memory(problem_, at_, workspace);
    images_in_ = memory.images;
    lefts_ = memory.spectra;
    rights_ = lefts_ + g.left_slots * slot();
    products_ = memory.products;
    chunk_ = memory.chunk;
    norms_ = memory.norms;
    if (callbacks_) set_callbacks();
    const std::size_t work = transforms_.make(g);
    images_.clear();
    void* area = workspace.take<char>(static_cast<Index>(work));
    if (callbacks_ && work > reserved_for_callbacks<T>(g)) {
      check_cuda(cudaMalloc(&own_work_, work), "work area of cuFFT");
      area = own_work_;
    }
    transforms_.use(area);
    // Rows that are never padded, and slots beyond the valid part, are read but never written.
    check_cuda(cudaMemsetAsync(request.workspace, 0, memory.cleared,
                               static_cast<cudaStream_t>(request.stream)),
               "clearing the workspace");
    if (request.params.get("launch") == "graph") {
      replay_.prepare([this](const Call& call) { issue(call, !at_.single(problem_)); });
    }
  }

  ~CufftPipeline() override { cudaFree(own_work_); }

  void compute(const Call& call) override {
    if (!replay_.replays(call)) return issue(call, true);
    // A single chunk is stored for the callbacks before the graph starts; several chunks are stored
    // inside the graph.
    if (callbacks_ && at_.single(problem_)) {
      store_for_callbacks(chunk(call, 0, 0, at_.chunk), static_cast<cudaStream_t>(call.stream));
    } else {
      stored_ = {};
    }
    replay_.run(call, [this](const Call& recorded) { issue(recorded, !at_.single(problem_)); });
  }

 private:
  void issue(const Call& call, bool stores_chunk) {
    const auto stream = static_cast<cudaStream_t>(call.stream);
    const Index rights = at_.g.pair_pitch;
    for (Index l = 0; l < problem_.lefts; l += at_.chunk.lefts) {
      for (Index r = 0; r < rights; r += at_.chunk.rights) {
        const Rectangle part{std::min(at_.chunk.lefts, problem_.lefts - l),
                             std::min(at_.chunk.rights, rights - r)};
        const FftChunk<T> of = chunk(call, l, r, part);
        if (callbacks_ && stores_chunk) store_for_callbacks(of, stream);
        run(call, of, l, r, part, stream);
      }
    }
  }

  FftChunk<T> chunk(const Call& call, Index l, Index r, Rectangle part) const {
    const Problem& q = problem_;
    const bool n_to_m = q.form == Form::n_to_m;
    const Index pair = l * at_.g.pair_pitch + r;
    T* out = call.outs<T>() + pair * q.out_size();
    if (at_.all_spectra) {
      return {call.lefts<T>(), call.rights<T>(), out,        q.lefts, 1,
              q.rights,        part.lefts,       part.rights};
    }
    return {call.lefts<T>() + l * q.left.size(),
            call.rights<T>() + (n_to_m ? r : pair) * q.right.size(),
            out,
            part.lefts,
            n_to_m ? 1 : part.lefts,
            part.rights,
            part.lefts,
            part.rights};
  }

  void run(const Call& call, const FftChunk<T>& of, Index l, Index r, Rectangle part,
           cudaStream_t stream) {
    const FftGeometry& g = at_.g;
    const Score& score = problem_.fields.score;
    if (!at_.all_spectra || (l == 0 && r == 0)) {
      if (!callbacks_) pad(g, of, images_in_, stream);
      if (score.kind != ScoreKind::product) remove_means(g, images_in_, norms_, stream);
      call.phase("forward");
      transforms_.forward(images_in_, lefts_, stream);
    }
    call.phase("hadamard");
    const Complex* lefts = lefts_ + (at_.all_spectra ? l * slot() : 0);
    const Complex* rights = rights_ + (at_.all_spectra ? r / g.pack * slot() : 0);
    const bool n_to_m = problem_.form == Form::n_to_m;
    if (score.kind == ScoreKind::phase) {
      const double* const left_norms = norms_ + (at_.all_spectra ? l : 0);
      const double* const right_norms = norms_ + g.left_slots + (at_.all_spectra ? r : 0);
      phase_products<T>(g, lefts, rights, left_norms, right_norms, products_, part.lefts,
                        part.rights, n_to_m, score.exponent, stream);
    } else {
      hadamard<T>(g, lefts, rights, products_, part.lefts, ceil_div(part.rights, g.pack), n_to_m,
                  stream);
    }
    call.phase("inverse");
    T* images_out = reinterpret_cast<T*>(products_);
    transforms_.inverse(products_, images_out, stream);
    call.phase("rest");
    if (!callbacks_) crop(g, of, images_out, T(1), stream);
  }

  // Complex elements between the spectra of neighbouring slots.
  Index slot() const { return at_.g.by_rows ? at_.g.pitch : at_.g.spectrum; }

  // Stores the chunk where the callbacks read it, unless it is stored already, as is usual with one
  // chunk and unchanged pointers. A recorded call may be replayed at any time; after one, the chunk
  // is always stored.
  void store_for_callbacks(const FftChunk<T>& of, cudaStream_t stream) {
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    check_cuda(cudaStreamIsCapturing(stream, &capture), "cudaStreamIsCapturing");
    if (capture != cudaStreamCaptureStatusNone) recorded_ = true;
    if (!recorded_ && std::memcmp(&of, &stored_, sizeof of) == 0) return;
    launch(store_chunk<T>, dim3(1), dim3(1), 0, stream, chunk_, of);
    stored_ = of;
  }

#if CUFFT_VERSION >= 11300
  void set_callbacks() {
    const bool single = sizeof(T) == sizeof(float);
    set_callback(transforms_.first(), "xcorr_pad", "XCORR_PAD",
                 single ? CUFFT_CB_LD_REAL : CUFFT_CB_LD_REAL_DOUBLE);
    set_callback(transforms_.last(), "xcorr_crop", "XCORR_CROP",
                 single ? CUFFT_CB_ST_REAL : CUFFT_CB_ST_REAL_DOUBLE);
  }

  void set_callback(CufftPlan<T>& plan, const char* name, const char* part,
                    cufftXtCallbackType type) {
    // cuFFT reads the image and the pointer during planning.
    images_.push_back(LtoCompiler::instance().compile(callback_source<T>(at_.g, part)));
    chunk_pointer_ = chunk_;
    check_cufft(cufftXtSetJITCallback(plan.handle(), name, images_.back().data(),
                                      images_.back().size(), type, &chunk_pointer_),
                "cufftXtSetJITCallback");
  }
#else
  void set_callbacks() {}  // supports() rejects these points
#endif

  Problem problem_;
  FftChunks at_;
  CufftTransforms<T> transforms_;
  bool callbacks_;
  T* images_in_;
  Complex *lefts_, *rights_, *products_;
  FftChunk<T>* chunk_;  // read by callbacks
  double* norms_;       // of the matrices without their means
  void* chunk_pointer_ = nullptr;
  void* own_work_ = nullptr;
  FftChunk<T> stored_{};
  bool recorded_ = false;
  std::vector<std::vector<char>> images_;
  Replay replay_;
};

Support supports(const PlanRequest& request) {
  if (!request.problem.is_plain() &&
      (uses_callbacks(request) || transform(request) != Transform::real)) {
    return no("boundary circular and scores: only with callbacks=none and transform=real");
  }
  if (uses_callbacks(request)) {
    if (CUFFT_VERSION < kFirstCufftWithLto) {
      return no("callbacks compiled at run time need CUDA 12.6 update 2; built with cuFFT " +
                std::to_string(CUFFT_VERSION));
    }
    if (!LtoCompiler::instance().problem().empty()) return no(LtoCompiler::instance().problem());
  }
  return with_scalar(request.precision, [&](auto scalar) {
    using T = decltype(scalar);
    const FftChunks at = chunks<T>(request);
    const FftGeometry& g = at.g;
    if (std::max({g.rows, g.cols, g.rows * g.pitch / 2 * std::max(g.input_slots(), g.pair_slots)}) >
        std::numeric_limits<int>::max()) {
      return no("a transform longer than 2^31 - 1, or 32 GiB of spectra in a chunk of one pair");
    }
    if (g.pack == 2 && g.pair_pitch == 1) return no("no two right matrices share a left one");
    if (g.by_rows && g.rows == 1) return no("one row: the same as transform=complex");
    if (chunk_mib(request) > kChunkMib[0] &&
        chunks<T>(request, kChunkMib[0]).single(request.problem)) {
      return no("one chunk already at chunk_mib=" + std::to_string(kChunkMib[0]));
    }
    return yes();
  });
}

std::size_t workspace_bytes(const PlanRequest& request) {
  return with_scalar(request.precision, [&](auto scalar) {
    using T = decltype(scalar);
    const FftChunks at = chunks<T>(request);
    Workspace workspace(nullptr);
    const CufftMemory<T> memory(request.problem, at, workspace);
    workspace.take<char>(static_cast<Index>(
        uses_callbacks(request) ? reserved_for_callbacks<T>(at.g) : cufft_work_bytes<T>(at.g)));
    return workspace.bytes();
  });
}

XCORR_VARIANT({
    .summary =
        "Transform theorem on cuFFT: smooth sizes, two rights a transform, streaming products",
    .parent = "cufft_paper",
    .source = "section 3.1",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::fft,
    .precisions = {Precision::fp32, Precision::fp64},
    .axes = {{"callbacks", {"none", "layout"}},
             {"transform", {"real", "complex", "complex_rows"}},
             {"chunk_mib", {std::to_string(kChunkMib[0]), std::to_string(kChunkMib[1])}},
             {"launch", {"stream", "graph"}}},
    .drops = {{"callbacks", "layout", "transform"}, {"callbacks", "layout", "chunk_mib"}},
    .boundaries = {Boundary::zero, Boundary::circular},
    .scores = {ScoreKind::product, ScoreKind::covariance, ScoreKind::phase},
    .emulated = false,
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .plan = plan_in_precision<CufftPipeline>,
});

}  // namespace
}  // namespace xcorr::fft
