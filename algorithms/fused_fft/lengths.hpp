// The lengths of transforms: how a transform is split into two passes of short transforms
// (short_transforms.hpp), and which compiled length a problem needs.
//
// A transform of n = first * second values is two passes. In each, a thread holds whole short
// transforms. With time index t + second * s and frequency k1 + first * k2,
//
//   X[k1 + first k2] = sum over t of
//     w_second^(t k2) ( w_n^(t k1) sum over s of w_first^(s k1) x[t + second s] ).
//
// Forward: transforms over s, twiddles, transforms over t. Results overwrite inputs, so frequency
// k1 + first * k2 lies at second * k1 + k2. The inverse does the same steps backwards. Products by
// element need no order, so no spectrum is put into natural order.
#pragma once

#include <algorithm>
#include <string>

#include "algorithms/blocks/padding.hpp"
#include "algorithms/blocks/pairs.hpp"
#include "algorithms/blocks/transform_lengths.hpp"

namespace xcorr::fused_fft {

// The lengths of transforms that a variant is compiled for, ascending.
template <int... kN>
struct Lengths {
  // The shortest length that an axis needs, 0 if all are too short.
  static int shortest(Index left, Index right, Shifts shifts) {
    const Index needed = padded_size(left, right, shifts);
    int result = 0;
    ((result = result == 0 && kN >= needed ? kN : result), ...);
    return result;
  }
  static int y(const Problem& q) { return shortest(q.left.rows, q.right.rows, q.window.sy); }
  static int x(const Problem& q) { return shortest(q.left.cols, q.right.cols, q.window.sx); }
  // The shortest square transform.
  static int square(const Problem& q) { return y(q) == 0 || x(q) == 0 ? 0 : std::max(y(q), x(q)); }
  static Support supports(const Problem& q) {
    if (const Support fit = indices_fit(q); !fit) return fit;
    if (square(q) > 0) return yes();
    return no("a transform longer than " + std::to_string(std::max({kN...})));
  }
  // Calls f(Length<n>); n is one of the lengths.
  template <typename F>
  static auto with(int n, F f) {
    return with_one<kN...>(n, f);
  }
  // The .plan of a variant whose plan is PlanOf<n>, n being the length of square transforms.
  template <template <int> typename PlanOf>
  static std::unique_ptr<Plan> plan(const PlanRequest& request) {
    return with(square(request.problem),
                [&](auto length) { return make_plan<PlanOf<decltype(length)::n>>(request); });
  }

 private:
  template <int kFirst, int... kRest, typename F>
  static auto with_one(int n, F f) {
    if constexpr (sizeof...(kRest) > 0) {
      if (n != kFirst) return with_one<kRest...>(n, f);
    }
    return f(Length<kFirst>{});
  }
};

}  // namespace xcorr::fused_fft
