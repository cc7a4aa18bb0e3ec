// What is computed, as data (docs/design.md, Problem; paper section 2):
//
//   out[p][sy][sx] = sum over (y, x) of L[y][x] * R[y + sy][x + sx], zero outside either matrix.
//
// Fields (harness/problem/fields.hpp) say what becomes of the products; `Geometry` is a problem
// without fields. Both are trivially copyable, so that a kernel takes them by value. Shapes are
// rows x cols, matrices row-major. `rights` is the TOTAL number of right matrices. Output index 0
// is the smallest shift of the window.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "harness/problem/fields.hpp"

namespace xcorr {

using Index = std::int64_t;

enum class Form { one_to_one, one_to_many, n_to_mn, n_to_m };

struct Shape {
  Index rows = 0;
  Index cols = 0;
  constexpr Index size() const { return rows * cols; }
  constexpr bool operator==(const Shape&) const = default;
};

// Inclusive range of shifts along one axis.
struct Shifts {
  Index first = 0;
  Index last = 0;
  constexpr Index count() const { return last - first + 1; }
  constexpr bool has(Index shift) const { return first <= shift && shift <= last; }
  constexpr bool operator==(const Shifts&) const = default;
};

struct Window {
  enum class Kind { full, valid, explicit_ranges };
  Kind kind = Kind::full;
  Shifts sy;
  Shifts sx;
};

// Indices of the two matrices of a pair.
struct Pair {
  Index left;
  Index right;
};

// Positions y of the left axis whose partner y + shift lies inside the right axis.
struct Overlap {
  Index first;  // first y
  Index count;  // 0 when nothing overlaps
};
constexpr Overlap overlap(Index left, Index right, Index shift) {
  const Index first = shift < 0 ? -shift : 0;
  const Index end = right - shift < left ? right - shift : left;
  return {first, end > first ? end - first : 0};
}

// The index on the right axis that position y of the left axis meets with boundary circular.
constexpr Index wrapped(Index y, Index shift, Index length) {
  const Index at = (y + shift) % length;
  return at < 0 ? at + length : at;
}

// Form, shapes, counts and window.
struct Geometry {
  Form form = Form::one_to_one;
  Shape left;
  Shape right;
  Index lefts = 1;
  Index rights = 1;
  Window window;

  constexpr Index pairs() const { return form == Form::n_to_m ? lefts * rights : rights; }
  // The one pairing function of all forms.
  constexpr Pair pair(Index p) const {
    switch (form) {
      case Form::n_to_m:
        return {p / rights, p % rights};
      case Form::n_to_mn:
        return {p / (rights / lefts), p};
      default:
        return {0, p};
    }
  }
  constexpr Index out_rows() const { return window.sy.count(); }
  constexpr Index out_cols() const { return window.sx.count(); }
  constexpr Index out_size() const { return out_rows() * out_cols(); }  // of one pair

  // Elements of all lefts, all rights, all outputs.
  constexpr Index left_elements() const { return lefts * left.size(); }
  constexpr Index right_elements() const { return rights * right.size(); }
  constexpr Index out_elements() const { return pairs() * out_size(); }
};

struct Problem : Geometry {
  Fields fields;

  // Useful work in fused multiply-adds: the total overlap area. With equal shapes and the full
  // window it is (h*w)^2 a pair, with either boundary.
  Index fmas() const;
  // Largest number of products in one output element.
  Index max_overlap() const;
  // Compulsory traffic: inputs and masks once, the result once.
  Index bytes(std::size_t scalar_bytes) const;
  // Bytes that compute writes: outputs of `scalar_bytes`, or records (harness/problem/results.hpp).
  Index result_bytes(std::size_t scalar_bytes) const;
  // True where every field but `same` has its default.
  bool is_plain() const;
  // The same problem with result `surface`, from which reductions start.
  Problem surface() const;
  // True for templates along signals: a plain problem whose matrices have equally many rows, at
  // most kMostChannels, and whose window lies inside `valid`. So there is one axis of shifts, every
  // output has all products, and rows (channels) are summed. Such problems have bounds of their own
  // (harness/verdict/bounds.hpp).
  bool is_time_series() const;
  static constexpr Index kMostChannels = 16;

  // `<form>/<RxC>/<RxC>/<lefts>:<rights>/<window>`, then `/<name>=<value>` for each field without
  // its default: the name in benchmarks and messages.
  std::string id() const;
};

// Checks all arguments and resolves the window. UserError for sizes that are zero, negative or
// overflow, counts that do not fit the form, a window outside the full one, `valid` where neither
// matrix contains the other, and fields that do not fit each other or the shapes.
Problem make_problem(Form form, Shape left, Shape right, Index lefts, Index rights,
                     std::string_view window, const Fields& fields = {});

// The inverse of Problem::id: "n-to-m/3x4/5x6/2:3/full/score=zncc:0.3". UserError for any other
// text.
Problem parse_problem(std::string_view id);

std::string_view to_string(Form form);
Form parse_form(std::string_view text);       // "n-to-mn"
Shape parse_shape(std::string_view text);     // "64x48"
std::string to_string(const Shape& shape);    // "64x48"
std::string to_string(const Window& window);  // "full", "valid", "sy:-3..3,sx:0..7"

}  // namespace xcorr
