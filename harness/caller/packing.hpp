// Matrices of other types and strides, made dense in the scalar type. Every type converts exactly.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

#include "harness/problem/inputs.hpp"
#include "harness/problem/problem.hpp"

namespace xcorr {

enum class ElementType { uint8, int8, uint16, int16, int32, float16, bfloat16, float32, float64 };
std::string_view to_string(ElementType type);
// UserError that lists all names where there is none; `key` says of what.
ElementType parse_element_type(std::string_view key, std::string_view text);
// Bytes of the smallest scalar, 4 or 8, that holds every value of the type.
std::size_t least_scalar_bytes(ElementType type);

// The matrices of one side, and how they become dense.
struct Packing {
  ElementType from = ElementType::float32;
  bool to_double = false;
  Index matrices = 1;
  Shape shape = {};
  std::array<Index, 3> strides = {};  // elements between neighbouring matrices, rows and columns

  XCORR_HD Index elements() const { return matrices * shape.rows * shape.cols; }
  // Whether the matrices already are dense scalars. The stride of an axis of one element has no
  // meaning.
  bool is_dense() const;
};

// `from` and `to` are host memory.
void pack_on_host(const Packing& packing, const void* from, void* to);
// In device memory, in the order of the stream (cudaStream_t). Only in builds with CUDA.
void pack_on_cuda(const Packing& packing, const void* from, void* to, void* stream);

// The bits of a float16 and of a bfloat16.
struct Float16Bits {
  std::uint16_t bits;
};
struct Bfloat16Bits {
  std::uint16_t bits;
};

template <typename From>
constexpr float as_float(From value) {
  return static_cast<float>(value);
}
constexpr float as_float(Bfloat16Bits value) {
  return std::bit_cast<float>(std::uint32_t{value.bits} << 16);
}
constexpr float as_float(Float16Bits value) {
  // Exponent and fraction in the places of a float, whose bias is larger by 112.
  const std::uint32_t magnitude = (value.bits & 0x7fffu) << 13;
  const std::uint32_t sign = (value.bits & 0x8000u) << 16;
  const bool finite = magnitude < (0x7c00u << 13);
  const std::uint32_t bits =
      finite ? std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f)
             : magnitude | 0x7f800000u;
  return std::bit_cast<float>(bits | sign);
}

template <typename To, typename From>
constexpr To as_scalar(From value) {
  if constexpr (sizeof(From) < 4) {
    return static_cast<To>(as_float(value));
  } else {
    return static_cast<To>(value);
  }
}

// Calls f(From{}) with the C++ type of the elements.
template <typename F>
void with_element_type(ElementType type, F&& f) {
  switch (type) {
    case ElementType::uint8:
      return f(std::uint8_t{});
    case ElementType::int8:
      return f(std::int8_t{});
    case ElementType::uint16:
      return f(std::uint16_t{});
    case ElementType::int16:
      return f(std::int16_t{});
    case ElementType::int32:
      return f(std::int32_t{});
    case ElementType::float16:
      return f(Float16Bits{});
    case ElementType::bfloat16:
      return f(Bfloat16Bits{});
    case ElementType::float32:
      return f(float{});
    case ElementType::float64:
      return f(double{});
  }
}

}  // namespace xcorr
