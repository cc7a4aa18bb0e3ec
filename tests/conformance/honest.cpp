// Two variants that compute every score of every problem as an honest float32 kernel does: one sum of
// products an output, or transforms. If the verdict calls an output of theirs wrong, the bound is too
// strict. Random problems find such bounds here, without a GPU.
#include "harness/registry.hpp"
#include "tests/harness/fp32.hpp"

namespace xcorr {
namespace {

template <bool kTransform>
class Honest final : public Plan {
 public:
  explicit Honest(const PlanRequest& request) : problem_(request.problem) {}

  void compute(const Call& call) override {
    const Problem& q = problem_;
    ScoreInputs inputs;
    const auto* const left = call.lefts<float>();
    const auto* const right = call.rights<float>();
    inputs.left.assign(left, left + q.left_elements());
    inputs.right.assign(right, right + q.right_elements());
    if (call.left_mask)
      inputs.left_mask.assign(call.left_mask, call.left_mask + inputs.left.size());
    if (call.right_mask) {
      inputs.right_mask.assign(call.right_mask, call.right_mask + inputs.right.size());
    }
    inputs.find_facts(q);
    const std::vector<float> out = fp32::outputs(q, inputs, kTransform);
    std::copy(out.begin(), out.end(), call.outs<float>());
  }

 private:
  Problem problem_;
};

template <bool kTransform>
bool add(const char* id, const char* summary) {
  Variant variant;
  variant.summary = summary;
  variant.algorithm_class = kTransform ? AlgorithmClass::fft : AlgorithmClass::definition;
  variant.boundaries = {Boundary::zero, Boundary::circular};
  variant.scores = {ScoreKind::product, ScoreKind::covariance, ScoreKind::ncc, ScoreKind::zncc};
  if (kTransform) variant.scores.push_back(ScoreKind::phase);
  variant.masks = true;
  variant.plan = make_plan<Honest<kTransform>>;
  return register_variant(std::move(variant), id, "honest", "tests/conformance",
                          "0123456789abcdef");
}

const bool kAdded[] = {add<false>("honest_sums", "One float32 sum of products an output"),
                       add<true>("honest_transforms", "Transforms in float32")};

}  // namespace
}  // namespace xcorr
