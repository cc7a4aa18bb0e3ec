// The matrices of one side of a call on the host: their rows, for all views, and their masks.
#pragma once

#include <cstdint>

#include "harness/variant.hpp"

namespace xcorr::device {

template <typename T>
struct CallSide {
  const T* matrices;
  const std::uint8_t* mask;  // null: all pixels are valid
  View view;
  Views views;
  Shape shape;

  const T* row(Index i, Index y) const {
    switch (views) {
      case Views::windows:
        return matrices + view.offsets[i] + y * view.pitch;
      case Views::channels:
        return matrices + view.offsets[i * shape.rows + y];
      default:
        return matrices + (i * shape.rows + y) * shape.cols;
    }
  }
  const std::uint8_t* mask_row(Index i, Index y) const {
    return mask ? mask + (i * shape.rows + y) * shape.cols : nullptr;
  }
  bool valid(Index i, Index y, Index x) const { return !mask || mask_row(i, y)[x] != 0; }
};

template <typename T>
CallSide<T> left_side(const Call& call, const Problem& q) {
  return {call.lefts<T>(), call.left_mask, call.left_view, q.fields.views, q.left};
}
template <typename T>
CallSide<T> right_side(const Call& call, const Problem& q) {
  return {call.rights<T>(), call.right_mask, call.right_view, q.fields.views, q.right};
}

}  // namespace xcorr::device
