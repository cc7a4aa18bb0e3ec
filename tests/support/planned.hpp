// Memory of exact size, and a plan in such memory that computes any number of times.
#pragma once

#include <algorithm>
#include <memory>
#include <new>
#include <stdexcept>
#include <utility>

#include "harness/registry.hpp"
#include "harness/variant.hpp"

namespace xcorr {

// AddressSanitizer sees an access beyond the memory. Every float is NaN until somebody writes it.
class GlobalMemory {
 public:
  explicit GlobalMemory(std::size_t bytes)
      : size_(bytes), data_(static_cast<unsigned char*>(::operator new(bytes, kAlignment))) {
    poison();
  }
  GlobalMemory(const GlobalMemory&) = delete;
  GlobalMemory& operator=(const GlobalMemory&) = delete;
  ~GlobalMemory() { ::operator delete(data_, kAlignment); }
  void poison() { std::fill_n(data_, size_, static_cast<unsigned char>(0xff)); }
  template <typename T = void>
  T* get() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  static constexpr std::align_val_t kAlignment{256};  // the contract's, of the workspace
  std::size_t size_;
  unsigned char* data_;
};

// Throws std::runtime_error with the reason where the variant does not take the problem.
class Planned {
 public:
  Planned(const Variant& variant, const Problem& problem, Params params = {},
          Precision precision = Precision::fp32)
      : request_(supported(variant, {problem, std::move(params), precision})),
        workspace_(variant.workspace_bytes(request_)),
        out_(static_cast<std::size_t>(problem.result_bytes(scalar_bytes(precision)))) {
    request_.workspace = workspace_.get();
    plan_ = variant.plan(request_);
  }
  // The result, as compute wrote it. The output of the call is memory of this plan.
  const void* compute(Call call) {
    out_.poison();
    call.out = out_.get();
    plan_->compute(call);
    return call.out;
  }
  // The result of the last call.
  const float* surface() const { return out_.get<float>(); }
  const Peak* peaks() const { return out_.get<Peak>(); }

 private:
  static PlanRequest supported(const Variant& variant, PlanRequest request) {
    const Support support = variant.supports(request);
    if (!support) throw std::runtime_error(request.problem.id() + ": " + support.reason);
    return request;
  }

  PlanRequest request_;
  GlobalMemory workspace_, out_;
  std::unique_ptr<Plan> plan_;
};

}  // namespace xcorr
