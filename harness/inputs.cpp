#include "harness/inputs.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "harness/error.hpp"

namespace xcorr {

Index integer_amplitude(Index largest_overlap) {
  const double k = static_cast<double>(largest_overlap);
  return std::max<Index>(1, static_cast<Index>(std::floor(std::sqrt(0x1p24 / k))));
}

std::string_view to_string(InputKind kind) {
  switch (kind) {
    case InputKind::zero_mean:
      return "zero-mean";
    case InputKind::integer:
      return "integer";
    default:
      return "uniform";
  }
}

InputKind parse_input_kind(std::string_view text) {
  for (const InputKind kind : {InputKind::uniform, InputKind::zero_mean, InputKind::integer}) {
    if (to_string(kind) == text) return kind;
  }
  throw UserError("input '" + std::string(text) + "': unknown; use uniform, zero-mean or integer");
}

}  // namespace xcorr
