#include "harness/caller/packing.hpp"

#include "harness/problem/names.hpp"

namespace xcorr {
namespace {

constexpr std::pair<ElementType, std::string_view> kTypes[] = {
    {ElementType::uint8, "uint8"},       {ElementType::int8, "int8"},
    {ElementType::uint16, "uint16"},     {ElementType::int16, "int16"},
    {ElementType::int32, "int32"},       {ElementType::float16, "float16"},
    {ElementType::bfloat16, "bfloat16"}, {ElementType::float32, "float32"},
    {ElementType::float64, "float64"}};

template <typename From, typename To>
void pack(const Packing& p, const From* from, To* to) {
  for (Index m = 0; m < p.matrices; ++m) {
    for (Index y = 0; y < p.shape.rows; ++y) {
      const From* const row = from + m * p.strides[0] + y * p.strides[1];
      for (Index x = 0; x < p.shape.cols; ++x) *to++ = as_scalar<To>(row[x * p.strides[2]]);
    }
  }
}

}  // namespace

std::string_view to_string(ElementType type) { return name_of(kTypes, type); }

ElementType parse_element_type(std::string_view key, std::string_view text) {
  return value_of(kTypes, key, text);
}

std::size_t least_scalar_bytes(ElementType type) {
  return type == ElementType::int32 || type == ElementType::float64 ? 8 : 4;
}

bool Packing::is_dense() const {
  return from == (to_double ? ElementType::float64 : ElementType::float32) &&
         (shape.cols == 1 || strides[2] == 1) && (shape.rows == 1 || strides[1] == shape.cols) &&
         (matrices == 1 || strides[0] == shape.size());
}

void pack_on_host(const Packing& packing, const void* from, void* to) {
  with_element_type(packing.from, [&](auto of_type) {
    const auto* const elements = static_cast<const decltype(of_type)*>(from);
    if (packing.to_double) return pack(packing, elements, static_cast<double*>(to));
    pack(packing, elements, static_cast<float*>(to));
  });
}

}  // namespace xcorr
