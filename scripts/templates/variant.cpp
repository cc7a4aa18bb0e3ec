// @ID@, a step from @PARENT@: say here what changes and what it should gain.
// Source: paper or thesis section. Forms: all four, any shapes, any window.
// Parameters: none yet; say which are compile-time, which run-time, and what each trades.
// Limits: none known. As generated, it is the definition, one thread.
#include "harness/variant.hpp"

namespace xcorr {
namespace {

template <typename T>
class DefinitionLoops final : public Plan {
 public:
  explicit DefinitionLoops(const Problem& problem) : problem_(problem) {}

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

std::unique_ptr<Plan> plan(const PlanRequest& request) {
  if (request.precision == Precision::fp64) {
    return std::make_unique<DefinitionLoops<double>>(request.problem);
  }
  return std::make_unique<DefinitionLoops<float>>(request.problem);
}

XCORR_VARIANT({
    .summary = "@ID@: one line for the table",
    .parent = "@PARENT@",
    .source = "none",
    .precisions = {Precision::fp32, Precision::fp64},
    .plan = plan,
});

}  // namespace
}  // namespace xcorr
