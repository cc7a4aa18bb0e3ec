// What variants that are wrong on purpose share. They register as any variant does, in test programs only, with ids
// broken_*.
#pragma once

#include <concepts>
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
struct Sound : Plan {
  explicit Sound(const PlanRequest& request) : request_(request), problem_(request.problem) {}

  void compute(const Call& call) override {
    ++calls_;
    each_sum(call, [&](const float* l, const float* r, Index sy, Index sx) {
      return product_sum(problem_, l, r, sy, sx);
    });
  }

  // Every output is sum(left matrix, right matrix, sy, sx).
  template <typename F>
  void each_sum(const Call& call, F&& sum) const {
    each_output(problem_, call.outs<float>(), [&](float& out, Index p, Index sy, Index sx) {
      out = sum(left(call, problem_.pair(p).left), right(call, problem_.pair(p).right), sy, sx);
    });
  }
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

// A fault without state: F(plan, call) takes the place of compute.
template <typename F>
struct Faulty : Sound {
  using Sound::Sound;
  void compute(const Call& call) override { F{}(*this, call); }
};

// More calls than a point makes before its timed loop.
constexpr int kLater = 20;

template <typename Fault>
std::unique_ptr<Plan> plan(const PlanRequest& request) {
  return std::make_unique<Fault>(request);
}

inline bool add_variant(const char* id, const char* summary, decltype(Variant::plan) plan,
                        Variant variant = {}) {
  variant.summary = summary;
  variant.plan = plan;
  return register_variant(std::move(variant), id, "negative", "tests/negative", "0123456789abcdef");
}

inline bool add(const char* id, const char* summary, decltype(Variant::plan) plan,
                decltype(Variant::workspace_bytes) bytes = Variant().workspace_bytes,
                decltype(Variant::supports) supports = Variant().supports) {
  Variant variant;
  variant.workspace_bytes = bytes;
  variant.supports = supports;
  return add_variant(id, summary, plan, std::move(variant));
}

template <std::invocable<Sound&, const Call&> F>
bool add(const char* id, const char* summary, F) {
  return add(id, summary, plan<Faulty<F>>);
}

}  // namespace xcorr::broken
