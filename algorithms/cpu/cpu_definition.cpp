// The definition as it stands: the four loops of the paper (section 2) for each pair, one thread,
// one multiply-add after the other. It is the root that every other variant is a step from, the
// time that speed-ups are stated over, and the shortest file of the house: copy it to start a
// variant.
//
// Forms: all four, any shapes, any window. No parameters. Sums are kept in the scalar type, in the
// order of the definition (y, then x), so the compiler may not vectorise them.
// Limits: about one product per latency of an addition; a matter of minutes from 512 x 512 on.
#include "algorithms/device/precision.hpp"
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
          T sum = 0;
          for (Index y = first_y; y < first_y + rows; ++y) {
            for (Index x = first_x; x < first_x + cols; ++x) {
              sum += left[y * q.left.cols + x] * right[(y + sy) * q.right.cols + x + sx];
            }
          }
          *out++ = sum;
        }
      }
    }
  }

 private:
  Problem problem_;
};

XCORR_VARIANT({
    .summary = "The definition: four loops, one thread",
    .parent = "",
    .source = "section 2",
    .precisions = {Precision::fp32, Precision::fp64},
    .plan = device::plan_in_precision<DefinitionPlan>,
});

}  // namespace
}  // namespace xcorr::cpu
