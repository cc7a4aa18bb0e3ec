// Normalised scores by transforms on cuFFT, with or without masks, at any shifts. Derived from
// cufft, which computes sums of products. ncc and zncc follow from the sums over the elements that
// are valid in both matrices,
//
//   sum l r, sum l^2, sum l, sum r^2, sum r and their number n,
//
// and each of these sums is a correlation of values, squares or masks (Padfield, Masked object
// registration in the Fourier domain, 2012). Without masks all but the first are sums over a
// rectangle, which integral images give. The mask of a side changes the sums of the other side. So
// a pair needs one real inverse transform without masks, three with one mask (ncc: two), and six
// with two masks (ncc: four).
//
// - Each matrix becomes one, two or three padded planes, as its problem needs, and integral images
//   in float64 (planes.hpp). Spectra are computed once per call, whatever the number of pairs.
// - Two planes of a side form one complex transform, and two sums form one complex inverse
//   transform. Rows of padding are not transformed. Rows that no output needs are not transformed
//   back if the other rows are contiguous.
// - Pairs are processed in chunks: one kernel multiplies the spectra of all sums, one batch of
//   inverse transforms follows, and one kernel computes the scores (scores.hpp). With chunk_mib=32
//   the sums of a chunk stay in the L2 cache; 1024 needs fewer launches.
// - Columns of up to 512 are transformed in the kernel that multiplies (columns.hpp). The library
//   transforms longer columns and all rows.
// - Transforms are float32. If that is not accurate enough for a score, it is computed by its
//   definition in float64. That happens at shifts with few overlapping elements, and for sides that
//   are nearly constant there.
//
// Planes and scores count as phase `rest`. The library calls are not emulated; the kernels around
// them are (tests/emulation/test_normalised.cpp).
// Limits: with two masks the number of elements must be exact after a float32 transform, which
// holds up to about a million elements. A transform of a whole signal has errors in proportion to
// its norm, but the bound of a score of a template along it does not grow with the signal
// (docs/design.md). A NaN or an infinity in an input makes every score of its pairs uncertain. All
// of these scores are then computed by their definition, which takes very long for large matrices.
#include <cmath>
#include <limits>

#include "algorithms/fft/cufft_normalised/pipeline.hpp"
#include "algorithms/fft/transforms.hpp"
#include "harness/variant.hpp"

namespace xcorr::fft {
namespace {

NormalisedLayout layout(const PlanRequest& request) {
  return {request.problem, Index{request.params.get_int("chunk_mib")} << 20};
}

// The transforms that correlate_normalised calls: complex transforms of rows and of columns. All
// are in place, except those of the columns of planes (PlaneLayout).
class PlaneTransforms {
  using Complex = cufftComplex;

 public:
  explicit PlaneTransforms(const NormalisedLayout& at)
      : has_columns_(at.rows > 1 && !at.own_columns),
        first_(at.own_columns ? 0 : at.first_row * at.product_slots * at.cols) {
    const long long row[2] = {1, at.cols}, column[2] = {1, at.rows};
    const CufftLayout line{{1, at.cols}, 1, at.cols};
    const auto down = [&](Index slots) { return CufftLayout{{1, at.rows}, slots * at.cols, 1}; };
    bytes_ = std::max(
        rows_.make(CUFFT_C2C, 1, row, line, line, at.padded_rows * at.slots),
        product_rows_.make(CUFFT_C2C, 1, row, line, line, at.window_rows * at.product_slots));
    if (!has_columns_) return;
    bytes_ = std::max(
        {bytes_,
         columns_.make(CUFFT_C2C, 1, column, down(at.slots), down(at.slots), at.slots * at.cols),
         product_columns_.make(CUFFT_C2C, 1, column, down(at.product_slots), down(at.product_slots),
                               at.product_slots * at.cols)});
  }
  std::size_t work_bytes() const { return bytes_; }
  void use(void* work) {
    for (CufftPlan<float>* plan : {&rows_, &product_rows_}) plan->use(work);
    if (!has_columns_) return;
    for (CufftPlan<float>* plan : {&columns_, &product_columns_}) plan->use(work);
  }
  void forward(float* planes, Bin* spectra, void* in) {
    const auto stream = static_cast<cudaStream_t>(in);
    auto* const from = reinterpret_cast<Complex*>(planes);
    auto* const to = reinterpret_cast<Complex*>(spectra);
    rows_.complex(from, has_columns_ ? from : to, CUFFT_FORWARD, stream);
    if (has_columns_) columns_.complex(from, to, CUFFT_FORWARD, stream);
  }
  void forward_rows(float* planes, void* in) {
    auto* const at = reinterpret_cast<Complex*>(planes);
    rows_.complex(at, at, CUFFT_FORWARD, static_cast<cudaStream_t>(in));
  }
  void inverse(Bin* products, void* in) {
    auto* const at = reinterpret_cast<Complex*>(products);
    if (has_columns_) {
      product_columns_.complex(at, at, CUFFT_INVERSE, static_cast<cudaStream_t>(in));
    }
    inverse_rows(products, in);
  }
  void inverse_rows(Bin* products, void* in) {
    const auto stream = static_cast<cudaStream_t>(in);
    auto* const at = reinterpret_cast<Complex*>(products);
    product_rows_.complex(at + first_, at + first_, CUFFT_INVERSE, stream);
  }

 private:
  bool has_columns_;
  Index first_;  // offset of the first row that is transformed back
  CufftPlan<float> rows_, columns_, product_columns_, product_rows_;
  std::size_t bytes_ = 0;
};

class NormalisedPlan final : public Plan {
 public:
  explicit NormalisedPlan(const PlanRequest& request)
      : at_(layout(request)),
        transforms_(at_),
        memory_(at_, transforms_.work_bytes(), Workspace(request.workspace)) {
    transforms_.use(memory_.work);
    clear(request.workspace, memory_.zeroed, request.stream);
    store_roots(at_, memory_, request.stream);
  }

  void compute(const Call& call) override { correlate_normalised(at_, memory_, call, transforms_); }

 private:
  NormalisedLayout at_;
  PlaneTransforms transforms_;
  NormalisedMemory memory_;
};

Support supports(const PlanRequest& request) {
  const Problem& q = request.problem;
  if (!is_normalised(q.fields.score.kind)) return no("score: only ncc and zncc");
  if (const Support fits = indices_fit(q); !fits) return fits;
  Problem plain = q;
  plain.fields = {};
  if (plain.is_time_series()) {
    return no("templates along signals: a transform of a whole signal is not exact enough");
  }
  const NormalisedLayout at = layout(request);
  // Elements of a matrix, bins and shifts have 32-bit indices.
  if (std::max({at.rows * at.cols, q.out_size(), integral_size(q.left), integral_size(q.right),
                at.tiles * kScoreThreads, at.padded_rows * at.slots,
                at.window_rows * at.product_slots, at.slots * at.cols,
                at.product_slots * at.cols}) > std::numeric_limits<int>::max()) {
    return no("more than 2^31 - 1 points, shifts or rows of transforms");
  }
  // The error of a count before it is rounded to a whole number.
  const double sizes = std::sqrt(static_cast<double>(q.left.size())) *
                       std::sqrt(static_cast<double>(q.right.size()));
  if (q.fields.masks == Masks::both &&
      transform_roundoff(static_cast<double>(at.rows * at.cols)) * sizes > 1) {
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
  return NormalisedMemory(at, PlaneTransforms(at).work_bytes(), Workspace(nullptr)).bytes;
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
    .plan = make_plan<NormalisedPlan>,
});

}  // namespace
}  // namespace xcorr::fft
