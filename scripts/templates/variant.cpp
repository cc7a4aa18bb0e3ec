// @ID@, derived from @PARENT@: say here what changes and what it should gain.
//
// As generated, it computes `outputs` neighbouring outputs at a time by definition, on one thread.
// The right matrix of a pair lies between columns of zeros in the workspace, so that the inner loop
// has no condition.
//
// Forms: all four, any shapes, any window. Source: paper or thesis section.
// Parameters: outputs (4, 8), run-time: more products for each element of the left.
// Limits: a NaN or infinity meets the zeros, so it spreads to outputs that its own overlap does not
// reach.
#include <algorithm>

#include "harness/variant.hpp"

namespace xcorr::@FAMILY@ {
namespace {

constexpr Index kMostOutputs = 8;

// Elements of a row of the padded right matrix: element i belongs to right column sx.first + i. The
// last outputs of a row may not exist; they read zeros here too.
Index pitch_of(const Problem& q) { return q.left.cols + q.out_cols() + kMostOutputs; }

template <typename T>
class KernelPlan final : public Plan {
 public:
  explicit KernelPlan(const PlanRequest& request)
      : problem_(request.problem),
        outputs_(request.params.get_int("outputs")),
        padded_(static_cast<T*>(request.workspace)) {}

  // The inputs may differ from call to call, so everything that is made of them is made here.
  void compute(const Call& call) override {
    const Problem& q = problem_;
    T* out = call.outs<T>();
    for (Index p = 0; p < q.pairs(); ++p) {
      const T* left = call.lefts<T>() + q.pair(p).left * q.left.size();
      call.phase("clear");  // the time of a phase has a column of its own in the rows
      pad(call.rights<T>() + q.pair(p).right * q.right.size());
      call.phase("rest");
      for (Index sy = q.window.sy.first; sy <= q.window.sy.last; ++sy, out += q.out_cols()) {
        for (Index col = 0; col < q.out_cols(); col += outputs_) {
          T sum[kMostOutputs] = {};
          add(left, sy, col, sum);
          // The remainder: sums of outputs that do not exist are not written.
          std::copy_n(sum, std::min<Index>(outputs_, q.out_cols() - col), out + col);
        }
      }
    }
  }

 private:
  void pad(const T* right) {
    const Problem& q = problem_;
    const Index pitch = pitch_of(q), first = q.window.sx.first;
    std::fill_n(padded_, q.right.rows * pitch, T(0));
    const Index begin = std::max<Index>(first, 0), end = std::min(first + pitch, q.right.cols);
    for (Index y = 0; y < q.right.rows && begin < end; ++y) {
      std::copy(right + y * q.right.cols + begin, right + y * q.right.cols + end,
                padded_ + y * pitch + begin - first);
    }
  }

  void add(const T* left, Index sy, Index col, T* sum) const {
    const Problem& q = problem_;
    const Overlap rows = overlap(q.left.rows, q.right.rows, sy);
    for (Index y = rows.first; y < rows.first + rows.count; ++y) {
      const T* right = padded_ + (y + sy) * pitch_of(q) + col;
      for (Index x = 0; x < q.left.cols; ++x) {
        for (Index i = 0; i < outputs_; ++i) sum[i] += left[y * q.left.cols + x] * right[x + i];
      }
    }
  }

  Problem problem_;
  Index outputs_;
  T* padded_;
};

std::unique_ptr<Plan> plan(const PlanRequest& request) {
  if (request.precision == Precision::fp64) return std::make_unique<KernelPlan<double>>(request);
  return std::make_unique<KernelPlan<float>>(request);
}

// Memory that the harness allocates, and that is the plan's until it is destroyed.
std::size_t workspace_bytes(const PlanRequest& request) {
  const Problem& q = request.problem;
  const std::size_t scalar = request.precision == Precision::fp64 ? sizeof(double) : sizeof(float);
  return static_cast<std::size_t>(q.right.rows * pitch_of(q)) * scalar;
}

XCORR_VARIANT({
    .summary = "@ID@: one line for the table",
    .parent = "@PARENT@",
    .source = "none",
    .precisions = {Precision::fp32, Precision::fp64},
    .axes = {{"outputs", {"4", "8"}}},
    .workspace_bytes = workspace_bytes,
    .plan = plan,
});

}  // namespace
}  // namespace xcorr::@FAMILY@
