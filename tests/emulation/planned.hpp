// Inputs in global memory of exact size, and a plan that computes in another order of threads with every call.
#pragma once

#include "tests/emulation/emulation.hpp"
#include "tests/support/planned.hpp"

namespace xcorr::emulation {

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

struct FirstOrder {
  FirstOrder() { set_order(0); }
};

// Every call has another order of threads.
class Planned : FirstOrder, public xcorr::Planned {
 public:
  using xcorr::Planned::Planned;
  const void* compute(const Call& call) {
    set_order(++order_);
    return xcorr::Planned::compute(call);
  }
  const void* compute(const void* left, const void* right) {
    return compute({.left = left, .right = right});
  }
  const void* compute(const Operands& in) { return compute(in.left.get(), in.right.get()); }

 private:
  std::uint64_t order_ = 0;
};

}  // namespace xcorr::emulation
