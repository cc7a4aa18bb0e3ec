// All variants that the build contains, sorted by id, and their grids.
#pragma once

#include <string>
#include <vector>

#include "harness/problem/inputs.hpp"
#include "harness/variant.hpp"

namespace xcorr {

const std::vector<Variant>& variants();

// UserError naming the nearest id when there is none.
const Variant& find_variant(const std::string& id);

// The exact points of the variant's grid: the product of its axes with every Drop applied, without
// duplicates, in the order of the axes' values. Without axes it is one empty point.
std::vector<Params> grid_points(const Variant& variant);

// "key=value;key=value" as a point of the variant's grid. UserError when it is not one.
Params parse_params(const Variant& variant, const std::string& text);

// The candidate nearest to `text` by edit distance; empty when there are none.
std::string nearest(const std::string& text, const std::vector<std::string>& candidates);

std::string_view to_string(Backend backend);
std::string_view to_string(Precision precision);
std::string_view to_string(AlgorithmClass algorithm_class);
Precision parse_precision(const std::string& text);

// Bytes of one element of inputs and outputs, and the unit roundoff of the products.
std::size_t scalar_bytes(Precision precision);
double unit_roundoff(Precision precision);
// All whole numbers up to this one are inputs that the precision class computes exactly: what it
// rounds has enough digits for them, and no part of them lies in a rest.
Index largest_exact_integer(Precision precision);
// Whether the precision class has room for the inputs of a kind: fp16 holds no number beyond 65504,
// and none that is much smaller than 1.
bool holds(Precision precision, InputKind kind);

}  // namespace xcorr
