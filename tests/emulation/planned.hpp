// Global memory of exact size, inputs in such memory, and a plan in such memory that computes any number of times.
#pragma once

#include <algorithm>
#include <memory>
#include <new>
#include <stdexcept>
#include <utility>

#include "harness/problem/results.hpp"
#include "harness/variant.hpp"
#include "tests/emulation/emulation.hpp"

namespace xcorr::emulation {

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

// Bytes of `elements` float32.
inline std::size_t floats(Index elements) {
  return static_cast<std::size_t>(elements) * sizeof(float);
}

// The inputs of a problem in float32.
struct Operands {
  Operands(Index left_elements, Index right_elements)
      : left(floats(left_elements)),
        right(floats(right_elements)),
        left_count(left_elements),
        right_count(right_elements) {}
  explicit Operands(const Problem& q) : Operands(q.left_elements(), q.right_elements()) {}
  template <typename Left, typename Right>
  Operands(const Problem& q, const Left& of_left, const Right& of_right) : Operands(q) {
    fill(of_left, of_right);
  }
  // Each function gives the element of an index.
  template <typename Left, typename Right>
  void fill(const Left& of_left, const Right& of_right) {
    for (Index i = 0; i < left_count; ++i) lefts()[i] = static_cast<float>(of_left(i));
    for (Index i = 0; i < right_count; ++i) rights()[i] = static_cast<float>(of_right(i));
  }
  float* lefts() const { return left.get<float>(); }
  float* rights() const { return right.get<float>(); }

  GlobalMemory left, right;
  Index left_count, right_count;
};

// Throws std::runtime_error with the reason where the variant does not take the problem.
class Planned {
 public:
  Planned(const Variant& variant, const Problem& problem, Params params = {},
          Precision precision = Precision::fp32)
      : request_(supported(variant, {problem, std::move(params), precision})),
        workspace_(variant.workspace_bytes(request_)),
        out_(static_cast<std::size_t>(problem.result_bytes(sizeof(float)))) {
    request_.workspace = workspace_.get();
    set_order(0);
    plan_ = variant.plan(request_);
  }
  // The result, as compute wrote it. Every call has another order of threads.
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
  const void* compute(const Operands& in) { return compute(in.left.get(), in.right.get()); }
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
  std::uint64_t order_ = 0;
};

}  // namespace xcorr::emulation
