// The inputs of one problem in the memory of one device: matrices, masks, and offsets of views.
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
// array. Truth::fill writes the matrices. Masks (mask_value) and offsets (view_layout) come from the
// seed.
class Operands {
 public:
  Operands(const Problem& problem, Precision precision, Device& device, std::uint64_t seed);

  // Fills matrices and bands with NaN, and writes masks and offsets. Comes before all other calls.
  void poison(Device& device);

  void* left() const { return data(Content::matrices, Side::left); }
  void* right() const {
    return data(Content::matrices, problem_.fields.same ? Side::left : Side::right);
  }
  // Bytes of the arrays of matrices; 0 for the right one where left and right are one array.
  std::size_t left_bytes() const { return bytes_of(Content::matrices, Side::left); }
  std::size_t right_bytes() const { return bytes_of(Content::matrices, Side::right); }
  // The arguments of compute, without marks. `exclusive` is true, as in calls that are timed.
  Call call(void* out, Device& device) const;
  // "", or the first array whose bands, masks or offsets were written:
  // "memory beside the left matrices was written".
  std::string written(Device& device) const;

  // Bytes of the arrays without bands, and the number of arrays.
  static std::size_t bytes(const Problem& problem, Precision precision, std::uint64_t seed);
  static std::size_t arrays(const Problem& problem);

 private:
  enum class Content { matrices, masks, offsets };
  struct Array {
    Content what;
    Side side;
    std::size_t bytes;
    std::unique_ptr<Banded> memory = nullptr;
    std::vector<unsigned char> content = {};  // of masks and offsets, which no call may change
  };
  static std::vector<Array> layout(const Problem& problem, Precision precision, std::uint64_t seed);
  const Array* find(Content what, Side side) const;
  void* data(Content what, Side side) const;
  std::size_t bytes_of(Content what, Side side) const;

  Problem problem_;
  std::uint64_t seed_;
  std::vector<Array> arrays_;
};

}  // namespace xcorr
