// The definition: the four loops of the paper (section 2) for each pair, with one thread, one
// multiply-add after the other. Every other variant is derived from it, directly or through its
// parents. It is the shortest variant: copy it to start another.
//
// Sums are float64, in which the product of two float32 values is exact, so that an output of any
// length is rounded once. They have the order of the definition (y, then x), so that the compiler
// may not vectorise them. Problems with fields have a separate plan (fields_by_definition.hpp).
// Limits: one product per latency of an addition, 3 to 4 cycles; minutes from 512 x 512 on. Score
// `phase` is a discrete Fourier transform without a fast algorithm, up to 64 x 64.
// Measured (AMD EPYC, Zen 3, 128 x 128, fp32): 0.26 s, 1.04 GFMA/s.
#include <string>

#include "algorithms/blocks/precision.hpp"
#include "algorithms/cpu/fields_by_definition.hpp"
#include "harness/variant.hpp"

namespace xcorr::cpu {
namespace {

template <typename T>
class DefinitionPlan final : public Plan {
 public:
  explicit DefinitionPlan(const PlanRequest& request) : problem_(request.problem) {}

  void compute(const Call& call) override {
    const Problem& q = problem_;
    T* out = call.outs<T>();
    for (Index p = 0; p < q.pairs(); ++p) {
      const T* left = call.lefts<T>() + q.pair(p).left * q.left.size();
      const T* right = call.rights<T>() + q.pair(p).right * q.right.size();
      for (Index sy = q.window.sy.first; sy <= q.window.sy.last; ++sy) {
        for (Index sx = q.window.sx.first; sx <= q.window.sx.last; ++sx) {
          const auto [first_y, rows] = overlap(q.left.rows, q.right.rows, sy);
          const auto [first_x, cols] = overlap(q.left.cols, q.right.cols, sx);
          double sum = 0;
          for (Index y = first_y; y < first_y + rows; ++y) {
            for (Index x = first_x; x < first_x + cols; ++x) {
              sum += double{left[y * q.left.cols + x]} *
                     double{right[(y + sy) * q.right.cols + x + sx]};
            }
          }
          *out++ = static_cast<T>(sum);
        }
      }
    }
  }

 private:
  Problem problem_;
};

constexpr Index kLargestPhase = 64 * 64;  // pixels; a row of n takes n^2 sines

Support supports(const PlanRequest& request) {
  const Problem& q = request.problem;
  if (q.fields.score.kind != ScoreKind::phase || q.left.size() <= kLargestPhase) return yes();
  return no("score phase of more than " + std::to_string(kLargestPhase) +
            " elements a matrix: the transform as it is defined takes too long; use cpu_fft");
}

std::size_t workspace_bytes(const PlanRequest& request) {
  return request.problem.is_plain() ? 0
                                    : FieldsByDefinition<float>::workspace_bytes(request.problem);
}

std::unique_ptr<Plan> plan(const PlanRequest& request) {
  return request.problem.is_plain() ? device::plan_in_precision<DefinitionPlan>(request)
                                    : device::plan_in_precision<FieldsByDefinition>(request);
}

XCORR_VARIANT({
    .summary = "The definition: four loops, one thread",
    .parent = "",
    .source = "section 2",
    .precisions = {Precision::fp32, Precision::fp64},
    .boundaries = {Boundary::zero, Boundary::circular},
    .scores = {ScoreKind::product, ScoreKind::covariance, ScoreKind::ncc, ScoreKind::zncc,
               ScoreKind::phase},
    .masks = true,
    .views = {Views::dense, Views::windows, Views::channels},
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .plan = plan,
});

}  // namespace
}  // namespace xcorr::cpu
