// The inputs of one problem in the memory of one device: matrices, masks, and where views look.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "harness/device/device.hpp"
#include "harness/measure/banded.hpp"
#include "harness/problem/inputs.hpp"
#include "harness/problem/problem.hpp"
#include "harness/variant.hpp"

namespace xcorr {

// Each array lies between two bands that no variant may touch. With `same` left and right are one
// array; with views an array is as large as view_layout says. Truth::fill writes the matrices.
// Masks (mask_value) and offsets (view_layout) come from the seed.
class Operands {
 public:
  Operands(const Problem& problem, Precision precision, Device& device, std::uint64_t seed);

  // Fills matrices and bands with NaN, and writes masks and offsets. Call it before all else.
  void poison(Device& device);

  void* left() const { return left_.data(); }
  void* right() const { return right_ ? right_->data() : left_.data(); }
  // Of the arrays of matrices: 0 bytes of the right one where it is the left one.
  std::size_t left_bytes() const { return left_.bytes; }
  std::size_t right_bytes() const { return right_ ? right_->bytes : 0; }
  // The arguments of compute, without marks, as in calls that are timed: all work of the stream is
  // that of the plan.
  Call call(void* out, Device& device) const;
  // "", or which array's bands, masks or offsets were written: "memory beside the left matrices".
  std::string written(Device& device) const;

  // Bytes of the arrays without bands, and the number of arrays.
  static std::size_t bytes(const Problem& problem, Precision precision, std::uint64_t seed);
  static std::size_t arrays(const Problem& problem);

 private:
  // Masks or offsets of one side: what they hold is known, and no variant may change it.
  struct Constant {
    const char* name;
    Side side;
    std::vector<unsigned char> content;
    std::unique_ptr<Banded> memory;
  };
  const void* constant(const char* name, Side side) const;

  Problem problem_;
  std::uint64_t seed_;
  Banded left_;
  std::unique_ptr<Banded> right_;  // null where left and right are one array
  std::vector<Constant> constants_;
  Index left_pitch_ = 0, right_pitch_ = 0;
};

}  // namespace xcorr
