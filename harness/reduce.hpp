// Every result for every variant: a variant that computes surfaces only gets memory for its
// surface, and the harness reduces the surface to the result inside compute, in a kernel of its own
// (docs/design.md, Fields of a problem).
#pragma once

#include <algorithm>
#include <memory>

#include "harness/variant.hpp"

namespace xcorr {

// Whether the harness reduces: the variant does not list the result of the problem.
inline bool is_reduced(const Variant& variant, const Problem& problem) {
  return std::find(variant.results.begin(), variant.results.end(), problem.fields.result.kind) ==
         variant.results.end();
}

// The request as the variant gets it: with result `surface` where the harness reduces.
inline PlanRequest variant_request(const Variant& variant, PlanRequest request) {
  if (is_reduced(variant, request.problem)) request.problem = request.problem.surface();
  return request;
}

}  // namespace xcorr
