#include "harness/reduce/reduce.hpp"

#include "harness/reduce/reduce_rules.hpp"
#include "harness/registry.hpp"
#include "reduction_hash.hpp"

namespace xcorr {
namespace {

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

// The workspace: that of the variant, the surface, the scratch memory.
struct Parts {
  std::size_t surface, scratch, total;

  Parts(const Variant& variant, const PlanRequest& request) {
    const PlanRequest of_variant = variant_request(variant, request);
    const auto outputs =
        static_cast<std::size_t>(of_variant.problem.result_bytes(scalar_bytes(request.precision)));
    surface = aligned(variant.workspace_bytes(of_variant));
    scratch = surface + aligned(outputs);
    total = scratch + (variant.backend == Backend::cuda ? ReduceScratch(request.problem).bytes : 0);
  }
};

class ReducedPlan : public Plan {
 public:
  ReducedPlan(const Variant& variant, const PlanRequest& request)
      : problem_(request.problem), precision_(request.precision), backend_(variant.backend) {
    const Parts parts(variant, request);
    surface_ = static_cast<char*>(request.workspace) + parts.surface;
    scratch_ = static_cast<char*>(request.workspace) + parts.scratch;
    plan_ = variant.plan(variant_request(variant, request));
  }

  void compute(const Call& call) override {
    Call of_variant = call;
    of_variant.out = surface_;
    plan_->compute(of_variant);
    call.phase("result");
#ifdef XCORR_WITH_CUDA
    if (backend_ == Backend::cuda) {
      return reduce_on_cuda(problem_, precision_, surface_, scratch_, call.out, call.stream);
    }
#endif
    reduce_on_cpu(problem_, precision_, surface_, scratch_, call.out);
  }

 private:
  Problem problem_;
  Precision precision_;
  Backend backend_;
  void *surface_, *scratch_;
  std::unique_ptr<Plan> plan_;
};

}  // namespace

std::string reduction_hash(Backend backend) {
  return backend == Backend::cpu ? XCORR_REDUCTION_HASH_CPU : XCORR_REDUCTION_HASH_CUDA;
}

std::string point_hash(const Variant& variant, const Problem& problem) {
  if (!is_reduced(variant, problem)) return variant.source_hash;
  return variant.source_hash + "+" + reduction_hash(variant.backend);
}

SurfaceShares::SurfaceShares(const Problem& problem) : outputs(problem.out_size()) {
  // About as many blocks as a large GPU holds, in shares that are worth the launches that combine
  // them, of whole batches of loads.
  constexpr Index kBlocks = 1024, kLeast = 2048, kBatch = 1024, kLeastShares = 4;
  const Index most = kBlocks / problem.pairs();
  if (most < 2 || problem.out_size() < kLeastShares * kLeast) return;
  const auto parts = [](Index whole, Index part) { return (whole + part - 1) / part; };
  outputs = parts(std::max(parts(problem.out_size(), most), kLeast), kBatch) * kBatch;
  count = parts(problem.out_size(), outputs);
}

ReduceScratch::ReduceScratch(const Problem& problem) {
  const Result& result = problem.fields.result;
  const auto take = [&](Index numbers) {
    const std::size_t at = bytes;
    bytes += aligned(static_cast<std::size_t>(numbers) * sizeof(double));
    return at;
  };
  const Index shares = SurfaceShares(problem).count;
  if (shares > 1 && (result.kind == ResultKind::peak || result.kind == ResultKind::peaks)) {
    constexpr Index kNumbers = sizeof(reduce::Candidate) / sizeof(double);
    found = take(2 * problem.pairs() * shares * kNumbers);
    finite = take(problem.pairs() * shares);
  }
  if (result.kind == ResultKind::above && result.of_deviations) thresholds = take(problem.pairs());
  if (result.kind == ResultKind::peak && result.sub_pixel == SubPixel::upsample) {
    // Blocks take several pairs where their lines would take more memory than this.
    constexpr Index kMostNumbers = Index{1} << 25;
    points = reduce::Upsampling{result.upsample}.points();
    const Index of_block = problem.out_rows() * points;
    blocks = std::clamp<Index>(kMostNumbers / of_block, 1, std::min<Index>(problem.pairs(), 1024));
    row_weights = take(of_block);
    col_weights = take(problem.out_cols() * points);
    lines = take(blocks * of_block);
  }
}

std::size_t plan_workspace_bytes(const Variant& variant, const PlanRequest& request) {
  if (!is_reduced(variant, request.problem)) return variant.workspace_bytes(request);
  return Parts(variant, request).total;
}

std::unique_ptr<Plan> make_plan(const Variant& variant, const PlanRequest& request) {
  if (!is_reduced(variant, request.problem)) return variant.plan(request);
  return std::make_unique<ReducedPlan>(variant, request);
}

}  // namespace xcorr
