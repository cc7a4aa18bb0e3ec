// A variant's plan of a problem, computed any number of times in memory of exact size.
#pragma once

#include <cmath>
#include <memory>
#include <stdexcept>
#include <utility>

#include "harness/variant.hpp"
#include "tests/emulation/emulation.hpp"
#include "tests/emulation/global_memory.hpp"

namespace xcorr::emulation {

// The larger of two errors, or the one that is NaN: std::max() would drop it.
inline double worse(double a, double b) { return std::isnan(a) || a > b ? a : b; }

// Bytes of so many float32.
inline std::size_t floats(Index elements) {
  return static_cast<std::size_t>(elements) * sizeof(float);
}

// Throws std::runtime_error with the reason where the variant does not take the problem.
class Planned {
 public:
  Planned(const Variant& variant, const Problem& problem, Params params = {},
          Precision precision = Precision::fp32)
      : request_(supported(variant, {problem, std::move(params), precision})),
        workspace_(variant.workspace_bytes(request_)),
        out_(static_cast<std::size_t>(problem.result_bytes(sizeof(float)))) {
    request_.workspace = workspace_.get();
    plan_ = variant.plan(request_);
  }
  // The result, as compute wrote it: each time in another order of threads.
  const void* compute(const void* left, const void* right, View left_view = {},
                      View right_view = {}) {
    out_.poison();
    set_order(++order_);
    Call call;
    call.left = left;
    call.right = right;
    call.out = out_.get();
    call.left_view = left_view;
    call.right_view = right_view;
    plan_->compute(call);
    return out_.get();
  }

 private:
  static PlanRequest supported(const Variant& variant, PlanRequest request) {
    const Support support = variant.supports(request);
    if (!support) throw std::runtime_error(request.problem.id() + ": " + support.reason);
    return request;
  }

  PlanRequest request_;
  GlobalMemory workspace_, out_;
  std::unique_ptr<Plan> plan_;
  std::uint64_t order_ = 0;
};

}  // namespace xcorr::emulation
