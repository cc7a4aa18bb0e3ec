// Normalised scores by transforms on cuFFT, with masks or without, at any shifts: a step from cufft,
// which makes sums of products. From the sums over the elements that are valid in both matrices,
//
//   sum l r, sum l^2, sum l, sum r^2, sum r and their number n,
//
// follow ncc and zncc, and each sum is a correlation: of values, squares and masks (Padfield, Masked
// object registration in the Fourier domain, 2012). Without masks all but the first are sums over a
// rectangle, which integral images give. The mask of a side changes the sums of the other one. So a
// pair takes one transform back without masks, three with one mask, and six with two.
//
// - Each matrix becomes three padded planes, and integral images in float64 (planes.hpp). Their spectra
//   are made once a call, whatever the number of pairs.
// - Chunks of pairs: one kernel multiplies the spectra of all sums, one batch of transforms goes back,
//   one kernel makes the scores (scores.hpp).
// - Transforms are float32. Where that is too little for a score, it is computed by its definition in
//   float64. These are shifts of which few elements overlap, and sides that are nearly constant there.
//
// Forms: all four, any shapes, any window; fp32, dense. Scores: ncc, zncc. Masks: none, left, right,
// both.
// Parameters, run-time:
//   chunk_mib  memory of the sums of a chunk of pairs: 32 stays in the L2 cache, 1024 has fewer launches
// Phases: forward, hadamard, inverse; planes and scores are the rest. Not emulated: library calls; the
// kernels around them are (tests/emulation/test_normalised.cpp).
// Limits: with two masks the number of elements must be exact after a float32 transform, which holds up to
// about 1.5 million elements. Not for templates along one signal: of a mean that drifts, a transform of the
// whole signal leaves errors larger than 1e-5 (docs/notebook/2026-11-template-matching.md).
#include <limits>

#include "algorithms/fft/cufft_normalised/pipeline.hpp"
#include "algorithms/fft/transforms.hpp"
#include "harness/variant.hpp"

namespace xcorr::fft {
namespace {

NormalisedLayout layout(const PlanRequest& request) {
  return {request.problem, Index{request.params.get_int("chunk_mib")} << 20};
}

// What correlate_normalised asks for: batches of planes, in place.
class PlaneTransforms {
 public:
  explicit PlaneTransforms(const NormalisedLayout& at) {
    const long long n[2] = {at.rows, at.cols};
    const CufftLayout real{{at.rows, at.pitch}, 1, 2 * at.bins};
    const CufftLayout bins{{at.rows, at.cols / 2 + 1}, 1, at.bins};
    const int rank = at.rows == 1 ? 1 : 2;
    bytes_ = std::max(planes_.make(CUFFT_R2C, rank, n, real, bins, at.matrices * at.count),
                      products_.make(CUFFT_C2R, rank, n, bins, real, at.chunk * at.number));
  }
  std::size_t work_bytes() const { return bytes_; }
  void use(void* work) {
    planes_.use(work);
    products_.use(work);
  }
  void forward(float* planes, void* stream) {
    planes_.forward(planes, reinterpret_cast<cufftComplex*>(planes),
                    static_cast<cudaStream_t>(stream));
  }
  void inverse(float* products, void* stream) {
    products_.inverse(reinterpret_cast<cufftComplex*>(products), products,
                      static_cast<cudaStream_t>(stream));
  }

 private:
  CufftPlan<float> planes_, products_;
  std::size_t bytes_ = 0;
};

class NormalisedPlan final : public Plan {
 public:
  explicit NormalisedPlan(const PlanRequest& request)
      : problem_(request.problem),
        at_(layout(request)),
        workspace_(request.workspace),
        transforms_(at_) {
    transforms_.use(static_cast<char*>(workspace_) + at_.end);
  }

  void compute(const Call& call) override {
    correlate_normalised(at_, problem_, call, workspace_, transforms_);
  }

 private:
  Problem problem_;
  NormalisedLayout at_;
  void* workspace_;
  PlaneTransforms transforms_;
};

Support supports(const PlanRequest& request) {
  const Problem& q = request.problem;
  if (!is_normalised(q.fields.score.kind)) return no("score: only ncc and zncc");
  if (const Support fits = indices_fit(q); !fits) return fits;
  Problem plain = q;
  plain.fields = {};
  if (plain.is_time_series()) {
    return no(
        "templates along one signal, whose mean may drift: variants of the family time_series");
  }
  const NormalisedLayout at = layout(request);
  if (std::max(at.rows, at.cols) > std::numeric_limits<int>::max()) {
    return no("a transform longer than 2^31 - 1");
  }
  // The error of a count, which is rounded to a whole number.
  const double points = static_cast<double>(at.rows * at.cols);
  if (q.fields.masks == Masks::both &&
      transform_roundoff(points) * static_cast<double>(q.max_overlap()) > 1) {
    return no("masks both: the number of valid elements would not be exact");
  }
  if (request.params.get_int("chunk_mib") > 32 &&
      NormalisedLayout(q, Index{32} << 20).chunk == q.pairs()) {
    return no("one chunk already at chunk_mib=32");
  }
  return yes();
}

std::size_t workspace_bytes(const PlanRequest& request) {
  const NormalisedLayout at = layout(request);
  return static_cast<std::size_t>(at.end) + PlaneTransforms(at).work_bytes();
}

XCORR_VARIANT({
    .summary =
        "ncc and zncc on cuFFT: integral images without masks, up to six correlations with them",
    .parent = "cufft",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::fft,
    .axes = {{"chunk_mib", {"32", "1024"}}},
    .scores = {ScoreKind::ncc, ScoreKind::zncc},
    .masks = true,
    .emulated = false,
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .plan = [](const PlanRequest& request) -> std::unique_ptr<Plan> {
      return std::make_unique<NormalisedPlan>(request);
    },
});

}  // namespace
}  // namespace xcorr::fft
