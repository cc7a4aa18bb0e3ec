// What variants that are wrong on purpose share. They register as any variant does, in test programs only, with ids
// broken_*.
#pragma once

#include <concepts>
#include <memory>

#include "harness/variant.hpp"
#include "tests/support/problems.hpp"

namespace xcorr::broken {

// The right answer; a fault derives from it and spoils something.
struct Sound : Plan {
  explicit Sound(const PlanRequest& request) : request_(request), problem_(request.problem) {}

  void compute(const Call& call) override {
    ++calls_;
    each_sum(call, [&](const float* l, const float* r, Index sy, Index sx) {
      return product_sum<float>(problem_, l, r, sy, sx);
    });
  }

  // Every output is sum(left matrix, right matrix, sy, sx).
  template <typename F>
  void each_sum(const Call& call, F&& sum) const {
    each_output(problem_, [&](Index i, Pair pair, Index sy, Index sx) {
      call.outs<float>()[i] = sum(left(call, pair.left), right(call, pair.right), sy, sx);
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
  return add(id, summary, make_plan<Faulty<F>>);
}

}  // namespace xcorr::broken
