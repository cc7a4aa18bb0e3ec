// Variants that are wrong on purpose: parts that they share. They register as any variant does, in
// test programs only, with ids broken_*.
#pragma once

#include <memory>

#include "harness/variant.hpp"

namespace xcorr::broken {

// One output by the definition; `lost_rows` at the end of the overlap are left out.
inline float product_sum(const Problem& q, const float* left, const float* right, Index sy,
                         Index sx, Index lost_rows = 0) {
  const Overlap ys = overlap(q.left.rows, q.right.rows, sy);
  const Overlap xs = overlap(q.left.cols, q.right.cols, sx);
  float sum = 0;
  for (Index y = ys.first; y < ys.first + ys.count - lost_rows; ++y) {
    for (Index x = xs.first; x < xs.first + xs.count; ++x) {
      sum += left[y * q.left.cols + x] * right[(y + sy) * q.right.cols + x + sx];
    }
  }
  return sum;
}

// Calls write(output element, pair, sy, sx) for every output.
template <typename F>
void each_output(const Problem& q, float* out, F&& write) {
  for (Index p = 0; p < q.pairs(); ++p) {
    for (Index sy = q.window.sy.first; sy <= q.window.sy.last; ++sy) {
      for (Index sx = q.window.sx.first; sx <= q.window.sx.last; ++sx) write(*out++, p, sy, sx);
    }
  }
}

// The right answer; a fault derives from it and spoils something.
class Sound : public Plan {
 public:
  explicit Sound(const PlanRequest& request) : request_(request), problem_(request.problem) {}

  void compute(const Call& call) override {
    ++calls_;
    each_output(problem_, call.outs<float>(), [&](float& out, Index p, Index sy, Index sx) {
      out = product_sum(problem_, left(call, problem_.pair(p).left),
                        right(call, problem_.pair(p).right), sy, sx);
    });
  }

 protected:
  const float* left(const Call& call, Index index) const {
    return call.lefts<float>() + index * problem_.left.size();
  }
  const float* right(const Call& call, Index index) const {
    return call.rights<float>() + index * problem_.right.size();
  }

  PlanRequest request_;
  Problem problem_;
  int calls_ = 0;
};

// More calls than a point makes before its timed loop.
constexpr int kLater = 20;

template <typename Fault>
std::unique_ptr<Plan> plan(const PlanRequest& request) {
  return std::make_unique<Fault>(request);
}

inline std::size_t no_bytes(const PlanRequest&) { return 0; }
inline Support any(const PlanRequest&) { return yes(); }

inline bool add(const char* id, const char* summary, decltype(Variant::plan) plan,
                decltype(Variant::workspace_bytes) bytes = no_bytes,
                decltype(Variant::supports) supports = any) {
  Variant variant;
  variant.summary = summary;
  variant.plan = plan;
  variant.workspace_bytes = bytes;
  variant.supports = supports;
  return register_variant(std::move(variant), id, "negative", "tests/negative", "0123456789abcdef");
}

inline bool add_transform(const char* id, const char* summary, decltype(Variant::plan) plan) {
  Variant variant;
  variant.summary = summary;
  variant.algorithm_class = AlgorithmClass::fft;
  variant.plan = plan;
  return register_variant(std::move(variant), id, "negative", "tests/negative", "0123456789abcdef");
}

}  // namespace xcorr::broken
