// All variants that the build contains, sorted by id, and their grids.
#pragma once

#include <string>
#include <vector>

#include "harness/problem/inputs.hpp"
#include "harness/variant.hpp"

namespace xcorr {

const std::vector<Variant>& variants();

// UserError that names the nearest id where there is none.
const Variant& find_variant(const std::string& id);

// The points of the variant's grid: the product of its axes with every Drop applied, without
// duplicates, in the order of the axes' values. One empty point without axes.
std::vector<Params> grid_points(const Variant& variant);

// A point of the variant's grid from "key=value;key=value". UserError where the grid lacks it.
Params parse_params(const Variant& variant, const std::string& text);

// The candidate nearest to `text` by edit distance; empty without candidates.
std::string nearest(const std::string& text, const std::vector<std::string>& candidates);

std::string_view to_string(Backend backend);
std::string_view to_string(Precision precision);
std::string_view to_string(AlgorithmClass algorithm_class);
Precision parse_precision(const std::string& text);

// Bytes of an element of inputs and outputs, and the unit roundoff of products.
std::size_t scalar_bytes(Precision precision);
double unit_roundoff(Precision precision);
// The precision class computes exactly with all whole numbers up to this one.
Index largest_exact_integer(Precision precision);
// Whether the precision class holds the inputs of a kind: fp16 has no number beyond 65504 and few
// digits below 6e-5.
bool holds(Precision precision, InputKind kind);

}  // namespace xcorr
